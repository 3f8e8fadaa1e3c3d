"""Copies, clears, blits and resolves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vkharness.rig.barriers import GENERAL, image_range
from vkharness.rig.core import RigBuffer, RigCommandBuffer, RigImage, layout
from vkharness.spec.enums import VK_WHOLE_SIZE

Part = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""A region of an image: aspect, mip, layer, layers, offset, extent. A list stands for several regions."""


class TransferCommands(RigCommandBuffer):
    """Commands that copy, clear, blit and resolve."""

    def fill(self, buffer: RigBuffer, value: int, offset: int = 0, size: int = VK_WHOLE_SIZE) -> None:
        """vkCmdFillBuffer."""
        self.vk.vkCmdFillBuffer(self.handle, buffer.handle, offset, size, value)

    def update(self, buffer: RigBuffer, data: bytes, offset: int = 0) -> None:
        """vkCmdUpdateBuffer."""
        pointer = self.vk.ffi.new("char[]", data)
        self.vk.vkCmdUpdateBuffer(self.handle, buffer.handle, offset, len(data), pointer)

    def copy(self, source: RigBuffer, target: RigBuffer, *regions: tuple[int, int, int], v2: bool = False) -> None:
        """vkCmdCopyBuffer(2) of (source offset, target offset, size) regions, or of all of the source."""
        vk = self.vk
        parts = regions or ((0, 0, min(source.size, target.size)),)
        if not v2:
            made = [vk.VkBufferCopy(srcOffset=s, dstOffset=d, size=n) for s, d, n in parts]
            vk.vkCmdCopyBuffer(self.handle, source.handle, target.handle, len(made), made)
            return
        made = [vk.VkBufferCopy2(srcOffset=s, dstOffset=d, size=n) for s, d, n in parts]
        info = vk.VkCopyBufferInfo2(
            srcBuffer=source.handle, dstBuffer=target.handle, regionCount=len(made), pRegions=made
        )
        vk.vkCmdCopyBuffer2(self.handle, info)

    def _layers(self, image: RigImage, at: Mapping[str, Any]) -> Any:
        return self.vk.VkImageSubresourceLayers(
            aspectMask=at.get("aspect", image.aspects),
            mipLevel=at.get("mip", 0),
            baseArrayLayer=at.get("layer", 0),
            layerCount=at.get("layers", 1),
        )

    def _region(self, image: RigImage, at: Mapping[str, Any]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        mip = at.get("mip", 0)
        whole = (max(1, image.extent[0] >> mip), max(1, image.extent[1] >> mip), max(1, image.extent[2] >> mip))
        return at.get("offset", (0, 0, 0)), at.get("extent", whole)

    def copy_image(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        v2: bool = False,
    ) -> None:
        """vkCmdCopyImage(2). The extent is that of `read`."""
        self._image_command("CopyImage", "ImageCopy", source, target, (read, write), layouts, v2)

    def resolve(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        v2: bool = False,
    ) -> None:
        """vkCmdResolveImage(2). The extent is that of `read`."""
        self._image_command("ResolveImage", "ImageResolve", source, target, (read, write), layouts, v2)

    def _image_command(
        self,
        command: str,
        region: str,
        source: RigImage,
        target: RigImage,
        parts: tuple[Part, Part],
        layouts: tuple[str, str],
        v2: bool,
    ) -> None:
        vk, made = self.vk, []
        for read, write in zip(_several(parts[0]), _several(parts[1]), strict=True):
            offset, extent = self._region(source, read)
            target_offset, _ = self._region(target, write)
            one = getattr(vk, f"Vk{region}2" if v2 else f"Vk{region}")(
                srcSubresource=self._layers(source, read),
                srcOffset=vk.VkOffset3D(*offset),
                dstSubresource=self._layers(target, write),
                dstOffset=vk.VkOffset3D(*target_offset),
                extent=vk.VkExtent3D(*extent),
            )
            made.append(one)
        self._two_images(command, source, target, made, layouts, v2)

    def _two_images(
        self,
        command: str,
        source: RigImage,
        target: RigImage,
        made: list[Any],
        layouts: tuple[str, str],
        v2: bool,
        **more: Any,
    ) -> None:
        old, new = layout(layouts[0]), layout(layouts[1])
        if not v2:
            function = getattr(self.vk, f"vkCmd{command}")
            function(self.handle, source.handle, old, target.handle, new, len(made), made, *more.values())
            return
        info = getattr(self.vk, f"Vk{command}Info2")(
            srcImage=source.handle,
            srcImageLayout=old,
            dstImage=target.handle,
            dstImageLayout=new,
            regionCount=len(made),
            pRegions=made,
            **more,
        )
        getattr(self.vk, f"vkCmd{command}2")(self.handle, info)

    def blit(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        v2: bool = False,
        linear: bool = False,
    ) -> None:
        """vkCmdBlitImage(2) with the nearest filter, or a linear one. `flipped` in a part exchanges its corners."""
        vk, made = self.vk, []
        for parts in zip(_several(read), _several(write), strict=True):
            corners = []
            for image, part in zip((source, target), parts, strict=True):
                offset, extent = self._region(image, part)
                far = tuple(low + size for low, size in zip(offset, extent, strict=True))
                pair = [vk.VkOffset3D(*offset), vk.VkOffset3D(*far)]
                if part.get("flipped"):
                    pair = [vk.VkOffset3D(far[0], far[1], offset[2]), vk.VkOffset3D(offset[0], offset[1], far[2])]
                corners.append(pair)
            one = getattr(vk, "VkImageBlit2" if v2 else "VkImageBlit")(
                srcSubresource=self._layers(source, parts[0]),
                srcOffsets=corners[0],
                dstSubresource=self._layers(target, parts[1]),
                dstOffsets=corners[1],
            )
            made.append(one)
        self._two_images("BlitImage", source, target, made, layouts, v2, filter=int(linear))

    def _buffer_regions(self, image: RigImage, parts: Part, v2: bool) -> list[Any]:
        vk, made = self.vk, []
        for part in _several(parts):
            offset, extent = self._region(image, part)
            one = getattr(vk, "VkBufferImageCopy2" if v2 else "VkBufferImageCopy")(
                bufferOffset=part.get("buffer_offset", 0),
                bufferRowLength=part.get("row_length", 0),
                bufferImageHeight=part.get("image_height", 0),
                imageSubresource=self._layers(image, part),
                imageOffset=vk.VkOffset3D(*offset),
                imageExtent=vk.VkExtent3D(*extent),
            )
            made.append(one)
        return made

    def buffer_to_image(
        self, source: RigBuffer, target: RigImage, part: Part = None, *, at: str = GENERAL, v2: bool = False
    ) -> None:
        """vkCmdCopyBufferToImage(2). `part` also takes buffer_offset, row_length and image_height."""
        vk, made = self.vk, self._buffer_regions(target, part, v2)
        if not v2:
            vk.vkCmdCopyBufferToImage(self.handle, source.handle, target.handle, layout(at), len(made), made)
            return
        info = vk.VkCopyBufferToImageInfo2(
            srcBuffer=source.handle,
            dstImage=target.handle,
            dstImageLayout=layout(at),
            regionCount=len(made),
            pRegions=made,
        )
        vk.vkCmdCopyBufferToImage2(self.handle, info)

    def image_to_buffer(
        self, source: RigImage, target: RigBuffer, part: Part = None, *, at: str = GENERAL, v2: bool = False
    ) -> None:
        """vkCmdCopyImageToBuffer(2)."""
        vk, made = self.vk, self._buffer_regions(source, part, v2)
        if not v2:
            vk.vkCmdCopyImageToBuffer(self.handle, source.handle, layout(at), target.handle, len(made), made)
            return
        info = vk.VkCopyImageToBufferInfo2(
            srcImage=source.handle,
            srcImageLayout=layout(at),
            dstBuffer=target.handle,
            regionCount=len(made),
            pRegions=made,
        )
        vk.vkCmdCopyImageToBuffer2(self.handle, info)

    def clear_color(self, image: RigImage, value: int = 0x40302010, *, at: str = GENERAL, **part: Any) -> None:
        """vkCmdClearColorImage of `mips` and `layers` as (first, count). Each byte of `value` is a channel,
        0 to 255."""
        vk = self.vk
        channels = [(value >> shift & 0xFF) / 255 for shift in (0, 8, 16, 24)]
        color = vk.VkClearColorValue(float32=channels)
        vk.vkCmdClearColorImage(self.handle, image.handle, layout(at), color, 1, [image_range(self.vk, image, part)])

    def clear_depth_stencil(
        self, image: RigImage, depth: float = 0.5, stencil: int = 7, *, at: str = GENERAL, **part: Any
    ) -> None:
        """vkCmdClearDepthStencilImage. `aspects` chooses depth (2) or stencil (4)."""
        value = self.vk.VkClearDepthStencilValue(depth=depth, stencil=stencil)
        ranges = [image_range(self.vk, image, part)]
        self.vk.vkCmdClearDepthStencilImage(self.handle, image.handle, layout(at), value, 1, ranges)


def _several(part: Part) -> list[Mapping[str, Any]]:
    if part is None:
        return [{}]
    return [part] if isinstance(part, Mapping) else list(part)

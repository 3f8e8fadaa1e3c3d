"""Copies and layout transitions by the host (VK_EXT_host_image_copy), as functions that take the rig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vkharness.rig.buffers_images import BuffersImages
from vkharness.rig.core import RigImage, layout
from vkharness.spec.enums import VkImageAspect, VkImageUsage


def host_image(rig: BuffersImages, extent: tuple[int, int, int] = (16, 16, 1)) -> RigImage:
    """An image from which and to which both the host and the device can copy."""
    return rig.image(extent=extent, usage=VkImageUsage.HOST_TRANSFER | 0x3)


def copy_to_image(rig: BuffersImages, data: bytes, image: RigImage, *, at: str = "GENERAL", **part: Any) -> None:
    """vkCopyMemoryToImageEXT of tightly packed texels. `part` is as in `Commands.copy_image`."""
    vk = rig.vk
    texels = vk.ffi.new("char[]", data)
    region = vk.VkMemoryToImageCopyEXT(pHostPointer=texels, **_place(rig, image, part))
    info = vk.VkCopyMemoryToImageInfoEXT(dstImage=image.handle, dstImageLayout=layout(at), pRegions=[region])
    rig.function("vkCopyMemoryToImageEXT")(rig.device, info)


def copy_to_memory(rig: BuffersImages, image: RigImage, *, at: str = "GENERAL", **part: Any) -> bytes:
    """vkCopyImageToMemoryEXT of 32-bit texels."""
    vk = rig.vk
    width, height, _ = part.get("extent", image.extent)
    texels = vk.ffi.new("char[]", 4 * width * height)
    region = vk.VkImageToMemoryCopyEXT(pHostPointer=texels, **_place(rig, image, part))
    info = vk.VkCopyImageToMemoryInfoEXT(srcImage=image.handle, srcImageLayout=layout(at), pRegions=[region])
    rig.function("vkCopyImageToMemoryEXT")(rig.device, info)
    return bytes(vk.ffi.buffer(texels))


def host_transition(rig: BuffersImages, image: RigImage, old: str = "UNDEFINED", new: str = "GENERAL") -> None:
    """vkTransitionImageLayoutEXT of the whole image."""
    vk = rig.vk
    part = vk.VkImageSubresourceRange(aspectMask=VkImageAspect.COLOR, levelCount=image.mips, layerCount=image.layers)
    info = vk.VkHostImageLayoutTransitionInfoEXT(
        image=image.handle, oldLayout=layout(old), newLayout=layout(new), subresourceRange=part
    )
    rig.function("vkTransitionImageLayoutEXT")(rig.device, 1, [info])


def _place(rig: BuffersImages, image: RigImage, part: Mapping[str, Any]) -> dict[str, Any]:
    vk = rig.vk
    return {
        "imageSubresource": vk.VkImageSubresourceLayers(
            aspectMask=VkImageAspect.COLOR, mipLevel=part.get("mip", 0), layerCount=1
        ),
        "imageOffset": vk.VkOffset3D(*part.get("offset", (0, 0, 0))),
        "imageExtent": vk.VkExtent3D(*part.get("extent", image.extent)),
    }

"""Render passes from the images that they render to: formats, layouts and operations follow, dependencies do not.

Images differ in their layouts outside. A swapchain image comes with undefined contents and leaves ready to be
presented, an image of another owner as that owner takes it. A transient image exists inside the render pass only. Any
other image is in the layout of its first use before, and in that of its last use afterwards: beginning and ending
transition nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vkharness.rig.command_buffers import CommandBuffers
from vkharness.rig.core import RigImage
from vkharness.rig.render_passes import RigAttachment, RigFramebuffer, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VkImageUsage
from vkharness.spec.formats import format_of

COLOR, INPUT = "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL"
DEPTH, READ_ONLY_DEPTH = "DEPTH_STENCIL_ATTACHMENT_OPTIMAL", "DEPTH_STENCIL_READ_ONLY_OPTIMAL"
SHOWN, GENERAL, UNDEFINED = "PRESENT_SRC_KHR", "GENERAL", "UNDEFINED"
NOBODY: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class SubpassUses:
    """The uses of images by a subpass, by the numbers that the images have in their pass."""

    colors: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    depth: int | None = None
    read_only: bool = False
    """Whether the depth attachment is tested and not written."""

    def layout(self, number: int) -> str | None:
        """The layout of an image in this subpass, None when it is not used.

        An image that is read as input attachment and written is in GENERAL. One that is read as input attachment and
        as depth is in the read-only layout.
        """
        depth = READ_ONLY_DEPTH if self.read_only else DEPTH
        own = COLOR if number in self.colors else depth if number == self.depth else None
        if number not in self.inputs:
            return own
        return {None: INPUT, READ_ONLY_DEPTH: READ_ONLY_DEPTH}.get(own, GENERAL)

    def described(self) -> RigSubpass:
        """The subpass with the layouts of its uses."""

        def use(number: int) -> tuple[int, str]:
            return number, self.layout(number) or GENERAL

        return RigSubpass(
            [use(each) for each in self.colors],
            None if self.depth is None else use(self.depth),
            [use(each) for each in self.inputs],
        )


def described_attachments(
    images: Sequence[RigImage], subpasses: Sequence[SubpassUses], load: Collection[int], clear: Collection[int],
    store: Collection[int], owned: Mapping[int, str],
) -> list[RigAttachment]:  # fmt: skip
    """The attachments of a pass. `load`, `clear` and `store` are numbers of images; contents of the others are not
    cared for. `owned` are images of another owner, with the layouts in which it takes them."""
    described = []
    for number, image in enumerate(images):
        layouts = [at for at in (each.layout(number) for each in subpasses) if at is not None]
        first, last = layouts[0], layouts[-1]
        if image.memory is None or number in owned:
            first, last = UNDEFINED, owned.get(number, SHOWN)
        elif image.usage & VkImageUsage.TRANSIENT_ATTACHMENT:
            first = UNDEFINED
        operation = "CLEAR" if number in clear else "LOAD" if number in load else "DONT_CARE"
        kept = "STORE" if number in store else "DONT_CARE"
        described.append(RigAttachment(format_of(image.format).name, operation, kept, first, last))
    return described


class AutomaticPasses:
    """The render passes and framebuffers of one device, made when they are first asked for."""

    def __init__(self, rig: CommandBuffers) -> None:
        self.rig = rig
        self._passes: dict[str, RigRenderPass] = {}
        self._framebuffers: dict[tuple[str, tuple[int, ...]], RigFramebuffer] = {}
        self._views: dict[int, tuple[RigImage, object]] = {}

    def view(self, image: RigImage) -> object:
        """The view of an image that its framebuffers have."""
        if id(image) not in self._views:
            self._views[id(image)] = image, self.rig.view(image, aspect=image.aspects)
        return self._views[id(image)][1]

    def get(
        self,
        images: Sequence[RigImage],
        subpasses: Sequence[SubpassUses],
        dependencies: Iterable[RigSubpassDependency] = (),
        *,
        load: Collection[int] = (),
        clear: Collection[int] = (),
        store: Collection[int] = (),
        owned: Mapping[int, str] = NOBODY,
    ) -> tuple[RigRenderPass, RigFramebuffer]:
        """The render pass and the framebuffer for these images; see `described_attachments`.

        The dependencies are the scenario's: none is added.
        """
        attachments = described_attachments(images, subpasses, load, clear, store, owned)
        needed = list(dependencies)
        key = repr((attachments, subpasses, needed))
        if key not in self._passes:
            self._passes[key] = self.rig.render_pass(attachments, [each.described() for each in subpasses], needed)
        made = self._passes[key]
        place = key, tuple(id(image) for image in images)
        if place not in self._framebuffers:
            views, extent = [self.view(image) for image in images], images[0].extent[:2]
            self._framebuffers[place] = self.rig.framebuffer(made, views, extent)
        return made, self._framebuffers[place]

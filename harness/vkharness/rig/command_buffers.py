"""Command buffers, primary and secondary, with a method for each command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.rig.core import RigPipeline
from vkharness.rig.described_sets import DescribedCommands, DescribedSets
from vkharness.rig.descriptor_sets import DescriptorSets, DispatchCommands
from vkharness.rig.events import EventCommands, RigEvents
from vkharness.rig.queries import Queries, QueryCommands
from vkharness.rig.render_passes import RenderPasses, RigFramebuffer, RigRenderPass
from vkharness.rig.rendering_attachments import Rect, RenderingAttachment, RenderingCommands
from vkharness.rig.shader_stages import ShaderObjectCommands, ShaderObjects
from vkharness.rig.transfers import TransferCommands
from vkharness.spec.enums import VkCommandBufferUsage
from vkharness.spec.formats import format_of
from vkharness.spec.names import enum_value

SIMULTANEOUS_USE = VkCommandBufferUsage.SIMULTANEOUS_USE


class RigObjects(DescribedSets, DescriptorSets, ShaderObjects, RenderPasses, RigEvents, Queries):
    """A device with everything that a scenario makes on it, except for command buffers and swapchains."""


class Commands(
    TransferCommands,
    DispatchCommands,
    RenderingCommands,
    EventCommands,
    QueryCommands,
    ShaderObjectCommands,
    DescribedCommands,
):
    """A command buffer while it is recorded, with every command that a scenario can record."""

    rig: RigObjects

    def render(
        self,
        pipeline: RigPipeline,
        *colors: RenderingAttachment,
        depth: RenderingAttachment | None = None,
        area: Rect = (0, 0, 16, 16),
        vertices: int = 3,
        **held: Any,
    ) -> None:
        """One instance of dynamic rendering with one draw, with a new set of `b<binding>=` resources."""
        self.begin_rendering(*colors, depth=depth, area=area)
        self.bind(pipeline, self.rig.descriptors(pipeline, **held) if held else None)
        self.draw(vertices)
        self.end_rendering()

    def execute(self, *secondaries: Commands) -> None:
        """vkCmdExecuteCommands."""
        handles = [each.handle for each in secondaries]
        self.vk.vkCmdExecuteCommands(self.handle, len(handles), handles)
        for each in secondaries:
            self.event_operations += each.event_operations


class CommandBuffers(RigObjects):
    """Command buffers of one device."""

    @contextmanager
    def commands(
        self, again: Commands | None = None, flags: int = SIMULTANEOUS_USE, queue: DeviceQueue | None = None
    ) -> Iterator[Commands]:
        """Records a new command buffer for a queue, or `again` an existing one.
        `flags` are VkCommandBufferUsageFlags."""
        vk = self.vk
        if again is None:
            queue = queue or self.queues[0]
            info = vk.VkCommandBufferAllocateInfo(
                commandPool=self.gpu.pool(queue.family), level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
            )
            again = Commands(self, vk.vkAllocateCommandBuffers(self.device, info)[0], queue)
        again.event_operations.clear()
        vk.vkBeginCommandBuffer(again.handle, vk.VkCommandBufferBeginInfo(flags=flags))
        yield again
        vk.vkEndCommandBuffer(again.handle)

    @contextmanager
    def secondary(
        self,
        again: Commands | None = None,
        *,
        render_pass: RigRenderPass | None = None,
        subpass: int = 0,
        framebuffer: RigFramebuffer | None = None,
        colors: Sequence[str] = (),
        depth: str | None = None,
        inherits: Any = None,
        flags: int = SIMULTANEOUS_USE,
    ) -> Iterator[Commands]:
        """Records a new secondary command buffer, or `again` an existing one.

        With a render pass it continues that subpass. With formats it continues dynamic rendering to such attachments.
        `inherits`, a VkCommandBufferInheritanceInfo, says either in its own way. Without any of them it runs outside
        render pass instances. `flags` are VkCommandBufferUsageFlags.
        """
        vk = self.vk
        if again is None:
            info = vk.VkCommandBufferAllocateInfo(
                commandPool=self.gpu.command_pool, level=vk.VK_COMMAND_BUFFER_LEVEL_SECONDARY, commandBufferCount=1
            )
            again = Commands(self, vk.vkAllocateCommandBuffers(self.device, info)[0], self.queues[0])
        following = _rendering(vk, colors, depth) if colors or depth else None
        inherited = inherits or vk.VkCommandBufferInheritanceInfo(
            pNext=following,
            renderPass=render_pass.handle if render_pass else None,
            subpass=subpass,
            framebuffer=framebuffer.handle if framebuffer else None,
        )
        if render_pass or following is not None or inherits is not None:
            flags |= VkCommandBufferUsage.RENDER_PASS_CONTINUE
        again.event_operations.clear()
        vk.vkBeginCommandBuffer(again.handle, vk.VkCommandBufferBeginInfo(flags=flags, pInheritanceInfo=inherited))
        yield again
        vk.vkEndCommandBuffer(again.handle)


def _rendering(vk: Any, colors: Sequence[str], depth: str | None) -> Any:
    """VkCommandBufferInheritanceRenderingInfo. A depth/stencil format counts for the aspects that it has."""
    value = enum_value("VkFormat", depth) if depth else 0
    aspects = format_of(value).aspects if depth else 0
    return vk.VkCommandBufferInheritanceRenderingInfo(
        pColorAttachmentFormats=[enum_value("VkFormat", each) for each in colors],
        depthAttachmentFormat=value if aspects & 2 else 0,
        stencilAttachmentFormat=value if aspects & 4 else 0,
        rasterizationSamples=1,
    )

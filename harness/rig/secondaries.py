"""Secondary command buffers in scenarios. `Rig` and `Commands` have these functions as their methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.spec.enums import VkCommandBufferUsage
from harness.spec.formats import format_of
from harness.spec.names import enum_value

if TYPE_CHECKING:
    from harness.rig.command_buffers import Commands
    from harness.rig.render_passes import RigFramebuffer, RigRenderPass
    from harness.rig.rig import Rig


@contextmanager
def secondary(
    rig: Rig,
    again: Commands | None = None,
    *,
    render_pass: RigRenderPass | None = None,
    subpass: int = 0,
    framebuffer: RigFramebuffer | None = None,
    colors: Sequence[str] = (),
    depth: str | None = None,
    flags: int = VkCommandBufferUsage.SIMULTANEOUS_USE,
) -> Iterator[Commands]:
    """Records a new secondary command buffer, or `again` the same one.

    With a render pass it belongs inside that subpass, with formats inside dynamic rendering to such attachments, and
    else outside render pass instances. `flags` are VkCommandBufferUsageFlags.
    """
    from harness.rig.command_buffers import Commands

    vk = rig.vk
    if again is None:
        info = vk.VkCommandBufferAllocateInfo(
            commandPool=rig.gpu.command_pool, level=vk.VK_COMMAND_BUFFER_LEVEL_SECONDARY, commandBufferCount=1
        )
        again = Commands(rig, vk.vkAllocateCommandBuffers(rig.device, info)[0])
    following = _rendering(vk, colors, depth) if colors or depth else None
    inherited = vk.VkCommandBufferInheritanceInfo(
        pNext=following,
        renderPass=render_pass.handle if render_pass else None,
        subpass=subpass,
        framebuffer=framebuffer.handle if framebuffer else None,
    )
    if render_pass or following is not None:
        flags |= VkCommandBufferUsage.RENDER_PASS_CONTINUE
    again.event_operations.clear()
    vk.vkBeginCommandBuffer(again.handle, vk.VkCommandBufferBeginInfo(flags=flags, pInheritanceInfo=inherited))
    yield again
    vk.vkEndCommandBuffer(again.handle)


def _rendering(vk: Any, colors: Sequence[str], depth: str | None) -> Any:
    """VkCommandBufferInheritanceRenderingInfo; a depth/stencil format counts for the aspects that it has."""
    value = enum_value("VkFormat", depth) if depth else 0
    aspects = format_of(value).aspects if depth else 0
    return vk.VkCommandBufferInheritanceRenderingInfo(
        pColorAttachmentFormats=[enum_value("VkFormat", each) for each in colors],
        depthAttachmentFormat=value if aspects & 2 else 0,
        stencilAttachmentFormat=value if aspects & 4 else 0,
        rasterizationSamples=1,
    )


def execute(commands: Commands, *secondaries: Commands) -> None:
    """vkCmdExecuteCommands."""
    handles = [each.handle for each in secondaries]
    commands.vk.vkCmdExecuteCommands(commands.handle, len(handles), handles)
    for each in secondaries:
        commands.event_operations += each.event_operations

"""Where the commands of a trace stand: in which recording, and in which instance of a render pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, NEXT_SUBPASS, is_recorded, is_submit
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkCommandBufferUsage, VkRendering
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.submits import batches

EXTERNAL = VK_SUBPASS_EXTERNAL


OPEN = 1 << 62
"""The end of a recording or an instance that the trace does not end."""


@dataclass(slots=True)
class Instance:
    """An instance of a render pass or of dynamic rendering, by positions in the trace."""

    begin: int
    render_pass: int | None
    """None for dynamic rendering."""
    resumes: bool
    suspends: bool
    subpasses: list[int]
    """Where each subpass begins: the first is `begin`."""
    end: int = OPEN

    def subpass_at(self, position: int) -> int:
        """The subpass of a command, by its position."""
        return bisect_right(self.subpasses, position) - 1


@dataclass(slots=True)
class CommandRecording:
    """The commands from one vkBeginCommandBuffer to the end."""

    command_buffer: int
    begin: int
    continues: bool
    """Whether it is a secondary that runs inside an instance of a primary."""
    positions: list[int] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    end: int = OPEN
    """Where vkEndCommandBuffer is."""

    def instance_at(self, position: int) -> Instance | None:
        """The instance that holds a command; its begin and its end belong to it."""
        return next((each for each in self.instances if each.begin <= position <= each.end), None)

    def before(self, position: int) -> int:
        """The position of the command, or of the begin, before a position."""
        at = bisect_right(self.positions, position - 1)
        return self.positions[at - 1] if at else self.begin


class Recordings:
    """All recordings of a trace."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._all: dict[int, list[CommandRecording]] = {}
        for position, block in enumerate(blocks):
            if isinstance(block, Call):
                self._follow(position, block)

    def _follow(self, position: int, call: Call) -> None:
        if call.name == "vkBeginCommandBuffer":
            flags = (call.args.get("pBeginInfo") or {}).get("flags", 0)
            continues = bool(flags & VkCommandBufferUsage.RENDER_PASS_CONTINUE)
            made = CommandRecording(call.args["commandBuffer"], position, continues)
            self._all.setdefault(made.command_buffer, []).append(made)
        elif call.name == "vkEndCommandBuffer" or is_recorded(call.name):
            held = self._all.get(call.args.get("commandBuffer", 0))
            if held and call.name == "vkEndCommandBuffer":
                held[-1].end = position
            elif held:
                held[-1].positions.append(position)
                self._render(held[-1], position, call)

    def _render(self, recording: CommandRecording, position: int, call: Call) -> None:
        if call.name.startswith(BEGINS_RENDERING):
            begin, info = (call.args.get("pRenderPassBegin"), call.args.get("pRenderingInfo") or {})
            flags = info.get("flags", 0)
            recording.instances.append(
                Instance(
                    position,
                    begin["renderPass"] if begin else None,
                    bool(flags & VkRendering.RESUMING),
                    bool(flags & VkRendering.SUSPENDING),
                    [position],
                )
            )
        elif recording.instances and call.name.startswith(NEXT_SUBPASS):
            recording.instances[-1].subpasses.append(position)
        elif recording.instances and call.name.startswith(ENDS_RENDERING):
            recording.instances[-1].end = position

    def at(self, position: int) -> CommandRecording | None:
        """The recording that holds a command."""
        call = self._blocks[position]
        held = self._all.get(call.args.get("commandBuffer", 0), ()) if isinstance(call, Call) else ()
        return next((each for each in reversed(held) if each.begin <= position <= each.end), None)

    @cached_property
    def executions(self) -> dict[int, list[int]]:
        """Secondary command buffer to the positions of the vkCmdExecuteCommands that run it."""
        found: dict[int, list[int]] = {}
        for position, block in enumerate(self._blocks):
            if isinstance(block, Call) and main_name(block.name) == "vkCmdExecuteCommands":
                for each in block.args["pCommandBuffers"] or ():
                    found.setdefault(each, []).append(position)
        return found

    @cached_property
    def submits(self) -> dict[int, list[int]]:
        """Primary command buffer to the positions of the submits that execute it."""
        found: dict[int, list[int]] = {}
        for position, block in enumerate(self._blocks):
            if isinstance(block, Call) and is_submit(block.name):
                for each in {held for batch in batches(block.args) for held in batch.command_buffers}:
                    found.setdefault(each, []).append(position)
        return found

    def in_primary(self, position: int, executed_by: int | None = None) -> int:
        """The position of a command, or of the vkCmdExecuteCommands around it where its secondary runs inside an
        instance."""
        recording = self.at(position)
        if recording is None or not recording.continues:
            return position
        if executed_by is not None:
            return executed_by
        return next((each for each in self.executions.get(recording.command_buffer, ()) if each > position), position)

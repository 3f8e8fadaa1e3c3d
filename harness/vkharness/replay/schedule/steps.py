"""A trace as a list of steps: host calls in place, and command buffers laid out at each submit.

Every outcome is a transformation of this list. A step is one block of the trace in one execution. A command buffer that
is submitted twice gives two steps for each of its commands, and their `Identity` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from vkharness.findings import Place, UserError
from vkharness.replay.schedule.batch_scheduler import BatchScheduler
from vkharness.replay.schedule.held_waits import HeldWaits
from vkharness.replay.schedule.screens import OURS
from vkharness.spec._generated import TASKS
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, QUEUE_WORK, is_recorded, is_submit, nesting
from vkharness.spec.enums import VkRendering
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, block_name, reading
from vkharness.trace.submits import batches, cut
from vkharness.trace.templates import plain

MAX_STEPS = 1_000_000
"""The most steps that one trace may give, since command buffers that are submitted again multiply them."""

ANY = -1
"""Stands for a batch or a position that is not known."""


class StepKind(Enum):
    """The sort of work that a step does."""

    HOST = "host"
    """A call that is no command, or a host write."""
    BEGIN = "begin"
    """The start of one execution of a command buffer, which inherits no state."""
    STATE = "state"
    ACTION = "action"
    SYNC = "sync"
    """A barrier or an event command. Only its layout transitions matter between full barriers."""


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Names one execution of one block: submit call (0 for the host), batch, position in the batch, and call.

    `executed_by` is as in `Place`. It is (0, 0) for the commands of primary command buffers.
    """

    submit: int
    batch: int
    position: int
    call: int
    executed_by: tuple[int, int] = (0, 0)

    @property
    def execution(self) -> tuple[int, int, int]:
        """One execution of a command buffer: submit, batch, position."""
        return self.submit, self.batch, self.position

    def __str__(self) -> str:
        text = f"{self.submit}/{self.batch}.{self.position}/{self.call}"
        return f"{text}@{self.executed_by[0]}.{self.executed_by[1]}" if self.executed_by[0] else text


ADDED = 0
"""The block index of a command that a replay adds, which no finding names."""


@dataclass(frozen=True, slots=True)
class Step:
    """One block in one execution."""

    kind: StepKind
    identity: Identity
    block: Block
    inside: bool = False
    """Whether the stream cannot be cut just before this step, because a render pass instance or a query
    is open there."""
    in_pass: bool = False
    """Whether a render pass instance is open there, in which full barriers may not stand."""

    @property
    def name(self) -> str:
        """The name of the C function, or of the host's access."""
        return block_name(self.block)


def kind_of(name: str) -> StepKind:
    """The kind of a vkCmd* command, from the registry's `tasks`.

    A command that begins or ends something is an action, since it cannot be repeated like state: transform feedback
    writes counters.
    """
    tasks = TASKS.get(name, ("action",))
    if tasks == ("synchronization",):
        return StepKind.SYNC
    return StepKind.STATE if tasks == ("state",) and not nesting(name) else StepKind.ACTION


def flatten(blocks: list[Block]) -> list[Step]:
    """All steps of a trace in submission order. Calls that failed are left out.

    Batches that wait for timeline values come when these have been signaled, and what waits for an event that the host
    sets later comes after that. Secondary command buffers stand in place
    of the vkCmdExecuteCommands that runs them. Raises `UserError` when a submit names a command buffer that was never
    recorded.
    """
    recorded: dict[int, list[Call]] = {}
    steps: list[Step] = []
    order: BatchScheduler[_Part] = BatchScheduler()
    waits: HeldWaits[Step] = HeldWaits(blocks)
    for block in blocks:
        if isinstance(block, Call) and not block.succeeded:
            continue
        with reading(block):
            if _is_ours(block):
                steps.extend(_ours(block, joined=bool(steps) and steps[-1].block.index == block.index))
            else:
                steps.extend(_steps_of(block, recorded, order, waits))
        if len(steps) > MAX_STEPS:
            raise UserError(f"block {block.index}: the trace executes more than {MAX_STEPS} commands")
    return steps


def _is_ours(block: Block) -> bool:
    """Whether a block is a command that `screens` added, which runs where it stands."""
    return isinstance(block, Call) and is_recorded(block.name) and block.args["commandBuffer"] == OURS


def _ours(block: Block, joined: bool) -> Iterator[Step]:
    """The steps of a command that `screens` added. `joined`: the block before belongs to the same call, and nothing may
    come between."""
    where = Identity(block.index, 0, 0, block.index)
    yield Step(StepKind.BEGIN, where, block, inside=joined)
    yield Step(kind_of(block_name(block)), where, block, inside=joined)


def _steps_of(
    block: Block, recorded: dict[int, list[Call]], order: BatchScheduler[_Part], waits: HeldWaits[Step]
) -> Iterator[Step]:
    """The steps that one block adds. A command only joins its command buffer and adds none."""
    block = plain(block) if isinstance(block, Call) else block
    if isinstance(block, Call) and block.name == "vkBeginCommandBuffer":
        recorded[block.args["commandBuffer"]] = []
    elif isinstance(block, Call) and is_recorded(block.name):
        recorded.setdefault(block.args["commandBuffer"], []).append(block)
    elif isinstance(block, Call) and main_name(block.name) in QUEUE_WORK:
        unit = _Unit()
        parts = [_Part(block, index, each.command_buffers, unit) for index, each in enumerate(batches(block.args))]
        yield from _parts(order.submit(block, parts), recorded, order, waits)
    else:
        yield Step(StepKind.HOST, Identity(0, 0, 0, block.index), block)
        if isinstance(block, Call):
            waits.follow_host(block)
            yield from _parts(order.follow(block), recorded, order, waits)


def _parts(
    parts: Iterator[_Part], recorded: dict[int, list[Call]], order: BatchScheduler[_Part], waits: HeldWaits[Step]
) -> Iterator[Step]:
    """The steps of batches, and of those that wait no more for an event."""
    for part in parts:
        yield from waits.pass_on(part.queue, _batch(part, recorded))
        if waits.is_held(part.queue):
            order.stop(part.queue)
    while (queue := waits.ready()) is not None:
        yield from waits.pass_on(queue, waits.take(queue))
        if not waits.is_held(queue):
            yield from _parts(order.go_on(queue), recorded, order, waits)


def _batch(part: _Part, recorded: dict[int, list[Call]]) -> Iterator[Step]:
    submit, unit = part.submit, part.unit
    if not is_submit(submit.name):
        yield Step(StepKind.HOST, Identity(0, part.batch, 0, submit.index), cut(submit, part.batch, part.batch + 1))
    for position, command_buffer in enumerate(part.command_buffers):
        if command_buffer not in recorded:
            raise UserError(f"block {submit.index}: {submit.name} of command buffer {command_buffer}, not recorded")
        begin = Identity(submit.index, part.batch, position, submit.index)
        yield Step(StepKind.BEGIN, begin, submit, inside=unit.suspended, in_pass=unit.suspended)
        unit.begin()
        for call, executed_by in _inlined(recorded[command_buffer], recorded, submit.index):
            where = Identity(submit.index, part.batch, position, call.index, executed_by)
            yield Step(kind_of(call.name), where, call, inside=unit.depth > 0, in_pass=unit.in_pass)
            unit.follow(call)


@dataclass(frozen=True, slots=True)
class _Part:
    """One batch of a submit. `unit` is shared by all batches of the submit."""

    submit: Call
    batch: int
    command_buffers: tuple[int, ...]
    unit: _Unit

    @property
    def queue(self) -> int:
        """The queue that runs it."""
        return int(self.submit.args["queue"])


@dataclass(slots=True)
class _Unit:
    """Scopes that are open at a point of a submit: render pass instances and queries.

    Suspended rendering stays open until it is resumed and ended, also past the end of a command buffer. Nothing else
    may be recorded in between ("vkCmdBeginRendering").
    """

    depth: int = 0
    in_pass: bool = False
    suspending: bool = False
    """Whether the current rendering is suspended at its end."""
    suspended: bool = False

    def begin(self) -> None:
        """Follows the begin of another command buffer."""
        if not self.suspended:
            self.depth, self.in_pass = 0, False

    def follow(self, call: Call) -> None:
        """Follows one command."""
        flags = 0
        if main_name(call.name) == "vkCmdBeginRendering":
            flags = (call.args.get("pRenderingInfo") or {}).get("flags", 0)
        if call.name.startswith("vkCmdEndRendering") and self.suspending:
            self.suspending, self.suspended = False, True
            return
        resumes = self.suspended and bool(flags & VkRendering.RESUMING)
        self.suspending, self.suspended = self._suspends(call, flags), self.suspended and not resumes
        if not resumes:
            self.depth = max(0, self.depth + nesting(call.name))
        if call.name.startswith((BEGINS_RENDERING, ENDS_RENDERING)):
            self.in_pass = nesting(call.name) > 0

    def _suspends(self, call: Call, flags: int) -> bool:
        if call.name.startswith((BEGINS_RENDERING, ENDS_RENDERING)):
            return bool(flags & VkRendering.SUSPENDING)
        return self.suspending


def _inlined(calls: list[Call], recorded: dict[int, list[Call]], submit: int) -> Iterator[tuple[Call, tuple[int, int]]]:
    """The commands in the order in which they run, each with its `executed_by` (see `Identity`)."""
    for call in calls:
        if call.name != "vkCmdExecuteCommands":
            yield _with_inline_contents(call), (0, 0)
            continue
        for position, secondary in enumerate(call.args.get("pCommandBuffers") or []):
            if secondary not in recorded:
                raise UserError(f"block {call.index}: vkCmdExecuteCommands of {secondary}, not recorded at {submit}")
            # A secondary cannot execute others (without an extension that the tables lack): no recursion.
            for inner in recorded[secondary]:
                if inner.name != "vkCmdExecuteCommands":
                    here = {**inner.args, "commandBuffer": call.args["commandBuffer"]}
                    yield replace(inner, args=here), (call.index, position)


def _with_inline_contents(call: Call) -> Call:
    """The call with inline contents, so that commands of secondaries may stand in the render pass instance that it
    begins."""
    name, args = main_name(call.name), call.args
    changed: dict[str, Any] | None = None
    if (
        name in ("vkCmdBeginRenderPass", "vkCmdNextSubpass")
        and args.get("contents") == VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
    ):
        changed = {**args, "contents": 0}
    elif name in ("vkCmdBeginRenderPass2", "vkCmdNextSubpass2"):
        changed = {**args, "pSubpassBeginInfo": {**(args.get("pSubpassBeginInfo") or {}), "contents": 0}}
    elif (
        name == "vkCmdBeginRendering"
        and (args.get("pRenderingInfo") or {}).get("flags", 0) & VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
    ):
        info = args["pRenderingInfo"]
        changed = {
            **args,
            "pRenderingInfo": {**info, "flags": info["flags"] & ~VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS},
        }
    return call if changed is None else replace(call, args=changed)


def locate(steps: list[Step], place: Place, before: int | None = None) -> int:
    """The index of the step that a finding's place names.

    A place that was found while recording has no submit. It stands for the first execution, or with `before` for the
    last one ahead of that index. Raises `UserError` when the trace does not execute the call.
    """
    found = [index for index, step in enumerate(steps) if _is_at(step, place)]
    if before is not None:
        found = [index for index in found if index < before][-1:] or found
    if not found:
        raise UserError(f"the trace never executes call {place.call} ({place.command}) that the finding names")
    return found[0]


def _is_at(step: Step, place: Place) -> bool:
    if step.kind is StepKind.BEGIN or step.block.index != place.call:
        return False
    where = step.identity
    if place.executed_by not in (None, where.executed_by):
        return False
    if place.submit is None or step.kind is StepKind.HOST:
        return True
    return (
        where.submit == place.submit and place.batch in (ANY, where.batch) and place.position in (ANY, where.position)
    )

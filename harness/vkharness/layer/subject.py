"""A disagreement with one layer, and what of the stream leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from vkharness.findings import Finding
from vkharness.layer.barrier_scopes import BarrierScope, barrier_scopes
from vkharness.layer.parse import RECORD, SUBMIT, LayerMessage, plain_command
from vkharness.layer.stream import BEGIN, EXECUTE, Executed, Stream, is_numbered, is_sync_operation
from vkharness.layer.touches import Touch, common
from vkharness.spans import overlap
from vkharness.spec.command_classes import DRAWS, RENDERING, is_submit
from vkharness.trace.calls import Call
from vkharness.trace.effects import Dependency, PassBegin, SubpassDependency

OURS = "ours-only"
LAYER = "layer-only"
EVERYWHERE = 1 << 62


class ExecutedCommand(NamedTuple):
    """A command where it was recorded, or one execution of it."""

    execution: int
    """Number of the executed command buffer; 0 while recording."""
    place: Executed | None
    """Of the executed command buffer; None while recording."""
    call: Call


@dataclass(frozen=True)
class Subject:
    """A key that one judge has and the other lacks, with everything that both said in the same API call.

    "The second command" is the one whose access is reported, "the first" is the earlier one that it conflicts with.
    `side` is `ours-only` or `layer-only`; `key` is (hazard, command, prior command, access, prior access); `kind` is
    `record` or `submit`; `call` is the block index of the API call in which it was said, None when nobody knows it.
    """

    side: str
    key: tuple[str, str, str, str, str]
    kind: str
    call: int | None
    finding: Finding | None
    message: LayerMessage | None
    stream: Stream
    findings: tuple[Finding, ...] = ()
    messages: tuple[LayerMessage, ...] = ()
    said_before: tuple[Finding, ...] = ()
    """The same that we said in an earlier API call, or of another command buffer of the same submit."""
    all_findings: tuple[Finding, ...] = field(default=(), repr=False)
    all_messages: tuple[LayerMessage, ...] = field(default=(), repr=False)
    """All that both judges said of the stream."""
    renamed: Callable[[str, str], str] = lambda command, access: access
    """The layer's name for our access of a command."""

    @property
    def line(self) -> str:
        """The disagreement in words."""
        hazard, command, prior_command, access, prior_access = self.key
        at = "" if self.call is None else f" (block {self.call})"
        first = f"{prior_command or '?'} {prior_access or '?'}"
        return f"{self.side} at {self.kind}{at}: {hazard} {command} {access or '?'} after {first}"

    @cached_property
    def of_command(self) -> tuple[Finding, ...]:
        """All that we said of the finding's own command, whenever we said it; for a message, of all commands so
        called."""
        if self.finding is not None:
            return tuple(each for each in self.all_findings if each.place.call == self.finding.place.call)
        return tuple(each for each in self.all_findings if plain_command(each.place.command) == self.key[1])

    @property
    def limit(self) -> int:
        """Block index of the call in which it was said; beyond everything when that is not known."""
        return EVERYWHERE if self.call is None else self.call

    @cached_property
    def command(self) -> Call | None:
        """The vkCmd* call of the second access, None when it cannot be told."""
        stream = self.stream
        said = self._said()
        return said if said is not None and "commandBuffer" in said.args and stream.at(said.index) else None

    def _said(self) -> Call | None:
        if self.finding is not None:
            return self.stream.at(self.finding.place.call)
        message, submit = self.message, self.stream.at(self.call)
        if message is None or submit is None or message.kind != SUBMIT:
            return submit
        for number, batch in enumerate(self.stream.executed(submit)):
            if message.batch not in (None, number):
                continue
            if message.entry is not None and message.entry < len(batch) and message.recorded_seq_no:
                commands = self.stream.recorded(batch[message.entry], submit.index)
                numbered = [call for call in commands if is_numbered(call)][message.recorded_seq_no - 1 :]
                if numbered and numbered[0].name == message.command:
                    return numbered[0]
        return None

    @cached_property
    def first(self) -> Call | None:
        """The call of the first access, where we named it."""
        return self.stream.at(self.finding.prior.call) if self.finding is not None else None

    @cached_property
    def occurrences(self) -> list[list[ExecutedCommand]]:
        """The candidates for the second command. Each list holds the commands before a candidate, and it as the last
        one: as recorded or, at submit, as executed so far."""
        call = self.stream.at(self.call)
        if call is None or not is_submit(call.name):
            own, (before, mine) = self.command, self._executing
            if own is not None and not before:
                before = self.stream.recorded(own.args["commandBuffer"], own.index + 1)
                mine = range(len(before))
            alone = [ExecutedCommand(0, None, each) for each in before]
            return [alone[: at + 1] for at in mine if self._may_be_second(alone[at])]
        steps = [
            ExecutedCommand(number, place, each)
            for number, place, commands in self.stream.executions(self.call or 0)
            for each in commands
        ]
        return [steps[: at + 1] for at, step in enumerate(steps) if self._may_be_second(step)]

    def _may_be_second(self, step: ExecutedCommand) -> bool:
        if step.place is not None and not self.is_own(step.place):
            return False
        own = self.command
        return step.call is own if own is not None else plain_command(step.call.name) == self.key[1]

    def may_be_first(self, step: ExecutedCommand) -> bool:
        """True when a step can be that of the first access."""
        if self.finding is not None:
            prior = self.finding.prior
            return step.call.index == prior.call and step.place in (None, (prior.submit, prior.batch, prior.position))
        number = self.message.seq_no if self.message is not None else None
        named = plain_command(step.call.name) == self.key[2]
        return named and (not number or number in self.stream.numbers_of(step.call.index))

    def at_issue(self, touch: Touch) -> Touch:
        """The part of a touch of the second command that the judge can mean: by its access, resource and bytes."""
        resource, told = 0, tuple[tuple[int, int], ...]()
        if self.finding is not None:
            resource, told = self.finding.through or self.finding.resource, self.finding.ranges
        elif self.message is not None:
            resource = self.stream.viewed(self.message.resource)
            told = (self.message.bytes,) if self.message.bytes else ()
        if self.renamed(self.key[1], touch.access) != self.key[3] or resource not in (0, touch.resource):
            return replace(touch, spans=())
        base = self.stream.address_of(touch.resource).offset
        spans = overlap(touch.spans, [(base + at, base + at + size) for at, size in told]) if told else touch.spans
        return replace(touch, spans=tuple(spans))

    @cached_property
    def steps(self) -> list[ExecutedCommand]:
        """Commands before the second access, up to the last that it can be: of its command buffer, or at submit of
        every execution so far."""
        return self.occurrences[-1][:-1] if self.command is not None and self.occurrences else []

    @cached_property
    def _executing(self) -> tuple[list[Call], Sequence[int]]:
        """Where a vkCmdExecuteCommands is recorded: the commands of the primary, and then those that it runs; with the
        positions of those that the judge can mean."""
        call = self.stream.at(self.call)
        if call is None or call.name != EXECUTE:
            return [], ()
        entry = self.message.entry if self.message is not None else None
        if self.finding is not None and self.finding.place.executed_by is not None:
            entry = self.finding.place.executed_by[1]
        calls, mine = list(self.stream.recorded(call.args["commandBuffer"], call.index)), list[int]()
        for at, buffer in enumerate(call.args["pCommandBuffers"] or ()):
            commands = self.stream.recorded(buffer, call.index)
            mine += range(len(calls), len(calls) + len(commands)) if entry in (None, at) else ()
            calls += commands
        return calls, mine

    @cached_property
    def before(self) -> list[Call]:
        """The calls of `steps`."""
        return [step.call for step in self.steps]

    @cached_property
    def position(self) -> int:
        """Position in `steps` of the latest step that can be the first access, -1 when there is none."""
        for position in range(len(self.steps) - 1, -1, -1):
            step = self.steps[position]
            known = self.finding is not None or (self.message is not None and self.message.seq_no)
            if known and self.may_be_first(step) and (self.finding or not (step.place and self.is_own(step.place))):
                return position
        return -1

    @property
    def window(self) -> list[Call]:
        """The commands between the two accesses, as recorded or, at submit, as executed; both excluded. When the first
        access cannot be told: all commands before the second one."""
        return self.before[self.position + 1 :]

    @cached_property
    def seconds(self) -> list[tuple[Call, list[Call]]]:
        """The candidates for the second command, each with the commands before it."""
        return [(steps[-1].call, [step.call for step in steps[:-1]]) for steps in self.occurrences]

    def since_first(self, second: Call, before: list[Call]) -> list[Call]:
        """The commands after the last one so called as the first access that touches what the second command does."""
        mine = self.stream.touches(second)
        for position in range(len(before) - 1, -1, -1):
            call = before[position]
            if plain_command(call.name) == self.key[2] and common(self.stream.touches(call), mine):
                return before[position + 1 :]
        return before

    @property
    def barriers(self) -> list[BarrierScope]:
        """Barriers between the two accesses; when the second one cannot be told, all of the stream before."""
        if self.command is None:
            return scopes_of(call for call in self.stream.calls if call.index < (self.call or 0))
        return scopes_of(self.window)

    @property
    def subpass_dependencies(self) -> list[Dependency]:
        """Those of the render pass instances that begin between the two accesses."""
        return [each.dependency for call in self.window for each in dependencies_of(call, self.stream)]

    @property
    def command_buffer(self) -> list[Call]:
        """The commands of the command buffer that holds the second one, as it was when the layer spoke."""
        own = self.command
        if own is None:
            return []
        before = self.call if self.kind == SUBMIT and self.call is not None else own.index + 1
        return self.stream.recorded(own.args["commandBuffer"], before)

    @property
    def segment(self) -> list[Call]:
        """The piece of that command buffer between two synchronization commands that holds the second command, the
        closing one included."""
        piece: list[Call] = []
        for call in self.command_buffer:
            piece.append(call)
            if is_sync_operation(call):
                if self.command in piece:
                    return piece
                piece = []
        return piece

    def is_own(self, place: Executed) -> bool:
        """True when the second access belongs to that execution. (A message does not name its batch.)"""
        if self.finding is not None:
            own = self.finding.place
            return place == (own.submit, own.batch, own.position)
        said = self.message
        if said is None or place[0] != self.call:
            return False
        return said.batch in (None, place[1]) and said.entry in (None, place[2])

    @property
    def touches_rendering(self) -> bool:
        """One of the two accesses is made by a command that renders."""
        return any(name.startswith((*RENDERING, *DRAWS)) for name in self.key[1:3])

    def found_while_recorded(self) -> Iterator[Subject]:
        """As ours alone: the findings, made while something was recorded, of which a message at submit may be."""
        for found in self.all_findings:
            hazard, command, prior_command, access, prior_access = found.key
            key = (hazard, plain_command(command), plain_command(prior_command))
            accesses = (self.renamed(command, access), self.renamed(prior_command, prior_access))
            if found.place.submit is not None or (*key, *accesses) != self.key:
                continue
            alone = replace(self, side=OURS, kind=RECORD, call=found.place.call, finding=found, message=None)
            if any(steps[-1].call.index == found.place.call for steps in self.occurrences):
                yield alone

    def resources(self, writes: bool | None = None) -> set[int]:
        """The resources at issue: that of our finding, else all that the second command touches (or only those that it
        writes, or reads)."""
        if self.finding is not None:
            return {self.finding.resource}
        touches = self.stream.touches(self.command) if self.command is not None else ()
        return {touch.resource for touch in touches if writes in (None, touch.write)}


def scopes_of(calls: Iterable[Call]) -> list[BarrierScope]:
    """The barriers of these commands."""
    return [scope for call in calls for scope in barrier_scopes(call)]


def dependencies_of(call: Call, stream: Stream) -> list[SubpassDependency]:
    """Those of the render pass that a command begins, the implicit ones included."""
    return [each for begin in stream.facts(call).effects if isinstance(begin, PassBegin) for each in begin.dependencies]


def recordings_of(stream: Stream) -> Iterator[list[Call]]:
    """The commands of each command buffer, submitted or not, as it was recorded last."""
    for buffer in dict.fromkeys(call.args["commandBuffer"] for call in stream.calls if call.name == BEGIN):
        if commands := stream.recorded(buffer, EVERYWHERE):
            yield commands

"""Runs the effects of commands over a context, in order: the same for a recording and for a queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from vkharness.findings import Finding, Place
from vkharness.spans import merge, subtract
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.barrier import Scope, expand, to_the_host
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard, RangeScope
from vkharness.syncval.event import Events
from vkharness.syncval.ownership import OwnershipRole, half_of, of_half, written_by
from vkharness.syncval.pass_execution import InstanceExecution
from vkharness.syncval.places import PlacedBatch
from vkharness.syncval.query import QueryOperations
from vkharness.syncval.sparse_bindings import SparseBindings
from vkharness.trace.effects import (
    Access,
    AttachmentUsers,
    Barrier,
    Command,
    Dependency,
    Execute,
    PassBegin,
    PassEnd,
    RenderingBegin,
    ResetEvent,
    SetEvent,
    SubpassBegin,
    WaitEvents,
)
from vkharness.trace.query_effects import UseQueries
from vkharness.trace.sparse_effects import BindingUse
from vkharness.trace.usage_effects import InvalidUsage


@dataclass(slots=True)
class MetSoFar:
    """Hazards and findings of the command that is being executed, so far; `number` is its place number."""

    number: int
    hazards: list[DetectedHazard]
    findings: list[Finding]


class Result(NamedTuple):
    """Hazards on memory that one command met, and findings of the checks of events and queries."""

    number: int
    """Its place number."""
    place: Place
    hazards: list[DetectedHazard]
    findings: list[Finding]


class Execution:
    """One stream of commands over one context: a recording, or everything that one queue executes."""

    batch: PlacedBatch
    """The batch or recording that it executes; to be set before the first command of each."""

    def __init__(
        self,
        context: Context,
        events: Events | None = None,
        queries: QueryOperations | None = None,
        bindings: SparseBindings | None = None,
    ) -> None:
        """`events`, `queries` and `bindings` are those of the device; a recording has events of its own, and knows of
        no queries and bindings."""
        self.context = context
        self.events = events or Events(context, recording=True)
        self.queries, self._bindings = queries, bindings
        self.family = VK_QUEUE_FAMILY_IGNORED
        """The queue's; unknown while recording, where halves of ownership transfers count as plain barriers."""
        self.transfers = False
        """Whether it met half of an ownership transfer."""
        self.instance: InstanceExecution | None = None
        """The render pass instance that goes on."""

    def run_all(
        self, commands: Sequence[Command], queue_flags: int, begin: int = 0, end: int | None = None
    ) -> list[Result]:
        """Runs commands of `batch` from one place to another, one after the other. Answers with those that met
        something."""
        results: list[Result] = []
        at, end = begin, len(commands) if end is None else end
        while at < end:
            at, met = self.run_ahead(commands, at, end, queue_flags)
            results += met
            if not met and at < end:
                results += self.run(commands[at], queue_flags)
                at += 1
        return results

    def run_ahead(
        self, commands: Sequence[Command], begin: int, end: int, queue_flags: int
    ) -> tuple[int, list[Result]]:
        """Runs commands of `batch` from one place on, up to another at most, for as long as that can be done at once
        and no hazard is met. Answers with the place of the next one, and with those that met something."""
        return begin, []

    def run(self, command: Command, queue_flags: int) -> list[Result]:
        """Checks each effect of the next command of `batch` against what came before it, then applies it; secondary
        command buffers run in place. Answers with those that met something."""
        place = self.batch.next
        self.batch.next += 1
        if command.sure is not None:
            command = command.certain
        apart = command.plan.apart
        if apart is None:
            apart = if_apart(command)
        if apart is False:
            return self._mixed(command, place, queue_flags)
        hazards: list[DetectedHazard] = []
        for access in apart:
            hazards += self.context.apply(access, place)
        return [Result(place, self._place(place), hazards, [])] if hazards else []

    def _mixed(self, command: Command, place: int, queue_flags: int) -> list[Result]:
        """Runs a command that does more than access memory."""
        results: list[Result] = []
        met = MetSoFar(place, [], [])
        accesses: list[Access] = []
        for effect in command.effects:
            if isinstance(effect, Access):
                accesses.append(effect)
                continue
            if accesses:
                met.hazards += self._access(accesses, place)
                accesses = []
            if isinstance(effect, Execute):
                results += self._secondaries(effect, place, queue_flags)
            else:
                self._synchronize(effect, met, queue_flags)
        if accesses:
            met.hazards += self._access(accesses, place)
        if met.hazards or met.findings:
            results.append(Result(place, self._place(place), met.hazards, met.findings))
        return results

    def _access(self, accesses: list[Access], place: int) -> list[DetectedHazard]:
        """Accesses of one command do not conflict with one another: where they may meet, all are checked before any is
        applied; reads of what it writes are kept beside the write. Those of most commands are apart, and need one
        pass."""
        context = self.context
        hazards: list[DetectedHazard] = []
        if _are_apart(accesses):
            for access in accesses:
                hazards += context.apply(access, place)
            return hazards
        for access in accesses:
            hazards += context.through_aliases(access)
        for access in accesses:
            hazards += context.check(access)
        for access in sorted(accesses, key=_writes):
            context.apply_checked(access, place)
        for read in _reads_beside(accesses):
            context.apply_checked(read, place, same_command=True)
        return hazards

    def _synchronize(self, effect: object, result: MetSoFar, queue_flags: int) -> None:
        number = result.number
        if self.queries is not None:
            if isinstance(effect, UseQueries):
                result.findings += self.queries.use(effect, self._place(number), queue_flags)
                return
            self.queries.close(self.batch.queue)
        match effect:
            case Barrier():
                result.hazards += self._barrier(effect, number, queue_flags)
                self.events.order.after_barrier(effect, queue_flags)
            case SetEvent():
                result.findings += self.events.set(effect, self._place(number), queue_flags)
            case ResetEvent():
                result.findings += self.events.reset(effect, self._place(number), queue_flags)
            case WaitEvents():
                ranges = (each for barrier in effect.barriers for each in barrier.ranges)
                self.transfers |= any(half_of(each, self.family) is not OwnershipRole.NONE for each in ranges)
                hazards, findings = self.events.wait(effect, number, queue_flags, self.family)
                result.hazards += hazards
                result.findings += findings
            case BindingUse() if self._bindings is not None:
                result.findings += self._bindings.use(effect, number)
            case InvalidUsage():
                result.findings.append(_misuse(effect, self._place(number)))
            case RenderingBegin():
                self.context.begin_instance(of_render_pass=False)
            case PassBegin():
                self.instance = InstanceExecution(self.context, effect, queue_flags)
            case SubpassBegin() if self.instance is not None:
                result.hazards += self.instance.begin(effect, number)
            case AttachmentUsers() if self.instance is not None:
                self.instance.operate(effect)
            case PassEnd() if self.instance is not None:
                result.hazards += self.instance.end(effect, number)
                self.instance = None

    def _place(self, number: int) -> Place:
        return self.context.places.place(number)

    def _barrier(self, barrier: Barrier, place: int, queue_flags: int) -> list[DetectedHazard]:
        """Makes the transitions of a barrier, and orders what is in its ranges, and in their memory under other names.

        Rule: rules.md#a-barrier-for-one-alias-contains-the-overlap.
        """
        context = self.context
        hazards: list[DetectedHazard] = []
        ranges: list[RangeScope] = []
        everything = [_scope_of(barrier, each, queue_flags) for each in barrier.globals]
        for each in barrier.ranges:
            scope = _scope_of(barrier, each.dependency, queue_flags)
            half = OwnershipRole.NONE
            if each.src_family != each.dst_family:
                half = half_of(each, self.family)
                if half is OwnershipRole.NONE:
                    everything.append(scope._replace(src_accesses=0, dst_accesses=0))
                else:
                    self.transfers, scope = True, of_half(scope, each, self.family)
            everything += to_the_host((scope,))
            access_kind = written_by(each, self.family)
            sources = ((context.viewer, (scope,)),)
            if access_kind is not None:
                hazards += context.check_transition(each.space, each.spans, sources, each.resource, access_kind)
            moved = access_kind is not None
            ranges += [RangeScope(each.space, span, scope, moved, access_kind or 0) for span in each.spans]
            for alias in each.aliases:
                if access_kind is not None:
                    met = context.check_transition(alias.space, alias.spans, sources, alias.resource, access_kind)
                    hazards += context.report_alias_hazards(alias, each.resource, list(met))
                ranges += [RangeScope(alias.space, span, scope, False) for span in alias.spans]
        context.barrier(tuple(everything), ranges, place)
        return hazards

    def _secondaries(self, effect: Execute, place: int, queue_flags: int) -> list[Result]:
        """Runs secondary command buffers, in order, where the primary executes them.

        Rules: rules.md#secondaries-stand-where-they-are-executed, rules.md#barriers-cross-command-buffer-levels.
        """
        results: list[Result] = []
        for position, (buffer, commands) in enumerate(effect.buffers):
            self.batch.execute(buffer, position, commands, place)
            results += self.run_all(commands, queue_flags)
        self.batch.resume(place)
        return results


def _scope_of(barrier: Barrier, dependency: Dependency, queue_flags: int) -> Scope:
    """The scopes of one dependency of a barrier. Rule: rules.md#view-local-dependencies-order-views."""
    scope = expand(dependency, queue_flags, barrier.by_region)
    return scope._replace(local=True) if barrier.by_view else scope


def _misuse(effect: InvalidUsage, place: Place) -> Finding:
    """A rule of valid usage that is broken, as advice. Rules: rules.md#preserved-attachments-are-not-used,
    rules.md#unbound-ranges-have-no-memory."""
    return Finding(effect.hazard, "", "", place, effect.prior, effect.resource, effect.resource_type)


def if_apart(command: Command) -> tuple[Access, ...] | Literal[False]:
    """The effects of a command, where all are accesses and no two of these can touch one address; else False. It is
    found out once: commands are judged while they are recorded, and each time that they are executed."""
    apart = command.plan.apart
    if apart is None:
        accesses = tuple([effect for effect in command.effects if isinstance(effect, Access)])
        apart = len(accesses) == len(command.effects) and _are_apart(accesses) and accesses
        command.plan.apart = apart
    return apart


def _are_apart(accesses: Sequence[Access]) -> bool:
    """Whether no two of the accesses can touch one address.

    That is so when they lie in different spaces or in stretches that do not overlap, and none has aliases.
    """
    if len(accesses) == 1:
        return not accesses[0].aliases
    spaces = set()
    for access in accesses:
        if access.aliases:
            return False
        spaces.add(access.space)
    if len(spaces) == len(accesses):
        return True
    stretches = []
    for access in accesses:
        spans = access.spans
        if len(spans) == 1:
            stretches.append((access.space, *spans[0]))
        elif spans:
            stretches.append((access.space, min(spans)[0], max(end for _, end in spans)))
    stretches.sort()
    return all(one[0] != other[0] or one[2] <= other[1] for one, other in pairwise(stretches))


def _reads_beside(accesses: list[Access]) -> Iterator[Access]:
    """The reads of a command at addresses that it writes in another stage. In one stage the write stands for both."""
    for read in accesses:
        if _writes(read):
            continue
        spans = merge(list(read.spans))
        left, stage = spans, ACCESS_KINDS[read.access_kind].stage
        for write in accesses:
            if _writes(write) and write.space == read.space and ACCESS_KINDS[write.access_kind].stage != stage:
                left = subtract(left, merge(list(write.spans)))
        if left != spans:
            yield replace(read, spans=tuple(subtract(spans, left)))


def _writes(access: Access) -> bool:
    return access.atomic or ACCESS_KINDS[access.access_kind].write

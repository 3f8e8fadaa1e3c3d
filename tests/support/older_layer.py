"""What the Khronos layer 1.3.239 says about a trace, predicted from syncval: its rules, its reports, its submits.

Random streams compare this prediction with the layer's messages, and nothing is left to explain: the layer's own rules
(`older_rules`) and the way in which it reports and submits are worked out here, from its sources, over the states and
barriers of syncval. A mistake in those shows as a wrong prediction. From layers/synchronization_validation.cpp of
sdk-1.3.239.0: UpdateMemoryAccessState, SyncOpBarriers, ValidateFirstUse, DetectFirstUseHazard, UpdateFirst, Resolve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from harness.commands.interpret import Interpreter
from harness.findings import Finding, Hazard, Place
from harness.spans import Span, SpanMap
from harness.spec.scopes import BY_NAME, SYNC
from harness.syncval.access import AccessRequest, after_use
from harness.syncval.barrier import Scope
from harness.syncval.context import Context, DetectedHazard, RangeEntry, RangePiece, RangeScope
from harness.syncval.evidence import Description, Reporter
from harness.syncval.execution import Execution
from harness.syncval.queue import Batch
from harness.syncval.scope import expand
from harness.syncval.state import LAYOUT_TRANSITION, NO_GUARD, RECORDING, State, View, intern
from harness.syncval.validator import Validator
from harness.trace.calls import Block, Call
from harness.trace.effects import Access, Barrier, Command, CommandBufferReset, Recorded, StreamEvent
from tests.support.older_rules import RULES, Older, OlderContext, lowest

STORAGE_WRITE = BY_NAME["SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"].index
FOREVER = 1 << 62


class First(NamedTuple):
    """One of the first accesses of a range in a command buffer: reads, up to the first write."""

    call: int
    sync: int
    place: Place
    src_stages: int = 0
    src_accesses: int = 0


class Firsts(NamedTuple):
    """The first accesses of a range; `stages` are those of its reads, also of the ones ordered behind others."""

    accesses: tuple[First, ...]
    stages: int

    def with_access(self, access: First, ordered: int) -> Firsts:
        """After one more access, with the stages that barriers ordered after the range's reads (UpdateFirst)."""
        if self.accesses and SYNC[self.accesses[-1].sync].write:
            return self
        stage = 0 if SYNC[access.sync].write else SYNC[access.sync].stage
        if stage & self.stages:
            return self
        accesses = self.accesses if ordered & stage else (*self.accesses, access)
        return Firsts(accesses, self.stages | stage)


class LayerContext(OlderContext):
    """Tracks a command buffer, or a device with one queue, as the layer does; a command buffer's first accesses too."""

    def __init__(self, queue: int, images: set[int]) -> None:
        super().__init__(queue, frozenset(RULES))
        self.firsts: dict[int, SpanMap[Firsts]] = {}
        self._images = images

    def apply(self, access: Access, place: Place, beside: bool = False) -> list[DetectedHazard]:
        """Ends of accesses beyond everything tracked are lost (UpdateMemoryAccessState)."""
        hits: list[DetectedHazard] = []
        for begin, end in access.spans:
            kept = (begin, self._kept(access.space, begin, end))
            self._first(access.space, kept, First(place.call, access.sync, place))
            hits += super().apply(replace(access, spans=(kept,)), place)
        return hits

    def _kept(self, space: int, begin: int, end: int) -> int:
        held = self._maps.get(space)
        pieces = held.pieces(begin, end) if held is not None else []
        if not pieces or held is None:
            return end
        image = space in self._images
        later = any(len(other) for at, other in self._maps.items() if at > space and (at in self._images) == image)
        after = later or bool(held.pieces(pieces[-1][1], FOREVER))
        return end if after else min(end, pieces[-1][1])

    def _first(self, space: int, span: Span, access: First) -> None:
        pieces = self._maps[space].pieces(*span) if space in self._maps else []
        ordered = SpanMap[int]()
        for begin, end, entry in pieces:
            ordered.assign(begin, end, entry.slot.find().state.view(self.viewer).ordered)
        firsts = self.firsts.setdefault(space, SpanMap())
        at = span[0]
        parts: list[tuple[int, int, int]] = []
        for begin, end, stages in ordered.pieces(*span):
            parts += [(at, begin, 0), (begin, end, stages)]
            at = end
        for begin, end, stages in [*parts, (at, span[1], 0)]:

            def change(_begin: int, _end: int, known: Firsts | None, stages: int = stages) -> Firsts:
                return (known or Firsts((), 0)).with_access(access, stages)

            if begin < end:
                firsts.update(begin, end, change)

    def _split(self, space: int, begin: int, end: int, cover: object) -> Iterator[RangePiece]:
        kept = self._kept(space, begin, end)
        return super()._split(space, begin, kept, cover)  # type: ignore[arg-type]

    def _settle(self, piece: RangePiece, everything: tuple[Scope, ...], place: Place) -> None:
        if piece.cover.moved:
            own = piece.cover.scopes
            stages = accesses = 0
            for scope in own:
                stages, accesses = stages | scope.src_stages, accesses | scope.src_accesses
            self._first(piece.space, piece.span, First(place.call, LAYOUT_TRANSITION, place, stages, accesses))
        super()._settle(piece, everything, place)

    # -- executing a command buffer ---------------------------------------------------------------------------------

    def first_use(self, recorded: LayerContext, begin: int, end: int) -> tuple[DetectedHazard, First] | None:
        """The one hazard of a piece of a command buffer, commands in [begin, end) (DetectFirstUseHazard). What images
        say replaces what buffers say, also when images say nothing."""
        found: tuple[DetectedHazard, First] | None = None
        for images in (False, True):
            for piece, firsts in recorded.ranges_in(images, begin, end):
                found = self._first_use_of(*piece, firsts, (begin, end))
                if found is not None:
                    break
        return found

    def ranges_in(self, images: bool, begin: int, end: int) -> Iterator[tuple[tuple[int, int, int], Firsts]]:
        """((space, begin, end) of a range, its first accesses) by address, where they surround or meet these calls."""
        for space in sorted(space for space in self.firsts if (space in self._images) == images):
            for low, high, firsts in self.firsts[space]:
                if firsts.accesses and firsts.accesses[0].call < end and begin <= firsts.accesses[-1].call:
                    yield (space, low, high), firsts

    def _first_use_of(
        self, space: int, low: int, high: int, firsts: Firsts, calls: tuple[int, int]
    ) -> tuple[DetectedHazard, First] | None:
        held = self._maps.get(space)
        for begin, end, entry in held.pieces(low, high) if held is not None else ():
            found = self._detect(self._live(entry), firsts, calls, (begin, end), space)
            if found is not None:
                return found
        return None

    def _detect(
        self, entry: RangeEntry, firsts: Firsts, calls: tuple[int, int], span: Span, space: int
    ) -> tuple[DetectedHazard, First] | None:
        """Only the first read is tested; the verdict on the write replaces the one on it."""
        state = entry.slot.find().state
        first, last = firsts.accesses[0], firsts.accesses[-1]
        found: tuple[DetectedHazard, First] | None = None
        if not SYNC[first.sync].write and calls[0] <= first.call < calls[1]:
            outcome = after_use(state, AccessRequest(first.sync, self.queue, self.viewer))
            if outcome.hazard is not None and entry.write is not None and state.write is not None:
                prior_sync = state.write.sync
                hit = DetectedHazard(
                    Hazard.READ_AFTER_WRITE, span, first.sync, entry.write, prior_sync, state, space, self.viewer
                )
                found = (hit, first)
        if SYNC[last.sync].write and calls[0] <= last.call < calls[1]:
            write = _write_hit(entry, state.view(self.viewer), last, firsts.stages, span, space)
            found = (write, last) if write is not None else None
        return found

    def resolve(self, recorded: LayerContext, execution: dict[str, int | None]) -> None:
        """Takes over the final state of a command buffer; reads of what this queue wrote are forgotten (Resolve)."""

        def moved(place: Place | None) -> Place | None:
            return None if place is None else replace(place, **execution)  # type: ignore[arg-type]

        for space, theirs in recorded._maps.items():
            mine = self._maps.setdefault(space, SpanMap())
            for begin, end, entry in theirs:
                state = entry.slot.find().state
                reads = tuple(moved(read) for read in entry.reads)
                taken = RangeEntry(entry.slot, moved(entry.write), reads)  # type: ignore[arg-type]

                def change(
                    _b: int, _e: int, known: RangeEntry | None, taken: RangeEntry = taken, state: State = state
                ) -> RangeEntry:
                    live = self._live(known) if known is not None else None
                    return self._resolved(live, taken, state)

                mine.update(begin, end, change)

    def _resolved(self, known: RangeEntry | None, taken: RangeEntry, state: State) -> RangeEntry:
        if known is None:
            return taken._replace(slot=self._slot(self._own(state)))
        mine = known.slot.find().state
        if state.write is not None:
            return taken._replace(slot=self._slot(self._own(state)))
        if mine.write is not None:
            return known._replace(slot=self._slot(mine))
        own = self._own(state)
        stages = {read.stage for read in own.reads}
        mine_view, own_view = mine.view(self.viewer), own.view(self.viewer)
        older = list(zip(mine.reads, mine_view.reads, known.reads, strict=True))
        newer = {each[0].stage: each for each in zip(own.reads, own_view.reads, taken.reads, strict=True)}
        kept = [newer.pop(each[0].stage) if each[0].stage in stages else each for each in older]
        kept += list(newer.values())
        guards = tuple(guard for _, guard, _ in kept)
        view = View(self.viewer, NO_GUARD, guards, mine_view.ordered | own_view.ordered)
        after = intern(None, tuple(read for read, _, _ in kept), (view,))
        return RangeEntry(self._slot(after), None, tuple(at for _, _, at in kept))

    def _own(self, state: State) -> State:
        queue, viewer = self.queue, self.viewer
        write = state.write._replace(queue=queue, viewer=viewer) if state.write is not None else None
        reads = tuple(read._replace(queue=queue, viewer=viewer) for read in state.reads)
        return intern(write, reads, (state.view(RECORDING)._replace(viewer=viewer),))


def _write_hit(
    entry: RangeEntry, view: View, last: First, stages: int, span: Span, space: int
) -> DetectedHazard | None:
    """A command buffer's first write against the queue. Reads before it in the command buffer stand for those of the
    same stages before, and for the write if that was the same kind of access."""
    state = entry.slot.find().state
    transition = last.sync == LAYOUT_TRANSITION
    src = last.src_stages | stages
    for position, (read, guard) in enumerate(zip(state.reads, view.reads, strict=True)):
        if transition:
            hazard = not src & (read.stage | guard.barriers)
        else:
            hazard = not (read.stage & stages) and not SYNC[last.sync].stage & guard.barriers
        if hazard:
            return DetectedHazard(
                Hazard.WRITE_AFTER_READ, span, last.sync, entry.reads[position], read.sync, state, space, view.viewer
            )
    write = state.write
    if state.reads or write is None or entry.write is None:
        return None
    if transition:
        accesses = last.src_accesses
        safe = write.sync == LAYOUT_TRANSITION or accesses >> write.sync & 1
        safe = safe or (view.write.chain & src and view.write.barriers & accesses)
    else:
        safe = (stages and write.sync == last.sync) or view.write.barriers >> last.sync & 1
    if safe:
        return None
    return DetectedHazard(Hazard.WRITE_AFTER_WRITE, span, last.sync, entry.write, write.sync, state, space, view.viewer)


class LayerExecution(Execution):
    """Runs the commands of a recording: tests accesses one by one, and of each the lowest address."""

    def _access(self, accesses: list[Access], place: Place) -> list[DetectedHazard]:
        hits = [hit for access in accesses for hit in _spoken(self.context.check(access))]
        for access in accesses:
            self.context.apply(access, place)
        return hits

    def _barrier(self, barrier: Barrier, place: Place, queue_flags: int) -> list[DetectedHazard]:
        hits: list[DetectedHazard] = []
        for each in barrier.ranges:
            scope = expand(each.dependency, queue_flags)
            if each.transition:
                hits += _spoken(self.context.check_transition(each.space, each.spans, (scope,), each.resource))
        _apply(self.context, barrier, place, queue_flags)
        return hits


class LayerValidator(Validator):
    """Reports as the layer does: while recording the lowest address of each region, at submit one hazard a piece."""

    def __init__(self) -> None:
        self.images: set[int] = set()
        super().__init__(
            lambda *_: Description("", (), ()), lambda queue: LayerContext(queue, self.images), LayerExecution
        )
        self._held: dict[int, list[Command]] = {}
        self._shown = Reporter(lambda *_: Description("", (), ()))

    def consume(self, stream_event: StreamEvent) -> list[Finding]:
        if isinstance(stream_event, CommandBufferReset):
            self._held.pop(stream_event.command_buffer, None)
        return super().consume(stream_event)

    def _recorded(self, stream_event: Recorded) -> Iterator[Finding]:
        self._held.setdefault(stream_event.command_buffer, []).append(stream_event.command)
        yield from super()._recorded(stream_event)

    def _judged(self, batches: Iterator[Batch]) -> Iterator[Finding]:
        context = self._context
        assert isinstance(context, LayerContext)
        for batch in batches:
            submit, index = batch.tag
            for position, (buffer, _) in enumerate(batch.submission.buffers):
                execution = {"submit": submit, "batch": index, "position": position, "queue": batch.submit.queue}
                recording = self._recordings.get(buffer)
                if recording is not None:
                    recorded = recording.execution.context
                    assert isinstance(recorded, LayerContext)
                    commands = self._held[buffer]
                    yield from self._executed(context, recorded, commands, execution, batch.submit.queue_flags)
                    context.resolve(recorded, execution)  # type: ignore[arg-type]

    def _executed(
        self,
        context: LayerContext,
        recorded: LayerContext,
        commands: list[Command],
        execution: dict[str, int],
        queue_flags: int,
    ) -> Iterator[Finding]:
        begin = 0
        for command in [*commands, None]:
            barriers = [each for each in command.effects if isinstance(each, Barrier)] if command is not None else []
            if command is not None and not barriers:
                continue
            end = command.call + 1 if command is not None else FOREVER
            found = context.first_use(recorded, begin, end)
            if found is not None:
                hit, first = found
                place = replace(first.place, **execution)  # type: ignore[arg-type]
                yield from (finding for finding, _ in self._shown.findings([hit], place))
            if command is not None:
                place = Place(command.call, command.name, command.site, 0, **execution)  # type: ignore[arg-type]
                for barrier in barriers:
                    _apply(context, _without_transitions(barrier), place, queue_flags)
                begin = end


def _apply(context: Context, barrier: Barrier, place: Place, queue_flags: int) -> None:
    ranges = [
        RangeScope(each.space, span, expand(each.dependency, queue_flags), each.transition)
        for each in barrier.ranges
        for span in each.spans
    ]
    context.barrier(tuple(expand(each, queue_flags) for each in barrier.globals), ranges, place)


def _without_transitions(barrier: Barrier) -> Barrier:
    """At submit a transition is only a barrier to what came before; that it writes comes with the final state."""
    return replace(barrier, ranges=tuple(replace(each, transition=False) for each in barrier.ranges))


def _spoken(hits: Iterable[DetectedHazard]) -> list[DetectedHazard]:
    """The hazard of the lowest address, unless it is one that the layer keeps to itself: two equal shader writes."""
    return [
        hit
        for hit in lowest(hits)
        if hit.hazard != Hazard.WRITE_AFTER_WRITE or not hit.sync == hit.prior_sync == STORAGE_WRITE
    ]


def predict(blocks: Iterable[Block]) -> list[Finding]:
    """What the layer says about a whole trace, in order."""
    interpreter, older, validator = Interpreter(), Older(frozenset(RULES)), LayerValidator()
    findings: list[Finding] = []
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateImage":
            validator.images.add(block.args["pImage"])
        for stream_event in interpreter.step(block):
            findings += validator.consume(older.stream_event(stream_event, block))
    return findings

"""Rules of the Khronos layers that are not ours, as changes to what syncval consumes and to its transitions.

Everything else is syncval itself, so that a mistake in it shows under any rules (`older_layer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness.findings import Hazard, Place
from harness.spans import Span
from harness.spec.scopes import ALL_COMMANDS, BY_NAME, SYNC, expand_stages
from harness.syncval.barrier import Scope
from harness.syncval.context import Context, DetectedHazard, RangeEntry, RangePiece, Slot
from harness.syncval.state import LAYOUT_TRANSITION, State
from harness.trace.calls import Block, Call
from harness.trace.effects import Access, Barrier, Command, Dependency, Effect, Recorded, StreamEvent, Submitted

FILLS_ARE_COPIES = "fills-are-copies"
SHADER_READ_HAS_UNIFORM = "shader-read-has-uniform"
SYNC2_RANGES_ORDER_THEIR_RESOURCE = "sync2-ranges-order-their-resource"
ALL_COMMANDS_LACKS_TRANSITIONS = "all-commands-lacks-transitions"
ALL_COMMANDS_NEEDS_MEMORY_WRITE = "all-commands-needs-memory-write"
TRANSITIONS_NEED_ACCESSES = "transitions-need-accesses"
NONE_IS_NO_STAGE = "none-is-no-stage"
GLOBALS_ACT_ON_TRANSITIONS = "globals-act-on-transitions"
ATOMICS_ARE_READS = "atomics-are-reads"
DISPATCH_BASE_IS_UNSEEN = "dispatch-base-is-unseen"

RULES = (
    FILLS_ARE_COPIES,
    SHADER_READ_HAS_UNIFORM,
    SYNC2_RANGES_ORDER_THEIR_RESOURCE,
    ALL_COMMANDS_LACKS_TRANSITIONS,
    TRANSITIONS_NEED_ACCESSES,
    NONE_IS_NO_STAGE,
    GLOBALS_ACT_ON_TRANSITIONS,
    ATOMICS_ARE_READS,
    DISPATCH_BASE_IS_UNSEEN,
)
"""The rules of 1.3.239 that are not ours."""
TODAYS = (ATOMICS_ARE_READS, GLOBALS_ACT_ON_TRANSITIONS, ALL_COMMANDS_NEEDS_MEMORY_WRITE)
"""The rules of 1.4.364 that are not ours."""

CLEAR_WRITE = BY_NAME["SYNC_CLEAR_TRANSFER_WRITE"].index
INDIRECT_READ = BY_NAME["SYNC_DRAW_INDIRECT_INDIRECT_COMMAND_READ"].index
COPY_WRITE = BY_NAME["SYNC_COPY_TRANSFER_WRITE"].index
SHADER_READ, UNIFORM_READ, MEMORY_WRITE = 0x20, 0x8, 0x10000
RESULT_64 = 0x1
"""VK_QUERY_RESULT_64_BIT."""
FILLS = ("vkCmdFillBuffer", "vkCmdUpdateBuffer")


class Older:
    """Changes effects to what a layer takes the commands for."""

    def __init__(self, rules: frozenset[str]) -> None:
        self._rules = rules
        self._changed: dict[int, Command] = {}

    def stream_event(self, stream_event: StreamEvent, block: Block) -> StreamEvent:
        if isinstance(stream_event, Recorded) and isinstance(block, Call):
            command = self._command(stream_event.command, block, stream_event.queue_flags)
            self._changed[command.call] = command
            return replace(stream_event, command=command)
        if isinstance(stream_event, Submitted):
            batches = tuple(
                replace(
                    batch, buffers=tuple((id, tuple(self._known(each) for each in held)) for id, held in batch.buffers)
                )
                for batch in stream_event.batches
            )
            return replace(stream_event, batches=batches)
        return stream_event

    def _known(self, command: Command) -> Command:
        return self._changed.get(command.call, command)

    def _command(self, command: Command, call: Call, queue_flags: int) -> Command:
        effects: list[Effect] = []
        unseen = DISPATCH_BASE_IS_UNSEEN in self._rules and command.name.startswith("vkCmdDispatchBase")
        for effect in () if unseen else command.effects:
            if isinstance(effect, Access):
                effects += by_region(self._access(effect, command.name, call), call)
            elif isinstance(effect, Barrier):
                effects.append(self._barrier(effect, call, queue_flags))
            else:
                effects.append(effect)
        # An indirect dispatch reads its counts after its descriptors.
        effects.sort(key=lambda effect: isinstance(effect, Access) and effect.sync == INDIRECT_READ)
        return Command(command.call, command.name, command.site, tuple(effects))

    def _access(self, access: Access, name: str, call: Call) -> Access:
        access = without_gaps(access, call, FILLS_ARE_COPIES in self._rules)
        if FILLS_ARE_COPIES in self._rules and name in FILLS and access.sync == CLEAR_WRITE:
            access = replace(access, sync=COPY_WRITE)
        return replace(access, atomic=False) if ATOMICS_ARE_READS in self._rules else access

    def _barrier(self, barrier: Barrier, call: Call, queue_flags: int) -> Barrier:
        everything = barrier.globals
        info = call.args.get("pDependencyInfo")
        if SYNC2_RANGES_ORDER_THEIR_RESOURCE in self._rules and info is not None:
            names = ("srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask")
            everything = tuple(
                Dependency(*(each[name] for name in names)) for each in info.get("pMemoryBarriers") or ()
            )
        ranges = tuple(replace(each, dependency=self._masks(each.dependency, queue_flags)) for each in barrier.ranges)
        return Barrier(tuple(self._masks(each, queue_flags) for each in everything), ranges)

    def _masks(self, dependency: Dependency, queue_flags: int) -> Dependency:
        src, src_accesses, dst, dst_accesses = dependency.describe()
        if SHADER_READ_HAS_UNIFORM in self._rules:
            src_accesses |= UNIFORM_READ if src_accesses & SHADER_READ else 0
            dst_accesses |= UNIFORM_READ if dst_accesses & SHADER_READ else 0
        lacks = ALL_COMMANDS_LACKS_TRANSITIONS in self._rules
        lacks |= ALL_COMMANDS_NEEDS_MEMORY_WRITE in self._rules and not src_accesses & MEMORY_WRITE
        if lacks and src & ALL_COMMANDS:
            # The transition's pseudo access belongs to ALL_COMMANDS itself, not to the stages that it stands for.
            src = expand_stages(src, queue_flags)
        return Dependency(src, src_accesses, dst, dst_accesses)


def without_gaps(access: Access, call: Call, to_last_stride: bool) -> Access:
    """Query results as one range: up to the end of the last stride (1.3.239), or of the last result's first number."""
    if call.name != "vkCmdCopyQueryPoolResults" or not access.spans:
        return access
    begin, stride, count = access.spans[0][0], call.args["stride"], call.args["queryCount"]
    number = 8 if call.args["flags"] & RESULT_64 else 4
    end = begin + (stride * count if to_last_stride else stride * (count - 1) + number)
    return replace(access, spans=((begin, end),))


def by_region(access: Access, call: Call) -> list[Access]:
    """A buffer copy's access region by region, as the layer tests and tracks it; others as they are."""
    info = call.args.get("pCopyBufferInfo") or call.args
    regions = info.get("pRegions") or ()
    if "srcBuffer" not in info or "dstBuffer" not in info or len(regions) < 2:
        return [access]
    side = "dstOffset" if SYNC[access.sync].write else "srcOffset"
    # Effects hold addresses of the memory; the lowest one belongs to the lowest offset.
    base = access.spans[0][0] - min(region[side] for region in regions)
    return [replace(access, spans=((base + region[side], base + region[side] + region["size"]),)) for region in regions]


class OlderContext(Context):
    """Judges layout transitions as layers do or did (1.3.239: DetectBarrierHazard, ApplyPendingBarriers)."""

    def __init__(self, queue: int, rules: frozenset[str]) -> None:
        super().__init__(queue)
        self._rules = rules

    def _live(self, entry: RangeEntry) -> RangeEntry:
        """What the host knows to be complete is nothing to a layer; to us, contents that the host may not see yet."""
        live = super()._live(entry)
        state = live.slot.find().state
        if state.write is None or not state.write.done:
            return live
        return RangeEntry(Slot(state.without_write()), None, live.reads)

    def check_transition(
        self,
        space: int,
        spans: Iterable[Span],
        scopes: tuple[Scope, ...],
        resource: int,
        sync: int = LAYOUT_TRANSITION,
    ) -> Iterator[DetectedHazard]:
        if not self._rules & {TRANSITIONS_NEED_ACCESSES, NONE_IS_NO_STAGE}:
            yield from super().check_transition(space, spans, scopes, resource, sync)
            return
        held = self._maps.get(space)
        for begin, end in spans if held is not None else ():
            assert held is not None
            for piece_begin, piece_end, entry in held.pieces(begin, end):
                entry = self._live(entry)
                for scope in scopes:
                    yield from self._transition_hits(entry, scope, (piece_begin, piece_end), resource)

    def _transition_hits(self, entry: RangeEntry, scope: Scope, span: Span, resource: int) -> Iterator[DetectedHazard]:
        state = entry.slot.find().state
        view = state.view(self.viewer)
        src = scope.src_stages
        if NONE_IS_NO_STAGE not in self._rules and not src and not scope.src_accesses:
            src = 1
        for position, (read, guard) in enumerate(zip(state.reads, view.reads, strict=True)):
            if not src & (read.stage | guard.barriers):
                prior = entry.reads[position]
                yield DetectedHazard(
                    Hazard.WRITE_AFTER_READ, span, LAYOUT_TRANSITION, prior, read.sync, state, resource, self.viewer
                )
                return
        write = state.write
        if state.reads or write is None or entry.write is None or write.sync == LAYOUT_TRANSITION:
            return
        needed = view.write.barriers & scope.src_accesses if TRANSITIONS_NEED_ACCESSES in self._rules else True
        if not scope.src_accesses >> write.sync & 1 and not (view.write.chain & src and needed):
            prior = entry.write
            yield DetectedHazard(
                Hazard.WRITE_AFTER_WRITE, span, LAYOUT_TRANSITION, prior, write.sync, state, resource, self.viewer
            )

    def _settle(self, piece: RangePiece, everything: tuple[Scope, ...], place: Place) -> None:
        if GLOBALS_ACT_ON_TRANSITIONS in self._rules and piece.cover.moved:
            acting = tuple(scope for scope in everything if _in_scope(piece.state, scope, self.viewer))
            piece = piece._replace(cover=piece.cover._replace(scopes=piece.cover.scopes + acting))
        super()._settle(piece, everything, place)


def _in_scope(state: State, scope: Scope, viewer: int) -> bool:
    write, chain = state.write, state.view(viewer).write.chain
    return write is not None and bool(scope.src_accesses >> write.sync & 1 or chain & scope.src_stages)


def lowest(hits: Iterable[DetectedHazard]) -> list[DetectedHazard]:
    """The hazard of the lowest address of a region: the layer stops there."""
    return list(hits)[:1]

"""Reads and writes: which prior access conflicts, and what the state becomes (rules.md#hazards).

* A read conflicts with the last write unless the write was made visible to it.
* A write conflicts with reads since the last write unless an execution dependency orders each before it. Only when
  there are none is it held against the write, which needs a memory dependency. Reads by the command of the last write
  are held against it as well, and the write with them.
* Attachment accesses of one subpass are ordered among themselves (rasterization order), with exceptions. Load and store
  operations are ordered with all attachment accesses of their render pass instance.
* What holds by region of the framebuffer counts between attachment accesses, and no other.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from vkharness.findings import ENGINE_QUEUE, Certainty, Hazard
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.syncval.race import in_instance_order
from vkharness.syncval.state import NO_ORDERING, AccessOrdering, AccessOutcome, Read, State, View, Write, intern
from vkharness.syncval.superseded_reads import superseded_reads
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import Access


class AccessRequest(NamedTuple):
    """An access as the rules see it: what, by whom, and how it is ordered.

    `RasterizationOrder` and `AttachmentOperation` are plain numbers here.
    """

    access_kind: int
    queue: int
    viewer: int
    atomic: bool = False
    order: int = 0
    operation: int = 0
    marker: bool = False
    """A marker of VK_AMD_buffer_marker: unordered markers do not conflict with one another."""
    certainty: Certainty = Certainty.EXACT
    same_command: bool = False
    """A read of what its own command has just written."""
    inside: int = 0
    """The subpass in which an operation is made that counts for several of them; 0 where `viewer` says it."""


def requested(access: Access, queue: int, viewer: int, inside: int = 0) -> AccessRequest:
    """An access by a viewer, as the rules see it."""
    return AccessRequest(
        access.access_kind, queue, viewer, access.atomic, int(access.order), int(access.operation), access.marker,
        access.certainty, inside=inside,
    )  # fmt: skip


def after_access(state: State, request: AccessRequest) -> AccessOutcome:
    """Returns the hazard that an access meets in a state, and the state after it (memoised)."""
    known: AccessOutcome | None = state.results.get(request)
    return state.after(request, lambda state: _access(state, request)) if known is None else known


def _access(state: State, request: AccessRequest) -> AccessOutcome:
    """A read looks at the last write alone: rules.md#reads-do-not-conflict."""
    view = state.view(request.viewer)
    if request.atomic:
        return _atomic(state, view, request)
    if ACCESS_KINDS[request.access_kind].write:
        hazard, prior = _write_hazard(state, view, request)
        return AccessOutcome(hazard, prior, _written(request, request.access_kind), -1)
    hazard = Hazard.READ_AFTER_WRITE if _read_conflicts(state, view, request) else None
    return _with_read(state, request)._replace(hazard=hazard)


def after_instance(state: State, queue: int) -> State:
    """A state when another render pass instance of the queue begins: what was open is no longer."""

    def ended(access: Write | Read | None) -> Any:
        return access._replace(open=False) if access is not None and access.open and access.queue == queue else access

    write, reads = ended(state.write), tuple(ended(read) for read in state.reads)
    return state if (write, reads) == (state.write, state.reads) else intern(write, reads, state.views)


def _written(request: AccessRequest, access_kind: int) -> State:
    of_instance = request.order != RasterizationOrder.NONE
    regional = of_instance and request.order != RasterizationOrder.FEEDBACK
    atomic = request.atomic or request.marker
    who = (request.queue, request.viewer, atomic, request.operation)
    return intern(Write(access_kind, *who, certainty=request.certainty, regional=regional, open=of_instance), (), ())


def _read_conflicts(state: State, view: View, request: AccessRequest) -> bool:
    """Whether a read does not see the last write. Rules: rules.md#read-after-write, rules.md#most-recent-access."""
    write = state.write
    if write is None or write.done or _is_visible(write, view, request.access_kind, request):
        return False
    if write.queue >= ENGINE_QUEUE:
        return not _engine_is_done(state, view, write, request)
    return not _read_is_ordered(state, write, request)


def _is_visible(write: Write, view: View, access_kind: int, request: AccessRequest) -> bool:
    """Whether dependencies made the write visible: everywhere, or in each region if both are attachment accesses."""
    by_region = write.regional and request.order != RasterizationOrder.NONE
    barriers = view.write.barriers | (view.write.near_barriers if by_region else 0)
    return bool(barriers >> access_kind & 1)


def _engine_is_done(state: State, view: View, write: Write, request: AccessRequest) -> bool:
    """Whether a read comes after what the engine did with an image since it was presented. A presentation counts as a
    write, and leaves nothing that would have to be visible (rules.md#a-presented-image-belongs-to-the-engine)."""
    stage = ACCESS_KINDS[request.access_kind].stage
    pairs = zip(state.reads, view.reads, strict=True)
    return any(read.queue == write.queue and ordering.barriers & stage for read, ordering in pairs)


def _read_is_ordered(state: State, write: Write, request: AccessRequest) -> bool:
    """Rasterization order between an attachment read and the last write (or a read since it).

    Rules: rules.md#attachment-accesses-are-in-rasterization-order, rules.md#input-attachments-are-read-by-the-shader,
    rules.md#input-reads-come-after-loads-and-before-stores, rules.md#rasterization-order-attachment-access.
    """
    if request.order == RasterizationOrder.NONE:
        return False
    if in_instance_order(write, request.queue, request.order, request.operation):
        return True
    is_input = request.access_kind == INPUT_READ
    # Input attachments are read after draws only by pipelines for which these are in order.
    if _in_order(write, request) and (not is_input or request.operation == AttachmentOperation.RASTER_ORDERED):
        return True
    # Order makes nothing visible: only after a read of the same access, or a load operation, was this one judged.
    return any(
        (
            read.access_kind == request.access_kind
            and read.viewer == request.viewer
            and not read.same_command
            and read.operation in (request.operation, AttachmentOperation.ORDINARY, AttachmentOperation.LOAD)
        )
        or in_instance_order(read, request.queue, request.order, request.operation)
        for read in state.reads
        if read.open
    )


def _in_order(prior: Write | Read, request: AccessRequest) -> bool:
    """Whether an earlier access by an attachment stage comes first in rasterization order."""
    by_same = prior.viewer in (request.viewer, request.inside or request.viewer)
    here = prior.open and prior.queue == request.queue and by_same
    return here and bool(rasterization_scope(request.order)[1] >> prior.access_kind & 1)


def _read_is_first(state: State, position: int, request: AccessRequest) -> bool:
    """Whether an earlier read comes before a write by rasterization order, or before the load operation that does.

    Rule: rules.md#input-attachments-are-read-by-the-shader.
    """
    read = state.reads[position]
    if in_instance_order(read, request.queue, request.order, request.operation):
        return True
    after_shaders = request.operation in (AttachmentOperation.RASTER_ORDERED, AttachmentOperation.RESOLVE_WRITE)
    if _in_order(read, request) and (read.access_kind != INPUT_READ or after_shaders):
        return True
    for load in state.reads:
        if load.operation == AttachmentOperation.LOAD and in_instance_order(
            load, request.queue, request.order, request.operation
        ):
            seen = state.view(load.viewer).reads[position]
            if (seen.chain | (seen.near_chain if read.regional else 0)) & load.stage:
                return True
    return False


def _write_hazard(state: State, view: View, request: AccessRequest) -> tuple[Hazard | None, int]:
    """Returns the hazard of a write, and the earlier access that it conflicts with: the position of a read, or -1 for
    the last write. The hazard is None where nothing conflicts.

    Rules: rules.md#write-after-read, rules.md#write-after-write, rules.md#most-recent-access.

    An access that an implementation may make counts as made: rules.md#writes-to-one-aspect-may-rewrite-the-other.
    """
    position = _read_in_the_way(state, view, request, request.access_kind)
    is_read = position >= 0
    if not (is_read and not state.reads[position].possible) and _write_conflicts(state, view, request):
        return Hazard.WRITE_AFTER_WRITE, -1
    return (Hazard.WRITE_AFTER_READ if is_read else None), position


def _write_conflicts(state: State, view: View, request: AccessRequest) -> bool:
    """Whether a write conflicts with the last write, given that no read stands in its way that is made for sure."""
    access_kind, write = request.access_kind, state.write
    if state.read_since_write or write is None or write.done or _is_visible(write, view, access_kind, request):
        return False
    if request.order != RasterizationOrder.NONE and (
        _in_order(write, request) or in_instance_order(write, request.queue, request.order, request.operation)
    ):
        return False
    return not (request.marker and write.atomic and write.access_kind == access_kind)


def _read_in_the_way(state: State, view: View, request: AccessRequest, access_kind: int) -> int:
    """The position of the first read that a write (as `access_kind`) is not ordered after, those first that are made
    for sure; -1 for none.

    Rules: rules.md#every-reading-stage-counts, rules.md#what-may-be-read-makes-the-verdict-unknown.
    """
    attached = request.order != RasterizationOrder.NONE
    stage = ACCESS_KINDS[access_kind].stage
    for position in state.by_certainty:
        read, ordering = state.reads[position], view.reads[position]
        barriers = ordering.barriers | (ordering.near_barriers if attached and read.regional else 0)
        if not stage & barriers and not (attached and _read_is_first(state, position, request)):
            return position
    return -1


def _atomic(state: State, view: View, request: AccessRequest) -> AccessOutcome:
    """A read-modify-write, given by its read access: unordered ones of one range do not conflict with one another.

    It conflicts with a plain write as a read does, with a plain read as a write does.
    Rules: rules.md#atomics-do-not-conflict-with-one-another, rules.md#atomics-read-and-write.
    """
    write, access_kind = state.write, written_by_atomic(request.access_kind)
    prior = _read_in_the_way(state, view, request, access_kind)
    hazard = Hazard.WRITE_AFTER_READ if prior >= 0 else None
    is_first = (prior < 0 or state.reads[prior].possible) and not state.read_since_write
    if is_first and write is not None and not write.atomic and _read_conflicts(state, view, request):
        hazard, prior = Hazard.READ_AFTER_WRITE, -1
    return AccessOutcome(hazard, prior, _written(request, access_kind), -1)


@functools.cache
def written_by_atomic(access_kind: int) -> int:
    """The write access of an atomic that is given by its read access."""
    return ACCESS_KIND[ACCESS_KINDS[access_kind].name.replace("STORAGE_READ", "STORAGE_WRITE")].index


def _with_read(state: State, request: AccessRequest) -> AccessOutcome:
    """Adds a read without a hazard; reads that happen before this one remember its stage, if it is made for sure."""
    stage = ACCESS_KINDS[request.access_kind].stage
    of_instance = request.order != RasterizationOrder.NONE
    regional = of_instance and request.order != RasterizationOrder.FEEDBACK
    who = (request.queue, request.viewer, request.same_command, request.certainty, request.operation)
    fresh = Read(request.access_kind, stage, *who, regional=regional, open=of_instance)
    gone = superseded_reads(state, fresh)
    position, gone = (gone[0], gone[1:]) if gone else (len(state.reads), ())
    reads = [read for at, read in enumerate(state.reads) if at not in gone]
    reads[position : position + 1] = [fresh]
    views = []
    for view in state.views:
        mine = view.viewer == request.viewer and not fresh.possible
        orderings = [
            _synced(ordering, stage) if mine else ordering for at, ordering in enumerate(view.reads) if at not in gone
        ]
        orderings[position : position + 1] = [NO_ORDERING]
        views.append(view._replace(reads=tuple(orderings)))
    return AccessOutcome(None, -1, intern(state.write, tuple(reads), views), position, gone)


def _synced(ordering: AccessOrdering, stage: int) -> AccessOrdering:
    chain = ordering.chain | stage if ordering.barriers & stage else ordering.chain & ~stage
    near = ordering.near_chain | stage if ordering.near_barriers & stage else ordering.near_chain & ~stage
    if (chain, near) == (ordering.chain, ordering.near_chain):
        return ordering
    return ordering._replace(chain=chain, near_chain=near)


COUNTER_READ = ACCESS_KIND["SYNC_TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_COUNTER_READ_EXT"].index
INPUT_READ = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index


@functools.cache
def rasterization_scope(order: int) -> tuple[int, int]:
    """(stages, accesses) of one class of rasterization order; accesses as bits of ACCESS_KINDS indices.

    Of feedback only reads of counters come before others. Rule: rules.md#feedback-ends-after-it-began.
    """
    if order == RasterizationOrder.NONE:
        return (0, 0)
    if order == RasterizationOrder.FEEDBACK:
        return (0, 1 << COUNTER_READ)
    names = ["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"]
    if order in (RasterizationOrder.COLOR, RasterizationOrder.RASTER):
        color = ("COLOR_ATTACHMENT_READ", "COLOR_ATTACHMENT_WRITE", "COLOR_ATTACHMENT_READ_NONCOHERENT_EXT")
        names += [f"SYNC_COLOR_ATTACHMENT_OUTPUT_{each}" for each in color]
    if order in (RasterizationOrder.DEPTH_STENCIL, RasterizationOrder.RASTER):
        names += [
            f"SYNC_{stage}_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_{kind}"
            for stage in ("EARLY", "LATE")
            for kind in ("READ", "WRITE")
        ]
    accesses = [ACCESS_KIND[name] for name in names]
    stages = 0
    for access in accesses[1:]:
        stages |= access.stage
    bits = 0
    for access in accesses:
        bits |= 1 << access.index
    return (stages, bits)

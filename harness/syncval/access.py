"""Reads and writes: which prior access conflicts, and what the state becomes (rules.md#hazards).

* A read conflicts with the last write unless the write was made visible to it.
* A write conflicts with reads since the last write unless an execution dependency orders each before it. Only when
  there are none is it held against the write, which needs a memory dependency. Reads by the command of the last write
  are held against it as well, and the write with them.
* Attachment accesses of one queue are ordered among themselves (rasterization order), with exceptions.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from harness.findings import Certainty, Hazard
from harness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from harness.syncval.state import NO_ORDERING, AccessOrdering, AccessOutcome, Read, State, View, Write, intern
from harness.trace.effects import AttachmentOperation, RasterizationOrder


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


def after_access(state: State, request: AccessRequest) -> AccessOutcome:
    """What an access meets and makes (memoised)."""
    known: AccessOutcome | None = state.results.get(request)
    return state.after(request, lambda state: _access(state, request)) if known is None else known


def _access(state: State, request: AccessRequest) -> AccessOutcome:
    view = state.view(request.viewer)
    if request.atomic:
        return _atomic(state, view, request)
    if ACCESS_KINDS[request.access_kind].write:
        hazard, prior = _write_hazard(state, view, request)
        return AccessOutcome(hazard, prior, _written(request, request.access_kind), -1)
    hazard = Hazard.READ_AFTER_WRITE if _read_conflicts(state, view, request) else None
    after, position = _with_read(state, request)
    return AccessOutcome(hazard, -1, after, position)


def _written(request: AccessRequest, access_kind: int) -> State:
    atomic = request.atomic or request.marker
    made = Write(access_kind, request.queue, request.viewer, atomic, request.operation, certainty=request.certainty)
    return intern(made, (), ())


def _read_conflicts(state: State, view: View, request: AccessRequest) -> bool:
    """Whether a read does not see the last write. Rules: rules.md#read-after-write, rules.md#most-recent-access."""
    write = state.write
    if write is None or write.done or view.write.barriers >> request.access_kind & 1:
        return False
    return not _read_is_ordered(state, write, request)


def _read_is_ordered(state: State, write: Write, request: AccessRequest) -> bool:
    """Rasterization order between an attachment read and the last write (or a read since it).

    Rules: rules.md#attachment-accesses-are-in-rasterization-order, rules.md#input-attachments-are-read-by-the-shader.
    """
    stages, accesses = rasterization_scope(request.order)
    is_input = request.access_kind == INPUT_READ
    if not (ACCESS_KINDS[request.access_kind].stage & stages or (is_input and accesses >> INPUT_READ & 1)):
        return False
    ordered = _in_order(write, request)
    if is_input and write.operation != AttachmentOperation.LOAD:
        ordered = False  # input attachments are ordered after load operations, never after draws
    if request.operation == AttachmentOperation.RESOLVE_READ and write.viewer != request.viewer:
        ordered = False
    # Order makes nothing visible: only after a read of the same access was this one judged already.
    return ordered or any(
        read.access_kind == request.access_kind and read.viewer == request.viewer and not read.same_command
        for read in state.reads
    )


def _in_order(write: Write, request: AccessRequest) -> bool:
    return write.queue == request.queue and bool(rasterization_scope(request.order)[1] >> write.access_kind & 1)


def _ordered_reads(state: State, request: AccessRequest) -> int:
    """Stages of reads of this queue that rasterization order puts before the access.

    Rule: rules.md#input-attachments-are-read-by-the-shader.
    """
    stages, accesses = rasterization_scope(request.order)
    found = 0
    for read in state.reads:
        if read.queue != request.queue:
            continue
        if read.stage & stages or (
            read.access_kind == INPUT_READ
            and accesses >> INPUT_READ & 1
            and request.operation == AttachmentOperation.STORE
        ):
            found |= read.stage
    return found


def _write_hazard(state: State, view: View, request: AccessRequest) -> tuple[Hazard | None, int]:
    """What a write conflicts with. Rules: rules.md#write-after-read, rules.md#write-after-write,
    rules.md#most-recent-access."""
    access_kind, write = request.access_kind, state.write
    position = _read_in_the_way(state, view, request, access_kind)
    if position >= 0:
        return Hazard.WRITE_AFTER_READ, position
    if state.read_since_write or write is None or write.done or view.write.barriers >> access_kind & 1:
        return None, -1
    if rasterization_scope(request.order)[1] >> access_kind & 1 and _in_order(write, request):
        return None, -1
    if request.marker and write.atomic and write.access_kind == access_kind:
        return None, -1
    return Hazard.WRITE_AFTER_WRITE, -1


def _read_in_the_way(state: State, view: View, request: AccessRequest, access_kind: int) -> int:
    """The position of the first read that a write (as `access_kind`) is not ordered after; -1 for none."""
    if state.reads:
        stage = ACCESS_KINDS[access_kind].stage
        before = _ordered_reads(state, request) if rasterization_scope(request.order)[1] >> access_kind & 1 else 0
        for position, (read, ordering) in enumerate(zip(state.reads, view.reads, strict=True)):
            if not stage & ordering.barriers and not (before & read.stage and read.queue == request.queue):
                return position
    return -1


def _atomic(state: State, view: View, request: AccessRequest) -> AccessOutcome:
    """A read-modify-write, given by its read access: unordered ones of one range do not conflict with one another.

    It conflicts with a plain write as a read does, with a plain read as a write does.
    """
    write, access_kind = state.write, written_by_atomic(request.access_kind)
    prior = _read_in_the_way(state, view, request, access_kind)
    hazard = Hazard.WRITE_AFTER_READ if prior >= 0 else None
    if hazard is None and not state.read_since_write and write is not None and not write.atomic:
        hazard = Hazard.READ_AFTER_WRITE if _read_conflicts(state, view, request) else None
    return AccessOutcome(hazard, prior, _written(request, access_kind), -1)


@functools.cache
def written_by_atomic(access_kind: int) -> int:
    """The write access of an atomic that is given by its read access."""
    return ACCESS_KIND[ACCESS_KINDS[access_kind].name.replace("STORAGE_READ", "STORAGE_WRITE")].index


def _with_read(state: State, request: AccessRequest) -> tuple[State, int]:
    """Keeps one read a stage and queue; reads that happen before this one remember its stage."""
    stage = ACCESS_KINDS[request.access_kind].stage
    fresh = Read(request.access_kind, stage, request.queue, request.viewer, request.same_command, request.certainty)
    same = [at for at, read in enumerate(state.reads) if read.stage == stage and read.queue == request.queue]
    position = same[0] if same else len(state.reads)
    reads = (*state.reads[:position], fresh, *state.reads[position + 1 :])
    views = []
    for view in state.views:
        mine = view.viewer == request.viewer
        orderings = [_synced(ordering, stage) if mine else ordering for ordering in view.reads]
        orderings[position : position + 1] = [NO_ORDERING]
        views.append(view._replace(reads=tuple(orderings)))
    return intern(state.write, reads, views), position


def _synced(ordering: AccessOrdering, stage: int) -> AccessOrdering:
    chain = ordering.chain | stage if ordering.barriers & stage else ordering.chain & ~stage
    return ordering if chain == ordering.chain else ordering._replace(chain=chain)


INPUT_READ = ACCESS_KIND["SYNC_FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"].index


@functools.cache
def rasterization_scope(order: int) -> tuple[int, int]:
    """(stages, accesses) of one class of rasterization order; accesses as bits of ACCESS_KINDS indices."""
    if order == RasterizationOrder.NONE:
        return (0, 0)
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

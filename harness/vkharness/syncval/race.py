"""Accesses that nothing orders at all: of another queue that no semaphore joins, or of a subpass without a path here.

(rules.md#queues-without-a-semaphore-race, rules.md#subpasses-without-a-path-race.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from vkharness.findings import Hazard, Place
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.syncval.state import HOST_QUEUE, Read, State, Write
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import Access

BatchIndex = tuple[int, int]
"""When a batch was submitted: (block index of the submit, batch). Grows along each queue."""


class SubmittedBatch(Protocol):
    """A batch with its place in the order of submission."""

    tag: BatchIndex


class Batches(Protocol):
    """Finds the batches of place numbers (`places.PlaceTable`)."""

    def batch(self, number: int) -> SubmittedBatch:
        """The batch of a place number."""


class RacingWork(NamedTuple):
    """Who races with the current viewer.

    `clock` gives, for each other queue, the tag up to which its work is ordered before the current batch: later work
    races. `subpasses` are those with no path of dependencies to the current subpass.
    """

    queue: int
    clock: Mapping[int, BatchIndex]
    subpasses: frozenset[int]


NEVER: BatchIndex = (-1, 0)
"""Before every batch."""
PRESENT_ENGINE = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"].stage
NO_RACING_WORK = RacingWork(0, {}, frozenset())


def batch_index_of(place: Place) -> BatchIndex:
    """When an executed access was submitted."""
    return (place.submit or 0, place.batch)


def race(
    state: State,
    write: int | None,
    reads: tuple[int, ...],
    batches: Batches,
    access_kind: int,
    racing: RacingWork,
    access: Access | None = None,
) -> tuple[Hazard, int] | None:
    """The racing hazard that an access meets, with its prior access as in `AccessOutcome`; None without one. `write`
    and `reads` are place numbers.

    Rules: rules.md#queues-without-a-semaphore-race, rules.md#subpasses-without-a-path-race,
    rules.md#a-semaphore-orders-the-halves-of-a-transfer; for the presentation engine
    rules.md#a-presented-image-belongs-to-the-engine, rules.md#an-acquired-image-waits-for-its-semaphore.
    """
    writes = ACCESS_KINDS[access_kind].write
    known: list[Write | Read] = [*state.reads]
    if (
        state.write is not None
        and write is not None
        and not state.write.done
        and _is_racing(state.write, write, racing, batches)
        and not any(_in_instance(each, access, racing) for each in [*known, state.write])
        and not _loaded_before(state.write, zip(state.reads, reads, strict=True), racing, batches)
    ):
        if ACCESS_KINDS[state.write.access_kind].stage == PRESENT_ENGINE:
            return (Hazard.WRITE_AFTER_PRESENT if writes else Hazard.READ_AFTER_PRESENT), -1
        return (Hazard.WRITE_RACING_WRITE if writes else Hazard.READ_RACING_WRITE), -1
    if writes:
        for position in state.by_certainty:
            read, place = state.reads[position], reads[position]
            if _is_racing(read, place, racing, batches) and not _in_instance(read, access, racing):
                return (
                    Hazard.WRITE_AFTER_PRESENT if read.stage == PRESENT_ENGINE else Hazard.WRITE_RACING_READ
                ), position
    return None


def is_surer(state: State, prior: int, than: int) -> bool:
    """Whether the access at one position (-1 for the write) is made for sure, and that at another one is not."""
    return than >= 0 and state.reads[than].possible and not (prior >= 0 and state.reads[prior].possible)


def in_instance_order(prior: Write | Read, queue: int, order: int, operation: int) -> bool:
    """Whether an attachment access of the render pass instance that goes on comes after an earlier one by itself.

    A load operation happens before, and a store operation after, every other access of the attachment in the instance.
    Rule: rules.md#loads-come-first-and-stores-last.
    """
    if not prior.open or prior.queue != queue or order == RasterizationOrder.NONE:
        return False
    return prior.operation == AttachmentOperation.LOAD or operation == AttachmentOperation.STORE


def _loaded_before(write: Write, reads: Iterable[tuple[Read, int]], racing: RacingWork, batches: Batches) -> bool:
    """Whether a load operation came before an attachment read that does not race: what comes after the read comes
    after both. Rule: rules.md#loads-come-first-and-stores-last."""
    is_load = write.open and write.operation == AttachmentOperation.LOAD
    return is_load and any(
        read.open and read.regional and not _is_racing(read, at, racing, batches) for read, at in reads
    )


def _in_instance(prior: Write | Read, access: Access | None, racing: RacingWork) -> bool:
    return access is not None and in_instance_order(prior, racing.queue, access.order, access.operation)


def _is_racing(access: Write | Read, place: int, racing: RacingWork, batches: Batches) -> bool:
    if access.viewer in racing.subpasses:
        return True
    if access.queue in (racing.queue, HOST_QUEUE):
        return False
    return batches.batch(place).tag > racing.clock.get(access.queue, NEVER)

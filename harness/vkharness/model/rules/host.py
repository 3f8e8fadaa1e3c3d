"""Rules for the host: its accesses of mapped memory, and its waits."""

from __future__ import annotations

from vkharness.findings import Place
from vkharness.model.memory import HOST_READ, HOST_WRITE, MemoryOperation
from vkharness.model.node_numbers import NodeNumbers
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import FENCE, Node, NodeSet
from vkharness.model.past_access import HOST_STREAM, NOWHERE
from vkharness.model.program import Program, QueueState, Work
from vkharness.model.rules.semaphore import signaled_outside
from vkharness.model.rules.usage import fences_reset, host_learned, object_gone
from vkharness.model.stages import ACCESS_KINDS, EVERY_ACCESS
from vkharness.spans import Span, overlap, subtract
from vkharness.trace.effects import Access, Destroyed, FenceReset, HostWaited, Submitted, UnmodelledCall
from vkharness.trace.host_effects import HostAccess, HostDeclaredRead, HostFlushed, HostInvalidated, HostWrote


def host_wrote(program: Program, wrote: HostWrote) -> None:
    """A host write comes after all that the host has waited for, and before what it submits from now on.

    In memory that is not coherent it is available only after a flush. A write of the device before it must be available
    to the host domain (`visibility.VisibilityQuery`). Specification: "Host Write Ordering Guarantees", "Host Access to
    Device Memory Objects", "Fences"; appendix "Location-Ordered".
    Rules: rules.md#a-host-write-waits-for-the-device, rules.md#a-host-write-needs-the-host-domain.
    """
    place = Place(wrote.call, "host write", wrote.site)
    node = program.host_node("host write", place)
    if not wrote.coherent:
        program.unflushed |= NodeNumbers.one(node)
        held = program.dirty.setdefault(wrote.memory, [])
        held.append((ModelAccess(place, ACCESS_KINDS[HOST_WRITE].name, True, node), [wrote.span]))
    _access(program, HOST_WRITE, node, place, wrote.memory, wrote.span, wrote.non_coherent_atom_size)
    program.ownership.wrote(wrote.memory, (wrote.span,))


def host_read(program: Program, read: HostDeclaredRead) -> None:
    """A host read comes after all that the host has waited for.

    A wait makes device writes complete. A dependency to HOST_READ makes them available to the host. In memory that is
    not coherent they are visible only after an invalidate. Specification: "Fences", "Host Access to Device Memory
    Objects"; appendix "Availability, Visibility, and Domain Operations" (vkInvalidateMappedMemoryRanges).
    Rule: rules.md#a-host-read-needs-a-dependency-and-a-wait.
    """
    place = Place(read.call, read.name, read.site)
    node = program.host_node(read.name, place)
    if read.coherent:
        _access(program, HOST_READ, node, place, read.memory, read.span, read.non_coherent_atom_size)
        return
    left = [read.span]
    for invalidate, spans in reversed(program.invalidated.get(read.memory, [])):
        for span in overlap(left, spans):
            _access(program, HOST_READ, node, place, read.memory, span, read.non_coherent_atom_size, invalidate)
        left = subtract(left, spans)
    for span in left:
        _access(program, HOST_READ, node, place, read.memory, span, read.non_coherent_atom_size, NOWHERE)


def _access(
    program: Program,
    access_kind: int,
    node: int,
    place: Place,
    memory: int,
    span: Span,
    atom_size: int,
    seen_at: int | None = None,
) -> None:
    """Makes one access of the host.

    The device must not use the rest of any atom that it touches, either ("Host Access to Device Memory Objects":
    nonCoherentAtomSize).
    Rule: rules.md#host-accesses-conflict-byte-by-byte.
    """
    command = next(program.numbers)
    access = Access(access_kind, memory, (span,), memory)
    program.access(access, node, place, HOST_STREAM, command, seen_at=seen_at)
    around = (span[0] // atom_size * atom_size, -(-span[1] // atom_size) * atom_size)
    rest = subtract([around], [span])
    if rest:
        program.require_unused(Access(access_kind, memory, tuple(rest), memory), node, place, HOST_STREAM, command)


def host_flushed(program: Program, flushed: HostFlushed) -> None:
    """A flush makes host writes to its range available to the host domain. A later submit makes them available to the
    device, or a dependency from HOST_WRITE.

    Specification: "vkFlushMappedMemoryRanges"; appendix "Availability, Visibility, and Domain Operations".
    Rules: rules.md#a-flush-says-that-the-host-wrote,
    rules.md#a-late-host-write-needs-a-dependency-from-the-host.
    """
    place = Place(flushed.call, "vkFlushMappedMemoryRanges", flushed.site)
    first = program.host.direct
    node = program.host_node(place.command, place)
    program.memory.add(MemoryOperation(node, first, 1 << HOST_WRITE, 0, flushed.memory, (flushed.span,), by_host=True))
    program.remove_dirty(flushed.memory, flushed.span)


def host_invalidated(program: Program, invalidated: HostInvalidated) -> None:
    """An invalidate makes what is available to the host domain visible to the host, in its range.

    Host writes to the range that were not flushed are lost. Specification: "vkInvalidateMappedMemoryRanges";
    rules.md#an-invalidate-says-that-the-host-reads.
    """
    place = Place(invalidated.call, "vkInvalidateMappedMemoryRanges", invalidated.site)
    node = program.host_node(place.command, place)
    for use, spans in program.dirty.get(invalidated.memory, ()):
        lost = overlap(spans, [invalidated.span])
        if lost:
            current = ModelAccess(place, "", False, node)
            program.conflict(
                Conflict(ConflictKind.LOST, use, current, invalidated.memory, tuple(lost), order=program.order)
            )
    program.remove_dirty(invalidated.memory, invalidated.span)
    program.invalidated.setdefault(invalidated.memory, []).append((node, [invalidated.span]))


def host_waited(program: Program, waited: HostWaited) -> None:
    """A wait for fences puts the host after them. A wait for idle is like a fence at the end of the queue or of all
    queues.

    Specification: "Fences", "vkQueueWaitIdle", "vkDeviceWaitIdle".
    Rules: rules.md#a-fence-covers-everything-before-it, rules.md#an-idle-queue-is-complete,
    rules.md#a-sparse-bind-is-ordered-by-semaphores-and-fences.
    """
    if waited.fences:
        stuck = (
            queue for queue in program.queues.values() if any(_signals(each, waited.fences) for each in queue.work)
        )
        program.release(stuck)
    else:
        program.release(each for each in program.queues.values() if waited.queue in (0, each.id))
    host_learned(program, waited)
    for fence in waited.fences:
        if fence in program.fences:
            program.host |= program.fences[fence]
        elif fence in program.shared:
            program.host |= signaled_outside(program)
    if not waited.fences:
        for queue in [each for each in program.queues.values() if waited.queue in (0, each.id, each.binds_for)]:
            program.host |= fence_of(program, queue, Place(0, "wait for idle", None, queue=queue.id))


def _signals(work: Work, fences: tuple[int, ...]) -> bool:
    return isinstance(work.what, Submitted) and work.what.fence in fences


def fence_of(program: Program, queue: QueueState, place: Place) -> NodeSet:
    """The signal of a fence at this point of the queue.

    It comes after everything submitted to the queue before, whatever its stages, and makes all writes available.
    Specification: "Fences" (vkQueueSubmit: fence signal operations).
    Rule: rules.md#a-fence-covers-what-its-queue-had-waited-for.
    """
    order = program.order
    done = queue.stream.everything
    node = order.add(Node(FENCE, f"fence of {place.command} ({place.call})", place), (done, "a fence is last"))
    program.memory.add(MemoryOperation(node, done.direct, EVERY_ACCESS, 0))
    return order.set_of(node)


def host_access(program: Program, effect: HostAccess) -> None:
    """The host reads or writes a resource by a call, which is complete when the call returns.

    Specification: "Copying Data Between Host Memory and Images" (host image copies); deferred host operations.
    Rule: rules.md#host-copies-access-images-on-the-host.
    """
    place = Place(effect.call, effect.name, effect.site)
    node = program.host_node(effect.name, place)
    access_kind = HOST_WRITE if effect.write else HOST_READ
    access = Access(access_kind, effect.space, effect.spans, effect.resource)
    program.access(access, node, place, HOST_STREAM, next(program.numbers))
    if effect.write:
        program.ownership.wrote(effect.space, effect.spans)


def fence_reset(program: Program, reset: FenceReset) -> None:
    """A fence that was reset no longer stands for earlier submits. Rule: rules.md#an-unsignaled-fence-says-nothing."""
    fences_reset(program, reset)
    for fence in reset.fences:
        program.fences.pop(fence, None)


def destroyed(program: Program, gone: Destroyed) -> None:
    """Accesses of a destroyed resource conflict with nothing later: memory that is used again starts undefined. What
    the device still does there is not over because its buffer is gone.

    Specification: "Resource Memory Association"; VUID-vkDestroyBuffer-buffer-00922.
    Rule: rules.md#destroyed-resources-take-their-accesses-along.
    """
    program.accesses.forget(gone.space, gone.span, program.host.closed)
    program.ownership.forget(gone.space, gone.span, gone.resource)
    program.bindings.forget(gone.resource)
    object_gone(program, gone)
    program.semaphores.pop(gone.space, None)
    program.shared.discard(gone.space)


def ignored(program: Program, effect: UnmodelledCall) -> None:
    """A call without a rule may touch anything."""
    program.unmodelled(effect.what)

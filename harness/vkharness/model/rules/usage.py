"""Uses of semaphores and fences: what each of them must find (specification: valid usage of what waits and signals)."""

from __future__ import annotations

from vkharness.findings import Hazard, Place
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.object_uses import FenceUses, ObjectUse, SemaphoreUses
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import ACTION, Node
from vkharness.model.program import Program
from vkharness.trace.effects import (
    Acquired,
    Destroyed,
    FenceReset,
    HostWaited,
    Presented,
    SemaphoreCreated,
    Submission,
    Submitted,
)
from vkharness.trace.host_effects import DeviceLost, FenceCreated, UnseenSemaphore
from vkharness.trace.sparse_effects import BIND_SPARSE

SEMAPHORE, FENCE = "VkSemaphore", "VkFence"


def usage(program: Program, hazard: Hazard, resource: int, resource_type: str, prior: Place, current: Place) -> None:
    """A rule of valid usage is broken, and nothing follows for the order of accesses."""
    if hazard.is_object_usage and program.uses.lost:
        return
    earlier, later = (
        ModelAccess(place, "", False, program.order.add(Node(ACTION, hazard, place))) for place in (prior, current)
    )
    program.conflict(
        Conflict(ConflictKind.USAGE, earlier, later, resource, order=program.order, resource_type=resource_type)
    )


def device_lost(program: Program, effect: DeviceLost) -> None:
    """Ends all uses by a lost device: it is over for a host that was told, though no wait returned VK_SUCCESS.

    Specification: "Lost Device".
    Rules: rules.md#a-semaphore-is-destroyed-after-its-uses, rules.md#a-fence-is-reset-between-its-uses.
    """
    program.uses.lost = True


def semaphore_made(program: Program, created: SemaphoreCreated) -> None:
    """A binary semaphore begins unsignaled."""
    program.uses.semaphores[created.semaphore] = SemaphoreUses(created.by)


def fence_created(program: Program, created: FenceCreated) -> None:
    """A fence may begin signaled, and then needs a reset before its first use."""
    program.uses.fences[created.fence] = FenceUses(ObjectUse(created.by), signaled=True)


def given_away(program: Program, payload: int) -> None:
    """Nothing is known of the uses of a payload that somebody outside of the trace has, or had."""
    program.uses.foreign.add(payload)
    program.uses.semaphore(payload).foreign = True
    program.uses.fences.pop(payload, None)


def semaphore_unseen(program: Program, effect: UnseenSemaphore) -> None:
    """Excepts a semaphore that was made before the trace begins: its state is unknown, and whether it is a timeline."""
    given_away(program, effect.semaphore)


def moved(program: Program, source: int, target: int) -> None:
    """A pending signal goes over to another semaphore or fence."""
    program.uses.semaphore(target).is_signaled = program.uses.semaphore(source).is_signaled
    program.uses.semaphore(source).is_signaled = False
    program.uses.fences.pop(source, None)


def object_gone(program: Program, effect: Destroyed) -> None:
    """A semaphore that is destroyed is in use by nothing. The presentations of an image that is destroyed are over.

    Specification: VUID-vkDestroySemaphore-semaphore-05149, VUID-vkDestroySwapchainKHR-swapchain-01282.
    Rule: rules.md#a-semaphore-is-destroyed-after-its-uses.
    """
    uses = program.uses
    for key in [key for key in uses.shown if key[1] == effect.space]:
        uses.host |= uses.shown.pop(key)
    uses.foreign.discard(effect.space)
    held = uses.semaphores.pop(effect.space, None)
    if held is None or held.foreign or effect.by is None:
        return
    for each in (held.wait, held.signal):
        if each is not None and each.number is not None and each.number not in uses.host:
            usage(program, Hazard.SEMAPHORE_IN_USE, effect.space, SEMAPHORE, each.place, effect.by)
            return


def fences_reset(program: Program, reset: FenceReset) -> None:
    """A fence that is reset or destroyed is in use by no queue. An acquire is no command of a queue.

    Specification: VUID-vkResetFences-pFences-01123, VUID-vkDestroyFence-fence-01120.
    Rule: rules.md#a-fence-is-reset-between-its-uses.
    """
    for fence in reset.fences:
        held = program.uses.fences.pop(fence, None)
        if held is None or reset.by is None or held.use.place.queue is None:
            continue
        if not held.signaled and not held.use.may_be_over and not held.use.is_among(program.uses.host):
            usage(program, Hazard.FENCE_IN_USE, fence, FENCE, held.use.place, reset.by)


def _give(program: Program, fence: int, use: ObjectUse) -> None:
    """A fence that something is to signal must be unsignaled, and in use by nothing else.

    Specification: VUID-vkQueueSubmit-fence-00063, VUID-vkQueueSubmit-fence-00064, and the same of other commands.
    Rule: rules.md#a-fence-is-reset-between-its-uses.
    """
    uses = program.uses
    if fence in uses.foreign:
        return
    held = uses.fences.get(fence)
    if held is not None and held.use.place.call != use.place.call:
        complete = held.signaled or held.use.is_among(uses.host)
        hazard = Hazard.FENCE_SIGNALED if complete else Hazard.FENCE_IN_USE
        if complete or not held.use.may_be_over:
            usage(program, hazard, fence, FENCE, held.use.place, use.place)
    uses.fences[fence] = FenceUses(use)


# -- queues ------------------------------------------------------------------------------------------------------------


def given(program: Program, submit: Submitted, node: int) -> None:
    """Begins a submit, before which all is over that the host knows to be over. A batch of binds has no order with
    others: its fence alone tells of it."""
    program.uses.at[node] = program.uses.host
    if submit.fence:
        number = None if submit.name == BIND_SPARSE else program.uses.number()
        place = Place(submit.call, submit.name, submit.site, queue=submit.queue)
        _give(program, submit.fence, ObjectUse(place, number))


def begun(program: Program, submit: Submitted, batch: Submission | None, queue: int, node: int) -> ObjectUse:
    """A queue comes to a batch, or to the end of a submit without any. Answers with the use of semaphores that it is.
    With the last batch comes the signal of the fence."""
    uses = program.uses
    uses.hear(queue, uses.at.get(node, EMPTY))
    held = uses.fences.get(submit.fence)
    is_last = batch is None or batch is submit.batches[-1]
    if is_last and held is not None and held.use.place.call == submit.call and held.use.number is not None:
        uses.hear(queue, NodeNumbers.one(held.use.number))
    place = Place(submit.call, submit.name, submit.site, None, submit.call, batch.batch if batch else 0)
    return ObjectUse(place, uses.number()) if submit.name != BIND_SPARSE else ObjectUse(place)


def fence_given(program: Program, fence: int, queue: int) -> None:
    """The signal of a fence comes after all that its queue came after."""
    held = program.uses.fences.get(fence)
    if held is not None:
        held.before |= program.uses.queues.get(queue, EMPTY)


def batch_waits(program: Program, batch: Submission, queue: int, use: ObjectUse) -> None:
    """The waits of a batch, of which each sees the signal before it. This comes before they take the signals.

    A batch of binds has no order with other work: nothing but its fence tells when its waits are over.
    """
    for each in batch.waits:
        if each.end is None:
            signals = program.semaphore(each.semaphore).taken(each.value)
            program.uses.hear(queue, program.uses.before(each.semaphore, signals.direct))
            waited_for(program, each.semaphore, use)
    if use.number is not None:
        program.uses.hear(queue, NodeNumbers.one(use.number))


def waited_for(program: Program, id: int, use: ObjectUse) -> None:
    """A wait for a binary semaphore needs a signal that was submitted before.

    Specification: VUID-vkQueueSubmit2-semaphore-03873, VUID-vkQueuePresentKHR-pWaitSemaphores-03268.
    Rule: rules.md#a-wait-finds-its-signal-submitted.
    """
    held = program.uses.semaphore(id)
    if program.semaphore(id).timeline or held.foreign:
        return
    prior = held.wait.place if held.wait is not None else held.created
    if not held.is_signaled and prior is not None:
        usage(program, Hazard.SEMAPHORE_UNSIGNALED, id, SEMAPHORE, prior, use.place)
    held.wait, held.is_signaled = use if use.number is not None else None, False


def signaled(program: Program, id: int, use: ObjectUse, over: NodeNumbers) -> None:
    """A signal of a binary semaphore finds it unsignaled: there was a wait since the last signal, and it is over when
    the signal is executed, or when an image is acquired.

    Specification: VUID-vkQueueSubmit2-semaphore-03868, VUID-vkAcquireNextImageKHR-semaphore-01286,
    VUID-vkAcquireNextImageKHR-semaphore-01779.
    Rules: rules.md#a-signal-finds-its-semaphore-unsignaled, rules.md#a-semaphore-of-a-present-is-free-again.
    """
    held = program.uses.semaphore(id)
    if not program.semaphore(id).timeline and not held.foreign:
        if held.is_signaled and held.signal is not None:
            usage(program, Hazard.SEMAPHORE_SIGNALED, id, SEMAPHORE, held.signal.place, use.place)
        elif held.wait is not None and not held.wait.is_among(over):
            usage(program, Hazard.SEMAPHORE_IN_USE, id, SEMAPHORE, held.wait.place, use.place)
    held.signal, held.is_signaled = use, True


# -- presentation ------------------------------------------------------------------------------------------------------


def acquired_with(program: Program, effect: Acquired, node: int) -> None:
    """Nothing may be pending on a semaphore or a fence that an acquire is to signal. The signal comes after the waits
    of the last present of the image, and of those before it."""
    uses, use = program.uses, ObjectUse(Place(effect.call, effect.name, effect.site))
    uses.at[node] = uses.shown.get((effect.swapchain, effect.image), EMPTY)
    if effect.semaphore:
        signaled(program, effect.semaphore, use, uses.host)
    if effect.fence:
        _give(program, effect.fence, use)
        if effect.fence in uses.fences:
            uses.fences[effect.fence].before = uses.at[node]


def presented_with(program: Program, effect: Presented) -> None:
    """The presents of a queue are performed in order: one that shows an image has waited for its semaphores, and so
    have those before it. This comes before the waits take the signals.

    A shared presentable image is not acquired again, so that nothing but a fence would tell: its semaphores are not
    followed. Specification: "vkQueuePresentKHR", "VkSwapchainPresentFenceInfoKHR".
    Rule: rules.md#a-semaphore-of-a-present-is-free-again.
    """
    uses, queue = program.uses, effect.queue
    if not queue:  # images that are given back unpresented
        return
    use = ObjectUse(Place(effect.call, effect.name, effect.site, queue=queue), uses.number())
    over = uses.presents.get(queue, EMPTY) | NodeNumbers.one(use.number or 0)
    for semaphore in effect.waits:
        signals = program.semaphore(semaphore).taken(0)
        over |= uses.before(semaphore, signals.direct)
        waited_for(program, semaphore, use if effect.images else ObjectUse(use.place))
    uses.presents[queue] = over
    uses.shown.update(dict.fromkeys(effect.images, over))
    for _, fence in effect.fences:
        _give(program, fence, use)
        if fence in uses.fences:
            uses.fences[fence].before = over


# -- the host ----------------------------------------------------------------------------------------------------------


def host_learned(program: Program, waited: HostWaited) -> None:
    """A fence tells of what comes before its signal, an idle queue of all that it did, its presents' waits included.

    Specification: "vkQueueWaitIdle" (as if every command that accepts a fence had one), "vkDeviceWaitIdle".
    Rule: rules.md#a-semaphore-of-a-present-is-free-again.
    """
    uses = program.uses
    for fence in waited.fences:
        held = uses.fences.get(fence)
        if held is not None:
            held.signaled = True
            uses.host |= held.before
        elif fence in uses.foreign:
            uses.host |= NodeNumbers.of(range(uses.count))
    if waited.fences:
        return
    for several in (uses.queues, uses.presents):
        for queue, over in several.items():
            if waited.queue in (0, queue):
                uses.host |= over
    for held in uses.fences.values():
        if held.use.place.queue is not None and waited.queue in (0, held.use.place.queue):
            held.signaled = True

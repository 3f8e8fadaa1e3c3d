"""The presentation engine: it reads an image from the present until the image is acquired again (VK_KHR_swapchain)."""

from __future__ import annotations

from vkharness.findings import Place
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import NOTHING, PRESENT, SUBMIT, Node, NodeSet
from vkharness.model.past_access import ENGINE_STREAM
from vkharness.model.program import Program, Work
from vkharness.model.rules.semaphore import before_wait
from vkharness.model.rules.usage import acquired_with, presented_with
from vkharness.model.stages import ACCESS_KIND, ACCESS_KINDS
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.trace.effects import Access, Acquired, Presented

PRESENTED = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"].index
ACQUIRED = ACCESS_KIND["SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL"].index
WHOLE = (0, 1 << 62)
"""Every address of an image, as a span."""


def presented(program: Program, effect: Presented) -> None:
    """A present takes its turn in its queue, and waits for its semaphores there.

    It comes after what the host did and knows to be complete when it makes the call.
    """
    place = Place(effect.call, effect.name, effect.site, queue=effect.queue)
    label = f"{effect.name} ({effect.call})"
    node = program.order.add(Node(SUBMIT, label, place), (program.host, "a present is after the host"))
    program.queue(effect.queue).work.append(Work(effect, node))
    program.proceed()


def present(program: Program, effect: Presented, node: int) -> None:
    """The presentation of an image comes after the semaphores of the present, and after nothing else of the queue.

    What is available is visible to it, and it changes nothing. No fence and no wait for a queue includes it; a fence of
    its own comes after the semaphores, and after those of earlier presents to the swapchain. `node` is the node of the
    host's call. Specification: "vkQueuePresentKHR", "VkSwapchainPresentFenceInfoKHR". Rules:
    rules.md#a-present-waits-for-the-frame, rules.md#a-presented-image-belongs-to-the-engine,
    rules.md#fences-and-idle-waits-say-nothing-of-the-engine.
    """
    presented_with(program, effect)
    waited = program.order.set_of(node)
    for semaphore in effect.waits:
        waited |= before_wait(program, semaphore, 0)
    for swapchain, fence in effect.fences:
        turn = effect.queue, swapchain
        program.fences[fence] = program.present_fences[turn] = program.present_fences.get(turn, NOTHING) | waited
    place = Place(effect.call, effect.name, effect.site, queue=effect.queue)
    for swapchain, image in effect.images:
        label = f"presentation of image {image} of swapchain {swapchain}"
        node = program.order.add(Node(PRESENT, label, place), (waited, "a presentation is after its semaphores"))
        program.presented[image] = program.order.set_of(node)
        _engine(program, PRESENTED, image, node, place)
        family = program.families.get(effect.queue, VK_QUEUE_FAMILY_IGNORED)
        if family != VK_QUEUE_FAMILY_IGNORED:  # the engine shows what the queue's family owns
            use = ModelAccess(place, ACCESS_KINDS[PRESENTED].name, True, node)
            program.lose(program.ownership.use(image, image, (WHOLE,), family, use, True), use, image)


def acquired(program: Program, effect: Acquired) -> None:
    """The presentation engine reads an image that it handed out until it signals the semaphore or fence of the acquire.

    That signal comes after the image's last presentation, and after nothing else. Specification:
    "vkAcquireNextImageKHR". Rule: rules.md#an-acquired-image-waits-for-its-semaphore.
    """
    place = Place(effect.call, effect.name, effect.site)
    last = program.presented.get(effect.image, NOTHING)
    node = program.order.add(
        Node(PRESENT, f"acquisition of image {effect.image}", place), (last, "an acquisition is after the presentation")
    )
    done: NodeSet = program.order.set_of(node)
    acquired_with(program, effect, node)
    _engine(program, ACQUIRED, effect.image, node, place)
    if effect.semaphore:
        program.semaphore(effect.semaphore).add(0, done)
        program.proceed()
    if effect.fence:
        program.fences[effect.fence] = done


def _engine(program: Program, access_kind: int, image: int, node: int, place: Place) -> None:
    """Makes an access of the presentation engine. It needs an order alone: it writes nothing, and sees all that is
    available."""
    access = Access(access_kind, image, (WHOLE,), image)
    program.access(access, node, place, ENGINE_STREAM, next(program.numbers), automatic=True)

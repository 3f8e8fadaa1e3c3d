"""Frame loops: one, two and three frames in flight over two and three swapchain images.

A frame in flight has a fence and a uniform buffer that the host writes. Semaphores and command buffers are made anew
for each frame, and so is a fence that a twin did not wait for, so that no twin uses again what is still pending.
"""

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigDescriptorSet, RigPipeline
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.formats import format_of
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read

ACQUIRE, PRESENT = "vkAcquireNextImageKHR", "vkQueuePresentKHR"
BARRIER, DRAW = "vkCmdPipelineBarrier2", "vkCmdDraw"
OUTPUT, ATTACHED = "COLOR_ATTACHMENT_OUTPUT", "COLOR_ATTACHMENT_OPTIMAL"
DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
STILL_READ = [write_after_read("host write", DRAW)]
STILL_SHOWN = [write_after_read(BARRIER, ACQUIRE)]
NOT_OURS = [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)]
NOT_DONE = [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)]
SEVERAL = {"the fence / of the frame before": [], "the uniforms / shared by all frames": STILL_READ}
"""Dependencies that become weaker where several frames are in flight, and their hazards."""
USUAL = (2, 3)
"""Frames in flight and swapchain images of most programs."""


@dataclass(slots=True)
class _Slot:
    """Objects that one frame in flight has of its own."""

    uniform: RigBuffer
    descriptors: RigDescriptorSet
    fence: Any
    used: bool = False


class _Loop:
    """A frame loop over a swapchain, with `frames` frames in flight.

    The images are acquired ahead, as many as can be, and drawn to in that order: a headless surface hands out the free
    image with the lowest number, so that one image alone would come around otherwise.
    """

    def __init__(self, rig: Rig, frames: int, images: int, *, ahead: bool = True, at_once: int = 1) -> None:
        self.rig = rig
        self.chain = rig.shown_swapchain(images=images, at_once=at_once)
        self.pipeline = self._pipeline()
        self.slots = [self._slot() for _ in range(frames)]
        self.held: deque[tuple[int, Any]] = deque()
        for _ in range(self.chain.at_once if ahead else 0):
            self.acquire()

    def _pipeline(self) -> RigPipeline:
        image = self.chain.images[0]
        return self.rig.graphics("uniform_color", colors=[format_of(image.format).name], extent=image.extent[:2])

    def _slot(self) -> _Slot:
        uniform = self.rig.buffer(16)
        return _Slot(uniform, self.rig.descriptors(self.pipeline, b0=uniform), self.rig.fence())

    def acquire(self) -> None:
        """Acquires one more image."""
        acquired = self.rig.semaphore()
        self.held.append((self.rig.acquire(self.chain, acquired), acquired))

    def wait(self, slot: _Slot, *, named: bool = False) -> None:
        """The host waits for the frame that used this slot last, and resets its fence."""
        if not slot.used:
            return
        before = self.slots[self.slots.index(slot) - 1].fence
        waited = slot.fence
        if named:
            waited = self.rig.choose("the fence", slot.fence, {"of the frame before": before})
        if waited is not None:
            self.rig.wait(waited)
        if waited is slot.fence:
            self.rig.reset_fence(slot.fence)
        else:
            slot.fence = self.rig.fence()

    def update(self, number: int, slot: _Slot) -> None:
        """The host writes the uniforms of a frame: its colour."""
        self.rig.host_write(slot.uniform, struct.pack("<4f", (number + 1) / 15, 0.4, 0.2, 1.0))

    def frame(self, number: int, *, named: bool = False, shares: bool = False, pick: int = 0) -> None:
        """One frame, drawn to the image at `pick` of those that are held.

        `named` makes what it waits for dependencies of the scenario, `shares` whose uniforms it has.
        """
        slot = self.slots[number % len(self.slots)]
        self.wait(slot, named=named)
        holder = slot
        if shares:
            holder = self.rig.choose("the uniforms", slot, {"shared by all frames": self.slots[0]})
        self.update(number, holder)
        index, acquired = self.held[pick]
        del self.held[pick]
        self.show(slot, self.record(index, holder, named=named), index, acquired, named=named)
        self.acquire()

    def show(self, slot: _Slot, commands: Commands, index: int, acquired: Any, *, named: bool) -> None:
        """Submits what draws to an image, and presents the image."""
        rig, done = self.rig, SemaphoreUse(self.rig.semaphore())
        waits, shown = [SemaphoreUse(acquired, OUTPUT)], [done]
        if named:
            waits = rig.operation("the acquire", acquired, OUTPUT, weaker={"at clears": {"stages": "CLEAR"}})
            shown = rig.operation("the present", done.semaphore)
        rig.submit(commands, waits=waits, signals=[done], fence=slot.fence, sync2=True)
        slot.used = True
        if not waits:
            rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
        rig.present((self.chain, index), waits=[each.semaphore for each in shown])

    def record(self, index: int, holder: _Slot, *, named: bool) -> Commands:
        """A draw in the colour of the uniform buffer to the whole image, between the transitions that it needs."""
        with self.rig.commands() as commands:
            self.draw(commands, index, self.pipeline, holder.descriptors, named=named)
        return commands

    def draw(
        self, commands: Commands, index: int, pipeline: RigPipeline, held: RigDescriptorSet, *, named: bool
    ) -> None:
        """Records a draw to a whole swapchain image."""
        image = self.chain.images[index]
        commands.barrier(
            "the transition" if named else "",
            OUTPUT,
            DRAWN,
            image=image,
            old="UNDEFINED",
            new=ATTACHED,
            weaker={"from the top of the pipe": {"src": "TOP_OF_PIPE"}},
        )
        attached = RenderingAttachment(self.rig.view(image), layout=ATTACHED, load="DONT_CARE")
        commands.begin_rendering(attached, area=(0, 0, *image.extent[:2]))
        commands.bind(pipeline, held)
        commands.draw()
        commands.end_rendering()
        commands.transition(image, src=DRAWN, dst="NONE", old=ATTACHED, new=SHOWN)

    def drop(self) -> None:
        """Waits for the acquires of the images that no frame has drawn to, and forgets these images."""
        self.rig.submit(waits=[SemaphoreUse(acquired) for _, acquired in self.held])
        self.held.clear()

    def recreate(self, extent: tuple[int, int]) -> None:
        """Replaces the swapchain by one of another size, while frames are in flight."""
        self.drop()
        self.chain = self.rig.swapchain(self.chain, images=len(self.chain.images), extent=extent)
        self.pipeline = self._pipeline()
        for _ in range(self.chain.at_once):
            self.acquire()


def _run(rig: Rig, frames: int, images: int) -> None:
    """As many frames as it takes until each frame in flight and each image is used again."""
    loop = _Loop(rig, frames, images)
    for number in range(max(frames, images) + 3):
        # The first frame that uses again what is a frame in flight's own, and one whose image has come around.
        loop.frame(number, named=number == max(frames, images), shares=frames > 1 and number == frames + 1)
    loop.drop()


@scenario(
    without={"the fence": STILL_READ},
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_one_frame_in_flight_over_two_images(rig: Rig) -> None:
    """One frame in flight: the host waits for each frame before it writes the uniforms of the next one."""
    _run(rig, 1, 2)


@scenario(
    without={"the fence": STILL_READ},
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_one_frame_in_flight_over_three_images(rig: Rig) -> None:
    """One frame in flight over three images: the number of images changes nothing of what the host waits for."""
    _run(rig, 1, 3)


@scenario(
    without={"the fence": STILL_READ},
    weakened=SEVERAL,
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_two_frames_in_flight_over_two_images(rig: Rig) -> None:
    """Two frames in flight: the host waits for the frame before the previous one; each has uniforms of its own."""
    _run(rig, 2, 2)


@scenario(
    without={"the fence": STILL_READ, "the acquire": NOT_OURS, "the present": NOT_DONE},
    weakened={
        **SEVERAL,
        "the acquire / at clears": STILL_SHOWN,
        "the transition / from the top of the pipe": STILL_SHOWN,
    },
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it,an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame",
)
def scenario_two_frames_in_flight_over_three_images(rig: Rig) -> None:
    """Two frames in flight over three images: a frame's slot and its image come around independently."""
    _run(rig, 2, 3)


@scenario(
    without={"the fence": STILL_READ},
    weakened=SEVERAL,
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_three_frames_in_flight_over_two_images(rig: Rig) -> None:
    """More frames in flight than images: an image comes around while its last frame is in flight, and the acquire's
    semaphore is all that its next frame needs."""
    _run(rig, 3, 2)


@scenario(
    without={"the fence": STILL_READ},
    weakened=SEVERAL,
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-fence-covers-everything-before-it",
)
def scenario_three_frames_in_flight_over_three_images(rig: Rig) -> None:
    """Three frames in flight over three images: the host waits for the frame three before."""
    _run(rig, 3, 3)


@scenario(
    weakened={"the semaphore / of the oldest acquire": NOT_OURS},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,an-acquire-stands-for-its-own-image",
)
def scenario_images_acquired_out_of_order(rig: Rig) -> None:
    """Images come around in any order: a frame waits for the acquire that gave its image, not for the next in turn."""
    loop = _Loop(rig, *USUAL, at_once=2)
    for number, pick in enumerate((1, 1, 0, 1)):
        semaphores = [acquired for _, acquired in loop.held]
        if number == 3 and rig.choose("the semaphore", pick, {"of the oldest acquire": 0}) == 0:
            semaphores[0], semaphores[pick] = semaphores[pick], semaphores[0]
        loop.held = deque(zip((index for index, _ in loop.held), semaphores, strict=True))
        loop.frame(number, pick=pick)
    loop.drop()


@scenario(
    without={"the fence": STILL_READ, "the present": NOT_DONE},
    weakened={"the fence / of the frame before": []},
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,a-present-waits-for-the-frame",
)
def scenario_swapchain_recreated_between_frames(rig: Rig) -> None:
    """A new swapchain of another size orders nothing: frames in flight wait for each other as before."""
    loop = _Loop(rig, *USUAL)
    for number in range(2):
        loop.frame(number)
    loop.recreate((24, 8))
    for number in (2, 3):
        loop.frame(number, named=number == 2)
    loop.drop()


class _TwoSubmits(_Loop):
    """A frame loop with two submits a frame: the main passes before the acquire, the presentation passes after it."""

    def __init__(self, rig: Rig, frames: int, images: int) -> None:
        super().__init__(rig, frames, images, ahead=False)
        self.offscreen = rig.target()
        self.main = rig.graphics("uniform_color")
        formats = [format_of(self.chain.images[0].format).name]
        self.sample = rig.graphics("sample_color", colors=formats)
        view = rig.view(self.offscreen)
        self.target = RenderingAttachment(view)
        self.sampled = rig.descriptors(self.sample, b0=(view, rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
        with rig.submission() as commands:
            commands.transition(self.offscreen)

    def frame(self, number: int, *, named: bool = False, shares: bool = False, pick: int = 0) -> None:
        rig, slot = self.rig, self.slots[number % len(self.slots)]
        self.wait(slot, named=named)
        self.update(number, slot)
        with rig.commands() as main:
            before = "presentation before main" if named else ""
            main.barrier(before, "FRAGMENT_SHADER", DRAWN, weaker={"of vertices": {"src": "VERTEX_SHADER"}})
            main.begin_rendering(self.target)
            main.bind(self.main, slot.descriptors)
            main.draw()
            main.end_rendering()
        rig.submit(main, sync2=True)
        self.acquire()
        index, acquired = self.held.popleft()
        with rig.commands() as presentation:
            presentation.barrier(
                "main before presentation" if named else "",
                DRAWN,
                "FRAGMENT_SHADER/SHADER_SAMPLED_READ",
                weaker={"execution only": {"src": OUTPUT, "dst": "FRAGMENT_SHADER"}},
            )
            self.draw(presentation, index, self.sample, self.sampled, named=named)
        self.show(slot, presentation, index, acquired, named=named)


NOT_SAMPLED = [read_after_write(DRAW, "vkCmdEndRendering")]
STILL_SAMPLED = [write_after_read("vkCmdBeginRendering", DRAW)]


@scenario(
    without={
        "the fence": STILL_READ,
        "presentation before main": STILL_SAMPLED,
        "main before presentation": NOT_SAMPLED,
        "the acquire": NOT_OURS,
        "the present": NOT_DONE,
    },
    weakened={
        "presentation before main / of vertices": STILL_SAMPLED,
        "main before presentation / execution only": NOT_SAMPLED,
    },
    needs=PRESENTS,
    rule="a-host-write-waits-for-the-device,an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame,read-after-write,write-after-read",
)
def scenario_main_passes_before_the_acquire(rig: Rig) -> None:
    """The main passes may be submitted before an image is acquired: only the passes that touch the image wait for it.
    A barrier is all that orders the two submits."""
    loop = _TwoSubmits(rig, *USUAL)
    for number in range(4):
        loop.frame(number, named=number == 3)


@scenario(
    without={"the wait": NOT_DONE},
    weakened={"the wait / of an earlier submit": NOT_DONE, "the wait / idle queue": []},
    needs=PRESENTS,
    rule="a-present-waits-for-the-frame,a-fence-covers-everything-before-it",
)
def scenario_present_with_no_semaphore(rig: Rig) -> None:
    """A present on the queue of its frame is not ordered behind it. With no semaphore, the host waits for the frame."""
    loop, earlier = _Loop(rig, 1, 2), rig.fence()
    slot, (index, acquired) = loop.slots[0], loop.held.popleft()
    rig.submit(fence=earlier)
    loop.update(0, slot)
    frame = loop.record(index, slot, named=False)
    rig.submit(frame, waits=[SemaphoreUse(acquired, OUTPUT)], fence=slot.fence, sync2=True)
    weaker: dict[str, dict[str, Any]] = {"of an earlier submit": {"fences": (earlier,)}, "idle queue": {"how": "queue"}}
    rig.host_wait("the wait", "all", slot.fence, weaker=weaker)
    rig.present((loop.chain, index))
    loop.drop()

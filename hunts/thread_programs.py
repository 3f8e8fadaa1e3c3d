"""Programs of the threads of `thread_hunt`: random steps on a part of a device, and work with shared objects.

The parts of a program have at most one call each that orders anything (a submit, a wait, a signal of the host). So the
programs of several threads can be run in one thread, part by part, in the order in which the threads made those calls.
One submit is made while no other thread is in a part: behind a wait for the host nothing is known of memory, and what a
command that is recorded meanwhile accesses may depend on that.

A thread has its own command pools, resources and events. Queues, a timeline semaphore, a buffer that is only read, a
pipeline and a descriptor pool are shared. What the specification asks to be externally synchronized is used under a
lock ("Threading Behavior").
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.fuzz.random_steps import make
from vkharness.fuzz.step_player import StepPlayer
from vkharness.rig.core import RigDescriptorSet
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rig import Rig

QUEUES = ("GRAPHICS", "GRAPHICS")
"""Kinds of queues beside the first one. Logical queues stand for those that a device lacks."""
SETS = 256
"""Descriptor sets of the shared pool."""


class LockedQueues:
    """The `vulkan` package for several threads: one call at a time for each queue."""

    def __init__(self, vk: Any, queues: Sequence[DeviceQueue]) -> None:
        self._vk = vk
        self._locks = {each.handle: threading.Lock() for each in queues}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vk, name)

    def vkQueueSubmit(self, queue: Any, *rest: Any) -> None:
        """Submits while no other thread uses the queue."""
        with self._locks[queue]:
            self._vk.vkQueueSubmit(queue, *rest)

    def vkQueueSubmit2(self, queue: Any, *rest: Any) -> None:
        """Submits while no other thread uses the queue."""
        with self._locks[queue]:
            self._vk.vkQueueSubmit2(queue, *rest)

    def vkQueueWaitIdle(self, queue: Any) -> None:
        """Waits while no other thread uses any queue: where logical queues stand for some, it waits for all of them."""
        with ExitStack() as stack:
            for lock in self._locks.values():
                stack.enter_context(lock)
            self._vk.vkQueueWaitIdle(queue)


class Gate:
    """Lets several threads in, or one alone. A thread that wants to be alone keeps later ones out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._alone = False
        self._mine = threading.local()

    def enter(self) -> None:
        """Comes in beside others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._inside += 1
            self._mine.inside = True

    def leave(self) -> None:
        """Goes out, if this thread is inside."""
        with self._changed:
            self._inside -= getattr(self._mine, "inside", False)
            self._mine.inside = False
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Goes out, comes in alone, and is outside afterwards."""
        self.leave()
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


class SharedParts:
    """Objects that the threads of one device share."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.gate = Gate()
        """Every part runs inside, but for those that end what other threads wait for."""
        self.functions = LockedQueues(rig.vk, rig.queues)
        self.words = rig.buffer(256, data=bytes(range(256)))
        """Nobody writes it any more."""
        self.pipeline = rig.compute("copy_words", push_bytes=16)
        self.timeline = rig.timeline()
        self.value = 0
        """The last value that something submitted signals."""
        self.chain, self.pool = threading.Lock(), threading.Lock()
        """Locks of `value` and of the descriptor pool."""
        vk, types = rig.vk, self.pipeline.shape.sets[0].types
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=SETS * count) for kind, count in types.values()]
        info = vk.VkDescriptorPoolCreateInfo(
            flags=vk.VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
            maxSets=SETS,
            poolSizeCount=len(sizes),
            pPoolSizes=sizes,
        )
        self._pool = rig.own("DescriptorPool", vk.vkCreateDescriptorPool(rig.device, info, None))

    def descriptor_set(self) -> RigDescriptorSet:
        """A set of the shared pool."""
        layout = self.pipeline.shape.sets[0]
        info = self.rig.vk.VkDescriptorSetAllocateInfo(
            descriptorPool=self._pool, descriptorSetCount=1, pSetLayouts=[layout.handle]
        )
        with self.pool:
            return RigDescriptorSet(self.rig.vk.vkAllocateDescriptorSets(self.rig.device, info)[0], layout)

    def free(self, made: RigDescriptorSet) -> None:
        """Gives a set back to the shared pool."""
        with self.pool:
            self.rig.vk.vkFreeDescriptorSets(self.rig.device, self._pool, 1, [made.handle])


class ThreadPlayer(StepPlayer):
    """Plays the steps of one thread."""

    def __init__(self, rig: Rig, gate: Gate) -> None:
        super().__init__(rig, settled=False)
        self._gate = gate

    def _late_host(self, buffer: int, other: int, src: str, dst: str, writes: bool) -> Iterator[bool | None]:
        parts = super()._late_host(buffer, other, src, dst, writes)
        with self._gate.alone():
            next(parts)
        yield True
        next(parts)
        yield True
        yield from parts


def program(shared: SharedParts, queue: DeviceQueue, seed: int, jobs: int) -> Iterator[bool | None]:
    """The work of one thread, in parts: so many jobs, each of which makes its resources and destroys them.

    Yields True before a part that may not wait for other threads, since they may wait for it.
    """
    rng = random.Random(seed)
    for _ in range(jobs):
        with shared.rig.apart(queue, shared.functions) as rig:
            player = ThreadPlayer(rig, shared.gate)
            yield from player.settle_layouts()
            yield from player.parts(make(rng.randrange(1 << 32)))
            yield None
            yield from _shared_work(shared, rig, player)
            rig.wait()
        yield None


def _shared_work(shared: SharedParts, rig: Rig, player: StepPlayer) -> Iterator[None]:
    """Copies from the shared buffer in two ways, in a batch that comes after the last one of any thread."""
    held = shared.descriptor_set()
    rig.update(held, b0=(shared.words, 0, 128), b1=(player.buffers[0], 0, 128))
    with rig.commands() as commands:
        commands.copy(shared.words, player.buffers[1], (0, 0, 64))
        commands.bind(shared.pipeline, held)
        commands.push_constants(shared.pipeline, 8, 8, 1, 0)
        commands.dispatch()
    with shared.chain:
        before, shared.value = shared.value, shared.value + 1
        value = shared.value
        waits, signals = [SemaphoreUse(shared.timeline, value=before)], [SemaphoreUse(shared.timeline, value=value)]
        rig.submit(commands, waits=waits, signals=signals, sync2=bool(value % 2))
    yield
    rig.host_wait_timeline("", (shared.timeline, value))
    yield
    shared.free(held)

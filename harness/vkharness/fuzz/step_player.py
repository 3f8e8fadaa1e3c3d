"""Plays steps of random streams on a rig: whatever is left out of a stream, what is submitted is valid and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from vkharness.findings import UserError
from vkharness.fuzz.host_player import HostPlayer
from vkharness.fuzz.loading_player import LoadingPlayer
from vkharness.fuzz.random_rendering import RandomRendering
from vkharness.fuzz.random_steps import SEMAPHORES, TIMELINES, RandomBatch, Step
from vkharness.fuzz.rendering_player import RenderingPlayer
from vkharness.fuzz.texel_player import TexelPlayer
from vkharness.layer.listen import LayerListener
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigEvent
from vkharness.rig.events import RESET, SET, WAIT
from vkharness.rig.queues import RigBatch, SemaphoreUse
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkImageUsage, VkPipelineCreate, VkPipelineStage2, VkQueryResult, VkQueryType

PUSH_DESCRIPTORS, LOAD_STORE_NONE = "VK_KHR_push_descriptor", "VK_EXT_load_store_op_none"
DISPATCH_BASE = VkPipelineCreate.DISPATCH_BASE
"""VK_PIPELINE_CREATE_DISPATCH_BASE_BIT"""
IMAGE_USAGE = (
    VkImageUsage.TRANSFER_SRC
    | VkImageUsage.TRANSFER_DST
    | VkImageUsage.SAMPLED
    | VkImageUsage.STORAGE
    | VkImageUsage.COLOR_ATTACHMENT
    | VkImageUsage.INPUT_ATTACHMENT
)
"""TRANSFER_SRC, TRANSFER_DST, SAMPLED, STORAGE, COLOR_ATTACHMENT, INPUT_ATTACHMENT."""
DEPTH_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.DEPTH_STENCIL_ATTACHMENT
QUERIES = 4
TIMESTAMPS = VkQueryType.TIMESTAMP
BOTTOM_OF_PIPE = VkPipelineStage2.BOTTOM_OF_PIPE
OF_THE_HOST = (
    "idle", "wait", "submit", "event", "host_wait", "host_signal", "host_access", "host_sets", "late_host",
)  # fmt: skip
"""Steps that are no commands."""


def open_rig(listener: LayerListener | None) -> Rig:
    """A rig with those extensions that the device has."""
    for names in ((PUSH_DESCRIPTORS, LOAD_STORE_NONE), (PUSH_DESCRIPTORS,), (LOAD_STORE_NONE,)):
        with suppress(UserError):
            return Rig(names, listener)
    return Rig((), listener)


class StepPlayer(HostPlayer, LoadingPlayer, RenderingPlayer, TexelPlayer):
    """Records steps on a rig. Command buffers end when the next begins or at their first submit."""

    def __init__(self, rig: Rig, settled: bool = True) -> None:
        """Without `settled`, `settle_layouts` comes before the first step."""
        super().__init__(rig)
        shared = rig.memory(4096)
        self.buffers = [rig.buffer(256), rig.buffer(256), rig.buffer(256, shared), rig.buffer(256, shared, 1024)]
        self.images = [rig.image(extent=(8, 8, 1), mips=2, layers=2, usage=IMAGE_USAGE) for _ in range(2)]
        self.depth = rig.image("VK_FORMAT_D32_SFLOAT_S8_UINT", (8, 8, 1), usage=DEPTH_USAGE)
        self.samples = rig.image(extent=(8, 8, 1), samples=4)
        self.counts = rig.buffer(64)
        self.fences: list[Any] = [rig.fence(), rig.fence()]
        self.pending: set[int] = set()
        self.semaphores: list[Any] = []
        self.signaled: set[int] = set()
        self.timelines: list[Any] = []
        self.values = [0] * TIMELINES
        """Of each timeline, the last value that something submitted signals."""
        self.events: dict[int, RigEvent] = {}
        self.queries: Any = None
        self.pipelines: dict[tuple[str, bool, int], Any] = {}
        self.recorded: list[Commands] = []
        self.secondaries: list[Commands] = []
        self._open: Any = None
        if settled:
            list(self.settle_layouts())

    def settle_layouts(self) -> Iterator[None]:
        """Brings all images into their layouts, in parts as those of `parts`."""
        yield from self._settle((*self.images, self.depth, self.samples))

    def play(self, steps: Sequence[Step]) -> None:
        """Plays a whole stream."""
        list(self.parts(steps))

    def parts(self, steps: Sequence[Step]) -> Iterator[bool | None]:
        """Plays a whole stream in parts, each with one call at most that submits, waits or signals."""
        for step in steps:
            yield from self.parts_of(step)
        self._end()

    def parts_of(self, step: Step) -> Iterator[bool | None]:
        """Plays one step, as `parts` does. The last command buffer stays open."""
        name, *rest = step
        if name == "next":
            self._end()
        elif name in OF_THE_HOST:
            yield from getattr(self, f"_{name}")(*rest) or ()
        else:
            getattr(self, f"_{name}")(self._current(), *rest)
        yield None

    def _idle(self) -> None:
        self.rig.wait()

    def _current(self) -> Commands:
        if self._open is None:
            self._open = self.rig.commands()
            self.recorded.append(self._open.__enter__())
        return self.recorded[-1]

    def _end(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None

    # -- submits -------------------------------------------------------------------------------------------------------

    def _submit(self, batches: list[RandomBatch], fence: int | None) -> None:
        self._end()
        states = {event: event.signaled for event in self.events.values()}
        chosen = [batch for each in batches if (batch := self._batch(each, states)) is not None]
        free = fence is not None and fence not in self.pending
        if chosen:
            first = chosen[0]
            sync2 = bool((len(first.commands) + len(first.waits) + len(first.signals)) % 2)
            signal = self.fences[fence] if free and fence is not None else None
            self.rig.submit_batches(*chosen, fence=signal, sync2=sync2)
            self.pending |= {fence} if free and fence is not None else set()

    def _batch(self, each: RandomBatch, states: dict[RigEvent, bool]) -> RigBatch | None:
        """Gives the part of a batch that can be submitted now; None for nothing."""
        waits = [self._operation(*wait) for wait in each["waits"] if self._can_wait(*wait)]
        self.signaled -= {at for at, _, value in each["waits"] if not value}
        numbers = [at for at in each["buffers"] if at < len(self.recorded)]
        held = [self.recorded[at] for at in numbers if ends(self.recorded[at], states)]
        signals = [self._signal(*signal) for signal in each["signals"] if signal[2] or signal[0] not in self.signaled]
        return RigBatch(held, waits, signals) if held or waits or signals else None

    def _can_wait(self, at: int, _stages: str, value: int) -> bool:
        return value <= self.values[at] if value else at in self.signaled

    def _operation(self, at: int, stages: str, value: int) -> SemaphoreUse:
        if not self.semaphores:
            self.semaphores = [self.rig.semaphore() for _ in range(SEMAPHORES)]
        if value and not self.timelines:
            self.timelines = [self.rig.timeline() for _ in range(TIMELINES)]
        return SemaphoreUse((self.timelines if value else self.semaphores)[at], stages, value)

    def _signal(self, at: int, stages: str, value: int) -> SemaphoreUse:
        if not value:
            self.signaled.add(at)
            return self._operation(at, stages, 0)
        self.values[at] += 1
        return self._operation(at, stages, self.values[at])

    # -- transfer ------------------------------------------------------------------------------------------------------

    def _fill(self, commands: Commands, at: int, begin: int, size: int) -> None:
        commands.fill(self.buffers[at], 0xABCD, begin, size)

    def _update(self, commands: Commands, at: int, begin: int, size: int) -> None:
        commands.update(self.buffers[at], bytes(size), begin)

    def _copy(self, commands: Commands, one: int, other: int, regions: list[Any], v2: bool) -> None:
        commands.copy(self.buffers[one], self.buffers[other], *regions, v2=v2)

    def _buffer_to_image(self, commands: Commands, buffer: int, image: int, part: Any, v2: bool) -> None:
        commands.buffer_to_image(self.buffers[buffer], self.images[image], part, v2=v2)

    def _image_to_buffer(self, commands: Commands, image: int, buffer: int, part: Any, v2: bool) -> None:
        commands.image_to_buffer(self.images[image], self.buffers[buffer], part, v2=v2)

    def _clear_color(self, commands: Commands, image: int, whole: dict[str, Any]) -> None:
        commands.clear_color(self.images[image], **whole)

    def _clear_depth_stencil(self, commands: Commands, aspects: int) -> None:
        commands.clear_depth_stencil(self.depth, aspects=aspects)

    def _copy_image(self, commands: Commands, one: int, other: int, read: Any, write: Any, v2: bool) -> None:
        commands.copy_image(self.images[one], self.images[other], read, write, v2=v2)

    def _blit(
        self, commands: Commands, one: int, other: int, read: Any, write: Any, v2: bool, linear: bool = False
    ) -> None:
        commands.blit(self.images[one], self.images[other], read, write, v2=v2, linear=linear)

    def _resolve(self, commands: Commands, image: int, read: Any, write: Any, v2: bool) -> None:
        commands.resolve(self.samples, self.images[image], read, write, v2=v2)

    def _clear_samples(self, commands: Commands) -> None:
        commands.clear_color(self.samples)

    def _depth_to_buffer(self, commands: Commands, buffer: int, aspect: int, part: Any, v2: bool) -> None:
        commands.image_to_buffer(self.depth, self.buffers[buffer], {**part, "aspect": aspect}, v2=v2)

    def _buffer_to_stencil(self, commands: Commands, buffer: int, part: Any, v2: bool) -> None:
        commands.buffer_to_image(self.buffers[buffer], self.depth, {**part, "aspect": 4}, v2=v2)

    def _write_counts(self, commands: Commands, begin: int, size: int, how: str) -> None:
        if how == "fill":
            commands.fill(self.counts, 0, begin, size)
        else:
            commands.update(self.counts, bytes(size), begin)

    def _read_counts(self, commands: Commands, begin: int, buffer: int, v2: bool) -> None:
        commands.copy(self.counts, self.buffers[buffer], (begin, 0, 12), v2=v2)

    # -- queries -------------------------------------------------------------------------------------------------------

    def _timestamp(self, commands: Commands, query: int) -> None:
        commands.vk.vkCmdResetQueryPool(commands.handle, self._pool(), query, 1)
        commands.vk.vkCmdWriteTimestamp(commands.handle, BOTTOM_OF_PIPE, self._pool(), query)

    def _copy_results(
        self, commands: Commands, first: int, count: int, buffer: int, offset: int, stride: int, flags: int
    ) -> None:
        for query in range(first, first + count):
            self._timestamp(commands, query)
        where, flags = self.buffers[buffer].handle, flags | VkQueryResult.WAIT
        commands.vk.vkCmdCopyQueryPoolResults(commands.handle, self._pool(), first, count, where, offset, stride, flags)

    def _pool(self) -> Any:
        if self.queries is None:
            vk = self.rig.vk
            info = vk.VkQueryPoolCreateInfo(queryType=TIMESTAMPS, queryCount=QUERIES)
            self.queries = self.rig.own("QueryPool", vk.vkCreateQueryPool(self.rig.device, info, None))
            vk.vkResetQueryPool(self.rig.device, self.queries, 0, QUERIES)
        return self.queries

    # -- synchronization -----------------------------------------------------------------------------------------------

    def _named(self, several: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        images = [*self.images, self.depth]
        return [
            {
                **each,
                **({"buffer": self.buffers[each["buffer"]]} if "buffer" in each else {}),
                **({"image": images[each["image"]]} if "image" in each else {}),
            }
            for each in several
        ]

    def _barriers(self, commands: Commands, several: list[dict[str, Any]]) -> None:
        commands.barriers("", *self._named(several))

    def _sampled_by_region(
        self, commands: Commands, several: list[dict[str, Any]], spec: RandomRendering, inner: list[Step]
    ) -> None:
        self._barriers(commands, several)
        self._rendering(commands, spec, inner)

    def _event(self, at: int, several: list[dict[str, Any]]) -> None:
        first = several[0]
        held = self._named(several)
        self.events[at] = self.rig.event("", first["src"], first["dst"], sync2=first["sync2"], several=held)

    def _set_event(self, commands: Commands, at: int) -> None:
        if at in self.events:
            commands.set_event(self.events[at])

    def _reset_event(self, commands: Commands, at: int, stages: str) -> None:
        if at in self.events:
            commands.reset_event(self.events[at], stages)

    def _wait_events(self, commands: Commands, several: list[int]) -> None:
        held = [self.events[at] for at in several if at in self.events]
        alike = [each for each in held if each.sync2 == held[0].sync2]
        if alike:
            # One wait of the first form is one dependency for all its events; layers test it event by event.
            commands.wait_events(*(alike if alike[0].sync2 else alike[:1]))

    def _wait_otherwise(self, commands: Commands, at: int, src: str, dst: str, sync2: bool) -> None:
        if at in self.events:
            commands.wait_otherwise(self.events[at], src, dst, sync2=sync2)

    def _secondary(self, commands: Commands, steps: list[Step]) -> None:
        with self.rig.secondary() as inner:
            for name, *rest in steps:
                getattr(self, f"_{name}")(inner, *rest)
        self.secondaries.append(inner)
        commands.execute(inner)

    def _execute(self, commands: Commands, several: list[int]) -> None:
        held = [self.secondaries[at] for at in several if at < len(self.secondaries)]
        if held:
            commands.execute(*held)

    # -- compute -------------------------------------------------------------------------------------------------------

    def _indirect(self, commands: Commands, begin: int, buffer: int) -> None:
        self._bind(commands, "scale_words", buffer, buffer, 0, 0, "plain")
        commands.dispatch_indirect(self.counts, begin)

    def _store_words(self, commands: Commands, shader: str, buffer: int, first: int, count: int, base: int) -> None:
        """A dispatch of one workgroup, with a base: the words of the buffer from `first` on, `count` at most."""
        key = (shader, False, DISPATCH_BASE)
        if key not in self.pipelines:
            self.pipelines[key] = self.rig.compute(shader, push_bytes=12, flags=DISPATCH_BASE)
        pipeline = self.pipelines[key]
        commands.bind(pipeline, self.rig.descriptors(pipeline, b0=self.buffers[buffer]))
        words = {"tile_words": (first % 24, 4, 7), "count_and_store": (first, 7, 0)}
        commands.push_constants(pipeline, *words.get(shader, (first, min(64 - first, count), 7)))
        commands.dispatch_base((base if shader == "limited_words" else 0, 0, 0), (1, 1, 1))

    def _dispatch(
        self, commands: Commands, shader: str, first: int, second: int, offset: int, image: int, how: str
    ) -> None:
        self._bind(commands, shader, first, second, offset, image, how)
        if how == "base":
            commands.dispatch_base((0, 0, 0), (1, 1, 1))
        else:
            commands.dispatch()

    def _bind(
        self, commands: Commands, shader: str, first: int, second: int, offset: int, image: int, how: str
    ) -> None:
        one, other = (self.buffers[first], offset, 128), (self.buffers[second], 0, 128)
        view = (self.view(image, 0), None, 1)
        sampled = (self.view(image, 0), self.sampler, 1)
        held = {
            "copy_words": (one, other),
            "scale_words": (one,),
            "fill_words_writeonly": (one,),
            "atomic_add": (one,),
            "length_only": (one, other),
            "sum_uniform": (one, other),
            "image_store_2d": (view,),
            "image_load_2d": (view, other),
            "sample_2d": (sampled, other),
        }[shader]
        push = how == "push" and PUSH_DESCRIPTORS in self.rig.gpu.device_extensions
        flags = DISPATCH_BASE if how == "base" else 0
        key = (shader, push, flags)
        if key not in self.pipelines:
            self.pipelines[key] = self.rig.compute(shader, push_bytes=16, push=push, flags=flags)
        pipeline = self.pipelines[key]
        named = {f"b{at}": each for at, each in enumerate(held)}
        commands.bind(pipeline, None if push else self.rig.descriptors(pipeline, **named))
        if push:
            commands.push_descriptors(pipeline, **named)
        commands.push_constants(pipeline, 8, 8, 1, 0)


def ends(commands: Commands, states: dict[RigEvent, bool]) -> bool:
    """True when a command buffer waits for no event that is not set by then; takes in what it does to events."""
    after = dict(states)
    for what, event in commands.event_operations:
        if what == WAIT and not after[event]:
            return False
        if what in (SET, RESET):
            after[event] = what == SET
    states.update(after)
    return True

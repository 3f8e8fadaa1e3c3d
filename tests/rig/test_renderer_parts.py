"""Parts of a small renderer on the rig: memory, frames, sets by content, pipelines, passes, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

import vkharness
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.rig.automatic_passes import SubpassUses, described_attachments
from vkharness.rig.core import RigImage
from vkharness.rig.descriptor_cache import DescriptorCache
from vkharness.rig.frame_contexts import FrameContexts
from vkharness.rig.lazy_pipelines import LazyPipelines, RenderState
from vkharness.rig.memory_allocator import MemoryAllocator, MemoryDomain, memory_type
from vkharness.rig.rig import Rig
from vkharness.rig.turns import in_turns
from vkharness.spec.enums import VkFormat, VkImageUsage, VkMemoryProperty
from vkharness.trace.calls import Call

LOCAL, VISIBLE, CACHED = VkMemoryProperty.DEVICE_LOCAL, VkMemoryProperty.HOST_VISIBLE, VkMemoryProperty.HOST_CACHED
SEEN = VISIBLE | VkMemoryProperty.HOST_COHERENT
DISCRETE = (LOCAL, SEEN, SEEN | CACHED, LOCAL | SEEN, LOCAL | VkMemoryProperty.LAZILY_ALLOCATED)
INTEGRATED = (LOCAL | SEEN | CACHED,)
ALL = 0xFF


@pytest.mark.parametrize(
    ("domain", "index"),
    [
        (MemoryDomain.DEVICE, 0),
        (MemoryDomain.HOST, 1),
        (MemoryDomain.CACHED_HOST, 2),
        (MemoryDomain.LINKED_DEVICE_HOST, 3),
        (MemoryDomain.TRANSIENT, 4),
    ],
)
def test_a_domain_chooses_a_memory_type(domain: MemoryDomain, index: int) -> None:
    assert memory_type(DISCRETE, ALL, domain) == index
    assert memory_type(INTEGRATED, ALL, domain) == 0


def test_a_domain_falls_back_where_the_resource_allows_little() -> None:
    assert memory_type(DISCRETE, 0b10, MemoryDomain.DEVICE) == 1
    assert memory_type(DISCRETE, 0b10, MemoryDomain.CACHED_HOST) == 1
    assert memory_type(DISCRETE, 0b01, MemoryDomain.HOST) is None


def allocator_job() -> dict[str, list[int]]:
    """Where resources of an allocator lie. In a process with one driver."""
    with Rig() as rig:
        allocator = MemoryAllocator(rig, chunk=1 << 14)
        several = [allocator.buffer(size, MemoryDomain.HOST, data=b"x") for size in (256, 1000, 256)]
        allocator.give_back(several[0])
        again = allocator.buffer(256, MemoryDomain.HOST)
        allocator.image(extent=(16, 16, 1))
        allocator._check()
        before = allocator.dedicated
        allocator.buffer(1 << 15)
        alone = allocator.buffer(256, dedicated=True)
        allocator._check()
        read = rig.host_read(several[1], 0, 2)
        return {
            "offsets": [each.offset for each in (*several, again)],
            "same memory": [int(each.memory == several[0].memory) for each in (*several, again, alone)],
            "dedicated": [allocator.dedicated - before],
            "chunks": [allocator.chunks + before],
            "read": list(read),
        }


def frames_job() -> dict[str, list[int]]:
    """Two frames in flight over six frames: what is deleted when, where scratch ranges lie. With one driver."""
    with Rig() as rig:
        frames, target = FrameContexts(rig, 2, scratch=1024), rig.buffer()
        deleted: list[int] = []
        offsets, fences = [], []
        for number in range(6):
            frame = frames.begin()
            place = frames.scratch(bytes(256))
            other = frames.scratch(bytes(10))
            offsets += [place.offset, other.offset]
            with rig.commands() as commands:
                commands.barrier("", "COPY", "COPY/TRANSFER_WRITE")
                commands.copy(place.buffer, target, (place.offset, 0, place.size))
            fences.append(frames.submit(commands))
            frame.later(partial(deleted.append, number))
        with pytest.raises(UserError, match="no 1000 bytes"):
            frames.scratch(bytes(1000))
        return {"offsets": offsets, "deleted": deleted, "fences": [fences.index(each) for each in fences]}


def cache_job() -> dict[str, list[int]]:
    """Counts the descriptor sets that a cache makes, finds and writes again. In a process with one driver."""
    with Rig() as rig:
        cache, a, b = DescriptorCache(rig, unused_frames=2), rig.buffer(), rig.buffer()
        copy, fill = rig.compute("copy_words"), rig.compute("fill_words")
        other = rig.compute("reverse_words")
        first = cache.get(copy, b0=a, b1=b)
        same = [cache.get(copy, b0=a, b1=b), cache.get(other, b0=a, b1=b)]
        different = [cache.get(copy, b0=b, b1=a), cache.get(copy, b0=(a, 0, 128), b1=b), cache.get(fill, b0=a)]
        made = [cache.made, cache.found, cache.written_again]
        cache.next_frame()
        cache.get(copy, b0=a, b1=b)
        cache.next_frame()
        again = cache.get(copy, b0=(a, 64, 64), b1=b)
        return {
            "same": [int(each.handle == first.handle) for each in same],
            "different": [int(each.handle == first.handle) for each in different],
            "made": made,
            "again": [int(again.handle == different[0].handle), cache.written_again, cache.made],
        }


def pipelines_job() -> dict[str, list[int]]:
    """How many pipelines states make. In a process with one driver."""
    with Rig() as rig:
        lazy = LazyPipelines(rig)
        state = RenderState(fragment="gradient")
        plain = lazy.get(state.pieces)
        saved = state.save("blend")
        state.set(blend=True)
        blending = lazy.get(state.pieces)
        state.restore(saved)
        counts = [len(lazy.seen), int(lazy.get(state.pieces) is plain), int(blending is plain)]
        warm = LazyPipelines(rig)
        warm.warm(lazy.seen)
        warm.get(state.pieces)
        return {"counts": counts, "warm": [len(warm.seen)]}


def turns_job() -> dict[str, list[str]]:
    """The calls that four threads make, each with the number of its thread. In a process with one driver."""
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        fences = [rig.fence() for _ in range(4)]
        for fence in fences:
            rig.submit(fence=fence)

        def steps(fence: object) -> Iterator[None]:
            rig.wait(fence)
            yield
            rig.reset_fence(fence)

        in_turns([steps(fence) for fence in fences])
    calls = [block for block in session.blocks or [] if isinstance(block, Call)]
    return {"calls": [f"{call.name} {call.thread}" for call in calls if call.thread]}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as made:
        yield made


def test_resources_share_memory_until_they_are_large(worker: Worker) -> None:
    said = worker.call("tests.rig.test_renderer_parts:allocator_job", {})
    assert said == {
        "offsets": [0, 1024, 256, 0],
        "same memory": [1, 1, 1, 1, 0],
        "dedicated": [2],
        "chunks": [2],
        "read": [ord("x"), 0],
    }


def test_a_frame_deletes_when_its_context_comes_around(worker: Worker) -> None:
    said = worker.call("tests.rig.test_renderer_parts:frames_job", {})
    assert said == {"offsets": [0, 256, 1024, 1280] * 3, "deleted": [0, 1, 2, 3], "fences": [0, 1, 0, 1, 0, 1]}


def test_a_set_is_found_by_what_it_holds(worker: Worker) -> None:
    said = worker.call("tests.rig.test_renderer_parts:cache_job", {})
    assert said == {"same": [1, 1], "different": [0, 0, 0], "made": [4, 2, 0], "again": [1, 1, 4]}


def test_a_state_that_was_seen_has_its_pipeline(worker: Worker) -> None:
    said = worker.call("tests.rig.test_renderer_parts:pipelines_job", {})
    assert said == {"counts": [2, 1, 0], "warm": [2]}


def image(*, transient: bool = False, shown: bool = False, depth: bool = False) -> RigImage:
    form = VkFormat.D16_UNORM if depth else VkFormat.R8G8B8A8_UNORM
    usage = VkImageUsage.TRANSIENT_ATTACHMENT if transient else VkImageUsage.COLOR_ATTACHMENT
    return RigImage(None, form, (4, 4, 1), 1, 1, 1, 2 if depth else 1, None if shown else "memory", usage)


def test_layouts_follow_from_the_kind_of_image_and_from_its_uses() -> None:
    """As deferred rendering uses them: lit image, two colours and depth of the first subpass read by the second."""
    images = [image(shown=True), image(transient=True), image(), image(depth=True)]
    subpasses = [SubpassUses((1, 2), depth=3), SubpassUses((0,), (1, 2, 3), depth=3, read_only=True)]
    made = described_attachments(images, subpasses, (2,), (0, 1, 3), (0, 2), {})
    assert [(each.initial, each.final) for each in made] == [
        ("UNDEFINED", "PRESENT_SRC_KHR"),
        ("UNDEFINED", "SHADER_READ_ONLY_OPTIMAL"),
        ("COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL"),
        ("DEPTH_STENCIL_ATTACHMENT_OPTIMAL", "DEPTH_STENCIL_READ_ONLY_OPTIMAL"),
    ]
    assert [(each.load, each.store) for each in made] == [
        ("CLEAR", "STORE"), ("CLEAR", "DONT_CARE"), ("LOAD", "STORE"), ("CLEAR", "DONT_CARE"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("uses", "layout"),
    [
        (SubpassUses((0,), (0,)), "GENERAL"),
        (SubpassUses(depth=0, inputs=(0,)), "GENERAL"),
        (SubpassUses(depth=0, inputs=(0,), read_only=True), "DEPTH_STENCIL_READ_ONLY_OPTIMAL"),
        (SubpassUses(inputs=(0,)), "SHADER_READ_ONLY_OPTIMAL"),
        (SubpassUses((1,)), None),
    ],
)
def test_two_uses_in_one_subpass_have_one_layout(uses: SubpassUses, layout: str | None) -> None:
    assert uses.layout(0) == layout


def test_threads_take_turns() -> None:
    order: list[tuple[int, int, bool]] = []

    def steps(number: int, count: int) -> Iterator[None]:
        for step in range(count):
            order.append((number, step, threading.current_thread() is threading.main_thread()))
            yield

    in_turns([steps(0, 2), steps(1, 3), steps(2, 1)])
    assert [each[:2] for each in order] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (1, 2)]
    assert not any(main for _, _, main in order)


def test_what_threads_record_is_the_same_in_every_run(worker: Worker) -> None:
    """Four threads beside the first, a wait each, then a reset each."""
    said = [worker.call("tests.rig.test_renderer_parts:turns_job", {}) for _ in range(2)]
    calls = [f"{name} {thread}" for name in ("vkWaitForFences", "vkResetFences") for thread in range(1, 5)]
    assert said == [{"calls": calls}] * 2


def test_what_a_thread_raises_ends_the_turns() -> None:
    def wrong() -> Iterator[None]:
        yield
        raise UserError("wrong here")

    with pytest.raises(UserError, match="wrong here"):
        in_turns([iter([None, None]), wrong(), iter([None, None])])

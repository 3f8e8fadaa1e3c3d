"""Host writes: exactly the words that the host changed, before the call that makes them count, and no device writes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import vkharness
from tests.support.recording import Keeper, make_rig
from tests.support.written_pages import MECHANISMS, changes, choose
from vkharness.device.drivers import environment, find_driver
from vkharness.record.host import HostMemory
from vkharness.record.mapped_memory import CHUNK, FRESH_LIMIT, Mapping
from vkharness.record.session import Session
from vkharness.record.struct_layout import package_ffi
from vkharness.record.written_pages import PROTECTION, written_numbers
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.trace.calls import Call, HostWrite


@pytest.fixture(autouse=True, params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with each."""
    choose(request.param, monkeypatch)
    return str(request.param)


# Comparing.


def slow_changes(old: bytes, new: bytes, base: int, ignored: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """Word by word, and neighbours joined."""
    found: list[tuple[int, bytes]] = []
    for start in range(0, len(new), 4):
        end = min(start + 4, len(new))
        touched = any(low < base + start + 4 and base + start < high for low, high in ignored)
        if old[start:end] == new[start:end] or touched:
            continue
        if found and found[-1][0] + len(found[-1][1]) == base + start:
            found[-1] = (found[-1][0], found[-1][1] + new[start:end])
        else:
            found.append((base + start, new[start:end]))
    return found


def test_random_changes_against_a_walk_word_by_word() -> None:
    rng = random.Random(11)
    for _ in range(200):
        size, base = rng.randrange(1, 90), rng.randrange(0, 64)
        memory = bytearray(rng.randbytes(size))
        mapping = Mapping(1, base, memory)
        for _ in range(3):
            old = bytes(mapping.shadow)
            for _ in range(rng.randrange(4)):
                memory[rng.randrange(size)] ^= rng.randrange(256)
            low = rng.randrange(0, base + size + 8)
            ignored = [(low, low + rng.randrange(1, 16))] if rng.random() < 0.5 else []
            expected = slow_changes(old, bytes(memory), base, ignored)
            assert changes(mapping, ignored) == expected
            assert changes(mapping, ignored) == []


def test_a_run_over_chunk_borders_is_one_run() -> None:
    memory = bytearray(2 * CHUNK + 6)
    mapping = Mapping(1, 16, memory)
    memory[CHUNK - 8 : CHUNK + 8] = bytes(range(1, 17))
    memory[-1] = 5
    assert changes(mapping) == [(16 + CHUNK - 8, bytes(range(1, 17))), (16 + 2 * CHUNK + 4, b"\0\5")]


def test_refreshed_bytes_are_no_changes() -> None:
    memory = bytearray(64)
    mapping = Mapping(1, 100, memory)
    memory[:] = b"\1" * 64
    mapping.refresh([(0, 108), (150, 1 << 62)])
    assert changes(mapping) == [(108, b"\1" * 44)]


def test_fresh_memory_comes_whole_once_whatever_it_held() -> None:
    for held in (bytes(range(1, 65)), bytes(64)):
        memory = bytearray(held)
        mapping = Mapping(1, 100, memory, fresh=[(0, 132), (148, 1 << 40)])
        memory[40] ^= 1
        assert changes(mapping) == [(100, held[:32]), (140, bytes(memory[40:44])), (148, held[48:])]
        memory[4:8] = b"late"
        assert changes(mapping) == [(104, b"late")]


def test_of_much_fresh_memory_only_chunks_with_something_in_them_come() -> None:
    memory = np.zeros(FRESH_LIMIT + 3 * CHUNK, dtype=np.uint8)
    mapping = Mapping(1, 0, memory, fresh=[(0, len(memory))])
    memory[CHUNK] = memory[2 * CHUNK] = memory[-1] = 7
    found = changes(mapping)
    assert [(offset, len(data)) for offset, data in found] == [(CHUNK, 2 * CHUNK), (len(memory) - CHUNK, CHUNK)]
    assert changes(mapping) == []


def test_of_very_many_runs_the_closest_are_joined_but_not_over_ignored_bytes() -> None:
    memory = np.zeros(1 << 16, dtype=np.uint8)
    mapping = Mapping(1, 64, memory)
    memory[0:32768:16] = 1
    memory[40960::1024] = 2
    ignored = [(64 + 1600 + 8, 64 + 1600 + 12)]
    found = changes(mapping, ignored)
    sparse = [(64 + start, b"\2\0\0\0") for start in range(40960, 1 << 16, 1024)]
    assert [(offset, len(data)) for offset, data in found[:2]] == [(64, 1604), (64 + 1616, 32768 - 16 - 1616 + 4)]
    assert found[2:] == sparse


# On a device.


@pytest.fixture(autouse=True)
def lavapipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def session(keeper: Keeper) -> Iterator[Session]:
    with vkharness.attach(mirror=keeper) as attached:
        yield attached
        attached.host._mappings._check()


@pytest.fixture
def rig(session: Session) -> Iterator[Any]:
    made = make_rig()
    yield made
    made.close()


def mapped(rig: Any, memory: Any, offset: int = 0, size: int = VK_WHOLE_SIZE) -> Any:
    """A writable buffer of mapped memory. (The package's own vkMapMemory cannot take VK_WHOLE_SIZE.)"""
    import vulkan as vk

    address = vk.ffi.new("void **")
    assert vk.lib.vkMapMemory(rig.device, memory, offset, size, 0, address) == 0
    return vk.ffi.buffer(address[0], 1024 if size == VK_WHOLE_SIZE else size)


def seen_buffer(rig: Any, keeper: Keeper) -> tuple[Any, Any]:
    """A buffer and its memory, all zero, which the host has mapped before: no write of it comes whole."""
    import vulkan as vk

    buffer, memory = rig.buffer()
    mapped(rig, memory)[:] = bytes(1024)
    vk.vkUnmapMemory(rig.device, memory)
    keeper.blocks = list(keeper.calls)
    return buffer, memory


def summary(keeper: Keeper) -> list[tuple[int, bytes]]:
    return [(write.offset, write.data) for write in keeper.host_writes]


def after_writes(keeper: Keeper) -> list[str]:
    """The call that follows each run of host writes."""
    blocks = keeper.blocks
    return [new.name for old, new in pairwise(blocks) if isinstance(old, HostWrite) and isinstance(new, Call)]


def test_writes_come_before_the_submit_that_they_precede(rig: Any, keeper: Keeper) -> None:
    _, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory)
    view[8:12], view[12:16], view[100:104] = b"abcd", b"efgh", b"ijkl"
    commands = rig.commands()
    rig.submit(commands)
    assert summary(keeper) == [(8, b"abcdefgh"), (100, b"ijkl")]
    assert after_writes(keeper) == ["vkQueueSubmit"]
    write = keeper.host_writes[0]
    assert write.memory == keeper.last("vkAllocateMemory").args["pMemory"]
    assert write.site == keeper.last("vkQueueSubmit").site


def test_an_offset_mapping_counts_from_the_start_of_the_memory(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    _, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory, 64, 128)
    view[0:4] = b"here"
    vk.vkUnmapMemory(rig.device, memory)
    assert summary(keeper) == [(64, b"here")]
    assert after_writes(keeper) == ["vkUnmapMemory"]


def test_flushing_signaling_and_waiting_look_too(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    _, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory)
    view[0:4] = b"\1\2\3\4"
    vk.vkFlushMappedMemoryRanges(rig.device, 1, [vk.VkMappedMemoryRange(memory=memory, size=64)])
    view[4:8] = b"\1\2\3\4"
    vk.vkDeviceWaitIdle(rig.device)
    view[8:12] = b"\1\2\3\4"
    vk.vkQueueWaitIdle(rig.queue)
    event = vk.vkCreateEvent(rig.device, vk.VkEventCreateInfo(), None)
    view[12:16] = b"\1\2\3\4"
    vk.vkSetEvent(rig.device, event)
    vk.vkDestroyEvent(rig.device, event, None)
    assert [offset for offset, _ in summary(keeper)] == [0, 4, 8, 12]
    assert after_writes(keeper) == ["vkFlushMappedMemoryRanges", "vkDeviceWaitIdle", "vkQueueWaitIdle", "vkSetEvent"]


def test_what_the_device_wrote_is_no_host_write(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    buffer, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory)
    keeper.unmodelled["nothing exact is known"] = 1
    commands = rig.commands()
    vk.vkCmdFillBuffer(commands, buffer, 0, 512, 0x01010101)
    rig.submit(commands)
    assert view[0:4] == b"\1\1\1\1"
    view[16:20] = b"host"
    rig.submit(rig.commands())
    assert summary(keeper) == [(16, b"host")]


def test_pending_writes_are_left_out_and_the_rest_is_not(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    buffer, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory)
    keeper.unmodelled["nothing exact is known"] = 1
    commands = rig.commands()
    vk.vkCmdFillBuffer(commands, buffer, 0, 512, 0x01010101)
    rig.submit(commands, wait=False)
    view[600:604] = b"host"
    rig.submit(rig.commands(), wait=False)
    vk.vkQueueWaitIdle(rig.queue)
    assert summary(keeper) == [(600, b"host")]
    view[0:4] = b"\2\2\2\2"
    vk.vkUnmapMemory(rig.device, memory)
    assert summary(keeper)[1:] == [(0, b"\2\2\2\2")]


def test_the_mirror_knows_best_what_pending_work_writes() -> None:
    """Played by hand, since on a device the fill would run at any time: it may write all, the mirror says a part."""
    ffi = package_ffi()
    memory = ffi.new("uint8_t[1024]")
    emitted: list[tuple[int, int, bytes]] = []
    exact: list[tuple[int, int]] | None = [(0, 256)]
    may = {9: [(0, 1024)]}
    host = HostMemory(
        lambda *write: emitted.append(write), lambda name: None, lambda memory, end: exact, lambda buffers: may
    )

    for name, args in (
        ("vkAllocateMemory", {"device": 1, "pMemory": 9, "pAllocateInfo": {"allocationSize": 1024}}),
        (
            "vkMapMemory",
            {"memory": 9, "offset": 0, "size": VK_WHOLE_SIZE, "ppData": int(ffi.cast("uintptr_t", memory))},
        ),
    ):
        after(host, name, args)
    before(host, "vkQueueWaitIdle", {"queue": 3})
    assert emitted == [(9, 0, bytes(1024))]
    submit = {"queue": 3, "pSubmits": [{"pNext": None, "pCommandBuffers": [5]}], "fence": 0}
    before(host, "vkQueueSubmit", submit)
    after(host, "vkQueueSubmit", submit)
    memory[128], memory[512] = 1, 2
    before(host, "vkQueueWaitIdle", {"queue": 3})
    assert emitted[1:] == [(9, 512, b"\2\0\0\0")]
    exact = None
    memory[600] = 3
    before(host, "vkQueueWaitIdle", {"queue": 3})
    after(host, "vkQueueWaitIdle", {"queue": 3})
    memory[604] = 4
    before(host, "vkUnmapMemory", {"memory": 9})
    assert emitted[2:] == [(9, 604, b"\4\0\0\0")]


def before(host: HostMemory, name: str, args: dict[str, Any]) -> None:
    hook = host.before(name)
    assert hook is not None
    hook(args)


def after(host: HostMemory, name: str, args: dict[str, Any]) -> None:
    hook = host.after(name)
    assert hook is not None
    hook(args, 0)


def test_a_fence_wait_ends_what_its_submit_wrote(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    buffer, memory = seen_buffer(rig, keeper)
    view = mapped(rig, memory)
    keeper.unmodelled["nothing exact is known"] = 1
    fence = vk.vkCreateFence(rig.device, vk.VkFenceCreateInfo(), None)
    commands = rig.commands()
    vk.vkCmdFillBuffer(commands, buffer, 0, 1024, 0x05050505)
    vk.vkEndCommandBuffer(commands)
    vk.vkQueueSubmit(rig.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], fence)
    vk.vkWaitForFences(rig.device, 1, [fence], True, VK_WHOLE_SIZE)
    view[0:4] = b"host"
    while vk.lib.vkGetFenceStatus(rig.device, fence) != 0:
        pass
    vk.vkUnmapMemory(rig.device, memory)
    vk.vkDestroyFence(rig.device, fence, None)
    assert summary(keeper) == [(0, b"host")]


def test_bytes_that_are_there_when_mapping_are_no_writes(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    buffer, memory = rig.buffer()
    commands = rig.commands()
    vk.vkCmdFillBuffer(commands, buffer, 0, 1024, 3)
    rig.submit(commands)
    mapped(rig, memory)
    rig.submit(rig.commands())
    vk.vkFreeMemory(rig.device, rig.made.pop()[1], None)
    vk.vkDestroyBuffer(rig.device, buffer, None)
    assert summary(keeper) == []


def test_what_is_written_into_fresh_memory_is_all_in_the_trace(rig: Any, keeper: Keeper) -> None:
    """Drivers hand out memory with old bytes in it: the same ones, written again, change nothing."""
    import vulkan as vk

    _, memory = rig.buffer()
    mapped(rig, memory, 512, 256)
    vk.vkUnmapMemory(rig.device, memory)
    view = mapped(rig, memory)
    view[100:104] = bytes(view[100:104])
    vk.vkDeviceWaitIdle(rig.device)
    assert [(write.offset, len(write.data)) for write in keeper.host_writes] == [(512, 256), (0, 512), (768, 256)]
    assert keeper.host_writes[1].data == view[0:512]


def test_memory_mapped_while_work_is_pending_is_not_fresh(rig: Any, keeper: Keeper) -> None:
    _, memory = rig.buffer()
    rig.submit(rig.commands(), wait=False)
    mapped(rig, memory)
    rig.submit(rig.commands())
    assert summary(keeper) == []


def test_memory_to_which_nothing_was_bound_before_the_pending_work_is_fresh(rig: Any, keeper: Keeper) -> None:
    import vulkan as vk

    rig.submit(rig.commands(), wait=False)  # of another thread, say
    _, bound_later = rig.buffer()
    info = vk.VkMemoryAllocateInfo(allocationSize=64, memoryTypeIndex=0)
    unbound = vk.vkAllocateMemory(rig.device, info, None)
    rig.submit(rig.commands(), wait=False)
    mapped(rig, unbound)
    mapped(rig, bound_later)
    vk.vkUnmapMemory(rig.device, unbound)
    assert [len(data) for _, data in summary(keeper)] == [64]
    vk.vkQueueWaitIdle(rig.queue)
    vk.vkFreeMemory(rig.device, unbound, None)


def test_a_small_mapping_is_followed_once_it_outlives_a_look(rig: Any, keeper: Keeper, mechanism: str) -> None:
    import vulkan as vk

    _, memory = seen_buffer(rig, keeper)
    before = written_numbers()
    view = mapped(rig, memory)
    view[0:4] = b"\1\2\3\4"
    assert written_numbers() == before
    vk.vkDeviceWaitIdle(rig.device)
    view[4:8] = b"\1\2\3\4"
    assert len(set(written_numbers()) - set(before)) == (mechanism == PROTECTION)
    vk.vkUnmapMemory(rig.device, memory)
    assert [offset for offset, _ in summary(keeper)] == [0, 4]


def test_nothing_is_followed_after_the_session(keeper: Keeper) -> None:
    import vulkan as vk

    with vkharness.attach(mirror=keeper) as session:
        rig = make_rig()
        _, memory = rig.buffer()
        address = int(vk.ffi.cast("uintptr_t", vk.ffi.from_buffer(mapped(rig, memory))))
        assert session.host.find(address) is not None
    assert session.host.find(address) is None
    rig.close()


def test_a_mapping_of_unknown_size_is_named(keeper: Keeper) -> None:
    rig = make_rig()
    _, memory = rig.buffer()
    with vkharness.attach(mirror=keeper) as session:
        mapped(rig, memory)
    rig.close()
    assert session.unmodelled == {"vkMapMemory": 1}
    assert session.verdict == "unknown"

"""Written pages: what the kernel says is what a comparison finds, whoever writes, and whatever becomes of them."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import mmap
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.written_pages import MECHANISMS, changes, choose
from vkharness.record.mapped_memory import CHUNK, FRESH_LIMIT, WORD, Mapping
from vkharness.record.unmapped_memory import UnmappedMemory
from vkharness.record.written_pages import CHOICE, COMPARISON, PROTECTION, follow, in_use, why_compared, written_numbers

PAGE = mmap.PAGESIZE
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
BLOCK = 2 << 20
"""Bytes of a page table."""


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    choose(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture
def protected(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(PROTECTION, monkeypatch)


def anonymous(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=PRIVATE)


def memfd(size: int) -> mmap.mmap:
    file = os.memfd_create("tests")
    os.ftruncate(file, size)
    made = mmap.mmap(file, size)
    os.close(file)
    return made


KINDS: dict[str, Callable[[int], mmap.mmap | bytearray]] = {"anonymous": anonymous, "memfd": memfd, "heap": bytearray}


def address_of(memory: mmap.mmap | bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


# -- whoever writes ----------------------------------------------------------------------------------------------------


def by_view(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    memory[at : at + len(data)] = data


def by_numpy(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    np.frombuffer(memory, dtype=np.uint8)[at : at + len(data)] = np.frombuffer(data, dtype=np.uint8)


def by_read(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    """The kernel itself writes, in a system call."""
    ours, theirs = os.pipe()
    written = os.write(theirs, data[:PAGE])
    assert os.readv(ours, [memoryview(memory)[at : at + written]]) == written
    os.close(ours)
    os.close(theirs)


def by_memset(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    ctypes.memset(address_of(memory) + at, data[0], len(data))


def by_another_thread(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    writer = threading.Thread(target=by_numpy, args=(memory, at, data))
    writer.start()
    writer.join()


def by_a_page_given_back(memory: mmap.mmap | bytearray, at: int, data: bytes) -> None:
    """Private memory holds zeros afterwards, shared memory what it held."""
    if isinstance(memory, mmap.mmap):
        memory.madvise(mmap.MADV_DONTNEED, at // PAGE * PAGE, PAGE)


WRITERS = (by_view, by_numpy, by_read, by_memset, by_another_thread, by_a_page_given_back)


def expected_changes(old: bytes, new: bytes, ignored: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of words that differ, but for those that touch an ignored range. What many runs make of each other is left
    out: there are few."""
    before, after = np.frombuffer(old, dtype=np.uint32), np.frombuffer(new, dtype=np.uint32)
    differs = before != after
    for start, end in ignored:
        differs[start // WORD : -(-end // WORD)] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([False], differs, [False])).astype(np.int8)))
    return [(int(start) * WORD, int(end) * WORD) for start, end in edges.reshape(-1, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "rounds"), [(3 * PAGE - 64, 60), (2 * BLOCK + PAGE, 30), (9 * BLOCK, 8)])
def test_random_writes_against_a_comparison_of_everything(
    mechanism: str, kind: str, size: int, rounds: int, fresh_seed: int
) -> None:
    rng = random.Random(f"{fresh_seed} {kind} {size}")
    memory = KINDS[kind](size)
    by_numpy(memory, 0, rng.randbytes(size // 3))
    start = rng.choice((0, 64, PAGE))
    view = memoryview(memory)[start:]
    mapping = Mapping(1, 0, view)
    shadow = bytearray(view)
    for _ in range(rounds):
        for _ in range(rng.randrange(5)):
            length = rng.choice((1, 4, 100, PAGE, 3 * PAGE))
            at = rng.randrange(size)
            data = rng.randbytes(min(length, size - at))
            rng.choice(WRITERS)(memory, at, data)
        low = rng.randrange(len(view))
        ignored = [(low, low + rng.randrange(1, 2 * PAGE))] if rng.random() < 0.5 else []
        now = bytes(view)
        expected = expected_changes(bytes(shadow), now, ignored)
        assert changes(mapping, ignored) == [(low, now[low:high]) for low, high in expected]
        for low, high in expected:
            shadow[low:high] = now[low:high]
        if rng.random() < 0.3:
            low = rng.randrange(len(view))
            mapping.refresh([(low, low + PAGE)])
            shadow[low : low + PAGE] = now[low : low + PAGE]
        assert bytes(mapping.shadow) == bytes(shadow)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_while_another_thread_writes(mechanism: str, kind: str, given_seed: int) -> None:
    """Each look races with the writer; what it misses the next one finds."""
    memory = KINDS[kind](64 * PAGE)
    mapping = Mapping(1, 0, memory)
    rng = random.Random(given_seed)
    places = [rng.randrange(16 * PAGE) * WORD for _ in range(20_000)]

    def write() -> None:
        words = np.frombuffer(memory, dtype=np.uint32)
        for value, at in enumerate(places, 1):
            words[at // WORD] = value

    writer = threading.Thread(target=write)
    writer.start()
    told = bytearray(len(memory))
    while writer.is_alive():
        for at, data in changes(mapping):
            told[at : at + len(data)] = data
    for at, data in changes(mapping):
        told[at : at + len(data)] = data
    assert bytes(told) == bytes(memory) == bytes(mapping.shadow)
    assert changes(mapping) == []


def test_small_ranges_of_one_page_do_not_take_each_others_writes(mechanism: str) -> None:
    memory = anonymous(4 * PAGE)
    parts = [Mapping(at, 0, memoryview(memory)[at : at + 96]) for at in range(PAGE - 480, 2 * PAGE, 96)]
    for at in (PAGE - 480, PAGE, 2 * PAGE - 96):
        memory[at : at + 4] = b"host"
    written_numbers()
    found = {part.memory: part.changes() for part in parts[1:]}
    assert [at for at, data in found.items() if data] == [PAGE, 2 * PAGE - 160]
    assert changes(parts[0]) == [(0, b"host")]
    del parts[0], found
    memory[PAGE - 384] = 5
    assert changes(parts[0]) == [(0, b"\5\0\0\0")]


@pytest.mark.usefixtures("protected")
def test_a_range_that_starts_on_a_page_that_others_follow_holds_what_is_there() -> None:
    memory = anonymous(10 * BLOCK)
    memory[PAGE : PAGE + 4] = b"here"
    first = Mapping(1, 0, memoryview(memory)[:BLOCK])
    second = Mapping(2, 0, memory)
    assert bytes(second.shadow[PAGE : PAGE + 4]) == b"here"
    memory[BLOCK + 1] = 1
    memory[PAGE + 4] = 2
    assert (changes(second), changes(first)) == (
        [(PAGE + 4, b"\2\0\0\0"), (BLOCK, b"\0\1\0\0")],
        [(PAGE + 4, b"\2\0\0\0")],
    )


# -- what costs nothing ------------------------------------------------------------------------------------------------


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize("kind", ["anonymous", "memfd"])
def test_what_nobody_touches_takes_no_memory(kind: str) -> None:
    memory = KINDS[kind](1 << 30)
    before = resident_bytes()
    mapping = Mapping(1, 0, memory, fresh=[(0, 1 << 30)])
    assert changes(mapping) == []
    memory[1 << 29] = 7
    ((offset, data),) = changes(mapping)
    assert (offset, data[0], len(data)) == (1 << 29, 7, WORD)
    assert resident_bytes() - before < 64 << 20
    mapping.pages.take()
    assert not mapping.has_more


@pytest.mark.usefixtures("protected")
def test_pages_that_nobody_wrote_are_not_looked_at() -> None:
    memory = anonymous(64 * PAGE)
    memory[:] = b"\1" * len(memory)
    mapping = Mapping(1, 0, memory)
    assert mapping.pages.number not in written_numbers()
    memory[40 * PAGE] = 2
    assert mapping.pages.number in written_numbers()
    assert mapping.pages.take() == [(40 * PAGE, 41 * PAGE)]
    memory[0] = memory[PAGE] = memory[6 * PAGE] = memory[12 * PAGE] = memory[63 * PAGE] = 2
    written_numbers()
    assert mapping.pages.take() == [(0, 7 * PAGE), (12 * PAGE, 13 * PAGE), (63 * PAGE, 64 * PAGE)]
    assert mapping.pages.number not in written_numbers()
    assert mapping.pages.take() == []


def test_of_large_fresh_memory_the_touched_chunks_come(mechanism: str) -> None:
    memory = anonymous(FRESH_LIMIT + 4 * CHUNK)
    memory[CHUNK] = 1
    mapping = Mapping(1, 0, memory, fresh=[(0, len(memory))])
    memory[3 * CHUNK + 5] = 2
    assert [(offset, len(data)) for offset, data in changes(mapping)] == [(CHUNK, CHUNK), (3 * CHUNK, CHUNK)]


# -- whatever becomes of them ------------------------------------------------------------------------------------------


def test_a_forked_child_sees_its_own_writes_and_the_parent_its_own(mechanism: str) -> None:
    memory = anonymous(8 * PAGE)
    memory[:] = b"\1" * len(memory)
    mapping = Mapping(1, 0, memory)
    written_numbers()
    child = os.fork()
    if not child:
        memory[PAGE : PAGE + 4] = b"kind"
        first = changes(mapping)
        memory[2 * PAGE : 2 * PAGE + 4] = b"late"
        os._exit((first, changes(mapping)) != ([(PAGE, b"kind")], [(2 * PAGE, b"late")]))
    memory[3 * PAGE : 3 * PAGE + 4] = b"ours"
    assert os.waitpid(child, 0)[1] == 0
    assert changes(mapping) == [(3 * PAGE, b"ours")]


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize("blocks", [4, 9])
def test_large_memory_that_is_given_back_holds_zeros(blocks: int) -> None:
    memory = anonymous(blocks * BLOCK)
    memory[:] = b"\1" * len(memory)
    mapping = Mapping(1, 0, memory)
    assert changes(mapping) == []
    memory.madvise(mmap.MADV_DONTNEED)
    found = changes(mapping)
    assert (found[0][0], sum(len(data) for _, data in found)) == (0, blocks * BLOCK)
    assert not any(any(data) for _, data in found)


@pytest.mark.usefixtures("protected")
def test_huge_pages_are_followed() -> None:
    memory = anonymous(8 * BLOCK)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory[:] = b"\1" * len(memory)
    mapping = Mapping(1, 0, memory)
    assert changes(mapping) == []
    memory[3 * BLOCK + 7 * PAGE] = 2
    assert changes(mapping) == [(3 * BLOCK + 7 * PAGE, b"\2\1\1\1")]
    assert changes(mapping) == []


@pytest.mark.usefixtures("protected")
def test_pages_are_released_with_the_mapping_even_when_they_are_gone() -> None:
    memory = anonymous(4 * PAGE)
    mapping = follow(address_of(memory), len(memory))
    number = mapping.number
    gc.collect()
    memory.close()
    del mapping
    again = anonymous(4 * PAGE)
    other = follow(address_of(again), len(again))
    again[0] = 1
    told = written_numbers()
    assert number is not None and number not in told and other.number in told


@pytest.mark.usefixtures("protected")
def test_memory_that_is_mapped_again_is_not_looked_at_as_a_whole() -> None:
    memory = anonymous(4 * PAGE)
    address = address_of(memory)
    unmapped = UnmappedMemory()
    first = Mapping(9, 64, memory)
    memory[0:4] = b"host"
    assert changes(first) == [(64, b"host")]
    unmapped.keep(first)
    memory[PAGE : PAGE + 4] = b"else"  # a driver's copy of the host, say: nobody maps it
    assert unmapped.again(9, 64, address, 4 * PAGE) is first
    assert changes(first) == []
    memory[PAGE + 2] = 0
    assert changes(first) == [(64 + PAGE, b"el\0e")]
    for offset, at, size in ((0, address, 4 * PAGE), (64, address + 4, 4 * PAGE), (64, address, PAGE)):
        unmapped.keep(first)
        assert unmapped.again(9, offset, at, size) is None
    unmapped.keep(first)
    unmapped.let_go([9])
    assert unmapped.again(9, 64, address, 4 * PAGE) is None


@pytest.mark.usefixtures("protected")
def test_memory_that_was_unmapped_in_truth_is_looked_at_as_a_whole() -> None:
    memory = anonymous(4 * PAGE)
    mapping, unmapped = Mapping(9, 0, memory), UnmappedMemory()
    unmapped.keep(mapping)
    mapped_over(memory)
    assert unmapped.again(9, 0, address_of(memory), 4 * PAGE) is None


def test_the_mappings_unmapped_first_are_let_go_first(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkharness.record.unmapped_memory.MOST_BYTES", 2 * PAGE)
    memory = anonymous(3 * PAGE)
    unmapped = UnmappedMemory()
    for page in range(3):
        unmapped.keep(Mapping(page, 0, memoryview(memory)[page * PAGE : (page + 1) * PAGE]))
    again = [unmapped.again(page, 0, address_of(memory) + page * PAGE, PAGE) is not None for page in range(3)]
    assert again == ([False, True, True] if mechanism == PROTECTION else [False] * 3)


def mapped_over(memory: mmap.mmap | bytearray) -> None:
    """Other memory comes to the same addresses."""
    fixed, read_write = 0x10, mmap.PROT_READ | mmap.PROT_WRITE
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    address = ctypes.c_void_p(address_of(memory))
    made = libc.mmap(address, ctypes.c_size_t(len(memory)), read_write, PRIVATE | fixed, -1, ctypes.c_long(0))
    assert made == address.value


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize("size", [4 * PAGE, 9 * BLOCK])
def test_other_memory_at_addresses_that_somebody_still_follows(size: int) -> None:
    memory = anonymous(size)
    stale = follow(address_of(memory), size)
    mapped_over(memory)
    mapping = Mapping(1, 0, memory)
    assert changes(mapping) == []
    memory[PAGE] = 1
    assert changes(mapping) == [(PAGE, b"\1\0\0\0")]
    assert stale.number is not None and mapping.pages.number is not None


@pytest.mark.usefixtures("protected")
def test_pages_of_a_device_are_compared() -> None:
    """Those of the kernel's own clock are of the kind that graphics drivers map: no scan gives them."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in maps if line.endswith("[vvar]"))
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    pages = follow(start, end - start)
    assert (pages.number, pages.held, pages.take(), pages.take()) == (None, *[[(0, end - start)]] * 3)


def test_shared_memory_that_others_write_is_compared(mechanism: str) -> None:
    file = os.memfd_create("tests")
    os.ftruncate(file, PAGE)
    memory, other = mmap.mmap(file, PAGE), mmap.mmap(file, PAGE)
    os.close(file)
    mapping = Mapping(1, 0, memory, trusted=False)
    other[0:4] = b"else"
    assert changes(mapping) == [(0, b"else")]


def caught_signals() -> str:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(line for line in status.splitlines() if line.startswith("SigCgt"))


def test_no_signal_is_involved(mechanism: str) -> None:
    """A handler of the program's own, and `faulthandler`, stay what they were."""
    handlers = signal.getsignal(signal.SIGSEGV), faulthandler.is_enabled()
    caught = caught_signals()
    memory = anonymous(PAGE)
    mapping = Mapping(1, 0, memory)
    memory[0] = 1
    assert changes(mapping) == [(0, b"\1\0\0\0")]
    assert (signal.getsignal(signal.SIGSEGV), faulthandler.is_enabled(), caught_signals()) == (*handlers, caught)


# -- which is in use ---------------------------------------------------------------------------------------------------


def test_which_is_in_use_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, COMPARISON)
    assert in_use() == "comparison with a copy (VKHARNESS_MAPPED_MEMORY is comparison)"
    monkeypatch.delenv(CHOICE)
    why = why_compared()
    assert in_use() == ("written pages (userfaultfd)" if why is None else f"comparison with a copy ({why})")

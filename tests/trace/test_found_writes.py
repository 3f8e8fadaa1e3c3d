"""The mapped memory in a capture, as writes of the host."""

from __future__ import annotations

from tests.support.streams import Stream
from vkharness.check import Analysis
from vkharness.trace.calls import FOUND_WRITES, Call, HostWrite
from vkharness.trace.found_writes import MOST_RUNS, FoundWrites


def seen(memory: FoundWrites, offset: int, data: bytes) -> list[tuple[int, bytes, bool]]:
    return [(each.offset, each.data, each.initial) for each in memory.found(1, 5, offset, data)]


def test_words_that_changed_are_writes() -> None:
    memory = FoundWrites()
    assert seen(memory, 0, bytes(range(1, 17))) == [(0, bytes(range(1, 17)), False)]
    assert seen(memory, 0, bytes(range(1, 17))) == []
    changed = bytearray(range(1, 17))
    changed[5] = 99
    assert seen(memory, 0, bytes(changed)) == [(4, bytes(changed[4:8]), False)]


def test_zeros_that_were_never_held_before_are_contents() -> None:
    memory = FoundWrites()
    data = bytes(128) + b"abcd" + bytes(128)
    assert seen(memory, 0, data) == [(128, b"abcd", False), (0, bytes(128), True), (132, bytes(128), True)]
    assert seen(memory, 0, bytes(128) + b"abcd" + b"efgh" + bytes(124)) == [(132, b"efgh", False)]


def test_zeros_between_other_values_of_new_memory_were_written_too() -> None:
    assert seen(FoundWrites(), 0, b"abcd" + bytes(32) + b"efgh") == [(0, b"abcd" + bytes(32) + b"efgh", False)]


def test_offsets_count_from_where_the_mapping_starts() -> None:
    memory = FoundWrites()
    memory.follow(Call(1, "vkMapMemory", {"memory": 5, "offset": 4094, "size": 8}))
    assert seen(memory, 0, b"abcdefgh") == [(4094, b"abcdefgh", False)]
    assert seen(memory, 4, b"efgX") == [(4098, b"efgX", False)]
    memory.follow(Call(2, "vkFreeMemory", {"memory": 5}))
    assert seen(memory, 0, b"abcd") == [(0, b"abcd", False)]


def test_memory_that_is_held_in_pieces_is_compared_where_it_is_known() -> None:
    memory = FoundWrites()
    seen(memory, 100, b"aaaabbbb")
    assert seen(memory, 104, b"bbbbcccc") == [(108, b"cccc", False)]
    assert seen(memory, 96, b"9999aaaabbbbccccdddd") == [(96, b"9999", False), (112, b"dddd", False)]


def test_contents_of_a_snapshot_are_no_writes() -> None:
    memory = FoundWrites()
    data = bytes(range(1, 101))
    assert memory.contents(1, 5, 50, data) == HostWrite(1, 5, 50, data, None, True)
    assert seen(memory, 50, data) == []


def test_runs_are_bounded() -> None:
    memory = FoundWrites()
    size = 4096 * 4
    seen(memory, 0, b"\1" * size)
    striped = b"\1\1\1\1\2\2\2\2" * (size // 8)
    runs = seen(memory, 0, striped)
    assert len(runs) == MOST_RUNS
    assert all(striped[begin : begin + len(data)] == data for begin, data, _ in runs)
    assert sum(len(data) for _, data, _ in runs) < size


def overwritten(found_by_comparing: bool) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    """Hazards of a host write to 16 bytes of which the device filled the first 8, and then waited."""
    stream = Stream()
    memory = stream.memory()
    buffer = stream.buffer(16, memory)
    device = next(each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCreateDevice")
    device.args[FOUND_WRITES] = int(found_by_comparing)
    stream.begin()
    stream.fill(buffer, 7, size=8)
    stream.submit()
    stream.host_write(memory, 0, b"0123456789abcdef")
    return [(each.hazard, each.ranges) for each in Analysis().follow(stream.blocks).findings]


def test_what_the_device_wrote_since_is_not_taken_for_a_write_of_the_host() -> None:
    assert overwritten(False) == [("WRITE_AFTER_WRITE", ((0, 8),))]
    assert overwritten(True) == []


def test_the_next_write_of_the_host_to_the_same_bytes_counts() -> None:
    stream = Stream()
    memory = stream.memory()
    buffer = stream.buffer(16, memory)
    device = next(each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCreateDevice")
    device.args[FOUND_WRITES] = 1
    stream.begin()
    stream.fill(buffer, 7, size=8)
    stream.submit(wait=False)
    stream.host_write(memory, 0, b"0123456789abcdef")
    stream.host_write(memory, 0, b"01234567")
    (finding,) = Analysis().follow(stream.blocks).findings
    assert (finding.hazard, finding.ranges) == ("WRITE_AFTER_WRITE", ((0, 8),))

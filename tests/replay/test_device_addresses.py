"""Device addresses that shaders load from memory: where they come from, and what they are on the target."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.streams import Stream
from vkharness.replay.objects.device_addresses import DeviceAddresses, StoredAddresses, StoredPart
from vkharness.replay.objects.stored_addresses import stored_addresses
from vkharness.trace.calls import Call

AT, HERE = 0x7F00_0000_1000, 0x5500_0000_2000
DATA = b"12345678" + AT.to_bytes(8, "little")


def made(copied: bool, older: int = 0) -> tuple[Stream, int, int]:
    """A dispatch that stores through an address: (stream, the buffer that holds it, and its place in the data). The
    buffer held the address `older` before."""
    stream = Stream()
    target, where, staging = stream.buffer(512), stream.buffer(16), stream.buffer(16)
    stream.call("vkGetBufferDeviceAddress", device=stream.device, pInfo={"buffer": target})
    last = stream.blocks[-1]
    assert isinstance(last, Call)
    last.result = AT
    dispatch = stream.compute("uniform_address", [where], b"1234")
    stream.begin()
    if older:
        stream.cmd("UpdateBuffer", dstBuffer=where, dstOffset=0, dataSize=8, pData=older.to_bytes(8, "little"))
    written = staging if copied else where
    data = DATA if copied else DATA[8:]
    stream.cmd("UpdateBuffer", dstBuffer=written, dstOffset=0, dataSize=len(data), pData=data)
    if copied:
        region = {"srcOffset": 8, "dstOffset": 0, "size": 8}
        stream.cmd("CopyBuffer", srcBuffer=staging, dstBuffer=where, pRegions=[region])
    dispatch.run()
    stream.submit()
    return stream, where, 8 if copied else 0


@pytest.mark.parametrize("copied", [False, True])
def test_the_data_of_an_address_that_a_shader_loads_is_found(copied: bool) -> None:
    stream, where, at = made(copied)
    found = stored_addresses(stream.blocks)
    assert found.places == {(where, 0)}
    (parts,) = found.parts.values()
    assert [tuple(each) for each in parts] == [(at, 0, 8, AT.to_bytes(8, "little"), False)]


def test_the_data_of_an_older_address_is_found_too() -> None:
    """Where a barrier is missing, the shader may load it."""
    stream, where, at = made(copied=True, older=AT + 64)
    found = stored_addresses(stream.blocks)
    assert found.places == {(where, 0)}
    older, newer = ((AT + more).to_bytes(8, "little") for more in (64, 0))
    assert sorted(part for (part,) in found.parts.values()) == [(0, 0, 8, older, False), (at, 0, 8, newer, False)]


def test_data_becomes_that_of_the_target_only_where_it_is_loaded_as_an_address() -> None:
    stream, _, _ = made(copied=True)
    addresses = DeviceAddresses()
    addresses.add(AT, 512, HERE)
    addresses.stored = stored_addresses(stream.blocks)
    update = next(each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCmdUpdateBuffer")
    assert addresses.translated(update.args)["pData"] == DATA[:8] + HERE.to_bytes(8, "little")
    alike = bytes(bytearray(DATA))
    assert addresses.written(alike) == DATA, "nobody loads an address from other data"


def test_equal_data_becomes_that_of_the_target_in_each_update() -> None:
    stream, where, _ = made(copied=False)
    for _ in range(3):
        stream.begin()
        stream.cmd("UpdateBuffer", dstBuffer=where, dstOffset=0, dataSize=8, pData=bytes(bytearray(DATA[8:])))
        stream.submit()
    addresses = DeviceAddresses()
    addresses.add(AT, 512, HERE)
    addresses.stored = stored_addresses(stream.blocks)
    updates = [each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCmdUpdateBuffer"]
    assert [addresses.translated(each.args)["pData"] for each in updates] == [HERE.to_bytes(8, "little")] * 4


def test_data_that_a_secondary_command_buffer_writes_is_found() -> None:
    """The command that executes one could not be read, so that nothing was known from there on."""
    stream, where, _ = made(copied=False)
    inner = stream.begin(level=1)
    data = (AT + 64).to_bytes(8, "little")
    stream.cmd("UpdateBuffer", dstBuffer=where, dstOffset=0, dataSize=8, pData=data)
    stream.end()
    stream.begin()
    stream.cmd("ExecuteCommands", pCommandBuffers=[inner])
    stream.submit()
    assert len(stored_addresses(stream.blocks).parts) == 2


def test_contents_are_compared_as_those_of_the_trace() -> None:
    addresses = DeviceAddresses()
    addresses.add(AT, 512, HERE)
    held = np.frombuffer(b"abcd" + (HERE + 16).to_bytes(8, "little") + b"efgh", np.uint8)
    assert addresses.of_trace(held, 4) is held, "no address lies in memory"
    addresses.stored = StoredAddresses(places={(7, 8)})
    seen = addresses.of_trace(held, 4)
    assert seen.tobytes() == b"abcd" + (AT + 16).to_bytes(8, "little") + b"efgh"
    assert addresses.of_target(seen, 4).tobytes() == held.tobytes()
    assert addresses.lost(7, 4, seen) is None and addresses.lost(8, 4, held) is None
    assert addresses.lost(7, 4, held) == HERE + 16, "the trace has no buffer there"


DESCRIPTOR, OTHER = b"descriptor-there", b"descriptor-here!"


def test_descriptors_in_contents_are_compared_as_those_of_the_trace() -> None:
    addresses = DeviceAddresses()
    addresses.add_descriptor(DESCRIPTOR, OTHER)
    held = np.frombuffer(b"abcd" + OTHER + OTHER[:8] + b"efgh" + OTHER, np.uint8)
    seen = addresses.of_trace(held, 4)
    assert seen.tobytes() == b"abcd" + DESCRIPTOR + OTHER[:8] + b"efgh" + OTHER, "the last one lies where none can"
    assert addresses.of_target(seen, 4).tobytes() == held.tobytes()


def test_bytes_that_are_no_descriptor_are_never_read_as_one() -> None:
    addresses = DeviceAddresses()
    addresses.add_descriptor(DESCRIPTOR, OTHER)
    addresses.stored = StoredAddresses(descriptors={(7, 16, 16)})
    stale = np.frombuffer(bytes(8) + DESCRIPTOR + bytes(8), np.uint8)
    assert not addresses.is_lost(7, 8, stale)
    assert addresses.is_lost(7, 8, stale[::-1]) and not addresses.is_lost(8, 8, stale[::-1])


def test_an_address_that_the_program_asks_for_later_is_known_before() -> None:
    """An address that was asked for counts first: a later buffer may have the same address."""
    addresses = DeviceAddresses()
    addresses.foresee(AT, 512, HERE)
    assert addresses.leads(AT + 511) and not addresses.leads(AT + 512)
    assert addresses.translated({"deviceAddress": AT + 16}) == {"deviceAddress": HERE + 16}
    addresses.add(AT, 512, HERE + 0x1000)
    assert addresses.translated({"deviceAddress": AT}) == {"deviceAddress": HERE + 0x1000}


def test_parts_of_descriptors_in_the_data_of_a_write() -> None:
    addresses = DeviceAddresses()
    addresses.add_descriptor(DESCRIPTOR, OTHER)
    data = b"...." + DESCRIPTOR[:12]
    addresses.stored.parts[id(data)] = {StoredPart(4, 0, 12, DESCRIPTOR, is_descriptor=True)}
    assert addresses.written(data) == b"...." + OTHER[:12]


def test_a_trace_without_device_addresses_has_none() -> None:
    assert stored_addresses(Stream().blocks) == StoredAddresses()

"""Reads that a program declares: where they stand in the stream, what is judged, and what a replay's host sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vkharness
from tests.support.written_pages import MECHANISMS, changes, choose
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import Finding, Hazard, UserError
from vkharness.record.mapped_memory import Mapping
from vkharness.record.session import Session
from vkharness.replay.outcomes.jobs import run_native, run_serial, run_witness
from vkharness.rig.core import RigBuffer
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VK_WHOLE_SIZE, VkMemoryProperty
from vkharness.trace import non_coherent
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.codec import load, save

RAW = "READ_AFTER_WRITE"
LOST = Hazard.UNFLUSHED_WRITE
COHERENT, ATOM = VkMemoryProperty.HOST_COHERENT, 64


@pytest.fixture(autouse=True)
def lavapipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def session() -> Iterator[Session]:
    with vkharness.attach(keep_trace=True) as attached:
        yield attached


def fill(rig: Rig, buffer: RigBuffer, barrier: bool = True) -> None:
    with rig.submission() as commands:
        commands.fill(buffer, 0x11223344)
        if barrier:
            commands.barrier("", "CLEAR/TRANSFER_WRITE", "HOST/HOST_READ")


def filled(session: Session, barrier: bool = True, wait: bool = True) -> list[Block]:
    with Rig() as rig:
        buffer = rig.buffer()
        fill(rig, buffer, barrier)
        if wait:
            rig.wait()
        seen = rig.host_read(buffer, 16, 64)
        assert (
            not wait or seen == bytes.fromhex("44332211") * 16
        )  # without the wait lavapipe shows the hazard by itself
    session.detach()
    return list(session.blocks or ())


def test_a_read_stands_where_it_was_made(session: Session) -> None:
    blocks = filled(session)
    (at,) = [index for index, block in enumerate(blocks) if isinstance(block, HostRead)]
    read, before = blocks[at], blocks[at - 1]
    assert isinstance(read, HostRead) and isinstance(before, Call)
    assert before.name == "vkMapMemory"
    assert (read.memory, read.offset, read.size) == (before.args["memory"], 16, 64)
    assert (read.site or "").startswith(__file__)
    assert session.verdict == "clean", session.internal_errors


@pytest.mark.parametrize(("barrier", "wait"), [(False, True), (True, False), (False, False)])
def test_a_trace_is_judged_like_the_program(session: Session, tmp_path: Path, barrier: bool, wait: bool) -> None:
    blocks = filled(session, barrier, wait)
    assert [finding.hazard for finding in session.findings] == [RAW]
    save(tmp_path / "t.jsonl", blocks)
    again = load(tmp_path / "t.jsonl")
    assert [block for block in again if isinstance(block, HostRead)] == [b for b in blocks if isinstance(b, HostRead)]
    assert [finding.to_dict() for finding in Analysis().follow(again).findings] == [
        finding.to_dict() for finding in session.findings
    ]


@pytest.mark.parametrize("wait", [True, False])
def test_the_hazard_of_a_read_is_shown(session: Session, wait: bool) -> None:
    blocks = filled(session, barrier=not wait, wait=wait)
    (finding,) = session.findings
    result = run_witness(blocks, finding, "lavapipe")
    assert result.shown, result.reason
    (difference,) = result.differences
    assert (difference.kind, difference.count, difference.total) == ("host read", 16, 16)
    assert (difference.expected, difference.observed) == ("44332211", "00000000")


def test_a_replay_reads_what_the_program_read(session: Session) -> None:
    blocks = filled(session)
    for run in (run_serial, run_native):
        reads = [surface for surface in run(blocks, "lavapipe").surfaces.values() if surface.kind == "host read"]
        assert [surface.data.tobytes() for surface in reads] == [bytes.fromhex("44332211") * 16]


def test_what_may_be_named(session: Session) -> None:
    with Rig() as rig:
        vk, memory = rig.vk, rig.memory(1024)
        mapped = vk.vkMapMemory(rig.device, memory, 256, 512, 0)
        session.host_read(mapped)
        session.host_read(mapped, 64, 4)
        session.host_read(memory)
        vkharness.host_read(memory, 8)
        for wrong in (None, 7, bytes(8), rig.device, bytearray(4)):
            with pytest.raises(UserError, match="host_read takes"):
                session.host_read(wrong)
        for outside in ((0, 1025), (1025, None), (-1, 2), (8, -1)):
            with pytest.raises(UserError, match="1024 bytes"):
                session.host_read(memory, *outside)
        vk.vkUnmapMemory(rig.device, memory)
        with pytest.raises(UserError, match="host_read takes"):
            session.host_read(mapped)
    reads = [(b.offset, b.size) for b in session.blocks or () if isinstance(b, HostRead)]
    assert reads == [(256, 512), (320, 4), (0, 1024), (8, 1016)]


def test_without_a_session_nothing_happens() -> None:
    vkharness.host_read(object())


def test_host_writes_come_before_the_read(session: Session) -> None:
    with Rig() as rig:
        buffer = rig.buffer()
        mapped = rig.vk.vkMapMemory(rig.device, buffer.memory, 0, 256, 0)
        mapped[:4] = b"host"
        vkharness.host_read(mapped)
        rig.vk.vkUnmapMemory(rig.device, buffer.memory)
    kinds = [type(block) for block in session.blocks or () if not isinstance(block, Call)]
    assert kinds[-2:] == [HostWrite, HostRead]


# Memory that is not coherent: no software driver has any, so that the stream says so in the driver's place.


def loose(blocks: list[Block], non_coherent_atom_size: int = ATOM) -> list[Finding]:
    """Returns the findings in a stream whose driver has no coherent memory."""
    mirror = Analysis()
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkGetPhysicalDeviceMemoryProperties":
            for each in block.args["pMemoryProperties"]["memoryTypes"]:
                each["propertyFlags"] &= ~COHERENT
        if isinstance(block, Call) and block.name == "vkGetPhysicalDeviceProperties":
            block.args["pProperties"]["limits"]["nonCoherentAtomSize"] = non_coherent_atom_size
        mirror.step(block)
    assert mirror.unmodelled == {}
    return mirror.findings


@pytest.fixture
def seen_loose(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder takes all host-visible memory for non-coherent."""
    visible = SimpleNamespace(HOST_VISIBLE=VkMemoryProperty.HOST_VISIBLE, HOST_COHERENT=0)
    monkeypatch.setattr(non_coherent, "VkMemoryProperty", visible)


def bare(rig: Rig) -> RigBuffer:
    """A buffer in memory that the rig has not cleared, which would want a flush."""
    return rig.buffer(256, rig.memory(256, wanted=0))


def other(mapped: Any) -> bytes:
    """Bytes that differ from what is there: drivers hand out memory with old contents in it."""
    return bytes(255 - value for value in bytes(mapped))


def ranged(rig: Rig, name: str, memory: Any, offset: int = 0, size: int = VK_WHOLE_SIZE) -> None:
    """vkFlushMappedMemoryRanges or vkInvalidateMappedMemoryRanges of one range."""
    getattr(rig.vk, name)(rig.device, 1, [rig.vk.VkMappedMemoryRange(memory=memory, offset=offset, size=size)])


def uploaded(flush: Callable[[Rig, Any], None]) -> list[Block]:
    """A host write, its flush, and a copy of the bytes by the device."""
    with vkharness.attach(keep_trace=True) as session:
        with Rig() as rig:
            a, b = bare(rig), bare(rig)
            mapped = rig.vk.vkMapMemory(rig.device, a.memory, 0, a.size, 0)
            mapped[:] = other(mapped)
            flush(rig, a.memory)
            with rig.submission() as commands:
                commands.copy(a, b)
            rig.wait()
            rig.vk.vkUnmapMemory(rig.device, a.memory)
        assert session.findings == []
    return session.blocks or []


FLUSH, INVALIDATE = "vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges"


@pytest.mark.usefixtures("seen_loose")
def test_what_is_not_flushed_is_not_seen() -> None:
    (finding,) = loose(uploaded(lambda rig, memory: None))
    assert (finding.hazard, finding.place.command, finding.prior.command) == (RAW, "vkCmdCopyBuffer", "host write")
    assert FLUSH in finding.missing
    assert loose(uploaded(lambda rig, memory: ranged(rig, FLUSH, memory))) == []


@pytest.mark.usefixtures("seen_loose")
def test_the_hazard_of_a_missing_flush_is_shown() -> None:
    """The copy sees what was there before the host wrote."""
    blocks = uploaded(lambda rig, memory: None)
    (finding,) = loose(blocks)
    result = run_witness(blocks, finding, "lavapipe")
    assert result.shown, result.reason
    assert {difference.kind for difference in result.differences} == {"buffer"}


@pytest.mark.usefixtures("seen_loose")
def test_a_flush_means_whole_atoms() -> None:
    (finding,) = loose(uploaded(lambda rig, memory: ranged(rig, FLUSH, memory, 0, 64)))
    assert finding.ranges == ((64, 192),)
    assert loose(uploaded(lambda rig, memory: ranged(rig, FLUSH, memory, 8, 200))) == []


@pytest.mark.usefixtures("seen_loose")
def test_bytes_that_were_there_before_need_no_flush() -> None:
    """Memory that the host sees for the first time comes whole into the trace; that is no write of it."""
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        memory = rig.memory(512, wanted=0)
        a, b = rig.buffer(256, memory), rig.buffer(256, memory, 256)
        mapped = rig.vk.vkMapMemory(rig.device, memory, 0, 512, 0)
        mapped[:256] = other(mapped)[:256]
        ranged(rig, FLUSH, memory, 0, 256)
        with rig.submission() as commands:
            commands.copy(a, b)
        rig.wait()
        rig.vk.vkUnmapMemory(rig.device, memory)
    assert loose(session.blocks or []) == []


def read_back(invalidate: Callable[[Rig, Any], None]) -> list[Block]:
    """A fill by the device, seen by the host after an invalidate."""
    with vkharness.attach(keep_trace=True) as session:
        with Rig() as rig:
            buffer = bare(rig)
            fill(rig, buffer)
            rig.wait()
            mapped = rig.vk.vkMapMemory(rig.device, buffer.memory, 0, buffer.size, 0)
            invalidate(rig, buffer.memory)
            vkharness.host_read(mapped)
            rig.vk.vkUnmapMemory(rig.device, buffer.memory)
        assert session.findings == []
    return session.blocks or []


@pytest.mark.usefixtures("seen_loose")
def test_what_is_not_invalidated_is_not_seen() -> None:
    (finding,) = loose(read_back(lambda rig, memory: None))
    assert (finding.hazard, finding.place.command, finding.prior.command) == (RAW, "host read", "vkCmdFillBuffer")
    assert finding.missing.startswith(INVALIDATE)
    assert loose(read_back(lambda rig, memory: ranged(rig, INVALIDATE, memory))) == []
    (finding,) = loose(read_back(lambda rig, memory: ranged(rig, INVALIDATE, memory, 128, 128)))
    assert finding.ranges == ((0, 128),)


def test_an_invalidate_says_that_the_host_reads() -> None:
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        buffer = bare(rig)
        fill(rig, buffer)
        rig.vk.vkMapMemory(rig.device, buffer.memory, 0, buffer.size, 0)
        ranged(rig, INVALIDATE, buffer.memory)
        rig.wait()
        rig.vk.vkUnmapMemory(rig.device, buffer.memory)
    (finding,) = session.findings
    assert (finding.hazard, finding.place.command) == (RAW, INVALIDATE)
    result = run_witness(session.blocks or [], finding, "lavapipe")
    assert result.shown, result.reason
    assert {difference.kind for difference in result.differences} == {"host read"}


@pytest.mark.usefixtures("seen_loose")
def test_an_invalidate_of_unflushed_writes_loses_them() -> None:
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        memory = rig.memory(256, wanted=0)
        mapped = rig.vk.vkMapMemory(rig.device, memory, 0, 256, 0)
        mapped[70:74] = other(mapped)[70:74]
        ranged(rig, INVALIDATE, memory, 64, 64)
        rig.vk.vkUnmapMemory(rig.device, memory)
    assert session.findings == []
    (finding,) = loose(session.blocks or [])
    assert (finding.hazard, finding.place.command, finding.prior.command) == (LOST, INVALIDATE, "host write")
    assert finding.to_dict()["vuid"] == f"SYNC-{LOST}"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_recorder_tells_writes_from_what_was_there(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(mechanism, monkeypatch)
    held = bytearray(b"\7" * 64)
    mapping = Mapping(1, 32, held, [(32, 96)], exact=True)
    held[8:12] = b"abcd"
    assert mapping.initial() == [(32, b"\7" * 64)]
    assert changes(mapping) == [(40, b"abcd")]
    assert (mapping.initial(), changes(mapping)) == ([], [])


def test_what_memory_held_is_marked_in_the_trace(tmp_path: Path) -> None:
    blocks: list[Block] = [HostWrite(1, 5, 0, bytes(8), None, True), HostWrite(2, 5, 4, b"abcd")]
    save(tmp_path / "t.jsonl", blocks)
    assert load(tmp_path / "t.jsonl") == blocks

"""Broken and hostile captures: what cannot be read costs the call that it is in, or one line; never a traceback."""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.capture_files import CAPTURE, COMPRESSED, FUNCTION, put_together, take_apart
from tests.support.capture_files import Block as Raw
from vkharness import cli
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.model.judge import judge
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load
from vkharness.trace.gfxr.blocks import META
from vkharness.trace.gfxr.reader import FILL_MEMORY

WHOLE = load(CAPTURE)
FILL_BUFFER = 1 << 16 | 0x1075


def read(path: Path) -> tuple[list[Block], list[str]]:
    notes: list[str] = []
    return load(path, notes), notes


def unread(blocks: list[Block]) -> list[str]:
    """Names the commands that the verdict of these blocks calls not modelled."""
    return sorted(Analysis().follow(blocks).unmodelled)


def place_of(raw: list[Raw], name: str) -> int:
    """The number of the block that holds the first call of a command."""
    return next(each.index for each in WHOLE if isinstance(each, Call) and each.name == name)


def test_a_file_that_is_cut_off_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    data = CAPTURE.read_bytes()
    rng = random.Random(3)
    path = tmp_path / "cut.gfxr"
    for end in sorted(rng.sample(range(24, len(data)), 60)):
        path.write_bytes(data[:end])
        blocks, notes = read(path)
        assert blocks == WHOLE[: len(blocks)]
        assert len(notes) <= 1 and all("ends in the middle of block" in note for note in notes)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"GFXR", "ends in its header"),
        (struct.pack("<4sIII", b"GFXR", 0, 0, 5), "ends in its header"),
        (struct.pack("<4sIII", b"GFXR", 0, 0, 1 << 31) + bytes(4096), "ends in its header"),
        (struct.pack("<4sIII", b"GFXR", 7, 0, 0), "in the format 7.0"),
        (struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 9), "compressed in a way"),
    ],
)
def test_a_header_that_cannot_be_read_is_one_line(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "c.gfxr").write_bytes(data)
    with pytest.raises(UserError, match=complaint) as caught:
        load(tmp_path / "c.gfxr")
    assert "\n" not in str(caught.value)


def test_a_call_that_ends_too_early_is_named_with_its_block(tmp_path: Path) -> None:
    raw = take_apart(CAPTURE)
    number = place_of(raw, "vkCmdCopyBuffer")
    raw[number] = replace(raw[number], content=raw[number].content[:40])
    blocks, notes = read(put_together(tmp_path / "c.gfxr", raw))
    assert notes == []
    assert len(blocks) == len(WHOLE)
    (name,) = unread(blocks)
    assert name.startswith(f"vkCmdCopyBuffer (block {number}: ")


@pytest.mark.parametrize(
    ("name", "told"), [("vkGetBufferMemoryRequirements", ""), ("vkGetPhysicalDeviceProperties2", "it ends in the ")]
)
def test_a_query_that_cannot_be_read_costs_its_answer(name: str, told: str, tmp_path: Path) -> None:
    """Nothing, where no judge needs that; else no verdict is clean."""
    raw = take_apart(CAPTURE)
    number = place_of(raw, name)
    raw[number] = replace(raw[number], content=raw[number].content[:18])
    blocks, notes = read(put_together(tmp_path / "c.gfxr", raw))
    passed_over = [f"1 queries passed over that cannot be read: {name}"] if not told else []
    assert [note.split(": ", 1)[1] for note in notes] == passed_over
    assert [each.startswith(f"{name} (block {number}: {told}") for each in unread(blocks)] == [True] * bool(told)
    assert [each for each in blocks if each.index != number] == [each for each in WHOLE if each.index != number]


def test_commands_and_blocks_without_a_name_are_passed_over(tmp_path: Path) -> None:
    raw = take_apart(CAPTURE)
    raw.insert(4, Raw(FUNCTION, struct.pack("<IQ", 1 << 16 | 0xFFF0, 1) + bytes(16), 12, True))
    raw.insert(5, Raw(FUNCTION, struct.pack("<IQ", 7 << 16 | 0x1000, 1) + bytes(16), 12, True))
    raw.insert(6, Raw(77, bytes(100)))
    blocks, notes = read(put_together(tmp_path / "c.gfxr", raw))
    assert len(notes) == 2
    assert unread(blocks) == ["vkUnknown0xfff0 (block 4: a command that this vkharness has no name of)"]


@pytest.mark.parametrize("compression", [1, 2, 3])
def test_sizes_that_a_block_only_claims_are_not_allocated(tmp_path: Path, compression: int) -> None:
    path = put_together(tmp_path / "c.gfxr", take_apart(CAPTURE), compression)
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack("<I", FUNCTION | COMPRESSED)) + 4 + 12
    for size in (1 << 62, 1 << 40, 1 << 26, 1):
        struct.pack_into("<Q", data, at, size)
        path.write_bytes(data)
        blocks, _ = read(path)
        assert [getattr(block, "unread", "") != "" for block in blocks].count(True) == 1


def test_what_expands_out_of_all_proportion_is_refused(tmp_path: Path) -> None:
    """8 kB of zstd can be 256 MiB, which take seconds to compare with what was there, and all of that memory."""
    import zstandard

    size = 256 << 20
    packed = zstandard.ZstdCompressor().compress(bytes(size))
    content = struct.pack("<IQQQQ", 1 << 16 | FILL_MEMORY, 1, 5, 0, size) + packed
    block = struct.pack("<QI", len(content), META | COMPRESSED) + content
    path = tmp_path / "c.gfxr"
    path.write_bytes(struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 3) + block)
    said = rf"c.gfxr: block 0: out of proportion to the size of its stream: {size:,} bytes out of {len(content):,}"
    with pytest.raises(UserError, match=said):
        load(path)


@pytest.mark.parametrize(("pattern", "is_left_out"), [(b"\x01\x02\x03\x04", True), (bytes(4), False)])
def test_contents_are_work_of_the_command(
    pattern: bytes, is_left_out: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are compared and kept: one budget has them beside all other work. Zeros take next to nothing."""
    size, path = 2 << 20, tmp_path / "c.gfxr"
    packed = zlib.compress(pattern * (size // 4))
    text = struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 2)
    for at in range(8):
        content = struct.pack("<IQQQQ", 1 << 16 | FILL_MEMORY, 1, 5, at * size, size) + packed
        text += struct.pack("<QI", len(content), META | COMPRESSED) + content
    path.write_bytes(text)
    with pytest.raises(SystemExit) as left:
        cli.main(["check", "--work", "0.1", str(path)])
    assert left.value.code == (3 if is_left_out else 0)
    assert ("at bytes of the contents of memory; --work 1 allows" in capsys.readouterr().out) == is_left_out


def test_a_count_is_held_against_the_bytes_that_are_there(tmp_path: Path) -> None:
    raw = take_apart(CAPTURE)
    number = place_of(raw, "vkCmdCopyBuffer")
    content = bytearray(raw[number].content)
    # Number and thread, three handles, the count, then the pointer's kind and address before its own count.
    struct.pack_into("<Q", content, 12 + 24 + 4 + 4 + 8, 1 << 60)
    raw[number] = replace(raw[number], content=bytes(content))
    blocks, _ = read(put_together(tmp_path / "c.gfxr", raw))
    assert unread(blocks)[0].startswith(f"vkCmdCopyBuffer (block {number}: {1 << 60} elements")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_bytes_change_the_other_calls_are_read_and_there_is_a_verdict(tmp_path: Path, seed: int) -> None:
    """Bytes of calls are changed before they are compressed, so that the changes reach the decoders."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    raw = take_apart(CAPTURE)
    path = tmp_path / "c.gfxr"
    for _ in range(25):
        changed = list(raw)
        for _ in range(rng.randint(1, 6)):
            number = rng.randrange(len(changed))
            content = bytearray(changed[number].content)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(content))
                content[at : at + rng.choice((1, 1, 4))] = rng.choice((b"\xff", b"\0", rng.randbytes(4)))
            changed[number] = replace(changed[number], content=bytes(content))
        touched = {number for number, (old, new) in enumerate(zip(raw, changed, strict=True)) if old != new}
        blocks, _ = read(put_together(path, changed, rng.choice((0, 1))))
        kept = {block.index: block for block in blocks if isinstance(block, Call) and "Template" not in block.name}
        for call in WHOLE:
            if isinstance(call, Call) and call.index not in touched:
                assert kept[call.index] == call
        assert Analysis().follow(blocks).verdict in ("clean", "hazards", "unknown")
        judge(blocks)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_bytes_of_the_file_change_there_is_no_traceback(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    data = CAPTURE.read_bytes()
    path = tmp_path / "c.gfxr"
    for _ in range(50):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 5)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            read(path)
        except UserError as error:
            assert "\n" not in str(error)

"""Changes of traces in one file: in what they hold, in their chunks, in their compressed bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from vkharness.fuzz.hostile.binary_changes import NUMBERS, changed_bytes
from vkharness.trace.packed_chunks import ENTRY, HEAD, ChunkKind, PackedGroup, chunk, parts_of, tail

_NAMED = re.compile(rb'"([\w.-]+\.bin/[0-9a-f]{32}\.bin)"')
_CONTENTS = re.compile(rb"^\x01 \d+$", re.MULTILINE)
_PRESENT = b'"vkQueuePresentKHR"'
MOST = 64 << 20
"""Bytes that a group expands to at most here."""


def packed_of(rng: random.Random, text: bytes, files: dict[str, bytes]) -> bytes:
    """The lines of a trace, with the files that they name, as one file of one or several groups."""
    numbers: dict[bytes, int] = {}
    groups: list[bytes] = []
    size = rng.choice((1, 3, 20, 1 << 20))
    lines = text.splitlines(keepends=True)
    for at in range(0, len(lines), size):
        made = b""
        for line in lines[at : at + size]:
            for name in _NAMED.findall(line):
                data = files.get(name.decode())
                if data is not None and name not in numbers:
                    numbers[name] = len(numbers) + 1
                    made += b"\x01 %d\n" % len(data) + data
                if name in numbers:
                    line = line.replace(name, b"#%d" % numbers[name])
            made += line
        groups.append(made)
    return _file([(int(ChunkKind.BEGINS), _compressed(each)) for each in groups])


def changed_packed(rng: random.Random, data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A file in one of whose groups the lines were changed as given, or the sizes of contents, or of which chunks are
    dropped, doubled, moved, of another kind or of many zeros; now and then with any bytes changed."""
    if rng.random() < 0.15:
        return changed_bytes(rng, data)
    chunks = [each for each in parts_of(data) if each[0] != ChunkKind.INDEX]
    for _ in range(rng.randint(1, 3)):
        if not chunks:
            break
        at = rng.randrange(len(chunks))
        kind, held = chunks[at]
        what = rng.randrange(12)
        if what < 6:
            chunks[at] = kind, _compressed(change(_expanded(held)))
        elif what == 6:
            sizes = re.sub(rb"\x01 \d+\n", lambda _: b"\x01 %d\n" % rng.choice(NUMBERS), _expanded(held))
            chunks[at] = kind, _compressed(sizes)
        elif what == 7:
            chunks[at] = kind, changed_bytes(rng, held)
        elif what == 8:
            del chunks[at]
        elif what == 9:
            chunks.insert(rng.randrange(len(chunks)), chunks[at])
        elif what == 10:
            chunks[at] = rng.choice((0, 1, 2, 3, 4, 5)), held
        else:
            zeros = bytes(rng.choice((1 << 16, 1 << 24)))
            chunks[at] = kind, _compressed(_expanded(held) + b"\x01 %d\n" % len(zeros) + zeros)
    return _file(chunks, rng.choice((0, 16, 1 << 40)) if rng.random() < 0.05 else None)


def _file(chunks: list[tuple[int, bytes]], place: int | None = None) -> bytes:
    """A file of chunks, with an index of their groups; `place` is where it says that the index is."""
    made, groups = HEAD, []
    lines = frames = contents = 0
    for kind, data in chunks:
        if kind == ChunkKind.BEGINS:
            groups.append(PackedGroup(len(made), lines + 1, frames, contents))
            held = _expanded(data)
            begun = len(_CONTENTS.findall(held))
            lines, frames, contents = lines + held.count(b"\n") - begun, frames + held.count(_PRESENT), contents + begun
        made += chunk(kind, data)
    index = b"".join(ENTRY.pack(*each) for each in groups)
    return made + chunk(ChunkKind.INDEX, index) + tail(len(made) if place is None else place)


def _compressed(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress(data)


def _expanded(data: bytes) -> bytes:
    """What a group of one chunk expands to; nothing where an earlier change made that impossible."""
    import zstandard

    made = b""
    try:
        for piece in zstandard.ZstdDecompressor(max_window_size=1 << 23).read_to_iter(data):
            made += piece
            if len(made) > MOST:
                break
    except zstandard.ZstdError:
        pass
    return made

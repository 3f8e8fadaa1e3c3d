"""Captures of GFXReconstruct taken apart and put together again, for tests that change them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import lz4.block
import zstandard

CAPTURE = Path(__file__).resolve().parents[1] / "data" / "gfxrecon" / "debian-0.9.18.gfxr"
"""`tests/programs/many_shapes.py` on lavapipe, compressed with LZ4."""
META, FUNCTION = 3, 4
FILL_MEMORY, INIT_BUFFER, INIT_IMAGE = 0x10002, 0x10007, 0x10008
COMPRESSED = 1 << 31
COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    1: lambda data: lz4.block.compress(data, store_size=False),
    2: partial(zlib.compress),
    3: zstandard.ZstdCompressor().compress,
}


@dataclass(frozen=True)
class Block:
    """A block with its content expanded; `head` bytes of it are never compressed."""

    kind: int
    content: bytes
    head: int = 0
    sized: bool = False
    """Whether the size of what is compressed stands before it."""


def take_apart(path: Path) -> list[Block]:
    """The blocks of a capture that is compressed with LZ4."""
    data = path.read_bytes()
    at = 16 + 8 * struct.unpack_from("<I", data, 12)[0]
    found = []
    while at < len(data):
        size, kind = struct.unpack_from("<QI", data, at)
        content = data[at + 12 : at + 12 + size]
        at += 12 + size
        plain = kind & ~COMPRESSED
        if plain == FUNCTION:
            block = Block(plain, content, 12, True)
        elif plain == META and struct.unpack_from("<I", content)[0] in (FILL_MEMORY, INIT_BUFFER):
            block = Block(plain, content, 36)
        elif plain == META and struct.unpack_from("<I", content)[0] == INIT_IMAGE:
            block = Block(plain, content, 48 + 8 * struct.unpack_from("<I", content, 44)[0])
        else:
            block = Block(plain, content)
        if kind & COMPRESSED:
            block = replace(block, content=_expanded(block))
        found.append(block)
    return found


def _expanded(block: Block) -> bytes:
    head, rest = block.content[: block.head], block.content[block.head :]
    if block.sized:
        size, rest = struct.unpack_from("<Q", rest)[0], rest[8:]
    else:
        size = struct.unpack_from("<Q", head, 28)[0]
    expanded: bytes = lz4.block.decompress(rest, uncompressed_size=size)
    return head + expanded


def put_together(path: Path, blocks: list[Block], compression: int = 0) -> Path:
    """Writes a capture; with a compression, every call and every content of memory is compressed."""
    pieces = [struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, compression)]
    for block in blocks:
        content, kind = block.content, block.kind
        if compression and block.head:
            rest = content[block.head :]
            size = struct.pack("<Q", len(rest)) if block.sized else b""
            content = content[: block.head] + size + COMPRESS[compression](rest)
            kind |= COMPRESSED
        pieces += [struct.pack("<QI", len(content), kind), content]
    path.write_bytes(b"".join(pieces))
    return path

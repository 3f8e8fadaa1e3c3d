"""Changes of files that are no JSON: captures block by block, SPIR-V word by word, other texts in their tokens."""

from __future__ import annotations

import hashlib
import random
import re
import struct
import zlib
from collections.abc import Callable

from vkharness.fuzz.hostile.json_changes import encoded
from vkharness.trace.gfxr.blocks import COMPRESSED, FUNCTION, META

NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0xFFFF, 1 << 16, 1 << 24, 0x7FFFFFFF, 1 << 31, 0xFFFFFFFF)
TOKENS = (
    b"[" * 2000, b"a." * 1500 + b"b", b"{a=" * 1500, b"9" * 5000, b"0x" + b"f" * 3000, b'"""', b"-nan", b"1e-400",
    b"(a+)+$", b"(a|aa)*$", b"(((.*)*)*)*x", b"x{1,60000}", b"\\1", b"(?<=a+)", b'""', b"0", b"-1", b"1e999", b"nan",
    b"9999999999999999999999", b"[]", b"{}", b"[[[[[[[[", b"null", b"true", b'"\\u001b[2J"', b'"\\ud800"', b"\xff",
    b"\x00", b"1979-05-27", b"0001-01-01", b'"*"', b'"' + b"*?" * 60 + b'"', b'"[a-"', b"'''", b"#", b"\n", b"=",
    b'"' + b"A" * 5000 + b'"',
)  # fmt: skip
SPIRV_MAGIC = b"\x03\x02\x23\x07"
COMPRESSED_AGAIN = 0.25
"""The part of captures whose blocks are compressed."""
_SHADER = re.compile(rb"[\w.-]+\.bin/[0-9a-f]{32}\.bin")
_TOKEN = re.compile(rb'"[^"\n]*"|[\w.+-]+|[\[\]{}=,:]')


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to four small changes anywhere."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made) + 1)
        what = rng.randrange(5)
        if what == 0:
            made[at : at + 1] = bytes([rng.randrange(256)])
        elif what == 1:
            made[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS))
        elif what == 2:
            del made[at : at + rng.choice((1, 4, 16, 256))]
        elif what == 3:
            made[at:at] = made[at : at + rng.choice((1, 4, 16, 256))]
        elif rng.random() < 0.3:
            del made[at:]
    return bytes(made)


def changed_text(rng: random.Random, data: bytes) -> bytes:
    """A text with some tokens replaced by others, or lines dropped and doubled; now and then with other bytes."""
    if rng.random() < 0.15 or not data:
        return changed_bytes(rng, data or b"x")
    if rng.random() < 0.3:
        lines = data.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        lines[at : at + 1] = rng.choice(([], [lines[at]] * 2, [lines[at]] * 50, lines[:at], lines * 20))
        return b"".join(lines)
    if rng.random() < 0.05:
        return encoded(rng, data)
    for _ in range(rng.randint(1, 3)):
        tokens = list(_TOKEN.finditer(data))
        if not tokens:
            break
        token = rng.choice(tokens)
        new = rng.choice(TOKENS) if rng.random() < 0.7 else rng.choice(tokens)[0]
        data = data[: token.start()] + new + data[token.end() :]
    return data


def changed_words(rng: random.Random, code: bytes) -> bytes:
    """SPIR-V with words or whole instructions changed, dropped, doubled or moved."""
    words = list(struct.unpack_from(f"<{len(code) // 4}I", code))
    starts = [5]
    while starts[-1] < len(words) and words[starts[-1]] >> 16:
        starts.append(starts[-1] + (words[starts[-1]] >> 16))
    parts = [words[a:b] for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]
    head, bound = words[:5], max(words[3] if len(words) > 3 else 1, 1)
    for _ in range(rng.randint(1, 4)):
        if not parts:
            break
        at = rng.randrange(len(parts))
        part, what = parts[at], rng.randrange(8)
        if what < 4 and part:
            place = rng.randrange(len(part))
            some = rng.choice(parts) or [0]
            part[place] = rng.choice((rng.choice(NUMBERS), rng.randrange(bound), rng.choice(some), part[place] ^ 1))
        elif what == 4:
            del parts[at]
        elif what == 5:
            parts.insert(rng.randrange(len(parts)), list(part))
        elif what == 6 and part:
            part[0] = (part[0] & 0xFFFF) | (rng.choice((0, 1, len(part) + 1, 0xFFFF)) << 16)
        elif head:
            head[rng.randrange(len(head))] = rng.choice(NUMBERS)
    flat = [word & 0xFFFFFFFF for part in (head, *parts) for word in part]
    return struct.pack(f"<{len(flat)}I", *flat) + (b"\1" if rng.random() < 0.02 else b"")


def changed_shader(rng: random.Random, subject: bytes, files: dict[str, bytes]) -> tuple[bytes, dict[str, bytes]]:
    """A trace in which one SPIR-V module is another one; as it was when it has none."""
    named = [name for name in _SHADER.findall(subject) if files.get(name.decode(), b"")[:4] == SPIRV_MAGIC]
    if not named:
        return subject, files
    name = rng.choice(named)
    code = changed_words(rng, files[name.decode()])
    folder = name.rpartition(b"/")[0].decode()
    new = f"{folder}/{hashlib.sha256(code).hexdigest()[:32]}.bin"
    lines = subject.split(b"\n")
    for at, line in enumerate(lines):
        if name in line and b"vkCreateShaderModule" in line:
            old = len(files[name.decode()])
            lines[at] = line.replace(name, new.encode()).replace(b'"codeSize":%d' % old, b'"codeSize":%d' % len(code))
    return b"\n".join(lines), {**files, new: code}


def take_apart(data: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The header of a capture, without compression, and its blocks, expanded: (type, content)."""
    import lz4.block

    options = min(struct.unpack_from("<I", data, 12)[0], 16)
    at = 16 + 8 * options
    blocks = []
    while at + 12 <= len(data):
        size, kind = struct.unpack_from("<QI", data, at)
        content = data[at + 12 : at + 12 + size]
        at += 12 + size
        if kind & COMPRESSED:
            try:
                content = _expanded(content, kind & ~COMPRESSED, lz4.block.decompress)
            except Exception:  # whatever an earlier change did to it
                continue
        blocks.append((kind & ~COMPRESSED, content))
    return struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, 0), blocks


def _expanded(content: bytes, kind: int, decompress: object) -> bytes:
    head = 12 if kind == FUNCTION else 36
    if kind == META and struct.unpack_from("<I", content)[0] & 0xFFFF == 8:
        head = 48 + 8 * struct.unpack_from("<I", content, 44)[0]
    size, rest = struct.unpack_from("<Q", content, head if kind == FUNCTION else 28)[0], content[head:]
    rest = rest[8:] if kind == FUNCTION else rest
    return content[:head] + decompress(rest, uncompressed_size=min(size, 64 << 20))  # type: ignore[operator,no-any-return]


def compressed(rng: random.Random, blocks: list[tuple[int, bytes]]) -> bytes:
    """A capture with its blocks compressed. Now and then a size is not the true one, or a block is mostly zeros."""
    kind = rng.randrange(1, 4)
    made = [struct.pack("<4sIIIII", b"GFXR", 0, 0, 1, 1, kind)]
    for type_, content in blocks:
        head = _head_of(type_, content)
        if head and rng.random() < 0.8:
            rest = content[head:] + (bytes(rng.choice((1 << 16, 1 << 24))) if rng.random() < 0.03 else b"")
            size = len(rest) if rng.random() < 0.95 else rng.choice((*NUMBERS, 1 << 40, len(rest) + 1))
            told = content[: 12 if type_ == FUNCTION else 28] + struct.pack("<Q", size)
            content = told + content[len(told) : head] + _COMPRESS[kind](rest)
            type_ |= COMPRESSED
        made.append(struct.pack("<QI", len(content), type_) + content)
    return b"".join(made)


def _head_of(kind: int, content: bytes) -> int:
    """Bytes of a block that stay as they are when the others are compressed; 0 where nothing is."""
    if kind == FUNCTION:
        return 12 if len(content) > 12 else 0
    return 36 if kind == META and len(content) > 48 and struct.unpack_from("<I", content)[0] & 0xFFFF == 2 else 0


def _by_lz4(data: bytes) -> bytes:
    import lz4.block

    return lz4.block.compress(data, store_size=False)  # type: ignore[no-any-return]


def _by_zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {1: _by_lz4, 2: zlib.compress, 3: _by_zstd}
"""By the number that a capture has for it."""


def put_together(head: bytes, blocks: list[tuple[int, bytes]]) -> bytes:
    """A capture of blocks that are not compressed."""
    return head + b"".join(struct.pack("<QI", len(content), kind) + content for kind, content in blocks)


def changed_capture(rng: random.Random, data: bytes) -> bytes:
    """A capture with blocks changed inside, dropped, doubled or moved; now and then with any bytes changed."""
    if rng.random() < 0.05 or len(data) < 24:
        return changed_bytes(rng, data)
    head, blocks = take_apart(data)
    for _ in range(rng.randint(1, 5)):
        if not blocks:
            break
        at = rng.randrange(len(blocks))
        kind, content = blocks[at]
        what = rng.randrange(12)
        if what < 7 and len(content) > 4:
            made = bytearray(content)
            place = rng.randrange(len(made))
            place -= place % 4 if rng.random() < 0.8 else 0
            value = rng.choice((*NUMBERS, rng.randrange(64), rng.getrandbits(32)))
            made[place : place + 4] = struct.pack("<I", value)
            blocks[at] = kind, bytes(made[: len(content)] if rng.random() < 0.9 else made)
        elif what == 7:
            blocks[at] = kind, changed_bytes(rng, content)
        elif what == 8:
            del blocks[at]
        elif what == 9:
            blocks.insert(rng.randrange(len(blocks)), (kind, content))
        elif what == 10:
            blocks.insert(rng.randrange(len(blocks)), blocks.pop(at))
        else:
            blocks[at] = rng.choice((1, 2, 3, 4, 5, 6, 7, kind | COMPRESSED)), content
    return compressed(rng, blocks) if rng.random() < COMPRESSED_AGAIN else put_together(head, blocks)

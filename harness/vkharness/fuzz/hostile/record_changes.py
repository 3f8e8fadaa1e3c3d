"""Changes of what a program under the mirror layer wrote: segments record by record, their heads, and the page."""

from __future__ import annotations

import random
import struct

from vkharness.fuzz.hostile.binary_changes import NUMBERS, changed_bytes
from vkharness.live.records import GOES_ON, HEAD, MAGIC, RECORD, Kind

PAGE = "control"
"""The name of the page."""
LARGE = (1 << 20, 1 << 32, 1 << 40, 1 << 62, (1 << 64) - 1)
"""Sizes, offsets and addresses beside `NUMBERS`."""
LONGEST = 1 << 12
"""Bytes of a record in which words are changed; of a longer one the first so many."""
_MAGIC = struct.pack("<I", MAGIC)


def is_segment(head: bytes) -> bool:
    """Whether a file begins as a segment does."""
    return head[: len(_MAGIC)] == _MAGIC


def trimmed(data: bytes) -> bytes:
    """A segment without the room that was not written to: small ones are tried faster."""
    records = _records(data)
    return data if data[HEAD.size :].strip(b"\0") == b"" else _segment(data[: HEAD.size], records, _ends(data))


def changed_segment(rng: random.Random, data: bytes) -> bytes:
    """A segment with records changed inside, dropped, doubled, moved or cut; now and then with another head or with any
    bytes changed."""
    if rng.random() < 0.1 or len(data) < HEAD.size:
        return changed_bytes(rng, data)
    head, records, ends = data[: HEAD.size], _records(data), _ends(data)
    for _ in range(rng.randint(1, 5)):
        if not records:
            break
        at = rng.randrange(len(records))
        what = rng.randrange(12)
        if what < 6:
            records[at] = _with_a_word(rng, records[at])
        elif what < 8:
            records[at] = _with_a_head(rng, records[at])
        elif what == 8:
            del records[at]
        elif what == 9:
            records.insert(rng.randrange(len(records) + 1), records[at])
        elif what == 10:
            records.insert(rng.randrange(len(records)), records.pop(at))
        else:
            records[at] = records[at][: rng.randrange(len(records[at]) + 1)]
    if rng.random() < 0.05:
        records, ends = records[: rng.randrange(len(records) + 1)], rng.random() < 0.5
    made = _segment(head, records, ends)
    if rng.random() < 0.05:
        place = 4 * rng.randrange(HEAD.size // 4)
        made = made[:place] + struct.pack("<I", rng.choice(NUMBERS)) + made[place + 4 :]
    return made


def _with_a_word(rng: random.Random, record: bytes) -> bytes:
    """A record with another word in what follows its head: a number, or a place in the record, as pointers are."""
    words = (min(len(record), LONGEST) - RECORD.size) // 4
    if words < 1:
        return record
    place = RECORD.size + 4 * rng.randrange(words)
    is_wide = rng.random() < 0.5 and place + 8 <= len(record)
    some = (rng.choice(NUMBERS), rng.choice(LARGE), 8 * rng.randrange(len(record) // 8), rng.randrange(64))
    value = rng.choice(some) & ((1 << (64 if is_wide else 32)) - 1)
    told = struct.pack("<Q" if is_wide else "<I", value)
    return record[:place] + told + record[place + len(told) :]


def _with_a_head(rng: random.Random, record: bytes) -> bytes:
    """A record of another size, kind, command, thread, stack or serial number."""
    if len(record) < RECORD.size:
        return record
    said = list(RECORD.unpack_from(record))
    place = rng.choice((0, 1, 1, 1, 2, 2, 3, 4, 5))
    kinds = (*Kind, 0, len(Kind) + 1, 0xFFFF)
    bits = (32, 16, 16, 32, 32, 64)[place]
    near = (said[place] + 8, said[place] - 8, said[place] ^ 1)
    said[place] = int(rng.choice(kinds if place == 1 else (*NUMBERS, *near))) & ((1 << bits) - 1)
    return RECORD.pack(*said) + record[RECORD.size :]


def _records(data: bytes) -> list[bytes]:
    """The records of a segment, as far as they can be told apart."""
    found, at = [], HEAD.size
    while at + RECORD.size <= len(data):
        size = RECORD.unpack_from(data, at)[0]
        if size < RECORD.size or at + size > len(data):
            break
        found.append(data[at : at + size])
        at += size
    return found


def _ends(data: bytes) -> bool:
    """Whether the stream goes on in the next segment."""
    at = HEAD.size + sum(map(len, _records(data)))
    return data[at : at + 4] == struct.pack("<I", GOES_ON)


def _segment(head: bytes, records: list[bytes], goes_on: bool) -> bytes:
    """The segment of some records, just as large as they need."""
    body = b"".join(records) + struct.pack("<Q", GOES_ON if goes_on else 0)
    magic, version, number, _, process = HEAD.unpack(head)
    size = max(HEAD.size + len(body), HEAD.size + RECORD.size)
    return HEAD.pack(magic, version, number, size, process) + body.ljust(size - HEAD.size, b"\0")

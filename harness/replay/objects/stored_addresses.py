"""Which bytes of a trace are device addresses that its shaders load from memory.

The chain is followed from the shader back: a pointer that it loads from a block, the bytes that the block holds when
the dispatch is executed, and the host write or update that brought them there, also through copies.
Rule: rules.md#values-that-a-shader-loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from harness.commands.contents.known_memory import Piece
from harness.commands.interpret import Interpreter
from harness.replay.objects.device_addresses import BYTES, StoredAddresses, StoredPart
from harness.spec.shapes import main_name
from harness.trace.calls import Block, Call


def stored_addresses(blocks: Iterable[Block]) -> StoredAddresses:
    """Those of a trace. Traces that ask for no device address are not interpreted."""
    found, several = StoredAddresses(), list(blocks)
    if any(isinstance(each, Call) and main_name(each.name) == "vkGetBufferDeviceAddress" for each in several):
        interpreter = Interpreter()
        interpreter.objects.contents.needed()
        interpreter.objects.contents.memory.on_address = partial(_add, found)
        for block in several:
            interpreter.step(block)
    return found


def _add(found: StoredAddresses, buffer: int, offset: int, pieces: Sequence[tuple[int, int, Piece]]) -> None:
    """An address in a buffer, and what it is made of."""
    found.places.add((buffer, offset))
    data = b"".join(chunk.bytes(begin - base, end - base) for begin, end, (chunk, base) in pieces)
    address = int.from_bytes(data, "little")
    first = 0
    for begin, end, (chunk, base) in pieces if len(data) == BYTES else ():
        if not chunk.repeats:
            part = StoredPart(begin - base, first, first + end - begin, address)
            found.parts.setdefault(id(chunk.data), set()).add(part)
            found.kept.append(chunk.data)
        first += end - begin

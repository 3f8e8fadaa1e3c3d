"""Which bytes of a trace are device addresses that its shaders load from memory, or descriptors that they read there.

The chain is followed from the shader back: a pointer that it loads from a block, the bytes that the block holds, and
the host writes and updates that brought them there, also through copies. What the block held earlier counts as well:
where a barrier is missing a shader may load the older address, and that has to be one of the target too.
Rule: rules.md#values-that-a-shader-loads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from vkharness.commands.contents.known_memory import KnownMemory, Piece
from vkharness.commands.interpret import Interpreter
from vkharness.replay.objects.device_addresses import BYTES, StoredAddresses, StoredPart
from vkharness.spans import Span
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call


def stored_addresses(blocks: Iterable[Block]) -> StoredAddresses:
    """Those of a trace. Traces that ask for no device address are not interpreted. Raises UserError where they cannot
    be told.

    The first interpretation finds where shaders load addresses and descriptors, the second one everything that was
    written there.
    """
    found, several = StoredAddresses(), list(blocks)
    if not any(isinstance(each, Call) and main_name(each.name) == "vkGetBufferDeviceAddress" for each in several):
        return found
    loaded: dict[int, dict[int, int]] = {}

    def note(place: tuple[int, int], where: tuple[int, Span]) -> None:
        space, (begin, end) = where
        if end - begin == BYTES:
            found.places.add(place)
        else:
            found.descriptors.add((*place, end - begin))
        loaded.setdefault(space, {})[begin] = end - begin

    first = Interpreter()
    first.objects.contents.needed()
    first.objects.contents.memory.on_address = note
    _interpret(first, several)
    if loaded:
        second = Interpreter()
        second.objects.plans.share_nothing()
        second.objects.contents.needed()
        memory = second.objects.contents.memory
        ordered = {space: sorted(begins.items()) for space, begins in loaded.items()}
        memory.on_write = lambda space, span: _written(found, memory, space, span, ordered.get(space, ()))
        _interpret(second, several)
    return found


def _interpret(interpreter: Interpreter, blocks: Iterable[Block]) -> None:
    for block in blocks:
        interpreter.step(block)


def _written(
    found: StoredAddresses, memory: KnownMemory, space: int, span: Span, loaded: Sequence[tuple[int, int]]
) -> None:
    """Adds what the loaded values hold that were written to just now. `loaded` are their first bytes and sizes, in
    order."""
    most = max((size for _, size in loaded), default=0)
    for begin, size in loaded[bisect_right(loaded, (span[0] - most, most)) : bisect_left(loaded, (span[1], 0))]:
        if begin + size > span[0]:
            _add(found, memory.pieces(space, (begin, begin + size)) or [], size)


def _add(found: StoredAddresses, pieces: list[tuple[int, int, Piece]], size: int) -> None:
    """A loaded value, by what it is made of."""
    value = b"".join(chunk.bytes(begin - base, end - base) for begin, end, (chunk, base) in pieces)
    first = 0
    for begin, end, (chunk, base) in pieces if len(value) == size else ():
        if not chunk.repeats:
            part = StoredPart(begin - base, first, first + end - begin, value, size != BYTES)
            found.parts.setdefault(id(chunk.data), set()).add(part)
            found.kept.append(chunk.data)
        first += end - begin

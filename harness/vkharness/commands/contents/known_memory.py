"""Bytes of memory objects that are known from the calls alone: writes of the host, updates, fills, and copies of those.

Everything else that writes makes contents unknown. Bytes are kept as *chunks*, as they were written; nobody changes a
chunk, so that whatever was found out about one stays true. A copy refers to the chunks of its source.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from vkharness.commands.contents.built_structures import BuiltStructures
from vkharness.spans import Span, SpanMap, merge, overlap, subtract

MOST_BYTES = 256 << 20
"""The most bytes that are kept. Beyond that the largest chunks are forgotten, until half of it is free."""
PIECE_BYTES = 256
"""The bytes that one piece of a chunk counts as in `MOST_BYTES`, beside its data."""
MOST_CHANGES = 4096
"""The most spans of one space of which it is remembered that they changed. Beyond them, what lies between counts."""
MOST_FACTS = 4096
"""The most facts that are remembered of one chunk."""


class Chunk:
    """Bytes that were written at once; of a fill only the word that repeats."""

    __slots__ = ("data", "facts", "repeats")

    def __init__(self, data: bytes, repeats: bool = False) -> None:
        self.data, self.repeats = data, repeats
        self.facts: dict[Hashable, Any] = {}
        """Facts about parts of it, by keys that those choose who found them."""

    def remember(self, key: Hashable, fact: Any) -> None:
        """Keeps a fact about the bytes."""
        if len(self.facts) >= MOST_FACTS:
            self.facts.clear()
        self.facts[key] = fact

    def bytes(self, begin: int, end: int) -> bytes:
        """Bytes [begin, end), counted from where the chunk was written."""
        if not self.repeats:
            return self.data[begin:end]
        word = self.data[begin % 4 :] + self.data[: begin % 4]
        return (word * (-(-(end - begin) // 4)))[: end - begin]


Piece = tuple[Chunk, int]
"""A chunk, and the address of its first byte."""


class AskedMemory:
    """Records for a while which addresses of known memory are asked for, and which are written."""

    def __init__(self) -> None:
        self.is_known = True
        """Whether all that was asked for was known, and nothing else counted."""
        self._read: dict[int, list[Span]] = {}
        self._written: dict[int, list[Span]] = {}

    def read(self, space: int, span: Span, is_known: bool) -> None:
        """Somebody asks what addresses of a space hold."""
        self.is_known = self.is_known and is_known
        self._read.setdefault(space, []).append(span)

    def write(self, space: int, span: Span) -> None:
        """Addresses of a space are written, or may hold anything from here on."""
        self._written.setdefault(space, []).append(span)

    @property
    def writes(self) -> bool:
        """Whether anything was written."""
        return bool(self._written)

    def decided(self) -> list[tuple[int, Span]] | None:
        """The addresses of which the contents decided all that followed, by space and in order; None where something
        else did, or where some of them were written meanwhile."""
        read = {space: merge(spans) for space, spans in self._read.items()}
        if not self.is_known or any(overlap(read.get(space, ()), merge(each)) for space, each in self._written.items()):
            return None
        return [(space, span) for space, spans in read.items() for span in spans]


class KnownMemory:
    """The known contents of each address space.

    >>> memory = KnownMemory()
    >>> memory.write(1, 0, b"abcdef"); memory.forget(1, (4, 5)); memory.copy((1, 1), (2, 0), 3)
    >>> memory.read(2, (0, 3)), memory.read(1, (2, 6))
    (b'bcd', None)
    """

    def __init__(self) -> None:
        self._spaces: dict[int, SpanMap[Piece]] = {}
        self._kept = 0
        self.keeps = True
        """Whether what is written is known."""
        self._of_host: set[int] = set()
        """Spaces that somebody writes unseen: nothing in them is known."""
        self._changed: dict[int, list[Span]] | None = None
        self.asked: AskedMemory | None = None
        """Is told of what is asked and written."""
        self.on_address: Callable[[tuple[int, int], tuple[int, Span]], None] | None = None
        """Is told of device addresses that commands load, and of descriptors that they read, which are longer: (buffer,
        the first byte in it), and (space, addresses)."""
        self.on_write: Callable[[int, Span], None] | None = None
        """Is told of known bytes that were written: the space, and its addresses."""
        self._structures = BuiltStructures()

    @property
    def structures(self) -> BuiltStructures:
        """The acceleration structures that were built. What follows from them does not follow from bytes alone."""
        if self.asked is not None:
            self.asked.is_known = False
        return self._structures

    def watch(self) -> None:
        """From now on, `changed` tells which addresses changed."""
        self._changed = {}

    def changed(self, space: int, span: Span) -> list[Span]:
        """The addresses of a span that changed since it was asked for them, in order; none when nobody watches."""
        if not self._changed or space not in self._changed:
            return []
        spans = merge(self._changed[space])
        self._changed[space] = subtract(spans, [span])
        return overlap(spans, [span])

    def _note(self, changed: dict[int, list[Span]], space: int, span: Span) -> None:
        spans = changed.setdefault(space, [])
        spans.append(span)
        if len(spans) > MOST_CHANGES:
            changed[space] = spans = merge(spans)
            if len(spans) > MOST_CHANGES // 2:
                changed[space] = [(spans[0][0], spans[-1][1])]

    def pieces(self, space: int, span: Span, is_needed: bool = True) -> list[tuple[int, int, Piece]] | None:
        """The pieces that make up addresses of a space, in order. None when not all of them are known: where not all
        `is_needed`, nobody has asked then."""
        held, found = self._spaces.get(space), None
        if held is not None:
            piece = held.exact(*span)
            found = held.pieces(*span) if piece is None else [(*span, piece)]
            found = found if sum(end - begin for begin, end, _ in found) == span[1] - span[0] else None
        if self.asked is not None and (is_needed or found is not None):
            self.asked.read(space, span, found is not None)
        return found

    def known_pieces(self, space: int, span: Span) -> list[tuple[int, int, Piece]] | None:
        """The pieces of a span that are known, in order."""
        held = self._spaces.get(space)
        return [] if held is None else held.pieces(*span)

    def read(self, space: int, span: Span) -> bytes | None:
        """The bytes at addresses of a space; None when they are not known."""
        found = self.pieces(space, span)
        if found is None:
            return None
        return b"".join(chunk.bytes(begin - base, end - base) for begin, end, (chunk, base) in found)

    def known(self, space: int, span: Span) -> list[Span]:
        """The addresses of a span that are known, in order."""
        held = self._spaces.get(space)
        return [] if held is None else merge((begin, end) for begin, end, _ in held.pieces(*span))

    def write(self, space: int, begin: int, data: bytes) -> None:
        """These bytes are written from an address on."""
        if data:
            self._put(space, (begin, begin + len(data)), Chunk(data), len(data))

    def fill(self, space: int, span: Span, word: int) -> None:
        """A 32-bit word is written over and over."""
        if span[0] < span[1]:
            self._put(space, span, Chunk((word & 0xFFFFFFFF).to_bytes(4, "little"), repeats=True), 4)

    def copy(self, source: tuple[int, int], target: tuple[int, int], size: int) -> None:
        """Copies `size` bytes, known or not, between two places: (space, address)."""
        held = self._spaces.get(source[0])
        whole = held.exact(source[1], source[1] + size) if held is not None else None
        if whole is not None:
            chunk, base = whole
            self._put(target[0], (target[1], target[1] + size), (chunk, base + target[1] - source[1]), 0)
            return
        found = held.pieces(source[1], source[1] + size) if held is not None else []
        self.forget(target[0], (target[1], target[1] + size))
        move = target[1] - source[1]
        for begin, end, (chunk, base) in found:
            self._put(target[0], (begin + move, end + move), (chunk, base + move), 0)

    def forget(self, space: int, span: Span) -> None:
        """These addresses may hold anything now."""
        if self._changed is not None:
            self._note(self._changed, space, span)
        if self.asked is not None:
            self.asked.write(space, span)
        held = self._spaces.get(space)
        if held is not None:
            held.erase(*span)

    def leave_to_host(self, space: int) -> None:
        """The host may write to a memory object from now on, and nobody will see it."""
        self._of_host.add(space)
        self._spaces.pop(space, None)

    def forget_space(self, space: int) -> None:
        """A memory object is gone."""
        self._spaces.pop(space, None)
        self._of_host.discard(space)
        if self._changed is not None:
            self._changed.pop(space, None)

    def forget_all(self) -> None:
        """Anything may hold anything now."""
        if self.asked is not None:
            self.asked.is_known = False
        self._spaces.clear()
        self._structures.forget()
        self._kept = 0

    def _put(self, space: int, span: Span, what: Chunk | Piece, cost: int) -> None:
        if self._changed is not None:
            self._note(self._changed, space, span)
        if self.asked is not None:
            self.asked.write(space, span)
        if not self.keeps or space in self._of_host:
            self._spaces.pop(space, None)
            return
        held = self._spaces.get(space)
        if held is None:
            held = self._spaces[space] = SpanMap()
        held.put(*span, (what, span[0]) if isinstance(what, Chunk) else what)
        if self.on_write is not None:
            self.on_write(space, span)
        self._kept += cost + PIECE_BYTES
        if self._kept > MOST_BYTES:
            self._trim()

    def _trim(self) -> None:
        """Counts what is kept, and forgets the largest chunks when that is more than half of the bound."""
        sizes: dict[Chunk, int] = {}
        for held in self._spaces.values():
            for _, _, (chunk, _) in held:
                sizes[chunk] = sizes.get(chunk, len(chunk.data)) + PIECE_BYTES
        self._kept = sum(sizes.values())
        dropped = set()
        for chunk in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if self._kept <= MOST_BYTES // 2:
                break
            dropped.add(chunk)
            self._kept -= sizes[chunk]
        if dropped:
            for space, held in self._spaces.items():
                kept: SpanMap[Piece] = SpanMap()
                self._spaces[space] = kept
                for begin, end, piece in held:
                    if piece[0] not in dropped:
                        kept.put(begin, end, piece)

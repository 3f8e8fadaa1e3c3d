"""Numbers, texts, arrays and pointers as a capture encodes them.

A *decoder* takes the bytes of a block and a position in them, and gives the value in normal form and the position
after it. It raises `struct.error` or `Corrupt` where the bytes do not hold such a value. Counts are held against the
bytes that are left before anything is made of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from vkharness.trace.lines import Corrupt

Decoder = Callable[[bytes, int], tuple[Any, int]]

IS_NULL, HAS_ADDRESS, HAS_DATA = 0x01, 0x40, 0x80
HAS_COUNT = 0x11C
"""Bits of a pointer: an array (0x04), a text (0x08) also of 16-bit characters (0x10), an array of arrays (0x100)."""

NONE = -1
"""The count of a pointer that leads to nothing: null, or its data was left out."""

_U32 = struct.Struct("<I").unpack_from
_U64 = struct.Struct("<Q").unpack_from


def pointer(data: bytes, at: int) -> tuple[int, int]:
    """How many elements follow a pointer, `NONE` where there are none, and where they begin."""
    kind = _U32(data, at)[0]
    at += 4
    if kind & IS_NULL:
        return NONE, at
    if kind & HAS_ADDRESS:
        at += 8
    count = 1
    if kind & HAS_COUNT:
        count = _U64(data, at)[0]
        at += 8
    return (count if kind & HAS_DATA else NONE), at


def span(data: bytes, at: int, count: int, size: int) -> int:
    """Where `count` elements of `size` bytes end. Raises Corrupt when the block ends before."""
    end = at + count * size
    if end > len(data):
        raise Corrupt(f"{count} elements of {size} bytes where {max(len(data) - at, 0)} bytes are left")
    return end


@cache
def number(code: str) -> Decoder:
    """One number by its `struct` code."""
    read = struct.Struct("<" + code)

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        return read.unpack_from(data, at)[0], at + read.size

    return decode


@cache
def numbers(code: str) -> Decoder:
    """A pointer to numbers, as a list."""
    size = struct.calcsize("<" + code)

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        count, at = pointer(data, at)
        if count == NONE:
            return None, at
        end = span(data, at, count, size)
        return list(struct.unpack_from(f"<{count}{code}", data, at)), end

    return decode


@cache
def blob(size: int) -> Decoder:
    """A pointer to elements of `size` bytes, as bytes."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        count, at = pointer(data, at)
        if count == NONE:
            return None, at
        end = span(data, at, count, size)
        return data[at:end], end

    return decode


def text(data: bytes, at: int) -> tuple[str | None, int]:
    """A text."""
    count, at = pointer(data, at)
    if count == NONE:
        return None, at
    end = span(data, at, count, 1)
    return data[at:end].decode("utf-8", "replace"), end


def wide_text(data: bytes, at: int) -> tuple[str | None, int]:
    """A text of 16-bit characters."""
    count, at = pointer(data, at)
    if count == NONE:
        return None, at
    end = span(data, at, count, 2)
    return data[at:end].decode("utf-16-le", "replace"), end


def nothing(data: bytes, at: int) -> tuple[None, int]:
    """An address of the process that was captured: nobody follows it."""
    _U64(data, at)
    return None, at + 8


def only_null(data: bytes, at: int) -> tuple[None, int]:
    """A pointer to a type of a window or operating system: it must be null, since nothing says how long the rest is."""
    count, at = pointer(data, at)
    if count != NONE:
        raise Corrupt("a value of a type that the tables do not have")
    return None, at


def array(element: Decoder) -> Decoder:
    """A pointer to elements, or to pointers to them, each of at least four bytes, as a list."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        count, at = pointer(data, at)
        if count == NONE:
            return None, at
        span(data, at, count, 4)
        values = []
        for _ in range(count):
            value, at = element(data, at)
            values.append(value)
        return values, at

    return decode


def one_of(elements: Decoder) -> Decoder:
    """A pointer to one value, from the decoder of a pointer to several: the value, None for null."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        values, at = elements(data, at)
        return (values[0] if values else None), at

    return decode


def discarded(element: Decoder) -> Decoder:
    """A value that means nothing outside the process that was captured: None."""

    def decode(data: bytes, at: int) -> tuple[None, int]:
        _, at = element(data, at)
        return None, at

    return decode


def grid(elements: Decoder, dims: tuple[int, ...]) -> Decoder:
    """An array of fixed bounds, which a capture holds as one row: lists in lists."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        values, at = elements(data, at)
        for bound in reversed(dims[1:]):
            values = [values[i : i + bound] for i in range(0, len(values or ()), bound)]
        return values, at

    return decode

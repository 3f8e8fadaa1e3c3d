"""Device addresses of a trace as those of the target: in push constants, in structs of commands, and in memory.

In memory these are the addresses that shaders are known to load, and the descriptors of descriptor buffers
(`stored_addresses`). While there are any, contents of buffers are read and put back in terms of the trace, so that
those of two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkharness.findings import UserError

Bytes = npt.NDArray[np.uint8]
BYTES = 8
"""Of a VkDeviceAddress, and its alignment in push constants."""


class StoredPart(NamedTuple):
    """Bytes [first, end) of a device address, or of a descriptor, and where in the data of a call they are."""

    at: int
    first: int
    end: int
    value: bytes
    is_descriptor: bool = False


@dataclass(slots=True)
class StoredAddresses:
    """The device addresses that shaders load from memory."""

    places: set[tuple[int, int]] = field(default_factory=set)
    """(buffer, offset) of each."""
    descriptors: set[tuple[int, int, int]] = field(default_factory=set)
    """(buffer, offset, bytes) of each descriptor that shaders read there."""
    parts: dict[int, set[StoredPart]] = field(default_factory=dict)
    """Parts of addresses and descriptors in the data of host writes and updates, by the identity of the data."""
    kept: list[bytes] = field(default_factory=list)
    """That data."""


class DeviceAddresses:
    """The buffers whose address the program asked for: where they are in the trace, and where on the target.

    >>> addresses = DeviceAddresses()
    >>> addresses.add(0x1000, 256, 0x7000)
    >>> addresses.translated({"offset": 0, "pValues": (0x1010).to_bytes(8, "little")})["pValues"].hex()
    '1070000000000000'
    """

    def __init__(self) -> None:
        self._known: list[tuple[int, int, int]] = []
        self._later: list[tuple[int, int, int]] = []
        """Those of which the program asks for the address later. In a trace that was made smaller this may be after
        calls that have the address."""
        self._descriptors: dict[bytes, bytes] = {}
        """Descriptors of the trace, as bytes, and the target's."""
        self.stored = StoredAddresses()

    def add(self, address: int, size: int, here: int) -> None:
        """A buffer of `size` bytes at an address of the trace is at `here` on the target."""
        self._known.append((address, size, here))

    def foresee(self, address: int, size: int, here: int) -> None:
        """The program asks for the address later, as `add` will say then."""
        self._later.append((address, size, here))

    def leads(self, address: int) -> bool:
        """Whether an address of the trace leads to a buffer."""
        return self._find(address) is not None

    def add_descriptor(self, data: bytes, here: bytes) -> None:
        """A descriptor that has these bytes in the trace has others on the target."""
        self._descriptors[data] = here

    def translated(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call with the target's addresses. UserError for an address of no buffer."""
        return (
            args
            if not (self._known or self._later)
            else {name: self._value(name, value, args) for name, value in args.items()}
        )

    def _value(self, name: str, value: Any, args: Mapping[str, Any]) -> Any:
        if name == "pValues" and isinstance(value, bytes):
            return self._pushed(value, args.get("offset", 0))
        if name == "pData" and isinstance(value, bytes):
            return self.written(value)
        if isinstance(value, dict):
            return {inner: self._value(inner, each, value) for inner, each in value.items()}
        if isinstance(value, list):
            return [self._value(name, each, args) for each in value]
        if isinstance(value, int) and value and name.lower().endswith("address"):
            found = self._find(value)
            if found is None:
                raise UserError(f"no buffer of the trace is known to be at the device address {value:#x}")
            return found
        return value

    def _find(self, address: int) -> int | None:
        for begin, size, here in chain(reversed(self._known), self._later):
            if begin <= address < begin + size:
                return here + address - begin
        return None

    def _pushed(self, data: bytes, offset: int) -> bytes:
        """Bytes of push constants in which each word that is an address of a known buffer is one of the target."""
        made = bytearray(data)
        for at in range(-offset % BYTES, len(data) - BYTES + 1, BYTES):
            found = self._find(int.from_bytes(data[at : at + BYTES], "little"))
            if found is not None:
                made[at : at + BYTES] = found.to_bytes(BYTES, "little")
        return bytes(made)

    def written(self, data: bytes) -> bytes:
        """The data of a host write or an update, in which addresses that shaders load are those of the target."""
        parts = self.stored.parts.get(id(data))
        if not parts:
            return data
        made = bytearray(data)
        for at, first, end, value, is_descriptor in parts:
            found = self._descriptors.get(value) if is_descriptor else self._stored(value)
            if found is not None:
                made[at : at + end - first] = found[first:end]
        return bytes(made)

    def _stored(self, value: bytes) -> bytes | None:
        """The bytes of the target's address for those of one of the trace; None where no buffer is there."""
        found = self._find(int.from_bytes(value, "little"))
        return None if found is None else found.to_bytes(BYTES, "little")

    def of_trace(self, data: Bytes, offset: int) -> Bytes:
        """Contents of a buffer from an offset on, in which the target's addresses are those of the trace."""
        moved = self._moved(data, offset, [(here, size, begin) for begin, size, here in self._known])
        return _exchanged(data, moved, offset, {here: there for there, here in self._descriptors.items()})

    def of_target(self, data: Bytes, offset: int) -> Bytes:
        """The opposite of `of_trace`."""
        return _exchanged(data, self._moved(data, offset, self._known), offset, self._descriptors)

    def _moved(self, data: Bytes, offset: int, ranges: list[tuple[int, int, int]]) -> Bytes:
        first = -offset % BYTES
        count = (len(data) - first) // BYTES
        if not self.stored.places or count <= 0:
            return data
        made = data.copy()
        words = made[first : first + count * BYTES].view(np.uint64)
        before = words.copy()
        for begin, size, to in ranges:
            inside = (before >= begin) & (before < begin + size)
            words[inside] = before[inside] - np.uint64(begin) + np.uint64(to)
        return made

    def lost(self, buffer: int, offset: int, data: Bytes) -> int | None:
        """The first value in contents of the trace that a shader would take for a device address, and that leads to no
        buffer; None when there is none."""
        for held, at in sorted(self.stored.places):
            begin = at - offset
            if held == buffer and begin >= 0 and begin + BYTES <= len(data):
                value = int.from_bytes(data[begin : begin + BYTES].tobytes(), "little")
                if self._find(value) is None:
                    return value
        return None

    def is_lost(self, buffer: int, offset: int, data: Bytes) -> bool:
        """Whether a shader would take bytes in contents of the trace for a descriptor that the device did not give."""
        return any(
            held == buffer
            and at >= offset
            and at + size <= offset + len(data)
            and data[at - offset : at - offset + size].tobytes() not in self._descriptors
            for held, at, size in self.stored.descriptors
        )


def _exchanged(data: Bytes, moved: Bytes, offset: int, by: Mapping[bytes, bytes]) -> Bytes:
    """Contents of a buffer from an offset on, `moved` already, in which all descriptors are exchanged. They begin at
    multiples of `BYTES`."""
    chosen = {there: here for there, here in by.items() if there != here and len(there) == len(here) >= BYTES}
    first = -offset % BYTES
    count = (len(data) - first) // BYTES
    if not chosen or count <= 0:
        return moved
    begins = np.array(sorted({int.from_bytes(each[:BYTES], "little") for each in chosen}), np.uint64)
    words = np.ascontiguousarray(data[first : first + count * BYTES]).view(np.uint64)
    made = moved.copy()
    for word in np.flatnonzero(np.isin(words, begins)):
        at = first + int(word) * BYTES
        for size in {len(each) for each in chosen}:
            here = chosen.get(data[at : at + size].tobytes())
            if here is not None:
                made[at : at + size] = np.frombuffer(here, np.uint8)
    return made

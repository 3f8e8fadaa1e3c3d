"""Device addresses of a trace as those of the target: in push constants, and in the structs of commands.

An address that a program stored to memory is not found: a shader that loads one does not reach its buffer here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.findings import UserError

BYTES = 8
"""Of a VkDeviceAddress, and its alignment in push constants."""


class DeviceAddresses:
    """The buffers whose address the program asked for: where they are in the trace, and where on the target.

    >>> addresses = DeviceAddresses()
    >>> addresses.add(0x1000, 256, 0x7000)
    >>> addresses.translated({"offset": 0, "pValues": (0x1010).to_bytes(8, "little")})["pValues"].hex()
    '1070000000000000'
    """

    def __init__(self) -> None:
        self._known: list[tuple[int, int, int]] = []

    def add(self, address: int, size: int, here: int) -> None:
        """A buffer of `size` bytes at an address of the trace is at `here` on the target."""
        self._known.append((address, size, here))

    def translated(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call with the target's addresses. UserError for an address of no buffer."""
        return args if not self._known else {name: self._value(name, value, args) for name, value in args.items()}

    def _value(self, name: str, value: Any, args: Mapping[str, Any]) -> Any:
        if name == "pValues" and isinstance(value, bytes):
            return self._pushed(value, args.get("offset", 0))
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
        for begin, size, here in reversed(self._known):
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

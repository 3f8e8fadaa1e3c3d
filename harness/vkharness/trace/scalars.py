"""The forms of single values in a trace: from JSON to normal form (`read`) and back (`write`).

Traces are written like those of `gfxrecon-convert` 1.x. The dialect of 0.9.18 is read, too. The two differ in ways that
can be told apart value by value: flags `12`, `"0x0000000c"` or `"A|B"`; booleans `0` or `false`; enums by name or by
number; null handles `0` or `"VK_NULL_HANDLE"`; addresses as hex text.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.binaries import BinaryReader, BinaryWriter
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.lines import Corrupt
from vkharness.trace.stacks import StackReader
from vkharness.trace.unread_calls import UnreadCalls

NOT_A_VALUE = 0x7FFFFFFF
"""The value of an enum name that is newer than the tables. The header gives it to every enum as its `_MAX_ENUM`."""

INLINE_BYTES = 64
"""Blobs up to this size in bytes are lists of numbers in the line, as upstream writes the data of vkCmdUpdateBuffer."""

HEX = re.compile(r"0x[0-9a-fA-F]{1,16}\Z")
_NOT_DUMPED = ("[Binary data]", "[Unable to write file]")
_UNHANDLED = "Unhandled"
"""How the text begins that a converter writes for a value that it has no name of."""
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SUFFIXES = ("_KHR", "_EXT", "_NV", "_AMD", "_ARM", "_GOOGLE", "_VALVE")
_FLOAT32 = struct.Struct("<f")


class Reading:
    """State that is shared while one trace is read: its binaries, remarks so far, and the present block."""

    def __init__(
        self, binaries: BinaryReader, ours: bool, with_bytes: str = "convert with --include-binaries to have them"
    ) -> None:
        self.binaries = binaries
        self.ours = ours
        self.with_bytes = with_bytes
        """How one has the bytes that the file lacks."""
        self.judged = False
        self.newer_names: set[str] = set()
        self.without_bytes = 0
        self.found_writes = FoundWrites()
        self.unread = UnreadCalls()
        self.stacks = StackReader()


def kind_of(value: Any) -> str:
    """A word for the type of a JSON value, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "an integer", float: "a number"}
    return names.get(type(value), "null")


def unexpected(wanted: str, value: Any) -> Corrupt:
    """The error that `value` is not of the wanted form."""
    shown = f" {value!r}"[:60] if isinstance(value, (str, int, float)) else ""
    return Corrupt(f"expected {wanted}, found {kind_of(value)}{shown}")


class FieldCodec:
    """A kind of value. `read` takes JSON to normal form and raises Corrupt, `write` is its inverse."""

    def read(self, value: Any, reading: Reading) -> Any:
        """Normal form of `value`."""
        raise NotImplementedError

    def write(self, value: Any, binaries: BinaryWriter) -> Any:
        """JSON of `value`."""
        return value

    def absent(self) -> Any:
        """Normal form when a converter leaves the value out; pointers are then null."""
        return 0


class Integer(FieldCodec):
    """An integer of the C type's range; addresses may be hex text."""

    def __init__(self, bits: int, signed: bool) -> None:
        self.low = -(1 << bits - 1) if signed else 0
        self.high = (1 << bits - 1) - 1 if signed else (1 << bits) - 1

    def read(self, value: Any, reading: Reading) -> int:
        """Normal form: int."""
        if type(value) is str and HEX.match(value):
            value = int(value, 16)
        if type(value) is not int:
            raise unexpected("an integer", value)
        if not self.low <= value <= self.high:
            raise Corrupt(f"{value} is out of the range {self.low} to {self.high}")
        return value


class Real(FieldCodec):
    """A float or double. Values that JSON has no number for are the texts NaN, Infinity and -Infinity."""

    def __init__(self, single: bool) -> None:
        self.single = single

    def read(self, value: Any, reading: Reading) -> float:
        """Normal form: float, rounded to what the C type holds."""
        if type(value) is str and value in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[value]
        if type(value) is not float and type(value) is not int:
            raise unexpected("a number", value)
        try:
            number = float(value)
            number = _FLOAT32.unpack(_FLOAT32.pack(number))[0] if self.single else number
        except OverflowError:
            raise Corrupt(f"{str(value)[:40]} is out of the range of the C type") from None
        if not math.isfinite(number):
            raise Corrupt("a number out of the range of a double")
        return number

    def write(self, value: float, binaries: BinaryWriter) -> Any:
        """JSON: a number, or the name of a value that is none."""
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def absent(self) -> float:
        """Zero."""
        return 0.0


class Boolean(FieldCodec):
    """VkBool32: normal form is the int that C had; JSON is true or false, other values stay numbers."""

    def read(self, value: Any, reading: Reading) -> int:
        """Normal form: int."""
        if type(value) is bool:
            return int(value)
        if type(value) is not int or not 0 <= value <= 0xFFFFFFFF:
            raise unexpected("a boolean", value)
        return value

    def write(self, value: int, binaries: BinaryWriter) -> Any:
        """JSON: true, false, or the number."""
        return bool(value) if value in (0, 1) else value


class Handle(FieldCodec):
    """An object's id; 0 is VK_NULL_HANDLE."""

    def read(self, value: Any, reading: Reading) -> int:
        """Normal form: int."""
        if value == "VK_NULL_HANDLE":
            return 0
        if type(value) is str and HEX.match(value):
            return int(value, 16)
        if type(value) is not int or not 0 <= value < 1 << 64:
            raise unexpected("a handle (an integer from 0)", value)
        return value


class Text(FieldCodec):
    """`char*` or a char array."""

    def read(self, value: Any, reading: Reading) -> str | None:
        """Normal form: str, None for a null pointer."""
        if value is not None and type(value) is not str:
            raise unexpected("a text", value)
        return value

    def absent(self) -> None:
        """A null pointer."""


class Opaque(FieldCodec):
    """A value without meaning outside the process that made the call (a callback, user data). It is always None."""

    def read(self, value: Any, reading: Reading) -> None:
        """Normal form: None."""

    def write(self, value: Any, binaries: BinaryWriter) -> None:
        """JSON: null."""

    def absent(self) -> None:
        """None."""


class Blob(FieldCodec):
    """Bytes behind a pointer: a list of numbers, or the name of a file beside the trace."""

    def read(self, value: Any, reading: Reading) -> bytes | None:
        """Normal form: bytes; None for null and where the converter left the bytes out."""
        if value is None:
            return None
        if type(value) in (list, bytes):
            try:
                return bytes(value)
            except (TypeError, ValueError):
                raise Corrupt("expected a list of bytes (0 to 255)") from None
        if type(value) is not str:
            raise unexpected("bytes", value)
        if value == "0x0":  # as a converter writes a null pointer
            return None
        if value in _NOT_DUMPED or HEX.match(value):
            reading.without_bytes += 1
            return None
        return reading.binaries.load(value, None)

    def write(self, value: bytes | None, binaries: BinaryWriter) -> Any:
        """JSON: null, a list of numbers, or a file name."""
        if value is None:
            return None
        return list(value) if len(value) <= INLINE_BYTES else binaries.store(value)

    def absent(self) -> None:
        """A null pointer."""


class Enumeration(FieldCodec):
    """An enum value, by name; values without a name are numbers."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = values
        self.names: dict[int, str] = {}
        for name, value in values.items():
            known = self.names.setdefault(value, name)
            if known.endswith(_SUFFIXES) and not name.endswith(_SUFFIXES):
                self.names[value] = name

    def read(self, value: Any, reading: Reading) -> int:
        """Normal form: int. A name that the tables do not have is NOT_A_VALUE, with a remark."""
        if type(value) is str:
            number = _lookup(self.values, value)
            if number is None and HEX.match(value):
                return int(value, 16)
            if number is None:
                reading.newer_names.add(value[:60] if value.startswith(_UNHANDLED) else _checked_name(value))
                return NOT_A_VALUE
            return number
        if type(value) is not int or not -(1 << 31) <= value < 1 << 32:
            raise unexpected("an enum value", value)
        return value

    def write(self, value: int, binaries: BinaryWriter) -> Any:
        """JSON: the name, or the number when there is none."""
        return self.names.get(value, value)


class Flags(FieldCodec):
    """A mask of bits, or one bit (`single`): hex text of fixed width; names joined by | are read too. A name that the
    tables do not have is the highest bit, which Vulkan gives no meaning."""

    def __init__(self, values: dict[str, int], width: int, single: bool) -> None:
        self.values = values
        self.width = width
        self.single = Enumeration(values) if single else None

    def read(self, value: Any, reading: Reading) -> int:
        """Normal form: int. An unknown bit name is an error where it could change a verdict. Elsewhere it
        is a remark."""
        if type(value) is str:
            return int(value, 16) if HEX.match(value) else self._named(value, reading)
        if type(value) is not int or not 0 <= value < 1 << self.width:
            raise unexpected(f"{self.width} bits of flags", value)
        return value

    def _named(self, value: str, reading: Reading) -> int:
        mask = 0
        for name in value.split("|") if value else ():
            bit = self.bit(name.strip())
            if bit is None and reading.judged:
                raise Corrupt(f"the flag {_checked_name(name)} is newer than this vkharness: convert without names")
            if bit is None:
                reading.newer_names.add(_checked_name(name))
                bit = 1 << self.width - 1
            mask |= bit
        return mask

    def bit(self, name: str) -> int | None:
        """The bits that a name, or hex text, stands for; None for a name that the tables do not have."""
        if HEX.match(name):
            return int(name, 16)
        # "No bits" has a name in the header for some masks only, in the converters for all.
        return 0 if name.removesuffix("_KHR").endswith("_NONE") else _lookup(self.values, name)

    def write(self, value: int, binaries: BinaryWriter) -> Any:
        """JSON: the name of a single bit that has one, else hex text."""
        if self.single and value in self.single.names:
            return self.single.names[value]
        return f"0x{value:0{self.width // 4}x}"


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"\s*\w{1,160}\s*", name):
        raise Corrupt(f"{name[:60]!r} is no name of a Vulkan value")
    return name.strip()


def _lookup(values: dict[str, int], name: str) -> int | None:
    """The value of `name`, also when it is spelled with or without its extension's suffix (promotion renames)."""
    found = values.get(name)
    if found is not None or not name.startswith("VK_"):
        return found
    for suffix in _SUFFIXES:
        spelled = name.removesuffix(suffix) if name.endswith(suffix) else name + suffix
        if spelled in values:
            return values[spelled]
    return None


@cache
def named_values() -> dict[str, int]:
    """Every enum value and bit of the tables by its name, for calls that the tables do not have."""
    merged: dict[str, int] = {"VK_NULL_HANDLE": 0}
    for table in (*tables.ENUMS.values(), *tables.BITMASKS.values()):
        merged.update(table)
    return merged

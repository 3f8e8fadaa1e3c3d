"""Parts that tests of the native front end share: a recorder, pointers that lead to commands, arguments to read."""

from __future__ import annotations

import random
from typing import Any

from vkharness.record import native_log
from vkharness.record import struct_layout as layout
from vkharness.record.critical import is_the_mirrors
from vkharness.record.decode import Decoder
from vkharness.record.native_front import NativeCommands, arm, may_be_native, new_target
from vkharness.record.sites import Sites
from vkharness.spec._generated import COMMANDS, HANDLES, STRUCTS, STYPES
from vkharness.spec.followed import GUARDS, STRIDES
from vkharness.spec.shapes import Member, main_name, members, resolve, signature
from vkharness.trace.handles import HandleRegistry

ffi: Any = layout.package_ffi()
HANDLE = 0x5000_0000
PYTHONS_OWN = {
    "vkCmdBeginGpaSampleAMD": "returns a result",
    "vkCmdBeginGpaSessionAMD": "returns a result",
    "vkCmdBuildAccelerationStructuresIndirectKHR": "has a list of lists",
    "vkCmdBuildAccelerationStructuresKHR": "has a list of lists",
    "vkCmdEndGpaSessionAMD": "returns a result",
    "vkCmdSetPerformanceMarkerINTEL": "returns a result",
    "vkCmdSetPerformanceOverrideINTEL": "returns a result",
    "vkCmdSetPerformanceStreamMarkerINTEL": "returns a result",
}
"""Commands that go the Python way, and why."""
NAMES = sorted({main_name(name) for name in COMMANDS if may_be_native(name)} - PYTHONS_OWN.keys())
"""Those that have a native form."""


class Recorder:
    """Keeps what commands hand over."""

    log: Any = None

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any], int | None]] = []
        self.sites: list[str | None] = []
        self.errors: list[BaseException] = []

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        self.calls.append((name, args, result))

    def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
        self.calls.append((name, args, result))
        self.sites.append(site)

    def lost(self, name: str, error: BaseException) -> None:
        self.errors.append(error)
        if not is_the_mirrors(error):
            raise error

    def refused(self, name: str, error: BaseException) -> None:
        """As it would be without the mirror."""

    def unseen(self, name: str) -> None:
        raise AssertionError(name)

    def before(self, name: str) -> None:
        return None

    def after(self, name: str) -> None:
        return None

    def cancelled(self, name: str) -> None:
        return None


def address(value: Any) -> int:
    return int(ffi.cast("uintptr_t", value))


def new_objects() -> HandleRegistry:
    return HandleRegistry(address, lambda raw: ffi.cast("void *", raw))


def native_command(name: str, driver: Any, recorder: Recorder, decoder: Decoder) -> Any:
    command = NativeCommands(decoder, recorder, Sites()).of(name, driver)
    assert command is not None
    return command


def line_of(name: str, site: str | None) -> tuple[str, str | None]:
    return name, site


def new_log() -> Any:
    order = native_log.CallOrder()
    order.let_wait(lambda: None)
    return order.log


def direct(function: Any, command: Any) -> Any:
    """A pointer to a C function that Python calls by a native command."""
    pointer = ffi.cast(ffi.typeof(function), function)
    _targets[pointer] = function
    arm(new_target(pointer, lambda: None), command)
    return pointer


_targets: dict[Any, Any] = {}
"""Pointers must never come again."""


class Memory:
    """C memory with random contents that a decoder may follow, for any struct."""

    def __init__(self, seed: int, chained: bool) -> None:
        self.rng = random.Random(seed)
        self.chained = chained
        self.kept: list[Any] = []

    def number(self, kind: str) -> int:
        return self.rng.choice((0, 1, 2, self.rng.getrandbits(31)))

    def structs(self, name: str, count: int) -> Any:
        """An array of a struct."""
        array = ffi.new(f"{name}[]", count)
        self.kept.append(array)
        ffi.buffer(array)[:] = self.rng.randbytes(ffi.sizeof(array))
        for at in range(count):
            self._fill(name, array[at])
        return array

    def _fill(self, name: str, value: Any) -> None:
        rows = members(name) or ()
        counts = {m.length if isinstance(m.length, str) else m.length[1] for m in rows
                  if isinstance(m.length, (str, tuple))}  # fmt: skip
        for member in rows:
            kind = resolve(member.type)
            if member.name in counts:
                setattr(value, member.name, self.rng.randrange(4))
            elif kind in HANDLES and not member.pointer and not member.dims:
                setattr(value, member.name, ffi.cast(kind, self.rng.choice((0, HANDLE, HANDLE + 8))))
        for (owner, _), (guard, meant) in GUARDS.items():
            if owner == name and self.rng.random() < 0.4:
                setattr(value, guard, self.rng.choice(meant))
        for member in rows:
            kind = resolve(member.type)
            if member.name == "pNext":
                value.pNext = self.chain(name)
            elif member.pointer:
                place = ffi.typeof(value).fields
                field = next(f for n, f in place if n == member.name)
                setattr(value, member.name, ffi.cast(field.type, self.pointer(member, kind)))
            elif kind in STRUCTS and not member.dims:
                self._fill(kind, getattr(value, member.name))
            elif kind in STRUCTS and len(member.dims) == 1:
                for at in range(member.dims[0]):
                    self._fill(kind, getattr(value, member.name)[at])

    def pointer(self, member: Member, kind: str) -> Any:
        """NULL, or memory for more elements than any count asks for."""
        if self.rng.random() < 0.2 or member.pointer > 1:
            return ffi.NULL
        return self.structs(kind, 4) if kind in STRUCTS else self.plain(kind)

    def plain(self, kind: str) -> Any:
        words = ffi.new("uint64_t[64]", [HANDLE + 8 * (at % 3) for at in range(64)])
        self.kept.append(words)
        if kind not in HANDLES:
            ffi.buffer(words)[:] = self.rng.randbytes(512)
        return words

    def chain(self, name: str) -> Any:
        """NULL, a struct that nobody knows, one that Vulkan knows, or an address without memory."""
        kind = self.rng.choice(("none", "none", "unknown", "known", "nowhere"))
        if kind == "none" or not self.chained:
            return ffi.NULL
        if kind == "nowhere":
            return ffi.cast("void *", 0x10)
        head = ffi.new("VkMemoryBarrier2 *", {"sType": STYPES_OF["VkMemoryBarrier2"] if kind == "known" else 1999})
        self.kept.append(head)
        return ffi.cast("void *", head)


STYPES_OF = {struct: value for value, struct in STYPES.items()}


def arguments(name: str, seed: int, chained: bool = True) -> tuple[list[Any], Memory]:
    """Arguments for a command that can be read; and what holds them."""
    memory = Memory(seed, chained)
    shape = signature(name)
    assert shape is not None
    counts = {m.length if isinstance(m.length, str) else m.length[1] for m in shape.params
              if isinstance(m.length, (str, tuple))}  # fmt: skip
    values: list[Any] = []
    of, stride = STRIDES.get(name, ("", ""))
    for param, kind in zip(shape.params, layout.prototype(name).args, strict=True):
        struct = resolve(param.type)
        if param.name in counts:
            values.append(memory.rng.randrange(4))
        elif param.name == stride:
            size = ffi.sizeof(next(each.type for each in shape.params if each.name == of))
            values.append(memory.rng.choice((0, size, size + 4)))
        elif param.dims:
            values.append(ffi.cast(kind, memory.plain(struct)))
        elif param.pointer:
            values.append(ffi.cast(kind, memory.pointer(param, struct)))
        elif struct in HANDLES:
            values.append(ffi.cast(kind, memory.rng.choice((0, HANDLE, HANDLE + 8))))
        elif kind.cname == "float":
            values.append(ffi.new("float *", memory.rng.choice((0.0, 0.1, 3, -1e30)))[0])
        else:
            number = memory.number(param.type)
            values.append(number & 0xFFFF if ffi.sizeof(kind) == 2 else number)
    return values, memory

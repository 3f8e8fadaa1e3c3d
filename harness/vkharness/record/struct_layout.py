"""How C lays out what the generated tables name: sizes, offsets and `struct` codes, from the package's declarations.

Memory of the process is read through one view of the whole address space, so that a struct costs one
`struct.unpack_from` and no cffi object: about 45 ns, where reading members through cffi costs 25 to 50 ns each.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from vkharness.native import core
from vkharness.spec._generated import BASETYPES, ENUMS, HANDLES, STRUCTS
from vkharness.spec.declared_types import declared_types
from vkharness.spec.shapes import is_callback, resolve

SCALARS = {
    "uint8_t": "B",
    "int8_t": "b",
    "char": "B",
    "uint16_t": "H",
    "int16_t": "h",
    "uint32_t": "I",
    "int32_t": "i",
    "int": "i",
    "uint64_t": "Q",
    "int64_t": "q",
    "size_t": "Q",
    "unsigned long": "Q",
    "float": "f",
    "double": "d",
}
ADDRESS_SPACE = 1 << 47
"""Bytes of user address space on the 64-bit systems that Vulkan runs on."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a struct member lies: byte offset, and for bit-fields the first bit and the width."""

    offset: int
    shift: int
    bits: int


@cache
def package_ffi() -> Any:
    """A cffi object with the declarations of the `vulkan` package, and with those that are newer."""
    return declared_types()


@cache
def memory() -> memoryview:
    """All memory of this process as one view: `memory()[address]`. Only for addresses that C code gave us."""
    ffi = package_ffi()
    return memoryview(ffi.buffer(ffi.cast("char *", 0), ADDRESS_SPACE))


@cache
def scalar_code(type_name: str) -> str | None:
    """The `struct` code of a number type: enums signed, flags unsigned; None for what is no number."""
    name = resolve(type_name)
    if name in HANDLES or name in STRUCTS or is_callback(name) or name == "void":
        return None
    if name in ENUMS and name not in BASETYPES:
        return "i"
    code = SCALARS.get(BASETYPES.get(name, name))
    if code is not None:
        return code
    try:
        kind = package_ffi().typeof(name).kind
    except package_ffi().error:
        return None
    return "i" if kind == "enum" else None


@cache
def prototype(command: str) -> Any:
    """The cffi type of a command's function pointer."""
    return package_ffi().typeof("PFN_" + command)


@cache
def size_of(type_name: str) -> int:
    """Bytes of a struct, union or handle."""
    return 8 if type_name in HANDLES else int(package_ffi().sizeof(type_name))


def size_of_number(code: str) -> int:
    """Bytes of a number, by its `struct` code."""
    return struct.calcsize("<" + code)


@cache
def fields_of(struct_name: str) -> dict[str, Field]:
    """Member name to its place."""
    listed = package_ffi().typeof(struct_name).fields
    return {name: Field(f.offset, max(f.bitshift, 0), max(f.bitsize, 0)) for name, f in listed}


@cache
def _prober() -> tuple[Any, Any] | None:
    """An ffi with process_vm_readv; None where the system has none, or does not let a process use it."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef("""
        struct iovec { void *iov_base; size_t iov_len; };
        ssize_t process_vm_readv(int, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                                 unsigned long);
    """)
    try:
        library = ffi.dlopen(None)
        held = ffi.new("char[]", 1)
        works = _probe(ffi, library, int(ffi.cast("uintptr_t", held)), 1)
    except (OSError, AttributeError):
        return None
    return (ffi, library) if works else None


def _probe(ffi: Any, library: Any, address: int, size: int) -> bool:
    target = ffi.new("char[]", size)
    here = ffi.new("struct iovec *", {"iov_base": target, "iov_len": size})
    there = ffi.new("struct iovec *", {"iov_base": ffi.cast("void *", address), "iov_len": size})
    read: int = library.process_vm_readv(os.getpid(), here, 1, there, 1, 0)
    return read == size


class _KnownPages:
    """The pages that had memory lately, without the native core."""

    SIZE = 4096
    LOOKS = 4096
    """Until the system is asked anew: memory may be given back."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._looks = 0

    def have(self, address: int, size: int) -> bool:
        """As `is_readable`."""
        if size <= 0:
            return not size
        if not 0 < address <= ADDRESS_SPACE - size:
            return False
        self._looks += 1
        if self._looks == self.LOOKS:
            self._looks = 0
            self._known.clear()
        return all(map(self._has_memory, range(address // self.SIZE, (address + size - 1) // self.SIZE + 1)))

    def _has_memory(self, page: int) -> bool:
        if page not in self._known:
            prober = _prober()
            if prober is not None and not _probe(*prober, page * self.SIZE, 1):
                return False
            self._known.add(page)
        return True


is_readable: Callable[[int, int], bool] = _KnownPages().have if core is None else core.is_readable
"""Whether there are so many bytes of memory at an address, without touching them. True where the system cannot tell.

It takes some 0.1 microseconds for memory that was asked for lately. Another thread may free the memory right
afterwards, and memory that was there lately may be given back."""


class ReadMemory:
    """Memory that is read at addresses: that of this process, here; another kind overrides all four properties and
    functions that look at it themselves."""

    @property
    def view(self) -> Any:
        """A buffer in which an address is an index."""
        return memory()

    def is_readable(self, address: int, size: int) -> bool:
        """Whether there are so many bytes of memory at an address."""
        return is_readable(address, size)

    def text(self, address: int) -> str:
        """Text that ends with NUL. Bytes that are no UTF-8 become surrogates, so that nothing is lost."""
        ffi = package_ffi()
        text: bytes = ffi.string(ffi.cast("char *", address))
        return text.decode("utf-8", "surrogateescape")

    def blob(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes."""
        return memory()[address : address + size].tobytes()

    def there(self, address: int, size: int, name: str) -> bool:
        """True. `BufferError` where a command was given an address without memory: it cannot be read."""
        if self.is_readable(address, size):
            return True
        raise BufferError(f"{name} leads to no memory")

    def many(self, code: str, address: int, count: int) -> tuple[Any, ...]:
        """`count` numbers of one `struct` code from an address."""
        return struct.unpack_from(f"<{count}{code}", self.view, address)

    def one(self, code: str, address: int) -> Any:
        """One number of a `struct` code from an address."""
        return struct.unpack_from("<" + code, self.view, address)[0]

    def count_at(self, code: str, address: int, name: str) -> Any:
        """A count that a command was given by an address, with the name of the argument."""
        self.there(address, size_of_number(code), name)
        return self.one(code, address)


OWN_MEMORY = ReadMemory()
"""That of this process. Only for addresses that C code gave us."""


def fixed_text(raw: bytes) -> str:
    """Text from an array of fixed size, up to the first NUL."""
    return raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")

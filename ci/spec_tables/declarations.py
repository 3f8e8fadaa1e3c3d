"""C declarations of what the registry has and the binding's header lacks, compiled as a module for cffi.

The module includes the binding's own declarations, so that a struct has one cffi object wherever it is named. An enum
has one in each module: `vkharness.spec.declared_types` asks the binding first, and a pointer to an enum of the binding
leads to anything.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cffi import FFI
from cffi.recompiler import make_py_source

from .types import Types

NUMBERS: tuple[str, ...] = ("void", "char", "float", "double", "size_t", "int")
NUMBERS += tuple(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
FOREIGN = {
    "GgpFrameToken": "uint64_t",
    "GgpStreamDescriptor": "uint64_t",
    "IOSurfaceRef": "void *",
    **dict.fromkeys(
        (f"MTL{kind}_id" for kind in ("Buffer", "CommandQueue", "Device", "SharedEvent", "Texture")), "void *"
    ),
    "RROutput": "unsigned long",
    **dict.fromkeys(("StdVideoAV1Level", "StdVideoAV1Profile", "StdVideoVP9Level", "StdVideoVP9Profile"), "int"),
    "zx_handle_t": "uint32_t",
}
"""Types of window systems and video headers that structs and parameters hold by value."""
HEAD = '''\
"""C declarations newer than the `vulkan` package's, made by ci/gen_spec.py from registry {version}. Never edited."""

from __future__ import annotations

from typing import Any


def newer_types(package: Any) -> Any:
    """A cffi object with the declarations of the `vulkan` package, given as its own object, and with newer ones."""
    import _cffi_backend

    return '''


def newer_module(types: Types, version: str) -> str:
    """The Python text of the module."""
    package = importlib.util.find_spec("vulkan")
    assert package is not None and package.origin is not None
    base = FFI()
    base.cdef(Path(package.origin).with_name("vulkan.cdef.h").read_text(encoding="utf-8"))
    base.set_source("vulkan._vulkancache", None)
    newer = FFI()
    newer.include(base)
    newer.cdef("\n".join(Declarations(types).lines()))
    made = io.StringIO()
    make_py_source(newer, "vkharness.spec._newer_types", made)
    _, _, call = made.getvalue().partition("ffi = ")
    return HEAD.replace("{version}", version) + call.replace("_includes = (_ffi0,)", "_includes = (package,)")


class Declarations:
    """C text for what is newer."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.known = types.header.words
        self.structs = {name: rows for name, rows in types.structs().items() if name not in self.known}
        self.unions = frozenset(types.unions())
        numbers = {name: f"uint{width}_t" for name, width in types.flag_width().items()}
        numbers |= dict.fromkeys(types.enums(), "int") | FOREIGN
        self.numbers = {name: number for name, number in sorted(numbers.items()) if name not in self.known}
        self.commands = {
            name: (returns, rows)
            for name, (returns, rows, _) in sorted(types.commands().items())
            if name not in types.header.functions
        }

    def lines(self) -> Iterator[str]:
        """All declarations, in an order that C takes."""
        yield from (f"typedef {number} {name};" for name, number in self.numbers.items())
        yield from (f"typedef struct {name}_T *{name};" for name in self.types.handles() if name not in self.known)
        yield from (f"typedef {self._kind(name)} {name} {name};" for name in self.structs)
        aliases = self.types.type_aliases().items()
        yield from (f"typedef {main} {alias};" for alias, main in aliases if alias not in self.known)
        yield from (f"typedef struct {name} {name};" for name in sorted(self._opaque()))
        for name in in_order(self.structs):
            body = " ".join(f"{self.declared(row)};" for row in self.structs[name])
            yield f"{self._kind(name)} {name} {{ {body} }};"
        for name, (returns, rows) in self.commands.items():
            yield f"typedef {returns} (*PFN_{name})({', '.join(map(self.declared, rows))});"

    def declared(self, row: tuple[Any, ...]) -> str:
        """A member or parameter in C, from its row of the tables."""
        name, base, stars, _, _, dims, _, bits = row[:8]
        base = "void" if stars and base in self.types.header.enumerants else base
        return f"{base} {'*' * stars}{name}{''.join(f'[{bound}]' for bound in dims)}{f':{bits}' if bits else ''}"

    def _opaque(self) -> set[str]:
        """Types of window systems and video headers, of which the declarations name pointers."""
        rows = (*self.structs.values(), *(row for _, row in self.commands.values()))
        ours = (self.known, NUMBERS, self.types.main, self.numbers)
        return {row[1] for each in rows for row in each if not any(row[1] in table for table in ours)}

    def _kind(self, name: str) -> str:
        return "union" if name in self.unions else "struct"


def in_order(structs: dict[str, tuple[Any, ...]]) -> Iterator[str]:
    """Structs, each behind those that it holds by value."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name in done or name not in structs:
            return
        done.add(name)
        for row in structs[name]:
            if not row[2]:
                yield from visit(row[1])
        yield name

    for name in structs:
        yield from visit(name)

"""Declarations of the `vulkan` package's header, read from its text: importing the package would need a loader."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Header:
    """Names that the binding knows: every identifier, the functions, the members of each struct and union.

    `enumerants` are those of each enum with a plain number, without the header's own _MAX_ENUM.
    """

    words: frozenset[str]
    functions: frozenset[str]
    members: dict[str, tuple[str, ...]]
    enumerants: dict[str, dict[str, int]]

    def first(self, *names: str) -> str | None:
        """The first of the names that the header has, None if it has none of them."""
        return next((name for name in names if name in self.words), None)


def read_header() -> Header:
    """Parse the installed binding's `vulkan.cdef.h`. Raises SystemExit when the package is not installed."""
    found = importlib.util.find_spec("vulkan")
    if found is None or found.origin is None:
        raise SystemExit("gen_spec: the package 'vulkan' is not installed; run ci/setup")
    text = Path(found.origin).with_name("vulkan.cdef.h").read_text(encoding="utf-8")
    members = {}
    for body, name in re.findall(r"typedef (?:struct|union) \w+ \{([^}]*)\} (\w+);", text):
        lines = [line.strip() for line in body.split(";") if line.strip()]
        members[name] = tuple(member_name(line) for line in lines)
    functions = frozenset(re.findall(r"\b(vk[A-Z]\w*)\(", text))
    enumerants = {
        name: {key: int(value, 0) for key, value in re.findall(r"(\w+) = (-?(?:0x)?[0-9A-Fa-f]+),?\n", body)}
        for body, name in re.findall(r"typedef enum \w+ \{([^}]*)\} (\w+);", text)
    }
    for values in enumerants.values():
        for name in [name for name in values if "_MAX_ENUM" in name]:
            del values[name]
    return Header(frozenset(re.findall(r"\w+", text)), functions, members, enumerants)


def member_name(declaration: str) -> str:
    """The declared name in a C member declaration, without array bounds and bit width."""
    bare = re.sub(r"\[[^]]*\]|:\s*\d+", "", declaration)
    return bare.split()[-1].lstrip("*")

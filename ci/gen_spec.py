#!/usr/bin/env python3
"""Makes `harness/vkharness/spec/_generated.py`, `_newer_types.py`, `enums.py` and `data/` from Khronos' registry (PyPI
`vulkan-object`) and the `vulkan` package's header.

ci/gen_spec.py            writes the modules
ci/gen_spec.py --check    writes nothing; exits 1 when writing would change one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

try:
    from vulkan_object import get_vulkan_object
except ModuleNotFoundError:
    raise SystemExit("gen_spec: the package 'vulkan-object' is not installed; run ci/setup") from None

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci.spec_tables.declarations import newer_module
from ci.spec_tables.enums import enums
from ci.spec_tables.header import read_header
from ci.spec_tables.sync import PSEUDO_STAGES, Sync
from ci.spec_tables.types import Types, formats

TARGET = Path(__file__).resolve().parent.parent / "harness" / "vkharness" / "spec"

HEAD = '''\
"""Tables of Vulkan, made by ci/gen_spec.py from the registry {version} (PyPI vulkan-object). Never edited.

Everything is the registry's, whole. Types and commands have the names of the `vulkan` package's header where that has
them under any name. Bits are plain integers.

The large tables lie in data/, one JSON file each, and are read when they are first used.

A member of a struct and a parameter of a command are the same tuple, `Member` (vkharness.spec.shapes names its parts):
    0 name
    1 type         base type without const and stars, spelled as a key of these tables (aliases resolved);
                   in none of them: numbers of C, char, void, types foreign to Vulkan (window systems, StdVideo)
    2 pointer      number of stars
    3 const        the declaration has `const`
    4 length       None: no array, or of fixed size
                   'count'                     elements are counted by that member or parameter (if it is a pointer, by
                                               what it points to); for `void*` the count is bytes; for `T* const*` with
                                               two stars the count is of the outer array
                   ('path', 'param', 'member') counted by a member of the struct that the parameter points to
                   ('ceil_div', 'count', n)    ceil(count / n) elements
                   ('bytes', 'size')           that many bytes in all
                   an integer                  that many elements
    5 dims         bounds of a fixed-size array, outermost first; () for none
    6 terminated   text that ends with NUL; with a length: an array of such texts
    7 bits         width of a bit-field, 0 for none
    8 selector     for a union: the member that says which of its members is valid, else None
    9 unchecked    the registry's noautovalidity: whether the value may be used at all depends on other members
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vkharness.spec.table_files import load

Length = str | int | tuple[str, str] | tuple[str, str, str] | tuple[str, str, int] | None
Member = tuple[str, str, int, bool, Length, tuple[int, ...], bool, int, str | None, bool]
Command = tuple[str, tuple[Member, ...], str | None]
"""(return type, parameters, the command that it is an alias of or None)."""
Format = tuple[str, int, int, int, int, int, tuple[tuple[int, int, int, int], ...]]
"""(name, bytes of a texel block, its width, height and depth, aspect mask, planes); a plane is
(index, width divisor, height divisor, bytes of a texel block of the plane).
Aspects: colour 1, depth 2, stencil 4, planes 0x10, 0x20, 0x40."""

'''


def text(value: Any) -> str:
    """A literal in the house's quoting."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "(" + ", ".join(text(part) for part in value) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def table(name: str, kind: str, doc: str, lines: Iterable[str], brackets: tuple[str, str] | str = "{}") -> str:
    """One annotated assignment with its docstring, one row a line."""
    body = "".join(f"    {line}\n" for line in lines)
    return f'{name}: {kind} = {brackets[0]}\n{body}{brackets[1]}\n"""{doc}"""\n\n'


def flat(rows: Mapping[Any, Any], key: str = "text") -> Iterable[str]:
    """Rows `key: value,`; keys of masks in hexadecimal, values as literals."""
    for left, right in rows.items():
        yield f"{text(left) if key == 'text' else hex(left)}: {hex(right) if key == 'mask' else text(right)},"


class TableFile(NamedTuple):
    """A table in a file of its own. `depth` is down to where each value has a line."""

    name: str
    kind: str
    doc: str
    rows: dict[Any, Any]
    depth: int = 1


def document(value: Any, depth: int) -> str:
    """JSON with each value at that depth on a line of its own."""
    if depth == 0 or not isinstance(value, dict | list | tuple):
        return json.dumps(value)
    if isinstance(value, dict):
        parts, brackets = (
            [f"{json.dumps(str(key))}: {document(inner, depth - 1)}" for key, inner in value.items()],
            "{}",
        )
    else:
        parts, brackets = [document(inner, depth - 1) for inner in value], "[]"
    return "\n".join([brackets[0], ",\n".join(parts), brackets[1]]) if parts else brackets


def names(lines: Iterable[str]) -> Iterable[str]:
    """Rows of a set of names."""
    return (f"{text(name)}," for name in lines)


def sync_part(sync: Sync) -> Iterable[str]:
    """The synchronization tables."""
    earlier, later = sync.order()
    known = "dict[str, int]"
    mask = "dict[int, int]"
    for name, doc, rows in (
        ("STAGES", "Canonical name of a pipeline stage to its bit.", sync.stage_bits),
        ("STAGE_ALIASES", "Other names of pipeline stages.", sync.stage_aliases),
        ("ACCESSES", "Canonical name of an access to its bit.", sync.access_bits),
        ("ACCESS_ALIASES", "Other names of accesses.", sync.access_aliases),
        ("PSEUDO_STAGES", "Bits of our own, above VkFlags64, for operations without a stage.", PSEUDO_STAGES),
    ):
        yield table(name, known, doc, (f"{text(key)}: {value:#x}," for key, value in rows.items()))
    for name, doc, masks in (
        ("STAGE_ACCESSES", "Concrete stage to the concrete accesses that it can make.", sync.stage_accesses()),
        ("STAGE_EXPANSION", "Meta stage to its concrete stages; ALL_COMMANDS without HOST.", sync.stage_expansion()),
        ("ACCESS_EXPANSION", "Meta access to what it stands for in shader stages.", sync.access_expansion()),
        ("EARLIER", "Concrete stage to all logically earlier ones.", earlier),
        ("LATER", "Concrete stage to all logically later ones.", later),
        ("STAGE_QUEUES", "Stage to the VkQueueFlags any of which supports it.", sync.stage_queues()),
    ):
        yield table(name, mask, doc, flat(masks, "mask"))
    pairs = (f'("{name}", {stage:#x}, {access:#x}, {write}),' for name, stage, access, write in sync.sync_accesses())
    doc = "(name, stage, access, is a write) of each kind of access; index 1 is the first. Pseudo accesses come last."
    yield table("SYNC_ACCESSES", "tuple[tuple[str, int, int, bool], ...]", doc, pairs, "()")


def ordered(rows: Mapping[str, Any]) -> dict[str, Any]:
    """The same rows in order of the key."""
    return dict(sorted(rows.items()))


def type_part(types: Types) -> Iterable[str]:
    """The small tables of types."""
    names_set = ("frozenset({", "})")
    yield table("HANDLES", "dict[str, bool]", "Handle type to: is dispatchable.", flat(ordered(types.handles())))
    yield table("FUNCPOINTERS", "frozenset[str]", "Callback types.", names(types.func_pointers()), names_set)
    yield table("UNIONS", "frozenset[str]", "Keys of STRUCTS that are unions.", names(types.unions()), names_set)


def table_files(types: Types) -> Iterable[TableFile]:
    """The large tables of types, commands and formats."""
    count, known, counts = "dict[str, int]", "dict[str, str]", "dict[str, dict[str, int]]"
    enumerants = "Enum to its enumerants, in order of value, the preferred name of a value first."
    flags = "Flags and FlagBits type to its enumerants."
    aliases = "Other name of a command to the one that stands for the group."
    tasks = "Command to its tasks: action, state, synchronization, indirection."
    members = "Mapping[str, tuple[Member, ...]]"
    yield TableFile("ENUMS", counts, enumerants, ordered(types.enums()), 2)
    yield TableFile("BITMASKS", counts, flags, ordered(types.bitmasks()), 2)
    yield TableFile("FLAG_WIDTH", count, "Flags and FlagBits type to 32 or 64.", ordered(types.flag_width()))
    yield TableFile("BASETYPES", known, "Typedef of a number to the C type under it.", ordered(types.base_types()))
    yield TableFile("TYPE_ALIASES", known, "Other name of a type to its key in these tables.", types.type_aliases())
    yield TableFile("STYPES", "dict[int, str]", "Value of VkStructureType to its struct.", types.stypes())
    yield TableFile("STRUCTS", members, "Struct or union to its members.", ordered(types.structs()), 2)
    yield TableFile("COMMANDS", "Mapping[str, Command]", "Command to its signature.", ordered(types.commands()), 3)
    needed = "Struct or command to its pointers that may not be null; one to elements may be where there are none."
    yield TableFile("NEEDED", "dict[str, tuple[str, ...]]", needed, ordered(types.needed()))
    selections = "Union to its members, each with the values of the selecting enum for which it is valid."
    extended = "Struct to the structs in whose pNext chains it may be."
    yield TableFile("EXTENDED", "dict[str, tuple[str, ...]]", extended, ordered(types.extended()))
    yield TableFile("SELECTIONS", counts.replace("int]]", "tuple[int, ...]]]"), selections, ordered(types.selections()))
    yield TableFile("COMMAND_ALIASES", known, aliases, types.command_aliases())
    yield TableFile("TASKS", "dict[str, tuple[str, ...]]", tasks, ordered(types.tasks()))
    yield TableFile("FORMATS", "dict[int, Format]", "Value of VkFormat to its layout.", formats(types.registry))
    extensions = {each.name: "device" if each.device else "instance" for each in types.registry.extensions.values()}
    yield TableFile("EXTENSIONS", known, 'Extension to "device" or "instance".', ordered(extensions))


TAIL = """
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __annotations__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, load(name))
"""


def generate() -> dict[str, str]:
    """The text of each file, by its name."""
    registry = get_vulkan_object()
    types = Types(registry, read_header())
    head = HEAD.replace("{version}", registry.headerVersionComplete)
    files = list(table_files(types))
    later = [f'{each.name}: {each.kind}\n"""{each.doc}"""\n\n' for each in files]
    parts = [*sync_part(Sync(registry)), *type_part(types), *later]
    return {
        "_generated.py": (head + "".join(parts)).rstrip("\n") + "\n" + TAIL,
        "_newer_types.py": newer_module(types, registry.headerVersionComplete),
        "enums.py": "".join(enums(registry)),
        **{f"data/{each.name.lower()}.json": document(each.rows, each.depth) + "\n" for each in files},
    }


def main(arguments: list[str]) -> int:
    """Write the modules, or with --check only compare. Returns the exit status."""
    if arguments not in ([], ["--check"]):
        print("usage: ci/gen_spec.py [--check]", file=sys.stderr)
        return 2
    changed = 0
    for name, made in generate().items():
        target = TARGET / name
        if target.exists() and target.read_text(encoding="utf-8") == made:
            continue
        changed = 1
        if arguments:
            print(f"{name} is not what ci/gen_spec.py makes; run ci/gen_spec.py", file=sys.stderr)
        else:
            target.write_text(made, encoding="utf-8")
    return changed if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

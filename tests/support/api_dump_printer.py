"""Calls in normal form as VK_LAYER_LUNARG_api_dump prints them, and what reading them must give.

It walks the registry's tables and shares no code with the reader. What a dump lacks is changed on the way: bytes behind
pointers are gone, empty arrays are null, and a number with a fraction has six digits.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.calls import Block, Call
from vkharness.trace.scalars import NOT_A_VALUE

ADDRESS = "0x7ffc42184c50"
NULL = "NULL"


@dataclass
class Item:
    """One printed value. `kind` says how the JSON has it: value, pointer, struct, union or array."""

    name: str
    type: str
    text: str
    kind: str = "value"
    parts: list[Item] = field(default_factory=list)


Printed = tuple[Item, Any]
"""What is printed, and the value as it is read."""


def canonical(base: str) -> str:
    return tables.TYPE_ALIASES.get(base, base)


def null(name: str, base: str) -> Printed:
    return Item(name, base + "*", NULL, "pointer"), None


def member(each: tables.Member, value: Any) -> Printed:
    """A parameter or a member of a struct."""
    name, base, stars, const, length, dims, terminated, *_ = each
    base = canonical(base)
    if name == "pNext":
        return chain(value)
    kind = f"{'const ' if const else ''}{base}{'*' * stars}"
    opaque = base == "VkAllocationCallbacks" or base in tables.FUNCPOINTERS or (base == "void" and not value)
    if value is None or opaque or (not known(base) and not terminated):
        return null(name, kind) if stars or opaque or value is None else (Item(name, kind, "0"), None)
    if terminated:
        return texts(name, kind, value) if isinstance(value, list) else text(name, value)
    if isinstance(value, bytes) and name == "pCode" and value and not len(value) % 4:  # with the setting `show_shader`
        words = [f"0x{word:08x}" for (word,) in struct.iter_unpack("<I", value)]
        return Item(name, kind, ADDRESS, "shader", [Item("", "", word) for word in words]), value
    if isinstance(value, bytes):
        return Item(name, kind, ADDRESS, "pointer"), None
    if base == "void":
        return Item(name, kind, ADDRESS, "pointer"), 1
    if dims or (stars and length is not None) or stars == 2:
        return array(name, kind, base, value)
    return single(name, kind, base, value)


def known(base: str) -> bool:
    plain = ("float", "double", "void", "int", "char", "size_t", "unsigned long")
    held = (tables.HANDLES, tables.ENUMS, tables.FLAG_WIDTH, tables.BASETYPES, tables.STRUCTS)
    return base in plain or base.endswith(("_t", "Idc")) or any(base in each for each in held)


def array(name: str, kind: str, base: str, values: list[Any]) -> Printed:
    if not values:
        return null(name, kind)
    flat = [(f"[{i}]", each) for i, each in enumerate(values)]
    if isinstance(values[0], list):
        flat = [(f"[{i}][{j}]", each) for i, row in enumerate(values) for j, each in enumerate(row)]
    made = [single(name + at, base, base, each) for at, each in flat]
    read: list[Any] = [each for _, each in made]
    if isinstance(values[0], list):
        columns = len(values[0])
        read = [read[i : i + columns] for i in range(0, len(read), columns)]
    return Item(name, kind, ADDRESS, "array", [item for item, _ in made]), read


def single(name: str, kind: str, base: str, value: Any) -> Printed:
    """One value of a type."""
    if base in tables.STRUCTS:
        return structure(name, kind, base, value)
    if base in tables.HANDLES:
        return Item(name, kind, f"{value:#x}" if value else "0"), value
    if base in tables.ENUMS:
        names = {number: known for known, number in reversed(tables.ENUMS[base].items())}
        return Item(name, kind, f"{names.get(value, 'UNKNOWN')} ({value})"), value
    if base in tables.FLAG_WIDTH:
        bits = [known for known, bit in tables.BITMASKS.get(base, {}).items() if bit and value & bit == bit]
        return Item(name, kind, f"{value}" + (f" ({' | '.join(bits)})" if bits else "")), value
    if base in ("float", "double"):
        shown = f"{value:g}"
        read = float(shown)
        return Item(name, kind, shown), struct.unpack("<f", struct.pack("<f", read))[0] if base == "float" else read
    return Item(name, kind, hex(value) if base == "VkDeviceAddress" else str(value)), value


def structure(name: str, kind: str, base: str, value: dict[str, Any]) -> Printed:
    if base == "VkClearValue":
        color, read = structure("color", "VkClearColorValue", "VkClearColorValue", value["color"])
        return Item(name, kind, ADDRESS, "union", [color]), {"color": read}
    if base == "VkClearColorValue":
        words, read = array("uint32", "uint32_t[4]", "uint32_t", value["uint32"])
        return Item(name, kind, ADDRESS, "union", [words]), {"uint32": read}
    is_union = base in tables.UNIONS
    made = [member(each, value[each[0]]) for each in tables.STRUCTS[base] if each[0] in value]
    parts = [item for item, _ in made]
    parts += [item for item in parts if item.name == "pNext" and item.parts]  # the text prints it last
    shape = "union" if is_union else "struct"
    return Item(name, kind, ADDRESS, shape, parts), {item.name: read for item, read in made}


def chain(value: dict[str, Any] | None) -> Printed:
    if value is None:
        return Item("pNext", "const void*", NULL, "pointer"), None
    name = tables.STYPES.get(value["sType"])
    if name is None:
        return Item("pNext", "const void*", f"UNKNOWN ({value['sType']})"), {"sType": NOT_A_VALUE, "pNext": None}
    return structure("pNext", name, name, value)


def text(name: str, value: str | None) -> Printed:
    if value is None:
        return null(name, "const char")
    shown = value.replace("\n", " ").encode("utf-8", "replace").decode()
    return Item(name, "const char*", f'"{shown}"'), shown


def texts(name: str, kind: str, values: list[str | None]) -> Printed:
    if not values:
        return null(name, kind)
    made = [text(f"{name}[{i}]", each) for i, each in enumerate(values)]
    return Item(name, kind, ADDRESS, "array", [item for item, _ in made]), [read for _, read in made]


def parameters(call: Call) -> tuple[list[Item], dict[str, Any]]:
    """What is printed of a call's arguments, and the arguments as they are read."""
    made = [member(each, call.args[each[0]]) for each in tables.COMMANDS[call.name][1]]
    return [item for item, _ in made], {item.name: read for item, read in made}


def result_text(call: Call) -> str:
    """The returned value."""
    kind = tables.COMMANDS[call.name][0]
    if call.result is None or kind == "void":
        return ""
    return hex(call.result) if kind == "VkDeviceAddress" else single("", kind, kind, call.result)[0].text


def as_text(items: Iterable[Item], depth: int = 1, types: bool = True) -> str:
    """The lines of values."""
    lines = ""
    for item in items:
        shown = f"{item.type} = " if types else " = "
        ending = {"struct": ":", "union": " (Union):"}.get(item.kind, "")
        first = item.name == "pNext" and item.parts and not lines.count("    " * depth + "pNext:")
        value = item.type if first else item.text + ending
        lines += f"{'    ' * depth}{item.name + ': ':<32}{shown}{value}\n"
        if item.kind == "shader":
            lines += f"{'    ' * depth}[ {', '.join(each.text for each in item.parts)} ]\n"
        elif not first:
            lines += as_text(item.parts, depth + 1, types)
    return lines


def as_json(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The objects of values."""
    made: list[dict[str, Any]] = []
    for item in items:
        if item.name == "pNext" and any(each["name"] == "pNext" for each in made):
            continue
        entry: dict[str, Any] = {"type": item.type, "name": item.name}
        if item.kind in ("struct", "union", "array"):
            entry |= {"address": item.text, "elements" if item.kind == "array" else "members": as_json(item.parts)}
        elif item.kind == "shader":
            entry |= {"address": item.text, "elements": [each.text for each in item.parts]}
        elif item.kind == "pointer":
            entry["address"] = "address" if item.text == NULL else item.text
        else:
            entry["value"] = item.text.removeprefix('"').removesuffix('"')
        made.append(entry)
    return made


def printed_text(call: Call, types: bool = True, head: str = "Thread {thread}, Frame 0:\n") -> str:
    """A call as text."""
    items, _ = parameters(call)
    shape, returned = tables.COMMANDS[call.name], result_text(call)
    names = ", ".join(each[0] for each in shape[1])
    first = f"{call.name}({names}) returns {shape[0]}{' ' * bool(returned)}{returned}:\n"
    return head.format(thread=call.thread) + first + as_text(items, types=types) + "\n"


def printed_json(call: Call) -> dict[str, Any]:
    """A call as an object."""
    items, _ = parameters(call)
    made: dict[str, Any] = {"name": call.name, "thread": f"Thread {call.thread}"}
    made["returnType"] = tables.COMMANDS[call.name][0]
    if returned := result_text(call):
        made["returnValue"] = returned.partition(" (")[0]
    return made | {"args": as_json(items)}


def printable(blocks: Iterable[Block]) -> list[Call]:
    """The calls of a stream that the layer prints."""
    return [each for each in blocks if isinstance(each, Call) and each.name in tables.COMMANDS and not each.unread]


def text_dump(blocks: Iterable[Block], types: bool = True) -> str:
    """A stream as the layer's text."""
    return "".join(printed_text(call, types) for call in printable(blocks))


def json_dump(blocks: Iterable[Block]) -> str:
    """A stream as the layer's JSON."""
    return json.dumps([{"frameNumber": "0", "apiCalls": [printed_json(each) for each in printable(blocks)]}], indent=1)

#!/usr/bin/env python3
"""Makes docs/formats.md from the schemas in harness/vkharness/schemas.

ci/gen_formats.py            writes the page
ci/gen_formats.py --check    writes nothing; exits 1 when writing would change it
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci.made_page import write_page
from vkharness.schemas import FORMATS, schema

HEAD = """\
# Formats

The files that vkharness writes and reads, member by member. This page is made from the JSON Schemas in
`harness/vkharness/schemas/`, which are in the wheel: `vkharness.schemas.schema("findings")` gives one as data.

- A member that is marked with `?` may be missing: some are left out where they say nothing, and others came later than
  the format.
- Members stay, and new ones may come within a version: a reader passes over what it does not know.
- A file of a later version is refused. Files of every earlier version, and of earlier states of one, are read: a test
  reads those in `tests/data/formats/`.
"""


def kind(value: dict[str, Any]) -> str:
    """The type of a member in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2].replace("#", "such an object")
        return name if "#" in value["$ref"][-1:] else f"`{name.replace('_', ' ')}` (below)"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if "anyOf" in value:
        return " or ".join(kind(each) for each in value["anyOf"])
    names = value.get("type", "object")
    several = [names] if isinstance(names, str) else names
    return " or ".join(f"list of {kind(value['items'])}" if each == "array" else each for each in several)


def rows(value: dict[str, Any], path: str = "") -> Iterator[str]:
    """A line of the table for each member, those of nested objects below it."""
    needed = value.get("required", ())
    for name, member in value.get("properties", {}).items():
        mark = "" if name in needed else "?"
        yield f"| `{path}{name}`{mark} | {kind(member)} | {member.get('description', '')} |".replace("|  |", "| |")
        for inner, step in parts(member):
            yield from rows(inner, f"{path}{name}{step}.")


def parts(member: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects that a member consists of, and how one gets there from its name."""
    values = member.get("additionalProperties")
    for each in (member, *member.get("anyOf", ())):
        if "properties" in each:
            yield each, ""
    if "properties" in member.get("items", {}):
        yield member["items"], "[]"
    if isinstance(values, dict) and "properties" in values:
        yield values, "{}"


def table(value: dict[str, Any]) -> str:
    """The members of an object."""
    return "\n".join(["| member | type | meaning |", "|---|---|---|", *rows(value)])


def page() -> str:
    """The text of the page."""
    text = HEAD
    for name in FORMATS:
        found = schema(name)
        text += f"\n## {found['title']}\n\n{found['description']}\n"
        if "properties" in found:
            text += f"\n{table(found)}\n"
        for part, value in found.get("$defs", {}).items():
            text += f"\n### {name}: {part.replace('_', ' ')}\n\n{value['description']}\n\n{table(value)}\n"
    return text


if __name__ == "__main__":
    sys.exit(write_page("gen_formats.py", "formats.md", page, sys.argv[1:]))

#!/usr/bin/env python3
"""Makes docs/commands.md: each command of today's registry with its state.

ci/gen_commands.py            writes the page
ci/gen_commands.py --check    writes nothing; exits 1 when writing would change it
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci.made_page import write_page
from vkharness.commands.coverage import HARMLESS, NAMED, accountable, touches_nothing
from vkharness.commands.interpret import Interpreter
from vkharness.spec import _generated as tables
from vkharness.spec.shapes import main_name

ROOT = Path(__file__).resolve().parent.parent
GROUPS = (
    ("Commands of command buffers", ("vkCmd",)),
    ("Operations of queues", ("vkQueue",)),
    ("Calls of the host", ("vk",)),
)
HEAD = """\
# Commands

Every command of today's registry ({version}) that may access memory or order accesses, and what becomes of it. The page
is made by `ci/gen_commands.py` from `vkharness.commands`, the rig of the scenarios and the measurements of `observe`.
Other names of a command follow in brackets.

- *judged*: both judges follow it.
- *executed*: the scenarios record or call it, and run it on the drivers that have it.
- *observed*: `vkharness observe` compared what it declares with what a driver does.
- *touches nothing*: it changes neither memory nor order, for the reason that follows.
- *unknown*: a stream with it has no clean verdict, for the reason that follows.

{counts}
Beside these, {quiet} commands only query, make or end objects: `vkGet…`, `vkEnumerate…`, `vkCreate…` and `vkDestroy…`.
A command that the registry does not have is unknown.
"""


def executed() -> frozenset[str]:
    """The main names of the commands that the rig of the scenarios calls."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "harness" / "vkharness" / "rig").glob("*.py"))
    return frozenset(main_name(name) for source in sources for name in re.findall(r"\bvk[A-Z]\w+", source))


def observed() -> frozenset[str]:
    """The main names of the commands of which the measurements say what was observed."""
    measured = json.loads((ROOT / "docs" / "measurements.json").read_text(encoding="utf-8"))
    lines = (line for key in measured if key.startswith("observe") for line in measured[key].get("lines", ()))
    return frozenset(main_name(line.split()[0]) for line in lines if line.startswith("vkCmd"))


def state_of(name: str, run: frozenset[str], seen: frozenset[str]) -> str:
    """The state of a command in words."""
    if name in NAMED:
        return f"unknown: {NAMED[name]}"
    if name in HARMLESS:
        return f"touches nothing: {HARMLESS[name]}"
    return ", ".join(["judged"] + ["executed"] * (name in run or name in seen) + ["observed"] * (name in seen))


def rows(states: dict[str, str], names: list[str]) -> Iterator[str]:
    """A line of the table for each command."""
    others: dict[str, list[str]] = {}
    for alias, main in tables.COMMAND_ALIASES.items():
        others.setdefault(main, []).append(alias)
    for name in names:
        more = ", ".join(f"`{each}`" for each in sorted(others.get(name, ())))
        yield f"| `{name}`{f' ({more})' if more else ''} | {states[name]} |"


def page() -> str:
    """The text of the page."""
    Interpreter()  # whose module has all handlers register themselves
    run, seen = executed(), observed()
    states = {name: state_of(name, run, seen) for name in sorted(accountable())}
    kinds = Counter(state.partition(":")[0].partition(",")[0] for state in states.values())
    version = re.search(r"registry ([\d.]+)", tables.__doc__ or "")
    assert version is not None
    counts = f"{len(states)} commands: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) + "."
    quiet = sum(touches_nothing(name) for name in tables.COMMANDS if name not in tables.COMMAND_ALIASES)
    lines = [HEAD.format(version=version[1], counts=counts, quiet=quiet)]
    left = list(states)
    for title, words in GROUPS:
        names = [name for name in left if name.startswith(words)]
        left = [name for name in left if name not in names]
        lines += [f"## {title}\n", "| command | state |", "|---|---|", *rows(states, names), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(write_page("gen_commands.py", "commands.md", page, sys.argv[1:]))

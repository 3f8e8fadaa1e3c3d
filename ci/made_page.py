"""A page of docs/ that a command of ci/ makes as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def write_page(command: str, page: str, make: Callable[[], str], arguments: list[str]) -> int:
    """Writes the `page` that `make` gives, or with --check only compares. Returns the exit status of the `command`."""
    if arguments not in ([], ["--check"]):
        print(f"usage: ci/{command} [--check]", file=sys.stderr)
        return 2
    made, path = make(), DOCS / page
    if path.exists() and path.read_text(encoding="utf-8") == made:
        return 0
    if arguments:
        print(f"docs/{page} is not what ci/{command} makes; run it", file=sys.stderr)
        return 1
    path.write_text(made, encoding="utf-8")
    return 0

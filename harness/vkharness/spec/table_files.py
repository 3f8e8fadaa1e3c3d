"""The large tables of `vkharness.spec._generated`, one JSON file each.

As Python they would take longer to load than all other modules together: most runs need a few rows of them, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NESTED = ("STRUCTS", "COMMANDS")
"""Tables with so many lists that they become tuples a row at a time, when the row is first asked for."""
NUMBERED = ("FORMATS", "STYPES")
"""Tables whose keys are numbers, which are text in JSON."""


class NestedTable(Mapping[str, Any]):
    """A table as read from JSON, with tuples for its rows."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw
        self._rows: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = _fixed(self._raw[name])
        return row

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


def _fixed(value: Any) -> Any:
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def load(table: str) -> Mapping[Any, Any]:
    """Reads a table by its name in `_generated`: "STRUCTS" is in structs.json."""
    raw = json.loads((Path(__file__).parent / "data" / f"{table.lower()}.json").read_bytes())
    if table in NESTED:
        return NestedTable(raw)
    return {int(key) if table in NUMBERED else key: _fixed(row) for key, row in raw.items()}

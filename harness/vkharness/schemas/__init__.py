"""The schemas of the files that vkharness writes and reads, as JSON Schema; `docs/formats.md` is made from them.

A schema lets members through that it does not name: a file of a later state of the same version may have more of them.
Of JSON Lines a schema describes one line, of a text or TOML file its content as data.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FORMATS = ("trace", "findings", "results", "baseline", "ignore", "campaign", "answers", "observations")
"""Names of the schemas."""


def schema(name: str) -> dict[str, Any]:
    """The schema of a format, one of `FORMATS`."""
    text = (Path(__file__).parent / f"{name}.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found

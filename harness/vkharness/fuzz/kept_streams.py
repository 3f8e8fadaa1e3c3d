"""Streams that are kept: stream text, with what both judges must find in it.

They stand in `.toml` files beside the scenarios (`scenarios/streams/`), and are for rules that no driver can be asked
about, and for streams that once told a mistake:

    [[stream]]
    name = "a copy reads what a copy wrote"
    finds = ["READ_AFTER_WRITE"]
    text = \"\"\"
    submit q1
        COPY_TRANSFER_WRITE a
        COPY_TRANSFER_READ a
    \"\"\"
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vkharness.findings import UserError


class KeptStream(NamedTuple):
    """A stream, and what both judges find in it."""

    name: str
    text: str
    """As `stream_text` reads it."""
    finds: tuple[str, ...]
    """The values of `Hazard` that syncval finds, in that order; advice is among them."""


def kept_streams(paths: Sequence[Path]) -> list[KeptStream]:
    """Every kept stream of these files and folders, by the name of its file. Files that are not TOML have none.

    Raises `UserError` for a file that is no list of streams.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*.toml")) if path.is_dir() else [path])]
    return [stream for file in files if file.suffix == ".toml" for stream in _read(file)]


def _read(file: Path) -> list[KeptStream]:
    try:
        several = tomllib.loads(file.read_text(encoding="utf-8")).get("stream", [])
        return [KeptStream(each["name"], each["text"], tuple(each["finds"])) for each in several]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{file}: no kept streams: {error}") from None

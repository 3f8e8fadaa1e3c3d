"""The JSON form of a verdict: what `--json FILE` writes. Keys stay stable; new ones may be added."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.findings import Finding, UserError

VERSION = 1


def verdict_document(verdict: str, findings: Sequence[Finding], unmodelled: Mapping[str, int]) -> dict[str, Any]:
    """`{"version", "verdict", "findings", "unmodelled"}`; `unmodelled` maps a command to how often it was met."""
    return {
        "version": VERSION,
        "verdict": verdict,
        "findings": [finding.to_dict() for finding in findings],
        "unmodelled": dict(unmodelled),
    }


def write_json(path: Path, document: Any) -> None:
    """Writes `document` to `path`, whole or not at all: a good file there is never half overwritten.

    What is no plain file (a pipe, a terminal) is written to directly. Raises `UserError` when it cannot be written.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

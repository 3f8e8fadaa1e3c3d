"""The JSON form of a verdict: what `--json FILE` writes. Keys stay stable; new ones may be added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.findings import Finding, Unjudged
from harness.report.files import write_whole

VERSION = 1


def verdict_document(
    verdict: str, findings: Sequence[Finding], unmodelled: Mapping[str, int], model: str, unjudged: Unjudged
) -> dict[str, Any]:
    """`{"version", "verdict", "findings", "unmodelled", "model", "left_out", "never_visible"}`.

    `unmodelled` maps a command to how often it was met. `model` says whether the second judge `agrees`, `differs` or
    was `not asked`. `left_out` counts the draws of which something is not judged, by what that is. `never_visible`
    lists what the device wrote to mapped memory and no dependency makes visible to the host.
    """
    return {
        "version": VERSION,
        "verdict": verdict,
        "findings": [finding.to_dict() for finding in findings],
        "unmodelled": dict(unmodelled),
        "model": model,
        "left_out": dict(unjudged.left_out),
        "never_visible": [each.to_dict() for each in unjudged.never_visible],
    }


def write_json(path: Path, document: Any) -> None:
    """Writes `document` to `path` as JSON, whole or not at all. Raises `UserError` when it cannot be written."""
    write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

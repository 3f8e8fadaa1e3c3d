"""What `run` and `check` share: the verdict on the terminal and in a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.findings import Finding


def show(
    verdict: str,
    findings: Sequence[Finding],
    unmodelled: Mapping[str, int],
    json_path: Path | None,
    *,
    stderr: bool = False,
) -> None:
    """Writes the JSON file, if asked for, then prints the verdict on stdout, or on stderr beside a program's output."""
    from harness.report.console import terminal
    from harness.report.text import print_verdict

    if json_path is not None:
        from harness.report.findings_json import verdict_document, write_json

        write_json(json_path, verdict_document(verdict, findings, unmodelled))
    print_verdict(terminal(stderr=stderr), verdict, findings, unmodelled)

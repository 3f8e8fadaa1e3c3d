"""The finding that `--finding N` means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.findings import Finding
    from harness.trace.calls import Block


def finding_of(blocks: Iterable[Block], number: int, trace: Path) -> Finding:
    """The finding that stands for the group of this number. Raises `UserError`, with what there is, where no group has
    it."""
    from harness.check import Analysis
    from harness.groups import chosen, groups_of

    return chosen(groups_of(Analysis().follow(blocks).findings), number, trace).first

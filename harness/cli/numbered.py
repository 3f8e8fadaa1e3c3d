"""The finding that `--finding N` means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.findings import UserError

if TYPE_CHECKING:
    from harness.findings import Finding
    from harness.trace.calls import Block


def finding_of(blocks: Iterable[Block], number: int, trace: Path) -> Finding:
    """The finding that stands for the group of this number, as `check` numbers groups. Raises `UserError`, with what
    there is, where no group has it."""
    from harness.agreement import ask_model
    from harness.check import Analysis
    from harness.groups import chosen, groups_of

    analysis = Analysis(keep_events=True).follow(blocks)
    ask_model(analysis)
    group = chosen(groups_of(analysis.findings), number, trace)
    found = next((each for each in group.findings if each.judges != ("model",)), None)
    if found is None:
        raise UserError(f"--finding {number}: the model alone finds it, and a reduction follows syncval")
    return found

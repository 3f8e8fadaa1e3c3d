"""The findings that `--finding N` means, numbered as `check` numbers groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vkharness.check import Analysis
    from vkharness.groups import Group
    from vkharness.trace.calls import Block


def group_of(blocks: Iterable[Block], number: int, trace: Path, strict: bool = True) -> Group:
    """The group of this number. Raises `UserError`, with what there is, where no group has it.

    What only the model finds is among the groups, as long as the trace is not too long for the model. `strict`: each
    hazard counts.
    """
    from vkharness.groups import chosen, groups_of

    return chosen(groups_of(judged_by_both(blocks, strict).findings), number, trace)


def judged_by_both(blocks: Iterable[Block], strict: bool = True) -> Analysis:
    """The findings of both judges; those of the model only where the trace is not too long for it."""
    from vkharness.agreement import MOST_EVENTS, ask_model
    from vkharness.check import Analysis

    analysis = Analysis(keep_events=True, keep_at_most=MOST_EVENTS, strict=strict).follow(blocks)
    ask_model(analysis)
    return analysis

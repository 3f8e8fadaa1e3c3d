"""Evidence about the hazards of a row, from its trace: findings, the order with the missing dependencies, and mends.

The row itself has the verdicts. This is for people who want to understand them; it needs no driver.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkharness.agreement import key_of, keys_of_conflict, note_opinion
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.groups import groups_of
from vkharness.mending.mend import Mending, mend, mend_judged
from vkharness.mending.proof import JudgedTrace, asked, judged_by
from vkharness.model import Opinion, judge
from vkharness.model.explanation import PairExplanation, explain_pairs
from vkharness.model.order import DST, SRC, TRANSITION
from vkharness.report.explanations import explanation_text
from vkharness.report.mends import changes_in_words
from vkharness.report.order_svg import draw_ordered_svg, draw_svg
from vkharness.report.rules import rule_of
from vkharness.trace.calls import Block
from vkharness.trace.codec import load
from vkharness.trace.edits import EditedTrace

MOST_BYTES = 4 << 20
"""Of a trace: scenarios have a hundredth of it. What a longer one lacks has the commands that are made for it."""
MOST_GROUPS = 8
"""Groups of findings of one row that are drawn."""
MOST_PAIRS = 64
"""Pairs of accesses of a clean row that are looked at."""
COMMANDS = 12
"""Commands that are drawn of an order, at most about."""
LANGUAGES = ("Python", "C")


def evidence(trace: Path) -> dict[str, Any]:
    """`{"problem", "groups", "names", "ordered"}`: why there is nothing, or each group of findings, as `check` numbers
    them. Where there is none, `ordered` has two accesses with what orders them: `lines` of text and `order` (SVG).

    A group has `number`, `finding` (`Finding.to_dict()` of the first), `count`, `rule` (a link into the documentation),
    `order` (SVG), `mend` (lines of text and code) and `not_mended` (why). `names` are debug names of the program, by
    the id of the object.
    """
    try:
        if trace.stat().st_size > MOST_BYTES:
            return _nothing(f"the trace is longer than {MOST_BYTES >> 20} MiB: `vkharness check` and `mend` say more")
        return _of_stream(load(trace))
    except (UserError, OSError) as error:
        return _nothing(str(error))
    except Exception as error:  # one row must not cost the page of all
        return _nothing(f"internal error: {type(error).__name__}: {error}; `vkharness mend` on the trace shows where")


def _of_stream(blocks: list[Block]) -> dict[str, Any]:
    analysis, opinion, judged = _judged(blocks)
    groups = groups_of(analysis.findings)[:MOST_GROUPS]
    mends = {}
    if any(group.counts for group in groups):
        mends = _mends(mend(blocks) if judged is None else mend_judged(judged))
    return {
        "problem": "",
        "groups": [
            {
                "number": group.number,
                "finding": group.first.to_dict(),
                "count": group.count,
                "rule": rule_of(group.first),
                "order": _order(opinion, group.first),
                **mends.get(group.number, {"mend": [], "not_mended": ""}),
            }
            for group in groups
        ],
        "names": {str(id): name for id, name in opinion.debug.names.items()},
        "ordered": [] if groups else _ordered(blocks),
    }


def _judged(blocks: list[Block]) -> tuple[Analysis, Opinion, JudgedTrace | None]:
    """Judges a trace with syncval and the model; the third item is both results in the form that a mend takes.

    A mend numbers the blocks from 1, and does not ask the model about a long trace: None where that differs."""
    trace = EditedTrace.of(blocks)
    if trace.origins == tuple(range(1, len(blocks) + 1)):
        analysis, said, pairs = asked(trace)
        if said is not None:
            said.debug = analysis.debug
            return analysis, said, judged_by(trace, analysis, said, pairs)
    analysis, opinion = Analysis().follow(blocks), judge(blocks)
    note_opinion(analysis, opinion)
    return analysis, opinion, None


def _nothing(problem: str) -> dict[str, Any]:
    return {"problem": problem, "groups": [], "names": {}, "ordered": []}


def _ordered(blocks: list[Block]) -> list[dict[str, Any]]:
    """The last pair of a clean stream that a dependency between commands orders, else the last that anything orders;
    nothing where no two accesses meet."""
    pairs, _, _ = explain_pairs(blocks, MOST_PAIRS)
    in_order = [each for each in pairs if each.conflict is None and each.path]
    chosen = ([each for each in in_order if _by_dependency(each)] or in_order)[-1:]
    return [
        {"lines": explanation_text(each).splitlines(), "order": draw_ordered_svg(each, COMMANDS)} for each in chosen
    ]


def _by_dependency(pair: PairExplanation) -> bool:
    return any(pair.order.nodes[edge.second].kind in (SRC, DST, TRANSITION) for edge in pair.path[:-1])


def _order(opinion: Opinion, finding: Finding) -> str:
    """The order around the conflict that is this finding, else around none."""
    wanted = key_of(finding)
    found = next((each for each in opinion.conflicts if wanted in keys_of_conflict(each)), None)
    return draw_svg(opinion, found, COMMANDS, finding)


def _mends(mending: Mending) -> dict[int, dict[str, Any]]:
    """By the number of the group: the lines of all of its changes, or why there is none."""
    changes = changes_in_words(mending.trace, mending.applied, LANGUAGES)
    return {
        outcome.number: {
            "mend": [line for origin, lines in changes if origin in outcome.origins for line in lines],
            "not_mended": outcome.reason,
        }
        for outcome in reversed(mending.outcomes)
    }

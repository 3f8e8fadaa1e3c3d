"""What the playground of the documentation site shows of a text or a trace: everything in one answer, as JSON.

It runs in a browser, where nothing of a driver or of the native core is there, and imports what judging needs alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vkharness.agreement import conflicts_of, finding_of, note_opinion
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.groups import groups_of
from vkharness.model import judge_stream_events
from vkharness.model.explanation import explain_pairs
from vkharness.report.explanations import explanation_text
from vkharness.report.order_svg import draw_svg
from vkharness.report.rules import rule_of
from vkharness.report.sentences import resource_text
from vkharness.text_form.command_text import FLAGS, access_kinds, command_words
from vkharness.text_form.dependency_text import layouts
from vkharness.text_form.stream_text import EVENT_WORDS, parse
from vkharness.text_form.text_file import blocks_of
from vkharness.text_form.text_mends import SOURCE, TextChange, line_of, mends, wider
from vkharness.text_form.unreadable import TextError, access_names, stage_names
from vkharness.trace.calls import Block
from vkharness.trace.codec import read_trace

COMMANDS = 24
"""Commands that are drawn."""
MOST_PAIRS = 8
MOST_CHARACTERS = 1 << 16
"""Of a text that is judged while somebody types."""


def answer(text: str, line: int = 0) -> str:
    """`{"verdict", "findings", "svg", "pairs", "mends", "wider"}`, or `{"error": {"line", "column", "why"}}`.

    `line` is that of the cursor: `pairs` explain its command.
    """
    try:
        if text.lstrip().startswith("{"):
            return json.dumps(_of_trace(text))
        if len(text) > MOST_CHARACTERS:
            raise UserError(f"the playground takes {MOST_CHARACTERS} characters; vkharness check takes more")
        parse(text, SOURCE)
        return json.dumps(_judged(lambda: blocks_of(text, SOURCE), line) | _changes(text))
    except TextError as error:
        return json.dumps({"error": {"line": error.line, "column": error.column, "why": error.why}})
    except UserError as error:
        return json.dumps({"error": {"line": 1, "column": 1, "why": str(error)}})


def words() -> str:
    """The words of stream text by their kind, for colours and for completion."""
    found = {
        "event": EVENT_WORDS,
        "command": command_words(),
        "access": sorted(access_kinds()),
        "stage": stage_names(),
        "mask": access_names(),
        "flag": sorted(FLAGS),
        "layout": list(layouts()),
    }
    return json.dumps(found)


def _of_trace(text: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "pasted.jsonl")
        path.write_text(text, encoding="utf-8")
        return _judged(lambda: read_trace(path), 0) | {"mends": [], "wider": []}


def _judged(blocks: Callable[[], Iterable[Block]], line: int) -> dict[str, Any]:
    analysis = Analysis(keep_events=True, strict=False).follow(blocks())
    opinion = judge_stream_events(analysis.events)
    model = note_opinion(analysis, opinion)
    groups = groups_of(analysis.findings)
    conflict = next(iter(conflicts_of(groups[0].findings, opinion)), None) if groups else None
    drawn = opinion.everything[conflict - 1] if conflict else None
    findings = [
        {
            "number": group.number,
            "hazard": group.first.hazard,
            "advice": group.first.advice,
            "uncounted": group.first.uncounted.reason if group.first.uncounted else "",
            "resource": resource_text(group.first),
            "accesses": [
                _access(group.first.place, group.first.access),
                _access(group.first.prior, group.first.prior_access),
            ],
            "missing": group.first.missing,
            "rule": rule_of(group.first),
        }
        for group in groups
    ]
    return {
        "verdict": analysis.verdict,
        "model": model,
        "unmodelled": sorted(analysis.unmodelled),
        "findings": findings,
        "svg": draw_svg(opinion, drawn, COMMANDS, finding_of(drawn, groups[0].findings) if drawn else None),
        "pairs": _pairs(blocks, line),
    }


def _access(place: Any, access: str) -> dict[str, Any]:
    return {"command": place.command, "access": access, "line": line_of(place.site)}


def _pairs(blocks: Callable[[], Iterable[Block]], line: int) -> list[str]:
    """The explanations of the pairs that the command of a line is in; of all without a line."""
    pairs, _, _ = explain_pairs(blocks(), 1000)
    near = [each for each in pairs if not line or line in (line_of(each.prior.site), line_of(each.current.site))]
    return [explanation_text(each) for each in near[-MOST_PAIRS:]]


def _changes(text: str) -> dict[str, Any]:
    return {"mends": list(map(_change, mends(text))), "wider": list(map(_change, wider(text)))}


def _change(change: TextChange) -> dict[str, Any]:
    return change._asdict()

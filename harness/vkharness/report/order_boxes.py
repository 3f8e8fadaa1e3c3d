"""Texts in the pictures of a partial order: the words in each box and each cell, whatever draws them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vkharness.call_sites import shown
from vkharness.findings import Finding, Place
from vkharness.model import Conflict, Opinion
from vkharness.model.explanation import PairExplanation
from vkharness.model.order import ACTION, DST, FENCE, HOST, SRC, SUBMIT, TRANSITION, Node
from vkharness.report.conflicts import conflict_text, missing_text, use_text
from vkharness.report.nearest_text import lacks_of
from vkharness.report.neighbourhood import Neighbourhood
from vkharness.report.printable import printable, quoted
from vkharness.report.sentences import touched_text
from vkharness.spec import names

WITH_CELLS = (ACTION, SRC, DST, TRANSITION)
"""The kinds of nodes of which a box has cells. A node of another kind is the box itself, when it is the box's first."""
FAINT = (SUBMIT, HOST, FENCE)
"""Kinds of nodes with very many arrows, which are drawn pale."""
MOST_STAGES = 3
"""The most names of stages in a cell. Further stages are counted."""


Ends = Conflict | PairExplanation
"""Two accesses that a picture is about: they conflict, or they are in order."""


class CellText(NamedTuple):
    """One node of the order in words."""

    node: int
    lines: Sequence[str]
    kind: str
    is_end: bool
    """Whether it is one of the two uses of the conflict."""


class BoxText(NamedTuple):
    """One execution of a command in words."""

    name: str
    call: str
    """` (call 12)`; empty for what belongs to no call."""
    notes: Sequence[str]
    """Where it is in the program, and what the program says of it."""
    rows: Sequence[Sequence[CellText]]
    """A row for each kind of node."""
    own: int | None
    """The node that the box itself stands for."""
    own_is_end: bool


Notes = Mapping[int, Sequence[str]]
"""By the number of a call lines for its boxes."""


def notes_of(finding: Finding | None) -> Notes:
    """What a finding says of the commands in the picture: the part that both accesses touch, and what the dependency
    lacks that comes nearest to the missing one."""
    if finding is None:
        return {}
    part = touched_text(finding.ranges, finding.boxes)
    notes = {each.call: [part] for each in (finding.prior, finding.place)} if part else {}
    if finding.nearest is not None:
        lacks = "; ".join(map(brief, lacks_of(finding.nearest)))
        notes.setdefault(finding.nearest.call, []).extend(_wrapped(f"comes nearest: {lacks}"))
    return notes


def box_of(opinion: Opinion, conflict: Ends | None, nodes: Sequence[int], notes: Notes) -> BoxText:
    """The command, what the program and a finding say of it, then the sides of its dependencies and its work, a row
    each kind."""
    order = opinion.order
    first = order.nodes[nodes[0]]
    ends = {conflict.prior.node, conflict.current.node} if conflict is not None else set()
    rows: dict[str, list[int]] = {}
    for node in nodes:
        rows.setdefault(order.nodes[node].kind, []).append(node)
    lone = first.kind not in WITH_CELLS  # such a node is all of its box: the title says what it is
    call = f" (call {first.place.call})" if first.place.call else ""
    name = brief(first.label).removesuffix(f" ({first.place.call})") if lone else first.place.command
    return BoxText(
        name,
        call,
        [
            each
            for each in (_site(first.place.site or ""), _said(opinion, first.place), *notes.get(first.place.call, ()))
            if each
        ],
        [
            [
                CellText(node, _cell(order.nodes[node]) + _uses(node, conflict), order.nodes[node].kind, node in ends)
                for node in several
            ]
            for several in rows.values()
            if not lone or several != list(nodes[:1])
        ],
        nodes[0] if lone else None,
        lone and nodes[0] in ends,
    )


def queue_name(opinion: Opinion, queue: int) -> str:
    """`queue 4 "graphics"`; `host` for 0, which stands for a recording where that was never submitted."""
    if not opinion.submitted:
        return "recorded, not submitted"
    name = opinion.debug.names.get(queue, "")
    return f"queue {queue}{f' {quoted((name,))}' if name else ''}" if queue else "host"


def title_of(opinion: Opinion, conflict: Ends | None, part: Neighbourhood) -> list[str]:
    """Returns the title of a picture, a few lines: the conflict or ordered pair, its resource, what is left out."""
    if isinstance(conflict, PairExplanation):
        lines = [f"in order: {use_text(conflict.current)} after {use_text(conflict.prior)}"]
    else:
        lines = [conflict_text(conflict) if conflict is not None else "no conflict"]
    if conflict is not None and conflict.resource in opinion.debug.names:
        lines.append(f"on {conflict.resource} {quoted((opinion.debug.names[conflict.resource],))}")
    if part.left_out:
        lines.append(f"{part.left_out} commands further away are not drawn")
    if part.nodes_left_out:
        lines.append(f"{part.nodes_left_out} further parts of commands are not drawn")
    return lines


def missing_label(conflict: Conflict) -> list[str]:
    """Returns the label of the missing edge, on lines of about 44 characters."""
    return _wrapped(f"missing: {brief(missing_text(conflict).partition(':')[0])}")


def brief(text: str) -> str:
    """Names of stages and accesses without what is the same in all of them."""
    return re.sub(r"VK_(?:PIPELINE_STAGE|ACCESS)_2_(\w+?)(?:_BIT(?:_[A-Z]+)?)?\b", r"\1", text)


def _said(opinion: Opinion, place: Place) -> str:
    """Returns the program's own names of a place: its label regions and its frame."""
    frame = opinion.debug.frames.of(place.submit or place.call)
    labels = printable(" / ".join(opinion.debug.labels_at(place)))
    return ", ".join([*([labels] if labels else ()), *([f"frame {frame}"] if frame is not None and place.call else ())])


def _cell(node: Node) -> list[str]:
    if node.kind == ACTION:
        return [_stages(node.stages)]
    if node.kind in (SRC, DST):
        side = "from" if node.kind == SRC else "to"
        return [f"{side} {brief(node.label.rpartition(f' {side} ')[2])}"]
    return [node.kind if node.kind == TRANSITION else brief(node.label)]


def _uses(node: int, conflict: Ends | None) -> list[str]:
    uses = (conflict.prior, conflict.current) if conflict is not None else ()
    return [
        f"{'writes' if use.write else 'reads'} {use.access.removeprefix('SYNC_')}" for use in uses if use.node == node
    ]


def _stages(mask: int) -> str:
    """The stages of a scope: a few by name, logically earlier and later ones counted."""
    each = brief(names.stages(mask)).split("|")
    if len(each) <= MOST_STAGES:
        return ", ".join(each)
    return f"{', '.join(each[:MOST_STAGES])} and {len(each) - MOST_STAGES} more"


def _site(site: str) -> str:
    return printable(shown(site).rsplit("/", 1)[-1])


def _wrapped(text: str, width: int = 44) -> list[str]:
    """Words on lines of about that many characters."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines

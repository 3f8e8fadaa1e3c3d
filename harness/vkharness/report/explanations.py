"""An explanation of the model in words: the argument for a pair of accesses that is in order, or what is missing."""

from __future__ import annotations

from vkharness.findings import Place
from vkharness.model.explanation import PairExplanation, Passage
from vkharness.model.opinion import REMARKS, ModelAccess
from vkharness.model.pairs import Exemption
from vkharness.report.conflicts import conflict_text, missing_text
from vkharness.report.sentences import labelled, part_text
from vkharness.report.stack_text import site_text
from vkharness.trace.resources import describe

_EXEMPT = {
    Exemption.HOST: "the host is one thread, and its accesses happen in its order",
    Exemption.ENGINE: "the presentation engine orders its own accesses",
    Exemption.ATOMICS: "both are atomic, and atomics may come in any order",
    Exemption.MARKERS: "the two may come in any order",
    Exemption.TRANSITIONS: "layout transitions of one queue execute in submission order",
    Exemption.RASTERIZATION: "attachment accesses of one subpass are in rasterization order",
}


def explanation_text(pair: PairExplanation) -> str:
    """A few lines: the resource with its range, both accesses, and the argument."""
    lines = [
        part_text(pair.resource, *describe(pair.subject, pair.spans), pair.debug.names),
        f"  first   {_labelled_use(pair, pair.prior)}",
        f"  then    {_labelled_use(pair, pair.current)}",
    ]
    if pair.conflict is not None:
        word = "advice  " if pair.conflict.kind in REMARKS else "CONFLICT"
        lines += [f"  {word} {conflict_text(pair.conflict)}", f"  missing {missing_text(pair.conflict)}"]
    elif pair.exemption is not None:
        lines.append(f"  fine    {_EXEMPT[pair.exemption]}")
    else:
        lines += [f"  ordered {step}" for step in _steps(pair)]
        lines += [f"  {_passage(pair, each)}" for each in pair.passages]
    return "\n".join(lines)


def _steps(pair: PairExplanation) -> list[str]:
    """One line for each command on the path, with the rules of the edges that lead to its nodes."""
    if not pair.path:
        return [f"after the load operation of {_use(pair, load)}, which saw the write" for load in pair.loads]
    steps: list[tuple[Place, list[str]]] = []
    for edge in pair.path:
        place = pair.order.nodes[edge.second].place
        if not steps or steps[-1][0] != place:
            steps.append((place, []))
        steps[-1][1].append(edge.rule)
    return [f"{_place(pair, place)}: {', '.join(dict.fromkeys(rules))}" for place, rules in steps]


def _passage(pair: PairExplanation, passage: Passage) -> str:
    part = ""
    if passage.spans != pair.spans:
        part = f"{part_text(pair.resource, *describe(pair.subject, passage.spans))}: "
    if passage.reader is not None:
        return f"memory  {part}ordered after a read that saw the write: {_use(pair, passage.reader)}"
    nodes = pair.order.nodes
    flush = "by itself" if passage.flush is None else f"by {_place(pair, nodes[passage.flush].place)}"
    if passage.taken_on is not None:
        flush = f"to the host {flush}, to the device by {_place(pair, nodes[passage.taken_on].place)}"
    invalidate = "by itself" if passage.invalidate is None else f"by {_place(pair, nodes[passage.invalidate].place)}"
    return f"memory  {part}available {flush}, visible {invalidate}"


def _labelled_use(pair: PairExplanation, use: ModelAccess) -> str:
    return f"{labelled(f'{use.command} {use.access}', pair.debug.labels_at(use.place))}{_where(pair, use.place)}"


def _use(pair: PairExplanation, use: ModelAccess) -> str:
    return f"{use.command} {use.access}{_where(pair, use.place)}"


def _place(pair: PairExplanation, place: Place) -> str:
    return f"{place.command}{_where(pair, place)}"


def _where(pair: PairExplanation, place: Place) -> str:
    submit = f", submit {place.submit}" if place.submit else ""
    number = pair.debug.frames.of(place.submit or place.call)
    frame = "" if number is None else f", frame {number}"
    return f"{f' at {site_text(place.site)}' if place.site else ''} (call {place.call}{submit}{frame})"

"""Advice on dependencies, in words, as code and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vkharness.call_sites import shown
from vkharness.report.mends import LANGUAGES, code_of
from vkharness.report.stack_text import site_text
from vkharness.trace.barrier_calls import is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit

INDENT = "    "
MOST_NAMED = 3
"""The most commands that are told by name on either side."""


class AdviceKind(StrEnum):
    """Kinds of excess synchronization."""

    ORDERS_NOTHING = "orders nothing"
    WIDER = "wider than needed"
    COULD_BE_ONE = "could be one with the barrier before it"
    THROUGH_A_LAYOUT = "follows a transition to a layout that nothing needs"
    WAITS_FOR_NOTHING = "waits for nothing"
    NEEDLESS_WAIT = "makes the host wait without need"


@dataclass(frozen=True, slots=True)
class Serialized:
    """Operations that are in order only by the excess synchronization."""

    pairs: int
    """Pairs of operations, the later of which has to wait for the earlier."""
    before: tuple[tuple[str, int], ...]
    """(command, call) of the earlier ones."""
    after: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """One dependency that could be less."""

    kind: AdviceKind
    call: Call
    """The call as it is, the first of them."""
    origins: tuple[int, ...]
    """The indices of all calls that are to change alike."""
    lines: tuple[str, ...] = ()
    """Each part that is too much, in words."""
    narrow: Call | None = None
    """The call as it could be; None where it could be left out."""
    serializes: Serialized | None = None
    """None where the model was not asked."""
    sets: tuple[int, ...] = ()
    """The vkCmdSetEvent2 that are to change with waits for events."""


def advice_text(number: int, advice: Advice, languages: Sequence[str]) -> Iterator[str]:
    """The lines of one advice, with the code of the narrower form."""
    call = advice.call
    site = f" at {site_text(call.site)}" if call.site else ""
    often = f", and {len(advice.origins) - 1} more alike" if len(advice.origins) > 1 else ""
    yield f"{number}. {call.name} (call {call.index}{site}){often}: {advice.kind}"
    yield from (f"{INDENT}{line}" for line in advice.lines)
    if advice.sets:
        more = f", and {len(advice.sets) - 1} more, change" if len(advice.sets) > 1 else " changes"
        yield f"{INDENT}the set in call {advice.sets[0]}{more} alike"
    held = advice.serializes
    if held is not None and held.pairs:
        yield f"{INDENT}it serializes {_named(held.before)} with {_named(held.after)}"
    elif held is not None:
        yield f"{INDENT}it serializes nothing: no command could begin earlier without it"
    if advice.narrow is None:
        return
    edit = Edit(0, call, advice.narrow)
    for title, name in code_of(edit, advice.narrow):
        if is_barrier(call) and ("2" in call.name) != ("second" in title):
            continue
        for language in languages:
            lines = LANGUAGES[language]()
            made = lines.call(name[0], name[1]) if name[0].startswith("vk") else lines.struct(*name)
            yield from (f"{INDENT}{language}{title}:", *(f"{INDENT * 2}{line}" for line in made))


def _named(places: Sequence[tuple[str, int]]) -> str:
    """`2 commands (vkCmdDraw, call 4; vkCmdDraw, call 5)`."""
    named = "; ".join(f"{command}, call {call}" for command, call in places[:MOST_NAMED])
    more = f"; {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    return f"{len(places)} command{'s' * (len(places) != 1)} ({named}{more})"


def advice_document(several: Sequence[Advice], notes: Sequence[str]) -> dict[str, Any]:
    """The same as JSON-able data."""
    return {
        "version": 1,
        "advice": [
            {
                "number": number,
                "kind": each.kind.value,
                "call": each.call.index,
                "command": each.call.name,
                "site": each.call.site and shown(each.call.site),
                "calls": list(each.origins),
                "sets": list(each.sets),
                "parts": list(each.lines),
                "args": None if each.narrow is None else each.narrow.args,
                "serializes": each.serializes
                and {
                    "pairs": each.serializes.pairs,
                    "before": [{"command": name, "call": call} for name, call in each.serializes.before],
                    "after": [{"command": name, "call": call} for name, call in each.serializes.after],
                },
            }
            for number, each in enumerate(several, 1)
        ],
        "notes": list(notes),
    }

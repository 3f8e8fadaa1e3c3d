"""Races between invocations, as text and as JSON-able data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vkharness.call_sites import shown
from vkharness.races.dispatch_races import InvocationRace, RaceAccess, RacesFound
from vkharness.races.knowledge import Storage

CLASSES = {Storage.SHARED: "shared memory", Storage.BUFFER: "storage buffer", Storage.IMAGE: "storage image"}


def races_text(found: RacesFound) -> Iterator[str]:
    """The answer as text."""
    for number, race in enumerate(found.races, 1):
        yield from _lines(number, race, found.differing.get(race.call, 0))
    if found.unmended:
        yield "not all barriers were tried: the work that mends may take ran out"
    for why, count in found.unjudged.items():
        yield f"not judged: {count} dispatch{'es' if count > 1 else ''}: {why}"


def _lines(number: int, race: InvocationRace, differing: int) -> Iterator[str]:
    what = f"{CLASSES[race.storage]}{f' {race.variable}' if race.variable else ''}"
    where = f" at {shown(race.site)}" if race.site else ""
    yield f"race {number}: {what}, inside {race.command} (call {race.call}){where}"
    for each in (race.first, race.second):
        line = f" at {each.line[0]}:{each.line[1]}" if each.line else f", access {each.instruction} of the shader"
        yield f"  {each.kind} by invocation {each.invocation} of work group {each.group}{line}"
    yield f"  {race.why}"
    yield f"  in {race.places} place{'s' if race.places > 1 else ''}, one of them {race.example}"
    if race.mend:
        yield f"  mended by {race.mend}: executed with it, the two are ordered"
    if differing:
        yield f"  first to last and last to first, the invocations leave {differing} bytes different"


def races_document(found: RacesFound) -> dict[str, Any]:
    """The answer as data."""
    return {
        "version": 1,
        "races": [_document(each, found.differing.get(each.call, 0)) for each in found.races],
        "barriers_left_untried": found.unmended,
        "judged": found.judged,
        "unjudged": [{"why": why, "dispatches": count} for why, count in found.unjudged.items()],
    }


def _document(race: InvocationRace, differing: int) -> dict[str, Any]:
    return {
        "call": race.call,
        "command": race.command,
        "site": race.site and shown(race.site),
        "storage": CLASSES[race.storage],
        "variable": race.variable,
        "accesses": [_access(each) for each in (race.first, race.second)],
        "why": race.why,
        "places": race.places,
        "example": race.example,
        "mend": race.mend or None,
        "differing_bytes": differing,
    }


def _access(access: RaceAccess) -> dict[str, Any]:
    return {
        "kind": access.kind,
        "file": access.line and access.line[0],
        "line": access.line and access.line[1],
        "instruction": access.instruction,
        "invocation": list(access.invocation),
        "group": list(access.group),
    }

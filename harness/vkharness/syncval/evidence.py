"""From hazards to findings: one finding for each pair of accesses, however many ranges it covers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from vkharness.findings import Box, Certainty, DependencySoFar, Finding, Hazard, Place, stronger
from vkharness.spans import Span, merge
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.entries import DetectedHazard
from vkharness.syncval.state import union
from vkharness.trace.work_budget import A_HAZARD, spend

Key = tuple[Any, ...]


class Description(NamedTuple):
    """A resource for people and for JSON: its type, byte ranges (buffers, memory) or boxes (images)."""

    type: str
    ranges: tuple[tuple[int, int], ...]
    boxes: tuple[Box, ...]


Describe = Callable[[int, list[Span]], Description]
"""Tells what addresses of a resource mean, from the live objects."""


class Reporter:
    """Makes findings and remembers which pairs were reported."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._across: set[Key] = set()

    @staticmethod
    def _pairs(hazards: list[DetectedHazard], place: Place) -> Iterator[tuple[Key, list[DetectedHazard]]]:
        """The hazards of each pair, with the key of the pair as recorded (without its execution)."""
        spend(A_HAZARD * len(hazards), "hazards")
        grouped: dict[tuple[Any, ...], list[DetectedHazard]] = {}
        for detected in hazards:
            group = (
                detected.hazard,
                detected.prior_number,
                detected.access_kind,
                detected.prior_access_kind,
                detected.resource,
            )
            grouped.setdefault(group, []).append(detected)
        for same in grouped.values():
            first = same[0]
            key = (
                first.hazard,
                place.call,
                first.prior.call,
                first.access_kind,
                first.prior_access_kind,
                first.resource,
            )
            yield key, same

    def findings(self, hazards: list[DetectedHazard], place: Place) -> Iterator[Finding]:
        """One finding a pair."""
        return (self._finding(same, place) for _, same in self._pairs(hazards, place))

    def recorded(self, hazards: list[DetectedHazard], place: Place, reported: set[Key]) -> Iterator[Finding]:
        """Findings of a recorded command, each pair once; `reported` remembers them."""
        for key, same in self._pairs(hazards, place):
            if key not in reported:
                reported.add(key)
                yield self._finding(same, place)

    def recorded_events(self, findings: list[Finding], reported: set[Key]) -> Iterator[Finding]:
        """Findings about events of a recorded command, each pair once."""
        for finding in findings:
            key = (finding.hazard, finding.place.call, finding.prior.call, finding.resource)
            if key not in reported:
                reported.add(key)
                yield finding

    def events(self, findings: list[Finding], recorded: set[Key]) -> Iterator[Finding]:
        """Findings about events of an executed command, without those that were reported while recording."""
        for finding in findings:
            key = (
                finding.hazard,
                finding.place.call,
                finding.prior.call,
                finding.resource,
                *_possible(finding.certainty),
            )
            if key not in recorded and key not in self._across:
                self._across.add(key)
                yield finding

    def submitted(self, hazards: list[DetectedHazard], place: Place, recorded: set[Key]) -> Iterator[Finding]:
        """Findings of an executed command, without pairs that were reported while recording or by an earlier submit
        of the same recorded commands.
        Rule: rules.md#hazards-are-found-while-recording.
        """
        for key, same in self._pairs(hazards, place):
            prior = same[0].prior
            inside = (prior.submit, prior.batch, prior.position) == (place.submit, place.batch, place.position)
            if inside and key in recorded:
                continue
            across = (*key, inside, prior.queue == place.queue, *_possible(_certainty(same)))
            if across not in self._across:
                self._across.add(across)
                yield self._finding(same, place)

    def _finding(self, hazards: list[DetectedHazard], place: Place) -> Finding:
        first = hazards[0]
        seen = self._describe(first.resource, merge([detected.span for detected in hazards]))
        return Finding(
            hazard=first.hazard,
            access=ACCESS_KINDS[first.access_kind].name,
            prior_access=ACCESS_KINDS[first.prior_access_kind].name,
            place=place,
            prior=first.prior,
            resource=first.resource,
            resource_type=seen.type,
            ranges=seen.ranges,
            boxes=seen.boxes,
            gap=first.host_step or _so_far(first),
            through=first.through,
            certainty=_certainty(hazards),
        )


def _certainty(hazards: list[DetectedHazard]) -> Certainty:
    return functools.reduce(stronger, (detected.certainty for detected in hazards))


def _possible(certainty: Certainty) -> tuple[bool, ...]:
    """Part of a key: separates findings that may be none (`Certainty.BOUND`) from the others of the same pair."""
    return (True,) if certainty is Certainty.BOUND else ()


def _so_far(detected: DetectedHazard) -> DependencySoFar | None:
    """Returns how far dependencies order the earlier access, or make it available and visible; None for hazards of
    other kinds."""
    view = detected.state.view(detected.viewer)
    if detected.hazard is Hazard.WRITE_AFTER_READ:
        return DependencySoFar(waiting_stages=union(ordering.barriers for ordering in view.reads))
    if detected.hazard in (Hazard.READ_AFTER_WRITE, Hazard.WRITE_AFTER_WRITE):
        return DependencySoFar(visible_to=view.write.barriers, available=bool(view.write.chain))
    return None

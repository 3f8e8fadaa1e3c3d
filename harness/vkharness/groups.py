"""Groups of findings: what a program does wrong once is told once, however many frames and resources it happens in.

Two findings are *the same* when the hazard, both commands with their call sites and labels, both accesses, what is
missing and the resource are the same. A resource is the same when it is the same part of the same object, and also
when its place in the frame is the same: the image of a swapchain, a buffer of a ring or a part of a ring buffer is
another one in each frame, so the n-th new one of a frame is taken for the n-th of every other frame. Two parts of
resources in one frame are never the same.

Findings *lack one dependency* when all of that but the resource is the same. Where a call site is not known, the two
calls stand for it: the n-th pair of calls of a frame is taken for the n-th pair of every other frame. Where there are
no frames, what one submit brings to a queue stands for one. Such findings are a group. Groups are numbered from 1 in
the order of their first findings. Neither what other judges say of a finding nor whether it is muted changes a number.

Of call sites, the frames up to the one that is shown count (`vkharness.call_sites`): behind one helper there are as
many groups as there are lines that call it wrongly. Who calls a function in which something is wrong does not matter.

Digits in names and labels count for nothing here: "frame 7" is "frame 8" one frame later.

What a program does wrong a million times is no million findings: `Repetitions` counts those that come after some.

>>> from vkharness.findings import Finding, Hazard, Place
>>> def found(frame, buffer):
...     late = Place(frame * 100 + 2, "vkCmdCopyBuffer", "app.py:20")
...     early = Place(frame * 100 + 1, "vkCmdFillBuffer", "app.py:19")
...     return Finding(Hazard.READ_AFTER_WRITE, "read", "write", late, early, buffer, "VkBuffer", frame=frame)
>>> frames = [found(frame, 12 + frame % 2) for frame in range(1, 301)]
>>> [group] = groups_of(frames)
>>> group.number, group.count, group.first_frame, group.last_frame, len(group.recurring)
(1, 300, 1, 300, 1)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter

from vkharness.call_sites import between
from vkharness.findings import Finding, UserError

_DIGITS = re.compile(r"\d+")
MOST_ALIKE = 100
"""Findings that lack one dependency of which each is kept, those of one resource among them."""
MOST_RESOURCES = 1_000
"""Resources and ranges of which one such finding is kept at least."""


class Repetitions:
    """Counts findings that lack one dependency, once there are some of them: memory does not grow with how often a line
    of a program is wrong. Findings whose call sites are not known are not counted.

    >>> from vkharness.findings import Finding, Hazard, Place
    >>> def found(frame):
    ...     late, early = Place(0, "vkCmdCopyBuffer", "app.py:20"), Place(0, "vkCmdFillBuffer", "app.py:19")
    ...     return Finding(Hazard.READ_AFTER_WRITE, "read", "write", late, early, 7, "VkBuffer", frame=frame)
    >>> repetitions = Repetitions()
    >>> kept = [each for frame in range(1, 1001) for each in repetitions.first([found(frame)])]
    >>> [group] = groups_of(kept)
    >>> len(kept), group.count, group.first_frame, group.last_frame
    (100, 1000, 1, 1000)
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Alike] = {}
        """By what findings lack."""

    def first(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those of findings that are kept. The others are counted in the last one that is kept, of the same resource
        where there is one."""
        return [each for each in findings if not self._is_counted(each)]

    def _is_counted(self, finding: Finding) -> bool:
        if finding.place.site is None or finding.prior.site is None:
            return False
        alike = self._known.setdefault(_alike(finding), _Alike())
        where = _where(finding)
        into = alike.last.get(where)
        if alike.kept < MOST_ALIKE or (into is None and len(alike.last) < MOST_RESOURCES):
            alike.kept += 1
            alike.last[where] = finding
            return False
        into = into or next(reversed(alike.last.values()))
        into.repeated += 1
        into.last_frame = finding.frame
        return True


class _Alike:
    """Findings that lack one dependency."""

    def __init__(self) -> None:
        self.kept = 0
        self.last: dict[Hashable, Finding] = {}
        """By resource and range, the last one that is kept."""


@dataclass(slots=True)
class Findings:
    """At least one finding, in stream order."""

    findings: list[Finding]

    @property
    def first(self) -> Finding:
        """The one that stands for all: the first that counts for the verdict, else the first."""
        return next((each for each in self.findings if each.counts), self.findings[0])

    @property
    def counts(self) -> bool:
        """Whether one of them counts for the verdict."""
        return any(each.counts for each in self.findings)

    @property
    def count(self) -> int:
        """How often something was found."""
        return sum(1 + each.repeated for each in self.findings)

    @property
    def ignored(self) -> int:
        """How many are ignored."""
        return sum(1 + each.repeated for each in self.findings if each.ignored)

    @property
    def first_frame(self) -> int | None:
        """The lowest frame of one, numbered from 1; None where the program has no frames."""
        return min(self._frames(), default=None)

    @property
    def last_frame(self) -> int | None:
        """The highest frame of one; None where the program has no frames."""
        return max(self._frames(), default=None)

    def _frames(self) -> Iterator[int]:
        frames = (frame for each in self.findings for frame in (each.frame, each.last_frame))
        return (frame for frame in frames if frame is not None)


class Recurring(Findings):
    """One finding, as often as it was found: its findings are the same."""


@dataclass(slots=True)
class Group(Findings):
    """Findings that lack one dependency."""

    number: int
    """The number that reports print and `--finding` takes, from 1."""
    recurring: list[Recurring]
    """The findings, by resource and range."""


def groups_of(findings: Iterable[Finding]) -> list[Group]:
    """The groups of findings, which are in the order in which they were found. Takes time in proportion to their
    number."""
    everything = list(findings)
    alike = _split(range(len(everything)), [_lack(each) for each in everything])
    periods = [_period(each) for each in everything]
    parts = [part for lack in alike for part in _aligned(lack, [_pair(everything[at]) for at in lack], periods)]
    parts.sort(key=lambda part: part[0])
    frames = [each.frame for each in everything]
    return [
        Group([everything[at] for at in part], number, _recurring(part, everything, frames))
        for number, part in enumerate(parts, start=1)
    ]


def chosen(groups: Sequence[Group], number: int, of: object) -> Group:
    """The group that the option `--finding` names. Raises `UserError` when there is none; `of` has the findings."""
    if not 1 <= number <= len(groups):
        several = "1 group" if len(groups) == 1 else f"{len(groups)} groups"
        raise UserError(f"--finding {number}: {of} has {several} of findings")
    return groups[number - 1]


def _recurring(part: Sequence[int], findings: Sequence[Finding], frames: Sequence[Hashable]) -> list[Recurring]:
    found = []
    for named in _split(part, [_name(findings[at]) for at in part]):
        for same in _aligned(named, [_where(findings[at]) for at in named], frames):
            found.append((same[0], Recurring([findings[at] for at in same])))
    return [each for _, each in sorted(found, key=itemgetter(0))]


def _split(places: Sequence[int], keys: Sequence[Hashable]) -> list[list[int]]:
    """Places with one key, in order."""
    found: dict[Hashable, list[int]] = {}
    for at, key in zip(places, keys, strict=True):
        found.setdefault(key, []).append(at)
    return list(found.values())


def _aligned(places: Sequence[int], things: Sequence[Hashable], frame_of: Sequence[Hashable]) -> list[list[int]]:
    """Places whose things are the same in the frame of each, or in what stands for one.

    A thing keeps the number that it got in an earlier frame. One that is new in a frame gets the lowest number that no
    other one has there. Things with one number are the same.
    """
    frames: dict[Hashable, dict[Hashable, int]] = {}
    for at, thing in zip(places, things, strict=True):
        frames.setdefault(frame_of[at], {})[thing] = -1
    known: dict[Hashable, int] = {}
    for numbers in frames.values():
        taken: set[int] = set()
        for thing in numbers:
            number = known.get(thing, -1)
            if number >= 0 and number not in taken:
                numbers[thing] = number
                taken.add(number)
        free = (number for number in count() if number not in taken)
        for thing, number in numbers.items():
            if number < 0:
                numbers[thing] = next(free)
                known.setdefault(thing, numbers[thing])
    return _split(places, [frames[frame_of[at]][thing] for at, thing in zip(places, things, strict=True)])


def _lack(finding: Finding) -> Hashable:
    """A key that is equal for findings of one group, whatever the frame."""
    place, prior = finding.place, finding.prior
    stack, prior_stack = (tuple(frame.site for frame in each) for each in between(place.site, prior.site))
    return (
        finding.hazard,
        *(place.command, finding.access, stack, _timeless(finding.labels)),
        *(prior.command, finding.prior_access, prior_stack, _timeless(finding.prior_labels)),
        finding.gap,
        place.queue == prior.queue,
    )


def _period(finding: Finding) -> Hashable:
    return finding.frame if finding.frame is not None else ("submit", finding.period)


def _alike(finding: Finding) -> Hashable:
    return (_lack(finding), finding.certainty, finding.uncounted)


def _pair(finding: Finding) -> Hashable:
    """Which two commands of a frame they are, where their lines are not known."""
    if finding.place.site is not None and finding.prior.site is not None:
        return None
    return (finding.prior.call, finding.place.call)


def _name(finding: Finding) -> Hashable:
    return (finding.resource_type, _timeless((finding.resource_name,)))


def _where(finding: Finding) -> Hashable:
    return (finding.resource, finding.ranges, finding.boxes)


def _timeless(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_DIGITS.sub("#", text) for text in texts)

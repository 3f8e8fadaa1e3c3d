"""The dependency that comes nearest to the one that a finding lacks, and what of it does not fit.

A barrier is often there and nearly right: it names another stage, covers 60 of 64 bytes, or lacks an access. So the
barriers between the two accesses are held against what the finding needs. The one that lacks least is named, and of
several the nearest to the later access.

Looked at are pipeline barriers and waits for events of the two command buffers: the last ones only, so that a finding
costs little. Dependencies of render passes, semaphores, barriers in other command buffers and of other resources on the
same memory are not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.findings import Box, Finding, Lack, NearestDependency
from vkharness.needed_scopes import covers_destination_stages, covers_source_stages, has_accesses, needed
from vkharness.spans import Span, subtract
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import Masks
from vkharness.trace.effects import Barrier, Command, Dependency, WaitEvents

NAMES = frozenset({"vkCmdPipelineBarrier", "vkCmdPipelineBarrier2", "vkCmdWaitEvents", "vkCmdWaitEvents2"})
MOST_COMMANDS, MOST_DEPENDENCIES = 1 << 8, 1 << 6
"""Of each recording, and of all barriers, that are looked at for one finding."""
MOST_SPANS = 1 << 10
"""Of one barrier that are looked at."""
MOST_PARTS = 16
"""Ranges or boxes of a finding that are looked for in a barrier."""

Describe = Callable[[int, list[Span]], tuple[str, tuple[tuple[int, int], ...], tuple[Box, ...]]]
"""Tells type, (offset, size) in bytes and boxes of addresses of a resource."""


class _Candidate(NamedTuple):
    """One dependency of a barrier, what it lacks, and the addresses that it leaves out of a resource."""

    command: Command
    dependency: Dependency
    lacks: tuple[Lack, ...]
    resource: int = 0
    left_out: tuple[Span, ...] = ()


def name_nearest(findings: Iterable[Finding], objects: ObjectState, describe: Describe) -> None:
    """Gives findings their nearest dependency, where there is one."""
    for each in findings:
        each.nearest = nearest_dependency(each, objects, describe)


def nearest_dependency(finding: Finding, objects: ObjectState, describe: Describe) -> NearestDependency | None:
    """The nearest dependency; None where none comes near, and for findings that no barrier mends. `objects` are the
    live ones."""
    hazard = finding.hazard
    if not hazard.is_between_accesses or hazard.is_race or hazard.is_presentation:
        return None
    buffers = (objects.get(CommandBuffer, each.command_buffer or 0) for each in (finding.place, finding.prior))
    late, early = (None if each is None else each.commands for each in buffers)
    wanted, touched = needed(finding), _addresses(finding, objects)
    candidates = (
        each for command in _between(finding, late, early) for each in _candidates(finding, command, wanted, touched)
    )
    # The first of those that lack least: `min` keeps it.
    best = min(islice(candidates, MOST_DEPENDENCIES), key=lambda each: len(each.lacks), default=None)
    if best is None:
        return None
    _, ranges, boxes = describe(best.resource, [*best.left_out]) if best.left_out else ("", (), ())
    said = best.command
    return NearestDependency(said.name, said.call, said.site, best.lacks, *best.dependency, ranges, boxes)


def _between(finding: Finding, late: Sequence[Command] | None, early: Sequence[Command] | None) -> Iterator[Command]:
    """Barriers before the later and after the earlier access in their recordings, the nearest to the later one first.

    A barrier whose transition is one of the two accesses is one of them. A recording that holds the command no more,
    since its command buffer was begun anew, has none.
    """
    first = None if early is None else _place_of(early, finding.prior.call)
    last = None if late is None else _place_of(late, finding.place.call)
    begin = 0 if first is None else first + (finding.prior_access != IMAGE_LAYOUT_TRANSITION.name)
    place, prior = finding.place, finding.prior
    once = (place.command_buffer, place.submit, place.batch, place.position)
    at_once = once == (prior.command_buffer, prior.submit, prior.batch, prior.position)
    if late is not None and last is not None:
        end = last + (finding.access == IMAGE_LAYOUT_TRANSITION.name)
        yield from _barriers(late, begin if at_once else 0, end)
    if early is not None and first is not None and not at_once:
        # What was recorded since then is not executed: when a recording is judged must not decide what is named.
        yield from _barriers(early, begin, _begin_of(early, place.submit or place.call))


def _begin_of(commands: Sequence[Command], call: int) -> int:
    """How many commands were recorded before a call."""
    return bisect_left(commands, call, key=lambda each: each.call)


def _place_of(commands: Sequence[Command], call: int) -> int | None:
    at = _begin_of(commands, call)
    return at if at < len(commands) and commands[at].call == call else None


def _barriers(commands: Sequence[Command], begin: int, end: int) -> Iterator[Command]:
    for at in range(end - 1, max(begin, end - MOST_COMMANDS) - 1, -1):
        if main_name((command := commands[at]).name) in NAMES:
            yield command


def _candidates(finding: Finding, command: Command, wanted: Masks, touched: list[Span]) -> Iterator[_Candidate]:
    """The dependencies of a barrier that come near to what is `wanted`, each of which lacks something."""
    for barrier in _of(command):
        region = (Lack.REGION,) if barrier.by_region else ()
        for each in barrier.globals:
            # Beside barriers of memory, the stages of the command order execution alone, and that says nothing.
            if wanted.is_memory and not Masks(*each).is_memory and len(barrier.globals) + len(barrier.ranges) > 1:
                continue
            lacks = _lacks(each, wanted) + region
            if lacks and not {Lack.FIRST_STAGES, Lack.SECOND_STAGES} <= {*lacks}:
                yield _Candidate(command, each, lacks)
        for part in islice(barrier.ranges, MOST_DEPENDENCIES):
            if part.resource in (finding.resource, finding.through) and part.src_family == part.dst_family:
                left_out = tuple(subtract(touched, part.spans[:MOST_SPANS]))
                lacks = _lacks(part.dependency, wanted) + ((Lack.RANGE,) if left_out else ()) + region
                if lacks:
                    yield _Candidate(command, part.dependency, lacks, part.resource, left_out)


def _of(command: Command) -> Iterator[Barrier]:
    for effect in command.effects:
        if isinstance(effect, Barrier):
            yield effect
        elif isinstance(effect, WaitEvents):
            yield from effect.barriers


@lru_cache(1 << 10)
def _lacks(dependency: Dependency, wanted: Masks) -> tuple[Lack, ...]:
    given = Masks(*dependency)
    checks = (
        (Lack.FIRST_STAGES, covers_source_stages(given, wanted)),
        (Lack.FIRST_ACCESSES, has_accesses(given.src_accesses, wanted.src_accesses)),
        (Lack.SECOND_STAGES, covers_destination_stages(given, wanted)),
        (Lack.SECOND_ACCESSES, has_accesses(given.dst_accesses, wanted.dst_accesses)),
    )
    return tuple(lack for lack, is_there in checks if not is_there)


def _addresses(finding: Finding, objects: ObjectState) -> list[Span]:
    """The addresses of a finding's first ranges or boxes; none for a sparse resource, whose memory may be elsewhere."""
    if finding.resource in objects.sparse.resources:
        return []
    image, buffer = objects.image(finding.resource), objects.buffer(finding.resource)
    if image is not None:
        boxes = finding.boxes[:MOST_PARTS]
        return [s for box in boxes for s in image.region(box.aspect, box.mip, (box.layer,), box.offset, box.extent)]
    start = 0 if buffer is None else buffer.offset
    return [(start + offset, start + offset + size) for offset, size in finding.ranges[:MOST_PARTS]]

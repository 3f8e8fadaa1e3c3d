"""The changes that could order a group of findings, the smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from vkharness.findings import Finding, Hazard, HostStep
from vkharness.mending.edited_barriers import (
    nearly_right,
    with_other_scopes,
    with_transition_scopes,
    with_wider_barrier,
    without_region,
)
from vkharness.mending.event_waits import with_barrier_for_wait, with_wider_event
from vkharness.mending.host_steps import HOST_WRITE, with_host_steps
from vkharness.mending.insertion import with_barriers
from vkharness.mending.needed_masks import crosses_queues
from vkharness.mending.ownership import with_transfer
from vkharness.mending.recordings import EXTERNAL, Recordings
from vkharness.mending.semaphores import (
    open_signals,
    waits_before,
    with_acquire_wait,
    with_another_wait,
    with_present_wait,
    with_semaphore,
    with_wider_wait,
)
from vkharness.mending.split_rendering import with_split_rendering
from vkharness.mending.store_operations import with_no_store
from vkharness.mending.subpass_dependencies import (
    Ends,
    ends_of,
    may_be_by_region,
    with_subpass_barrier,
    with_subpass_dependency,
)
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION, OWNERSHIP_TRANSFER
from vkharness.trace.edits import EditedTrace

Change = Callable[[EditedTrace, Sequence[Finding]], EditedTrace | None]
"""Orders findings in a trace. It is asked again about what is left in the trace that it gave; None where it can do
nothing."""


class Alternative(NamedTuple):
    """One way to order a group of findings."""

    name: str
    change: Change


def alternatives(trace: EditedTrace, findings: Sequence[Finding]) -> Iterator[Alternative]:
    """The ways to try, in order: edits of what is there, then what is added. What is tried follows from the first
    finding; each change is made for all of them."""
    first = findings[0]
    transition = bool({IMAGE_LAYOUT_TRANSITION.name, OWNERSHIP_TRANSFER.name} & {first.access, first.prior_access})
    recordings = Recordings(trace.blocks)
    if isinstance(first.gap, HostStep) or first.hazard is Hazard.UNFLUSHED_WRITE or first.prior_access == HOST_WRITE:
        yield Alternative("host", with_host_steps)
    if first.hazard.is_ownership:
        yield Alternative("transfer", with_transfer)
        return
    yield Alternative("store operation", with_no_store)
    if first.place.command.startswith("vkQueuePresent"):
        yield Alternative("semaphore", with_present_wait)
    if transition:
        yield Alternative("transition", with_transition_scopes)
        yield Alternative("event", with_wider_event)
        yield Alternative("event", with_barrier_for_wait)
    ends = list(dict.fromkeys(ends_of(trace, recordings, first)))
    for number, _ in enumerate(ends):
        yield Alternative("subpass dependency", _SubpassDependency(number, by_region=False, add=False))
    added = partial(_added_subpass_dependencies, len(ends), findings)
    waits = list(waits_before(trace, first))
    once = bool(waits) and transition and len({each.place.submit for each in findings}) > 1
    if once:  # in one render pass, where a wait would have to be wider in each submit
        yield from added()
    for number, _ in enumerate(waits):
        yield Alternative("wait", partial(with_wider_wait, number=number))
    for number, _ in enumerate(nearly_right(trace, recordings, first)):
        yield Alternative("edit", partial(_edit, number=number))
    yield Alternative("edit", with_other_scopes)
    yield Alternative("edit", without_region)
    within = not transition and any(src != dst and EXTERNAL not in (src, dst) for _, src, dst in ends)
    if (transition or within) and not once:
        yield from added()
    yield Alternative("barrier", partial(with_barriers, ranged=True))
    yield Alternative("barrier", partial(with_barriers, ranged=False))
    if not (transition or within):
        yield from added()
    yield Alternative("subpass barrier", with_subpass_barrier)
    yield Alternative("split", with_split_rendering)
    if crosses_queues(first):
        yield Alternative("semaphore", with_acquire_wait)
        for number, _ in enumerate(open_signals(trace, first)):
            yield Alternative("semaphore", partial(with_another_wait, number=number))
        yield Alternative("semaphore", with_semaphore)


def _added_subpass_dependencies(count: int, findings: Sequence[Finding]) -> Iterator[Alternative]:
    for number in range(count):
        if may_be_by_region(findings):
            yield Alternative("subpass dependency", _SubpassDependency(number, by_region=True, add=True))
        yield Alternative("subpass dependency", _SubpassDependency(number, by_region=False, add=True))


class _SubpassDependency:
    """Widens or adds, for each pair of commands, the likely dependency with a number. What is left over then is ordered
    by the same dependency where that can do it: a transition at the end of a render pass belongs to one of them."""

    def __init__(self, number: int, by_region: bool, add: bool) -> None:
        self._number, self._by_region, self._add = number, by_region, add
        self._chosen: set[tuple[int, int, int]] = set()
        """The call that makes the render pass, as in `EditedTrace.origins`, and the two subpasses."""

    def __call__(self, trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
        recordings = Recordings(trace.blocks)
        wanted: dict[Ends, list[Finding]] = {}
        for several in _by_pair(findings):
            options = list(dict.fromkeys(ends_of(trace, recordings, several[0])))
            known = [each for each in options if (trace.origins[each[0]], *each[1:]) in self._chosen]
            ends = next(iter([*known, *options[self._number :]]), None)
            if ends is None:
                return None
            wanted.setdefault(ends, []).extend(several)
        self._chosen.update((trace.origins[position], src, dst) for position, src, dst in wanted)
        made = trace
        for ends, several in wanted.items():
            changed = with_subpass_dependency(made, ends, several, self._by_region, self._add)
            made = made if changed is None else changed
        return made if made is not trace else None


def _edit(trace: EditedTrace, findings: Sequence[Finding], number: int) -> EditedTrace | None:
    """Widens, for each pair of commands, the nearly right dependency with this number."""
    recordings = Recordings(trace.blocks)
    made = trace
    for several in _by_pair(findings):
        place = next(islice(nearly_right(made, recordings, several[0]), number, None), None)
        changed = None if place is None else with_wider_barrier(made, *place, several)
        if changed is None:
            return None
        made = changed
    return made


def _by_pair(findings: Sequence[Finding]) -> list[list[Finding]]:
    found: dict[tuple[int, int], list[Finding]] = {}
    for each in findings:
        found.setdefault((each.prior.call, each.place.call), []).append(each)
    return list(found.values())

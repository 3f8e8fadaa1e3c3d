"""Layout transitions to a layout in which nothing meets the image: there and back, or on to a third one.

Two transitions of the same range are one where no access of the range, no presentation and no access of the host is
between them in any execution. The second one then goes from the layout before the first one, and its first scope holds
both first scopes. Where it has come back to that layout it is a barrier without a transition, which may be less still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vkharness.advising.written import BARRIER, Written
from vkharness.commands.interpret import Interpreter
from vkharness.mending.scope_sites import ScopeSite, barrier_sites
from vkharness.reduction.history import executed
from vkharness.spans import Span
from vkharness.spec.enums import VkImageLayout
from vkharness.spec.names import value_name
from vkharness.trace.barrier_calls import is_barrier
from vkharness.trace.calls import Block, Call
from vkharness.trace.edits import value_at, with_value
from vkharness.trace.effects import (
    Access,
    Acquired,
    Barrier,
    Destroyed,
    Effect,
    PassBegin,
    PassEnd,
    Presented,
    RenderingBegin,
    Submitted,
    SubpassBegin,
    Unmodelled,
    UnmodelledCall,
    WaitEvents,
)
from vkharness.trace.host_effects import HostAccess

_ENDS_ALL = (Acquired, Presented, HostAccess, Destroyed, UnmodelledCall)
"""Stream events outside command buffers that may use an image."""
_Transition = tuple[int, int, tuple[Span, ...]]
"""Its call, the image, and the spans there."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Two barrier structs, each by its call, its dependency and its number among the image barriers there."""

    first: Written
    second: Written
    calls: Mapping[int, tuple[int, int, int]]
    """Each second call to (number of its struct, the first call, the number there)."""


def round_trips(blocks: Iterable[Block], barriers: Iterable[Written]) -> Iterator[RoundTrip]:
    """The pairs of transitions between which nothing is, of dependencies whose calls pair up one by one."""
    held = {block.index: block for block in blocks if isinstance(block, Call)}
    pairs = _Follower(held.values()).pairs()
    by_origin = {origin: each for each in barriers if each.kind == BARRIER for origin in each.origins}
    found: dict[tuple[Written, Written, int, int], dict[int, tuple[int, int, int]]] = {}
    for (one, image, _), other in pairs:
        if one in by_origin and other in by_origin and one != other:
            early, late = _number(held[one], image), _number(held[other], image)
            if early is not None and late is not None:
                found.setdefault((by_origin[one], by_origin[other], early, late), {})[other] = (late, one, early)
    for (first, second, *_), calls in found.items():
        firsts = {each for _, each, _ in calls.values()}
        if len(calls) == len(second.origins) == len(firsts) == len(first.origins):
            yield RoundTrip(first, second, calls)


def _number(call: Call, image: int) -> int | None:
    """Which image barrier of a call is about an image; None where several are."""
    info = call.args.get("pDependencyInfo") or call.args
    found = [at for at, each in enumerate(info["pImageMemoryBarriers"] or ()) if each["image"] == image]
    return found[0] if len(found) == 1 else None


class _Follower:
    """Follows what commands meet, in the order of submission."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._open: dict[int, tuple[int, tuple[Span, ...], int]] = {}
        """Image to the transition that met it last: call, spans, queue."""
        self._after: dict[_Transition, set[int]] = {}
        self._before: dict[_Transition, set[int]] = {}
        interpreter = Interpreter()
        for block in blocks:
            for event in interpreter.step(block):
                if isinstance(event, Submitted):
                    for each in executed([event]):
                        for effect in each.effects:
                            self._follow(each.call, event.queue, effect)
                elif isinstance(event, _ENDS_ALL):
                    self._end_all()
        self._end_all()

    def _end_all(self) -> None:
        for image in list(self._open):
            self._end(image, 0)

    def _end(self, image: int, by: int) -> None:
        if image in self._open:
            call, spans, _ = self._open.pop(image)
            self._after.setdefault((call, image, spans), set()).add(by)

    def _follow(self, call: int, queue: int, effect: Effect) -> None:
        if isinstance(effect, Access):
            self._end(effect.space, 0)
        elif isinstance(effect, PassBegin | RenderingBegin | Unmodelled):  # may name images that they do not access
            self._end_all()
        elif isinstance(effect, SubpassBegin | PassEnd):
            for each in effect.transitions:
                self._end(each.space, 0)
        elif isinstance(effect, Barrier | WaitEvents):
            held = (effect,) if isinstance(effect, Barrier) else effect.barriers
            for barrier in held:
                for met in barrier.ranges:
                    if met.transition:
                        self._meet(call, queue, met.space, met.spans)

    def _meet(self, call: int, queue: int, image: int, spans: tuple[Span, ...]) -> None:
        was = self._open.get(image)
        same = was is not None and was[1:] == (spans, queue)
        self._before.setdefault((call, image, spans), set()).add(was[0] if was is not None and same else 0)
        self._end(image, call if same else 0)
        self._open[image] = (call, spans, queue)

    def pairs(self) -> Iterator[tuple[_Transition, int]]:
        """(call, image, spans) of a transition, and the call of the one that follows it each time and follows no
        other."""
        for key, after in self._after.items():
            [other, *more] = after
            if not more and other and self._before[other, *key[1:]] == {key[0]}:
                yield key, other


def joined(trip: RoundTrip, calls: Mapping[int, Call]) -> dict[int, Call | None] | None:
    """The edits that leave the first transitions out; `calls` are as they are now. None where a struct transfers
    ownership or has a chain, or where the stages of the second call are those of other barriers, too."""
    edits: dict[int, Call | None] = {}
    for second, (late, first, early) in trip.calls.items():
        one, other = calls.get(first), calls.get(second)
        if one is None or other is None or not (is_barrier(one) and is_barrier(other)):
            return None
        source, target = _site(one, early), _site(other, late)
        if source is None or target is None or (not target.second and not _is_alone(other)):
            return None
        edits[first] = _without(one, early)
        edits[second] = replace(other, args=_moved(one.args, source, other.args, target))
    return edits


def told(trip: RoundTrip, calls: Mapping[int, Call]) -> list[str]:
    """Describes the change of the first pair of transitions."""
    second, (late, first, early) = next(iter(trip.calls.items()))
    source, target = _site(calls[first], early), _site(calls[second], late)
    assert source is not None and target is not None and source.part is not None and target.part is not None
    one, other = value_at(calls[first].args, source.part), value_at(calls[second].args, target.part)
    names = [value_name("VkImageLayout", each) for each in (one["oldLayout"], one["newLayout"], other["newLayout"])]
    return [
        f"call {first} makes a transition of the same range from {names[0]} to {names[1]}, and nothing meets it there",
        f"this one could go from {names[0]} to {names[2]}, and the other one be left out",
    ]


def _site(call: Call, number: int) -> ScopeSite | None:
    for site in barrier_sites(call):
        if site.part is not None and site.part[-2:] == ("pImageMemoryBarriers", number):
            struct = value_at(call.args, site.part)
            plain = struct.get("pNext") is None and struct["srcQueueFamilyIndex"] == struct["dstQueueFamilyIndex"]
            return site if plain else None
    return None


def _is_alone(call: Call) -> bool:
    return sum(1 for _ in barrier_sites(call)) == 1


def _moved(one: dict[str, Any], source: ScopeSite, other: dict[str, Any], target: ScopeSite) -> dict[str, Any]:
    """The arguments of a second transition with the layout before the first one, and its first scope too."""
    assert source.part is not None and target.part is not None
    early = source.masks(one)
    more = replace(early, dst_stages=0, dst_accesses=0)
    made = target.with_masks(other, target.joined(other, more))
    struct = value_at(made, target.part)
    discards = struct["oldLayout"] == VkImageLayout.UNDEFINED
    old = struct["oldLayout"] if discards else value_at(one, source.part)["oldLayout"]
    left: dict[str, Any] = with_value(made, target.part, {**struct, "oldLayout": old})
    return left


def _without(call: Call, number: int) -> Call | None:
    """A barrier without one image barrier; None where it has no other."""
    if _is_alone(call):
        return None
    holder = ("pDependencyInfo",) if "pDependencyInfo" in call.args else ()
    info = value_at(call.args, holder)
    several = info["pImageMemoryBarriers"]
    left = [*several[:number], *several[number + 1 :]]
    made = {**info, "pImageMemoryBarriers": left or None, "imageMemoryBarrierCount": len(left)}
    return replace(call, args=with_value(call.args, holder, made))

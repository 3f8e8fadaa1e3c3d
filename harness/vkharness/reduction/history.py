"""The commands of a stream as they were executed, and the layouts in which they met images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from vkharness.spans import Span, SpanMap
from vkharness.spec.enums import VkImageLayout
from vkharness.trace.effects import (
    Access,
    Acquired,
    Barrier,
    Command,
    Effect,
    Execute,
    PassEnd,
    Presented,
    StreamEvent,
    Submitted,
    SubpassBegin,
    WaitEvents,
)

UNDEFINED = VkImageLayout.UNDEFINED


@dataclass(frozen=True, slots=True)
class PastCommand:
    """One execution of one command."""

    call: int
    submit: int
    batch: int
    position: int
    executed_by: tuple[tuple[int, int], ...]
    """The vkCmdExecuteCommands that run it, with the position of its command buffer there."""
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Transitioned:
    """A layout transition as it was executed. `at` is the position of its command among all executed ones."""

    at: int
    image: int
    spans: tuple[Span, ...]
    old: int
    new: int


def executed(events: Iterable[StreamEvent]) -> list[PastCommand]:
    """All executions of commands, in submission order."""
    found: list[PastCommand] = []
    for event in events:
        if isinstance(event, Submitted):
            for batch in event.batches:
                for position, (_, commands) in enumerate(batch.buffers):
                    found += _flat(commands, (event.call, batch.batch, position), ())
    return found


def _flat(
    commands: Iterable[Command], place: tuple[int, int, int], executed_by: tuple[tuple[int, int], ...]
) -> Iterator[PastCommand]:
    for command in commands:
        yield PastCommand(command.call, *place, executed_by, command.effects)
        for effect in command.effects:
            if isinstance(effect, Execute):
                for at, (_, inner) in enumerate(effect.buffers):
                    yield from _flat(inner, place, (*executed_by, (command.call, at)))


def accessed(history: Iterable[PastCommand]) -> frozenset[tuple[int, int]]:
    """Which resources commands access: (call, resource)."""
    return frozenset(
        (each.call, effect.space) for each in history for effect in each.effects if isinstance(effect, Access)
    )


def screens(events: Iterable[StreamEvent]) -> frozenset[int]:
    """The images of swapchains that are acquired."""
    return frozenset(event.image for event in events if isinstance(event, Acquired))


def used_unacquired(events: Iterable[StreamEvent], images: Collection[int]) -> set[int]:
    """Which of these images of swapchains commands access or transition while the presentation engine has them."""
    away, found = set(images), set[int]()
    for event in events if images else ():
        if isinstance(event, Acquired):
            away.discard(event.image)
        elif isinstance(event, Presented):
            away.update(image for _, image in event.images)
        elif isinstance(event, Submitted):
            history = executed([event])
            used = {image for _, image in accessed(history)} | {each.image for each in transitions(history)}
            found |= used & away
    return found & set(images)


def transitions(history: Sequence[PastCommand]) -> Iterator[Transitioned]:
    """The layout transitions of all executed commands, in order."""
    for at, each in enumerate(history):
        for effect in each.effects:
            for image, spans, old, new in _transitions_of(effect):
                yield Transitioned(at, image, spans, old, new)


def _transitions_of(effect: Effect) -> Iterator[tuple[int, tuple[Span, ...], int, int]]:
    barriers: tuple[Barrier, ...] = ()
    if isinstance(effect, Barrier):
        barriers = (effect,)
    elif isinstance(effect, WaitEvents):
        barriers = effect.barriers
    elif isinstance(effect, SubpassBegin | PassEnd):
        for automatic in effect.transitions:
            yield automatic.space, automatic.spans, automatic.old_layout, automatic.new_layout
    for barrier in barriers:
        for each in barrier.ranges:
            if each.transition:
                yield each.space, each.spans, each.old_layout, each.new_layout


Met = dict[tuple[int, int], set[int]]
"""(call, image) to the VkImageLayouts in which the call met parts of the image."""


def layouts_met(history: Iterable[PastCommand], calls: set[int] | None = None) -> Met:
    """In which layouts commands found the images that they access or transition; `calls` limits whose are noted."""
    now: dict[int, SpanMap[int]] = defaultdict(SpanMap)
    met: Met = defaultdict(set)
    for each in history:
        for effect in each.effects:
            changed = list(_transitions_of(effect))
            if calls is None or each.call in calls:
                for image, spans, old, _ in changed:
                    if old != UNDEFINED:
                        met[each.call, image] |= _found(now.get(image), spans)
                if isinstance(effect, Access):
                    met[each.call, effect.space] |= _found(now.get(effect.space), effect.spans)
            for image, spans, _, new in changed:
                for begin, end in spans:
                    now[image].assign(begin, end, new)
    return met


def _found(held: SpanMap[int] | None, spans: tuple[Span, ...]) -> set[int]:
    """The layouts of some addresses. What was never transitioned counts as UNDEFINED."""
    if held is None:
        return {UNDEFINED}
    found: set[int] = set()
    for begin, end in spans:
        pieces = held.pieces(begin, end)
        found.update(value for _, _, value in pieces)
        if sum(stop - start for start, stop, _ in pieces) < end - begin:
            found.add(UNDEFINED)
    return found


def needed_transitions(history: Sequence[PastCommand], users: Iterable[int]) -> list[PastCommand]:
    """The shortest chains of transitions that bring images into the layouts in which these commands first met them.

    `users` are calls. A transition from UNDEFINED begins a chain.
    """
    wanted = set(users)
    last = {each.call: at for at, each in enumerate(history) if each.call in wanted}
    every = list(transitions(history))
    found: dict[int, None] = {}
    for at in last.values():
        for effect in history[at].effects:
            if isinstance(effect, Access):
                for begin, end in effect.spans:
                    found.update(dict.fromkeys(_chain(every, at, effect.space, begin, end)))
    return [history[at] for at in sorted(found) if history[at].call not in wanted]


def _chain(every: Sequence[Transitioned], before: int, image: int, begin: int, end: int) -> Iterator[int]:
    """Where the transitions stand that lead to the layout of one range before an execution."""
    mine = [
        each
        for each in every
        if each.image == image and each.at < before and any(low < end and begin < high for low, high in each.spans)
    ]
    while mine:
        layout = mine[-1].new
        reaching = [at for at, each in enumerate(mine) if each.new == layout]
        best = next((at for at in reversed(reaching) if mine[at].old == UNDEFINED), reaching[-1])
        yield mine[best].at
        if mine[best].old == UNDEFINED:
            return
        wanted = mine[best].old
        mine = list(mine[:best])
        while mine and mine[-1].new != wanted:
            mine.pop()

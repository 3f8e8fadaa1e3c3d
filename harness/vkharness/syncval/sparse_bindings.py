"""Memory bindings of sparse resources: accesses go through them, and vkQueueBindSparse changes them.

The uses of a resource's bindings are kept in an address space of their own (`space_of`), as reads: what a barrier or a
semaphore orders is an execution dependency, since a binding operation accesses no memory. A change that every earlier
use is ordered before replaces these. Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from vkharness.findings import Finding, Hazard, Place
from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.context import Context
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.evidence import Describe
from vkharness.syncval.queue import Batch
from vkharness.syncval.state import NO_ORDERING, Read, State, intern
from vkharness.trace.sparse_effects import BindingUse

CHANGE = -1
"""Stands for the kind of access of a change."""
ANY_STAGE = (1 << 60) - 1
"""A binding operation is in the scope of every signal of its batch."""
Race = tuple[Span, int, Place]
"""Addresses, and the kind of access and place of the use with which another one is in no order."""


def space_of(resource: int) -> int:
    """The address space for the bindings of a resource."""
    return -resource


class SparseBindings:
    """The bindings of all sparse resources of a device, over its context."""

    def __init__(self, context: Context, describe: Describe, given_to: Callable[[int], int]) -> None:
        """`given_to` tells the queue of the program to which the queue of a batch of binds belongs."""
        self._context, self._describe, self._given_to = context, describe, given_to

    def use(self, use: BindingUse, number: int) -> Iterator[Finding]:
        """A command, by its place number, accesses memory through bindings. What changed them must come before its
        stage.

        Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
        """
        races = self._add(use.resource, use.spans, use.access_kind, number)
        if races:
            place = self._context.places.place(number)
            yield from self._findings(use.resource, races, ACCESS_KINDS[use.access_kind].name, place)

    def change(self, batch: Batch) -> Iterator[Finding]:
        """The binding operations of one batch of vkQueueBindSparse.

        Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
        """
        submit, number = batch.tag
        place = Place(submit, batch.submit.name, batch.submit.site, None, submit, number, 0, batch.submit.queue)
        made = self._context.places.single(place)
        for bind in batch.submission.binds or ():
            races = self._add(bind.resource, bind.spans, CHANGE, made)
            yield from self._findings(bind.resource, races, "", self._shown(place))

    def _shown(self, place: Place) -> Place:
        return replace(place, queue=self._given_to(place.queue or 0))

    def _add(self, resource: int, spans: tuple[Span, ...], kind: int, place: int) -> list[Race]:
        context, space = self._context, space_of(resource)
        races: list[Race] = []

        def added(begin: int, end: int, entry: RangeEntry) -> RangeEntry:
            state, _, places = entry
            late = unordered(state, kind, context.viewer)
            races.extend(((begin, end), state.reads[at].access_kind, context.places.place(places[at])) for at in late)
            after, kept = after_use(state, kind, context.queue, context.viewer, late)
            return RangeEntry(after, None, (*(places[at] for at in kept), place))

        if context.journal.on:
            context.journal.add(context.queue, context.places.batch(place).tag, space, spans)
        for span in spans:
            context.update(space, span, added)
        return races

    def _findings(self, resource: int, races: list[Race], access: str, place: Place) -> Iterator[Finding]:
        pairs: dict[tuple[int, Place], list[Span]] = {}
        for span, kind, prior in races:
            pairs.setdefault((kind, prior), []).append(span)
        for (kind, prior), spans in pairs.items():
            seen = self._describe(space_of(resource), spans)
            name = "" if kind == CHANGE else ACCESS_KINDS[kind].name
            prior = self._shown(prior)
            yield Finding(
                Hazard.SPARSE_BINDING_RACE, access, name, place, prior, resource, seen.type, seen.ranges, seen.boxes
            )


def unordered(state: State, kind: int, viewer: int) -> tuple[int, ...]:
    """The positions of the uses that must come before another one, and do not."""
    orderings = state.view(viewer).reads
    if kind == CHANGE:  # all of its batch comes after a wait, in whatever stages
        return tuple(at for at, each in enumerate(orderings) if not each.barriers)
    stage = ACCESS_KINDS[kind].stage
    return tuple(
        at
        for at, (use, each) in enumerate(zip(state.reads, orderings, strict=True))
        if use.access_kind == CHANGE and not each.barriers & stage
    )


def after_use(state: State, kind: int, queue: int, viewer: int, late: tuple[int, ...]) -> tuple[State, tuple[int, ...]]:
    """The state with one more use, at the end; and the positions of those that stay.

    A change replaces what is ordered before it. A later access of a stage of a viewer stands for the earlier one: what
    is ordered behind it is ordered behind both.
    """
    made = Read(kind, ANY_STAGE if kind == CHANGE else ACCESS_KINDS[kind].stage, queue, viewer)
    if kind == CHANGE:
        kept = late
    else:
        kept = tuple(
            at
            for at, each in enumerate(state.reads)
            if each.access_kind == CHANGE or (each.stage, each.viewer) != (made.stage, viewer)
        )
    views = (view._replace(reads=(*(view.reads[at] for at in kept), NO_ORDERING)) for view in state.views)
    return intern(None, (*(state.reads[at] for at in kept), made), views), kept

"""Acceleration structures that were built, by the memory that they are in, and the structures to which each leads.

A top level structure leads to the bottom level structures that its instances name. Who uses it reads these, too.
Specification: "Top Level Acceleration Structures"; rules.md#a-top-level-build-reads-the-structures-of-its-instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vkharness.spans import Span

MOST_NAMED = 4096
"""The most structures that instances may name of which nothing is known."""


class StructurePlace(NamedTuple):
    """The memory of an acceleration structure: addresses of a space, and the buffer."""

    space: int
    span: Span
    resource: int


class Leads(NamedTuple):
    """The bottom level structures to which a structure leads."""

    places: frozenset[StructurePlace] = frozenset()
    any: bool = False
    """Whether it may lead to all others that are built, since its instances are not known."""


class Built(NamedTuple):
    """A structure that was built. `bottom` says whether instances may name it."""

    bottom: bool
    leads: Leads


NOWHERE = Leads()
ANYWHERE = Leads(any=True)
UNKNOWN = Built(True, ANYWHERE)


class BuiltStructures:
    """The structures that were built, in the order of submission."""

    def __init__(self) -> None:
        self.addresses: dict[int, StructurePlace] = {}
        """By their device addresses, as the program asked for them."""
        self._built: dict[tuple[int, Span], tuple[StructurePlace, Built]] = {}

    def build(self, place: StructurePlace, built: Built) -> None:
        """A structure was built, anew or for the first time."""
        self._built[place.space, place.span] = place, built

    def copy(self, source: StructurePlace, target: StructurePlace) -> None:
        """A structure became what another one is."""
        held = self._built.get((source.space, source.span))
        self.build(target, UNKNOWN if held is None else held[1])

    def destroy(self, place: StructurePlace) -> None:
        """A structure is gone, or a new one is there in its place. It has neither address nor contents."""
        self._built.pop((place.space, place.span), None)
        for address in [each for each, held in self.addresses.items() if held == place]:
            del self.addresses[address]

    def forget(self) -> None:
        """Instances may have been any."""
        for key, (place, built) in self._built.items():
            if built.leads.places or not built.bottom:
                self._built[key] = place, Built(built.bottom, ANYWHERE)

    def all_behind(self, space: int, span: Span) -> Iterator[StructurePlace]:
        """The structures to which the one in some memory may lead; none if none was built there."""
        held = self._built.get((space, span))
        if held is not None:
            yield from held[1].leads.places
            if held[1].leads.any:
                yield from self.nameable()

    def nameable(self) -> Iterator[StructurePlace]:
        """Those that instances of which nothing is known may name: that are built, and whose address was asked for."""
        for place in dict.fromkeys(self.addresses.values()):
            held = self._built.get((place.space, place.span))
            if held is not None and held[1].bottom:
                yield place


class StructuresBuilt(NamedTuple):
    """A step: structures are built that name no others, or that may name any."""

    several: tuple[tuple[StructurePlace, Built], ...]

    def apply_to(self, structures: BuiltStructures) -> None:
        """Makes the change."""
        for place, built in self.several:
            structures.build(place, built)


class StructureCopied(NamedTuple):
    """A step: a structure becomes what another one is."""

    source: StructurePlace
    target: StructurePlace

    def apply_to(self, structures: BuiltStructures) -> None:
        """Makes the change."""
        structures.copy(self.source, self.target)

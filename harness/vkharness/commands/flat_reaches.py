"""Flat plans of commands that make accesses of known memories: the native core keeps where these lie, and no effects.

What such a command does is the same wherever its memories lie. A `FlatReach` of the native core is that, and a plan has
the resource, the space and the begin of each memory beside it (harness/vkharness/native/flat_plans.hpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache, partial
from typing import Any

from vkharness.commands.contents.content_steps import NOTHING, Overwritten, overwritten
from vkharness.findings import Certainty
from vkharness.native import core
from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.trace.effects import Access, Barrier, Effect, joined_ranges, moved_to
from vkharness.trace.resources import Buffer

MOST_FLAT = 16
"""Accesses of a command that may have a flat plan (`FlatReach::MOST` of the native core)."""
MOST_REACHES = 1 << 10
"""The most kinds of such commands that are remembered."""
INPUT_READS = {
    ACCESS_KIND[f"SYNC_{name}"].index for name in (
        "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ", "INDEX_INPUT_INDEX_READ", "DRAW_INDIRECT_INDIRECT_COMMAND_READ",
    )
}  # fmt: skip
"""The kinds of access of which all that there is to say is what is read, and how sure that is."""
NOTHING_MADE: dict[int, Any] = {}
FixedPlace = tuple[int, int, int]
"""Memory that lies in one place: its resource, its space, and the first address."""


class Writes(IntEnum):
    """`FlatReach::Writes` of the native core."""

    NOTHING = 0
    MEMORY = 1
    IMAGE = 2
    ORDERS = 3
    """It is no access, but a range of the barrier that the command is."""


FlatPart = tuple[Access | Barrier, int, Writes, tuple[Span, ...]]
"""An access, or a barrier of one range; the number of its memory, what it writes, and bytes from the begin of that."""


def fixed_parts(effects: Sequence[Effect], places: list[Any]) -> list[FlatPart]:
    """Accesses of memory that lies in one place. That of each resource is one more of the places."""
    begins: dict[tuple[int, int], int] = {}
    for effect in effects:
        assert isinstance(effect, Access)
        known = begins.get((effect.resource, effect.space), effect.spans[0][0])
        begins[effect.resource, effect.space] = min(known, effect.spans[0][0])
    first, numbers = len(places), list(begins)
    places += [(*where, begin) for where, begin in begins.items()]
    parts: list[FlatPart] = []
    for effect in effects:
        assert isinstance(effect, Access)
        where = effect.resource, effect.space
        bytes = tuple([(low - begins[where], high - begins[where]) for low, high in effect.spans])
        # Python says of an image where it lies, also where it is read.
        writes = Writes.IMAGE if effect.resource == effect.space else written_by(effect)
        parts.append((replace(effect, space=0, spans=(), resource=0), first + numbers.index(where), writes, bytes))
    return parts


def written_by(access: Access) -> Writes:
    """The writes of an access, if it is of a buffer."""
    return Writes.MEMORY if access.atomic or ACCESS_KINDS[access.access_kind].write else Writes.NOTHING


@lru_cache(MOST_REACHES)
def flat_reach(memories: int, *parts: FlatPart) -> Any:
    """The `FlatReach` of such accesses: one object for equal ones. None of a hostile trace, with bytes behind all
    addresses."""
    assert core is not None
    try:
        return core.FlatReach(partial(_unfolded, parts), memories, parts)
    except ValueError:
        return None


def moved_plan(
    parts: Sequence[FlatPart],
    words: tuple[tuple[int, ...], ...],
    numbers: tuple[tuple[int, int, int], ...],
    terms: tuple[tuple[int, int, int, int], ...],
    limits: tuple[tuple[int, int], ...],
    opened: tuple[Any, ...] = (),
    places: tuple[tuple[int, int, int], ...] = (),
    by_id: dict[int, Any] = NOTHING_MADE,
) -> Any:
    """The `MovedPlan` of a command that makes these accesses, and says these `numbers`; None where that has no flat
    plan. `words` has of each memory the resource, the space, where it begins, and how much longer the last range is
    than the parts say. Of a number it knows what the command said, and the least and greatest with which others do the
    same elsewhere. A term is a memory, a number, and by how many bytes 1 more of it moves the begin, and the end, of
    what is accessed there, which never lies behind the limit of the memory. The last numbers are those that the state
    leaves open of what is `opened` (`OpenNumbers`). `places` has memories that are buffers of which a number is the id,
    found `by_id`, with these numbers, and where the buffers begin that the command said."""
    reach = None if len(parts) > MOST_FLAT else flat_reach(len(words), *parts)
    if reach is None or core is None:
        return None
    try:
        moved = core.MovedPlan(reach, words, numbers, terms, limits, opened, by_id, Buffer, places)
    except ValueError:
        return None
    return None if moved.plan(tuple([each[0] for each in numbers])) is None else moved


def behind_accesses(accesses: Sequence[Effect], plan: Any) -> Any:
    """The flat plan of a command that makes these accesses of one range each before it does what a flat plan says; None
    where there is none."""
    parts = plan.parts
    if parts is None:
        return None
    kinds, words = [], list[int]()
    for each in accesses:
        if type(each) is not Access or len(each.spans) != 1 or each.access_kind not in INPUT_READS:
            return None
        ((begin, end),) = each.spans
        kinds.append((each.access_kind, each.certainty))
        words += (each.resource, each.space, begin, end - begin - 1)
    reach = reach_behind(tuple(kinds), parts)
    return None if reach is None else plan.behind(reach, tuple(words))


@lru_cache(MOST_REACHES)
def reach_behind(kinds: tuple[tuple[int, Certainty], ...], parts: tuple[FlatPart, ...]) -> Any:
    """The `FlatReach` of a command that makes accesses of one range each before these; None where there is none."""
    made: list[FlatPart] = [
        (Access(kind, 0, (), 0, certainty=sure), at, Writes.NOTHING, ((0, 1),)) for at, (kind, sure) in enumerate(kinds)
    ]
    made += [(access, len(kinds) + memory, writes, bytes) for access, memory, writes, bytes in parts]
    memories = 1 + max(memory for _, memory, _, _ in made)
    return flat_reach(memories, *made) if len(made) <= MOST_FLAT else None


def _unfolded(parts: tuple[FlatPart, ...], numbers: tuple[int, ...]) -> tuple[tuple[Effect, ...], Overwritten]:
    """Expands a flat plan: `numbers` has the resource, the space and the first address of each memory, and how much
    longer the last range of each of its accesses is. Returns the effects, and their changes of contents."""
    made = []
    for effect, memory, _, bytes in parts:
        resource, space, begin, more = numbers[4 * memory : 4 * memory + 4]
        spans = tuple([(begin + low, begin + high) for low, high in (*bytes[:-1], (bytes[-1][0], bytes[-1][1] + more))])
        made.append(moved_to(effect, space, spans, resource))
    effects = joined_ranges(made)
    return effects, overwritten(effects) or NOTHING

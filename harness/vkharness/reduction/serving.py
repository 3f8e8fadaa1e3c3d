"""The objects that the work of a stream needs, and the calls that make them and say more about them.

A call that is no work is a row of *statements*: each element of an array of structs is one, as is a whole call without
such an array. A statement is about the first object that it names. It stays when something needs that object, and then
the other objects that it names are needed, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vkharness.commands.handlers import CALLS
from vkharness.reduction.fewer_objects import narrowed
from vkharness.reduction.paths import Path, without_elements
from vkharness.reduction.structure import Structure, is_work
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec._generated import STRUCTS
from vkharness.spec.command_classes import is_debug, is_recorded
from vkharness.spec.shapes import signature
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.references import references, references_in
from vkharness.trace.templates import plain

_ABOVE = frozenset({"VkInstance", "VkPhysicalDevice", "VkDevice"})
_OWN_OF_BARRIERS = frozenset({"VkCommandBuffer", "VkEvent"})
"""Types of objects that a synchronization command needs itself. The resources of its barriers serve others."""


@dataclass(frozen=True, slots=True)
class _Statement:
    path: Path
    subject: int
    names: tuple[int, ...]


def serving(structure: Structure, edited: Mapping[int, Block], objects: frozenset[int]) -> list[Block]:
    """The work among these blocks, and what it needs. `objects` are needed in any case."""
    statements: dict[int, list[_Statement]] = {}
    makes: dict[int, list[int]] = {}
    needed_by_work = set(objects)
    for index, block in edited.items():
        if is_work(block):
            needed_by_work.update(_needs_of_work(block))
        elif made := [each.id for each in structure.references[index] if each.made]:
            makes[index] = [each for each in made if structure.maker[each] == index]
        elif not _ends_something(block):
            statements[index] = list(_statements(structure, block))
    needed = _closure(structure, needed_by_work, edited, statements)
    kept = []
    for index, block in edited.items():
        if is_work(block):
            left = _without_barriers(block, needed) if _is_barrier(block) else block
        elif index in makes:
            left = narrowed(block, needed) if needed.intersection(makes[index]) else None
        elif index in statements:
            left = _stating(block, statements[index], needed)
        else:
            left = block if all(each.id in needed for each in structure.references[index]) else None
        kept += [] if left is None else [left]
    return kept


def _needs_of_work(block: Block) -> Iterator[int]:
    assert isinstance(block, Call)
    barrier = _is_barrier(block)
    return (each.id for each in references(block) if not barrier or each.type in _OWN_OF_BARRIERS)


def _is_barrier(block: Block) -> bool:
    return isinstance(block, Call) and is_recorded(block.name) and kind_of(block.name) is StepKind.SYNC


def _ends_something(block: Block) -> bool:
    return isinstance(block, Call) and block.name.startswith(("vkDestroy", "vkFree"))


def _statements(structure: Structure, block: Block) -> Iterator[_Statement]:
    """Yields the objects that a call is about that creates nothing. A query without news for the judges has none."""
    if isinstance(block, HostWrite | HostRead):
        yield _Statement((block.index,), block.memory, ())
    elif is_debug(block.name):
        yield _Statement((block.index,), int((block.args.get("pNameInfo") or {}).get("objectHandle", 0)), ())
    elif block.name in CALLS or not block.name.startswith(("vkGet", "vkEnumerate")):
        listed = signature(block.name)
        rows = [row for row in (listed.params if listed else ()) if row.type in STRUCTS and row.const]
        several = [row for row in rows if isinstance(block.args.get(row.name), list)]
        for row in several:
            for at, each in enumerate(block.args[row.name]):
                names = tuple(reference.id for reference in references_in(row.type, each))
                subject = each.get("dstSet") or (names[0] if names else 0)
                yield _Statement((block.index, row.name, at), subject, names)
        if not several:
            names = tuple(each.id for each in references(plain(block)))
            below = [each.id for each in structure.references[block.index] if each.type not in _ABOVE]
            yield _Statement((block.index,), (below or list(names[-1:]) or [0])[0], names)


def _closure(
    structure: Structure,
    wanted: Iterable[int],
    edited: Mapping[int, Block],
    statements: Mapping[int, Iterable[_Statement]],
) -> set[int]:
    """The wanted objects with all that they are made of, and all that the statements about them name."""
    about: dict[int, list[int]] = defaultdict(list)
    for several in statements.values():
        for statement in several:
            about[statement.subject] += statement.names
    needed: set[int] = set()
    left = list(wanted)
    while left:
        identity = left.pop()
        if identity in needed:
            continue
        needed.add(identity)
        left += about[identity]
        maker = structure.maker.get(identity)
        if maker in edited and maker is not None:
            left += [each.id for each in structure.references[maker] if not each.made]
    return needed


def _stating(block: Block, statements: list[_Statement], needed: set[int]) -> Block | None:
    """The block with the statements about objects that are needed; None if there is none."""
    dropped = [each.path for each in statements if each.subject not in needed]
    if len(dropped) == len(statements):
        return None
    return without_elements(block, dropped) if isinstance(block, Call) else block


def _without_barriers(block: Block, needed: set[int]) -> Call | None:
    """A synchronization command without the barriers of resources that nothing needs; None if it had no others."""
    assert isinstance(block, Call)
    found = list(_barriers(block))
    dropped = [path for path, resource in found if resource not in needed]
    if not dropped:
        return block
    left = without_elements(block, dropped)
    emptied = len(dropped) == len(found) and not (left.args.get("pDependencyInfo") or left.args).get("pMemoryBarriers")
    return None if emptied and "Event" not in block.name else left


def _barriers(call: Call) -> Iterator[tuple[Path, int]]:
    """The places of buffer and image barriers of a command, with their resources."""
    holders: list[tuple[Path, Mapping[str, object]]] = [((call.index,), call.args)]
    if isinstance(info := call.args.get("pDependencyInfo"), dict):
        holders.append(((call.index, "pDependencyInfo"), info))
    for at, each in enumerate(call.args.get("pDependencyInfos") or ()):
        holders.append(((call.index, "pDependencyInfos", at), each))
    for path, holder in holders:
        for array in ("pBufferMemoryBarriers", "pImageMemoryBarriers"):
            held = holder.get(array)
            for at, barrier in enumerate(held if isinstance(held, list) else ()):
                yield (*path, array, at), barrier.get("buffer") or barrier.get("image")

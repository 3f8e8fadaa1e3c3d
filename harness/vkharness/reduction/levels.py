"""Pieces of a stream that may be left out, from the coarse to the fine. A piece is a set of paths that go together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vkharness.reduction.paths import DESCRIPTORS, Path
from vkharness.reduction.structure import Structure, command_buffers, is_work, semaphore_operations
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec.command_classes import ACQUIRES, PRESENT, QUEUE_WORK, is_recorded, nesting
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

Piece = frozenset[Path]

ARRAYS = (
    "pRegions",
    "pMemoryBarriers",
    "pBufferMemoryBarriers",
    "pImageMemoryBarriers",
    "pRanges",
    "pRects",
    "pEvents",
    "pCommandBuffers",
)
"""Arrays of commands of which an element can be left out, because its position has no meaning."""


_STAY = ("vkCmdNextSubpass", "vkCmdResetQueryPool")
"""Commands that go with others: with their render pass instance, with the last use of their query pool."""


def frames(structure: Structure) -> list[Piece]:
    """All work up to a present, present by present."""
    found: list[Piece] = []
    paths: list[Path] = []
    for index in structure.order:
        block = structure.blocks[index]
        if is_work(block):
            paths.append((index,))
        if isinstance(block, Call) and main_name(block.name) == PRESENT:
            found.append(frozenset(paths))
            paths = []
    return [*found, frozenset(paths)] if found and paths else found


def submits(structure: Structure) -> list[Piece]:
    """Each submit, wait, poll and signal of the host; each acquire of an image with its present; each batch."""
    found: list[Piece] = []
    for index in structure.order:
        block = structure.blocks[index]
        if not isinstance(block, Call) or not is_work(block) or _in_a_recording(block):
            continue
        name = main_name(block.name)
        if name in ACQUIRES:
            present = structure.presented.get(index)
            found.append(frozenset([(index,), *([present] if present else [])]))
        elif name not in (PRESENT, "vkResetFences"):
            found.append(frozenset([(index,)]))
        if name in QUEUE_WORK:
            batches = block.args.get("pSubmits") or ()
            found += [frozenset([(index, "pSubmits", at)]) for at in range(len(batches)) if len(batches) > 1]
    return found


def recordings(structure: Structure) -> list[Piece]:
    """Each recording of a command buffer, and each execution of one."""
    found: list[Piece] = [frozenset([(begin,)]) for begin in structure.recordings]
    return found + [frozenset([path]) for path in structure.executed]


def commands(structure: Structure) -> list[Piece]:
    """Each render pass instance, then each command. State follows the actions that see it."""
    found: list[Piece] = []
    single: list[Piece] = []
    for recording in structure.recordings.values():
        passes = structure.passes(recording)
        found += [frozenset([(begin,)]) for begin in passes]
        pairs = {begin: end for begin, end in recording.closes.items() if begin not in passes}
        single += [frozenset([(begin,), (end,)]) for begin, end in pairs.items()]
        closed = {*recording.closes, *recording.closes.values()}
        for index in recording.commands:
            name = structure.call(index).name
            plain = kind_of(name) is not StepKind.STATE and not nesting(name) and not name.startswith(_STAY)
            if index not in closed and plain:
                single.append(frozenset([(index,)]))
    return found + single


def elements(structure: Structure) -> list[Piece]:
    """Each region, barrier or rectangle of commands that have several; each operation on a semaphore; each fence."""
    found: list[Piece] = []
    for index in structure.order:
        block = structure.blocks[index]
        if not isinstance(block, Call):
            continue
        if is_recorded(block.name):
            found += _elements(block)
        elif main_name(block.name) in QUEUE_WORK:
            waits, signals = semaphore_operations(block)
            found += [frozenset([path]) for path, _, _ in (*waits, *signals)]
            several = list(command_buffers(block))
            found += [frozenset([path]) for path, _ in several if len(several) > 1]
            found += [frozenset([(index, "fence")])] if block.args["fence"] else []
    return found


def _elements(call: Call) -> Iterator[Piece]:
    if "Event" in call.name and "pDependencyInfo" in "".join(call.args):
        return  # what a set and its waits say must stay the same: `dependencies_of_events`
    for path, holder in holders(call):
        for array in ARRAYS:
            held = holder.get(array)
            if isinstance(held, list) and (len(held) > 1 or "Barriers" in array):
                yield from (frozenset([(*path, array, at)]) for at in range(len(held)))


def holders(call: Call) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """The arguments of a command and the structs right below them, with their paths."""
    yield (call.index,), call.args
    for name, value in call.args.items():
        if isinstance(value, dict):
            yield (call.index, name), value
        elif name == "pDependencyInfos":
            for at, each in enumerate(value or ()):
                yield (call.index, name, at), each


def descriptors(structure: Structure) -> list[Piece]:
    """Each write and copy of descriptors. What a shader uses is left out in no stream that is taken."""
    return [
        frozenset([(index, array, at)])
        for index, block in structure.blocks.items()
        if isinstance(block, Call) and block.name == "vkUpdateDescriptorSets"
        for array in DESCRIPTORS
        for at in range(len(block.args[array] or ()))
    ]


def dependencies_of_events(structure: Structure) -> list[Piece]:
    """Each barrier of an event's dependency, in the sets and the waits together."""
    found: dict[tuple[int, str, int], set[Path]] = defaultdict(set)
    for index in structure.order:
        block = structure.blocks[index]
        if not isinstance(block, Call) or "Event" not in block.name:
            continue
        places: list[tuple[int, Path, Mapping[str, Any]]]
        if isinstance(info := block.args.get("pDependencyInfo"), dict):
            places = [(block.args["event"], (index, "pDependencyInfo"), info)]
        else:
            infos = block.args.get("pDependencyInfos") or ()
            events = zip(block.args.get("pEvents") or (), infos, strict=False)
            places = [(each, (index, "pDependencyInfos", at), info) for at, (each, info) in enumerate(events)]
        for event, path, info in places:
            for array in ARRAYS:
                for at in range(len(info.get(array) or ())):
                    found[event, array, at].add((*path, array, at))
    return [frozenset(paths) for paths in found.values()]


def host(structure: Structure) -> list[Piece]:
    """Writes and reads of the host, and calls that end or name something."""
    ending = ("vkDestroy", "vkFree", "vkUnmapMemory", "vkResetCommand", "vkFlush", "vkInvalidate")
    return [
        frozenset([(index,)])
        for index in structure.order
        if not isinstance(block := structure.blocks[index], Call)
        or (block.name.startswith(ending) and not is_work(block))
    ]


def mapping(structure: Structure) -> list[Piece]:
    """Maps of memory that the host neither writes nor reads."""
    touched = {block.memory for block in structure.blocks.values() if not isinstance(block, Call)}
    return [
        frozenset([(index,)])
        for index, block in structure.blocks.items()
        if isinstance(block, Call) and block.name.startswith("vkMapMemory") and block.args.get("memory") not in touched
    ]


def _in_a_recording(block: Block) -> bool:
    return isinstance(block, Call) and (
        is_recorded(block.name) or block.name in ("vkBeginCommandBuffer", "vkEndCommandBuffer")
    )


LEVELS: tuple[tuple[str, Callable[[Structure], list[Piece]]], ...] = (
    ("frames", frames),
    ("submits", submits),
    ("command buffers", recordings),
    ("commands", commands),
    ("regions and barriers", elements),
    ("dependencies of events", dependencies_of_events),
    ("descriptors", descriptors),
    ("calls of the host", host),
    ("mapped memory", mapping),
)
"""Levels of pieces, in the order in which they are tried until a whole round leaves out nothing."""


def left_out(pieces: Sequence[Piece], holds: Callable[[Piece], bool]) -> Piece:
    """As many pieces as can be left out together: many at once first, then fewer. `holds` says whether they can."""
    left, dropped = [*pieces], Piece()
    size = len(left)
    while size:
        at = 0
        while at < len(left):
            tried = dropped.union(*left[at : at + size])
            if holds(tried):
                dropped = tried
                del left[at : at + size]
            else:
                at += size
        size //= 2
    return dropped

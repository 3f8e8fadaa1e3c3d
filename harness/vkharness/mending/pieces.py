"""The pieces of a mend: what was added to a trace, piece by piece, and the trace without one of them.

A piece is an inserted barrier, one of its structs, an added subpass dependency, a bit of a mask, or an end of a range.
Of a call that was edited only what was added is a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.mending.needed_masks import supported
from vkharness.mending.scope_sites import Path, barrier_sites
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.scopes import bits
from vkharness.trace.barrier_calls import LISTS, BarrierCommand, is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit, EditedTrace, value_at, with_value

STAGES = ("srcStageMask", "dstStageMask", "stageMask")
ACCESSES = {"srcStageMask": "srcAccessMask", "dstStageMask": "dstAccessMask"}
WAITS = "pWaitDstStageMask"


class Piece(NamedTuple):
    """One piece, by what it is in words, and the call that has it without it."""

    origin: int
    """The call that has it, as in `EditedTrace.origins`."""
    what: str
    """The same for the same piece of a call, whatever else was dropped from it: a member and its bit."""
    left: Call | None
    """The call without it; None where the piece is the whole call."""

    def without(self, trace: EditedTrace) -> EditedTrace:
        """The trace without it."""
        return trace.with_calls({self.origin: self.left})


def pieces(trace: EditedTrace) -> Iterator[Piece]:
    """All pieces of a trace: whole barriers, then their structs, then bits, then ends of ranges."""
    edits = list(trace.edits())
    for made in _MAKERS:
        for edit in edits:
            yield from _made(trace, edit, made)


def pieces_of(trace: EditedTrace, edit: Edit) -> Iterator[Piece]:
    """All pieces of one call, in the same order as for every call that was changed alike."""
    for made in _MAKERS:
        yield from _made(trace, edit, made)


def _made(trace: EditedTrace, edit: Edit, made: _Maker) -> Iterator[Piece]:
    for what, args in made(edit):
        if args != edit.after.args:
            left = None if args is None else replace(edit.after, args=args)
            yield Piece(trace.origins[edit.position], what, left)


def _calls(edit: Edit) -> Iterator[tuple[str, dict[str, Any] | None]]:
    if edit.before is None and is_barrier(edit.after):
        yield "the barrier", None


def _structs(edit: Edit) -> Iterator[tuple[str, dict[str, Any]]]:
    """One struct of an inserted barrier, or one added subpass dependency."""
    if edit.before is None and is_barrier(edit.after):
        command = BarrierCommand.of(edit.after)
        for at, entry in enumerate(command.entries):
            if len(command.entries) > 1:
                rest = replace(command, entries=(*command.entries[:at], *command.entries[at + 1 :]))
                yield (f"struct {entry}", rest.call(edit.after.name).args)
    elif edit.before is not None and edit.after.name.startswith("vkCreateRenderPass"):
        info = edit.after.args["pCreateInfo"]
        several = info["pDependencies"] or []
        for at in range(edit.before.args["pCreateInfo"]["dependencyCount"], len(several)):
            left = [*several[:at], *several[at + 1 :]]
            rest_info = {**info, "pDependencies": left or None, "dependencyCount": len(left)}
            yield f"dependency {several[at]}", {**edit.after.args, "pCreateInfo": rest_info}


def _bits(edit: Edit) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in masks_in(edit.after.args, ()):
        new, old = value_at(edit.after.args, path), _old(edit.before, path)
        for bit in bits(new & ~old):
            left = new & ~bit or old
            if left != new:
                yield f"{path} {bit:#x}", with_supported(with_value(edit.after.args, path, left), path)


def masks_in(value: Any, path: Path) -> Iterator[Path]:
    """The paths of all masks of stages and accesses, of accesses first."""
    if isinstance(value, list):
        for at, each in enumerate(value):
            yield from masks_in(each, (*path, at))
    elif isinstance(value, dict):
        for name in (*ACCESSES.values(), *STAGES):
            if isinstance(value.get(name), int):
                yield (*path, name)
        for at, _ in enumerate(value.get(WAITS) or ()):
            yield (*path, WAITS, at)
        for name, each in value.items():
            if name == "pNext" and isinstance(each, dict) and "srcStageMask" not in each:
                yield from masks_in({name: each.get(name)}, (*path, name))  # behind what is no dependency
            elif name != WAITS and isinstance(each, dict | list):
                yield from masks_in(each, (*path, name))


def _old(before: Call | None, path: Path) -> int:
    """The mask before the edit; 0 where there was none."""
    try:
        value = value_at(before.args, path) if before is not None else 0
    except (KeyError, IndexError, TypeError):
        return 0
    return value if isinstance(value, int) else 0


def with_supported(args: dict[str, Any], path: Path) -> dict[str, Any]:
    """Arguments without the accesses that no stage of a mask at `path` supports."""
    accesses = ACCESSES.get(str(path[-1]))
    if accesses is None:
        return args
    holder = path[:-1]
    stages = value_at(args, path)
    structs = [holder] if accesses in value_at(args, holder) else []
    structs += [
        (*holder, f"p{kind}Barriers", at)
        for kind in LISTS
        for at, _ in enumerate(value_at(args, holder).get(f"p{kind}Barriers") or ())
    ]
    for struct in structs:
        mask = value_at(args, (*struct, accesses))
        args = with_value(args, (*struct, accesses), supported(mask, stages))
    return args


def _ends(edit: Edit) -> Iterator[tuple[str, dict[str, Any]]]:
    """The first and the last byte of the ranges of buffer barriers, where an edit has added them."""
    for site in barrier_sites(edit.after):
        part = None if site.part is None else value_at(edit.after.args, site.part)
        if site.part is None or part is None or "buffer" not in part or part["size"] in (1, VK_WHOLE_SIZE):
            continue
        begin, end = part["offset"], part["offset"] + part["size"]
        old_begin, old_end = _old_range(edit.before, site.part)
        if begin < old_begin:
            less = {**part, "offset": begin + 1, "size": part["size"] - 1}
            yield f"byte {begin} of {site.part}", with_value(edit.after.args, site.part, less)
        if end > old_end:
            less = {**part, "size": part["size"] - 1}
            yield f"byte {end - 1} of {site.part}", with_value(edit.after.args, site.part, less)


def _old_range(before: Call | None, path: Path) -> tuple[int, int]:
    """The range of a buffer barrier before the edit; an empty one that no range begins or ends in without it."""
    try:
        part = value_at(before.args, path) if before is not None else None
    except (KeyError, IndexError, TypeError):
        part = None
    if part is None:
        return VK_WHOLE_SIZE, 0
    return part["offset"], part["offset"] + part["size"]


_Maker = Callable[[Edit], Iterator[tuple[str, dict[str, Any] | None]]]
_MAKERS: tuple[_Maker, ...] = (_calls, _structs, _bits, _ends)
"""Functions that make pieces of a call: the name of each, and the arguments that are left; None for no call at all."""

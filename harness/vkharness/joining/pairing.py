"""Which import of one trace belongs to which export of another one.

The file behind a descriptor is the same in both processes. Where a trace does not know it, exports and imports of one
kind belong together in their order, if there are as many of both. Otherwise the user has to say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vkharness.findings import UserError
from vkharness.spec.command_classes import EXPORTS, IMPORTS
from vkharness.spec.enums import VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import PAYLOAD, Block, Call
from vkharness.trace.chain import links
from vkharness.trace.shared_payloads import ALREADY_SIGNALED, Transfer, memory_import, transfer_of

FIRST_FD = 1 << 20
"""File descriptors of the joined trace are from here on. No process has such ones."""
OBJECTS = {"VkDeviceMemory": "memory objects", "VkSemaphore": "semaphores", "VkFence": "fences"}


@dataclass(frozen=True, slots=True)
class Site:
    """An export or an import: its block, and what it says."""

    block: int
    transfer: Transfer
    size: int = 0
    """Of memory that is allocated, in bytes."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An export of one trace and the import of the other that takes it."""

    kind: str
    export: tuple[int, int]
    """The trace (0 or 1) and the block in it."""
    to: tuple[int, int]


def pairs(traces: Sequence[Sequence[Block]], said: Mapping[int, int]) -> list[Pair]:
    """The exports of each of two traces with the imports of the other one.

    `said` maps blocks of the first trace to blocks of the second. Raises `UserError` where something is missing or
    ambiguous.
    """
    exports = [_exports(each) for each in traces]
    imports = [_imports(each) for each in traces]
    found = list(_said(exports, imports, said))
    for giver in (0, 1):
        taken = {pair.export for pair in found} | {pair.to for pair in found}
        free = [each for each in exports[giver] if (giver, each.block) not in taken]
        open_imports = [each for each in imports[1 - giver] if (1 - giver, each.block) not in taken]
        found += _paired(giver, free, open_imports)
    if not found:
        raise UserError("the two traces share nothing: neither imports what the other one exports")
    return found


def _exports(blocks: Sequence[Block]) -> list[Site]:
    made = []
    for block in blocks:
        if isinstance(block, Call) and block.succeeded and main_name(block.name) in EXPORTS:
            given = transfer_of(block)
            if given.fd is not None and given.fd != ALREADY_SIGNALED:
                made.append(Site(block.index, given))
    return made


def _imports(blocks: Sequence[Block]) -> list[Site]:
    made = []
    for block in blocks:
        if not isinstance(block, Call) or not block.succeeded:
            continue
        if block.name == "vkAllocateMemory":
            memory = memory_import(block)
            if memory is not None:
                made.append(Site(block.index, memory, block.args["pAllocateInfo"]["allocationSize"]))
        elif main_name(block.name) in IMPORTS:
            given = transfer_of(block)
            if given.fd is not None and given.fd != ALREADY_SIGNALED:
                made.append(Site(block.index, given))
    return made


def _said(exports: list[list[Site]], imports: list[list[Site]], said: Mapping[int, int]) -> list[Pair]:
    found = []
    for first, second in said.items():
        for giver, export, to in ((0, first, second), (1, second, first)):
            given = next((each for each in exports[giver] if each.block == export), None)
            taken = next((each for each in imports[1 - giver] if each.block == to), None)
            if given is not None and taken is not None and given.transfer.kind == taken.transfer.kind:
                found.append(Pair(given.transfer.kind, (giver, export), (1 - giver, to)))
                break
        else:
            raise UserError(f"--pair {first}={second}: these blocks are no export and import of one kind of object")
    return found


def _paired(giver: int, exports: list[Site], imports: list[Site]) -> list[Pair]:
    """By the file where both know it, then by order."""
    found, left = [], []
    for each in imports:
        same = [one for one in exports if _same_file(one.transfer, each.transfer)]
        if same:
            found.append(Pair(each.transfer.kind, (giver, same[0].block), (1 - giver, each.block)))
        elif each.transfer.identity is None:
            left.append(each)
    known = {pair.export[1] for pair in found}
    for kind, what in OBJECTS.items():
        mine = [each for each in exports if each.transfer.kind == kind and each.block not in known]
        mine = [each for each in mine if each.transfer.identity is None or left]
        theirs = [each for each in left if each.transfer.kind == kind]
        if theirs and len(mine) != len(theirs):
            raise UserError(
                f"{len(mine)} {what} are exported and {len(theirs)} imported by descriptors of which the file is not "
                f"known: name them with --pair (blocks {_blocks(mine)} and {_blocks(theirs)})"
            )
        found += [
            Pair(kind, (giver, one.block), (1 - giver, other.block)) for one, other in zip(mine, theirs, strict=False)
        ]
    return found


def _same_file(one: Transfer, other: Transfer) -> bool:
    return one.kind == other.kind and one.identity is not None and one.identity == other.identity


def _blocks(sites: Sequence[Site]) -> str:
    return ", ".join(str(each.block) for each in sites[:8]) + ", …" * (len(sites) > 8) if sites else "none"


def marked(traces: Sequence[Sequence[Block]], found: Sequence[Pair]) -> list[list[Block]]:
    """The traces with descriptors and files that say what belongs together, and no others."""
    numbers: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(found):
        first = numbers.setdefault(pair.export, number)
        numbers[pair.to] = first
    made: list[list[Block]] = []
    alone = len(found)
    for at, blocks in enumerate(traces):
        mine: list[Block] = []
        for block in blocks:
            if isinstance(block, Call) and _transfers(block):
                paired = numbers.get((at, block.index))
                alone += paired is None
                block = _with_file(block, FIRST_FD + (alone if paired is None else paired), paired)
            mine.append(block)
        made.append(mine)
    return made


def _transfers(call: Call) -> bool:
    name = main_name(call.name)
    memory = call.name == "vkAllocateMemory" and memory_import(call) is not None
    return call.succeeded and (memory or name in EXPORTS or name in IMPORTS)


def _with_file(call: Call, fd: int, number: int | None) -> Call:
    """A call with another descriptor, and the number of its pair in place of the file."""
    args: dict[str, Any] = {key: value for key, value in call.args.items() if key != PAYLOAD}
    copies = call.name != "vkAllocateMemory" and transfer_of(call).copies
    if number is not None and not copies:
        args[PAYLOAD] = f"joined:{number}"
    name = main_name(call.name)
    if name in EXPORTS:
        args["pFd"] = args["pFd"] if args.get("pFd") in (None, ALREADY_SIGNALED) else fd
    elif name in IMPORTS:
        info = args[IMPORTS[name]]
        if info.get("fd") not in (None, ALREADY_SIGNALED):
            args[IMPORTS[name]] = {**info, "fd": fd}
    else:
        args["pAllocateInfo"] = _with_descriptor(args["pAllocateInfo"], fd)
    return replace(call, args=args)


def _with_descriptor(info: dict[str, Any], fd: int) -> dict[str, Any]:
    made = None
    for link in reversed(list(links(info))):
        kept = {**link, "pNext": made}
        made = {**kept, "fd": fd} if link.get("sType") == VkStructureType.IMPORT_MEMORY_FD_INFO_KHR else kept
    return {**info, "pNext": made}

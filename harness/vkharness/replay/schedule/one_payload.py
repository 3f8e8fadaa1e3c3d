"""Rewrites a trace in which several objects share a payload into one in which they are one object.

A replay runs in one process, so that nothing has to be exported or imported. A trace of two processes that was joined
(`vkharness join`) becomes a trace of one program that way.
"""

from __future__ import annotations

from vkharness.findings import UserError
from vkharness.spec.command_classes import EXPORTS, IMPORTS
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.effects import PayloadShared
from vkharness.trace.shared_payloads import SharedPayloads, memory_import


def with_one_payload(blocks: list[Block]) -> list[Block]:
    """The trace without exports and imports. It is the same list when the trace imports nothing.

    Raises `UserError` for a semaphore or a fence of which the other side is not in the trace.
    """
    if not any(isinstance(each, Call) and each.succeeded and _imports(each) for each in blocks):
        return blocks
    payloads = SharedPayloads()
    infos: dict[int, dict[str, object]] = {}
    made: list[Block] = []
    for block in blocks:
        with reading(block):
            made += _rewritten(payloads, infos, block)
    shared = {id for id in infos if id in payloads.standing_for}
    return [each for each in made if not (isinstance(each, Call) and _created(each) in shared)]


def _rewritten(payloads: SharedPayloads, infos: dict[int, dict[str, object]], block: Block) -> list[Block]:
    """Returns the blocks that replace a block; none where it is left out."""
    if isinstance(block, Call) and not block.succeeded:
        return [block]
    block = payloads.resolved(block) if payloads.standing_for else block
    if not isinstance(block, Call):
        return [block]
    name = main_name(block.name)
    if name in EXPORTS:
        list(payloads.exported(block))
        return []
    if name in IMPORTS:
        events = list(payloads.imported(block))
        if any(isinstance(each, PayloadShared) and each.outside for each in events):
            where = f"block {block.index}: {block.name}"
            raise UserError(f"{where} cannot be replayed: the other side is not in the trace (vkharness join)")
        return []
    if name == "vkAllocateMemory":
        list(payloads.memory_imported(block))
    elif name in ("vkCreateImage", "vkCreateBuffer"):
        infos[_created(block)] = block.args["pCreateInfo"]
    return _bound(payloads, infos, block)


def _created(call: Call) -> int:
    """The image or the buffer that a call makes, else 0."""
    made: int = call.args.get("pImage") or call.args.get("pBuffer") or 0
    return made


def _imports(call: Call) -> bool:
    with reading(call):
        return main_name(call.name) in IMPORTS or (call.name == "vkAllocateMemory" and memory_import(call) is not None)


def _bound(payloads: SharedPayloads, infos: dict[int, dict[str, object]], call: Call) -> list[Block]:
    """The call, without bindings of images and buffers that are one with another."""
    if call.name in ("vkBindImageMemory", "vkBindBufferMemory"):
        return [] if _is_bound(payloads, infos, call.args) else [call]
    if main_name(call.name) in ("vkBindImageMemory2", "vkBindBufferMemory2"):
        left = [each for each in call.args["pBindInfos"] or () if not _is_bound(payloads, infos, each)]
        return [Call(call.index, call.name, {**call.args, "pBindInfos": left, "bindInfoCount": len(left)}, call.result)]
    return [call]


def _is_bound(payloads: SharedPayloads, infos: dict[int, dict[str, object]], bind: dict[str, int]) -> bool:
    resource = bind.get("image") or bind.get("buffer") or 0
    info = infos.get(resource)
    return info is not None and payloads.bound(resource, bind["memory"], bind["memoryOffset"], info)

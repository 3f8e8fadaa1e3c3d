"""Several instances of a stream at once, each with its own memory, on the queues of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from vkharness.findings import UserError
from vkharness.replay.contents.observe import Outputs
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.replay.native_strategies.phases import phases, submits
from vkharness.replay.schedule.batch_scheduler import runnable, submissions
from vkharness.replay.schedule.screens import OURS
from vkharness.spec.command_classes import is_debug
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.first_bytes import PATTERNS
from vkharness.trace.ids import fresh_id
from vkharness.trace.rewriting import with_handles

INSTANCES = 8
SHARED = {
    "vkCreateInstance": "pInstance",
    "vkEnumeratePhysicalDevices": "pPhysicalDevices",
    "vkCreateDevice": "pDevice",
    "vkGetDeviceQueue": "pQueue",
    "vkGetDeviceQueue2": "pQueue",
}
"""Calls that are made once for all instances, and the argument with what they give back."""
REFUSED = {
    "vkGetBufferDeviceAddress": "its shaders may hold addresses, which differ in each instance",
    "vkSetEvent": "the host lets the device go on, so that instances on one queue may wait for each other",
    "vkSignalSemaphore": "the host lets the device go on, so that instances on one queue may wait for each other",
    "vkSetPrivateData": "it keeps data with objects",
}
"""Calls of streams that have one instance only, with the reason."""


def with_instances(blocks: list[Block], number: int) -> ChangedStream:
    """The stream `INSTANCES` times. What each instance submits comes at once, and the waits come after those of all.

    `number`, of the run, changes nothing. Raises `UserError` for a stream that cannot run beside itself.
    """
    _refuse(blocks)
    step = fresh_id(blocks)
    step += -step % PATTERNS  # so that each resource starts with the contents of its twin
    last = max((each.index for each in blocks), default=0) + 1
    shared = {0, OURS, *_shared(blocks)}
    parts = [list(phases(_instance(blocks, at, at * step, at * last, shared))) for at in range(INSTANCES)]
    made = [block for several in zip(*parts, strict=True) for block in _beside(several)]
    return ChangedStream(made, partial(_parts, step, last))


def _refuse(blocks: list[Block]) -> None:
    for block in blocks:
        if isinstance(block, Call) and (reason := REFUSED.get(main_name(block.name))):
            raise UserError(f"one instance only: {reason}")
        if isinstance(block, Call) and block.args.get("commandBuffer") == OURS:
            raise UserError("one instance only: it presents")
    if list(submissions(runnable(blocks))) != list(submissions(blocks)):
        raise UserError("one instance only: it submits work before what that waits for, which other instances would do")


def _shared(blocks: list[Block]) -> Iterator[int]:
    for block in blocks:
        if isinstance(block, Call) and main_name(block.name) in SHARED:
            held = block.args.get(SHARED[main_name(block.name)]) or 0
            yield from held if isinstance(held, list) else [held]


def _instance(blocks: list[Block], at: int, ids: int, later: int, shared: set[int]) -> Iterator[Block]:
    """One instance, with ids and numbers of blocks of its own; the first is the stream itself."""

    def new(id: int, _: bool) -> int:
        return id if id in shared else id + ids

    for block in blocks:
        if not isinstance(block, Call):
            yield replace(block, index=block.index + later, memory=block.memory + ids)
        elif not at or not (main_name(block.name) in SHARED or is_debug(block.name)):
            yield replace(with_handles(block, new), index=block.index + later)


def _beside(several: tuple[list[Block], ...]) -> Iterator[Block]:
    """One part of each instance: first what comes before the first submit in all of them, then the rest of each."""
    rests = []
    for part in several:
        first = next((at for at, block in enumerate(part) if submits(block)), len(part))
        yield from part[:first]
        rests.append(part[first:])
    for rest in rests:
        yield from rest


def _parts(step: int, last: int, outputs: Outputs) -> list[Outputs]:
    """The outputs of each instance, under the names that the stream gives them."""
    several = [Outputs(notes=outputs.notes) for _ in range(INSTANCES)]
    for (resource, place), surface in outputs.surfaces.items():
        at, own = divmod(resource, step) if resource > 0 else _of_read(resource, last)
        several[at].surfaces[own, place] = replace(surface, resource=own)
    for resource, reason in outputs.unobserved.items():
        at, own = divmod(resource, step)
        several[at].unobserved[own] = reason
    return several


def _of_read(resource: int, last: int) -> tuple[int, int]:
    """The instance of a read of the host, and its name in the stream: block indices with the sign changed."""
    at, index = divmod(-resource, last)
    return at, -index

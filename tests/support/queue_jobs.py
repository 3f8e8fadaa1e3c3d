"""Jobs that tests/device/test_queue_emulation.py runs in a driver's process."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vkharness
from vkharness.check import Analysis
from vkharness.device.queue_emulation import logical_queues
from vkharness.replay.contents.observe import Outputs
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.requirements import queue_masks
from vkharness.rig.rig import Rig
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save

KINDS = ("TRANSFER", "COMPUTE")


def _word(outputs: Outputs, id: int) -> str:
    return outputs.surfaces[id, None].data[:4].tobytes().hex()


def _buffers(blocks: list[Any]) -> list[int]:
    return [block.args["pBuffer"] for block in blocks if isinstance(block, Call) and block.name == "vkCreateBuffer"]


def _fill(rig: Rig, target: RigBuffer, value: int, queue: Any) -> Commands:
    with rig.commands(queue=queue) as commands:
        commands.fill(target, value)
    return commands


def _here(rig: Rig, buffer: RigBuffer) -> str:
    mapped = rig.vk.vkMapMemory(rig.device, buffer.memory, 0, 4, 0)
    word = bytes(mapped[0:4]).hex()
    rig.vk.vkUnmapMemory(rig.device, buffer.memory)
    return word


def backwards(device: str) -> dict[str, Any]:
    """A copy on one queue, submitted before the two fills that it waits for on others, and what every run leaves."""
    with (
        logical_queues(queue_masks(KINDS)) as below,
        vkharness.attach(keep_trace=True) as session,
        Rig(queues=KINDS) as rig,
    ):
        first, second, third = rig.queues
        a, b, t = rig.buffer(), rig.buffer(), rig.timeline()
        with rig.commands(queue=third) as copies:
            copies.copy(a, b)
        rig.submit(copies, waits=[SemaphoreUse(t, "COPY", 2)], sync2=True)
        waits, signals = [SemaphoreUse(t, "ALL_TRANSFER", 1)], [SemaphoreUse(t, value=2)]
        rig.submit(_fill(rig, a, 0x22222222, second), waits=waits, signals=signals, sync2=False)
        held = len(below.releases.held)
        rig.submit(_fill(rig, a, 0x11111111, first), signals=[SemaphoreUse(t, value=1)], sync2=True)
        rig.host_wait("", "device")
        here = _here(rig, b)
        families = [each.flags for each in rig.queues]
        handles = len({int(rig.vk.ffi.cast("uintptr_t", each.handle)) for each in rig.queues})
    blocks = session.blocks or []
    _, target = _buffers(blocks)
    return {
        "logical": below.active,
        "held": held,
        "families": families,
        "handles": handles,
        "verdict": session.verdict,
        "words": [here, _word(run_serial(blocks, device), target), _word(run_native(blocks, device), target)],
    }


def racing() -> dict[str, Any]:
    """Two queues that race: what the live mirror says, and what the saved trace says by itself."""
    with logical_queues(queue_masks(KINDS)), vkharness.attach(keep_trace=True) as session, Rig(queues=KINDS) as rig:
        a = rig.buffer()
        for value, queue in enumerate(rig.queues):
            rig.submit(_fill(rig, a, value, queue))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        save(path, session.blocks or [])
        again = Analysis().follow(load(path)).findings
    live = [(each.hazard, each.place.queue, each.prior.queue) for each in session.findings]
    return {"live": live, "again": [(each.hazard, each.place.queue, each.prior.queue) for each in again]}


def never_signaled() -> dict[str, Any]:
    """A batch that nothing lets go."""
    try:
        with logical_queues(queue_masks(KINDS)), Rig(queues=KINDS) as rig:
            rig.submit(waits=[SemaphoreUse(rig.timeline(), value=1)], sync2=True)
    except RuntimeError as error:
        return {"error": str(error)}
    return {"error": ""}


def one_queue() -> dict[str, Any]:
    """A device that has what is wanted: nothing stands for anything."""
    import vulkan._vulkan as package

    before = package.lib
    with logical_queues(queue_masks(())) as below, Rig() as rig:
        rig.submit(fence=rig.fence())
        queue = rig.gpu.queue
    return {"logical": below.active, "families": queue.family, "restored": package.lib is before}


def transferred(device: str) -> dict[str, Any]:
    """An image that goes to another family with a layout transition, and back into a buffer there."""
    with logical_queues(queue_masks(KINDS)), vkharness.attach(keep_trace=True) as session, Rig(queues=KINDS) as rig:
        main, other, _ = rig.queues
        image, b, s = rig.image(exclusive=True), rig.buffer(16 * 16 * 4), rig.semaphore()
        both: dict[str, Any] = {"image": image, "old": "TRANSFER_DST_OPTIMAL", "new": "TRANSFER_SRC_OPTIMAL"}
        with rig.commands() as first:
            first.transition(image, new="TRANSFER_DST_OPTIMAL")
            first.clear_color(image, 0x40302010, at="TRANSFER_DST_OPTIMAL")
            first.barrier("", "CLEAR/TRANSFER_WRITE", "NONE", families=(main.family, other.family), **both)
        with rig.commands(queue=other) as second:
            families: dict[str, Any] = {"families": (main.family, other.family), "sync2": False}
            second.barrier("", "ALL_TRANSFER", "ALL_TRANSFER/TRANSFER_READ", **families, **both)
            second.image_to_buffer(image, b, at="TRANSFER_SRC_OPTIMAL")
        rig.submit(first, signals=[SemaphoreUse(s)])
        rig.submit(second, waits=[SemaphoreUse(s, "ALL_COMMANDS")])
        rig.host_wait("", "device")
        here = _here(rig, b)
    blocks = session.blocks or []
    (target,) = _buffers(blocks)
    words = [here, _word(run_serial(blocks, device), target), _word(run_native(blocks, device), target)]
    return {"verdict": session.verdict, "words": words}


def presented(device: str) -> dict[str, Any]:
    """Two frames of a swapchain: what the screens of its images show in a serial and a native run."""
    from vkharness.rig.requirements import PRESENTS

    with vkharness.attach(keep_trace=True) as session, Rig(PRESENTS) as rig:
        rig.shown_swapchain()
    blocks = session.blocks or []
    shown = []
    for run in (run_serial, run_native):
        found = run(blocks, device)
        shown.append(
            sorted(
                surface.data[0, 0, 0].tobytes().hex()
                for surface in found.surfaces.values()
                if surface.kind == "screen of image"
            )
        )
    return {"verdict": session.verdict, "shown": shown}

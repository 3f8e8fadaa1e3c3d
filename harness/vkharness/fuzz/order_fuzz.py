"""Random streams in legal orders: does any leave other bytes than the serial run?

A random stream is full of hazards. `with_full_barriers` puts full barriers where the model reports a conflict and
nowhere else, so that the stream is clean and many of its commands may still change places. An order that the model
allows and that leaves other bytes than the serial run is a bug.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import vkharness
from vkharness.device.process import Worker
from vkharness.findings import FailedCallError, UserError
from vkharness.fuzz.driver_deaths import asked
from vkharness.fuzz.random_steps import Step, make, shrink
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.model import judge
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.spec.enums import VkAttachmentLoadOp, VkAttachmentStoreOp
from vkharness.trace.barrier_calls import full_barrier
from vkharness.trace.calls import Block, Call

MOST_BARRIERS = 40


def with_full_barriers(blocks: list[Block]) -> list[Block] | None:
    """The stream with full barriers before commands that conflict with earlier ones; None where that mends nothing."""
    for _ in range(MOST_BARRIERS):
        opinion = judge(blocks)
        if opinion.unmodelled:
            return None
        if opinion.clean:
            return blocks
        at = _cut(blocks, opinion.conflicts[0].current.call)
        if at is None:
            return None
        before = blocks[at]
        assert isinstance(before, Call)
        blocks = _numbered([*blocks[:at], full_barrier(0, before.args["commandBuffer"]), *blocks[at:]])
    return None


def _cut(blocks: list[Block], index: int) -> int | None:
    """Where a barrier can stand before a command: outside render pass instances, and not right after another one."""
    at = index - 1
    call = blocks[at]
    if not isinstance(call, Call) or not call.name.startswith("vkCmd"):
        return None
    mine = [
        place
        for place, each in enumerate(blocks[: at + 1])
        if isinstance(each, Call) and each.args.get("commandBuffer") == call.args["commandBuffer"]
    ]
    open_at, before = None, None
    for place in mine:
        name = blocks[place].name  # type: ignore[union-attr]
        if name.startswith("vkCmdBeginRender"):
            open_at = place
        elif name == "vkBeginCommandBuffer":
            open_at = None
        if place == at:
            break
        if name.startswith("vkCmdEndRender"):
            open_at = None
    at = at if open_at is None else open_at
    before = max((place for place in mine if place < at), default=None)
    return None if before is None or blocks[before].index in _barriers(blocks) else at


def _barriers(blocks: list[Block]) -> set[int]:
    return {each.index for each in blocks if isinstance(each, Call) and each.args.get("memoryBarrierCount") == 1}


def _numbered(blocks: list[Block]) -> list[Block]:
    return [replace(block, index=number) for number, block in enumerate(blocks, 1)]


def leaves_contents_undefined(blocks: list[Block]) -> bool:
    """Whether attachments are not loaded or not stored: what they hold then is undefined, and may be anything in any
    order."""
    return any(
        _has_undefined_ends(block.args) for block in blocks if isinstance(block, Call) and "Render" in block.name
    )


def _has_undefined_ends(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_undefined_ends, value))
    if not isinstance(value, dict):
        return False
    if any(value.get(name) == VkAttachmentLoadOp.DONT_CARE for name in ("loadOp", "stencilLoadOp")):
        return True
    if any(value.get(name) not in (None, VkAttachmentStoreOp.STORE) for name in ("storeOp", "stencilStoreOp")):
        return True
    return any(map(_has_undefined_ends, value.values()))


def resolves_into_a_later_layer(blocks: list[Block]) -> bool:
    """Whether rendering resolves into a view that begins after the first layer of its image. Mesa 22.3.6's lavapipe
    writes the first layer then, which no judge can know."""
    later: set[int] = set()
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateImageView":
            if block.args["pCreateInfo"]["subresourceRange"]["baseArrayLayer"]:
                later.add(block.args["pView"])
        elif isinstance(block, Call) and block.name.startswith("vkCmdBeginRendering"):
            info = block.args["pRenderingInfo"]
            ends = [*(info["pColorAttachments"] or []), info["pDepthAttachment"], info["pStencilAttachment"]]
            if any(end and end["resolveMode"] and end["resolveImageView"] in later for end in ends):
                return True
    return False


def attack(steps: Sequence[Step], seed: int, device: str) -> dict[str, Any]:
    """Plays steps on this process' driver, mends the stream and runs it in four legal orders chosen by `seed`.

    `verdict` is `broken`, `held` with the number of orders, or why no order was run or compared.
    """
    with vkharness.attach(keep_trace=True, strict=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    blocks = with_full_barriers(_numbered(session.blocks or []))
    if blocks is None:
        return {"verdict": "not mended"}
    if device == "lavapipe" and resolves_into_a_later_layer(blocks):
        return {"verdict": "left out: lavapipe resolves into the first layer"}
    chosen = [("reverse", 0), *(("random", seed + n) for n in range(2)), ("priority", seed)]
    try:
        found = run_reorders(blocks, chosen, device)
    except FailedCallError:
        raise
    except UserError as error:
        return {"verdict": f"not run: {error}"}
    differing = [run.to_dict() for run in found.differing]
    if differing and leaves_contents_undefined(blocks):
        return {"verdict": "left out: contents are undefined", "differing": differing}
    held = f"held {len(found.executed)}" if found.executed else "nothing to reorder"
    return {"verdict": "broken" if differing else held, "differing": differing}


def ask(worker: Worker, steps: Sequence[Step], seed: int, device: str) -> dict[str, Any]:
    """`attack` in the worker. A driver that died or failed is a verdict."""
    answer = asked(worker, f"{__name__}:attack", {"steps": steps, "seed": seed, "device": device})
    return {"verdict": answer} if isinstance(answer, str) else answer


def is_bad(answer: dict[str, Any]) -> bool:
    """Whether an answer of `attack` shows a bug."""
    return not answer["verdict"].startswith(("held", "nothing", "not mended", "left out"))


def smallest(worker: Worker, seed: int, device: str) -> list[Step]:
    """The smallest stream left of a seed's that still gets the verdict of the whole."""
    steps = make(seed)
    verdict = ask(worker, steps, seed, device)["verdict"]
    return shrink(steps, lambda rest: bool(ask(worker, rest, seed, device)["verdict"] == verdict))

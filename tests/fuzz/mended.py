"""Random streams with as few full barriers put in as make them clean: much may still change places in them.

    .venv/bin/python -m tests.fuzz.mended --first 0 --count 500 [--device lavapipe]

runs each in legal orders; one that leaves other bytes than the serial run is a bug.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import click
from rich.progress import track

import harness
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.findings import UserError
from harness.model import judge
from harness.replay.outcomes.legal_order_runs import run_reorders
from harness.spec.enums import VkAttachmentLoadOp, VkAttachmentStoreOp
from harness.trace.calls import Block, Call
from tests.fuzz.random_player import Player, open_rig
from tests.fuzz.random_steps import make
from tests.support.streams import ALL_COMMANDS, READ_WRITE, struct

MOST_BARRIERS = 40
LOAD_DONT_CARE, STORE = VkAttachmentLoadOp.DONT_CARE, VkAttachmentStoreOp.STORE
"""VkAttachmentLoadOp, VkAttachmentStoreOp."""


def mend(blocks: list[Block]) -> list[Block] | None:
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
        blocks = _numbered([*blocks[:at], _barrier(blocks[at]), *blocks[at:]])
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


def _barrier(before: Block) -> Call:
    assert isinstance(before, Call)
    full = struct("VkMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE)
    args = {
        "commandBuffer": before.args["commandBuffer"],
        "srcStageMask": ALL_COMMANDS,
        "dstStageMask": ALL_COMMANDS,
        "dependencyFlags": 0,
        "memoryBarrierCount": 1,
        "pMemoryBarriers": [full],
        "bufferMemoryBarrierCount": 0,
        "pBufferMemoryBarriers": None,
        "imageMemoryBarrierCount": 0,
        "pImageMemoryBarriers": None,
    }
    return Call(0, "vkCmdPipelineBarrier", args)


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
    if any(value.get(name) == LOAD_DONT_CARE for name in ("loadOp", "stencilLoadOp")):
        return True
    if any(value.get(name) not in (None, STORE) for name in ("storeOp", "stencilStoreOp")):
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


def attack(seed: int, device: str) -> dict[str, Any]:
    """Plays a seed on this process' driver, mends it and runs it in some legal orders; what came of it, in words."""
    with harness.attach(keep_trace=True) as session, open_rig(None) as rig:
        Player(rig).play(make(seed))
    blocks = mend(_numbered(session.blocks or []))
    if blocks is None:
        return {"verdict": "not mended"}
    if device == "lavapipe" and resolves_into_a_later_layer(blocks):
        return {"verdict": "left out: lavapipe resolves into the first layer"}
    chosen = [("reverse", 0), *(("random", seed + n) for n in range(2)), ("priority", seed)]
    try:
        found = run_reorders(blocks, chosen, device)
    except UserError as error:
        return {"verdict": f"not run: {error}"}
    differing = [run.to_dict() for run in found.differing]
    if differing and leaves_contents_undefined(blocks):
        return {"verdict": "left out: contents are undefined", "differing": differing}
    held = f"held {len(found.executed)}" if found.executed else "nothing to reorder"
    return {"verdict": "broken" if differing else held, "differing": differing}


@click.command()
@click.option("--first", default=0, show_default=True)
@click.option("--count", default=100, show_default=True)
@click.option("--device", default="lavapipe", show_default=True)
def main(first: int, count: int, device: str) -> None:
    """Attacks so many mended streams."""
    verdicts: Counter[str] = Counter()
    with Worker(find_driver(device), packages=["tests"]) as worker:
        for seed in track(range(first, first + count)):
            answer = worker.call("tests.fuzz.mended:attack", {"seed": seed, "device": device})
            if isinstance(answer, Died):
                answer = {"verdict": f"died: {answer.reason}"}
            verdicts[answer["verdict"]] += 1
            if not answer["verdict"].startswith(("held", "nothing", "not mended", "left out")):
                click.echo(f"seed {seed}: {answer}")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))


if __name__ == "__main__":
    main()

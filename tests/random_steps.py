"""Steps of random streams: what a seed means, and how a stream is made smaller while something about it holds.

A step is a plain tuple, a stream a list of them: commands, ("next",) for the next command buffer, ("submit", batches of
command buffer numbers, fence or None), ("wait", fence), ("idle",). Every stream is valid Vulkan, whatever is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Step = tuple[Any, ...]

TRANSFER_SCOPES = [
    "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE", "COPY", "CLEAR/TRANSFER_WRITE", "CLEAR", "BLIT/TRANSFER_READ",
    "BLIT/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ|TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER",
    "RESOLVE/TRANSFER_READ|TRANSFER_WRITE", "RESOLVE/TRANSFER_WRITE", "COPY|CLEAR/TRANSFER_WRITE",
]  # fmt: skip
SHADER_SCOPES = [
    "COMPUTE_SHADER/SHADER_READ", "COMPUTE_SHADER/SHADER_WRITE",
    "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
    "COMPUTE_SHADER/UNIFORM_READ", "COMPUTE_SHADER/SHADER_SAMPLED_READ", "COMPUTE_SHADER",
    "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE", "DRAW_INDIRECT/INDIRECT_COMMAND_READ",
]  # fmt: skip
WIDE_SCOPES = [
    "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ", "ALL_COMMANDS",
    "TOP_OF_PIPE", "BOTTOM_OF_PIPE", "ALL_TRANSFER|COMPUTE_SHADER/MEMORY_READ|MEMORY_WRITE",
    "ALL_COMMANDS/TRANSFER_WRITE|SHADER_WRITE", "NONE",
]  # fmt: skip
SCOPES = TRANSFER_SCOPES + SHADER_SCOPES + WIDE_SCOPES
_ONLY_FORM2 = {"COPY", "CLEAR", "BLIT", "RESOLVE", "COPY|CLEAR", "NONE"}
FORM1 = [text for text in SCOPES if text.split("/")[0] not in _ONLY_FORM2]
FORM1 = [text for text in FORM1 if "STORAGE" not in text and "SAMPLED" not in text]
SHADERS = (
    "copy_words", "scale_words", "fill_words_writeonly", "atomic_add", "sum_uniform",
    "image_store_2d", "image_load_2d", "sample_2d", "length_only",
)  # fmt: skip
BUFFERS = 4
SHARED = {2, 3}
"""These buffers lie in one memory object."""
WEIGHTS = {
    "transfer": 8, "image": 6, "dispatch": 4, "indirect": 1, "barrier": 9, "next": 1, "submit": 2, "idle": 0.3,
    "wait": 0.7,
}  # fmt: skip


def make(seed: int, length: int = 14) -> list[Step]:
    """The steps of a seed."""
    rng = random.Random(seed)
    steps: list[Step] = []
    buffers = 1
    for _ in range(length):
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind == "next":
            buffers += 1
        steps.append(_MAKERS[kind](rng, buffers))
    return [*steps, ("submit", [list(range(buffers))], None)]


def shrink(steps: list[Step], holds: Callable[[list[Step]], bool]) -> list[Step]:
    """A stream from which no step can be left out while `holds` is true of the rest. Asks O(n^2) times at most."""
    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps):
            rest = steps[:at] + steps[at + size :]
            if holds(rest):
                steps = rest
            else:
                at += size
        size //= 2
    return steps


def _range(rng: random.Random) -> tuple[int, int]:
    return 4 * rng.randrange(16), 4 * rng.randrange(1, 33)


def _transfer(rng: random.Random, _: int) -> Step:
    one, other = rng.sample(range(BUFFERS), 2)
    begin, size = _range(rng)
    form = rng.choice((1, 2))
    choices: list[Step] = [
        ("fill", one, begin, size),
        ("update", one, begin, size),
        ("copy", one, other, [(begin, 4 * rng.randrange(16), size)], form),
        ("copy", one, other, [(0, 128, 64), (64, 0, 64)], form),
        ("copy", one, one, [(4 * rng.randrange(8), 128 + 4 * rng.randrange(8), 64)], form),
    ]
    return rng.choice(choices)


def _part(rng: random.Random) -> dict[str, Any]:
    mip = rng.randrange(2)
    size = 8 >> mip
    x, y = rng.randrange(size), rng.randrange(size)
    extent = (rng.randrange(1, size - x + 1), rng.randrange(1, size - y + 1), 1)
    return {"mip": mip, "layer": rng.randrange(2), "offset": (x, y, 0), "extent": extent}


def _mips(rng: random.Random) -> tuple[int, int]:
    first = rng.randrange(2)
    return first, rng.randrange(1, 3 - first)


def _image(rng: random.Random, _: int) -> Step:
    one, other, part, form = rng.randrange(2), rng.randrange(BUFFERS), _part(rng), rng.choice((1, 2))
    small = {**_part(rng), "extent": (1, 1, 1)}
    flat = {**_part(rng), "mip": 0, "layer": 0, "extent": (1, 1, 1)}
    choices: list[Step] = [
        ("buffer_to_image", other, one, part, form),
        ("image_to_buffer", one, other, part, form),
        ("clear_color", one, {"mips": _mips(rng), "layers": (0, rng.randrange(1, 3))}),
        ("copy_image", one, 1 - one, {**part, "extent": (1, 1, 1)}, small, form),
        ("blit", one, 1 - one, part, _part(rng), form),
        ("resolve", one, flat, small, form),
        ("clear_samples",),
        ("clear_depth_stencil", rng.choice((2, 4, 6))),
        ("depth_to_buffer", other, rng.choice((2, 4)), flat, form),
        ("buffer_to_stencil", other, flat, form),
    ]
    return rng.choice(choices)


def _dispatch(rng: random.Random, _: int) -> Step:
    first, second = rng.sample(range(BUFFERS), 2)
    if {first, second} == SHARED:
        second = 0  # in which order the layer takes two descriptors of one memory object is chance
    how = rng.choice(("plain", "plain", "base", "push"))
    return ("dispatch", rng.choice(SHADERS), first, second, rng.choice((0, 0, 128)), rng.randrange(2), how)


def _indirect(rng: random.Random, _: int) -> Step:
    begin = 4 * rng.randrange(4)
    choices: list[Step] = [
        ("indirect", begin, rng.randrange(BUFFERS)),
        ("indirect", begin, rng.randrange(BUFFERS)),
        ("write_counts", begin, rng.choice((4, 12)), rng.choice(("fill", "update"))),
        ("read_counts", begin, rng.randrange(BUFFERS), rng.choice((1, 2))),
    ]
    return rng.choice(choices)


def _barrier(rng: random.Random, _: int) -> Step:
    form = rng.choice((1, 2))
    scopes = SCOPES if form == 2 else FORM1
    several: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        each: dict[str, Any] = {"src": rng.choice(scopes), "dst": rng.choice(scopes), "form": form}
        each |= _target(rng)
        if not any("image" in other and other["image"] == each.get("image") for other in several):
            several.append(each)  # transitions of one image in one command have no order among themselves
    if form == 1:  # one pair of stage masks for the whole command
        stages = [several[0][side].split("/")[0] for side in ("src", "dst")]
        several = [each for each in several if [each[s].split("/")[0] for s in ("src", "dst")] == stages]
    return ("barriers", several)


def _target(rng: random.Random) -> dict[str, Any]:
    match rng.choice(("memory", "memory", "buffer", "image", "transition", "depth")):
        case "buffer":
            begin, size = _range(rng)
            return {"buffer": rng.randrange(BUFFERS), "offset": begin, "size": size}
        case "image":
            return {"image": rng.randrange(2), "mips": _mips(rng), "layers": (rng.randrange(2), 1)}
        case "transition":
            return {"image": rng.randrange(2), "mips": _mips(rng), "layers": (0, 2), "old": "UNDEFINED"}
        case "depth":
            return {"image": 2} | rng.choice(({}, {"old": "UNDEFINED"}))
    return {}


def _submit(rng: random.Random, buffers: int) -> Step:
    batches = [rng.choices(range(buffers), k=rng.choice((1, 1, 2))) for _ in range(rng.choice((1, 1, 1, 2)))]
    return ("submit", batches, rng.choice((None, rng.randrange(2))))


_MAKERS: dict[str, Callable[[random.Random, int], Step]] = {
    "transfer": _transfer,
    "image": _image,
    "dispatch": _dispatch,
    "indirect": _indirect,
    "barrier": _barrier,
    "next": lambda rng, buffers: ("next",),
    "submit": _submit,
    "idle": lambda rng, buffers: ("idle",),
    "wait": lambda rng, buffers: ("wait", rng.randrange(2)),
}

"""Steps of random streams: what a seed means, and how a stream is made smaller while something about it holds.

A step is a plain tuple, a stream a list of them: commands, ("next",) for the next command buffer, ("submit", batches,
fence or None), ("wait", fence), ("idle",) and so on: `step_player.StepPlayer` has a method for each. What runs inside
another command is a list of steps at the end of that command's step. A stream is valid Vulkan, whatever is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypedDict, TypeVar

from vkharness.fuzz.random_rendering import BY_REGION, GRAPHICS_SCOPES, make_pass, make_rendering, with_read_only_depth

Step = tuple[Any, ...]
T = TypeVar("T")

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
REGION_SCOPES = [*GRAPHICS_SCOPES, "TOP_OF_PIPE", "BOTTOM_OF_PIPE", "NONE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"]
"""Scopes of by-region barriers outside of render pass instances."""
_ONLY_FORM2 = {"COPY", "CLEAR", "BLIT", "RESOLVE", "COPY|CLEAR", "NONE"}
SHADERS = (
    "copy_words", "scale_words", "fill_words_writeonly", "atomic_add", "sum_uniform",
    "image_store_2d", "image_load_2d", "sample_2d", "length_only",
)  # fmt: skip
PARTS = ("limited_words", "count_and_store", "tile_words")
"""Shaders of which the dispatch decides what they access."""
BUFFERS = 4
SHARED = {2, 3}
"""These buffers lie in one memory object."""
EVENTS, SEMAPHORES, TIMELINES = 2, 2, 2
WEIGHTS: dict[str, float] = {
    "transfer": 8, "image": 6, "dispatch": 4, "indirect": 1, "barrier": 9, "next": 1, "submit": 2, "idle": 0.3,
    "wait": 0.7,
}  # fmt: skip
"""Of every stream."""
FAMILIES: dict[str, dict[str, float]] = {
    "semaphores": {"submit": 3, "next": 1},
    "timelines": {"submit": 3, "next": 1, "host_wait": 1, "host_signal": 0.5},
    "events": {"set_event": 5, "wait_events": 5, "reset_event": 1.5},
    "secondaries": {"secondary": 5, "execute": 1.5},
    "rendering": {"rendering": 8},
    "passes": {"pass": 8},
    "queries": {"timestamp": 1, "copy_results": 3},
    "parts": {"store_words": 6},
    "host": {"host_access": 1.5, "late_host": 1.5},
    "host_events": {"set_event": 2, "wait_events": 3, "host_sets": 2},
    "forms": {"set_event": 3, "wait_otherwise": 3},
    "read_only": {"pass": 5},
    "loads": {"loaded_words": 6},
    "texels": {"store_texels": 3, "fetch_level": 2, "stride_words": 3},
    "regions": {"region_barrier": 3, "sampled_by_region": 6, "rendering": 3},
}
"""Each stream has some of these too: what they add to the weights."""
RARE = {"host", "host_events", "forms", "read_only", "loads", "regions", "texels"}
"""Families of which fewer streams have some, unless families are named. No barrier mends the hazards of most of them,
so that such a stream is seldom made clean and reordered."""
EVENT_FAMILIES = {"events", "host_events", "forms"}
FROM_HOST = ("HOST/HOST_WRITE", "HOST/HOST_WRITE", "HOST", "HOST/HOST_READ|HOST_WRITE", "ALL_COMMANDS/MEMORY_WRITE")
"""First scopes of waits for the host."""
INNER = ("transfer", "transfer", "image", "dispatch", "barrier", "barrier")
"""Kinds of steps in secondary command buffers."""
NESTED = ("secondary", "rendering", "pass")
"""Steps whose last part is a list of steps."""
WAITS = [
    "ALL_COMMANDS",
    "ALL_TRANSFER",
    "COMPUTE_SHADER",
    "ALL_TRANSFER|COMPUTE_SHADER",
    "DRAW_INDIRECT",
    "TOP_OF_PIPE",
]


class RandomBatch(TypedDict):
    """A batch: numbers of command buffers, and (number, stages, value) of semaphores; value 0 is that of a binary one,
    and a timeline signals the next one whatever stands here."""

    buffers: list[int]
    waits: list[tuple[int, str, int]]
    signals: list[tuple[int, str, int]]


class StepMaker:
    """Makes the steps of a seed."""

    def __init__(self, seed: int, families: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        rare = random.Random(~seed)  # of its own: a stream without these families is what it is without the question
        self.families = {each for each in families if each not in RARE and self.rng.random() < 0.4}
        chance = 0.4 if set(families) < FAMILIES.keys() else 0.15
        self.families |= {each for each in families if each in RARE and rare.random() < chance}
        self.buffers, self.secondaries = 1, 0
        self.weights = dict(WEIGHTS)
        for family in sorted(self.families):
            for kind, weight in FAMILIES[family].items():
                self.weights[kind] = self.weights.get(kind, 0) + weight
        drawing = bool(self.families & {"rendering", "passes", "read_only", "regions"})
        self.scopes = SCOPES + (2 * GRAPHICS_SCOPES if drawing else [])

    def steps(self, length: int) -> list[Step]:
        """As many steps, a last submit, and before them what they need."""
        events = [("event", at, self.several()) for at in range(EVENTS) if self.families & EVENT_FAMILIES]
        kinds = self.rng.choices(list(self.weights), list(self.weights.values()), k=length)
        steps = [self.step(kind) for kind in kinds]
        return [*events, *steps, ("submit", [_batch(list(range(self.buffers)))], None)]

    def step(self, kind: str) -> Step:
        """One step of a kind."""
        rng = self.rng
        match kind:
            case "next":
                self.buffers += 1
                return ("next",)
            case "barrier":
                return ("barriers", self.several())
            case "region_barrier":
                return ("barriers", [{**each, "flags": BY_REGION} for each in _several(rng, REGION_SCOPES)])
            case "sampled_by_region":
                return _sampled_by_region(rng)
            case "submit":
                return self._submit()
            case "secondary":
                self.secondaries += 1
                return ("secondary", [self.step(each) for each in rng.choices(INNER, k=rng.randrange(1, 5))])
            case "execute":
                return ("execute", rng.choices(range(max(1, self.secondaries)), k=rng.choice((1, 1, 2))))
            case "rendering":
                return make_rendering(rng, "secondaries" in self.families)
            case "pass":
                made = make_pass(rng, "secondaries" in self.families)
                return with_read_only_depth(rng, made) if "read_only" in self.families else made
        return _MAKERS[kind](rng)

    def several(self) -> list[dict[str, Any]]:
        """Barriers of one command."""
        return _several(self.rng, self.scopes)

    def _submit(self) -> Step:
        rng = self.rng
        batches = [
            _batch(rng.choices(range(self.buffers), k=rng.choice((1, 1, 2)))) for _ in range(rng.choice((1, 1, 1, 2)))
        ]
        for batch in batches:
            for family, first in (("semaphores", 0), ("timelines", 1)):
                if family in self.families:
                    batch["waits"] += self._operations(first)
                    batch["signals"] += self._operations(first)
                    batch["buffers"] = batch["buffers"] if rng.random() < 0.9 else []
        return ("submit", batches, rng.choice((None, rng.randrange(2))))

    def _operations(self, first: int) -> list[tuple[int, str, int]]:
        rng = self.rng
        if rng.random() < 0.5:
            return []
        return [(rng.randrange(SEMAPHORES), rng.choice(WAITS), first and rng.randrange(1, 4))]


def make(seed: int, families: Sequence[str] = tuple(FAMILIES), length: int = 14) -> list[Step]:
    """The steps of a seed, which chooses among the families."""
    return StepMaker(seed, families).steps(length)


def families_of(seed: int, families: Sequence[str]) -> list[str]:
    """The families that a seed chooses among these, in order."""
    return sorted(StepMaker(seed, families).families)


def _batch(buffers: list[int]) -> RandomBatch:
    return {"buffers": buffers, "waits": [], "signals": []}


def shrink(steps: list[Step], holds: Callable[[list[Step]], bool]) -> list[Step]:
    """A stream from which no step, nor one inside a step, can be left out while `holds` is true of the rest. Asks
    O(n^2) times at most."""
    steps = shrink_list(steps, holds)
    for at, step in enumerate(steps):
        if step[0] in NESTED:
            inner = shrink_list(step[-1], partial(_holds_inside, holds, steps, at))
            steps = _with_inner(steps, at, inner)
    return steps


def _holds_inside(holds: Callable[[list[Step]], bool], steps: list[Step], at: int, inner: list[Step]) -> bool:
    return holds(_with_inner(steps, at, inner))


def _with_inner(steps: list[Step], at: int, inner: list[Step]) -> list[Step]:
    return [*steps[:at], (*steps[at][:-1], inner), *steps[at + 1 :]]


def shrink_list(steps: list[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """A list from which no item can be left out while `holds` is true of the rest. Asks O(n log n) times at most."""
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


def _transfer(rng: random.Random) -> Step:
    one, other = rng.sample(range(BUFFERS), 2)
    begin, size = _range(rng)
    v2 = rng.choice((False, True))
    choices: list[Step] = [
        ("fill", one, begin, size),
        ("update", one, begin, size),
        ("copy", one, other, [(begin, 4 * rng.randrange(16), size)], v2),
        ("copy", one, other, [(0, 128, 64), (64, 0, 64)], v2),
        ("copy", one, one, [(4 * rng.randrange(8), 128 + 4 * rng.randrange(8), 64)], v2),
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


def _image(rng: random.Random) -> Step:
    one, other, part, v2 = rng.randrange(2), rng.randrange(BUFFERS), _part(rng), rng.choice((False, True))
    small = {**_part(rng), "extent": (1, 1, 1)}
    flat = {**_part(rng), "mip": 0, "layer": 0, "extent": (1, 1, 1)}
    choices: list[Step] = [
        ("buffer_to_image", other, one, part, v2),
        ("image_to_buffer", one, other, part, v2),
        ("clear_color", one, {"mips": _mips(rng), "layers": (0, rng.randrange(1, 3))}),
        ("copy_image", one, 1 - one, {**part, "extent": (1, 1, 1)}, small, v2),
        ("blit", one, 1 - one, part, _part(rng), v2, rng.choice((False, True))),
        ("resolve", one, flat, small, v2),
        ("clear_samples",),
        ("clear_depth_stencil", rng.choice((2, 4, 6))),
        ("depth_to_buffer", other, rng.choice((2, 4)), flat, v2),
        ("buffer_to_stencil", other, flat, v2),
    ]
    return rng.choice(choices)


def _dispatch(rng: random.Random) -> Step:
    first, second = rng.sample(range(BUFFERS), 2)
    if {first, second} == SHARED:
        second = 0  # in which order the layer takes two descriptors of one memory object is chance
    how = rng.choice(("plain", "plain", "base", "push"))
    return ("dispatch", rng.choice(SHADERS), first, second, rng.choice((0, 0, 128)), rng.randrange(2), how)


def _store_words(rng: random.Random) -> Step:
    """A dispatch that stores to some words of a buffer, which follow from its push constants and workgroups."""
    kind, first = rng.choice(PARTS), 8 * rng.randrange(5)
    return ("store_words", kind, rng.randrange(BUFFERS), first, rng.choice((1, 8, 16)), rng.randrange(2))


def _loaded_words(rng: random.Random) -> Step:
    """A dispatch that stores to some words of a buffer, which follow from two numbers in a uniform block: what the host
    wrote there before the recording, or writes over it before the submit, or what commands wrote."""
    how = rng.choice(("host", "late", "update", "fill", "copy", "kept"))
    return ("loaded_words", rng.randrange(BUFFERS), 8 * rng.randrange(5), rng.choice((1, 8, 16)), how)


def _store_texels(rng: random.Random) -> Step:
    """A dispatch that stores to a tile of one level and layer of an image, through a view of that layer or of both."""
    flat = rng.choice((False, True))
    place = (rng.randrange(-1, 6), rng.randrange(-1, 6)) if flat else (0, 0)
    return ("store_texels", rng.randrange(2), rng.randrange(2), rng.randrange(2), flat, place, rng.choice((1, 1, 2)))


def _fetch_level(rng: random.Random) -> Step:
    """A dispatch that fetches texels of one mip level of an image, through a view of both levels, into a buffer."""
    return ("fetch_level", rng.randrange(2), rng.randrange(2), rng.randrange(2), rng.randrange(BUFFERS))


def _stride_words(rng: random.Random) -> Step:
    """A dispatch of which the invocations store in turns to every second word, or to all, of a part of a buffer."""
    count, groups = rng.choice((0, 1, 5, 8, 9, 20)), rng.choice((1, 1, 2, 3))
    return (
        "stride_words",
        rng.randrange(BUFFERS),
        rng.randrange(20),
        count,
        groups,
        rng.choice(("push", "host", "host")),
    )


def _indirect(rng: random.Random) -> Step:
    begin = 4 * rng.randrange(4)
    choices: list[Step] = [
        ("indirect", begin, rng.randrange(BUFFERS)),
        ("indirect", begin, rng.randrange(BUFFERS)),
        ("write_counts", begin, rng.choice((4, 12)), rng.choice(("fill", "update"))),
        ("read_counts", begin, rng.randrange(BUFFERS), rng.choice((False, True))),
    ]
    return rng.choice(choices)


def _several(rng: random.Random, all_scopes: list[str]) -> list[dict[str, Any]]:
    sync2 = rng.choice((False, True))
    scopes = all_scopes if sync2 else [each for each in all_scopes if _has_form1(each)]
    several: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        each: dict[str, Any] = {"src": rng.choice(scopes), "dst": rng.choice(scopes), "sync2": sync2}
        each |= _target(rng)
        if not any("image" in other and other["image"] == each.get("image") for other in several):
            several.append(each)  # transitions of one image in one command have no order among themselves
    if not sync2:  # one pair of stage masks for the whole command
        stages = [several[0][side].split("/")[0] for side in ("src", "dst")]
        several = [each for each in several if [each[s].split("/")[0] for s in ("src", "dst")] == stages]
    return several


def _sampled_by_region(rng: random.Random) -> Step:
    """A by-region barrier of an image, and rendering to the other one that samples it."""
    _, spec, draws = make_rendering(rng, False)
    image = rng.randrange(2)
    colors = [{**each, "image": 1 - image, "resolve": None} for each in spec["colors"][:1]]
    sampled: list[Step] = [("draw", "sample", {}, 0, "draw") for _ in range(1 + len(draws))]
    moved = {"image": image, "mips": (0, 2), "layers": (0, 2), "old": rng.choice(("UNDEFINED", "GENERAL"))}
    source = rng.choice(("NONE", "TOP_OF_PIPE", rng.choice(GRAPHICS_SCOPES), rng.choice(WIDE_SCOPES)))
    before = {"src": source, "dst": "FRAGMENT_SHADER/SHADER_READ", "sync2": True, "flags": BY_REGION, **moved}
    return ("sampled_by_region", [before], {**spec, "colors": colors}, sampled)


def _has_form1(scope: str) -> bool:
    return scope.partition("/")[0] not in _ONLY_FORM2 and "STORAGE" not in scope and "SAMPLED" not in scope


def _copy_results(rng: random.Random) -> Step:
    first = rng.randrange(3)
    count = rng.randrange(1, 5 - first)
    stride, flags = rng.choice(((4, 0), (8, 0), (16, 0x4), (8, 0x1), (24, 0x5)))
    return ("copy_results", first, count, rng.randrange(BUFFERS), 8 * rng.randrange(8), stride, flags)


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


def _late_host(rng: random.Random) -> Step:
    """A wait for the host and a copy, of which the host touches the source or the target before it sets the event."""
    one, other = rng.sample(range(BUFFERS), 2)
    second = rng.choice([each for each in TRANSFER_SCOPES + SHADER_SCOPES if _has_form1(each)])
    return ("late_host", one, other, rng.choice(FROM_HOST), second, rng.random() < 0.7)


def _wait_otherwise(rng: random.Random) -> Step:
    """A wait with a form and a dependency of its own, whatever set its event."""
    sync2 = rng.choice((False, True))
    scopes = [each for each in TRANSFER_SCOPES + WIDE_SCOPES if sync2 or _has_form1(each)]
    return ("wait_otherwise", rng.randrange(EVENTS), rng.choice(scopes), rng.choice(scopes), sync2)


_MAKERS: dict[str, Callable[[random.Random], Step]] = {
    "transfer": _transfer,
    "image": _image,
    "dispatch": _dispatch,
    "indirect": _indirect,
    "store_words": _store_words,
    "loaded_words": _loaded_words,
    "store_texels": _store_texels,
    "fetch_level": _fetch_level,
    "stride_words": _stride_words,
    "idle": lambda rng: ("idle",),
    "wait": lambda rng: ("wait", rng.randrange(2)),
    "host_wait": lambda rng: ("host_wait", rng.randrange(TIMELINES), rng.randrange(1, 4)),
    "host_signal": lambda rng: ("host_signal", rng.randrange(TIMELINES)),
    "set_event": lambda rng: ("set_event", rng.randrange(EVENTS)),
    "reset_event": lambda rng: ("reset_event", rng.randrange(EVENTS), rng.choice(WAITS)),
    "wait_events": lambda rng: ("wait_events", rng.choice(([0], [1], [0, 1]))),
    "host_access": lambda rng: (
        "host_access",
        rng.randrange(BUFFERS),
        4 * rng.randrange(16),
        rng.randrange(1, 33),
        rng.random() < 0.6,
    ),
    "host_sets": lambda rng: ("host_sets", rng.randrange(EVENTS), rng.random() < 0.7),
    "late_host": _late_host,
    "wait_otherwise": _wait_otherwise,
    "timestamp": lambda rng: ("timestamp", rng.randrange(4)),
    "copy_results": _copy_results,
}

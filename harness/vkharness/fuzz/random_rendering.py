"""Render pass instances of random streams: what they look like as plain data, and how a seed makes them."""

from __future__ import annotations

import random
from typing import Any, TypedDict

from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency, VkImageAspect

Step = tuple[Any, ...]

DEPTH, SAMPLES = 2, 3
"""Numbers of the depth/stencil image and of the multisample one; colour images are 0 and 1."""
GENERAL = "GENERAL"
BY_REGION = VkDependency.BY_REGION

GRAPHICS_SCOPES = [
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", "COLOR_ATTACHMENT_OUTPUT",
    "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE",
    "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE", "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ",
    "FRAGMENT_SHADER/SHADER_READ", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ", "FRAGMENT_SHADER",
    "VERTEX_INPUT/VERTEX_ATTRIBUTE_READ|INDEX_READ", "VERTEX_INPUT/INDEX_READ",
]  # fmt: skip
OUTER_SCOPES = [
    "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ|TRANSFER_WRITE", "ALL_TRANSFER",
    "COMPUTE_SHADER/SHADER_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "ALL_COMMANDS/MEMORY_WRITE",
    "ALL_COMMANDS",
]  # fmt: skip
SELF_SCOPES = [
    ("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"),
    ("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ"),
    ("FRAGMENT_SHADER", "COLOR_ATTACHMENT_OUTPUT"),
]
COLOR_LAYOUTS, INPUT_LAYOUTS = (GENERAL, "COLOR_ATTACHMENT_OPTIMAL"), (GENERAL, "SHADER_READ_ONLY_OPTIMAL")
DEPTH_LAYOUTS = (GENERAL, "DEPTH_STENCIL_ATTACHMENT_OPTIMAL")
READ_ONLY = {
    "DEPTH_STENCIL_READ_ONLY_OPTIMAL": VkImageAspect.DEPTH | VkImageAspect.STENCIL,
    "DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL": VkImageAspect.DEPTH,
    "DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL": VkImageAspect.STENCIL,
}
"""Depth layouts, with the aspects that are read-only in them."""
Use = tuple[int, str]
"""An attachment by index, and its layout."""


Depends = tuple[int, int, str, str, int]


class RandomColor(TypedDict):
    """A colour attachment of dynamic rendering; `resolve` is (image, layer)."""

    image: int
    layer: int
    load: str
    store: str
    resolve: tuple[int, int] | None


class RandomRendering(TypedDict):
    """One vkCmdBeginRendering, or two where it is suspended half way. `depth` and `stencil` are (load, store)."""

    colors: list[RandomColor]
    depth: tuple[str, str] | None
    stencil: tuple[str, str]
    area: tuple[int, int, int, int]
    suspended: bool
    secondary: bool


class RandomAttachment(TypedDict):
    """An attachment of a render pass; `stencil` is (load, store)."""

    image: int
    layer: int
    load: str
    store: str
    stencil: tuple[str, str]
    initial: str


class RandomSubpass(TypedDict):
    """A subpass."""

    colors: list[Use]
    resolves: list[Use]
    depth: Use | None
    inputs: list[Use]
    secondary: bool


class RandomPass(TypedDict):
    """A render pass with one instance; dependencies are (src, dst, scope before, scope after, flags)."""

    attachments: list[RandomAttachment]
    subpasses: list[RandomSubpass]
    dependencies: list[Depends]
    area: tuple[int, int, int, int]
    v2: bool


def make_rendering(rng: random.Random, secondaries: bool) -> Step:
    """("rendering", RandomRendering, draws)."""
    many = rng.random() < 0.2
    images = [SAMPLES] if many else rng.sample((0, 1), rng.choice((0, 1, 1, 1, 2)))
    depth = not many and (not images or rng.random() < 0.4)
    resolve = (rng.randrange(2), rng.randrange(2)) if many and rng.random() < 0.7 else None
    colors: list[RandomColor] = [
        {
            "image": image,
            "layer": 0 if many else rng.randrange(2),
            "load": _load(rng),
            "store": _store(rng),
            "resolve": resolve,
        }
        for image in images
    ]
    spec: RandomRendering = {
        "colors": colors,
        "depth": (_load(rng), _store(rng)) if depth else None,
        "stencil": (_load(rng), _store(rng)),
        "area": _area(rng),
        "suspended": rng.random() < 0.15,
        "secondary": secondaries and not many and rng.random() < 0.3,
    }
    return ("rendering", spec, [_draw(rng) for _ in range(rng.randrange(4))])


def make_pass(rng: random.Random, secondaries: bool) -> Step:
    """("pass", RandomPass, draws as (subpass, step))."""
    attachments = [_attachment(rng, image) for image in rng.sample((0, 1, DEPTH, SAMPLES), rng.choice((1, 2, 2, 3, 4)))]
    count = rng.choice((1, 1, 2, 2, 3))
    subpasses = _resolved_first([_part(rng, attachments, secondaries, count < 3) for _ in range(count)])
    v2 = rng.choice((False, True))
    spec: RandomPass = {
        "attachments": attachments,
        "subpasses": subpasses,
        "dependencies": [*_in_order(rng, count), *(_dependency(rng, count) for _ in range(rng.randrange(4)))],
        "area": _area(rng),
        "v2": v2,
    }
    draws = [(rng.randrange(count), _inside(rng)) for _ in range(rng.randrange(1 + 2 * count))]
    return ("pass", spec, sorted(draws, key=lambda each: each[0]))


def with_read_only_depth(rng: random.Random, step: Step) -> Step:
    """A pass with read-only layouts in subpasses that use depth. Its depth is loaded: what is cleared is written."""
    _, spec, inner = step
    attachments = [
        {**each, "load": "LOAD", "stencil": ("LOAD", each["stencil"][1]), "initial": GENERAL}
        if each["image"] == DEPTH
        else each
        for each in spec["attachments"]
    ]
    subpasses = [
        {**each, "depth": (each["depth"][0], rng.choice(list(READ_ONLY)))}
        if each["depth"] and rng.random() < 0.7
        else each
        for each in spec["subpasses"]
    ]
    return ("pass", {**spec, "attachments": attachments, "subpasses": subpasses}, inner)


def _load(rng: random.Random) -> str:
    return rng.choice(("LOAD", "LOAD", "CLEAR", "CLEAR", "DONT_CARE", "NONE"))


def _store(rng: random.Random) -> str:
    return rng.choice(("STORE", "STORE", "STORE", "DONT_CARE", "NONE"))


def _area(rng: random.Random) -> tuple[int, int, int, int]:
    return rng.choice(((0, 0, 8, 8), (0, 0, 8, 8), (0, 0, 4, 8), (2, 2, 4, 4)))


def _attachment(rng: random.Random, image: int) -> RandomAttachment:
    load, stencil = _load(rng), _load(rng)
    kept = {"LOAD", "NONE"} & ({load, stencil} if image == DEPTH else {load})
    return {
        "image": image,
        "layer": rng.randrange(2) if image < DEPTH else 0,
        "load": load,
        "store": _store(rng),
        "stencil": (stencil, _store(rng)),
        "initial": GENERAL if kept else rng.choice((GENERAL, "UNDEFINED")),
    }


def _part(rng: random.Random, attachments: list[RandomAttachment], secondaries: bool, moved: bool) -> RandomSubpass:
    """A subpass; `moved` lets its layouts differ from those of others. (From where a third subpass changes them, the
    layer takes from every subpass that it depends on.)"""
    images = {each["image"]: at for at, each in enumerate(attachments)}
    many = SAMPLES in images and rng.random() < 0.4
    colors = [images[SAMPLES]] if many else [images[each] for each in (0, 1) if each in images and rng.random() < 0.7]
    resolves = [images[each] for each in (0, 1) if many and each in images][:1]
    inputs = [images[each] for each in (0, 1) if each in images and images[each] not in resolves and rng.random() < 0.4]
    shared = set(colors) & set(inputs)  # one layout for all uses in a subpass

    def use(at: int, layouts: tuple[str, str]) -> Use:
        return at, GENERAL if at in shared or not moved else rng.choice(layouts)

    deep = not many and DEPTH in images and rng.random() < 0.7
    return {
        "colors": [use(at, COLOR_LAYOUTS) for at in colors],
        "resolves": [use(at, COLOR_LAYOUTS) for at in resolves],
        "depth": use(images[DEPTH], DEPTH_LAYOUTS) if deep else None,
        "inputs": [use(at, INPUT_LAYOUTS) for at in inputs[:1]],
        "secondary": secondaries and rng.random() < 0.3,
    }


def _resolved_first(subpasses: list[RandomSubpass]) -> list[RandomSubpass]:
    """Subpasses that resolve into no attachment that one before used: in which order that is, the text leaves open
    (rules.md#resolves-at-the-end-of-rendering-are-colour-accesses), and no judge says."""
    used: set[int] = set()
    found: list[RandomSubpass] = []
    for each in subpasses:
        used |= {at for at, _ in (*each["colors"], *each["inputs"])}
        found.append({**each, "resolves": [use for use in each["resolves"] if use[0] not in used]})
    return found


def _in_order(rng: random.Random, count: int) -> list[Depends]:
    """A dependency for every two subpasses: without one, which transitions there are is left open."""
    pairs = [(first, second) for second in range(count) for first in range(second)]
    return [
        (*pair, rng.choice(GRAPHICS_SCOPES), rng.choice(GRAPHICS_SCOPES), rng.choice((0, BY_REGION))) for pair in pairs
    ]


def _dependency(rng: random.Random, count: int) -> Depends:
    first = rng.randrange(count)
    match rng.choice(("before", "after", "self")):
        case "before":
            return (
                VK_SUBPASS_EXTERNAL,
                first,
                rng.choice(GRAPHICS_SCOPES + OUTER_SCOPES),
                rng.choice(GRAPHICS_SCOPES),
                0,
            )
        case "after":
            return (
                first,
                VK_SUBPASS_EXTERNAL,
                rng.choice(GRAPHICS_SCOPES),
                rng.choice(GRAPHICS_SCOPES + OUTER_SCOPES),
                0,
            )
        case _:
            return first, first, *rng.choice(SELF_SCOPES), BY_REGION


def _draw(rng: random.Random) -> Step:
    if rng.random() < 0.25:
        return ("clear_inside", rng.choice((0, 0, 2, 4, 6)), rng.random() < 0.5)
    state: dict[str, Any] = {"blend": rng.random() < 0.3}
    if rng.random() < 0.5:
        state |= {"depth_test": True, "depth_write": rng.random() < 0.6}
    if rng.random() < 0.2:
        state["stencil"] = {"compareOp": rng.choice((0, 1, 7, 7)), "compareMask": 255, **_operation(rng)}
        state["back"] = {"compareOp": rng.choice((0, 7, 7)), **_operation(rng)}
    if rng.random() < 0.25:
        state["cull"] = rng.choice((1, 2, 3, 3))
        state["topology"] = rng.choice((2, 3, 3))  # lines, or triangles
    if "depth_test" in state and rng.random() < 0.5:
        state["depth_compare"] = rng.choice((0, 1, 7))  # NEVER, LESS, ALWAYS
    kind = rng.choice(("plain", "plain", "early", "no_fragment", "vertices", "vertices", "sample", "input"))
    return ("draw", kind, state, rng.randrange(4), rng.choice(("draw", "draw", "indexed", "indirect")))


def _operation(rng: random.Random) -> dict[str, int]:
    """The stencil operations and the write mask of a face."""
    passed = rng.choice((0, 2, 3))
    return {"passOp": passed, "depthFailOp": 0 if passed else 2, "writeMask": rng.choice((0, 15, 255, 255))}


def _inside(rng: random.Random) -> Step:
    return ("pass_barrier",) if rng.random() < 0.15 else _draw(rng)

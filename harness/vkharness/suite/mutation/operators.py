"""Mutation operators: each takes a dependency as written and gives weaker forms of it, with a label.

A dependency is a mapping with two scopes as text (`vkharness.spec.masks`): `src` and `dst` of a barrier, an event or a
semaphore, `before` and `after` of a subpass dependency. Its other members say what it is about. Adding an operator is
adding one decorated function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KINDS

Written = Mapping[str, Any]
Mutated = tuple[str, Written | None]
"""(what was changed, in words; what to record instead, None for nothing)."""
Operator = Callable[[Written], Iterator[Mutated]]

OPERATORS: dict[str, Operator] = {}

FIRST, SECOND = ("before", "src"), ("after", "dst")
"""The keys under which a dependency holds its first and its second scope; those of subpass dependencies go first,
since their `src` and `dst` are subpasses."""

NONE = "NONE"
OTHER_STAGES = ("VERTEX_SHADER", "COPY")
"""Replacements for the only stage of a semaphore, which must have one."""
ALL_STAGES = {"ALL_COMMANDS", "ALL_GRAPHICS"}
MEMORY = {"MEMORY_READ", "MEMORY_WRITE"}


def operator(function: Operator) -> Operator:
    """Registers an operator under its name, underscores as spaces."""
    OPERATORS[function.__name__.replace("_", " ")] = function
    return function


def mutants(written: Written) -> Iterator[tuple[str, str, Written | None]]:
    """(operator, label, mutated dependency) for everything that can be taken from a dependency; of several barriers
    in one command each is weakened by itself."""
    several = written.get("several")
    for name, function in OPERATORS.items():
        if several is None or function is whole_dependency:
            for label, mutated in function(written):
                yield name, label, mutated
            continue
        for at, one in enumerate(several):
            for label, mutated in function(one):
                changed = [*several[:at], *([] if mutated is None else [mutated]), *several[at + 1 :]]
                yield name, f"barrier {at}: {label}", {**written, "several": changed}


@operator
def whole_dependency(written: Written) -> Iterator[Mutated]:
    """Leaves the whole dependency out."""
    yield "left out", None


@operator
def all_accesses(written: Written) -> Iterator[Mutated]:
    """Leaves an execution dependency without accesses."""
    sides = [side for side in (_key(written, FIRST), _key(written, SECOND)) if side]
    if any(_split(written[side])[1] for side in sides):
        yield "execution only", {**written, **{side: _join(_split(written[side])[0], []) for side in sides}}


@operator
def source_access(written: Written) -> Iterator[Mutated]:
    """Drops one access bit of the first scope."""
    yield from _without_access(written, FIRST)


@operator
def destination_access(written: Written) -> Iterator[Mutated]:
    """Drops one access bit of the second scope."""
    yield from _without_access(written, SECOND)


@operator
def source_stage(written: Written) -> Iterator[Mutated]:
    """Drops one stage bit of the first scope, with the accesses that no other stage has."""
    yield from _without_stage(written, FIRST)


@operator
def destination_stage(written: Written) -> Iterator[Mutated]:
    """Drops one stage bit of the second scope, with the accesses that no other stage has."""
    yield from _without_stage(written, SECOND)


@operator
def direction(written: Written) -> Iterator[Mutated]:
    """Exchanges the two scopes."""
    first, second = _key(written, FIRST), _key(written, SECOND)
    if first and second and written[first] != written[second]:
        yield "scopes exchanged", {**written, first: written[second], second: written[first]}


@operator
def range_of_a_buffer(written: Written) -> Iterator[Mutated]:
    """Limits the barrier to the first or to the second half."""
    buffer = written.get("buffer")
    if buffer is None:
        return
    offset = written.get("offset", 0)
    size = min(written.get("size", buffer.size), buffer.size - offset)
    half = size // 8 * 4
    if half:
        yield "first half", {**written, "offset": offset, "size": half}
        yield "second half", {**written, "offset": offset + half, "size": size - half}


@operator
def subresource_of_an_image(written: Written) -> Iterator[Mutated]:
    """Limits the barrier to the first mip level, to the first layer, or to one aspect."""
    image = written.get("image")
    if image is None:
        return
    for key, count, what in (("mips", image.mips, "mip level"), ("layers", image.layers, "layer")):
        first, many = written.get(key, (0, count))
        if many > 1:
            yield f"first {what}", {**written, key: (first, 1)}
    aspects = written.get("aspects", image.aspects)
    if aspects & (aspects - 1):
        yield "one aspect", {**written, "aspects": aspects & -aspects}


@operator
def semaphore_stage(written: Written) -> Iterator[Mutated]:
    """Drops one stage of a semaphore's wait or signal, or replaces its only stage."""
    stages = written.get("stages")
    if "semaphore" not in written or not isinstance(stages, str):
        return
    several = stages.split("|")
    for dropped in several:
        left = [each for each in several if each != dropped]
        wrong = next(each for each in OTHER_STAGES if each not in several)
        yield (
            f"{dropped} {'left out' if left else f'replaced by {wrong}'}",
            {**written, "stages": _join(left or [wrong], [])},
        )


@operator
def semaphore_value(written: Written) -> Iterator[Mutated]:
    """Waits for the value before that of a timeline semaphore's wait."""
    if "semaphore" in written and (written.get("value") or 0) > 1:
        yield "the value before", {**written, "value": written["value"] - 1}


@operator
def layout(written: Written) -> Iterator[Mutated]:
    """Leaves the transition out of the barrier, or lets it discard the image's contents."""
    old, new = written.get("old"), written.get("new")
    if written.get("image") is None or old is None or new is None or old == new:
        return
    yield "no transition", {**written, "old": new}
    if old != "UNDEFINED":
        yield "contents discarded", {**written, "old": "UNDEFINED"}


def _key(written: Written, keys: tuple[str, str]) -> str:
    return next((key for key in keys if isinstance(written.get(key), str)), "")


def _split(text: str) -> tuple[list[str], list[str]]:
    stages, _, accesses = text.partition("/")
    return [each for each in stages.split("|") if each != NONE], [each for each in accesses.split("|") if each]


def _join(stages: list[str], accesses: list[str]) -> str:
    return "|".join(stages or [NONE]) + (f"/{'|'.join(accesses)}" if accesses else "")


def _without_access(written: Written, keys: tuple[str, str]) -> Iterator[Mutated]:
    side = _key(written, keys)
    if not side:
        return
    stages, accesses = _split(written[side])
    for dropped in accesses:
        left = [each for each in accesses if each != dropped]
        yield f"without {dropped}", {**written, side: _join(stages, left)}


def _without_stage(written: Written, keys: tuple[str, str]) -> Iterator[Mutated]:
    side = _key(written, keys)
    if not side:
        return
    stages, accesses = _split(written[side])
    for dropped in stages:
        left = [each for each in stages if each != dropped]
        kept = [each for each in accesses if _legal(left, each)]
        yield f"without {dropped}", {**written, side: _join(left, kept)}


def _legal(stages: list[str], access: str) -> bool:
    """Whether some stage of these can make that access ("Supported Access Types")."""
    if not stages or ALL_STAGES & set(stages) or access in MEMORY:
        return bool(stages)
    _, bit = scope(f"NONE/{access}")
    mask, _ = scope("|".join(stages))
    return any(each.access & bit and (each.stage & mask or _is_meta(mask)) for each in ACCESS_KINDS[1:])


def _is_meta(mask: int) -> bool:
    """Whether a mask has a stage that stands for others: its accesses are left to the driver."""
    return bool(mask & ~_PLAIN)


_PLAIN = sum({each.stage for each in ACCESS_KINDS[1:]})

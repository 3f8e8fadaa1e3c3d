"""Ranges, scopes and dependencies in stream text (`stream_text` has the grammar)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from vkharness.spec import names
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.text_form.handle_names import name, number
from vkharness.text_form.unreadable import Unreadable, integer, nearly, nothing_behind, scope
from vkharness.trace.effects import EXTERNAL, Barrier, Dependency, RangeBarrier
from vkharness.trace.group_effects import DependencyEnd

END = "barrier:"
"""Begins an end of a barrier between physical devices."""
SIZE = 64
"""Addresses of each resource."""
RANGE = re.compile(
    r"(?P<resource>[a-z]|r[0-9]{1,3})(?:\[(?P<spans>[0-9]{1,15}:[0-9]{1,15}(?:\+[0-9]{1,15}:[0-9]{1,15})*)\])?$"
)


def read_range(text: str) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The resource and the addresses of a text such as `a[0:32]` or `a[0:8+16:24]`. Raises `Unreadable` for another."""
    match = RANGE.match(text)
    if match is None:
        raise Unreadable(text, f"{text!r} is no resource or range, such as `a` or `a[0:32]`")
    if match["spans"] is None:
        return number(match["resource"]), ((0, SIZE),)
    spans = tuple((int(begin), int(end)) for begin, end in (each.split(":") for each in match["spans"].split("+")))
    ends = [0, *(end for span in spans for end in span)]
    if ends != sorted(ends) or any(begin == end for begin, end in spans):
        raise Unreadable(text, f"{text!r} is no range: it has an end that does not come after its begin")
    return number(match["resource"]), spans


def spell_range(resource: int, spans: tuple[tuple[int, int], ...]) -> str:
    """The text of addresses of a resource."""
    if spans == ((0, SIZE),):
        return name(resource)
    return f"{name(resource)}[{'+'.join(f'{begin}:{end}' for begin, end in spans)}]"


def spell_scope(stages: int, accesses: int) -> str:
    """The text of a scope: `STAGES/ACCESSES`, or `STAGES` without accesses."""

    def short(spelled: str, prefix: str) -> str:
        parts = [each.removeprefix(prefix) for each in spelled.split("|")]
        return "|".join(re.sub(r"_BIT(_[A-Z]+)?$", "", each) for each in parts)

    text = short(names.stages(stages), "VK_PIPELINE_STAGE_2_")
    return text if not accesses else f"{text}/{short(names.accesses(accesses), 'VK_ACCESS_2_')}"


def read_group_end(text: str) -> tuple[tuple[int, int], DependencyEnd]:
    """The masks and the end of a text such as `COPY/TRANSFER_READ~a[0:32]&b^`."""
    masks, _, ranges = text.removesuffix("^").partition("~")
    parts = (read_range(each) for each in ranges.split("&") if each)
    places = tuple(parts) if ranges else None
    found = scope(masks)
    return found, DependencyEnd(found[1], ranges=places, moves=text.endswith("^"))


def spell_group_end(stages: int, end: DependencyEnd) -> str:
    """The text of an end of a barrier between physical devices."""
    ranges = "&".join(spell_range(*each) for each in end.ranges or ())
    return f"{spell_scope(stages, end.accesses)}{f'~{ranges}' * bool(ranges)}{'^' * end.moves}"


def read_dependency(words: list[str]) -> Dependency:
    """The dependency of the words `SCOPE > SCOPE`. Raises ValueError for others."""
    if len(words) != 3 or words[1] != ">":
        raise Unreadable((words or [""])[0], f"{' '.join(words)!r} is no dependency: SCOPE > SCOPE")
    src, _, dst = words
    return Dependency(*scope(src), *scope(dst))


def spell_dependency(each: Dependency) -> str:
    """The text of a dependency."""
    src, dst = spell_scope(each.src_stages, each.src_accesses), spell_scope(each.dst_stages, each.dst_accesses)
    return f"{src} > {dst}"


def read_pair(text: str) -> tuple[int, int]:
    """The ends of a text such as `0->1` or `EXTERNAL->0`."""
    before, _, after = text.partition("->")
    return read_end(before), read_end(after)


def read_end(text: str) -> int:
    """A subpass, a layout or a family."""
    return EXTERNAL if text == "EXTERNAL" else integer(text, (1 << 32) - 1)


@cache
def layouts() -> dict[str, int]:
    """The layouts of images by name, without `VK_IMAGE_LAYOUT_`; of several names of one, the first."""
    found: dict[int, str] = {}
    for layout, value in vars(VkImageLayout).items():
        if layout[0] != "_":
            found.setdefault(value, layout)
    return {layout: value for value, layout in found.items()}


def read_layouts(text: str) -> tuple[int, int]:
    """The layouts of a text such as `UNDEFINED->GENERAL` or `0->1`."""
    before, _, after = text.partition("->")
    return _layout(before), _layout(after)


def _layout(text: str) -> int:
    if text[:1].isdigit():
        return integer(text, (1 << 32) - 1)
    if text not in layouts():
        raise Unreadable(text, f"{text!r} is no layout{nearly(text, layouts())}")
    return layouts()[text]


def spell_layouts(old: int, new: int) -> str:
    """The text of two layouts: a number only for one that has no name."""
    names = {value: layout for layout, value in layouts().items()}
    return f"{names.get(old, old)}->{names.get(new, new)}"


def spell_ends(several: Iterable[int], between: str) -> str:
    """The text of several ends."""
    return between.join("EXTERNAL" if each == EXTERNAL else str(each) for each in several)


def read_barrier(text: str) -> Barrier:
    """The barrier of flags and dependencies with commas between."""
    everything: dict[Dependency, None] = {}
    ranges = []
    flags, text = _flags(text)
    for part in text.split(","):
        words = part.split()
        dependency = read_dependency(words[-3:])
        if len(words) == 3:
            everything[dependency] = None
            continue
        ranges.append(_range_barrier(words[:-3], dependency))
    for each in ranges:
        everything |= dict.fromkeys(_implied(each))
    return Barrier(tuple(everything), ranges=tuple(ranges), **flags)


def _range_barrier(words: list[str], dependency: Dependency) -> RangeBarrier:
    """The barrier of the words in front of a dependency."""
    resource, spans = read_range(words[0])
    moved, families = (0, 0), (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED)
    rest = words[1:]
    if rest and "->" in rest[0]:
        moved = read_layouts(rest.pop(0))
    if rest and rest[0] == "family":
        families, rest = read_pair(rest[1]), rest[2:]
    found = []
    for word in ("stages", "traced"):
        found.append(rest[:1] == [word])
        rest = rest[found[-1] :]
    nothing_behind(rest, "layouts, `family`, `stages`, `traced`")
    return RangeBarrier(
        dependency,
        resource,
        spans,
        resource,
        transition=moved[0] != moved[1],
        old_layout=moved[0],
        new_layout=moved[1],
        src_family=families[0],
        dst_family=families[1],
        all_stages=found[0],
        is_traced=found[1],
    )


def _flags(text: str) -> tuple[dict[str, bool], str]:
    """The flags in front of the dependencies of a barrier, by member, and the dependencies."""
    flags = {}
    for word, member in (("region", "by_region"), ("views", "by_view"), ("asymmetric", "asymmetric")):
        flags[member] = text.startswith(f"{word} ")
        text = text.removeprefix(f"{word} ")
    return flags, text


def _implied(each: RangeBarrier) -> tuple[Dependency, ...]:
    """The execution dependency of everything that comes with a barrier of a range, and with no transfer of it."""
    if each.src_family != each.dst_family and not each.all_stages:
        return ()
    return (Dependency(each.dependency.src_stages, 0, each.dependency.dst_stages, 0),)


def spell_barrier(barrier: Barrier) -> str:
    """The text of a barrier."""
    implied = {dependency for each in barrier.ranges for dependency in _implied(each)}
    parts = [spell_dependency(each) for each in barrier.globals if each not in implied]
    for each in barrier.ranges:
        moved = f"{spell_layouts(each.old_layout, each.new_layout)} " if each.transition else ""
        families = f"family {each.src_family}->{each.dst_family} " if each.src_family != each.dst_family else ""
        families += "stages " * each.all_stages + "traced " * each.is_traced
        where = spell_range(each.resource, each.spans)
        parts.append(f"{where} {moved}{families}{spell_dependency(each.dependency)}")
    flags = "region " * barrier.by_region + "views " * barrier.by_view + "asymmetric " * barrier.asymmetric
    return flags + ", ".join(parts)

"""Bits and values to the specification's names and back, for messages and for traces that spell names."""

from __future__ import annotations

import re
from functools import cache

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec import scopes

_STAGE_TYPE = "VkPipelineStageFlags2"
_ACCESS_TYPE = "VkAccessFlags2"
_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]{1,16}|\d{1,20})[uUlL]{0,3}")


@cache
def stages(mask: int) -> str:
    """'VK_PIPELINE_STAGE_2_COPY_BIT|VK_PIPELINE_STAGE_2_BLIT_BIT'; pseudo stages by bare name; 0 is …_NONE."""
    pseudo = [name for name, bit in tables.PSEUDO_STAGES.items() if mask & bit]
    rest = mask & ~sum(tables.PSEUDO_STAGES.values())
    if pseudo and not rest:
        return "|".join(pseudo)
    return "|".join([flags_names(_STAGE_TYPE, rest), *pseudo])


@cache
def accesses(mask: int) -> str:
    """'VK_ACCESS_2_TRANSFER_READ_BIT|…' of an access mask; 0 is VK_ACCESS_2_NONE."""
    return flags_names(_ACCESS_TYPE, mask)


@cache
def sync_accesses(access_set: int) -> str:
    """A set of SyncAccess bits, stage by stage: 'COPY(TRANSFER_READ|TRANSFER_WRITE), CLEAR(TRANSFER_WRITE)'.

    'NONE' when empty; a stage all of whose accesses are in the set is 'COPY(all)' if it has more than two.
    """
    groups: dict[int, list[scopes.AccessKind]] = {}
    for access in scopes.members(access_set):
        groups.setdefault(access.stage, []).append(access)
    return ", ".join(_group(stage, group) for stage, group in groups.items()) or "NONE"


def _group(stage: int, group: list[scopes.AccessKind]) -> str:
    label = _STAGE_LABELS.get(stage)
    if label is None:
        return "|".join(access.name.removeprefix("SYNC_") for access in group)
    if len(group) > 2 and sum(1 << access.index for access in group) == scopes.stage_accesses(stage):
        return f"{label}(all)"
    return f"{label}({'|'.join(access.name.removeprefix(f'SYNC_{label}_') for access in group)})"


def _short(stage: str) -> str:
    return stage.removeprefix("VK_PIPELINE_STAGE_2_").replace("_BIT", "").removesuffix("_KHR")


_STAGE_LABELS = {bit: _short(name) for name, bit in tables.STAGES.items()}
_STAGE_LABELS[scopes.PRESENT_ENGINE] = "PRESENT_ENGINE_SYNCVAL"


def enum_value(type_name: str, name: str | int) -> int:
    """Value of an enumerant given by any of its names, as a number or as a number's text.

    Raises UserError when the enum has no such name.
    """
    return _one(_main(type_name), name)


def value_name(type_name: str, value: int) -> str:
    """Name of a value of an enum; its number for a value without one. Raises UserError for a type that is none."""
    return _value_names(_main(type_name)).get(value, str(value))


def flags_names(type_name: str, mask: int) -> str:
    """Names of the bits set, lowest first, joined by '|'; bits without a name in hexadecimal; 0 is …_NONE or '0'."""
    known = _value_names(_main(type_name))
    if mask in known and (mask == 0 or mask & (mask - 1) == 0):
        return known[mask]
    named = [known[bit] for bit in scopes.bits(mask) if bit in known]
    rest = sum(bit for bit in scopes.bits(mask) if bit not in known)
    if rest or not named:
        named.append(hex(rest) if rest else "0")
    return "|".join(named)


def flags_value(type_name: str, text: str | int) -> int:
    """Mask of names or numbers joined by '|' ('VK_ACCESS_2_NONE', '0x3', 'A|B'). An empty text is 0.

    Raises UserError for a name that the type does not have.
    """
    if isinstance(text, int):
        return text
    mask = 0
    for part in text.split("|"):
        if part.strip():
            mask |= _one(_main(type_name), part)
    return mask


def _one(main: str, name: str | int) -> int:
    if isinstance(name, int):
        return name
    name = name.strip()
    found = tables.ENUMS.get(main, tables.BITMASKS.get(main, {})).get(name)
    if found is None and _NUMBER.fullmatch(name):
        found = int(name.rstrip("uUlL"), 0 if "x" in name.lower() else 10)
    if found is None:
        raise UserError(f"{main} has no value named {name[:80]!r}")
    return found


def _main(type_name: str) -> str:
    """The name that the tables use for a type. Raises UserError when it is neither an enum nor flags."""
    main = tables.TYPE_ALIASES.get(type_name, type_name)
    if main not in tables.ENUMS and main not in tables.BITMASKS:
        raise UserError(f"{type_name} is no enum or flags type that these tables know")
    return main


@cache
def _value_names(main: str) -> dict[int, str]:
    """Value to its preferred name: the first of several, as the tables order them."""
    found: dict[int, str] = {}
    for name, value in tables.ENUMS.get(main, tables.BITMASKS.get(main, {})).items():
        found.setdefault(value, name)
    return found

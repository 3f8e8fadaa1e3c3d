"""Scopes as text: `"COPY|CLEAR/TRANSFER_WRITE"` is stages, a slash, accesses; either may be missing (none)."""

from __future__ import annotations

import functools

from vkharness.findings import UserError
from vkharness.spec._generated import ACCESS_ALIASES, ACCESSES, STAGE_ALIASES, STAGES

_SUFFIXES = ("", "_KHR", "_EXT", "_NV", "_HUAWEI", "_QCOM", "_ARM")


@functools.cache
def scope(text: str) -> tuple[int, int]:
    """(stage mask, access mask) of a scope written as text; UserError for a name that is no stage or access."""
    stages, _, accesses = text.partition("/")
    return (
        _mask(stages, "VK_PIPELINE_STAGE_2_", {**STAGE_ALIASES, **STAGES}),
        _mask(accesses, "VK_ACCESS_2_", {**ACCESS_ALIASES, **ACCESSES}),
    )


def _mask(text: str, prefix: str, table: dict[str, int]) -> int:
    mask = 0
    for name in filter(None, text.split("|")):
        if name == "NONE":
            continue
        for suffix in _SUFFIXES:
            bit = table.get(f"{prefix}{name}_BIT{suffix}")
            if bit is not None:
                mask |= bit
                break
        else:
            raise UserError(f"{text!r}: {prefix}{name}_BIT is not in the registry")
    return mask

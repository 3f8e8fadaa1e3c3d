"""Which rows of the suite this process runs: a shard of all, or what an earlier run left."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from vkharness.findings import UserError
from vkharness.results.result_lines import RunHeader

Shard = tuple[int, int]
"""(K, N): the K-th of N parts, from 1."""


def parse_shard(text: str) -> Shard:
    """`3/8` as (3, 8). Raises `UserError`."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise UserError(f"--vk-shard {text}: not of the form K/N with K from 1 to N")
    return int(part), int(parts)


def in_shard(nodeid: str, shard: Shard) -> bool:
    """Whether a row belongs to that part. Its name alone decides, so that a new row moves no other one."""
    number = int.from_bytes(blake2b(nodeid.encode(), digest_size=8).digest())
    return number % shard[1] == shard[0] - 1


def is_part(config: pytest.Config) -> bool:
    """Whether options choose among the rows of the files that this run collects."""
    chosen = ("--vk-shard", "-k", "-m", "--deselect", "--lf", "--sw")
    return any(config.getoption(each, default=None) for each in chosen) or any("::" in each for each in config.args)


def name_in_lists(nodeid: str, device: str) -> str:
    """The name that lists of known results have for the row with that id; empty where the row is on another device."""
    file, _, item = nodeid.partition("::")
    ending = f"-{device}]"
    return f"{Path(file).parent.name}/{item.removesuffix(ending)}]" if item.endswith(ending) else ""


def require_same(before: RunHeader, now: RunHeader) -> None:
    """Raises `UserError` unless a run that goes on has the set-up of the one that was ended."""
    for what in ("harness", "loader", "devices", "layers", "shard"):
        if getattr(before, what) != getattr(now, what):
            raise UserError(
                f"--vk-resume: the results are of another run: {what} was {getattr(before, what) or 'none'} and is "
                f"{getattr(now, what) or 'none'}; a run without --vk-resume begins anew"
            )
    if before.options.get("native") != now.options.get("native"):
        raise UserError("--vk-resume: the results are of a run with another --vk-native")

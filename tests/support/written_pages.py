"""Mechanisms that find writes to mapped memory, for tests that must hold with each of them."""

from __future__ import annotations

import pytest

from vkharness.record.mapped_memory import Mapping, Range
from vkharness.record.written_pages import CHOICE, COMPARISON, PROTECTION, why_compared, written_numbers

MECHANISMS = (COMPARISON, PROTECTION)


def choose(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has mappings from now on use a mechanism, and skips the test where this machine has it not."""
    monkeypatch.setenv(CHOICE, mechanism)
    why = why_compared()
    if mechanism == PROTECTION and why is not None:
        pytest.skip(f"no pages are protected here: {why}")


def changes(mapping: Mapping, ignored: list[Range] | None = None) -> list[tuple[int, bytes]]:
    """Returns the changes of a mapping since the last time, after a look."""
    written_numbers()
    return mapping.changes(ignored or [])

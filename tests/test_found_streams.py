"""Streams that once told a mistake in a judge: kept as short as they were found, each with what it must give."""

from __future__ import annotations

import pytest

from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from tests import shorthand

FOUND = [
    pytest.param(
        """
        submit q1
            CLEAR_TRANSFER_WRITE a
            pass 1 EXTERNAL->0 CLEAR/TRANSFER_WRITE > ALL_GRAPHICS, 0->EXTERNAL ALL_GRAPHICS > COPY/TRANSFER_WRITE
            subpass 0
            end
            COPY_TRANSFER_READ a
        """,
        ["READ_AFTER_WRITE"],
        id="a pass hands a write on to other accesses than the read (by the operation matrix)",
    ),
]


def findings_of(text: str) -> list[str]:
    """The kinds of what syncval finds."""
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [found.hazard for each in shorthand.parse(text) for found in validator.consume(each)]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_what_was_once_wrong(text: str, expected: list[str]) -> None:
    assert findings_of(text) == expected

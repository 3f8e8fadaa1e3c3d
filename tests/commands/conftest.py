"""Streams with which tests of single commands start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.interpreted import InterpretedStream


@pytest.fixture
def stream() -> InterpretedStream:
    """In a command buffer that is begun."""
    from tests.support.interpreted import InterpretedStream  # pytest loads this file even when no test here is run

    stream = InterpretedStream()
    stream.begin()
    return stream

"""What tests of single commands start from."""

from __future__ import annotations

import pytest

from tests.support.interpreted import InterpretedStream


@pytest.fixture
def stream() -> InterpretedStream:
    """In a command buffer that is begun."""
    stream = InterpretedStream()
    stream.begin()
    return stream

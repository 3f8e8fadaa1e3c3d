"""The stream that a strategy makes of another one, and the comparison of the outputs of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vkharness.replay.contents.observe import Outputs
from vkharness.trace.calls import Block


def _whole(outputs: Outputs) -> list[Outputs]:
    return [outputs]


@dataclass(frozen=True, slots=True)
class ChangedStream:
    """The blocks to run as recorded."""

    blocks: list[Block]
    parts: Callable[[Outputs], list[Outputs]] = _whole
    """The outputs of a run as those of each instance of the stream."""
    is_other: bool = False
    """Whether a serial run of these blocks leaves something else than one of the stream does."""

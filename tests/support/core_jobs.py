"""Replay jobs of commands that are core since Vulkan 1.4, for a driver process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.trace.codec import load


def words_of(trace: str, device: str, buffer: int) -> dict[str, Any]:
    """The 32-bit words of a buffer after the trace, run one after the other and as recorded, and what was remarked."""
    blocks = load(Path(trace))
    serial, native = run_serial(blocks, device), run_native(blocks, device)
    found = [serial.surfaces[buffer, None].data, native.surfaces[buffer, None].data]
    return {
        "words": [[int(word) for word in memoryview(bytes(data)).cast("I")] for data in found],
        "notes": serial.notes,
    }

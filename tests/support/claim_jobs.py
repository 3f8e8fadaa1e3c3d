"""Recordings of scenarios, as traces in files; for the process of a device (`vkharness.device.process.Worker`)."""

from __future__ import annotations

from pathlib import Path

from vkharness.suite.claims import WITHOUT, Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.twins import Twin
from vkharness.trace.codec import save


def recorded_without(module: str, scenario: str, trace: str) -> dict[str, int]:
    """Records the first twin of a scenario that lacks a dependency; how many blocks the trace has."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    variant = next(each for each in claim.variants if each.kind == WITHOUT)
    session, _, _ = record(claim, Twin(variant).amend, None)
    blocks = session.blocks or []
    save(Path(trace), blocks)
    return {"blocks": len(blocks)}

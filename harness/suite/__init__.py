"""Scenarios: one claim each, recorded on a real device, and the twins that the harness makes of it."""

from harness.rig.rig import Rig
from harness.suite.claims import (
    Claim,
    ExpectedHazard,
    race,
    read_after_write,
    scenario,
    write_after_read,
    write_after_write,
)

__all__ = [
    "Claim",
    "ExpectedHazard",
    "Rig",
    "race",
    "read_after_write",
    "scenario",
    "write_after_read",
    "write_after_write",
]

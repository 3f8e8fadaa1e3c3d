"""Scenarios: one claim each, recorded on a real device, and the twins that the harness makes of it."""

from harness.device.rig import Rig
from harness.scenario.claims import (
    Claim,
    Expect,
    race,
    read_after_write,
    scenario,
    write_after_read,
    write_after_write,
)

__all__ = ["Claim", "Expect", "Rig", "race", "read_after_write", "scenario", "write_after_read", "write_after_write"]

"""Drivers that keep running and break one promise of the specification: what a nightly run has to notice.

The fault driver (`vkharness.device.faults.fault_driver`) breaks the promise that the environment variable
`BREAKS` names.
"""

from __future__ import annotations

from dataclasses import dataclass

BREAKS = "VKHARNESS_BREAKS"
"""Environment variable: the name of the promise that the driver breaks in each process."""


@dataclass(frozen=True, slots=True)
class BrokenDriver:
    """What such a driver does, and the sentence of the specification's `section` that promises otherwise."""

    name: str
    does: str
    sentence: str
    section: str


BROKEN_DRIVERS = (
    BrokenDriver(
        "fill-past-a-barrier",
        "runs each vkCmdFillBuffer after the next copy or dispatch, whatever barrier lies between",
        "If vkCmdPipelineBarrier was recorded outside a render pass instance, the first synchronization scope includes "
        "all commands that occur earlier in submission order.",
        "vkCmdPipelineBarrier",
    ),
    BrokenDriver(
        "fill-of-a-wrong-value",
        "fills with v ^ 1 in place of v",
        "data is the 4-byte word written repeatedly to the buffer to fill size bytes of data.",
        "vkCmdFillBuffer",
    ),
)
"""Each has its code in promises.h, under its name."""

"""Queue family ownership: which families there are, and which resources all of them share.

The halves of a transfer are barriers (`barrier.py`); what a use of contents needs is in `harness/model/ownership.py`.
"""

from __future__ import annotations

from harness.model.program import Program
from harness.model.rule_table import stream_event
from harness.trace.effects import QueueObtained, SharedResource


@stream_event(QueueObtained)
def queue_obtained(program: Program, effect: QueueObtained) -> None:
    """Every queue is of one family. Specification: "Queue Family Properties"."""
    program.families[effect.queue] = effect.family


@stream_event(SharedResource)
def concurrent(program: Program, effect: SharedResource) -> None:
    """A resource of VK_SHARING_MODE_CONCURRENT is everybody's. Specification: "Resource Sharing Mode"."""
    program.ownership.share(effect.resource)

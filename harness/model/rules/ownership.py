"""Queue family ownership: which families there are, and which resources all of them share.

The halves of a transfer are barriers (`barrier.py`); what a use of contents needs is in `harness/model/ownership.py`.
"""

from __future__ import annotations

from harness.model.program import Program
from harness.model.registry import occurrence
from harness.trace.effects import Concurrent, QueueObtained


@occurrence(QueueObtained)
def queue_obtained(program: Program, effect: QueueObtained) -> None:
    """Every queue is of one family. Specification: "Queue Family Properties"."""
    program.families[effect.queue] = effect.family


@occurrence(Concurrent)
def concurrent(program: Program, effect: Concurrent) -> None:
    """A resource of VK_SHARING_MODE_CONCURRENT is everybody's. Specification: "Resource Sharing Mode"."""
    program.ownership.share(effect.resource)

"""A thin, explicit device layer for scenarios: instance, device, resources and submits, one call each.

Every call goes through the `vulkan` package, so that an attached mirror sees it. Synchronization is never implied: a
resource has no tracked state, a submit waits for nothing, and a barrier is exactly the barrier that was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vkharness.rig.command_buffers import Commands
from vkharness.rig.non_coherent_memory import NonCoherentMemory
from vkharness.rig.shared_objects import SharedObjects
from vkharness.rig.sparse import SparseResources
from vkharness.rig.swapchains import Swapchains


class Rig(SparseResources, Swapchains, SharedObjects, NonCoherentMemory):
    """The device of one scenario with everything that a scenario makes, records and submits; see `RigDevice`."""

    @contextmanager
    def submission(self) -> Iterator[Commands]:
        """Records a new command buffer for the first queue and submits it at the end of the block."""
        with self.commands() as commands:
            yield commands
        self.submit(commands)

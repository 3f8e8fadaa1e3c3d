"""Effects on the physical devices of a device group, as data (specification: "Device Group Functionality").

Judges meet neither a device mask nor a device index: `vkharness.commands.device_groups` gives each physical device
commands, queues and memory of its own.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from vkharness.spans import Span


@dataclass(frozen=True, slots=True)
class DeviceMask:
    """The physical devices that execute what comes next in a command buffer. None stands for those with which its
    recording was begun."""

    mask: int | None


@dataclass(frozen=True, slots=True)
class DependencyEnd:
    """One end of a barrier between two physical devices (VK_DEPENDENCY_DEVICE_GROUP_BIT).

    Its two ends are the signal and the wait of a semaphore, whose stages are those of the barrier. The signal has the
    first access scope, the wait the second one. It is in no order with signals of the program.
    """

    accesses: int
    _: KW_ONLY
    ranges: tuple[tuple[int, tuple[Span, ...]], ...] | None = None
    """Address spaces and spans to which the access scopes are limited; None for all memory."""
    moves: bool = False
    """Whether the barrier transitions layouts or transfers ownership, which comes after the wait."""

"""The strategies, and the runs of a stream under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from vkharness.replay.contents.observe import OutputDifference, Outputs, compare
from vkharness.replay.native_strategies.background_load import run_with_late_queue, run_with_load
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.replay.native_strategies.execution_relation import BatchGraph, EndlessRunError
from vkharness.replay.native_strategies.instances import with_instances
from vkharness.replay.native_strategies.large_ranges import with_large_ranges
from vkharness.replay.native_strategies.spinning_shaders import with_spinning_shaders
from vkharness.replay.native_strategies.submit_orders import with_other_order
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.replay.schedule.replayable import replayable
from vkharness.trace.calls import Block

PLAIN = "plain"


def _as_recorded(blocks: list[Block], number: int) -> ChangedStream:
    return ChangedStream(blocks)


def _run_plain(blocks: list[Block], device: str, number: int) -> Outputs:
    return run_native(blocks, device)


@dataclass(frozen=True, slots=True)
class NativeStrategy:
    """One way to run a stream as recorded."""

    says: str
    """The change that it makes to a run, in a sentence."""
    change: Callable[[list[Block], int], ChangedStream] = _as_recorded
    """From the blocks and the number of the run, from 0 on, to what is run. Raises `UserError`, with the reason, for a
    stream that does not allow it."""
    run: Callable[[list[Block], str, int], Outputs] = _run_plain
    """Runs blocks on a device; it has the number of the run, too."""
    grows: bool = False
    """Whether more invocations run than in the stream."""


STRATEGIES: Mapping[str, NativeStrategy] = {
    PLAIN: NativeStrategy("The stream runs as recorded."),
    "spin": NativeStrategy(
        "Shaders spin before they store; in later runs at their beginning, and those of the last commands not at all.",
        change=with_spinning_shaders,
    ),
    "instances": NativeStrategy(
        "Eight instances of the stream, each with its own memory, are submitted before the host waits for one.",
        change=with_instances,
    ),
    "background": NativeStrategy(
        "Fills and copies of large buffers are under way on the same queue and on one of each family.",
        run=run_with_load,
    ),
    "late": NativeStrategy(
        "Fills and copies of large buffers come before what is submitted to one queue, another queue in each run.",
        run=run_with_late_queue,
    ),
    "large": NativeStrategy(
        "All ranges of a stream of fills, copies and dispatches are 1024 times as large.",
        change=with_large_ranges,
        grows=True,
    ),
    "orders": NativeStrategy(
        "Submits to different queues come in other orders that semaphores allow.", change=with_other_order
    ),
}
"""The strategies by name."""


class WrongRun(NamedTuple):
    """A run that left other bytes than it should have."""

    expected: Outputs
    observed: Outputs
    differences: list[OutputDifference]


class NativeRuns:
    """The runs of one stream on a device, under any strategy."""

    def __init__(self, blocks: list[Block], device: str, serial: Outputs) -> None:
        """`serial` is what the serial run of the blocks left."""
        self.blocks, self.device, self.serial = blocks, device, serial

    @cached_property
    def replayable(self) -> list[Block]:
        """The stream as a replay runs it. Raises `UserError` where it cannot."""
        return replayable(self.blocks)

    @cached_property
    def graph(self) -> BatchGraph:
        """The order of the batches of that. Raises `UserError` for a malformed call."""
        return BatchGraph(self.replayable)

    def run(self, name: str, number: int) -> WrongRun | None:
        """Makes the run of a number, from 0 on, under a strategy; None when it left what the serial run left.

        A stream that was changed may leave something else by right: another rounding, other contents of memory that
        nobody wrote. So a difference counts if the serial run of what was changed does not have it, too.
        Raises `UserError`, with the reason, for a stream that does not allow the strategy or cannot be replayed, and
        `EndlessRunError` for one that may never end.
        """
        strategy, blocks = STRATEGIES[name], self.blocks
        if reason := self.graph.endless():
            raise EndlessRunError(reason)
        changed = strategy.change(blocks if name == PLAIN else self.replayable, number)
        parts = changed.parts(strategy.run(changed.blocks, self.device, number))
        expected = [self.serial] * len(parts)
        wrong = None if changed.is_other else _first_wrong(expected, parts)
        if changed.blocks is blocks or (wrong is None and not changed.is_other):
            return wrong
        return _first_wrong(changed.parts(run_serial(changed.blocks, self.device)), parts)


def _first_wrong(expected: list[Outputs], observed: list[Outputs]) -> WrongRun | None:
    for one, other in zip(expected, observed, strict=True):
        differences = compare(one, other)
        if differences:
            return WrongRun(one, other, differences)
    return None

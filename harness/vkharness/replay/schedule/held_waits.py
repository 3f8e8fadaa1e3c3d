"""Waits for events that the host sets after the submit: the order in which one queue can run the steps of several.

A queue stops at such a wait. What it would do next comes after the host's vkSetEvent, and so does every later batch of
that queue. A wait that nothing ends in the trace holds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call


class Executed(Protocol):
    """One block in one execution, as `Step` has it."""

    @property
    def block(self) -> Block:
        """The block."""

    @property
    def inside(self) -> bool:
        """Whether the stream cannot be cut before it."""


Item = TypeVar("Item", bound=Executed)


class HeldWaits(Generic[Item]):
    """Follows the operations on events of one trace, in the order in which they run."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._to_come: Counter[int] = Counter(
            block.args.get("event", 0) for block in blocks if isinstance(block, Call) and block.name == "vkSetEvent"
        )
        """By event, how often the host will set it."""
        self._signaled: set[int] = set()
        self._held: dict[int, tuple[Item, Iterator[Item]]] = {}
        """By queue, the step that it stopped at, and those that follow in its batch."""

    def follow_host(self, call: Call) -> None:
        """The host sets or resets an event."""
        name = main_name(call.name)
        if name == "vkSetEvent":
            self._to_come[call.args["event"]] -= 1
            self._signaled.add(call.args["event"])
        elif name == "vkResetEvent":
            self._signaled.discard(call.args["event"])

    def pass_on(self, queue: int, steps: Iterator[Item]) -> Iterator[Item]:
        """The steps of a batch up to a wait that does not end yet. Then the queue is among `held`."""
        for step in steps:
            if not step.inside and self._is_held(step):
                self._held[queue] = step, steps
                return
            self._apply(step)
            yield step

    def is_held(self, queue: int) -> bool:
        """Whether a queue stopped at a wait."""
        return queue in self._held

    def ready(self) -> int | None:
        """A queue whose wait ends now; None for none."""
        return next((queue for queue, (step, _) in self._held.items() if not self._is_held(step)), None)

    def take(self, queue: int) -> Iterator[Item]:
        """The steps of a queue from its wait on."""
        step, steps = self._held.pop(queue)
        return chain((step,), steps)

    def _is_held(self, step: Item) -> bool:
        block = step.block
        if not isinstance(block, Call) or not main_name(block.name).startswith("vkCmdWaitEvents"):
            return False
        events = block.args.get("pEvents") or ()
        return any(each not in self._signaled and self._to_come[each] > 0 for each in events)

    def _apply(self, step: Item) -> None:
        block = step.block
        if isinstance(block, Call) and block.name.startswith("vkCmdSetEvent"):
            self._signaled.add(block.args["event"])
        elif isinstance(block, Call) and block.name.startswith("vkCmdResetEvent"):
            self._signaled.discard(block.args["event"])

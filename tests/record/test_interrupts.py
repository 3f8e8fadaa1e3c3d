"""Signal handlers of a program that raise while the mirror judges."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import vkharness
from vkharness.findings import Finding
from vkharness.fuzz.front_programs import deaf_driver
from vkharness.late_analysis import LateAnalysis
from vkharness.trace.calls import Block, block_name

pytestmark = pytest.mark.driver
FILLS = 10
INTERRUPTED = 4
"""The fill that is judged when the interrupt comes."""


class Interrupted(LateAnalysis):
    """One that is interrupted once."""

    def __init__(self) -> None:
        super().__init__()
        self.fills: list[int] = []
        self.ended = 0

    def step(self, block: Block) -> list[Finding]:
        self.ended += block_name(block) == "vkEndCommandBuffer"
        return super().step(block)

    def _record(self, index: int, name: str, args: dict[str, Any], *more: Any) -> None:
        if name == "vkCmdFillBuffer":
            self.fills.append(args["dstOffset"])
            if len(self.fills) == INTERRUPTED:
                raise KeyboardInterrupt
        super()._record(index, name, args, *more)


@pytest.mark.parametrize("asks", [False, True])
def test_an_interrupt_loses_no_call_but_the_one_that_it_meets(asks: bool) -> None:
    """All commands of the frame that waited to be judged were lost, and the call that brought them; nothing said so."""
    mirror, raised = Interrupted(), list[str]()
    with deaf_driver() as vk, vkharness.attach(mirror=mirror) as session:
        commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 32)

        def call(name: str, *arguments: Any) -> None:
            try:
                getattr(vk, name)(commands, *arguments)
            except KeyboardInterrupt:
                raised.append(name)

        call("vkBeginCommandBuffer", vk.ffi.new("VkCommandBufferBeginInfo *"))
        for at in range(FILLS):
            call("vkCmdFillBuffer", buffer, 4 * at, 4, 0)
        if asks:
            with contextlib.suppress(KeyboardInterrupt):
                session.findings  # noqa: B018
        call("vkEndCommandBuffer")
        assert session.verdict == "unknown"
    assert mirror.fills == [4 * at for at in range(FILLS)]
    assert mirror.ended == 1 and len(raised) == (session.log is None or not asks)
    (error,) = session.internal_errors
    assert "vkCmdFillBuffer" in error and "KeyboardInterrupt" in error

"""Replays of traces with sparse memory: run where the device binds it, refused in one line elsewhere."""

from __future__ import annotations

import pytest

from tests.commands.test_sparse_memory import BLOCK, Sparse
from vkharness.findings import UserError
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.trace.calls import Block


def two_ranges() -> list[Block]:
    """A fill of one range and a copy of another one on the same memory."""
    stream = Sparse()
    a, b, memory = stream.sparse_buffer(), stream.buffer(16), stream.memory(BLOCK)
    stream.bind(a, (0, memory, 0), (1, memory, 0))
    stream.wait_idle()
    stream.begin()
    stream.fill(a, 0x01020304, 0, 16)
    stream.barrier()
    stream.copy(a, b, 16, from_=BLOCK)
    stream.submit_after()
    return stream.blocks


@pytest.mark.driver
def test_a_driver_without_sparse_binding_refuses_in_one_line() -> None:
    with pytest.raises(UserError, match=r"makes a sparse resource, and lavapipe has no queue with sparse binding$"):
        run_serial(two_ranges(), "lavapipe")


def test_orders_in_which_memory_is_bound_are_not_explored() -> None:
    found = run_reorders(two_ranges(), [("reverse", 0)], "lavapipe")
    assert found.reason == "orders in which sparse memory is bound are not explored" and not found.executed

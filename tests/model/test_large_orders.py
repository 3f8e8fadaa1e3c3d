"""An order of very many nodes for few calls: what each node keeps grows with the number of nodes before it."""

from __future__ import annotations

import pytest

from harness.findings import Place
from harness.model.order import ACTION, NODES_A_UNIT, ExecutionOrder, Node
from harness.trace.work_budget import UNCOUNTED, UNITS, OverBudget


def test_an_order_out_of_proportion_to_its_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    free = NODES_A_UNIT * (UNCOUNTED + 1)
    monkeypatch.setattr(UNITS, "left", 10 * (UNCOUNTED + 1))
    order, node = ExecutionOrder(), Node(ACTION, "A", Place(1, "an example", None))
    with pytest.raises(OverBudget, match="steps of the model"):
        for _ in range(free + 20):
            order.add(node)
    assert len(order.nodes) == free + 10

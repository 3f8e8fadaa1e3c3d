"""An order of very many nodes for few calls: each node costs units of the work budget."""

from __future__ import annotations

import pytest

from vkharness.findings import Place
from vkharness.model.order import A_NODE, ACTION, ExecutionOrder, Node
from vkharness.trace.work_budget import UNITS, OverBudget


def test_an_order_out_of_proportion_to_its_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UNITS, "left", 5 * A_NODE)
    order, node = ExecutionOrder(), Node(ACTION, "A", Place(1, "an example", None))
    with pytest.raises(OverBudget, match="steps of the second judge"):
        for _ in range(10):
            order.add(node)
    assert len(order.nodes) == 5

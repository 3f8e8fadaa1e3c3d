"""`vkharness fuzz layer|orders`: what a user sees when everything agrees, and when something does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vkharness.cli import main
from vkharness.device.process import Worker
from vkharness.fuzz import layer_fuzz, order_fuzz
from vkharness.fuzz.random_steps import Step, make


def fuzz(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["fuzz", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def finds_fills(_worker: Worker, steps: Sequence[Step], *_: Any) -> dict[str, Any]:
    """A judge that has something against fills."""
    bad = any(step[0] == "fill" for step in steps)
    wrong = ["a fill in block 9"] * bad
    return {"verdict": "broken" if bad else "held 4", "calls": 9, "agreed": 1, "expected": {}, "disagreements": wrong}


HAS_FILL, HAS_NONE = (
    next(seed for seed in range(99) if any(step[0] == "fill" for step in make(seed, ["events"])) is wanted)
    for wanted in (True, False)
)


def test_layer_prints_the_smallest_stream_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(layer_fuzz, "ask", finds_fills)
    assert fuzz("layer", "--first", str(HAS_FILL), "--count", "1", "--family", "events") == 1
    told = capsys.readouterr()
    assert told.err == ""
    begin, _, rest = told.out.partition(f"smallest stream of seed {HAS_FILL}:\n")
    assert begin.startswith(f"seeds {HAS_FILL} to {HAS_FILL}, events\n2 streams, 18 commands: ")
    steps = eval(rest.rpartition("]")[0] + "]")
    assert [step[0] for step in steps] == ["fill"]
    assert rest.endswith("]\na fill in block 9\n")


def test_layer_exits_0_when_all_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(layer_fuzz, "ask", finds_fills)
    assert fuzz("layer", "--first", str(HAS_NONE), "--count", "1", "--family", "events") == 0
    assert "0 streams disagree" in capsys.readouterr().out


def test_orders_prints_the_smallest_stream_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(order_fuzz, "ask", finds_fills)
    assert fuzz("orders", "--count", "40") == 1
    told = capsys.readouterr().out
    assert "broken" in told
    assert [step[0] for step in eval(told.partition(":\n")[2])] == ["fill"]


@pytest.mark.parametrize(
    "arguments", [["agreement", "dragons"], ["layer", "--family", "dragons"], ["orders", "--seed"]]
)
def test_what_does_not_exist_is_a_mistake_of_usage(arguments: list[str]) -> None:
    assert fuzz(*arguments) == 2

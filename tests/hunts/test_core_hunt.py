"""The native core and Python alone on random streams: a short run of `python -m hunts core`, and what it prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from hunts import core_answers, core_hunt
from hunts.__main__ import hunts
from hunts.core_answers import KINDS, Items
from hunts.core_hunt import CoreAndPython, Difference, Pair, hunt
from hunts.core_scenarios import compare_scenarios
from tests.support.suite_runs import ROOT
from vkharness import native
from vkharness.cli import main
from vkharness.suite.observe_scenarios import scenarios

SEED = 20261123
PLAIN = ["text", "recordings", "long", "ranges", "calls", "orders", "changed"]
"""Kinds of streams that need no Vulkan."""
needs_core = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")


@needs_core
def test_both_say_the_same_of_random_streams(fresh_seed: int) -> None:
    """Of streams that nobody has seen, too; the failure says which."""
    counts: Counter[str] = Counter()
    with CoreAndPython() as both:
        hunt(both.ask, range(SEED, SEED + 120), PLAIN, counts)
        print(f"seed {fresh_seed}")
        hunt(both.ask, range(fresh_seed, fresh_seed + 40), PLAIN, counts)
    assert all(counts[each] for each in PLAIN)
    assert counts["lines said of them"] > 4 * 160


@needs_core
@pytest.mark.driver
def test_both_record_the_same_and_say_the_same_of_programs(fresh_seed: int) -> None:
    counts: Counter[str] = Counter()
    with CoreAndPython("lavapipe") as both:
        print(f"seed {fresh_seed}")
        hunt(both.ask, range(fresh_seed, fresh_seed + 40), ["front"], counts)
        hunt(both.ask, range(fresh_seed, fresh_seed + 15), ["frames"], counts)
        hunt(both.ask, range(SEED, SEED + 6), ["steps"], counts)
        several = scenarios([ROOT / "scenarios" / "barrier" / "scenario_accesses.py"])[:3]
        assert list(compare_scenarios(both.ask, both.ask_anew, several, counts)) == []
    assert counts["steps"] == 6 and (counts["front"], counts["frames"]) == (40, 15)
    assert counts["variants of scenarios"] > 3


def planted(target: str, arguments: Mapping[str, Any]) -> Pair:
    """A native core that never finds that a write follows a read."""
    job = getattr(core_answers, target.partition(":")[2])
    pure = job(**arguments)
    kinds = dict(KINDS)

    def wrong(judge: Any, items: Items) -> Iterator[str]:
        yield from (line for line in judge(items) if "WRITE_AFTER_READ" not in line)

    for name, kind in kinds.items():
        KINDS[name] = kind._replace(judge=partial(wrong, kind.judge))
    found = job(**arguments)
    KINDS.update(kinds)
    return found, pure


def test_a_difference_is_the_smallest_stream() -> None:
    with pytest.raises(Difference) as caught:
        hunt(planted, range(SEED, SEED + 100), ["text"], Counter())
    told, _, text = str(caught.value).partition("\n\n")
    said = told.splitlines()
    assert said[0].startswith("text, seed ")
    assert said[1].startswith("native core: ") and said[2].startswith("pure Python: ") and "WRITE_AFTER_READ" in said[2]
    assert len(text.splitlines()) == 3, text


SAID = {"a": {"lines": ["1"]}, "b": {"lines": ["2"]}}


@pytest.mark.parametrize(
    ("pure", "anew", "told", "counted"),
    [
        ([SAID], None, 0, "variants of scenarios"),
        ([SAID | {"b": {"lines": ["3"]}}, SAID | {"a": {"lines": ["3"]}}], None, 0, "variants of scenarios"),
        ([SAID | {"b": {"lines": ["3"]}}] * 3, ["2", "3"], 1, "variants of scenarios"),
        ([SAID | {"b": {"lines": ["3"]}}] * 3, ["4", "3"], 1, "variants of scenarios"),
        ([SAID | {"b": {"lines": ["3"]}}] * 3, ["4", "5"], 0, "variants that are others in each process"),
        ([{"died": "killed"}] * 3, ["2", None], 2, "variants of scenarios"),
    ],
    ids=["alike", "alike in turn", "different", "pure Python differs", "both differ", "one died"],
)  # fmt: skip
def test_a_difference_is_none_of_the_program(
    pure: list[dict[str, Any]], anew: list[str | None] | None, told: int, counted: str
) -> None:
    """Pure Python says `pure`, one after the other; in processes of their own both say `anew` of variant b."""
    answers, counts = iter(pure), Counter[str]()

    def ask_anew(target: str, arguments: Mapping[str, Any]) -> Pair:
        assert anew is not None
        of_core, of_pure = ({"died": "killed"} if line is None else SAID | {"b": {"lines": [line]}} for line in anew)
        return of_core, of_pure

    named = [(ROOT / "scenarios" / "copy" / "x.py", "scenario_x")]
    found = list(compare_scenarios(lambda target, arguments: (SAID, next(answers)), ask_anew, named, counts))
    assert len(found) == told and all(each.startswith("copy/scenario_x[") for each in found)
    assert counts[counted] >= 1 and sum(counts.values()) == 2


@pytest.mark.parametrize(
    ("name", "told"), [("vkGetFenceStatus", 0), ("vkGetSemaphoreCounterValue", 0), ("vkGetBufferDeviceAddress", 1)]
)
def test_behind_another_answer_to_a_poll_a_program_is_another_one(name: str, told: int) -> None:
    lines = [f"Call(index=4, name='{name}', result={result})" for result in (0, 1)]
    of_core, of_pure = ({"whole": {"lines": ["same", line, f"behind {line}"]}} for line in lines)
    counts = Counter[str]()

    def ask(target: str, arguments: Mapping[str, Any]) -> Pair:
        return of_core, of_pure

    found = list(compare_scenarios(ask, ask, [(ROOT / "x.py", "scenario_x")], counts))
    assert len(found) == told and counts["variants that polled something else"] == 1 - told


def fuzz(*arguments: str) -> int:
    """The exit code of `python -m hunts core`."""
    with pytest.raises(SystemExit) as left:
        main(["core", *arguments], hunts)
    assert isinstance(left.value.code, int)
    return left.value.code


class Stub:
    """Stands for both processes."""

    def __init__(self, device: str | None) -> None:
        assert device is None

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    ask = ask_anew = staticmethod(planted)


def test_the_command_prints_what_differs_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(core_hunt, "CoreAndPython", Stub)
    assert fuzz("--count", "100", "--kind", "text", "--device", "none") == 1
    assert capsys.readouterr().out.startswith("different:\ntext, seed ")


def test_the_command_prints_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(core_hunt, "CoreAndPython", Stub)
    monkeypatch.setattr(Stub, "ask", staticmethod(lambda target, arguments: (planted(target, arguments)[1],) * 2))
    assert fuzz("--count", "20", "--seed", "7", "--kind", "text", "--device", "none") == 0
    assert capsys.readouterr().out.startswith("20 text, ")


@pytest.mark.parametrize("said", ["pure Python (no native core was built)"])
def test_without_a_native_core_there_is_nothing_to_compare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    monkeypatch.setattr(CoreAndPython, "ask", lambda *_: ({"in use": said}, {"in use": said}))
    assert fuzz("--device", "none") == 2
    assert capsys.readouterr().err == f"vkharness: there is no native core to compare with Python: {said}\n"


def test_what_one_says_less_is_a_difference() -> None:
    lines = [(["a"], ["a", "b"]), (["a", "b"], ["a"])]
    told = [core_hunt.difference({"lines": one}, {"lines": other}) for one, other in lines]
    assert told == [["native core: says no more", "pure Python: b"], ["native core: b", "pure Python: says no more"]]

"""The native core and Python alone on random streams: a short run of `vkharness fuzz core`, and what it prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from harness import native
from harness.cli import main
from harness.fuzz import core_answers, core_fuzz
from harness.fuzz.core_answers import KINDS, Items
from harness.fuzz.core_fuzz import CoreAndPython, Difference, Pair, hunt
from harness.suite.core_scenarios import compare_scenarios
from harness.suite.observe_scenarios import scenarios
from tests.support.suite_runs import ROOT

SEED = 20261123
PLAIN = ["text", "recordings", "long", "calls"]
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
        hunt(both.ask, range(SEED, SEED + 6), ["steps"], counts)
        several = scenarios([ROOT / "scenarios" / "barrier" / "scenario_accesses.py"])[:3]
        assert list(compare_scenarios(both.ask, several, counts)) == []
    assert counts["steps"] == 6 and counts["front"] == 40
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


def fuzz(*arguments: str) -> int:
    """The exit code of `vkharness fuzz core`."""
    with pytest.raises(SystemExit) as left:
        main(["fuzz", "core", *arguments])
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

    ask = staticmethod(planted)


def test_the_command_prints_what_differs_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(core_fuzz, "CoreAndPython", Stub)
    assert fuzz("--count", "100", "--kind", "text", "--device", "none") == 1
    assert capsys.readouterr().out.startswith("different:\ntext, seed ")


def test_the_command_prints_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(core_fuzz, "CoreAndPython", Stub)
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
    told = [core_fuzz.difference({"lines": one}, {"lines": other}) for one, other in lines]
    assert told == [["native core: says no more", "pure Python: b"], ["native core: b", "pure Python: says no more"]]

"""Syncval and the model on random streams: a short run of `vkharness fuzz agreement`, and what it prints."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from vkharness.cli import main
from vkharness.fuzz.agreement_fuzz import Disagreement, hunt
from vkharness.fuzz.random_text import FEATURES
from vkharness.syncval.validator import Validator

SEED = 20261121
COUNT = 25
"""Streams for each feature, and for all together."""
UNSEEN = 8
"""The same, of a seed that is new in each run."""


@pytest.mark.parametrize("features", [*((each,) for each in FEATURES), ()], ids="+".join)
def test_they_agree(features: tuple[str, ...]) -> None:
    counts: Counter[str] = Counter()
    print(f"seed {SEED}, {'+'.join(features) or 'everything'}")
    hunt(COUNT, SEED, features, counts)
    assert counts["streams"] >= COUNT
    assert 0 < counts["with hazards"] < counts["streams"]


@pytest.mark.parametrize("features", [*((each,) for each in FEATURES), ()], ids="+".join)
def test_they_agree_on_streams_that_nobody_has_seen(features: tuple[str, ...], fresh_seed: int) -> None:
    """The rules were tuned on the streams of other seeds. These are new in each run; the failure says which."""
    print(f"seed {fresh_seed}, {'+'.join(features) or 'everything'}")
    hunt(UNSEEN, fresh_seed, features, Counter())


def test_a_disagreement_is_the_smallest_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that finds nothing is caught, with two accesses and nothing else."""
    monkeypatch.setattr(Validator, "consume", lambda self, stream_event: [])
    with pytest.raises(Disagreement) as caught:
        hunt(COUNT, SEED, ("images",), Counter())
    told, _, text = str(caught.value).partition("\n\n")
    assert told.startswith("model only: unordered")
    assert len(text.splitlines()) == 3


def fuzz(*arguments: str) -> int:
    """The exit code of `vkharness fuzz agreement`."""
    with pytest.raises(SystemExit) as left:
        main(["fuzz", "agreement", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_command_prints_counts_and_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("--count", "10", "--seed", "7", "images") == 0
    told = capsys.readouterr()
    assert told.out.startswith("images: 10 streams, ")
    assert told.out.endswith(", seed 7\n")
    assert told.err == ""


def test_the_command_exits_1_with_the_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Validator, "consume", lambda self, stream_event: [])
    assert fuzz("--count", "20", "images") == 1
    told = capsys.readouterr().out
    assert told.startswith("disagreement:\nmodel only: unordered")
    assert "\n\nsubmit q1\n    " in told


def test_the_command_says_what_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert fuzz("--count", "1") == 2
    assert capsys.readouterr().err == "vkharness: fuzz agreement needs Hypothesis: install vkharness[fuzz]\n"

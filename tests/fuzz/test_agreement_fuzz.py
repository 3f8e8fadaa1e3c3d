"""Syncval and the model on streams of the fuzzer: a short run of `tests.fuzz.agreement_fuzz`."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.syncval.validator import Validator
from tests.fuzz import fuzzed
from tests.fuzz.agreement_fuzz import Disagreement, hunt

SEED = 20261121
COUNT = 60
"""Streams for each feature, and for all together."""


@pytest.mark.parametrize("features", [*((each,) for each in fuzzed.FEATURES), ()], ids="+".join)
def test_they_agree(features: tuple[str, ...]) -> None:
    counts: Counter[str] = Counter()
    print(f"seed {SEED}, {'+'.join(features) or 'everything'}")
    hunt(COUNT, SEED, features, counts)
    assert counts["streams"] >= COUNT
    assert 0 < counts["with hazards"] < counts["streams"]


def test_a_disagreement_is_the_smallest_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that finds nothing is caught, with two accesses and nothing else."""
    monkeypatch.setattr(Validator, "consume", lambda self, stream_event: [])
    with pytest.raises(Disagreement) as caught:
        hunt(COUNT, SEED, ("images",), Counter())
    told, _, text = str(caught.value).partition("\n\n")
    assert told.startswith("model only: unordered")
    assert len(text.splitlines()) == 3

"""Scenarios that the native core and Python alone record and judge: all that each says of every variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.fuzz.core_answers import of_session
from harness.fuzz.core_fuzz import Pair, difference
from harness.suite.claims import Claim, Variant
from harness.suite.judge_scenario import load_module, record
from harness.suite.observe_scenarios import Named
from harness.suite.twins import Twin

TRIES = 3
"""Times that both are asked where they differ: a host that polls makes as many calls as it takes."""


def compare_scenarios(
    ask: Callable[[str, Mapping[str, Any]], Pair], several: Sequence[Named], counts: Counter[str]
) -> Iterator[str]:
    """What of scenarios the native core and Python say differently, a few lines for each variant. Adds to `counts` how
    many variants there were, and how many this device cannot record."""
    for file, name in several:
        for _ in range(TRIES):
            native, pure = ask(f"{__name__}:run", {"module": str(file), "scenario": name})
            if native == pure:
                break
        for variant in native.keys() | pure.keys():
            answers = [each.get(variant, {"lines": [f"no answer: {each.get('died')}"]}) for each in (native, pure)]
            counts["not recorded here" if "problem" in answers[0] else "variants of scenarios"] += 1
            if answers[0] != answers[1]:
                yield "\n".join([f"{file.parent.name}/{name}[{variant}]", *difference(*answers)])


def run(module: str, scenario: str) -> dict[str, Any]:
    """A job: by variant, the lines that are said of it, with the problem of one that the device cannot record."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    return {variant.name: _answer(claim, variant) for variant in claim.variants}


def _answer(claim: Claim, variant: Variant) -> dict[str, Any]:
    try:
        return {"lines": list(of_session(record(claim, Twin(variant).amend, None)[0]))}
    except UserError as error:
        return {"lines": [], "problem": str(error)}

"""Scenarios that the native core and Python alone record and judge: all that each says of every variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hunts.core_answers import of_session
from hunts.core_hunt import Pair, difference
from vkharness.findings import UserError
from vkharness.suite.claims import Claim, Variant
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import Named
from vkharness.suite.twins import Twin

TRIES = 3
"""Times that both are asked where they differ: a host that polls makes as many calls as it takes."""
POLLS = ("vkGetEventStatus", "vkGetFenceStatus", "vkGetQueryPoolResults", "vkGetSemaphoreCounterValue")
"""Calls whose answer depends on how far the device is. Behind another answer the program is another one."""
Ask = Callable[[str, Mapping[str, Any]], Pair]
Answers = tuple[list[Any], list[Any]]
"""Answers of the native core and those of Python alone for one variant, in turn."""


def compare_scenarios(ask: Ask, ask_anew: Ask, several: Sequence[Named], counts: Counter[str]) -> Iterator[str]:
    """Yields the differences between the native core and Python alone in scenarios, a few lines for each variant.

    Adds to `counts` how many variants there were, how many this device cannot record, of how many both say something
    else in each process, such as those that write addresses, and to how many the driver answered otherwise. `ask_anew`
    asks processes that have answered nothing yet.
    """
    for file, name in several:
        job = f"{__name__}:run", {"module": str(file), "scenario": name}
        said = _asked(ask, job, TRIES, {})
        different = [variant for variant, (native, pure) in said.items() if not _alike(native, pure)]
        anew = _asked(ask_anew, job, 1, {}) if different else {}
        for variant, (native, pure) in said.items():
            if variant not in different:
                counts["not recorded here" if "problem" in native[-1] else "variants of scenarios"] += 1
            elif variant in anew and all(map(_is_another, (native, pure), anew[variant])):
                counts["variants that are others in each process"] += 1
            elif _polled_otherwise(native[-1], pure[-1]):
                counts["variants that polled something else"] += 1
            else:
                counts["variants of scenarios"] += 1
                yield "\n".join([f"{file.parent.name}/{name}[{variant}]", *difference(native[-1], pure[-1])])


def _asked(ask: Ask, job: tuple[str, Mapping[str, Any]], times: int, said: dict[str, Answers]) -> dict[str, Answers]:
    """By variant, what both say, until they say the same of each; under "*" where both processes died."""
    for _ in range(times):
        pair = ask(*job)
        variants = dict.fromkeys(name for each in pair if "died" not in each for name in each)
        for variant in variants or ["*"]:
            for kept, each in zip(said.setdefault(variant, ([], [])), pair, strict=True):
                kept.append(each.get(variant, {"died": each.get("died"), "lines": ["no answer"]}))
        if all(_alike(*answers) for answers in said.values()):
            break
    return said


def _alike(several: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one of some answers is one of the others."""
    return any(each in others and "died" not in each for each in several)


def _polled_otherwise(native: Any, pure: Any) -> bool:
    """Whether the first that two answers say differently is what the driver answered to a poll."""
    lines = next((each for each in zip(native["lines"], pure["lines"], strict=False) if each[0] != each[1]), ("", ""))
    return any(all(f"name='{poll}'" in line for line in lines) for poll in POLLS)


def _is_another(several: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether there are answers, and none of some is one of the others."""
    return not _alike(several, others) and not any("died" in each for each in (*several, *others))


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

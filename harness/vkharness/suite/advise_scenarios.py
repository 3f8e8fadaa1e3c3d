"""Advice on scenarios: no dependency without which a scenario has a hazard may be called needless."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from vkharness.advising.advise import advise
from vkharness.advising.written import kind_of, shape_of
from vkharness.report.advice import AdviceKind
from vkharness.suite.claims import WITHOUT, Claim, Variant
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.mend_scenarios import Named
from vkharness.suite.mutation.mutant import DependencyLog
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.suite.twins import Twin
from vkharness.trace.calls import Block, Call, block_name


def advise_scenarios(
    several: Sequence[Named], device: str, processes: int, advance: Callable[[int], object] = lambda _: None
) -> Iterator[dict[str, Any]]:
    """Yields the advice on each whole scenario, as `run` gives it. One that cannot be recorded has a `problem`."""
    tasks = [{"module": str(file), "scenario": name} for file, name in several]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance=advance):
        file, name = several[at]
        title = {"scenario": f"{file.parent.name}/{name}", "problem": ""}
        yield title | ({"problem": answer.problem} if isinstance(answer, NoAnswer) else answer)


def run(module: str, scenario: str) -> dict[str, Any]:
    """`kinds` counts the advice on a whole scenario. `needless` names the dependencies of which all barriers and waits
    are called needless although the twin without them has a hazard. Raises `UserError` when the device cannot record
    the scenario."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    session, _, _ = record(claim, DependencyLog().amend, None)
    blocks = session.blocks or []
    advice = advise(blocks).advice
    needless = {at for each in advice if each.kind is AdviceKind.ORDERS_NOTHING for at in each.origins}
    wrong = [
        each.dependency
        for each, hazards in claim.variants.items()
        if needless and each.kind == WITHOUT and hazards
        if (lacking := _only_in_whole(claim, each, blocks)) and lacking <= needless
    ]
    return {"kinds": dict(Counter(each.kind.value for each in advice)), "needless": wrong}


def _only_in_whole(claim: Claim, variant: Variant, blocks: Sequence[Block]) -> set[int]:
    """The indices of the barriers and waits that the twin without a dependency lacks."""
    session, _, _ = record(claim, Twin(variant).amend, None)
    matcher = SequenceMatcher(None, _rows(blocks), _rows(session.blocks or []), autojunk=False)
    lacking = [at for tag, begin, end, _, _ in matcher.get_opcodes() if tag != "equal" for at in range(begin, end)]
    return {block.index for at in lacking if isinstance(block := blocks[at], Call) and kind_of(block)}


def _rows(blocks: Sequence[Block]) -> list[Hashable]:
    return [(block_name(each), shape_of(each.args) if isinstance(each, Call) else None) for each in blocks]

"""Twins of scenarios without a dependency, mended: the answer is known, since the scenario names the dependency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.mending.mend import Mending, mend
from vkharness.mending.pieces import pieces
from vkharness.mending.proof import is_clean
from vkharness.mending.scope_sites import barrier_sites, subpass_sites
from vkharness.spec.masks import scope
from vkharness.spec.scopes import access_scope, execution_scope_dst, execution_scope_src, expand_stages
from vkharness.suite.claims import WITHOUT, Claim, Variant
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.mutation.mutant import DependencyLog
from vkharness.suite.mutation.operators import FIRST, SECOND, Written
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.suite.twins import Twin
from vkharness.trace.barrier_calls import Masks

Named = tuple[Path, str]
"""A scenario: its file and its name there."""
ALL_QUEUES = 0xFFFF
"""VkQueueFlags of a family that supports everything."""


def mend_scenarios(
    several: Sequence[Named], device: str, processes: int, advance: Callable[[int], object] = lambda _: None
) -> Iterator[dict[str, Any]]:
    """Mends each twin of the scenarios that lacks a dependency, and yields the results as `run` gives them. A scenario
    that cannot be recorded has one entry with a `problem`."""
    tasks = [{"module": str(file), "scenario": name} for file, name in several]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance=advance):
        if isinstance(answer, NoAnswer):
            file, name = several[at]
            yield {"scenario": f"{file.parent.name}/{name}", "dependency": "", "problem": answer.problem}
        else:
            yield from answer["twins"]


def run(module: str, scenario: str) -> dict[str, Any]:
    """Every twin of one scenario without a dependency, recorded and mended on this process' driver: `{"twins": [...]}`.

    `how` are the kinds of changes, `open` the groups that are not mended, `wider` the pieces that can be left out, and
    `beyond` what the changes name that the dependency of the scenario does not; it is None where the two are not of one
    kind. Raises `UserError` when the device cannot record the scenario.
    """
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    log = DependencyLog()
    record(claim, log.amend, None)
    found = []
    for variant in claim.variants:
        if variant.kind == WITHOUT:
            made = {"scenario": f"{Path(module).parent.name}/{scenario}", "dependency": variant.dependency}
            found.append(made | _mended(claim, variant, log.written))
    return {"twins": found}


def _mended(claim: Claim, variant: Variant, written: Mapping[str, Written]) -> dict[str, Any]:
    try:
        session, _, _ = record(claim, Twin(variant).amend, None)
    except UserError as error:
        return {"problem": str(error)}
    mending = mend(session.blocks or [])
    left = [str(each.findings[0].hazard) for each in mending.groups if not each.how]
    trace, by_model = mending.trace, mending.by_model
    wider = [] if left else [each.what for each in pieces(trace) if is_clean(each.without(trace), (), by_model)]
    named = written.get(variant.dependency)
    return {
        "problem": "",
        "how": sorted({each.how for each in mending.groups}),
        "open": left,
        "wider": wider,
        "beyond": _beyond(mending, named) if named is not None and not left else None,
    }


def _beyond(mending: Mending, written: Written) -> list[str] | None:
    """The stages and accesses of the changes that the dependency of the scenario has not, as masks in words; None where
    one of the two is no barrier or dependency of a render pass."""
    several = written.get("several", [written])
    wanted = Masks()
    for each in several:
        sides = [next((each[key] for key in keys if isinstance(each.get(key), str)), None) for keys in (FIRST, SECOND)]
        if sides[0] is None or sides[1] is None:
            return None
        wanted |= Masks(*scope(sides[0]), *scope(sides[1]))
    made = Masks()
    for edit in mending.trace.edits():
        if edit.after.name.startswith("vkCreateRenderPass"):
            sites = [site for _, _, site in subpass_sites(edit.after)]
        else:
            sites = list(barrier_sites(edit.after))
        if edit.before is not None or not sites:
            return None
        for site in sites:
            made |= site.masks(edit.after.args)
    return list(_extra(made, wanted))


def _extra(made: Masks, wanted: Masks) -> Iterator[str]:
    src = expand_stages(made.src_stages, ALL_QUEUES) & ~execution_scope_src(wanted.src_stages, ALL_QUEUES)
    dst = expand_stages(made.dst_stages, ALL_QUEUES) & ~execution_scope_dst(wanted.dst_stages, ALL_QUEUES)
    sides = (
        ("source accesses", made.src_stages, made.src_accesses, wanted.src_stages, wanted.src_accesses),
        ("destination accesses", made.dst_stages, made.dst_accesses, wanted.dst_stages, wanted.dst_accesses),
    )
    if src:
        yield f"source stages {src:#x}"
    if dst:
        yield f"destination stages {dst:#x}"
    for what, stages, accesses, held_stages, held_accesses in sides:
        more = access_scope(stages, accesses, ALL_QUEUES) & ~access_scope(held_stages, held_accesses, ALL_QUEUES)
        if more:
            yield f"{what} {more:#x}"

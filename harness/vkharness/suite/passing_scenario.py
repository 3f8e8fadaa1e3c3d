"""A reduced trace as a scenario that passes: it is written, run as `pytest` would run it, and kept only if it passes.

The file that is written is Python. It runs in the worker process of each driver, never in this one.

A row may fail for two reasons that are no mistake of the scenario. A Khronos layer says otherwise; and no outcome that
the hazard allows changes a byte. Then the claim says so (`known`), and must pass with that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.device.drivers import Driver
from vkharness.findings import Finding, UserError
from vkharness.layer.manifest import LayerInfo
from vkharness.replay.native_strategies.execution_relation import BatchGraph
from vkharness.replay.schedule.replayable import replayable
from vkharness.reproduction.scenario_file import ScenarioFile, write_claim
from vkharness.results.result_lines import reason_of
from vkharness.suite.claims import Claim
from vkharness.suite.expectations import beside, of_claim
from vkharness.suite.judge_scenario import load_module
from vkharness.suite.row import Row, settle
from vkharness.suite.runner import ROW, NoAnswer, Runner, row_of
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block
from vkharness.verdicts import Status, Unshown

VARIANTS = f"{__name__}:variants"
_PLACE = re.compile(r" at (record|submit) \(block \d+\)")


class Passing(NamedTuple):
    """A scenario that passes on drivers."""

    made: ScenarioFile
    devices: tuple[str, ...]
    """The drivers on which its rows passed; those that lack what it needs are left out."""
    known: dict[str, str]
    """The judges that disagree, with the reasons, as its claim has them."""


def passing_scenario(
    blocks: Sequence[Block],
    finding: Finding,
    path: Path,
    source: str,
    drivers: Sequence[Driver],
    layers: Sequence[LayerInfo],
) -> Passing:
    """The scenario of a reduced stream (`write_claim`), for a file of that name. Raises `UserError` where it does not
    pass whole and as a twin on each of the drivers, with what is wrong; and where none of them can run it."""
    known: dict[str, str] = {}
    if reason := BatchGraph(replayable([*blocks])).unsignaled():
        raise UserError(f"no scenario is written, since it would wait for ever: {reason}")
    runner = Runner()
    try:
        while True:
            made = write_claim(blocks, finding, path, source, known)
            rows = [*_tried(made, path, drivers, layers, runner)]
            bad = [each for each in rows if each.status not in (Status.PASSED, Status.UNAVAILABLE)]
            more = dict(chain.from_iterable(map(_excusable, bad))) if all(map(_is_excusable, bad)) else {}
            if more.keys() <= known.keys():
                break
            known |= more
    finally:
        runner.close()
    if bad:
        worst = next((each for each in bad if not _is_excusable(each)), bad[0])
        raise UserError(f"no scenario is written, since it would not pass: {_told(worst)}")
    passed = {each.device for each in rows if each.status is Status.PASSED}
    devices = [each.name for each in drivers if each.name in passed]
    if not devices:
        raise UserError(f"no scenario is written, since none of these drivers can run it: {_told(rows[0])}")
    return Passing(made, tuple(devices), known)


def variants(path: str) -> dict[str, Any]:
    """A job: scenario and variant of each row of a file, and what its claims know of judges that disagree."""
    claims = [(name, each) for name, each in vars(load_module(Path(path))).items() if isinstance(each, Claim)]
    known = {judge: why for _, claim in claims for judge, why in claim.known.items()}
    return {"rows": [[name, variant.name] for name, claim in claims for variant in claim.variants], "known": known}


def _tried(
    made: ScenarioFile, path: Path, drivers: Sequence[Driver], layers: Sequence[LayerInfo], runner: Runner
) -> Iterator[Row]:
    """Its rows, on one driver after the other."""
    with temporary_folder() as folder:
        file = folder / path.name
        file.write_text(made.text, encoding="utf-8")
        for name, code in made.shaders.items():
            (folder / name).write_bytes(code)
        for driver in drivers:
            found = runner.run(VARIANTS, {"path": str(file)}, driver)
            if isinstance(found, NoAnswer):
                yield row_of(found, path.stem, "", driver.name)
                continue
            for scenario, variant in found["rows"]:
                yield _row(file, scenario, variant, driver, layers, runner, found["known"])


def _row(
    file: Path,
    scenario: str,
    variant: str,
    driver: Driver,
    layers: Sequence[LayerInfo],
    runner: Runner,
    known: dict[str, str],
) -> Row:
    task: dict[str, Any] = {"module": str(file), "scenario": scenario, "variant": variant, "device": driver.name}
    task |= {"artifacts": None, "layers": [str(each.manifest) for each in layers], "native": 0}
    row = row_of(runner.run(ROW, task, driver), scenario, variant, driver.name)
    if not row.problem:
        settle(row, [*beside(file), *of_claim(row.scenario, row.variant, known)])
    return row


def _is_excusable(row: Row) -> bool:
    """Whether only layers and pixels disagree."""
    return not row.problem and len(row.reasons) == len([*_excusable(row)])


def _excusable(row: Row) -> Iterator[tuple[str, str]]:
    """(judge, reason) of the layers that disagree, and of the pixels where no outcome can show a hazard."""
    for version, verdict in row.layers.items():
        if verdict.disagreements:
            yield f"layer {version}", "; ".join(_PLACE.sub("", each) for each in verdict.disagreements)
    if row.witness is not None and not row.witness.is_complete:
        unshown: Sequence[Unshown] = row.witness.unshown
        yield "witness", "; ".join(dict.fromkeys(each.reason for each in unshown)) or "not shown"


def _told(row: Row) -> str:
    return f"{row.variant or 'the file'} on {row.device}: {reason_of(row.to_dict())}"

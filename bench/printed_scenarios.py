"""Is the verdict of a dump that of the trace? Scenarios and their twins, recorded, and printed as api_dump prints them.

    python -m bench.printed_scenarios [--every N] [--first N] [--device NAME] [PATH]...

Each variant is recorded on the device. Its calls are printed as text, with the code of shaders, and as JSON; both are
read and judged. A line says where something else is found than in the trace.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click

from tests.support.api_dump_printer import json_dump, text_dump
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import UserError
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import scenarios
from vkharness.suite.twins import Twin
from vkharness.trace.calls import Block
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[1]

Hazards = Counter[tuple[str, ...]]
Verdict = tuple[str, Hazards, tuple[str, ...]]
"""The verdict in a word, hazards by kind and commands, what is not modelled."""


def verdicts(module: str, scenario: str) -> dict[str, Any]:
    """A job: of each variant, how the verdicts of its dumps lie to that of its trace."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    told = []
    for variant in claim.variants:
        blocks = record(claim, Twin(variant).amend, None)[0].blocks
        if blocks:
            told.append((variant.name or "whole", *_compared(blocks)))
    return {"told": told}


def _compared(blocks: list[Block]) -> tuple[str, str]:
    whole, host = _found(blocks)
    for name, printed in (("dump.txt", text_dump(blocks)), ("dump.json", json_dump(blocks))):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(printed, encoding="utf-8")
            verdict, _ = _found(load(path))
        if verdict != whole:
            missing, more = whole[1] - verdict[1], verdict[1] - whole[1]
            if more:
                return "finds more", f"{name}: {sorted(more)}"
            if missing == host and missing:
                return "lacks hazards with the host alone", ""
            unsure = "unknown where something is not in it" if verdict[2] else "finds less"
            return unsure, f"{name}: lacks {sorted(missing)}, {sorted(verdict[2])[:3]}"
    return "same", ""


def _found(
    blocks: list[Block],
) -> tuple[tuple[str, Counter[tuple[str, ...]], tuple[str, ...]], Counter[tuple[str, ...]]]:
    """The verdict, the hazards and what is unmodelled; and the hazards of which one side is the host."""
    analysis = Analysis().follow(blocks)
    found, of_host = Hazards(), Hazards()
    for each in analysis.findings:
        key = (str(each.hazard), each.place.command, each.prior.command)
        found[key] += 1
        of_host[key] += "host" in f"{each.place.command} {each.prior.command}"
    return (analysis.verdict, found, tuple(analysis.unmodelled)), +of_host


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--every", default=1, show_default=True, help="Only each so manieth scenario.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--device", default="lavapipe", show_default=True)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(every: int, first: int, device: str, paths: tuple[Path, ...]) -> None:
    """Prints what differs, then the counts."""
    counts: Counter[str] = Counter()
    with Worker(find_driver(device), packages=("bench",)) as worker:
        for file, name in list(scenarios(list(paths) or [ROOT / "scenarios"]))[first::every]:
            try:
                answer = worker.call(
                    f"bench.printed_scenarios:{verdicts.__name__}", {"module": str(file), "scenario": name}
                )
            except (JobError, UserError) as error:
                counts["cannot be recorded here"] += 1
                click.echo(f"{name}: {str(error).strip().splitlines()[-1][:200]}", err=True)
                continue
            for variant, came, why in () if isinstance(answer, Died) else answer["told"]:
                counts[came] += 1
                if why:
                    click.echo(f"{name} {variant}: {came}: {why[:400]}")
    click.echo(", ".join(f"{number} {what}" for what, number in counts.most_common()))


if __name__ == "__main__":
    main()

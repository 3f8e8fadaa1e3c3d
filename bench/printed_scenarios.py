"""Is the verdict of a dump that of the trace? Scenarios and their twins, recorded, and printed as api_dump prints them.

    python -m bench.printed_scenarios [--every N] [--first N] [--device NAME] [PATH]...

Each variant is recorded on the device. Its calls are printed as text, with the code of shaders, and as JSON; both are
read and judged. A line says where something else is found than in the trace.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import click

from tests.support.api_dump_printer import json_dump, text_dump
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import Certainty, UserError
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import scenarios
from vkharness.suite.twins import Twin
from vkharness.trace.calls import Block
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[1]


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


class Found(NamedTuple):
    """What was found in one stream."""

    verdict: str
    hazards: Counter[tuple[str, ...]]
    """Each as its kind and the two commands."""
    unmodelled: tuple[str, ...]
    of_host: Counter[tuple[str, ...]]
    """The hazards of which one side is the host."""
    exact: Counter[tuple[str, ...]]
    """Those of which the bytes are known."""


def _compared(blocks: list[Block]) -> tuple[str, str]:
    """How the verdicts of both dumps lie to that of the stream, and what differs."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = {}
        for name, printed in (("dump.txt", text_dump(blocks)), ("dump.json", json_dump(blocks))):
            dumps[name] = Path(folder, name)
            dumps[name].write_text(printed, encoding="utf-8")
        return how_alike(blocks, dumps)


def how_alike(blocks: list[Block], files: dict[str, Path]) -> tuple[str, str]:
    """How the verdicts of files that stand for a stream lie to that of the stream, and what differs."""
    whole = _found(blocks)
    for name, path in files.items():
        made = _found(load(path))
        if made[:3] == whole[:3]:
            continue
        missing, more = whole.hazards - made.hazards, made.hazards - whole.hazards
        if more:
            return "finds more" + ", not exact" * (not made.exact - whole.exact), f"{name}: {sorted(more)}"
        if missing and missing == whole.of_host:
            return "lacks hazards with the host alone", ""
        if made.unmodelled != whole.unmodelled:
            return "unknown where something is not in it", f"{name}: {sorted(made.unmodelled)[:3]}"
        return "finds less", f"{name}: {sorted(missing)}"
    return "same", ""


def _found(blocks: list[Block]) -> Found:
    analysis = Analysis().follow(blocks)
    found: Counter[tuple[str, ...]] = Counter()
    of_host, exact = found.copy(), found.copy()
    for each in analysis.findings:
        key = (str(each.hazard), each.place.command, each.prior.command)
        found[key] += 1
        of_host[key] += "host" in f"{each.place.command} {each.prior.command}"
        exact[key] += each.certainty is Certainty.EXACT
    return Found(analysis.verdict, found, tuple(analysis.unmodelled), +of_host, +exact)


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

"""Random streams on which mistakes in shared code are planted (`shared_mutants`), and what is noticed of each mistake.

The streams of steps are recorded once, with what a Khronos layer says of them and the bytes that a driver leaves. Each
mistake is then judged in a process of its own (`shared_judging`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.fuzz.driver_deaths import asked
from vkharness.fuzz.layer_fuzz import known_families, played
from vkharness.fuzz.random_steps import Step, make
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.suite.mutation.rule_mutants import RuleMutant
from vkharness.suite.mutation.shared_evidence import SUFFIX, Evidence, write_evidence
from vkharness.suite.mutation.shared_judging import TEXT_STREAMS, WAYS
from vkharness.trace.codec import save


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted mistake, and by way the stream that noticed it, empty for none."""

    mutant: RuleMutant
    told: dict[str, str]

    @property
    def ways(self) -> list[str]:
        """The ways that noticed it. An error shows that the code runs, and is none of them."""
        return [way for way in WAYS if self.told.get(way)]


def record(steps: Sequence[Step], layer: str, device: str, trace: str) -> dict[str, Any]:
    """A job: plays steps below a layer, and keeps the trace, the messages and the bytes of a serial run."""
    session, listener = played(steps, layer)
    blocks = session.blocks or []
    try:
        left = run_serial(blocks, device, in_steps=True)
    except UserError:
        left = None
    save(Path(trace), blocks)
    write_evidence(Path(trace), Evidence(listener.layer.version, listener.messages, left))
    return {}


def record_all(folder: Path, first: int, count: int, texts: int, device: str, layer: str) -> frozenset[str]:
    """Streams of steps in a folder, `count` of them, and the number of the `texts`. What notices something where there
    is no mistake is left out. Answers with the shared functions that the streams run."""
    families = known_families(layer)
    with Worker(find_driver(device)) as worker:
        for seed in range(first, first + count):
            trace = folder / f"{seed:09}.jsonl"
            arguments = {"steps": make(seed, families), "layer": layer, "device": device, "trace": str(trace)}
            if isinstance(asked(worker, f"{__name__}:record", arguments), str):
                _leave_out(trace)
    _write_texts(folder, first, texts, [])
    told = _ask(folder)
    if "error" in told:
        raise UserError(f"the streams cannot be judged: {told['error']}")
    _write_texts(folder, first, texts, [int(each) for each in told["agreement"]])
    for name in {*told["layer"], *told["bytes"]}:
        _leave_out(folder / f"{name}.jsonl")
    return frozenset(told["functions"])


def _leave_out(trace: Path) -> None:
    trace.unlink(missing_ok=True)
    trace.with_suffix(SUFFIX).unlink(missing_ok=True)


def _write_texts(folder: Path, first: int, count: int, left_out: list[int]) -> None:
    text = json.dumps({"first": first, "count": count, "left_out": left_out})
    (folder / TEXT_STREAMS).write_text(text, encoding="utf-8")


def judge_planted(several: Sequence[RuleMutant], folder: Path, processes: int) -> Iterator[Planted]:
    """Yields each planted mistake with the streams that notice it, in the order given."""
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(lambda each: Planted(each, _ask(folder, each)), several)


def _ask(folder: Path, mutant: RuleMutant | None = None) -> dict[str, Any]:
    planted = [] if mutant is None else [mutant.module, mutant.function, str(mutant.number)]
    arguments = [sys.executable, "-P", "-m", "vkharness.suite.mutation.shared_judging", str(folder), *planted]
    environment = {**os.environ, "VKHARNESS_PURE": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return {"error": done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def table(planted: Sequence[Planted]) -> Table:
    """A row a package: how many mistakes, and how many of them each way notices."""
    made = Table(box=None, pad_edge=False, header_style="bold", title="planted mistakes", title_justify="left")
    made.add_column("of")
    for heading in ("planted", "noticed", *WAYS, "by an error alone", "by nobody"):
        made.add_column(heading, justify="right")
    packages = sorted({each.mutant.judge for each in planted})
    for name in (*packages, ""):
        own = [each for each in planted if name in ("", each.mutant.judge)]
        errors = sum("error" in each.told for each in own)
        noticed = sum(bool(each.ways) for each in own)
        counts = [sum(way in each.ways for each in own) for way in WAYS]
        cells = (len(own), noticed, *counts, errors, len(own) - noticed - errors)
        made.add_row(name or "all", *map(str, cells))
    return made

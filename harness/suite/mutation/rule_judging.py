"""Who notices that one rule of a judge is disabled: the scenarios, the random streams, or the pixels.

* *scenarios*: a row of the suite would fail. The mutant of syncval finds other hazards in it, or the mutant of the
  model no longer agrees with syncval.
* *agreement*: the two judges disagree on a random stream.
* *pixels*: a replay left other bytes than the serial run, in an outcome that the stream allows, and the mutant calls
  the stream clean.

Each mutant is judged in a process of its own, forked from one that holds the streams: a mutant costs one import.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from harness.agreement import compare
from harness.commands.interpret import Interpreter
from harness.findings import Finding
from harness.fuzz import random_text, stream_text
from harness.layer.manifest import OFF
from harness.model import Opinion, judge_stream_events
from harness.suite.claims import Claim
from harness.suite.judge_scenario import ask, load_module
from harness.suite.mutation.judge_mutants import Named
from harness.suite.mutation.rule_mutants import RuleMutant, import_mutated
from harness.suite.row import Row
from harness.suite.runner import NoAnswer, run_tasks
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from harness.trace.codec import load, save
from harness.trace.effects import StreamEvent

SECONDS = 60
"""CPU time that a mutant gets: one that never ends is noticed."""


class JudgedStream(NamedTuple):
    """A stream, and what the judges without a mutation say of it."""

    name: str
    events: Sequence[StreamEvent]
    findings: Sequence[Finding]
    opinion: Opinion
    shown: bool
    """Whether a replay left other bytes."""


@dataclass(slots=True)
class Noticed:
    """Who noticed a mutant: for each way the stream that did, empty for none."""

    mutant: RuleMutant
    scenarios: str = ""
    agreement: str = ""
    pixels: str = ""
    error: str = ""
    """The exception that the mutant ended with: everybody notices that."""

    def __bool__(self) -> bool:
        return bool(self.scenarios or self.agreement or self.pixels or self.error)

    def to_dict(self) -> dict[str, str]:
        """JSON-able form."""
        names = ("scenarios", "agreement", "pixels", "error")
        return {"mutant": str(self.mutant), "rule": self.mutant.rule, **{name: getattr(self, name) for name in names}}


@dataclass(slots=True)
class Corpus:
    """The streams that mutants are judged with."""

    scenarios: list[JudgedStream] = field(default_factory=list)
    random: list[JudgedStream] = field(default_factory=list)

    def add_random(self, count: int, seed: int) -> None:
        """Adds random streams, each feature in turn and now and then all together."""
        rng = random.Random(seed)
        features: list[tuple[str, ...]] = [*((each,) for each in random_text.FEATURES), ()]
        for number in range(count):
            text = random_text.make(rng.choice, features[number % len(features)])
            self.random.append(judged(f"random stream {number} of seed {seed}", stream_text.parse(text), shown=False))

    def add_scenarios(
        self, several: Sequence[Named], device: str, folder: Path, processes: int, advance: Callable[[int], object]
    ) -> None:
        """Records every row of these scenarios into `folder` on `device`, its hazards executed, and adds them."""
        tasks = [
            {"module": str(file), "scenario": name, "device": device, "folder": str(folder)} for file, name in several
        ]
        for _, answer in run_tasks(f"{__name__}:record_rows", tasks, device, processes, advance=advance):
            for row in () if isinstance(answer, NoAnswer) else answer["rows"]:
                interpreter = Interpreter()
                events = [each for block in load(Path(row["trace"])) for each in interpreter.step(block)]
                self.scenarios.append(judged(row["name"], events, shown=row["shown"]))
        self.scenarios.sort(key=lambda each: (len(each.events), each.name))


def record_rows(module: str, scenario: str, device: str, folder: str) -> dict[str, Any]:
    """In the worker: `{"rows": [{"name", "trace", "shown"}]}` of all variants of a scenario that the device can run."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    rows = []
    for number, variant in enumerate(claim.variants):
        row = Row(f"{Path(module).parent.name}/{scenario}", variant.name, device, [])
        blocks = ask(row, claim, OFF)
        if not row.problem and not row.unmodelled:
            path = Path(folder) / f"{Path(module).parent.name}-{scenario}-{number}.jsonl"
            save(path, blocks)
            shown = row.witness is not None and row.witness.shown > 0
            rows.append({"name": f"{row.scenario} {row.variant}".strip(), "trace": str(path), "shown": shown})
    return {"rows": rows}


def judged(name: str, events: Sequence[StreamEvent], *, shown: bool) -> JudgedStream:
    """A stream with what the judges say of it."""
    return JudgedStream(name, events, _findings(Validator, events), judge_stream_events(events), shown)


def judge_rules(mutants: Sequence[RuleMutant], corpus: Corpus, processes: int) -> Iterator[Noticed]:
    """Who notices each mutant, as they are judged."""
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, _inherited.append, (corpus,), maxtasksperchild=1) as pool:
        for at, said in pool.imap_unordered(_judge, enumerate(mutants)):
            yield Noticed(mutants[at], **json.loads(said))


_inherited: list[Corpus] = []
"""In a forked process: the streams."""


def _judge(task: tuple[int, RuleMutant]) -> tuple[int, str]:
    """Who notices one mutant, in a process that ends after it."""
    at, mutant = task
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        differs = _mutated_syncval(mutant) if mutant.judge == "syncval" else _mutated_model(mutant)
        first = partial(_first, differs)
        corpus = _inherited[-1]
        shown = [each for each in corpus.scenarios if each.shown]
        said = {
            "scenarios": first(corpus.scenarios, False),
            "agreement": first(corpus.random, False),
            "pixels": first(shown, True),
        }
    except Exception as error:
        said = {"error": type(error).__name__}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return at, json.dumps(said)


Differs = Callable[[JudgedStream, bool], bool]
"""Whether the mutant is noticed by a stream; with True, whether it calls the stream clean."""


def _first(differs: Differs, streams: Sequence[JudgedStream], by_pixels: bool) -> str:
    return next((each.name for each in streams if differs(each, by_pixels)), "")


def _mutated_syncval(mutant: RuleMutant) -> Differs:
    _forget("harness.syncval")
    import_mutated(mutant)
    validator = importlib.import_module("harness.syncval.validator")

    def differs(stream: JudgedStream, by_pixels: bool) -> bool:
        findings = _findings(validator.Validator, stream.events)
        if by_pixels:
            return not findings
        return _said(findings) != _said(stream.findings) or bool(compare(findings, stream.opinion).disagreements)

    return differs


def _mutated_model(mutant: RuleMutant) -> Differs:
    _forget("harness.model", "harness.agreement", "harness.report.conflicts")
    import_mutated(mutant)
    agreement = importlib.import_module("harness.agreement")

    def differs(stream: JudgedStream, by_pixels: bool) -> bool:
        opinion = agreement.judge_stream_events(stream.events)
        return opinion.clean if by_pixels else bool(agreement.compare(stream.findings, opinion).disagreements)

    return differs


def _forget(*names: str) -> None:
    for each in [each for each in sys.modules if each.startswith(tuple(f"{name}." for name in names)) or each in names]:
        del sys.modules[each]


def _findings(validator: Callable[..., Any], events: Sequence[StreamEvent]) -> list[Finding]:
    made = validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [found for each in events for found in made.consume(each)]


def _said(findings: Sequence[Finding]) -> set[tuple[str, str, str]]:
    return {(each.hazard, each.place.command, each.prior.command) for each in findings}


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError

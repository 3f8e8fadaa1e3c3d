"""Who notices that one rule of a judge is disabled: the scenarios, the kept streams, the random streams, or the pixels.

* *scenarios*: a row of the suite would fail. The mutant of syncval finds other hazards in it, or the mutant of the
  model no longer agrees with syncval.
* *kept*: the same of a kept stream (`vkharness.fuzz.kept_streams`).
* *agreement*: the two judges disagree on a random stream.
* *pixels*: a replay left other bytes than the serial run, in an outcome that the stream allows, and the mutant calls
  the stream clean.

Observing a driver (`vkharness.replay.observation`) notices no mutant of a judge: it holds what a command touches
against what `vkharness.commands` declares, and asks no judge.

Each mutant is judged in a process of its own, forked from one that holds the streams: a mutant costs one import. A way
ends with the first stream that notices.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from vkharness.agreement import compare
from vkharness.commands.interpret import Interpreter
from vkharness.device.parent_death import kill_after_parent
from vkharness.device.process import DEFAULT_TIMEOUT
from vkharness.findings import Finding
from vkharness.fuzz import random_text
from vkharness.fuzz.kept_streams import KeptStream
from vkharness.layer.manifest import OFF
from vkharness.model import Opinion, judge_stream_events
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import ask, load_module
from vkharness.suite.mutation.judge_mutants import Named
from vkharness.suite.mutation.rule_coverage import ASK_BOTH, findings_of, forget, functions_run
from vkharness.suite.mutation.rule_mutants import RuleMutant, import_mutated
from vkharness.suite.row import Row
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text
from vkharness.trace.codec import load, save
from vkharness.trace.effects import StreamEvent, Submitted
from vkharness.verdicts import Status

WAYS = ("scenarios", "kept", "agreement", "pixels")
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
    functions: frozenset[str] = frozenset()
    """The functions of the judges that judge it; a change of no other one is noticed."""


@dataclass(slots=True)
class Noticed:
    """Who noticed a mutant: for each way the stream that did, empty for none."""

    mutant: RuleMutant
    scenarios: str = ""
    kept: str = ""
    agreement: str = ""
    pixels: str = ""
    error: str = ""
    """The exception that the mutant ended with: everybody notices that."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in (*WAYS, "error"))

    def to_dict(self) -> dict[str, str]:
        """JSON-able form."""
        names = (*WAYS, "error")
        return {
            "mutant": str(self.mutant),
            "function": self.mutant.decider,
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_dict(cls, mutant: RuleMutant, value: Mapping[str, str]) -> Noticed:
        """Inverse of `to_dict`, for that mutant."""
        return cls(mutant, **{name: value[name] for name in (*WAYS, "error")})


@dataclass(slots=True)
class Corpus:
    """The streams that mutants are judged with."""

    scenarios: list[JudgedStream] = field(default_factory=list)
    kept: list[JudgedStream] = field(default_factory=list)
    random: list[JudgedStream] = field(default_factory=list)

    def add_kept(self, several: Sequence[KeptStream]) -> None:
        """Adds kept streams."""
        self.kept += [judged(each.name, stream_text.parse(each.text), shown=False) for each in several]

    def add_random(self, count: int, seed: int) -> None:
        """Adds random streams, each feature in turn and now and then all together."""
        rng = random.Random(seed)
        features: list[tuple[str, ...]] = [*((each,) for each in random_text.FEATURES), ()]
        for number in range(count):
            text = random_text.make(rng.choice, features[number % len(features)])
            self.random.append(judged(f"random stream {number} of seed {seed}", stream_text.parse(text), shown=False))

    def add_scenarios(
        self,
        several: Sequence[Named],
        device: str,
        folder: Path,
        processes: int,
        advance: Callable[[int], object],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> list[str]:
        """Records every row of these scenarios into `folder` on `device`, its hazards executed, and adds them.

        Returns a line for each that failed, or that gave no answer within `timeout` seconds.
        """
        lost = []
        tasks = [
            {"module": str(file), "scenario": name, "device": device, "folder": str(folder)} for file, name in several
        ]
        for at, answer in run_tasks(f"{__name__}:record_rows", tasks, device, processes, advance, timeout):
            if isinstance(answer, NoAnswer):
                if answer.status is not Status.UNAVAILABLE:
                    lost.append(f"{several[at][0].parent.name}/{several[at][1]}: {answer}")
                continue
            for row in answer["rows"]:
                interpreter = Interpreter()
                events = [each for block in load(Path(row["trace"])) for each in interpreter.step(block)]
                self.scenarios.append(judged(row["name"], events, shown=row["shown"]))
        self.scenarios.sort(key=lambda each: (_size(each.events), each.name))
        return lost

    def covered(self, processes: int) -> Corpus:
        """The same streams with the functions that judge them."""
        lists = (self.scenarios, self.kept, self.random)
        run = iter(functions_run([each.events for several in lists for each in several], processes))
        return Corpus(*([each._replace(functions=next(run)) for each in several] for several in lists))

    def of(self, rule: str) -> Corpus:
        """The streams that this function judges."""
        lists = (self.scenarios, self.kept, self.random)
        return Corpus(*([each for each in several if rule in each.functions] for several in lists))


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
    return JudgedStream(name, events, findings_of(Validator, events), judge_stream_events(events), shown)


def judge_deciders(
    several: Sequence[Sequence[RuleMutant]], corpus: Corpus, processes: int
) -> Iterator[tuple[int, list[Noticed]]]:
    """Who notices mutants of each function, as functions are judged, with the number of the function: a mutant after
    the other, up to the first of which a verdict is noticed."""
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, _inherit, (corpus.covered(processes),), maxtasksperchild=1) as pool:
        for at, said in pool.imap_unordered(_judge, enumerate(several)):
            yield at, [Noticed(mutant, **each) for mutant, each in zip(several[at], json.loads(said), strict=False)]


_inherited: list[Corpus] = []
"""In a forked process: the streams."""


def _inherit(corpus: Corpus) -> None:
    kill_after_parent()
    _inherited.append(corpus)


def _judge(task: tuple[int, Sequence[RuleMutant]]) -> tuple[int, str]:
    """Who notices mutants of one function, in a process that ends after it."""
    at, mutants = task
    said: list[dict[str, str]] = []
    signal.signal(signal.SIGVTALRM, _too_long)
    for mutant in mutants:
        said.append(_ask(mutant, _inherited[-1].of(mutant.decider)))
        if any(said[-1].get(way) for way in WAYS):
            break
    return at, json.dumps(said)


def _ask(mutant: RuleMutant, corpus: Corpus) -> dict[str, str]:
    """Who notices a mutant."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        judge = _mutated_syncval(mutant) if mutant.judge == "syncval" else _mutated_model(mutant)
        said = {"kept": _first(judge, corpus.kept), "agreement": _first(judge, corpus.random)}
        return said | _rows(judge, corpus.scenarios)
    except Exception as error:
        return {"error": type(error).__name__}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class _Said(NamedTuple):
    """The verdict of a mutant of the judges on a stream."""

    differs: bool
    """From what the judges say."""
    clean: bool


Mutated = Callable[[JudgedStream], _Said]


def _first(judge: Mutated, streams: Sequence[JudgedStream]) -> str:
    return next((each.name for each in streams if judge(each).differs), "")


def _rows(judge: Mutated, streams: Sequence[JudgedStream]) -> dict[str, str]:
    """The first scenario that notices, and the first whose pixels do. A stream whose pixels notice differs, too."""
    found = {"scenarios": "", "pixels": ""}
    for each in streams:
        if each.shown or not found["scenarios"]:
            said = judge(each)
            if said.differs and not found["scenarios"]:
                found["scenarios"] = each.name
            if each.shown and said.clean:
                found["pixels"] = each.name
                break
    return found


def _mutated_syncval(mutant: RuleMutant) -> Mutated:
    forget("vkharness.syncval")
    import_mutated(mutant)
    validator = importlib.import_module("vkharness.syncval.validator")

    def judge(stream: JudgedStream) -> _Said:
        findings = findings_of(validator.Validator, stream.events)
        differs = _pairs(findings) != _pairs(stream.findings) or compare(findings, stream.opinion).disagreements
        return _Said(bool(differs), not findings)

    return judge


def _mutated_model(mutant: RuleMutant) -> Mutated:
    forget("vkharness.model", *ASK_BOTH)
    import_mutated(mutant)
    agreement = importlib.import_module("vkharness.agreement")

    def judge(stream: JudgedStream) -> _Said:
        opinion = agreement.judge_stream_events(stream.events)
        return _Said(bool(agreement.compare(stream.findings, opinion).disagreements), opinion.clean)

    return judge


def _pairs(findings: Sequence[Finding]) -> set[tuple[str, str, str]]:
    return {(each.hazard, each.place.command, each.prior.command) for each in findings}


def _size(events: Sequence[StreamEvent]) -> int:
    """How much there is to judge: the commands of a stream, and its events."""
    batches = [batch for each in events if isinstance(each, Submitted) for batch in each.batches]
    return len(events) + sum(len(commands) for batch in batches for _, commands in batch.buffers)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError

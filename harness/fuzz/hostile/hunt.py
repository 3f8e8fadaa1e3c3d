"""A hunt for inputs at which a command ends otherwise than it promises, and the file from which it goes on."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness.findings import UserError
from harness.fuzz.hostile import samples as kinds
from harness.fuzz.hostile.binary_changes import changed_capture, changed_shader, changed_text
from harness.fuzz.hostile.call_streams import CallStream
from harness.fuzz.hostile.commands import command_for
from harness.fuzz.hostile.json_changes import changed_trace
from harness.fuzz.hostile.samples import Sample
from harness.fuzz.hostile.smaller import smaller
from harness.fuzz.hostile.trial import Limits, Main, Trial, TrialEnd, Trials, load_all
from harness.planned_file import Known, PlannedFile, PlannedWork

BATCH = 40
"""Inputs of one process."""
COUNTED = 4
"""One batch in so many has its lines counted, which takes time."""
MOST_KEPT = 2000
"""Inputs with new lines that are changed further."""
LARGEST_KEPT = 64 << 10
"""Bytes of such an input: large ones are slow, and have little that small ones have not."""
HUNT = PlannedWork("vkharness hostile hunt", 1, "hunt")


class HuntPlan(NamedTuple):
    """What a hunt is. The same plan goes on with what a file has."""

    seed: int
    device: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return self._asdict()


@dataclass
class Tally:
    """Sums over batches."""

    inputs: int = 0
    batches: int = 0
    seconds: float = 0.0
    """Of the processor, in commands."""
    slowest: float = 0.0
    largest: int = 0
    """Bytes of memory."""
    by_kind: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    """New lines of this package that an input reached."""

    def add(self, line: dict[str, Any]) -> None:
        """Adds what a batch came to."""
        self.batches += 1
        self.inputs += line["inputs"]
        self.seconds += line["seconds"]
        self.lines += line["lines"]
        self.slowest = max(self.slowest, line["slowest"])
        self.largest = max(self.largest, line["largest"])
        for counter, key in ((self.by_kind, "kinds"), (self.codes, "codes"), (self.faults, "faults")):
            counter.update(line[key])

    def __str__(self) -> str:
        """The figures, then a line for each fault, the most frequent one first."""
        of = ", ".join(f"{count} {kind}" for kind, count in self.by_kind.most_common())
        codes = ", ".join(f"{count} exit {code}" for code, count in sorted(self.codes.items()))
        lines = [
            f"{self.inputs} inputs ({of}): {codes}; {sum(self.faults.values())} with a fault, {len(self.faults)} kinds",
            f"at most {self.slowest:.1f} s and {self.largest >> 20} MiB for one; {self.seconds:.0f} s in all",
        ]
        return "\n".join([*lines, *(f"  {count:6} {fault}" for fault, count in self.faults.most_common())])


def line_of(trials: Iterable[Trial], outcomes: list[TrialEnd]) -> dict[str, Any]:
    """What a batch came to, as JSON."""
    return {
        "inputs": len(outcomes),
        "seconds": round(sum(each.seconds for each in outcomes), 3),
        "slowest": round(max(each.seconds for each in outcomes), 3),
        "largest": max(each.memory for each in outcomes),
        "lines": sum(len(each.lines) for each in outcomes),
        "kinds": Counter(trial.sample.kind for trial in trials),
        "codes": Counter(str(each.code) for each in outcomes if not each.fault),
        "faults": Counter(each.fault for each in outcomes if each.fault),
    }


class HuntFile(PlannedFile):
    """The file of a hunt: its plan, then a line for each batch."""

    def __init__(self, path: Path, plan: HuntPlan) -> None:
        """Opens the file of a hunt, or makes it. Raises `UserError` where it is another hunt's."""
        self.tally = Tally()

        def check(known: Known) -> None:
            if known.plan != plan.to_dict():
                raise UserError(f"{path}: holds a hunt with another plan ({json.dumps(known.plan)}); name another file")
            for number, line in enumerate(known.lines, 2):
                try:
                    self.tally.add(line)
                except (KeyError, TypeError, ValueError) as error:
                    raise HUNT.trouble(path, number, error) from None

        super().__init__(path, HUNT, plan.to_dict(), check)


class Hunt:
    """Makes inputs, has them tried, keeps what is new."""

    def __init__(self, plan: HuntPlan, seeds: list[Sample], trials: Trials, keep: Path) -> None:
        """`keep` gets a folder for each fault and one for inputs with new lines, from which a later hunt goes on."""
        self._plan, self._trials, self._keep = plan, trials, keep
        self._corpus = keep / "corpus"
        self._corpus.mkdir(parents=True, exist_ok=True)
        self._seeds = [self._with_companion(sample, seeds) for sample in seeds]
        self._kept: list[Sample] = []
        for folder in sorted(self._corpus.iterdir())[:MOST_KEPT]:
            self._kept += kinds.read_samples([folder])[:1]
        self._known = {path.name for path in keep.iterdir()}

    @staticmethod
    def _with_companion(sample: Sample, seeds: list[Sample]) -> Sample:
        """The sample with the other file that its commands read: a run before this one, or a trace."""
        if sample.kind == kinds.RESULTS:
            return sample._replace(files={"before.jsonl": sample.files[sample.subject], **sample.files})
        if sample.kind in (kinds.TRACE, kinds.CAPTURE):
            return sample
        traces = [each for each in seeds if each.kind == kinds.TRACE]
        if not traces:
            return sample._replace(files={"t.jsonl": CallStream(random.Random(1)).text(), **sample.files})
        trace = min(traces, key=lambda each: each.size)
        return sample._replace(files={**trace.files, "t.jsonl": trace.files[trace.subject], **sample.files})

    def batch(self, number: int) -> dict[str, Any]:
        """Tries the inputs of one batch; what it came to."""
        rng = random.Random(f"{self._plan.seed}:{number}")
        trials = [self._trial(rng) for _ in range(BATCH)]
        self._trials.counted = number % COUNTED == 0
        outcomes = self._trials.run(trials)
        for trial, outcome in zip(trials, outcomes, strict=True):
            if outcome.fault:
                self._found(trial, outcome)
            elif outcome.lines:
                self._keep_input(trial.sample)
        return line_of(trials, outcomes)

    def _trial(self, rng: random.Random) -> Trial:
        choice = rng.random()
        if choice < 0.1 or not (self._seeds or self._kept):
            sample = Sample(kinds.TRACE, "t.jsonl", {"t.jsonl": CallStream(rng).text()})
        else:
            sample = rng.choice(self._kept if self._kept and (choice < 0.45 or not self._seeds) else self._seeds)
            sample = self._changed(rng, sample)
        return Trial(sample, command_for(rng, sample, self._plan.device))

    def _changed(self, rng: random.Random, sample: Sample) -> Sample:
        data = sample.files[sample.subject]
        if sample.kind == kinds.CAPTURE:
            return sample.with_subject(changed_capture(rng, data))
        if sample.kind == kinds.TRACE:
            if rng.random() < 0.2:
                subject, files = changed_shader(rng, data, sample.files)
                if subject is not data:
                    return sample._replace(files={**files, sample.subject: subject})
            other = rng.choice(self._seeds or [sample])
            return sample.with_subject(changed_trace(rng, data, other.files[other.subject]))
        return sample.with_subject(changed_text(rng, data))

    def _found(self, trial: Trial, outcome: TrialEnd) -> None:
        """Keeps the smallest input with a fault that was not met before."""
        name = re.sub(r"\W+", "-", outcome.fault).strip("-")[:100]
        if name in self._known:
            return
        self._known.add(name)
        folder = self._keep / name
        smaller(self._trials, trial, outcome.fault).write(folder)
        told = f"{outcome.fault}\nvkharness {' '.join(trial.arguments)}\n\n{outcome.text}"
        (folder / "fault.txt").write_text(told, encoding="utf-8", errors="backslashreplace")

    def _keep_input(self, sample: Sample) -> None:
        if sample.size <= LARGEST_KEPT and len(self._kept) < MOST_KEPT:
            name = hashlib.sha256(sample.files[sample.subject]).hexdigest()[:16]
            sample.write(self._corpus / name)
            self._kept.append(sample)


def conduct(
    main: Main,
    plan: HuntPlan,
    samples: list[Sample],
    keep: Path,
    output: Path | None,
    limits: Limits,
    ends: tuple[int, float],
    told: Callable[[Tally], None],
) -> Tally:
    """Goes on from what a file has, if one is given, until so many inputs or minutes are over; 0 stands for no end.

    `told` is called after each batch. Returns the sums.
    """
    count, minutes = ends
    until = time.monotonic() + 60 * minutes if minutes else None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="vkharness-hostile-")))
        file = None if output is None else stack.enter_context(HuntFile(output, plan))
        tally = Tally() if file is None else file.tally
        trials = Trials(main, folder, limits, False)
        hunter = Hunt(plan, samples, trials, keep)
        load_all(main, folder)
        while not (count and tally.inputs >= count) and not (until is not None and time.monotonic() >= until):
            line = hunter.batch(tally.batches)
            if file is not None:
                file.append(line)
            tally.add(line)
            told(tally)
    return tally

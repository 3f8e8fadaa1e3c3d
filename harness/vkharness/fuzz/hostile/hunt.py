"""The inputs of a hunt, batch by batch: how each is made, and what is kept of it."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path
from typing import Any

from vkharness.fuzz.hostile import samples as kinds
from vkharness.fuzz.hostile.amplified import any_amplified
from vkharness.fuzz.hostile.binary_changes import (
    changed_bytes,
    changed_capture,
    changed_shader,
    changed_text,
    changed_words,
)
from vkharness.fuzz.hostile.call_orders import CallOrders
from vkharness.fuzz.hostile.call_streams import CallStream
from vkharness.fuzz.hostile.commands import OTHER, command_for
from vkharness.fuzz.hostile.json_changes import changed_trace, shortened
from vkharness.fuzz.hostile.packed_changes import changed_packed, packed_of
from vkharness.fuzz.hostile.record_changes import PAGE, changed_segment
from vkharness.fuzz.hostile.samples import SMALLEST, Sample
from vkharness.fuzz.hostile.shader_orders import CODE
from vkharness.fuzz.hostile.smaller import smaller
from vkharness.fuzz.hostile.tally import HuntPlan, line_of
from vkharness.fuzz.hostile.trial import HANGS, Trial, TrialEnd, Trials

BATCH = 200
"""Inputs of one process."""
COUNTED = 20
"""One batch in so many has its lines counted, which takes five times as long."""
MOST_KEPT = 2000
"""Inputs with new lines that are changed further."""
AMPLIFIED = 0.03
"""The part of inputs that ask for much work with few bytes; half of them are changed, too."""
SHORTENED = 0.7
"""The part of inputs of which most commands are left out before they are changed: small ones are tried faster."""
BESIDE = 0.2
"""The part of texts with a file of bytes beside them in which that is changed."""
PACKED = 0.1
"""The part of traces that become one file."""
_BEGIN = b'{"header"'
LARGEST_KEPT = 64 << 10
"""Bytes of such an input: large ones are slow, and have little that small ones have not."""
MORE_MEMORY = 4 << 20
"""Bytes by which an input must take more than each before it, to be changed further."""
MUCH_MEMORY = 512 << 20
"""Bytes from which on an input is kept that has no fault: the next version may need some more."""
MOST_OF_A_FAULT = 100
"""Inputs that are kept of one fault."""


class Hunt:
    """Makes inputs, has them tried, keeps what is new."""

    def __init__(self, plan: HuntPlan, seeds: list[Sample], trials: Trials, keep: Path, jobs: int = 1) -> None:
        """`keep` gets a folder for each fault and one for inputs with new lines, from which a later hunt goes on. So
        many `jobs` share it."""
        self._plan, self._trials, self._keep = plan, trials, keep
        self._corpus = keep / "corpus"
        self._corpus.mkdir(parents=True, exist_ok=True)
        self._seeds = [self._with_companion(sample, seeds) for sample in seeds]
        self._streams = [sample for sample in seeds if sample.kind in kinds.STREAM_KINDS]
        self._kept: list[Sample] = []
        for folder in sorted(self._corpus.iterdir())[:MOST_KEPT]:
            self._kept += kinds.read_samples([folder])[:1]
        self._room = MOST_KEPT // jobs
        """How many more inputs are kept."""
        self._most: dict[str, int] = {}
        """The most bytes by which each command grew."""

    @staticmethod
    def _with_companion(sample: Sample, seeds: list[Sample]) -> Sample:
        """The sample with the other file that its commands read: a run before this one, or a trace."""
        if sample.kind == kinds.RESULTS:
            return sample._replace(files={"before.jsonl": sample.files[sample.subject], **sample.files})
        if sample.kind not in (kinds.IGNORE, kinds.OBSERVATIONS):
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
        outcomes = []
        for trial, outcome in zip(trials, self._trials.ends(trials), strict=True):
            outcomes.append(outcome)
            if outcome.fault or outcome.memory > MUCH_MEMORY:
                self._keep_at_once(trial, outcome)
            elif self._is_costly(trial, outcome) or outcome.lines:
                self._keep_input(trial.sample)
        for trial, outcome in zip(trials, outcomes, strict=True):
            if outcome.fault and not outcome.fault.startswith(HANGS):  # each try would take minutes
                self._keep_smallest(trial, outcome)
        return line_of(trials, outcomes)

    def _trial(self, rng: random.Random) -> Trial:
        choice = rng.random()
        if choice < AMPLIFIED:
            sample = Sample(kinds.TRACE, "t.jsonl", {"t.jsonl": any_amplified(rng)})
            sample = sample if rng.random() < 0.5 else self._changed(rng, sample)
        elif choice < 0.1 or not (self._seeds or self._kept):
            stream = CallStream(rng) if rng.random() < 0.5 else CallOrders(rng)
            sample = Sample(kinds.TRACE, "t.jsonl", {**CODE, "t.jsonl": stream.text()})
        else:
            sample = rng.choice(self._kept if self._kept and (choice < 0.45 or not self._seeds) else self._seeds)
            sample = self._changed(rng, sample)
        arguments = command_for(rng, sample, self._plan.device)
        if OTHER in arguments:
            other = rng.choice(self._streams or [sample])
            sample = sample._replace(files={**other.files, **sample.files, OTHER: other.files[other.subject]})
        return Trial(sample, arguments)

    def _changed(self, rng: random.Random, sample: Sample) -> Sample:
        data = sample.files[sample.subject]
        if sample.kind == kinds.PACKED:
            text = self._streams[0].files[self._streams[0].subject] if self._streams else b""
            return sample.with_subject(changed_packed(rng, data, lambda lines: changed_trace(rng, lines, text)))
        if sample.kind == kinds.CAPTURE:
            return sample.with_subject(changed_capture(rng, data))
        if sample.kind == kinds.TRACE:
            if rng.random() < 0.2:
                subject, files = changed_shader(rng, data, sample.files)
                if subject is not data:
                    return sample._replace(files={**files, sample.subject: subject})
            other = rng.choice(self._streams or [sample])
            data = shortened(rng, data) if rng.random() < SHORTENED else data
            if data.startswith(_BEGIN) and rng.random() < PACKED:
                packed = packed_of(rng, data, sample.files)
                return self._changed(rng, Sample(kinds.PACKED, "t.vkt", {"t.vkt": packed}))
            return sample.with_subject(changed_trace(rng, data, other.files[other.subject]))
        if sample.kind == kinds.RECORDS:
            return self._changed_records(rng, sample)
        beside = [name for name in sample.files if name != sample.subject]
        if sample.kind == kinds.DUMP and beside and rng.random() < BESIDE:
            name = rng.choice(beside)
            return sample._replace(files={**sample.files, name: changed_bytes(rng, sample.files[name])})
        change = changed_words if sample.kind == kinds.SHADER else changed_text
        return sample.with_subject(change(rng, data))

    @staticmethod
    def _changed_records(rng: random.Random, sample: Sample) -> Sample:
        """One segment changed, or the page, or one that is not there."""
        name = rng.choice([*sample.files])
        files = dict(sample.files)
        if rng.random() < 0.03 and len(files) > 1 and name != sample.subject:
            del files[name]
        else:
            change = changed_bytes if name.endswith(PAGE) else changed_segment
            files[name] = change(rng, files[name])
        return sample._replace(files=files)

    def _is_costly(self, trial: Trial, outcome: TrialEnd) -> bool:
        """Whether a command takes more memory than for any input before: such inputs are changed further."""
        command = trial.arguments[0]
        known = self._most.setdefault(command, outcome.grown)
        self._most[command] = max(known, outcome.grown)
        return outcome.grown > known + MORE_MEMORY

    def _folder(self, fault: str) -> Path:
        return self._keep / re.sub(r"\W+", "-", fault).strip("-")[:100]

    def _keep_at_once(self, trial: Trial, outcome: TrialEnd) -> None:
        """Keeps an input whatever becomes of the hunt."""
        folder = self._folder(outcome.fault or "much memory")
        data = trial.sample.files[trial.sample.subject]
        if not folder.exists() or len([*folder.iterdir()]) < MOST_OF_A_FAULT:
            trial.sample.keep(folder / hashlib.sha256(data).hexdigest()[:16], _told(trial, outcome))

    def _keep_smallest(self, trial: Trial, outcome: TrialEnd) -> None:
        """Keeps the smallest input with a fault that was not met before."""
        folder = self._folder(outcome.fault) / SMALLEST
        try:
            folder.mkdir()
        except FileExistsError:  # known, or another job is at it
            return
        small = trial._replace(sample=smaller(self._trials, trial, outcome.fault))
        end = self._trials.run([small])[0]
        small.sample.keep(folder, _told(small, end if end.fault == outcome.fault else outcome))

    def _keep_input(self, sample: Sample) -> None:
        if sample.size <= LARGEST_KEPT and self._room > 0:
            self._room -= 1
            if sample.kind in kinds.STREAM_KINDS and OTHER not in sample.files:
                sample.keep(self._corpus / hashlib.sha256(sample.files[sample.subject]).hexdigest()[:16])
            self._kept.append(sample)


def _told(trial: Trial, outcome: TrialEnd) -> str:
    """The fault, the command, how to ask again, and what the command said."""
    cost = f"{trial.sample.size} bytes, {outcome.seconds:.1f} s, {outcome.memory >> 20} MiB"
    return f"{outcome.fault}\nvkharness {' '.join(trial.arguments)}\n{cost}\n\n{outcome.text}"

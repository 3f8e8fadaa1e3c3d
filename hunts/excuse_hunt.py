"""How often the known differences excuse a mistake of ours: random streams of which what we found is falsified.

A stream is judged and asked of a Khronos layer once. Then one finding is falsified at a time, and the comparison made
again. Either a true finding, which the layer has too, is dropped; or a false one is added, of two accesses that share
addresses and that both judges of ours call ordered. A comparison that still agrees excused the mistake: the tally names
the entry of `known_differences.toml` that did. A condition that is as narrow as its reason excuses nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Finding
from vkharness.fuzz.driver_deaths import asked
from vkharness.fuzz.layer_fuzz import played
from vkharness.fuzz.random_steps import Step, make
from vkharness.layer.compare import Comparison, Explained, compare
from vkharness.layer.conceivable import accesses, event_operations, sequences
from vkharness.layer.known_differences import LayerDifference, known_differences
from vkharness.layer.parse import LayerMessage
from vkharness.layer.silence import hides_vertices, reason_for_silence
from vkharness.layer.stream import Stream
from vkharness.model import judge_stream_events

DROPPED, INVENTED = "dropped", "invented"
KINDS = {
    "transfers": ("semaphores", "timelines", "events", "secondaries", "queries"),
    "rendering": ("rendering", "passes", "semaphores", "secondaries"),
}
"""Kinds of streams, with the families of steps of which they have some."""
MOST = 8
"""Of each stream at most so many findings are dropped, and so many invented."""


@dataclass
class ExcuseTally:
    """How many mistakes were made, and which entries excused how many of them, by the kind of mistake."""

    made: Counter[str] = field(default_factory=Counter)
    excused: dict[str, Counter[str]] = field(default_factory=lambda: {DROPPED: Counter(), INVENTED: Counter()})
    skipped: Counter[str] = field(default_factory=Counter)
    """Streams that were left out, by the reason."""

    def add(self, answer: dict[str, Any]) -> None:
        """Adds one stream's answer."""
        self.made.update(answer["made"])
        self.skipped.update(answer["skipped"])
        for kind, names in answer["excused"].items():
            self.excused[kind].update(names)

    def share(self, kind: str) -> float:
        """The share of mistakes of this kind that were excused: 0 to 1."""
        return self.excused[kind].total() / max(1, self.made[kind])

    def __str__(self) -> str:
        lines = [f"  left out: {count} streams, {reason}" for reason, count in self.skipped.items()]
        for kind, names in self.excused.items():
            lines.append(f"  {kind}: {names.total()} of {self.made[kind]} excused ({self.share(kind):.1%})")
            lines += [f"    {count:6} {name}" for name, count in names.most_common()]
        return "\n".join(lines)


def measure(steps: Sequence[Step], layer: str, seed: int) -> dict[str, Any]:
    """Plays steps on this process' driver, and makes mistakes about what was found; JSON-able sums."""
    session, listener = played(steps, layer)
    # Without what destroys the objects, so that their addresses can be described to the end.
    blocks = [
        each for each in session.blocks or [] if not getattr(each, "name", "").startswith(("vkDestroy", "vkFreeMemory"))
    ]
    stream, known = Stream(blocks), known_differences(listener.layer.version)
    mistakes = _Mistakes(stream, session.findings, listener.messages, known)
    if not mistakes.whole.agrees:
        return {"made": {}, "excused": {}, "skipped": {"the whole comparison disagrees already": 1}}
    rng = random.Random(seed)
    told = [each for each in session.findings if mistakes.is_told(each)]
    dropped = rng.sample(told, min(MOST, len(told)))
    excused = {DROPPED: Counter[str](), INVENTED: Counter[str]()}
    for finding in dropped:
        excused[DROPPED].update(mistakes.excuse([each for each in session.findings if each is not finding]))
    analysis = Analysis(keep_events=True).follow(blocks)
    conflicts = judge_stream_events(analysis.events).conflicts if stream.calls else []
    in_conflict = {(each.prior.call, each.current.call) for each in conflicts}
    in_conflict |= {(each.prior.call, each.place.call) for each in session.findings}
    invented = list(islice((each for each in _invented(stream, rng, in_conflict) if mistakes.is_news(each)), MOST))
    for finding in invented:
        excused[INVENTED].update(mistakes.excuse([*session.findings, finding]))
    return {"made": {DROPPED: len(dropped), INVENTED: len(invented)}, "excused": excused, "skipped": {}}


class _Mistakes:
    """One stream, whose comparison is made again with other findings."""

    def __init__(
        self,
        stream: Stream,
        findings: Sequence[Finding],
        messages: Sequence[LayerMessage],
        known: Sequence[LayerDifference],
    ) -> None:
        self._compare: Callable[[Sequence[Finding]], Comparison] = lambda found: compare(found, messages, known, stream)
        names = [each for each in known if each.rename]
        self._alike: Callable[[Finding], int] = lambda found: compare([found], messages, names, stream).agreed
        self._stream = stream
        self.whole = self._compare(findings)
        self._expected = set(map(_said, self.whole.expected))

    def is_told(self, finding: Finding) -> bool:
        """Whether the layer has that finding of ours, too."""
        return self._alike(finding) > 0

    def is_news(self, finding: Finding) -> bool:
        """Whether the layer has nothing like an invented finding, and would record the accesses."""
        silent = reason_for_silence(finding, self._stream) or hides_vertices(finding, self._stream)
        return not silent and not self.is_told(finding)

    def excuse(self, findings: Sequence[Finding]) -> list[str]:
        """Names the reasons for which other findings of ours agree with the layer, too; none when they do not."""
        said = self._compare(findings)
        if not said.agrees:
            return []
        new = [each for each in said.expected if _said(each) not in self._expected]
        return [(new[0].difference.id if new[0].difference else "silent-by-design") if new else "another has its key"]


def _said(explained: Explained) -> tuple[Any, ...]:
    subject = explained.subject
    return subject.side, subject.call, subject.kind, subject.key


# --- false findings --------------------------------------------------------------------------------------------------


def _invented(stream: Stream, rng: random.Random, in_conflict: set[tuple[int, int]]) -> Iterator[Finding]:
    """False findings in a random order: an access, and the last write of some of its bytes or a read since then."""
    several = sequences(stream)
    seconds = [(sequence, at) for sequence in several for at in range(len(sequence))]
    rng.shuffle(seconds)
    for sequence, at in seconds:
        found = [*accesses(stream, sequence, at), *event_operations(sequence, at)]
        found = [each for each in found if (each.prior.call, each.place.call) not in in_conflict]
        yield from rng.sample(found, min(2, len(found)))


# --- many streams ----------------------------------------------------------------------------------------------------


def run(seeds: Iterable[int], device: str, layer: str, families: Sequence[str]) -> ExcuseTally:
    """Measures seeds in a worker process, with steps of these families."""
    tally = ExcuseTally()
    with Worker(find_driver(device), packages=("hunts",)) as worker:
        for seed in seeds:
            job = {"steps": make(seed, families), "layer": layer, "seed": seed}
            answer = asked(worker, f"{__name__}:measure", job)
            if isinstance(answer, str):
                answer = {"made": {}, "excused": {}, "skipped": {f"driver: {answer}": 1}}
            tally.add(answer)
    return tally

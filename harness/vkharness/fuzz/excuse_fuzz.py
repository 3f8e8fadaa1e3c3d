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
from typing import Any, NamedTuple

from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Finding, Hazard, Place
from vkharness.fuzz.driver_deaths import asked
from vkharness.fuzz.layer_fuzz import played
from vkharness.fuzz.random_steps import Step, make
from vkharness.layer.compare import Comparison, Explained, compare
from vkharness.layer.known_differences import LayerDifference, known_differences
from vkharness.layer.parse import LayerMessage
from vkharness.layer.silence import hides_vertices, reason_for_silence
from vkharness.layer.stream import EXECUTE, Stream, Touch, apart, common
from vkharness.model import judge_stream_events
from vkharness.trace.calls import Call
from vkharness.trace.resources import describe

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


class Judged(NamedTuple):
    """A command, where its access is judged."""

    place: Place
    call: Call


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
        """What explains that other findings of ours agree with the layer, too; nothing when they do not."""
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
    sequences = _sequences(stream)
    seconds = [(sequence, at) for sequence in sequences for at in range(len(sequence))]
    rng.shuffle(seconds)
    for sequence, at in seconds:
        found = [*_accesses(stream, sequence, at), *_event_operations(sequence, at)]
        found = [each for each in found if (each.prior.call, each.place.call) not in in_conflict]
        yield from rng.sample(found, min(2, len(found)))


def _sequences(stream: Stream) -> list[list[Judged]]:
    """The commands of each recording in order, and those of all submits."""
    submitted: list[Judged] = []
    recordings: dict[tuple[int, int], list[Judged]] = {}
    for _, (submit, batch, position), commands in stream.executions(1 << 62):
        queue = (stream.at(submit) or commands[0]).args["queue"]
        submitted += _placed(commands, submit=submit, batch=batch, position=position, queue=queue)
        if commands:
            recordings[commands[0].index, commands[-1].index] = list(_placed(commands))
    return [*recordings.values(), submitted]


def _placed(commands: Sequence[Call], **where: int) -> Iterator[Judged]:
    primary = commands[0].args["commandBuffer"] if commands else 0
    executing: Call | None = None
    for call in commands:
        buffer = call.args["commandBuffer"]
        executing = call if call.name == EXECUTE else executing
        inside = None
        if buffer != primary and executing is not None:
            inside = (executing.index, list(executing.args["pCommandBuffers"]).index(buffer))
        yield Judged(Place(call.index, call.name, None, buffer, executed_by=inside, **where), call)


def _is_judged(prior: Place, place: Place) -> bool:
    """Pairs of one command, and pairs inside a command buffer at its submit, are none."""
    if place.submit is None:
        # Inside a secondary: found where that was recorded.
        return prior.call != place.call and (place.executed_by is None or prior.executed_by != place.executed_by)
    return (prior.submit, prior.batch, prior.position) != (place.submit, place.batch, place.position)


def _accesses(stream: Stream, sequence: Sequence[Judged], at: int) -> Iterator[Finding]:
    place = sequence[at].place
    for touch in _touched(stream, sequence[at]):
        left = touch
        for earlier in reversed(sequence[:at]):
            if earlier.call is sequence[at].call and earlier.place.submit is None:
                continue
            for prior in _touched(stream, earlier):
                shared = common([left], [prior]) if prior.write or touch.write else []
                if shared and _is_judged(earlier.place, place):
                    yield _finding(stream, place, earlier.place, shared[0], prior)
                if shared and prior.write:
                    left = apart(left, prior)
            if not left.spans:
                break


def _touched(stream: Stream, judged: Judged) -> Sequence[Touch]:
    place = judged.place
    return stream.as_executed((place.submit, place.batch, place.position) if place.submit else None).touches(
        judged.call
    )


def _finding(stream: Stream, place: Place, prior: Place, touch: Touch, earlier: Touch) -> Finding:
    hazard = f"{'WRITE' if touch.write else 'READ'}_AFTER_{'WRITE' if earlier.write else 'READ'}"
    objects, id = stream.objects, touch.resource
    kind, ranges, boxes = describe(objects.image(id) or objects.buffer(id), touch.spans)
    return Finding(Hazard(hazard), touch.access, earlier.access, place, prior, id, kind, ranges, boxes)


def _event_operations(sequence: Sequence[Judged], at: int) -> Iterator[Finding]:
    """False findings about the last operation on an event before this one."""
    place, own = sequence[at]
    for event in _events(own):
        earlier = next((each for each in reversed(sequence[:at]) if event in _events(each.call)), None)
        rule = _event_rule(own.name, earlier.call.name) if earlier is not None else None
        if earlier is not None and rule is not None and _is_judged(earlier.place, place):
            yield Finding(rule, "", "", place, earlier.place, event, "VkEvent")


def _events(call: Call) -> Sequence[int]:
    if call.name.startswith(("vkCmdSetEvent", "vkCmdResetEvent")):
        return (call.args["event"],)
    return call.args["pEvents"] or () if call.name.startswith("vkCmdWaitEvents") else ()


def _event_rule(name: str, earlier: str) -> Hazard | None:
    """What is wrong if nothing orders that operation after the earlier one."""
    before = next(each for each in ("Set", "Reset", "Wait") if earlier.startswith(f"vkCmd{each}"))
    if name.startswith("vkCmdWait"):
        return Hazard.WAIT_FOR_UNORDERED_SET if before == "Set" else None
    if name.startswith("vkCmdReset"):
        return {"Set": Hazard.RESET_EVENT_AFTER_SET, "Wait": Hazard.RESET_EVENT_AFTER_WAIT}.get(before)
    return Hazard(f"{name}-wait" if before == "Wait" else f"{name}-{before.lower()}-race")


# --- many streams ----------------------------------------------------------------------------------------------------


def run(seeds: Iterable[int], device: str, layer: str, families: Sequence[str]) -> ExcuseTally:
    """Measures seeds in a worker process, with steps of these families."""
    tally = ExcuseTally()
    with Worker(find_driver(device)) as worker:
        for seed in seeds:
            job = {"steps": make(seed, families), "layer": layer, "seed": seed}
            answer = asked(worker, f"{__name__}:measure", job)
            if isinstance(answer, str):
                answer = {"made": {}, "excused": {}, "skipped": {f"driver: {answer}": 1}}
            tally.add(answer)
    return tally

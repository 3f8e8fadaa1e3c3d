"""Random streams of steps beside a Khronos layer: where does syncval report something else?

`random_steps` says what a seed means. `judge` plays it on a device under the mirror and the layer in one process and
compares the findings with the messages of the layer, call by call. `known_differences.toml` must explain a difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import vkharness
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.fuzz.driver_deaths import DIED, asked
from vkharness.fuzz.random_steps import FAMILIES, Step, families_of, make, shrink
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.fuzz.unexcused import unexcused
from vkharness.layer.compare import compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.listen import LayerListener
from vkharness.layer.manifest import Version, find_layer
from vkharness.trace.calls import Block

KNOWN: dict[str, Version] = {
    "semaphores": (1, 3, 239),
    "queries": (1, 3, 239),
    "rendering": (1, 3, 239),
    "timelines": (1, 3, 296),
    "events": (1, 4, 364),
    "secondaries": (1, 4, 364),
}
"""Families of steps, with the first version of the layer about which every difference is known."""


PLAIN = "plain"
"""Streams without a family of steps."""

UNEXCUSED = "no excuse"
"""The form of a stream of which `unexcused` leaves what no known difference covers. What is excused of it is a
difference."""
FORMS = {"": "judge", UNEXCUSED: "judge_unexcused"}
"""The forms in which a seed is judged, each by the name of its job."""


@dataclass
class FamilyAccount:
    """Hazards of the streams that have steps of one family. A stream counts for each of its families."""

    agreed: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    """Those that differ, by the known difference that explains them."""

    def __str__(self) -> str:
        excused = self.excused.total()
        every = self.agreed + excused
        share = 100 * excused / every if every else 0
        most = "".join(f", {count} by {name}" for name, count in self.excused.most_common(3))
        return f"{every} hazards, {excused} excused ({share:.1f} %){most}"


@dataclass
class LayerTally:
    """Sums over streams."""

    streams: int = 0
    calls: int = 0
    agreed: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    disagreements: dict[int, list[str]] = field(default_factory=dict)
    """By seed."""
    deaths: dict[int, list[str]] = field(default_factory=dict)
    """By seed, how the layer died of a stream that the driver alone survives. No judge said anything then."""
    families: dict[str, FamilyAccount] = field(default_factory=dict)

    def add(self, seed: int, answer: dict[str, Any], families: Sequence[str] = (), form: str = "") -> None:
        """Adds one stream's answer, for the families of steps that the seed has."""
        for name in families or (PLAIN,):
            account = self.families.setdefault(f"{name}, {form}" if form else name, FamilyAccount())
            account.agreed += answer["agreed"]
            account.excused.update(answer["expected"])
        self.streams += 1
        self.calls += answer["calls"]
        self.agreed += answer["agreed"]
        self.expected.update(answer["expected"])
        if "death" in answer:
            self.deaths.setdefault(seed, []).append(f"{form}: {answer['death']}" if form else answer["death"])
        lines = [f"{form}: {each}" if form else each for each in answer["disagreements"]]
        if form:
            lines += [f"{form}: {count} excused by {name}" for name, count in answer["expected"].items()]
        if lines:
            self.disagreements[seed] = [*self.disagreements.get(seed, ()), *lines]

    def __str__(self) -> str:
        lines = [
            f"{self.streams} streams, {self.calls} commands: {self.agreed} hazards agreed, "
            f"{sum(self.expected.values())} differ as cited, {len(self.disagreements)} streams disagree"
            + f", the layer dies of {len(self.deaths)}"
            * bool(self.deaths)
        ]
        lines += [f"  {count:6} {name}" for name, count in self.expected.most_common()]
        lines += [f"  family {name}: {account}" for name, account in sorted(self.families.items())]
        told = (*self.disagreements.items(), *self.deaths.items())
        lines += [f"  seed {seed}: {text}" for seed, several in told for text in several]
        return "\n".join(lines)


def played(steps: Sequence[Step], layer: str) -> tuple[vkharness.Session, LayerListener]:
    """Plays steps on this process' driver under both judges, which are asked no more. `layer` as in `find_layer`."""
    with LayerListener.open(find_layer(layer)) as listener:

        def attribute(block: Block) -> None:
            listener.take(block.index, session.id_of)

        with vkharness.attach(keep_trace=True, strict=True, sink=attribute) as session, open_rig(listener) as rig:
            StepPlayer(rig).play(steps)
    return session, listener


def judge(steps: Sequence[Step], layer: str) -> dict[str, Any]:
    """Plays steps under both judges and compares what they say; JSON-able sums."""
    session, listener = played(steps, layer)
    blocks = session.blocks or []
    said = compare(session.findings, listener.messages, known_differences(listener.layer.version), blocks)
    problems = said.lines() + session.internal_errors + [text for _, text in listener.other_messages]
    problems += [f"unmodelled: {name}" for name in session.unmodelled]
    if [each.key for each in Analysis().follow(blocks).findings] != [each.key for each in session.findings]:
        problems.append("the recorded stream is judged otherwise than the program")
    commands = sum(getattr(block, "name", "").startswith("vkCmd") for block in blocks)
    return {"calls": commands, "agreed": said.agreed, "expected": said.used, "disagreements": problems}


def judge_unexcused(steps: Sequence[Step], layer: str) -> dict[str, Any]:
    """`judge` of what is left of a stream when nothing of it can need an excuse."""
    return judge(without_excuses(steps, layer), layer)


def without_excuses(steps: Sequence[Step], layer: str) -> list[Step]:
    """`unexcused` by what is known of a layer."""
    found = find_layer(layer)
    return unexcused(steps, known_differences(found.version) if found is not None else ())


def play(steps: Sequence[Step]) -> dict[str, Any]:
    """Plays steps on this process' driver, without a layer."""
    with open_rig(None) as rig:
        StepPlayer(rig).play(steps)
    return {}


def ask(worker: Worker, steps: Sequence[Step], layer: str, form: str = "") -> dict[str, Any]:
    """`judge`, or that of another form, in the worker. A driver that died or failed is a disagreement, and the death of
    the layer a result of its own."""
    answer = asked(worker, f"{__name__}:{FORMS[form]}", {"steps": steps, "layer": layer})
    if not isinstance(answer, str):
        return answer
    nothing: dict[str, Any] = {"calls": 0, "agreed": 0, "expected": {}}
    if answer.startswith(DIED) and not isinstance(asked(worker, f"{__name__}:play", {"steps": steps}), str):
        return nothing | {"disagreements": [], "death": f"layer: {answer}"}
    return nothing | {"disagreements": [f"driver: {answer}"]}


def run(
    seeds: Iterable[int], device: str, layer: str, families: Sequence[str], forms: Iterable[str] = FORMS
) -> LayerTally:
    """Judges seeds in a worker process, with steps of these families, each in these forms."""
    tally, several = LayerTally(), list(forms)
    with Worker(find_driver(device)) as worker:
        for seed in seeds:
            for form in several:
                answer = ask(worker, make(seed, families), layer, form)
                tally.add(seed, answer, families_of(seed, families), form)
    return tally


def known_families(layer: str) -> list[str]:
    """The families of steps in which every difference from a layer is known."""
    found = find_layer(layer)
    return [name for name in FAMILIES if found is not None and name in KNOWN and found.version >= KNOWN[name]]


def smallest(seed: int, device: str, layer: str, families: Sequence[str]) -> tuple[list[Step], list[str]]:
    """(steps, disagreements) of the smallest stream left of a seed's that still disagrees as it first did, in the first
    form that disagrees.

    Both are empty when the seed's stream agrees in each form.
    """
    with Worker(find_driver(device)) as worker:

        def disagreements(steps: Sequence[Step], form: str) -> list[str]:
            tally = LayerTally()
            tally.add(seed, ask(worker, steps, layer, form), form=form)
            return [*tally.disagreements.get(seed, []), *tally.deaths.get(seed, [])]

        steps = make(seed, families)
        form, first = next(((form, lines[0]) for form in FORMS if (lines := disagreements(steps, form))), ("", ""))
        if not first:
            return [], []
        wanted = without_numbers(first)
        left = shrink(steps, lambda rest: wanted in map(without_numbers, disagreements(rest, form)))
        return left, disagreements(left, form)


def without_numbers(line: str) -> str:
    """A disagreement without the numbers that leaving something else out of the stream changes."""
    return re.sub(r"\bblock \d+|\b\d+ excused", "some", line)

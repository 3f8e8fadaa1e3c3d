"""Whether random streams notice one mistake that is planted in shared code: one process for each mistake.

* *agreement*: the judges disagree on stream text.
* *layer*: a Khronos layer said something else of a stream of steps, which was asked before and has no mistake in it.
* *bytes*: the bytes that are computed of the stream are not those that a driver left, in steps that the host waits for.

The streams lie in a folder (`shared_streams`). Nothing that is shared is imported before the mistake is in its place.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from vkharness.suite.mutation.rule_mutants import RuleMutant
from vkharness.suite.mutation.shared_evidence import read_evidence
from vkharness.suite.mutation.shared_mutants import SHARED, plant

WAYS = ("agreement", "layer", "bytes")
SECONDS = 60
"""CPU time that a mistake gets."""
TEXT_STREAMS = "text-streams.json"
"""The file with how many streams of text there are, and the seed of the first."""


def ask(folder: Path) -> dict[str, Any]:
    """By way, the names of the streams that notice: the first, or all when nothing is planted."""
    ways: dict[str, Callable[[Path], Iterator[str]]] = {"agreement": _texts, "layer": _layer, "bytes": _bytes}
    return {way: next(tell(folder), "") for way, tell in ways.items()}


def everything(folder: Path) -> dict[str, list[str]]:
    """The same of what has no mistake: every stream that notices, which is no evidence then; and the functions of
    shared code that are called."""
    from vkharness.suite.mutation.rule_coverage import called_by

    told: dict[str, list[str]] = {}

    def tell() -> None:
        told.update({"agreement": [*_texts(folder)], "layer": [*_layer(folder)], "bytes": [*_bytes(folder)]})

    functions = sorted(called_by(tell, SHARED))
    return {**told, "functions": functions}


def _texts(folder: Path) -> Iterator[str]:
    from vkharness.fuzz import agreement_fuzz, random_text

    asked = json.loads((folder / TEXT_STREAMS).read_text(encoding="utf-8"))
    several = random_text.feature_sets(())
    for seed in range(asked["first"], asked["first"] + asked["count"]):
        text = random_text.make(random.Random(seed).choice, several[seed % len(several)])
        if seed not in asked["left_out"] and agreement_fuzz.judge(text)[1].disagreements:
            yield str(seed)


def _layer(folder: Path) -> Iterator[str]:
    from vkharness.check import Analysis
    from vkharness.layer.compare import compare
    from vkharness.layer.known_differences import known_differences
    from vkharness.trace.codec import load

    for trace in sorted(folder.glob("*.jsonl")):
        evidence = read_evidence(trace)
        blocks = load(trace)
        analysis = Analysis().follow(blocks)
        said = compare(analysis.findings, evidence.messages, known_differences(evidence.version), blocks)
        if said.lines() or analysis.unmodelled:
            yield trace.stem


def _bytes(folder: Path) -> Iterator[str]:
    from vkharness.computed.expected_bytes import compute
    from vkharness.judged_replay import beside
    from vkharness.trace.codec import load

    for trace in sorted(folder.glob("*.jsonl")):
        left = read_evidence(trace).left
        if left is not None and beside(compute(load(trace)), left):
            yield trace.stem


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def main() -> None:
    """Arguments: the folder, and a mistake as module, function and number; none for what has no mistake."""
    folder, *planted = sys.argv[1:]
    if not planted:
        told: dict[str, Any] = everything(Path(folder))
    else:
        module, function, number = planted
        signal.signal(signal.SIGVTALRM, _too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            plant(RuleMutant(module, function, int(number), 0, ""))
            told = ask(Path(folder))
        except Exception as error:
            told = {"error": type(error).__name__}
    print(json.dumps(told))


if __name__ == "__main__":
    main()

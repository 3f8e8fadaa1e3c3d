"""The smallest input with the same fault: lines, blocks or bytes dropped, then values of single calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from vkharness.fuzz.hostile.binary_changes import put_together, take_apart
from vkharness.fuzz.hostile.samples import CAPTURE, Sample
from vkharness.fuzz.hostile.trial import Trial, Trials

MOST_SECONDS = 20.0
"""By the clock, for one input."""
_ROUND = 16
"""Trials of one process."""


def smaller(trials: Trials, trial: Trial, fault: str) -> Sample:
    """The input with as much left out as the fault and the time allow."""
    until = time.monotonic() + MOST_SECONDS
    sample = trial.sample

    def first_that_fails(candidates: Sequence[Sample]) -> int | None:
        """Which of some inputs has the fault, too; None where none has, or time is up."""
        for begin in range(0, len(candidates), _ROUND):
            if time.monotonic() > until:
                return None
            some = candidates[begin : begin + _ROUND]
            for at, each in enumerate(trials.run([trial._replace(sample=one) for one in some])):
                if each.fault == fault:
                    return begin + at
        return None

    parts, join = _parts(sample)
    kept = _fewer(parts, lambda lists: first_that_fails([sample.with_subject(join(each)) for each in lists]))
    sample = sample.with_subject(join(kept))
    if sample.kind != CAPTURE:
        sample = _simpler_values(sample, first_that_fails)
    files = sample.files
    for name in [each for each in files if each != sample.subject]:
        without = sample._replace(files={key: data for key, data in sample.files.items() if key != name})
        if first_that_fails([without]) is not None:
            sample = without
    return sample


def _parts(sample: Sample) -> tuple[list[Any], Callable[[Sequence[Any]], bytes]]:
    """The blocks or lines of the file that is changed, and what makes a file of them."""
    data = sample.files[sample.subject]
    if sample.kind == CAPTURE:
        try:
            head, blocks = take_apart(data)
            return blocks, lambda some: put_together(head, list(some))
        except Exception:  # a header that is broken: no blocks to leave out
            return [data], b"".join
    return data.splitlines(keepends=True), b"".join


def _fewer(parts: list[Any], which: Callable[[list[list[Any]]], int | None]) -> list[Any]:
    """Delta debugging: drops runs of parts, long ones first."""
    size = len(parts) // 2
    while size:
        candidates = [parts[:at] + parts[at + size :] for at in range(0, len(parts), size)]
        chosen = which(candidates)
        if chosen is not None:
            parts = candidates[chosen]
            size = min(size, max(1, len(parts) // 2)) if len(parts) > 1 else 0
        else:
            size //= 2
    return parts


def _simpler_values(sample: Sample, which: Callable[[Sequence[Sample]], int | None]) -> Sample:
    """Puts null, nothing or zero for values of JSON, the outer ones first."""
    lines = sample.files[sample.subject].split(b"\n")
    for number, line in enumerate(lines):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        tried: set[str] = set()
        while (path := next((each for each in _paths(value) if str(each) not in tried), None)) is not None:
            tried.add(str(path))
            nothing: tuple[Any, ...] = (None, [], 0)
            simpler = [new for kind in nothing if (new := _replaced(value, path, kind)) != value]
            texts = [_with_line(sample, lines, number, each) for each in simpler]
            chosen = which(texts)
            if chosen is not None:
                value = simpler[chosen]
                lines[number] = json.dumps(value, separators=(",", ":")).encode()
                sample = texts[chosen]
    return sample


def _with_line(sample: Sample, lines: list[bytes], number: int, value: Any) -> Sample:
    text = json.dumps(value, separators=(",", ":")).encode()
    return sample.with_subject(b"\n".join([*lines[:number], text, *lines[number + 1 :]]))


def _paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    found = [(*here, key) for key, each in pairs if each not in (None, 0, [], {})]
    return found + [path for key, each in pairs[:50] for path in _paths(each, (*here, key))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    made = json.loads(json.dumps(value))
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return made

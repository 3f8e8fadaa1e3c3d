"""Which commands of vkharness are given an input of a kind, and how often."""

from __future__ import annotations

import random

from harness.fuzz.hostile.samples import CAPTURE, IGNORE, OBSERVATIONS, RESULTS, TRACE, Sample

OF_STREAMS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (30, ("check",)),
    (20, ("check", "--model", "always", "--bounds", "--json", "v.json", "--sarif", "v.sarif")),
    (10, ("graph", "-o", "g.svg")),
    (10, ("explain",)),
    (10, ("advise",)),
    (10, ("mend", "--apply", "mended.jsonl")),
    (10, ("reduce", "--finding", "1", "-o", "small.jsonl")),
)
"""Weight and arguments; the file comes last."""
ON_A_DEVICE: tuple[tuple[int, tuple[str, ...]], ...] = (
    (2, ("replay", "--mode", "serial")),
    (1, ("replay", "--mode", "witness")),
)
OTHERS = {
    IGNORE: ("check", "t.jsonl", "--ignore"),
    OBSERVATIONS: ("check", "t.jsonl", "--observed"),
    RESULTS: ("compare", "before.jsonl"),
}
REPORT = ("report", "-o", "page")


def command_for(rng: random.Random, sample: Sample, device: str) -> tuple[str, ...]:
    """The arguments of `vkharness` for an input. Without a device nothing is replayed."""
    if sample.kind not in (TRACE, CAPTURE):
        before = REPORT if sample.kind == RESULTS and rng.random() < 0.5 else OTHERS[sample.kind]
        return (*before, sample.subject)
    choices = OF_STREAMS
    if device:
        choices += tuple((weight, (*before, "--device", device)) for weight, before in ON_A_DEVICE)
    (_, before) = rng.choices(choices, [weight for weight, _ in choices])[0]
    return (*before, sample.subject)

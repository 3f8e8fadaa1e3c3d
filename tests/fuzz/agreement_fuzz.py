"""Hunts for streams on which syncval and the model disagree; prints the smallest one, ready to be pasted into a test.

    .venv/bin/python -m tests.fuzz.agreement_fuzz --count 10000 --seed 1 [FEATURE ...]

The count is spread over the single features (`tests.fuzz.fuzzed.FEATURES`) and all of them together. A disagreement
that `harness/model/differences.toml` explains is none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import click
from hypothesis import HealthCheck, Phase, given, seed, settings

from harness.agreement import Agreement, compare
from harness.findings import Finding
from harness.model import judge_stream_events
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from tests.fuzz import fuzzed, shorthand


class Disagreement(AssertionError):
    """Both judges were asked about a stream, and nothing explains what they said."""


def judge(text: str) -> tuple[list[Finding], Agreement]:
    """What syncval finds in a stream, and how that compares with what the model says."""
    stream = shorthand.parse(text)
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    findings = [found for each in stream for found in validator.consume(each)]
    return findings, compare(findings, judge_stream_events(stream))


def hunt(count: int, start: int, features: tuple[str, ...], counts: Counter[str]) -> None:
    """Judges `count` streams that use `features`. Raises `Disagreement` with the smallest stream that was found."""

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(fuzzed.streams(*features))
    def agree(text: str) -> None:
        findings, agreement = judge(text)
        counts["streams"] += 1
        counts["with hazards"] += bool(findings)
        counts["hazards"] += len(findings)
        counts["explained"] += bool(agreement.explained)
        if agreement.disagreements:
            raise Disagreement("\n".join([*agreement.disagreements, "", text]))

    run: Callable[[], None] = agree
    run()


@click.command()
@click.option("--count", type=click.IntRange(1), default=2000, show_default=True, help="Streams, over all features.")
@click.option("--seed", "start", type=int, default=1, show_default=True)
@click.argument("features", nargs=-1, type=click.Choice(fuzzed.FEATURES))
def main(count: int, start: int, features: tuple[str, ...]) -> None:
    """Compare syncval and the model on random streams."""
    chosen = [(each,) for each in (features or fuzzed.FEATURES)] + [()] * (not features)
    failed = False
    for several in chosen:
        counts: Counter[str] = Counter()
        begun = time.perf_counter()
        try:
            hunt(-(-count // len(chosen)), start, several, counts)
        except Disagreement as found:
            failed = True
            click.echo(f"disagreement:\n{found}")
        seconds = time.perf_counter() - begun
        click.echo(f"{'+'.join(several) or 'everything'}: {dict(counts)}, seed {start}, {seconds:.0f} s")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

"""Hunts for streams on which syncval and the model disagree.

Streams are stream text (`stream_text`), so that the smallest one can be pasted into a test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from vkharness.agreement import Agreement, compare
from vkharness.findings import Finding, UserError
from vkharness.fuzz import random_text
from vkharness.model import judge_stream_events
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text


class Disagreement(AssertionError):
    """Syncval and the model disagree on a stream."""


def judge(text: str) -> tuple[list[Finding], Agreement]:
    """Gives syncval's findings in a stream, and their comparison with the model's opinion."""
    stream = stream_text.parse(text)
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    findings = [found for each in stream for found in validator.consume(each)] + validator.finish()
    return findings, compare(findings, judge_stream_events(stream))


def hunt(
    count: int, seed: int, features: Sequence[str], counts: Counter[str], judged: Callable[[], object] = lambda: None
) -> None:
    """Judges `count` streams that use `features`, all when none is given; adds to `counts` what was found.

    `judged` is called after each stream. Raises `Disagreement` with the smallest stream on which the judges still
    disagree, and `UserError` without Hypothesis. What it tries to find the smallest one is not counted.
    """
    try:
        import hypothesis
        from hypothesis import Phase, strategies
    except ModuleNotFoundError:
        raise UserError("fuzz agreement needs Hypothesis: install vkharness[fuzz]") from None

    found: list[str] = []

    @strategies.composite
    def texts(draw: strategies.DrawFn) -> str:
        return random_text.make(lambda several: draw(strategies.sampled_from(several)), features)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    @hypothesis.given(texts())
    def agree(text: str) -> None:
        findings, agreement = judge(text)
        if not found:
            counts["streams"] += 1
            counts["with hazards"] += bool(findings)
            counts["hazards"] += len(findings)
            judged()
        if agreement.disagreements:
            found.append(text)
            raise Disagreement("\n".join([*agreement.disagreements, "", text]))

    run: Callable[[], None] = agree
    run()

"""Reads that are made or not as contents of memory decide that nobody knows (Certainty.BOUND).

Rule: rules.md#what-may-be-read-makes-the-verdict-unknown.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from vkharness.agreement import compare
from vkharness.commands.contents.at_submit import without_bounds
from vkharness.findings import Certainty, Finding
from vkharness.fuzz import random_text
from vkharness.model import judge_stream_events
from vkharness.spans import merge
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.effects import Access, Command, Effect, Execute, StreamEvent, Submitted

STREAMS = 40
"""How many streams each case judges."""


def some_possible(events: list[StreamEvent], chance: random.Random) -> list[StreamEvent]:
    """The events, some of whose plain reads are possible alone."""

    def of(command: Command) -> Command:
        return command.with_effects(tuple(map(changed, command.effects)))

    def changed(effect: Effect) -> Effect:
        if isinstance(effect, Execute):
            return Execute(tuple((id, tuple(map(of, commands))) for id, commands in effect.buffers))
        if not isinstance(effect, Access) or ACCESS_KINDS[effect.access_kind].write or effect.atomic:
            return effect
        is_attached = effect.order is not RasterizationOrder.NONE  # which no contents decide
        return effect if is_attached or chance.random() < 0.5 else replace(effect, certainty=Certainty.BOUND)

    made: list[StreamEvent] = []
    for event in events:
        if isinstance(event, Submitted):
            batches = [
                replace(each, buffers=tuple((id, tuple(map(of, commands))) for id, commands in each.buffers))
                for each in event.batches
            ]
            event = replace(event, batches=tuple(batches))
        made.append(event)
    return made


def found_in(events: list[StreamEvent]) -> list[Finding]:
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [found for each in events for found in validator.consume(each)] + validator.finish()


def told(findings: list[Finding]) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    """Returns the findings for sure, with the bytes. Which of several reads in the way is told of, may differ."""
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for each in findings:
        if each.certainty is not Certainty.BOUND:
            found.setdefault((str(each.hazard), each.place.call, each.access, each.resource), []).extend(each.ranges)
    return {key: merge(ranges) for key, ranges in found.items()}


FEATURES = [(), *((each,) for each in random_text.FEATURES)]


@pytest.mark.parametrize("features", FEATURES, ids=lambda each: "-".join(each) or "all")
def test_a_read_that_only_may_be_made_stands_in_the_way_of_no_finding(features: tuple[str, ...]) -> None:
    """Both judges find the same with it, and what they find for sure is what they find without it."""
    met = 0
    for seed in range(STREAMS):
        chance = random.Random(f"{features} {seed}")
        events = some_possible(list(stream_text.parse(random_text.make(chance.choice, features))), chance)
        findings, without = found_in(events), list(map(without_bounds, events))
        sure = found_in(without)
        assert told(findings) == told(sure), seed
        if not compare(sure, judge_stream_events(without)).disagreements:
            assert compare(findings, judge_stream_events(events)).disagreements == (), seed
        met += any(each.certainty is Certainty.BOUND for each in findings)
    assert met, "no read that only may be made was in no order"

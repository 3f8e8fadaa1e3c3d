"""A finding is as sure as the less sure of its two accesses, for both judges."""

from __future__ import annotations

from itertools import count, product

import pytest

from tests.support.effects import A, Effects, access, submitted
from vkharness.agreement import compare
from vkharness.findings import Certainty, Finding
from vkharness.model import judge_stream_events
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.effects import StreamEvent
from vkharness.trace.host_effects import HostDeclaredRead, HostWrote

EXACT, DECLARED, BOUND = Certainty


def judged(*steps: Effects | HostDeclaredRead | HostWrote) -> list[Finding]:
    """Returns the findings of syncval; those of the model must be the same, as sure as those."""
    calls, events = count(1), list[StreamEvent]()
    for step in steps:
        if isinstance(step, HostDeclaredRead | HostWrote):
            events.append(step)
        else:
            events.append(submitted(calls, 1, [step]))
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    found = [finding for event in events for finding in validator.consume(event)]
    assert compare(found, judge_stream_events(events)).disagreements == ()
    return found


@pytest.mark.parametrize(("first", "second"), [*product(Certainty, Certainty)])
@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("COPY_TRANSFER_WRITE", "COPY_TRANSFER_READ"),
        ("COPY_TRANSFER_READ", "COPY_TRANSFER_WRITE"),
        ("COPY_TRANSFER_WRITE", "COPY_TRANSFER_WRITE"),
    ],
)
def test_the_less_sure_access_decides(earlier: str, later: str, first: Certainty, second: Certainty) -> None:
    (found,) = judged(access(earlier, certainty=first), access(later, certainty=second))
    expected = BOUND if BOUND in (first, second) else DECLARED if DECLARED in (first, second) else EXACT
    assert (found.certainty, found.to_dict()["certainty"]) == (expected, expected.value)


def test_the_surest_of_several_ranges_decides() -> None:
    writes = (access("COPY_TRANSFER_WRITE", certainty=DECLARED, end=32), access("COPY_TRANSFER_WRITE", begin=32))
    (found,) = judged(writes, access("CLEAR_TRANSFER_WRITE"))
    assert found.certainty is EXACT and found.ranges == ((0, 64),)


def test_the_host_is_as_sure_as_the_device() -> None:
    (found,) = judged(access("COPY_TRANSFER_WRITE", certainty=DECLARED), HostDeclaredRead(9, None, A, (0, 64)))
    assert found.certainty is DECLARED
    (found,) = judged(access("COPY_TRANSFER_READ", certainty=DECLARED), HostWrote(9, None, A, (0, 64)))
    assert found.certainty is DECLARED

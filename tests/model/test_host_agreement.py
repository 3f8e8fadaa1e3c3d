"""Random streams of a device and a host: the validator and the model, which share no rule, must agree."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.effects import ALL_FLAGS, A, B, access, barrier
from vkharness.agreement import compare
from vkharness.findings import Finding
from vkharness.model.judge import judge_stream_events
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.effects import Access, Command, Effect, HostWaited, StreamEvent, Submission, Submitted
from vkharness.trace.host_effects import HostDeclaredRead, HostFlushed, HostInvalidated, HostWrote

EVERYTHING = barrier("ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
TO_HOST = barrier("COPY/TRANSFER_WRITE", "HOST/HOST_READ")
spaces = st.sampled_from((A, B))
spans = st.sampled_from(((0, 64), (0, 32), (32, 64), (16, 48), (8, 12), (4, 8), (12, 16)))
accesses = st.builds(
    lambda name, space, span: access(name, space, *span),
    st.sampled_from(("COPY_TRANSFER_WRITE", "COPY_TRANSFER_READ", "COMPUTE_SHADER_SHADER_STORAGE_WRITE")),
    spaces,
    spans,
)
barriers = st.builds(
    barrier,
    st.sampled_from(
        ("COPY/TRANSFER_WRITE", "COPY", "COMPUTE_SHADER/SHADER_WRITE", "ALL_COMMANDS/MEMORY_WRITE", "HOST/HOST_WRITE")
    ),
    st.sampled_from(
        (
            "HOST/HOST_READ",
            "HOST/HOST_READ|HOST_WRITE",
            "HOST/HOST_WRITE",
            "HOST",
            "COPY/TRANSFER_READ|TRANSFER_WRITE",
            "COMPUTE_SHADER/SHADER_WRITE",
            "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
        )
    ),
)
submits = st.tuples(st.just("submit"), st.lists(accesses | barriers, min_size=1, max_size=4), st.booleans())
hosts = st.tuples(st.sampled_from(("write", "read", "read", "flush", "invalidate")), spaces, spans)
waits = st.tuples(st.just("wait"), st.integers(0, 4))
visible = st.tuples(st.just("visible"), spaces, spans, st.booleans(), st.booleans())
steps = st.lists(submits | hosts | waits | visible, min_size=2, max_size=10)


def stream(program: list[tuple], coherent: bool, non_coherent_atom_size: int) -> list[StreamEvent]:  # type: ignore[type-arg]
    """The stream events of random steps on one queue: each submit has a fence; a wait is for one or for all.

    In half of the submits everything of the device is in order, so that only the host can be wrong.
    """
    calls = count(1)
    fences: list[int] = []
    made: list[StreamEvent] = []
    memory: dict[str, Any] = {"coherent": coherent, "non_coherent_atom_size": non_coherent_atom_size}

    def submit(effects: list[Effect]) -> Submitted:
        commands = tuple(Command(next(calls), _name(each), None, (each,)) for each in effects)
        fences.append(next(calls))
        batch = Submission(0, ((100000 + fences[-1], commands),))
        return Submitted(fences[-1], "vkQueueSubmit", None, 1, ALL_FLAGS, (batch,), fences[-1])

    for kind, *rest in program:
        match kind:
            case "submit":
                effects: list[Effect] = rest[0]
                if rest[1]:  # in order by itself: what remains is between the host and the device
                    effects = [each for effect in effects for each in (EVERYTHING, effect)]
                made.append(submit(effects))
            case "visible":  # what a read needs, or nearly
                effects = [EVERYTHING, access("COPY_TRANSFER_WRITE", rest[0], *rest[1])]
                made += [submit([*effects, TO_HOST] if rest[2] else effects), HostWaited()]
                if rest[3]:
                    made.append(HostInvalidated(next(calls), None, rest[0], rest[1]))
            case "wait":
                back = rest[0]
                made.append(HostWaited(fences=(fences[-back],) if 0 < back <= len(fences) else ()))
            case "write":
                made.append(HostWrote(next(calls), None, rest[0], rest[1], **memory))
            case "read":
                made.append(HostDeclaredRead(next(calls), None, rest[0], rest[1], **memory))
            case "flush":
                made.append(HostFlushed(next(calls), None, rest[0], rest[1]))
            case _:
                made.append(HostInvalidated(next(calls), None, rest[0], rest[1]))
    return made


def _name(effect: Effect) -> str:
    return "vkCmdX" if isinstance(effect, Access) else "vkCmdPipelineBarrier2"


def judged(stream_events: list[StreamEvent]) -> list[Finding]:
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [finding for stream_event in stream_events for finding in validator.consume(stream_event)]


def agrees(stream_events: list[StreamEvent]) -> None:
    """Compares up to the first stream event that offends: what follows depends on what was reported."""
    for length in range(1, len(stream_events) + 1):
        part = stream_events[:length]
        findings = judged(part)
        said = compare(findings, judge_stream_events(part))
        assert said.disagreements == (), (said, part)
        if findings:
            return


@given(steps)
@settings(max_examples=300, deadline=None)
def test_of_coherent_memory(program: list[tuple]) -> None:  # type: ignore[type-arg]
    agrees(stream(program, True, 1))


@given(steps, st.sampled_from((1, 16)))
@settings(max_examples=300, deadline=None)
def test_of_memory_that_is_not_coherent(program: list[tuple], non_coherent_atom_size: int) -> None:  # type: ignore[type-arg]
    agrees(stream(program, False, non_coherent_atom_size))

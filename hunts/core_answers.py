"""All answers of syncval for a random stream: asked of the native core and of Python alone, each in a process of its
own (`core_hunt`).

A stream is a list of items that follow from its seed, so that both make the same one; items can be left out of it.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import vkharness
from hunts import dense_text
from hunts.frame_hunt import frames_of, told_of_frames
from hunts.front_programs import calls_of, told_of_calls
from hunts.range_programs import ranges_of, told_of_ranges
from vkharness import native
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.fuzz import random_steps, random_text
from vkharness.fuzz.hostile.call_orders import CallOrders
from vkharness.fuzz.hostile.call_streams import CallStream
from vkharness.fuzz.hostile.json_changes import changed_trace
from vkharness.fuzz.hostile.shader_orders import CODE
from vkharness.fuzz.step_player import StepPlayer, open_rig
from vkharness.report.sentences import explain
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.temporary import temporary_folder
from vkharness.text_form import handle_names, stream_text
from vkharness.text_form.dependency_text import SIZE
from vkharness.trace.calls import Block
from vkharness.trace.codec import read_trace
from vkharness.trace.effects import CommandBufferReset, Recorded, StreamEvent, Submitted

Items = list[Any]
RESOURCES = range(handle_names.number("a"), handle_names.number("z") + 1)
RAISES = "raises "
"""How a line begins that says what a judge raised."""
IN_A_ROW = 8
"""Streams that follow one another on one device in a long one."""


class Kind(NamedTuple):
    """A generator of streams, and the way in which they are judged."""

    make: Callable[[int], Items]
    judge: Callable[[Items], Iterable[str]]
    weight: int
    """How many streams of a round of all kinds are of this one."""


def kind_of(seed: int, several: Sequence[str]) -> str:
    """The kind of a seed's stream, among these."""
    wheel = [name for name in several for _ in range(KINDS[name].weight)]
    return wheel[seed % len(wheel)]


# -- effects -----------------------------------------------------------------------------------------------------------


def _text(seed: int) -> Items:
    """Stream text: that of one of its features, or of all."""
    chosen = random.Random(seed)
    return random_text.make(chosen.choice, chosen.choice(random_text.feature_sets(()))).splitlines()


def _long_text(seed: int) -> Items:
    """Streams of the same few resources, so that later ones meet what earlier ones left; or of many ranges of them."""
    chosen = random.Random(f"long {seed}")
    if chosen.random() < 0.5:
        return dense_text.make(chosen).splitlines()
    features = [each for each in random_text.FEATURES if each != "sparse"]
    return [line for _ in range(IN_A_ROW) for line in random_text.make(chosen.choice, features).splitlines()]


def _judged_text(items: Items) -> Iterator[str]:
    yield from _of_events(stream_text.parse("\n".join(items)))


def _judged_recordings(items: Items) -> Iterator[str]:
    """Each command buffer is recorded before it is submitted."""
    yield from _of_events(_with_recordings(stream_text.parse("\n".join(items))))


def _with_recordings(stream: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    for event in stream:
        if isinstance(event, Submitted):
            for buffer, commands in (each for batch in event.batches for each in batch.buffers):
                yield CommandBufferReset(buffer)
                for command in commands:
                    yield Recorded(buffer, command, event.queue_flags)
        yield event


def _of_events(stream: Iterable[StreamEvent]) -> Iterator[str]:
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    for number, event in enumerate(stream, 1):
        yield from _told(number, validator.consume(event))
    yield from _told(0, validator.finish())
    yield f"unmodelled {validator.unmodelled}, unseen {validator.unseen.all()}"
    yield f"written {[validator.written(space, 0, SIZE) for space in RESOURCES]}"


def _told(number: int, findings: Iterable[Finding]) -> Iterator[str]:
    """Everything about findings that came with a stream event or a block."""
    for each in findings:
        each.explain = explain
        yield f"{number}: {each.message} {each.missing} {each}"


# -- calls -------------------------------------------------------------------------------------------------------------


def _calls(seed: int) -> Items:
    """The lines of a trace of calls that the registry alone makes; nothing is valid on purpose."""
    return CallStream(random.Random(seed)).text().decode().splitlines()


def _orders(seed: int) -> Items:
    """The lines of a trace of calls in orders that no program has."""
    return CallOrders(random.Random(seed)).text().decode().splitlines()


def _changed(seed: int) -> Items:
    """The lines of one of these traces with changed values, in which any byte may be."""
    rng = random.Random(f"changed {seed}")
    one, other = CallOrders(rng).text(), CallStream(rng).text()
    return changed_trace(rng, *rng.sample((one, other), 2)).decode("latin-1").split("\n")


def _judged_calls(items: Items) -> Iterator[str]:
    with temporary_folder() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_bytes("\n".join([*items, ""]).encode("latin-1"))
        (Path(folder) / "code").mkdir()
        for name, code in CODE.items():
            (Path(folder) / name).write_bytes(code)
        try:
            yield from of_blocks(read_trace(trace), tells_blocks=True)
        except UserError as error:
            yield str(error).replace(str(trace), "trace")


def of_blocks(blocks: Iterable[Block], *, tells_blocks: bool = False) -> Iterator[str]:
    """Yields the findings about the calls of a program; with the calls as they were read, if these are to be told."""
    analysis = Analysis()
    for block in blocks:
        if tells_blocks:
            yield repr(block)
        yield from _told(block.index, analysis.step(block))
    yield from _told(0, analysis.finish())
    yield f"{analysis.verdict}, unmodelled {analysis.unmodelled}, {analysis.unjudged}"


# -- programs ----------------------------------------------------------------------------------------------------------


def _played(items: Items) -> Iterator[str]:
    """Steps that are played on this process' driver: what is recorded, and what the session says of it."""
    with vkharness.attach(keep_trace=True) as session, open_rig(None) as rig:
        StepPlayer(rig).play(items)
    yield from of_session(session)
    # Nobody hears of each call here, so that native commands wait in a log.
    with vkharness.attach() as session, open_rig(None) as rig:
        StepPlayer(rig).play(items)
    yield from of_verdict(session)


_POINTER = re.compile(r"'ppData': \d+")
"""Where memory is mapped differs from process to process."""


def of_session(session: vkharness.Session) -> Iterator[str]:
    """Yields the calls that a session recorded, its verdict, and the findings about its trace."""
    blocks = session.blocks or []
    for block in blocks:
        yield _POINTER.sub("", repr(block))
    yield from of_verdict(session)
    yield from of_blocks(blocks)


def of_verdict(session: vkharness.Session) -> Iterator[str]:
    """Yields the findings and the verdict of a session."""
    yield from _told(0, session.findings)
    yield f"{session.verdict}, unmodelled {session.unmodelled}, internal errors {session.internal_errors}"


KINDS = {
    "text": Kind(_text, _judged_text, 7),
    "recordings": Kind(_text, _judged_recordings, 6),
    "long": Kind(_long_text, _judged_recordings, 1),
    "ranges": Kind(ranges_of, told_of_ranges, 1),
    "calls": Kind(_calls, _judged_calls, 2),
    "orders": Kind(_orders, _judged_calls, 2),
    "changed": Kind(_changed, _judged_calls, 2),
    "front": Kind(calls_of, told_of_calls, 1),
    "frames": Kind(frames_of, told_of_frames, 1),
    "steps": Kind(random_steps.make, _played, 1),
}
"""Kinds of streams. The steps need a driver."""
HOSTILE = frozenset({"calls", "orders", "changed"})
"""Kinds of streams that nobody vouches for: whatever they hold, nothing is raised but `UserError`."""


# -- jobs --------------------------------------------------------------------------------------------------------------


def in_use() -> dict[str, Any]:
    """A job: what this process judges by."""
    return {"in use": native.in_use}


def answer(kind: str, items: Items) -> dict[str, Any]:
    """A job: all that is said of a stream, as lines. What the judge raises is an answer, too."""
    lines: list[str] = []
    try:
        lines.extend(KINDS[kind].judge(items))
    except Exception as error:
        lines.append(f"{RAISES}{type(error).__name__}: {error}")
    return {"lines": lines}


def digests(seeds: list[int], kinds: list[str]) -> dict[str, Any]:
    """A job: of each seed's stream, the digest of what is said of it, how many lines that has, and what is raised of a
    hostile one, where anything is."""
    found = []
    for seed in seeds:
        kind = kind_of(seed, kinds)
        lines = answer(kind, KINDS[kind].make(seed))["lines"]
        fault = lines[-1] if kind in HOSTILE and lines and lines[-1].startswith(RAISES) else ""
        found.append((hashlib.sha256(json.dumps(lines).encode()).hexdigest(), len(lines), fault))
    return {"digests": found}

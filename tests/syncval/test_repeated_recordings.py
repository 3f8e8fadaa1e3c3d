"""A recording that repeats an earlier one is not judged again, and nobody notices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import pytest

from tests.support.effects import ALL_FLAGS, B, access, barrier
from vkharness.findings import Finding
from vkharness.fuzz import random_text
from vkharness.syncval import repeated_recordings
from vkharness.syncval.evidence import Description
from vkharness.syncval.execution import Execution, Result
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text
from vkharness.trace.effects import (
    NOTHING_OPEN,
    Access,
    Command,
    CommandBufferReset,
    Destroyed,
    Effect,
    Execute,
    OpenEffects,
    PassBegin,
    Recorded,
    StreamEvent,
    Submission,
    Submitted,
)

FEATURES = [("passes",), ("rendering",), ("events",), ()]
READ, WRITE = access("COPY_TRANSFER_READ"), access("COPY_TRANSFER_WRITE")
BETWEEN = barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")


def new_validator() -> Validator:
    return Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))


class MayAccess(NamedTuple):
    """An access of a command that may happen, which contents decide."""

    access: Access
    idle: bool = False
    loads_values: bool = False

    def most(self) -> tuple[Access, ...]:
        """See `Undecided.most`."""
        return (self.access,)


def random_open(chosen: random.Random, effects: tuple[Effect, ...]) -> OpenEffects:
    """Returns the open effects of a command: none for most, and none for those that do more than access memory."""
    if chosen.random() < 0.8 or not all(isinstance(each, Access) for each in effects):
        return NOTHING_OPEN
    kind = chosen.choice(("COPY_TRANSFER_READ", "COPY_TRANSFER_WRITE"))
    begin = chosen.choice((0, 4, 32))
    may = access(kind, chosen.choice((1, 2, 3, 10, 11)), begin, begin + 32)
    return OpenEffects(chosen.choice((None, None, 0, 1)), None, MayAccess(may, chosen.random() < 0.2))


def random_units(chosen: random.Random, features: tuple[str, ...]) -> list[list[tuple[Effect, ...]]]:
    """Commands of random streams; those of a command buffer with render pass instances stay together."""
    units: list[list[tuple[Effect, ...]]] = []
    while len(units) < 12:
        stream = stream_text.parse(random_text.make(chosen.choice, features))
        submits = [each for each in stream if isinstance(each, Submitted)]
        for commands in (held for submit in submits for batch in submit.batches for _, held in batch.buffers):
            effects = [command.effects for command in commands]
            whole = any(isinstance(each, PassBegin) for several in effects for each in several)
            units += [effects] if whole else [[each] for each in effects]
    return units


def random_rounds(seed: int, features: tuple[str, ...]) -> Iterator[StreamEvent]:
    """Rounds that record a few command buffers: mostly what they held before, sometimes with one command changed, taken
    out or put in, sometimes with the end of a resource between two commands. Each is submitted, some are executed by
    another one."""
    chosen, calls = random.Random(seed), count(1)
    units = random_units(chosen, features)
    open_ones = random.Random(seed + 1)
    opened = dict[int, OpenEffects]()
    plans = {buffer: [chosen.choice(units) for _ in range(chosen.randrange(1, 9))] for buffer in (501, 502, 503)}
    for _ in range(8):
        for buffer, plan in plans.items():
            if chosen.random() < 0.4:
                plan[chosen.randrange(len(plan))] = chosen.choice(units)
            if chosen.random() < 0.2:
                plan.insert(chosen.randrange(len(plan)), chosen.choice(units))
            if chosen.random() < 0.2 and len(plan) > 1:
                del plan[chosen.randrange(len(plan))]
            yield CommandBufferReset(buffer)
            held = []
            for each in chain.from_iterable(plan):
                if id(each) not in opened or open_ones.random() < 0.05:
                    opened[id(each)] = random_open(open_ones, each)
                held.append(Command(next(calls), "vkCmdAnything", None, each, opened[id(each)]))
                yield Recorded(buffer, held[-1], ALL_FLAGS)
                if chosen.random() < 0.05:
                    yield Destroyed(
                        chosen.choice((1, 2, 3, 10, 11)), span=chosen.choice((None, (0, 8), (0, 64), (0, 4096)))
                    )
            if chosen.random() < 0.2:
                outer = Command(next(calls), "vkCmdExecuteCommands", None, (Execute(((buffer, tuple(held)),)),))
                yield Recorded(504, outer, ALL_FLAGS)
            batch = Submission(0, ((buffer, tuple(held)),))
            yield Submitted(next(calls), "vkQueueSubmit2", None, 1, ALL_FLAGS, (batch,), 0)


def judged(stream: list[StreamEvent], ends: random.Random | None = None) -> tuple[list[list[Finding]], int]:
    """Returns the findings of each stream event, and how many commands of recordings were judged for that. With `ends`,
    command buffers are ended now and then, and get more commands all the same."""
    runs = Counter[bool]()
    real = Execution.run_all

    def counted(
        self: Execution, commands: Sequence[Command], queue_flags: int, begin: int = 0, end: int | None = None
    ) -> list[Result]:
        runs[True] += (len(commands) if end is None else end) - begin
        return real(self, commands, queue_flags, begin, end)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Execution, "run_all", counted)
        validator = new_validator()
        found = []
        for each in stream:
            found.append(validator.consume(each))
            if ends is not None and ends.random() < 0.3:
                validator.end_recording(ends.choice((501, 502, 503, 504)))
    return found, runs[True]


@pytest.mark.parametrize("features", FEATURES, ids=lambda each: "+".join(each) or "everything")
def test_findings_come_with_the_same_calls_as_if_every_command_were_judged(
    features: tuple[str, ...], fresh_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = found = 0
    for seed in (*range(32), *range(fresh_seed, fresh_seed + 4)):
        print(f"seed {seed}")
        stream = list(random_rounds(seed, features))
        following, runs = judged(stream)
        monkeypatch.setattr(repeated_recordings, "MOST_KEPT", 0)
        wanted, all_runs = judged(stream)
        monkeypatch.undo()
        assert following == wanted
        saved += all_runs - runs
        found += sum(map(len, wanted))
    assert saved > 10 and found > 10


@pytest.mark.parametrize("most_gone", [0, 2, 256])
def test_a_recording_that_is_ended_goes_on_as_if_it_were_not(
    most_gone: int, fresh_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_recordings, "MOST_GONE", most_gone)
    again = found = 0
    for seed in (*range(32), *range(fresh_seed, fresh_seed + 4)):
        print(f"seed {seed}")
        stream = list(random_rounds(seed, ()))
        wanted, runs = judged(stream)
        ending, all_runs = judged(stream, random.Random(seed))
        assert ending == wanted
        again += all_runs - runs
        found += sum(map(len, wanted))
    assert again > 100 and found > 10


def test_an_ended_recording_keeps_nothing_of_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_recordings, "MOST_GONE", 1)
    validator, calls = new_validator(), count(1)
    record(validator, 1, WRITE, BETWEEN, calls=calls)
    held = validator._recordings._held[1]
    assert held.made is not None
    validator.end_recording(1)
    validator.end_recording(2)
    assert held.made is None
    for space in (70, 71):
        validator.consume(Destroyed(space))
    assert held.made is not None and held.gone is None, "it is made again when much went"
    validator.end_recording(1)
    again = Command(next(calls), "vkCmdAnything", None, (READ,))
    assert validator.consume(Recorded(1, again, ALL_FLAGS)) == [] and held.made is not None
    clash = Command(next(calls), "vkCmdAnything", None, (WRITE,))
    assert [each.hazard for each in validator.consume(Recorded(1, clash, ALL_FLAGS))] == ["WRITE_AFTER_READ"]


def record(
    validator: Validator, buffer: int, *commands: object, calls: Iterator[int], open: OpenEffects = NOTHING_OPEN
) -> list[str]:
    """Begins a command buffer and records commands of one effect each; the hazards that are found. `open`: of the
    second one."""
    validator.consume(CommandBufferReset(buffer))
    hazards: list[str] = []
    for at, effect in enumerate(commands):
        is_open = open if at == 1 else NOTHING_OPEN
        command = Command(next(calls), "vkCmdAnything", None, (effect,), is_open)  # type: ignore[arg-type]
        found = validator.consume(Recorded(buffer, command, ALL_FLAGS))
        hazards += [each.hazard for each in found]
    return hazards


def test_the_first_other_command_is_held_against_all_before_it() -> None:
    validator, calls = new_validator(), count(1)
    for _ in range(3):
        assert record(validator, 1, WRITE, BETWEEN, READ, calls=calls) == []
    assert record(validator, 1, WRITE, READ, calls=calls) == ["READ_AFTER_WRITE"]
    assert record(validator, 1, WRITE, READ, calls=calls) == ["READ_AFTER_WRITE"], "what met something is not followed"
    assert record(validator, 1, WRITE, BETWEEN, READ, WRITE, calls=calls) == ["WRITE_AFTER_READ"]


def test_what_contents_decide_stands_in_no_ones_way() -> None:
    validator, calls = new_validator(), count(1)
    for at in range(3):
        may = OpenEffects(undecided=MayAccess(READ if at % 2 else WRITE))
        assert record(validator, 1, WRITE, BETWEEN, READ, calls=calls, open=may) == []
        assert validator._recordings._held[1].followed == (3 if at else 0)


def test_what_contents_decide_of_what_was_followed_counts_where_a_recording_goes_another_way() -> None:
    other = access("COPY_TRANSFER_READ", B)
    for may, expected in ((READ, []), (other, ["WRITE_AFTER_WRITE"])):
        validator, calls = new_validator(), count(1)
        open = OpenEffects(undecided=MayAccess(may))
        for _ in range(2):
            assert record(validator, 1, WRITE, other, calls=calls, open=open) == []
        assert record(validator, 1, WRITE, other, WRITE, calls=calls, open=open) == expected


def test_a_recording_of_which_more_is_judged_is_no_other_one() -> None:
    validator, calls = new_validator(), count(1)
    idle = OpenEffects(0, None, MayAccess(READ, True))
    for _ in range(2):
        assert record(validator, 1, WRITE, READ, calls=calls, open=idle) == []
    assert record(validator, 1, WRITE, READ, calls=calls) == ["READ_AFTER_WRITE"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_recordings, "MOST_KEPT", 5)
    validator, calls = new_validator(), count(1)
    kept = validator._recordings
    for buffer in range(1, 9):
        record(validator, buffer, WRITE, BETWEEN, calls=calls)
        validator.consume(CommandBufferReset(buffer))
        assert kept._kept == sum(len(each.commands) for each in kept._earlier.values()) <= 5
    assert sorted(kept._earlier) == [7, 8], "the latest"
    record(validator, 8, *[BETWEEN] * 6, calls=calls)
    validator.consume(CommandBufferReset(8))
    assert sorted(kept._earlier) == [7], "one that is too long itself takes nothing else out"
    validator.consume(CommandBufferReset(7, freed=True))
    assert (kept._earlier, kept._kept) == ({}, 0)

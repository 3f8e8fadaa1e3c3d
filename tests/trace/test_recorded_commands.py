"""Commands as columns are the commands that were recorded."""

from __future__ import annotations

import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.effects import access
from vkharness.trace.effects import Command, EffectPlan, OpenEffects
from vkharness.trace.recorded_commands import ExecutedCommands, RecordedCommands

PLANS = [EffectPlan((access("COPY_TRANSFER_READ"),)), EffectPlan(()), EffectPlan((access("COPY_TRANSFER_WRITE"),))]
COMMANDS = st.builds(
    Command,
    st.integers(0, 1 << 40),
    st.sampled_from(["vkCmdDraw", "vkCmdDispatch"]),
    st.sampled_from([None, "draw.py:3"]),
    st.sampled_from(PLANS),
    st.one_of(st.just(OpenEffects()), st.integers(0, 3).map(OpenEffects)),
)


def kept(commands: list[Command]) -> RecordedCommands:
    made = RecordedCommands()
    for each in commands:
        made.append(each)
    return made


@given(st.lists(COMMANDS, max_size=8), st.integers(-9, 9), st.integers(-9, 9))
def test_they_are_a_sequence(commands: list[Command], first: int, last: int) -> None:
    made = kept(commands)
    assert list(made) == commands == list(map(made.__getitem__, range(len(made))))
    assert made == commands and made == kept(commands) and made != [*commands, None]
    assert made[first:last] == commands[first:last]
    assert [each.sure for each in made] == [each.sure for each in commands]
    assert made.plans == [each.plan for each in commands]
    for at in (first, last):
        if -len(commands) <= at < len(commands):
            assert made[at] == commands[at]
        else:
            with pytest.raises(IndexError):
                made[at]


@given(st.lists(COMMANDS, max_size=5), st.lists(COMMANDS, max_size=5))
def test_a_snapshot_stays_as_it_is(before: list[Command], behind: list[Command]) -> None:
    made = kept(before)
    then = made.snapshot()
    for each in behind:
        made.append(each)
    assert list(then) == then[:] == before and then.plans == [each.plan for each in before]
    assert len(made) == len(before) + len(behind)
    with pytest.raises(IndexError):
        then[len(before)]


@pytest.mark.parametrize("behind", [OpenEffects(), OpenEffects(1)])
def test_going_through_a_snapshot_may_pause_while_commands_are_added(behind: OpenEffects) -> None:
    """As a batch does that waits for an event, in a trace that records into a pending command buffer."""
    before = [Command(at, "vkCmdDraw", None, PLANS[0]) for at in range(2)]
    made = kept(before)
    going = iter(made.snapshot())
    paused = [next(going)]
    made.append(Command(9, "vkCmdDispatch", None, PLANS[2], behind))
    assert paused + list(going) == before


def test_what_is_open_is_found_from_any_place_on() -> None:
    made = kept([])
    for at in range(4):
        made.add(at, ("vkCmdDraw", None), PLANS[0], *([OpenEffects(1)] if at in (1, 2) else []))
    assert [list(made.open_from(at)) for at in range(4)] == [[2, 1], [2, 1], [2], []]


def test_a_command_takes_few_bytes() -> None:
    made = kept([Command(1 << 40, "vkCmdDraw", None, PLANS[0])] * 1000)
    columns = (made.calls, made.lines, made.plans)
    assert sum(map(sys.getsizeof, columns)) / len(made) < 30


@given(st.lists(COMMANDS, max_size=3), st.lists(COMMANDS.filter(lambda each: each.sure is None), max_size=5))
def test_columns_are_added_at_once(before: list[Command], behind: list[Command]) -> None:
    made = kept(before)
    lines = [(each.name, each.site) for each in behind]
    made.extend(array("q", [each.call for each in behind]).tobytes(), lines, [each.plan for each in behind])
    assert list(made) == [*before, *behind]


def test_some_commands_do_something_else_when_they_are_executed() -> None:
    recorded, plan = RecordedCommands(), EffectPlan((access("COPY_TRANSFER_READ"),))
    for number in range(3):
        recorded.add(number, ("vkCmdDraw", None), EffectPlan(()), OpenEffects(number))
    for commands in (recorded, recorded.snapshot(), tuple(recorded)):
        made = ExecutedCommands(commands)
        made.replace(1, plan)
        assert len(made) == 3 and made[1] == Command(1, "vkCmdDraw", None, plan)
        assert [made[0], made[2]] == [recorded[0], recorded[2]]
        assert list(recorded) == list(commands) and made[1].sure is None

"""Forms: what commands do to a native store, found out once, and executed many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vkharness import native
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval.context import Context
from vkharness.syncval.execution import Execution
from vkharness.syncval.formed_execution import FormedExecution
from vkharness.syncval.race import RacingWork
from vkharness.trace.effects import (
    Access,
    Alias,
    Barrier,
    Command,
    Dependency,
    Effect,
    PassBegin,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
)

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
FLAGS = 0x7FFFFFFF
COLOR = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"


def write(space: int, *aliases: Alias) -> Access:
    return Access(ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index, space, ((0, 64),), space, aliases=aliases)


def barrier(source: str, target: str) -> Barrier:
    return Barrier((Dependency(*scope(source), *scope(target)),))


def commands(*effects: Sequence[Effect]) -> list[Command]:
    return [Command(call, "vkCmd", None, tuple(several)) for call, several in enumerate(effects)]


def run(execution: Execution, made: list[Command]) -> list[tuple[int, list[str]]]:
    """The calls that met something, each with the calls that it met."""
    execution.batch = execution.context.places.open(execution.context.queue, (1, 0))
    execution.batch.enter(5, 0, made)
    results = execution.run_all(made, FLAGS)
    return [(each.place.call, [str(it.prior.call) for it in each.hazards]) for each in results]


def both(made: list[Command]) -> tuple[list[tuple[int, list[str]]], Execution]:
    """Runs both forms of execution; their answers must be the same."""
    formed, plain = FormedExecution(Context(1)), Execution(Context(1))
    found = run(formed, made)
    assert found == run(plain, made)
    assert formed.context.viewer == plain.context.viewer == 1
    formed.context._check()
    return found, formed


def test_commands_that_meet_nothing_are_executed_in_one_call() -> None:
    made = commands(*[[write(space)] for space in range(20)], [barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")])
    made += made
    both(made)
    execution = FormedExecution(Context(1))
    execution.batch = execution.context.places.open(1, (1, 0))
    execution.batch.enter(5, 0, made)
    assert execution.run_ahead(made, 0, len(made), FLAGS) == (len(made), [])
    assert execution.batch.next - execution.batch.first == len(made)


def test_a_command_that_meets_something_is_executed_and_ends_the_call() -> None:
    made = commands([write(1)], [write(2)], [write(1), write(2)], [write(3)])
    found, _ = both(made)
    assert found == [(2, ["0", "1"])]


def test_accesses_that_meet_one_another_are_checked_before_any_is_applied() -> None:
    made = commands([write(1)], [write(1), write(1)])
    assert both(made)[0] == [(1, ["0", "0"])]


def test_what_is_met_through_an_alias_is_left_to_python() -> None:
    alias = Alias(2, ((0, 64),), 2)
    made = commands([write(2)], [write(1, alias)], [write(1, alias)])
    assert both(made)[0] == [(1, ["0"]), (2, ["1"])]


def test_an_instance_goes_on_where_a_command_inside_has_no_form() -> None:
    access = Access(ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"].index, 7, ((0, 64),), 7)
    through = Access(access.access_kind, 8, ((0, 64),), 8, aliases=(Alias(9, ((0, 64),), 9),))
    order = Dependency(*scope(COLOR), *scope(COLOR))
    begin = PassBegin(2, (SubpassDependency(0, 1, order),))
    instance: list[list[Effect]] = [
        [begin, SubpassBegin(0)],
        [access],
        [through],
        [SubpassBegin(1)],
        [access],
        [PassEnd()],
    ]
    found, execution = both(commands(*instance, *instance))
    assert found == [(7, ["4"]), (8, ["2"])], "nothing orders the second instance behind the first"
    assert execution.instance is None


@pytest.mark.parametrize("subpass", [0, 1])
def test_an_instance_that_begins_inside_of_another_is_left_to_python(subpass: int) -> None:
    """No program may. What was outside of the inner one was taken for what is outside of both."""
    access = Access(ACCESS_KIND["SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"].index, 7, ((0, 64),), 7)
    begin = PassBegin(2, (SubpassDependency(0, 1, Dependency(*scope(COLOR), *scope(COLOR))),))
    inner: list[list[Effect]] = [[begin, SubpassBegin(0)], [access], [PassEnd()], [access], [write(7)]]
    made = commands([begin, SubpassBegin(0)], [access], *[[SubpassBegin(1)]] * subpass, *inner, [PassEnd()], *inner)
    formed, plain = FormedExecution(Context(1)), Execution(Context(1))
    assert run(formed, made) == run(plain, made) != []
    assert formed.context.viewer == plain.context.viewer
    assert formed.context.racing == plain.context.racing


@pytest.mark.parametrize(("kind", "asked"), [("READ", 0), ("WRITE", 3)])
def test_rules_are_asked_about_reads_of_another_queue_by_writes_alone(
    kind: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, asks = Context(1), list[int]()
    reads = [Access(ACCESS_KIND["SYNC_COPY_TRANSFER_READ"].index, space, ((0, 64),), space) for space in range(3)]
    run(FormedExecution(context), commands(*[[each] for each in reads]))
    context.queue = context.viewer = 2
    context.racing = RacingWork(2, {}, frozenset())
    hazards = FormedExecution._hazards

    def counted(*arguments: Any) -> Any:
        asks.append(1)
        return hazards(*arguments)

    monkeypatch.setattr(FormedExecution, "_hazards", counted)
    index = ACCESS_KIND[f"SYNC_COPY_TRANSFER_{kind}"].index
    execution = FormedExecution(context)
    execution.batch = context.places.open(2, (2, 0))
    again = commands(*[[Access(index, each.space, each.spans, each.resource)] for each in reads])
    execution.batch.enter(6, 0, again)
    assert len(execution.run_all(again, FLAGS)) == len(asks) == asked


@pytest.mark.parametrize("queue", [0, 1])
def test_what_a_submit_shows_to_the_host_has_its_token_on_any_queue(queue: int) -> None:
    made = commands([write(1)], [barrier("COPY/TRANSFER_WRITE", "HOST/HOST_READ")])
    states = []
    for kind in (FormedExecution, Execution):
        execution = kind(Context(queue))
        execution.context.host_token = lambda everywhere, reads: 7
        run(execution, made)
        states.append(execution.context.store.states())
    assert states[0] == states[1]
    assert 7 in {token for state in states[0] for view in state.views for token in view.write.tokens}

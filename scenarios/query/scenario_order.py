"""Operations on a query: which are in order by themselves, which need a reset, a wait or a semaphore between them."""

from collections.abc import Sequence
from typing import Any

from vkharness.rig.queues import SemaphoreUse
from vkharness.suite import Rig, race, scenario

BEGIN, END, STAMP = "vkCmdBeginQuery", "vkCmdEndQuery", "vkCmdWriteTimestamp2"
RESET, HOST_RESET, RESULTS = "vkCmdResetQueryPool", "vkResetQueryPool", "vkCmdCopyQueryPoolResults"


def _reset_here_and_stamp_there(
    rig: Rig, semaphore: Any, waits: Sequence[SemaphoreUse], stage: str = "ALL_COMMANDS"
) -> None:
    """One queue resets a query and signals; another queue waits and writes a timestamp."""
    pool = rig.queries("TIMESTAMP", count=1)
    with rig.commands() as first:
        first.reset_queries(pool)
    with rig.commands(queue=rig.queues[1]) as second:
        second.timestamp(pool, stage=stage)
    rig.submit(first, signals=rig.operation("", semaphore), sync2=True)
    rig.submit(second, waits=waits, sync2=True)


@scenario(
    without={"reset between": [race("query-not-reset", BEGIN, END)]},
    rule="a-query-is-reset-before-each-use,operations-on-a-query-are-in-order",
)
def scenario_query_is_used_twice(rig: Rig) -> None:
    """A query is reset between two uses. Commands on one query need no barrier between them."""
    a, b, pool = rig.buffer(64), rig.buffer(64), rig.queries(count=1)
    with rig.submission() as commands:
        commands.query(pool, 0)
        commands.copy_results(pool, a)
        if rig.choose("reset between", True, {}):
            commands.reset_queries(pool)
        commands.query(pool, 0)
        commands.copy_results(pool, b)


@scenario(without={"reset between": [race("query-not-reset", STAMP, STAMP)]}, rule="a-query-is-reset-before-each-use")
def scenario_timestamp_is_written_twice(rig: Rig) -> None:
    """The same of timestamps."""
    pool = rig.queries("TIMESTAMP", count=1)
    with rig.submission() as commands:
        commands.timestamp(pool)
        if rig.choose("reset between", True, {}):
            commands.reset_queries(pool)
        commands.timestamp(pool)


@scenario(
    without={"wait": [race("query-not-awaited", RESULTS, END)]},
    weakened={
        "wait / by a barrier": [],
        "wait / by a barrier of copies": [race("query-not-awaited", RESULTS, END)],
        "wait / with availability": [],
    },
    rule="a-copy-of-results-waits-for-them",
)
def scenario_copy_waits_for_the_end_of_a_query(rig: Rig) -> None:
    """A copy without VK_QUERY_RESULT_WAIT_BIT may come before the end of the query, unless a barrier of ALL_COMMANDS is
    between them. With the availability it is known which results were there."""
    a, pool = rig.buffer(64), rig.queries(count=1)
    others = {"by a barrier": "ALL_COMMANDS", "by a barrier of copies": "COPY", "with availability": "tells"}
    how = rig.choose("wait", "waits", others)
    with rig.submission() as commands:
        commands.query(pool, 0)
        if how in ("ALL_COMMANDS", "COPY"):
            commands.barrier("", how, "COPY")
        commands.copy_results(
            pool, a, stride=8, wait=how == "waits", flags=("WITH_AVAILABILITY",) if how == "tells" else ()
        )


@scenario(without={"query": [race("query-without-result", RESULTS, HOST_RESET)]}, rule="a-copy-needs-results")
def scenario_copy_of_a_query_that_was_ended(rig: Rig) -> None:
    """Results are copied of queries that were ended, and not of those that were only reset."""
    a, pool = rig.buffer(64), rig.queries(count=1)
    ended = bool(rig.choose("query", True, {}))
    with rig.submission() as commands:
        if ended:
            commands.query(pool, 0)
        commands.copy_results(pool, a, stride=8, wait=ended, flags=("WITH_AVAILABILITY",))


@scenario(
    without={"semaphore": [race("query-unordered", STAMP, RESET)]},
    queues=["COMPUTE"],
    rule="operations-on-a-query-are-in-order",
)
def scenario_query_is_reset_on_another_queue(rig: Rig) -> None:
    """Commands on one query are in order on one queue; between two queues a semaphore orders them."""
    s = rig.semaphore()
    _reset_here_and_stamp_there(rig, s, rig.operation("semaphore", s))


@scenario(
    weakened={"stage / compute": [race("query-unordered", STAMP, RESET)]},
    queues=["COMPUTE"],
    rule="a-timestamp-comes-after-its-stage",
)
def scenario_timestamp_waits_with_its_stage(rig: Rig) -> None:
    """A timestamp comes after a semaphore wait of its stage, and not after one of another stage."""
    s, stage = rig.semaphore(), rig.choose("stage", "COPY", {"compute": "COMPUTE_SHADER"})
    _reset_here_and_stamp_there(rig, s, rig.operation("", s, stages="COPY"), stage)


@scenario(
    without={"wait": [race("query-unordered", HOST_RESET, END)]}, rule="the-host-resets-queries-that-are-not-in-use"
)
def scenario_host_resets_a_query(rig: Rig) -> None:
    """The host waits for the commands on a query before it resets the query."""
    pool, fence = rig.queries(count=1), rig.fence()
    with rig.commands() as commands:
        commands.query(pool, 0)
    rig.submit(commands, fence=fence)
    rig.host_wait("wait", "all", fence)
    rig.host_reset(pool)
    with rig.submission() as commands:
        commands.query(pool, 0)

"""Copies of query results write a buffer like other copies: in the COPY stage, a result every stride."""

from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY, RESULTS = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdCopyQueryPoolResults"
RESET = "vkCmdResetQueryPool"
FILLED, READ, WRITTEN = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE"
LATE = [read_after_write(COPY, RESULTS)]
OVER = [write_after_write(RESULTS, FILL)]


@scenario(
    without={"results before copy": LATE},
    weakened={"results before copy / execution only": LATE, "results before copy / after clears": LATE},
    rule="query-results-are-copied-in-the-copy-stage",
)
def scenario_copy_reads_query_results(rig: Rig) -> None:
    """A copy of what a copy of results wrote needs a memory dependency."""
    a, b, pool = rig.buffer(64, data=b"\x77" * 64), rig.buffer(64), rig.queries(count=4)
    with rig.submission() as commands:
        commands.query(pool, 0, 1, 2, 3)
        commands.copy_results(pool, a, count=4)
        commands.barrier(
            "results before copy",
            WRITTEN,
            READ,
            weaker={"execution only": {"src": "COPY", "dst": "COPY"}, "after clears": {"src": FILLED}},
        )
        commands.copy(a, b)


@scenario(
    without={"fill before results": OVER},
    weakened={"fill before results / for reads": OVER},
    rule="query-results-are-copied-in-the-copy-stage",
)
def scenario_query_results_over_a_filled_buffer(rig: Rig) -> None:
    """Results written over a fill need a memory dependency on it."""
    a, pool = rig.buffer(64), rig.queries(count=1)
    with rig.submission() as commands:
        commands.query(pool, 0)
        commands.fill(a, 0x88888888)
        commands.barrier("fill before results", FILLED, WRITTEN, weaker={"for reads": {"dst": READ}})
        commands.copy_results(pool, a)


@scenario(
    without={"copy before results": [write_after_read(RESULTS, COPY)]},
    rule="query-results-are-copied-in-the-copy-stage",
)
def scenario_query_results_after_a_read(rig: Rig) -> None:
    """Results written over what a copy reads need an execution dependency."""
    a, b, pool = rig.buffer(64, data=b"\x99" * 64), rig.buffer(64), rig.queries(count=1)
    with rig.submission() as commands:
        commands.query(pool, 0)
        commands.copy(a, b)
        commands.barrier("copy before results", "COPY", "COPY")
        commands.copy_results(pool, a)


@scenario(weakened={"results / on the filled words": OVER}, rule="query-results-lie-a-stride-apart")
def scenario_gaps_between_query_results(rig: Rig) -> None:
    """Bytes between results are not written: a stride of sixteen leaves twelve bytes alone."""
    a, pool = rig.buffer(64), rig.queries(count=3)
    offset = rig.choose("results", 0, {"on the filled words": 4})
    with rig.submission() as commands:
        commands.query(pool, 0, 1, 2)
        commands.fill(a, 0xAAAAAAAA, 4, 4)
        commands.copy_results(pool, a, count=3, offset=offset, stride=16)


@scenario(weakened={"how many / two": OVER}, rule="query-results-lie-a-stride-apart")
def scenario_stride_of_one_query(rig: Rig) -> None:
    """With one query the stride means nothing; with two it says where the second result is."""
    a, pool = rig.buffer(64), rig.queries(count=2)
    count = rig.choose("how many", 1, {"two": 2})
    with rig.submission() as commands:
        commands.query(pool, 0, 1)
        commands.fill(a, 0xBBBBBBBB, 32, 4)
        commands.copy_results(pool, a, count=count, stride=32)


@scenario(
    weakened={"result / of 64 bits": OVER, "result / with availability": OVER}, rule="query-results-lie-a-stride-apart"
)
def scenario_size_of_query_results(rig: Rig) -> None:
    """A result has four bytes, eight with 64_BIT, and one number more with WITH_AVAILABILITY."""
    a, pool = rig.buffer(64), rig.queries(count=1)
    flags = rig.choose("result", (), {"of 64 bits": ("64",), "with availability": ("WITH_AVAILABILITY",)})
    with rig.submission() as commands:
        commands.query(pool, 0)
        commands.fill(a, 0xCCCCCCCC, 4, 4)
        commands.copy_results(pool, a, stride=8, flags=flags)


@scenario(expects=[race("query-without-result", RESULTS, RESET)], rule="query-results-lie-a-stride-apart")
def scenario_availability_of_a_reset_query(rig: Rig) -> None:
    """Behind its result, a copy says of a query whether it is available: not after a reset, whatever it held before."""
    a, pool = rig.buffer(64), rig.queries(count=1)
    with rig.submission() as commands:
        commands.query(pool, 0)
        commands.reset_queries(pool)
        commands.copy_results(pool, a, stride=8, flags=("WITH_AVAILABILITY",), wait=False)


@scenario(expects=[], rule="query-results-are-copied-in-the-copy-stage")
def scenario_queries_touch_no_buffer(rig: Rig) -> None:
    """Resets, begins, ends and timestamps beside copies of the same buffers are no hazard."""
    a, b, pool = rig.buffer(64), rig.buffer(64), rig.queries(count=2)
    with rig.submission() as commands:
        commands.reset_queries(pool)
        commands.copy(a, b)
        commands.query(pool, 0, 1)
        commands.reset_queries(pool)

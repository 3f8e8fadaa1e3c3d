"""Fills in what rows say of the bytes that a driver leaves (`vkharness.judged_replay`), and of runs as recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.findings import FailedCallError, Finding, UserError
from vkharness.judged_replay import JudgedRun, computed_bytes, judge_serial, race_in_one_instance, resources_of
from vkharness.replay.contents.observe import Outputs, compare
from vkharness.replay.native_strategies.execution_relation import EndlessRunError, relation
from vkharness.replay.native_strategies.large_ranges import with_large_ranges
from vkharness.replay.native_strategies.table import PLAIN, STRATEGIES, NativeRuns, WrongRun
from vkharness.replay.objects.queue_mapping import map_queues, trace_queues
from vkharness.replay.objects.target import open_target
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.report.pictures import write_pictures
from vkharness.spec._generated import TASKS
from vkharness.spec.shapes import main_name
from vkharness.suite.row import Row
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import StreamEvent
from vkharness.verdicts import BrokenPromise, BytesVerdict, NativeVerdict, StrategyRuns

SERIAL_AGAIN = 10
"""How many serial runs must leave the same before such a difference of a run as recorded counts."""


def judge_bytes(
    row: Row,
    blocks: list[Block],
    folder: Path | None,
    times: Mapping[str, int],
    serial: Outputs | None,
    events: Iterable[StreamEvent] | None = None,
    findings: Iterable[Finding] = (),
) -> None:
    """Fills in `row.bytes`, and `row.native` from runs as recorded, `times` by strategy; pictures of the first wrong
    run.

    `serial` is what the serial run left, where it was made already, and `events` are as for `compute`. A stream that
    cannot be replayed, as the verdict of its orders or its hazards says, gets neither. One of whose `findings` has both
    accesses in one render pass instance may leave other bytes by right: no run orders them.
    """
    try:
        serial = serial or run_serial(blocks, row.device)
    except FailedCallError:
        raise
    except UserError as error:
        row.bytes = BytesVerdict(0, 0, unknown=(str(error),))
        return
    computed = computed_bytes(blocks, row.device, events)
    judged = judge_serial(blocks, row.device, serial, computed, lambda: race_in_one_instance(blocks, findings))
    row.bytes = judged.verdict
    if judged.wrong is not None:
        _draw_broken(row, folder, judged)
    if times:
        runs = NativeRuns(blocks, row.device, serial)
        _run_native(row, runs, computed, folder, times)
        row.native = replace(row.native, relation=_relation(runs, findings)) if row.native else None
    if row.bytes.broken:
        row.bytes = replace(row.bytes, commands=_actions(blocks))


def _actions(blocks: list[Block]) -> tuple[str, ...]:
    """The commands of a stream that do work, each once, by name."""
    names = {main_name(each.name) for each in blocks if isinstance(each, Call)}
    return tuple(sorted(name for name in names if name.startswith("vkCmd") and "action" in TASKS.get(name, ())))


def _run_checked(name: str, row: Row, runs: NativeRuns, computed: ComputedBytes, number: int) -> WrongRun | None:
    """One run under a strategy. On a clean stream, undefined bytes are compared with nothing; with bytes that nobody
    computed, a difference counts where serial runs leave the same each time, and if it comes again."""
    wrong = runs.run(name, number)
    if wrong is None or row.expected or row.bytes is None:
        return wrong
    wrong = _in_defined_bytes(wrong, computed)
    if wrong is None or row.bytes.known == row.bytes.total:
        return wrong
    held = resources_of(wrong.differences)
    for _ in range(SERIAL_AGAIN):
        held -= resources_of(compare(runs.serial, run_serial(runs.blocks, row.device)))
        if not held:
            return None
    again = runs.run(name, number)
    return wrong if again and held & resources_of(again.differences) else None


def _in_defined_bytes(wrong: WrongRun, computed: ComputedBytes) -> WrongRun | None:
    """The same without what is undefined; None where nothing else differs."""
    expected = computed.defined(wrong.expected, wrong.observed)
    differences = compare(expected, wrong.observed)
    return WrongRun(expected, wrong.observed, differences) if differences else None


def _draw_broken(row: Row, folder: Path | None, judged: JudgedRun) -> None:
    """Takes a broken promise in, with the pictures of the run that shows it."""
    assert judged.wrong is not None
    row.bytes = judged.verdict
    if folder is not None:
        place = folder / f"broken-{judged.verdict.broken}"
        write_pictures(place, *judged.wrong, {"row": row.scenario, "device": row.device})
        row.artifacts.append(str(place))


def _run_native(
    row: Row, runs: NativeRuns, computed: ComputedBytes, folder: Path | None, times: Mapping[str, int]
) -> None:
    """Runs the stream as recorded under each strategy."""
    first: WrongRun | None = None
    several = []
    for name, count in times.items():
        reason, corrupt, made = "", 0, 0
        try:
            if STRATEGIES[name].grows and count:
                _check_grows(runs)
            for number in range(count):
                wrong = _run_checked(name, row, runs, computed, number)
                made, corrupt, first = made + 1, corrupt + (wrong is not None), first or wrong
        except FailedCallError:
            raise
        except UserError as error:
            if name == PLAIN and not isinstance(error, EndlessRunError):
                raise
            reason = str(error)
        several.append(StrategyRuns(name, corrupt, made, reason))
    row.native = NativeVerdict(sum(each.corrupt for each in several), sum(each.times for each in several), (*several,))
    if first is None or row.bytes is None:
        return
    if not row.expected and not row.bytes.broken:
        _draw_broken(row, folder, JudgedRun(row.bytes).broken(BrokenPromise.DEPENDENCY, first))
    elif folder is not None:
        write_pictures(folder / "native", *first, {"row": row.scenario, "device": row.device})
        row.artifacts.append(str(folder / "native"))


def _relation(runs: NativeRuns, findings: Iterable[Finding]) -> str:
    """How the executions of the hazards lie to each other on the device, in a word; empty without hazards, and where
    the trace does not say on which queues they are."""
    target, blocks = open_target(runs.device), runs.replayable
    queues = trace_queues(blocks)
    mapping = map_queues(queues, target.queue_families, target.family)
    return relation(runs.graph, queues, findings, mapping) or ""


def _check_grows(runs: NativeRuns) -> None:
    """Raises `UserError` for a stream in which invocations of one dispatch overwrite each other once it is larger.

    No judge looks inside a dispatch, but `compute` runs its invocations in two orders: it is asked of ranges twice as
    large, in which as many bytes must be known for each of the stream.
    """
    twice = compute(with_large_ranges(runs.replayable, 0, factor=2).blocks)
    if _unknown(twice) > 2 * _unknown(compute(runs.blocks)):
        raise UserError("as recorded only: invocations of one dispatch would write the same bytes")


def _unknown(computed: ComputedBytes) -> int:
    return sum(int((~cells.known).sum()) for cells in computed.cells.values())

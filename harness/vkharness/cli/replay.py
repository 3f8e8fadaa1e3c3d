"""`vkharness replay TRACE`: runs a trace on a device, in a process that the driver may crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from vkharness.cli import CLEAN, HAZARDS, UNMODELLED, exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import IGNORE, IGNORE_OPTION, STRICT_OPTION, ignore_file
from vkharness.findings import UserError
from vkharness.replay import MODES, strategies

if TYPE_CHECKING:
    from vkharness.device.in_process import InProcess
    from vkharness.device.process import Worker
    from vkharness.groups import Group
    from vkharness.ignore_file import IgnoreFile

LAYER_JOB = "vkharness.layered_replay:layer_job"
REPORT_JOB = "vkharness.layered_replay:report_job"


@click.command()
@click.argument("trace", type=TracePath())
@click.option("--mode", type=click.Choice(MODES), default="serial", show_default=True, help="How to run it.")
@click.option("--device", default="lavapipe", show_default=True, help="A driver's name, or its manifest's path.")
@click.option("--artifacts", type=click.Path(path_type=Path, file_okay=False), help="Folder for pictures and reports.")
@click.option(
    "--iterations",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    help="Runs in native mode; orders in reorder mode, by as many seeds.",
)
@click.option(
    "--strategy", type=click.Choice(strategies.names()), help="In reorder mode, how orders are picked [random]."
)
@click.option("--seed", type=click.IntRange(0), help="In reorder mode, the first seed [0].")
@click.option(
    "--finding", type=click.IntRange(1), help="In witness mode, show this group of findings only (1 is the first)."
)
@click.option(
    "--observed", type=click.Path(path_type=Path), help="In witness mode, judge with what `vkharness observe -o` saw."
)
@IGNORE_OPTION
@STRICT_OPTION
@click.option("--layer", help="Ask this Khronos layer about the trace as recorded: old, today, auto, 1.4.364, a path.")
@click.option("--in-process", is_flag=True, help="Run in this process, under a debugger, and not in a child of it.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds for one run.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the results to this file.")
@click.pass_context
def replay(
    ctx: click.Context,
    trace: Path,
    mode: str,
    device: str,
    artifacts: Path | None,
    iterations: int,
    strategy: str | None,
    seed: int | None,
    finding: int | None,
    observed: Path | None,
    ignore_path: Path | None,
    strict: bool,
    layer: str | None,
    in_process: bool,
    timeout: float,
    json_path: Path | None,
) -> None:
    """Run a trace on a device.

    serial: submission order with full barriers between commands. native: as recorded, several times, each run
    compared with serial. witness: for each hazard, an outcome that it allows, to see what it corrupts. reorder: other
    orders that the trace's synchronization allows, each compared with serial. A line says how many bytes were computed
    on the host, and which promise the driver breaks where it left others. With --layer the trace runs as recorded below
    a Khronos layer, once, and its messages are compared with our findings; --artifacts then is a folder for a report
    of what differs, with the smallest trace in which it does.

    Exit codes: 1 when a native run or an order differs, a promise is broken, witness mode met hazards, or a layer
    disagrees; 3 when no order is known, or no layer disagrees, and something is not modelled; else as for check.
    """
    from vkharness.report.replay_text import result_lines

    _refuse_options(ctx)
    if layer is not None:
        caller = _caller(device, timeout, in_process)
        ctx.exit(_ask_layers(trace, device, layer, caller, artifacts, json_path))
    ignored = ignore_file(ignore_path)
    arguments: dict[str, Any] = {"trace": str(trace), "mode": mode, "device": device}
    with _caller(device, timeout, in_process) as worker:
        if mode == "witness":
            groups, code = _judge(trace, finding, observed, ignored, strict)
            results = _show(worker, arguments, artifacts, groups)
        else:
            if mode == "reorder":
                arguments |= {"strategy": strategy or "random", "seed": seed or 0}
            results, code = _run(worker, {**arguments, "iterations": iterations}, artifacts)
    _write(json_path, mode, device, results)
    echo("\n".join(line for each in results for line in result_lines(mode, each)) or "no hazard to show")
    ignored.require_use()
    ctx.exit(code)


def _refuse_options(ctx: click.Context) -> None:
    """Raises `UserError` for an option that the mode, or a layer, has no use for."""
    mode, given = ctx.params["mode"], ctx.params
    witness = {
        "--finding": given["finding"],
        "--observed": given["observed"],
        IGNORE: given["ignore_path"],
        "--strict": given["strict"] or None,
    }
    for option, value in witness.items():
        if value is not None and mode != "witness":
            raise UserError(f"{option} goes with --mode witness")
    if (given["strategy"] is not None or given["seed"] is not None) and mode != "reorder":
        raise UserError("--strategy and --seed go with --mode reorder")
    if given["layer"] is None:
        return
    chosen = {name for name in given if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if "mode" in chosen and mode != "native":
        raise UserError("--layer asks about the trace as recorded, and goes with --mode native alone")
    if "iterations" in chosen:
        raise UserError("--iterations does not go with --layer: the trace runs once and its bytes are not compared")


def _caller(device: str, timeout: float, in_process: bool) -> Worker | InProcess:
    """Returns the executor of the jobs: a child process, or this one."""
    from vkharness.device.drivers import find_driver
    from vkharness.device.in_process import InProcess
    from vkharness.device.process import Worker

    driver = find_driver(device)
    return InProcess(driver) if in_process else Worker(driver, timeout=timeout)


def _ask_layers(
    trace: Path, device: str, choice: str, caller: Worker | InProcess, folder: Path | None, json_path: Path | None
) -> int:
    """Asks each chosen layer and prints its answer, with the report of what differs in `folder`; the exit code of
    all."""
    from vkharness.case.group_replays import outcome
    from vkharness.layer.manifest import chosen_layers
    from vkharness.report.layer_report import layer_lines

    layers = chosen_layers(choice)
    if not layers:
        raise UserError(f"--layer {choice}: there is no layer to ask")
    results = []
    with caller as worker:
        for each in layers:
            arguments: dict[str, Any] = {"trace": str(trace), "device": device, "layer": str(each.manifest)}
            result = outcome(worker, arguments, survive=False, job=LAYER_JOB)
            if folder is not None and (result["disagreements"] or result["expected"]):
                arguments["folder"] = str(folder / f"layer-{each.version_text}")
                result["report"] = _report(worker, arguments)
            results.append(result)
    _write(json_path, "layer", device, results)
    for line in (line for result in results for line in layer_lines(result)):
        echo(line)
    if any(result["disagreements"] for result in results):
        return HAZARDS
    return UNMODELLED if any(result["unmodelled"] for result in results) else CLEAN


def _report(worker: Any, arguments: dict[str, Any]) -> str:
    """Writes a report with the smallest trace, or with the whole one where the driver dies of a smaller one."""
    from vkharness.case.group_replays import outcome

    try:
        return str(outcome(worker, arguments, survive=False, job=REPORT_JOB)["report"])
    except UserError:
        whole = {**arguments, "smaller": False}
        return str(outcome(worker, whole, survive=False, job=REPORT_JOB)["report"])


def _write(path: Path | None, mode: str, device: str, results: list[dict[str, Any]]) -> None:
    """Writes the file of --json, where one is asked for."""
    if path is not None:
        from vkharness.report.findings_json import write_json

        write_json(path, {"version": 1, "mode": mode, "device": device, "results": results})


def _run(worker: Any, arguments: dict[str, Any], artifacts: Path | None) -> tuple[list[dict[str, Any]], int]:
    """The result of every mode but witness, and its exit code."""
    from vkharness.case.group_replays import outcome

    where = {} if artifacts is None else {"artifacts": str(artifacts)}
    result = outcome(worker, {**arguments, **where}, survive=False)
    broken = result.get("bytes", {}).get("broken")
    differs = HAZARDS if result.get("differing_runs") or broken else CLEAN
    return [result], UNMODELLED if result.get("unmodelled") else differs


def _show(worker: Any, arguments: dict[str, Any], artifacts: Path | None, groups: list[Group]) -> list[dict[str, Any]]:
    """Shows the effect of the hazard of each group on the bytes."""
    from vkharness.case.group_replays import show_group

    return [show_group(worker, arguments, artifacts, group) for group in groups]


def _judge(
    trace: Path, wanted: int | None, observed: Path | None, ignored: IgnoreFile, strict: bool
) -> tuple[list[Group], int]:
    """The groups to show, and the exit code that the trace's verdict calls for. What is ignored is shown on request."""
    from vkharness.cli.verdict import AUTO, ask_model, make_analysis, refutation_of
    from vkharness.groups import chosen, groups_of
    from vkharness.trace.codec import read_trace

    notes: list[str] = []
    refutation, blocks = refutation_of(observed), read_trace(trace, notes)
    mirror = make_analysis(AUTO, bounds=False, strict=strict).follow(
        blocks if refutation is None else refutation.follow(blocks)
    )
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    ask_model(mirror, AUTO)
    if refutation is not None:
        refutation.mark(mirror.findings)
    ignored.mark(mirror.findings)
    groups = groups_of(mirror.findings)
    if wanted is not None:
        return [chosen(groups, wanted, trace)], exit_code(mirror.verdict)
    return [group for group in groups if group.ignored < group.count], exit_code(mirror.verdict)

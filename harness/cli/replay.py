"""`vkharness replay TRACE`: runs a trace on a device, in a process that the driver may crash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from harness.cli import CLEAN, HAZARDS, exit_code
from harness.findings import UserError

MODES = ("native", "serial", "reorder", "witness")
JOB = "harness.report.replays:replay_job"


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--mode", type=click.Choice(MODES), default="serial", show_default=True, help="How to run it.")
@click.option("--device", default="lavapipe", show_default=True, help="A driver's name, or its manifest's path.")
@click.option("--artifacts", type=click.Path(path_type=Path, file_okay=False), help="Folder for pictures and records.")
@click.option(
    "--iterations", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Runs in native mode."
)
@click.option("--finding", type=click.IntRange(1), help="In witness mode, show this finding only (1 is the first).")
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
    finding: int | None,
    timeout: float,
    json_path: Path | None,
) -> None:
    """Run a trace on a device.

    serial: submission order with full barriers between commands. native: as recorded, several times, each run
    compared with serial. witness: for each hazard, an outcome that it allows, to see what it corrupts. reorder: a
    legal order other than submission order.

    Exit codes: 1 when a native run differs, or when witness mode met hazards; else as for check.
    """
    from harness.device.drivers import find_driver
    from harness.device.process import Worker

    if finding is not None and mode != "witness":
        raise UserError("--finding goes with --mode witness")
    arguments: dict[str, Any] = {"trace": str(trace), "mode": mode, "device": device}
    if artifacts is not None:
        arguments["artifacts"] = str(artifacts)
    code = CLEAN
    with Worker(find_driver(device), timeout=timeout) as worker:
        if mode == "witness":
            findings, code = _judge(trace, finding)
            results = []
            for number, found in findings:
                one = artifacts and {"artifacts": str(artifacts / f"finding-{number}")}
                result = _outcome(worker, {**arguments, "finding": found, **(one or {})}, survive=True)
                results.append({"number": number, "finding": found, **result})
        else:
            result = _outcome(worker, {**arguments, "iterations": iterations}, survive=False)
            results = [result]
            code = HAZARDS if result.get("differing_runs") else CLEAN
    if json_path is not None:
        from harness.report.findings_json import write_json

        write_json(json_path, {"version": 1, "mode": mode, "device": device, "results": results})
    for result in results:
        for line in result_lines(mode, result):
            click.echo(line)
    if not results:
        click.echo("no hazard to show")
    ctx.exit(code)


def _judge(trace: Path, wanted: int | None) -> tuple[list[tuple[int, dict[str, Any]]], int]:
    """The findings to show, numbered from 1, and the exit code that the trace's verdict calls for."""
    from harness.check import Mirror
    from harness.trace.codec import read_trace

    mirror = Mirror().follow(read_trace(trace))
    findings = [(number, found.to_dict()) for number, found in enumerate(mirror.findings, start=1)]
    if wanted is not None:
        if wanted > len(findings):
            raise UserError(f"--finding {wanted}: {trace} has {len(findings)} findings")
        findings = [findings[wanted - 1]]
    return findings, exit_code(mirror.verdict)


def _outcome(worker: Any, arguments: dict[str, Any], *, survive: bool) -> dict[str, Any]:
    """What the job says. A driver that dies is a result when `survive` is set, else a `UserError`."""
    from harness.device.process import Died

    answer = worker.call(JOB, arguments)
    if not isinstance(answer, Died):
        assert isinstance(answer, dict)
        return answer
    last = answer.stderr_tail.splitlines()[-1:] or [""]
    reason = f"{arguments['device']} {answer.reason} while it replayed {arguments['trace']}"
    if not survive:
        raise UserError(f"{reason}: {last[0]}" if last[0] else reason)
    return {"shown": False, "reason": reason, "outcome": "", "differences": [], "stderr": answer.stderr_tail}


def result_lines(mode: str, result: dict[str, Any]) -> Iterator[str]:
    """A result in words, a line each."""
    if mode == "witness":
        yield from _witness_lines(result)
        return
    surfaces = result.get("surfaces", [])
    yield f"{mode} on {result['device']}: {len(surfaces)} buffers and image subresources observed"
    for resource, reason in result.get("unobserved", {}).items():
        yield f"  not observed: {resource}: {reason}"
    for note in result.get("notes", []):
        yield f"  note: {note}"
    runs = result.get("runs")
    if runs is not None:
        yield f"  {result['differing_runs']} of {len(runs)} runs differ from the serial one"
        for number, run in enumerate(runs, start=1):
            for difference in run:
                yield f"  run {number}: {difference_line(difference)}"


def _witness_lines(result: dict[str, Any]) -> Iterator[str]:
    found = result["finding"]
    word = "shown" if result["shown"] else "not shown"
    yield f"{result['number']}. {found['hazard']} {found['command']} after {found['prior_command']}: {word}"
    if found["site"] or found["prior_site"]:
        yield f"   at {found['site']} after {found['prior_site']}"
    if result["reason"]:
        yield f"   {result['reason']}"
    for difference in result["differences"]:
        yield f"   {difference_line(difference)}"
    if result["outcome"]:
        yield f"   outcome: {result['outcome']}"
    for picture in result.get("pictures", []):
        yield f"   {picture}"


def difference_line(difference: dict[str, Any]) -> str:
    """'buffer 7: 64 of 64 differ, first at (0,): expected 11111111, observed 00000000'."""
    where = f"{difference['kind']} {difference['resource']}"
    if difference["subresource"]:
        where += " (" + ", ".join(f"{key} {value}" for key, value in difference["subresource"].items()) + ")"
    first = ", ".join(map(str, difference["first"]))
    return (
        f"{where}: {difference['count']} of {difference['total']} differ, first at {first}: "
        f"expected {difference['expected']}, observed {difference['observed']}"
    )

"""`vkharness campaign fuzz|matrix`: a hunt over many seeds, on every core or on many machines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo

FUZZ = ("agreement", "layer", "orders", "mends")


def _shared(command: Any) -> Any:
    """The options of every campaign."""
    for option in reversed(
        (
            click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file of results."),
            click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler; without it, a cluster here."),
            click.option("--jobs", type=click.IntRange(1, 1024), default=os.cpu_count() or 1, help="Workers here."),
            click.option("--memory", default="2GiB", show_default=True, help="The most that a worker here may use."),
            click.option("--device", default="lavapipe", show_default=True, help="The driver that runs streams."),
            click.option("--layer", default="today", show_default=True, help="Khronos layer to ask."),
        )
    ):
        command = option(command)
    return command


@click.group()
def campaign() -> None:
    """Hunt over many seeds, on every core of this machine or on the workers of a Dask scheduler.

    The file of results grows by one line a chunk. The same command goes on where it was stopped. Exit codes: 0 nothing
    discovered, 1 something discovered, 2 usage.
    """


@campaign.command()
@click.option("--hunt", "work", type=click.Choice(FUZZ), default=FUZZ[0], show_default=True, help="What streams do.")
@click.option("--count", type=click.IntRange(1), default=100_000, show_default=True, help="Streams.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--chunk", "size", type=click.IntRange(1), default=200, show_default=True, help="Streams a chunk.")
@click.argument("families", nargs=-1)
@_shared
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    work: str,
    count: int,
    seed: int,
    size: int,
    families: tuple[str, ...],
    device: str,
    layer: str,
    **where: Any,
) -> None:
    """Hunt on random streams. FAMILIES are kinds of steps, or features for `--hunt agreement`."""
    from vkharness.campaign.kinds import NEEDS_NO_DEVICE
    from vkharness.campaign.plan import Plan

    _check_families(work, families)
    if work in NEEDS_NO_DEVICE:
        device = layer = ""
    _conduct(ctx, Plan(work, seed, count, size, families, device, layer if work == "layer" else ""), **where)


@campaign.command()
@click.option("--chunk", "size", type=click.IntRange(1), default=40, show_default=True, help="Cells a chunk.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Execute one cell in so many.")
@_shared
@click.pass_context
def matrix(ctx: click.Context, /, size: int, every: int, device: str, layer: str, **where: Any) -> None:
    """Every cell of the operation matrix (see `vkharness matrix`) on one device.

    With `--every 20`, one cell in 20 is executed and shown to the layer. The others are judged by syncval and the
    model, many in one recording, which takes about a fifth of the time.
    """
    from vkharness.campaign.plan import Plan
    from vkharness.suite.matrix.cells import cells

    _conduct(ctx, Plan("matrix", 0, len(cells()), size, (), device, layer, every), **where)


def _check_families(work: str, families: tuple[str, ...]) -> None:
    from vkharness.fuzz.random_steps import FAMILIES
    from vkharness.fuzz.random_text import FEATURES

    known = FEATURES if work == "agreement" else tuple(FAMILIES)
    for each in families:
        if each not in known:
            raise click.UsageError(f"--hunt {work} knows no {each!r}, only {', '.join(known)}")
    if families and work in ("orders", "mends"):
        raise click.UsageError(f"--hunt {work} takes no FAMILIES")


def _conduct(ctx: click.Context, plan: Any, output: Path, scheduler: str | None, jobs: int, memory: str) -> None:
    """Runs what is left of a campaign and prints what it came to."""
    from vkharness.campaign.cluster import conduct, connected
    from vkharness.campaign.record import CampaignFile, causes, plan_text, totals
    from vkharness.report.console import progress_bars

    with CampaignFile(output, plan) as record:
        had = len(record.results)
        echo(plan_text(plan) + (f"; {had} of {plan.chunk_count} chunks were done" if had else ""))
        if had < plan.chunk_count:
            with progress_bars() as progress, connected(scheduler, jobs, memory) as client:
                bar = progress.add_task(plan.work, total=plan.chunk_count, completed=had)
                conduct(plan, record, client, lambda result: progress.advance(bar))
        results = list(record.results.values())
    echo(", ".join(f"{count} {what}" for what, count in sorted(totals(results).items())))
    found = causes(results)
    for each in found:
        echo(f"\n{each.times} times: {each.cause}\nseed {each.example.seed}: {each.example.text}")
    ctx.exit(HAZARDS if found else CLEAN)

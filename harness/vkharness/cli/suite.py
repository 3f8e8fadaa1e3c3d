"""`vkharness suite`: every scenario that comes with the harness, under pytest."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGS]...")
@click.pass_context
def suite(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Run the scenarios that come with vkharness; no checkout is needed.

    PYTEST ARGS go to pytest: -k NAME, -n auto, --vk-device MANIFEST, --vk-baseline DIR, or the id of a row as it was
    printed (scenarios/barrier/...). `pytest --help` lists those that begin with --vk. Exit codes are pytest's.
    """
    from vkharness.suite.whole_suite import run_suite

    ctx.exit(run_suite(arguments))

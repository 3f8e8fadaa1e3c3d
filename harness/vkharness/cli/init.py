"""`vkharness init DIR`: a project with one scenario, to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def init(folder: Path) -> None:
    """Make a project with one scenario, a shader of its own, known results and files for continuous integration.

    No file is overwritten.
    """
    from vkharness.suite.new_project import make_project

    for path in make_project(folder):
        echo(str(path))
    echo(f"now: cd {folder} && pytest -k scenario --vk-device lavapipe --vk-baseline baseline --vk-report report")

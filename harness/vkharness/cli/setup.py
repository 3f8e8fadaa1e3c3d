"""`vkharness setup`: drivers, layers and the capture tools for this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

import vkharness
from vkharness.cli import BAD_INPUT, CLEAN
from vkharness.findings import UserError

SCRIPT = Path(vkharness.__file__).parent / "device" / "bring_drivers.bash"


@click.command()
@click.pass_context
def setup(ctx: click.Context) -> None:
    """Install three software drivers, the Khronos layers and the capture tools (Debian and Ubuntu).

    What is there stays as it is. Packages need root or sudo; other files go to ~/.cache/vkharness.
    """
    try:
        ran = subprocess.run(["bash", str(SCRIPT), sys.executable], check=False)
    except OSError as error:
        raise UserError(f"bash cannot be started: {error.strerror}") from None
    ctx.exit(BAD_INPUT if ran.returncode else CLEAN)

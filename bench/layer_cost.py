"""Cost of a call under the mirror layer, in CPU time of the program, beside the Khronos layer.

    .venv/bin/python bench/layer_cost.py [--driver lavapipe] [--stacks 0] [--stacks 16]

One C program makes the same calls in each run, 20 frames deep: a command without pointers, a copy of one region, a
barrier for one buffer, and a submit with the wait for it while memory is mapped and written. Each figure is the least
of several rounds, in microseconds a call; a layer's is what it adds to the bare program. The stream goes to a folder
in memory, where there is one.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import click

from vkharness.device.drivers import environment, find_driver
from vkharness.device.manifests import find_layers
from vkharness.mirror_layer import manifest
from vkharness.mirror_layer.layer_build import NAME
from vkharness.report.console import terminal

PROGRAM = Path(__file__).with_name("layer_calls.c")
KHRONOS = "VK_LAYER_KHRONOS_validation"
IN_MEMORY = Path("/dev/shm")


def times(program: Path, driver: str, layer: str, folder: Path | None, **more: str) -> dict[str, float]:
    """Microseconds of each kind of call under a layer, none where it is empty."""
    own = {"VK_INSTANCE_LAYERS": layer, **({} if folder is None else {"VK_ADD_LAYER_PATH": str(folder)}), **more}
    environ = {**os.environ, **environment(find_driver(driver)), **own}
    done = subprocess.run([str(program)], env=environ, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(program: Path, driver: str, stacks: tuple[int, ...], out: Path) -> dict[str, dict[str, float]]:
    """Name of a run to its times."""
    bare = times(program, driver, "", None)
    found = {"bare": bare}
    own = manifest()
    for depth in stacks if own is not None else ():
        made = {"VKHARNESS_OUT": str(out / str(depth)), "VKHARNESS_STACKS": str(depth)}
        found[f"+ mirror layer, {depth} frames"] = times(program, driver, NAME, own and own.parent, **made)
    khronos = [layer for layer in find_layers() if layer.name == KHRONOS]
    for layer in khronos[-1:]:
        asked = {"VK_KHRONOS_VALIDATION_VALIDATE_SYNC": "true", "VK_KHRONOS_VALIDATION_VALIDATE_CORE": "false"}
        name = f"+ Khronos layer {layer.api_version}, synchronization alone"
        found[name] = times(program, driver, KHRONOS, layer.manifest.parent, **asked)
    added = {name: {kind: value - bare[kind] for kind, value in each.items()} for name, each in found.items()}
    return {**added, "bare": bare}


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--driver", default="lavapipe", show_default=True)
@click.option("--stacks", multiple=True, type=int, default=(0, 16), show_default=True)
def main(driver: str, stacks: tuple[int, ...]) -> None:
    """A line for each run."""
    from rich.table import Table

    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        program = Path(folder) / "layer_calls"
        subprocess.run(["cc", "-O2", str(PROGRAM), "-o", str(program), "-lvulkan"], check=True)
        found = rows(program, driver, stacks, Path(folder))
    table = Table("run", *(f"{kind} us" for kind in found["bare"]), box=None)
    for name, each in found.items():
        table.add_row(name, *(f"{value:.2f}" for value in each.values()))
    terminal().print(table)


if __name__ == "__main__":
    main()

"""`vkharness drivers`: the ICDs and layers of this machine, their versions, and what each can run."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import vkharness
from vkharness import native
from vkharness.cli.last_resort import echo
from vkharness.device.drivers import Driver, find_drivers
from vkharness.device.inventory import survey
from vkharness.device.manifests import Layer, find_layers, when_it_loads
from vkharness.device.origins import BroughtPackage, find_origins
from vkharness.record import written_pages

if TYPE_CHECKING:
    from rich.table import Table


@click.command()
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all that was found to this file.")
def drivers(json_path: Path | None) -> None:
    """List the Vulkan drivers (ICDs) and layers of this machine, and the packages that setup took them from.

    Each driver is asked in a process of its own, so a driver that crashes is a row like the others.
    """
    from vkharness.report.console import terminal
    from vkharness.report.run_header import harness_line

    problems: list[str] = []
    rows = [{**_of_driver(driver), **survey(driver)} for driver in find_drivers(problems)]
    for row in rows:
        del row["failed"]
    layers = [_of_layer(layer) for layer in find_layers(problems)]
    origins = find_origins(problems)
    if json_path is not None:
        from vkharness.report.findings_json import write_json

        document = {"version": 1, "drivers": rows, "layers": layers, "packages": [asdict(each) for each in origins]}
        used = {"judged_by": native.in_use, "mapped_memory": written_pages.in_use()}
        write_json(json_path, {**document, "problems": problems, **used})
    console = terminal()
    for table in (_driver_table(rows), _layer_table(layers), *([_origin_table(origins)] if origins else [])):
        console.print(table)
    loaders = sorted({row["loader"] for row in rows if row["loader"]})
    python = platform.python_version()
    console.print(harness_line(vkharness.__version__, python, ", ".join(loaders)), highlight=False)
    console.print(f"judged by: {native.in_use}", highlight=False)
    console.print(f"writes to mapped memory are found by: {written_pages.in_use()}", highlight=False)
    for problem in problems:
        echo(f"vkharness: unreadable manifest {problem}", err=True)
    for origin in origins:
        for name in origin.changed:
            echo(f"vkharness: {origin.folder}/{name} is not the file that {origin.package} has", err=True)


def _of_driver(driver: Driver) -> dict[str, Any]:
    return {
        "name": driver.name,
        "kind": driver.kind,
        "manifest": str(driver.manifest),
        "library": driver.library,
        "manifest_api_version": driver.api_version,
    }


def _of_layer(layer: Layer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "implicit": layer.implicit,
        "loads": when_it_loads(layer),
        "api_version": layer.api_version,
        "implementation_version": layer.implementation_version,
        "description": layer.description,
        "manifest": str(layer.manifest),
        "library": layer.library,
    }


UUID_DIGITS = 32
"""Characters of a UUID, which is on one line however narrow the terminal is."""


def _driver_table(rows: list[dict[str, Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="drivers", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("driver", "device", "API", "version and UUID", "can run"):
        least = UUID_DIGITS if heading == "version and UUID" else None
        table.add_column(heading, no_wrap=heading in ("driver", "API"), min_width=least)
    for row in rows:
        for cells in _device_cells(row):
            table.add_row(*cells)
    return table


def _device_cells(row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A table row for each device of a driver; one that says why where there is none."""
    if row["status"] != "ok":
        said = "\n".join([row["status"], *row["loader_says"]])
        yield (row["name"], "-", row["manifest_api_version"], "-", said)
    for device in row["devices"]:
        abilities = ", ".join(device["abilities"])
        if not device["executes"]:
            # RADV of Mesa 22.3 without hardware has no memory, and dies in vkBeginCommandBuffer.
            what = "records, executes nothing" if device["memory_types"] else "no memory: makes objects only"
            abilities = f"{what}: {abilities}"
        version = f"{device['driver_version']}\n{device['uuid']}".strip()
        yield (row["name"], device["name"], device["api_version"], version, abilities)


def _layer_table(layers: list[dict[str, Any]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="layers", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("layer", "API", "version", "loads", "manifest"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "API")
    for layer in layers:
        told = (layer[key] for key in ("name", "api_version", "implementation_version", "loads", "manifest"))
        table.add_row(*told)
    return table


def _origin_table(origins: list[BroughtPackage]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="packages that setup brought", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("package", "version", "SHA-256", "unpacked into"):
        table.add_column(heading, overflow="fold")
    for origin in origins:
        table.add_row(origin.package, origin.version, origin.sha256 or "-", origin.folder or "(installed)")
    return table

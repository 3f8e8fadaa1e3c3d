"""The table of what `ci/distributions` found: for each distribution, versions and sums of all tests.

    python -m bench.distributions [--add ROOT [--asked ARGUMENTS]]

`--add` reads what a run left in a root, and adds its line to distributions.jsonl. `--asked` is what pytest was asked
for, where that was not all.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click

LINES = Path(__file__).with_suffix(".jsonl")
COLUMNS = ("date", "asked", "python", "mesa", "loader", "layers", "passed", "failed", "skipped", "minutes")


def sums(xml: Path) -> dict[str, int]:
    """What came of the tests, from the file that pytest's --junitxml wrote. Errors of fixtures count as failures."""
    suites = [each.attrib for each in ElementTree.parse(xml).getroot().iter("testsuite")]
    total = {key: sum(int(each[key]) for each in suites) for key in ("tests", "failures", "errors", "skipped")}
    failed = total["failures"] + total["errors"]
    seconds = sum(float(each["time"]) for each in suites)
    passed = total["tests"] - failed - total["skipped"]
    return {"passed": passed, "failed": failed, "skipped": total["skipped"], "minutes": round(seconds / 60)}


def versions(document: dict[str, Any], printed: str) -> dict[str, str]:
    """Versions from what `vkharness drivers --json` wrote and printed."""
    told = [device["driver_version"] for driver in document["drivers"] for device in driver["devices"]]
    mesa = sorted({found[1] for each in told if (found := re.search(r"Mesa ([\d.]+)", each))})
    layers = [each["api_version"] for each in document["layers"] if each["name"] == "VK_LAYER_KHRONOS_validation"]
    here = re.search(r"Python ([\d.]+), loader ([\d.]+)", printed)
    return {
        "python": here[1] if here else "unknown",
        "loader": here[2] if here else "none",
        "mesa": ", ".join(mesa) or "none",
        "layers": ", ".join(sorted(layers)) or "none",
        "drivers": ", ".join(sorted(driver["name"] for driver in document["drivers"] if driver["status"] == "ok")),
    }


def line_of(root: Path, asked: str) -> dict[str, Any]:
    """The line of the run whose files are in the home folder of `root`."""
    home = root / "root"
    release = dict(
        line.split("=", 1) for line in (root / "etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
    )
    name = f"{release['NAME'].strip(chr(34)).removesuffix(' GNU/Linux')} {release['VERSION_ID'].strip(chr(34))}"
    command = ["git", "-C", str(home / "vkharness"), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "distribution": name,
        "date": datetime.date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "cores": os.cpu_count(),
        "asked": asked or "all",
        **versions(json.loads((home / "drivers.json").read_text(encoding="utf-8")), (home / "drivers.txt").read_text()),
        **sums(home / "tests.xml"),
    }


def table(lines: list[dict[str, Any]]) -> list[str]:
    """The newest line of each distribution and what was asked there, with a heading."""
    newest = {(each["distribution"], each["asked"]): each for each in lines}
    rows = [("distribution", *COLUMNS)]
    rows += [(name, *(str(each[key]) for key in COLUMNS)) for (name, _), each in sorted(newest.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


@click.command()
@click.option("--add", type=click.Path(exists=True, path_type=Path), help="Add what a run left in this root.")
@click.option("--asked", default="", help="What pytest was asked for in that run [all].")
def main(add: Path | None, asked: str) -> None:
    """Print the table; the newest run of each distribution counts."""
    if add is not None:
        with LINES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line_of(add, asked)) + "\n")
        return
    lines = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()] if LINES.exists() else []
    click.echo("\n".join(table(lines)))


if __name__ == "__main__":
    main()

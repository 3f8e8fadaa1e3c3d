"""Is the stream of the mirror layer that of Python's mirror? Scenarios and their twins, recorded by both at once.

    python -m bench.mirrored_scenarios [--device NAME]... [--every N] [--first N] [PATH]...

Each variant is recorded in a process of its own, under both mirrors, on the first of the drivers that can. A line says
where their streams or what is found in them differ. Handles and sizes are compared as they are: both number what they
see in order. Not compared are the declared reads of the host, which no layer can see; the calls that the loader makes
for itself; and the streams of scenarios with several queues that the device lacks, which are emulated between both
mirrors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import click

from vkharness.capture.layer import mirror_environment, mirror_layer
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import Finding, UserError
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.live.records import streams_in
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import scenarios
from vkharness.suite.twins import Twin
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.codec import load, save

ROOT = Path(__file__).resolve().parents[1]
OF_LOADER = frozenset(
    {"vkEnumerateDeviceExtensionProperties", "vkEnumeratePhysicalDevices", "vkEnumeratePhysicalDeviceGroups"}
)
"""Calls that the loader and other layers make, too."""
BEFORE_LAYERS = frozenset(
    {"vkEnumerateInstanceExtensionProperties", "vkEnumerateInstanceLayerProperties", "vkEnumerateInstanceVersion"}
)
"""Calls that come to no layer: there is no instance."""
DEVICES = ("lavapipe", "swiftshader", "lavapipe-25")
EMULATED, UNRECORDED = "emulated queues", "cannot be recorded here"
NEEDED = ("vulkan", "vkharness.record.session", "vkharness.record.decode", "vkharness.late_analysis")
TRACE, WHY, STREAM = "trace.jsonl", "why.txt", "stream"


def main_of_child(module: str, folder: str, *names: str) -> None:
    """Records each variant of some scenarios of a file, in a process of its own."""
    for each in NEEDED:  # by each of these processes, which then need not read it
        import_module(each)
    found = load_module(Path(module))
    for name in names:
        claim = getattr(found, name)
        assert isinstance(claim, Claim)
        for variant in claim.variants:
            place = Path(folder, name, variant.name or "whole")
            place.mkdir(parents=True)
            process = os.fork()
            if not process:
                os.environ["VKHARNESS_OUT"] = str(place / STREAM)
                _record(claim, Twin(variant), place)
                return
            os.waitpid(process, 0)


def _record(claim: Claim, twin: Twin, place: Path) -> None:
    try:
        session, _, is_emulated = record(claim, twin.amend, None)
    except UserError as error:
        Path(place, WHY).write_text(str(error), encoding="utf-8")
        return
    save(place / TRACE, session.blocks or [])
    if is_emulated:
        Path(place, WHY).write_text(EMULATED, encoding="utf-8")


class Heard(NamedTuple):
    """What one mirror heard."""

    blocks: list[Block]
    verdict: str
    findings: list[str]
    unmodelled: dict[str, int]


def heard_by_python(place: Path) -> Heard:
    """What Python's mirror recorded, without the reads that only it is told of."""
    blocks: list[Block] = [block for block in load(place / TRACE) if not isinstance(block, HostRead)]
    analysis = Analysis().follow(blocks)
    return Heard(blocks, analysis.verdict, _said(analysis.findings), analysis.unmodelled)


def heard_by_layer(place: Path) -> Heard:
    """What the layer recorded."""
    (folder,) = streams_in(place / STREAM)
    blocks: list[Block] = []
    session = judge_folder(folder, Analysis(), NativeSites(LineTables()), blocks.append)
    return Heard(blocks, session.verdict, _said(session.findings), session.unmodelled)


def _said(findings: list[Finding]) -> list[str]:
    return sorted(f"{each.hazard} {each.place.command} {each.prior.command} {each.ranges}" for each in findings)


def differences(python: Heard, layer: Heard) -> Iterator[str]:
    """What differs, in words: the first block that does, and what is found."""
    ours, theirs = ([_normal(each) for each in _own(blocks)] for blocks in (python.blocks, layer.blocks))
    for at in range(max(len(ours), len(theirs))):
        first, second = (each[at] if at < len(each) else ("nothing",) for each in (ours, theirs))
        if first != second:
            yield f"block {at}: Python: {_shown(first, second)}; layer: {_shown(second, first)}"
            break
    for what in ("verdict", "findings", "unmodelled"):
        first, second = getattr(python, what), getattr(layer, what)
        if first != second:
            yield f"{what}: Python: {first}; layer: {second}"


def _own(blocks: list[Block]) -> Iterator[Block]:
    return (each for each in blocks if not (isinstance(each, Call) and each.name in OF_LOADER | BEFORE_LAYERS))


def _normal(block: Block) -> tuple[Any, ...]:
    """A block without its number and its place in the source."""
    if isinstance(block, Call):
        return block.name, block.args, block.result, block.thread, block.unread
    assert isinstance(block, HostWrite)
    return "host write", block.memory, block.offset, block.data, block.initial


def _shown(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    """A block in words: only what is not in the other one, where both are of one kind."""
    if one[0] != other[0] or len(one) != len(other):
        return str(one)[:300]
    return str([_unlike(mine, its) for mine, its in zip(one, other, strict=True) if mine != its])[:300]


def _unlike(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _unlike(held, other.get(name)) for name, held in one.items() if held != other.get(name)}
    return one


def compared(place: Path) -> tuple[str, list[str]]:
    """How both streams of a variant lie to each other, and what differs."""
    why = place / WHY
    if why.exists():
        return (EMULATED if why.read_text() == EMULATED else UNRECORDED), []
    if not (place / TRACE).exists():
        return "died", []
    found = list(differences(heard_by_python(place), heard_by_layer(place)))
    return "different" if found else "same", found


def record_file(module: Path, names: Sequence[str], folder: Path, device: str = "lavapipe") -> list[Path]:
    """Records scenarios of one file on a driver; the folder of each variant."""
    layer = mirror_layer()
    if layer is None:
        raise UserError("the mirror layer is not built here: run harness/vkharness/native/build.py")
    variables = mirror_environment(layer, folder, environment(find_driver(device), os.environ))
    words = [sys.executable, "-m", "bench.mirrored_scenarios", "--child", str(module), str(folder), *names]
    subprocess.run(words, env=variables | {"PYTHONPATH": str(ROOT)}, check=True)
    return sorted(each for name in names for each in (folder / name).iterdir())


def compare_file(module: Path, names: Sequence[str], devices: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Each variant of scenarios of one file: its name, how both streams lie to each other, and what differs. What one
    driver cannot record is recorded on the next."""
    for device, further in zip(devices, [*devices[1:], None], strict=True):
        left = []
        with tempfile.TemporaryDirectory() as place:
            for variant in record_file(module, names, Path(place), device):
                came, found = compared(variant)
                if came == UNRECORDED and further is not None:
                    left.append(variant.parent.name)
                else:
                    yield f"{module.parent.name}/{variant.parent.name} {variant.name}", came, found
        names = list(dict.fromkeys(left))
        if not names:
            return


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--device", "devices", multiple=True, default=DEVICES, show_default=True, help="A driver (repeatable).")
@click.option("--every", default=1, show_default=True, help="Only each so manieth scenario.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(devices: tuple[str, ...], every: int, first: int, paths: tuple[Path, ...]) -> None:
    """Prints what differs, then the counts."""
    counts: Counter[str] = Counter()
    chosen = list(scenarios(list(paths) or [ROOT / "scenarios"]))[first::every]
    try:
        for module, named in groupby(chosen, lambda each: each[0]):
            for name, came, found in compare_file(module, [name for _, name in named], devices):
                counts[came] += 1
                for each in found:
                    click.echo(f"{name}: {each}")
    finally:  # also of a run that is interrupted
        click.echo(", ".join(f"{number} {what}" for what, number in counts.most_common()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        main_of_child(*sys.argv[2:])
    else:
        main()

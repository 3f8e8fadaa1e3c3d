"""Results of runs that never happened: lines of a results file, with the records and traces that pages are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.commands.test_debug_info import name as name_object
from tests.support.streams import two_buffers
from vkharness.replay.contents.observe import Outputs, Surface, compare
from vkharness.report.pictures import write_pictures
from vkharness.results.result_lines import ClaimText, DeviceIdentity, LayerIdentity, RowResult, RunHeader
from vkharness.results.states import RowState
from vkharness.suite.row import Row
from vkharness.trace.codec import save
from vkharness.verdicts import LayerVerdict, ModelVerdict, Status, WitnessVerdict

LAVAPIPE, SWIFTSHADER = "lavapipe", "swiftshader"
READ_AFTER_WRITE = "READ_AFTER_WRITE vkCmdCopyBuffer after vkCmdFillBuffer"
EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
"""A name that a page must show as it is."""
SOURCE = '''"""Fills and copies."""


@scenario(without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]})
def scenario_copy(rig):
    """A copy that reads what a fill wrote
    needs a memory dependency."""
    commands.fill(a, 7)  # the earlier access
    commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
    commands.copy(a, b)
'''
FILE = "scenarios/transfer/scenario_copies.py"
FILL_LINE, COPY_LINE = 8, 10


def header(**options: Any) -> RunHeader:
    """The first line of a results file."""
    drivers = [
        DeviceIdentity(each, f"the {each}", "1.3", "22.3", "c0ffee", "icd.json", "lib.so")
        for each in (LAVAPIPE, SWIFTSHADER)
    ]
    layers = (LayerIdentity("1.3.239", "layer.json", "layer.so"),)
    return RunHeader(
        "0.1.0", "3.11.2", "2026-01-31T02:00:00+00:00", tuple(drivers), layers, "1.3.239", 7, options=options
    )


def result(
    row: Row, state: RowState = RowState.PASS, title: str = "A copy waits.", seconds: float = 0.5, line: int = 5
) -> RowResult:
    """A line of a results file about a row of the file that `SOURCE` stands in."""
    family, _, scenario = row.scenario.partition("/")
    twin, dependency = (
        ("without", row.variant.removeprefix("without_").replace("_", " "))
        if "without" in row.variant
        else ("whole", "")
    )
    claim = ClaimText(title, f"{title}\n{EVIL}", FILE, line, family, "read-after-write", twin, dependency)
    nodeid = f"{FILE}::{scenario}[{row.variant}-{row.device}]"
    return RowResult(nodeid, row.to_dict(), state, state, seconds, claim, (state,))


def clean_row(scenario: str, where: str = LAVAPIPE, variant: str = "whole") -> Row:
    """A row that passed, of a scenario named `family/scenario_name`."""
    return Row(scenario, variant, where, [], model=ModelVerdict(), layers={"1.3.239": LayerVerdict()})


def failed_row(scenario: str, reason: str, where: str = LAVAPIPE) -> Row:
    """A row with which the model does not agree."""
    row = clean_row(scenario, where)
    row.model, row.status, row.reasons = ModelVerdict((reason,)), Status.FAILED, [f"model: {reason}"]
    return row


def hazardous_row(folder: Path, where: str = LAVAPIPE, scenario: str = "transfer/scenario_copy") -> Row:
    """A row without its dependency, with its trace and its pictures in `folder`. A fill and a copy of 256 words, of
    which 64 differ from byte 16 on; the buffer has a name that is markup."""
    row = Row(scenario, "without_fill_before_copy", where, [READ_AFTER_WRITE], [READ_AFTER_WRITE])
    row.model, row.layers, row.witness = ModelVerdict(), {"1.3.239": LayerVerdict(by_version=1)}, WitnessVerdict(1, 1)
    place = folder / row.scenario / row.variant / where
    place.mkdir(parents=True)
    stream, a, b = two_buffers(1024)
    name_object(stream, a, EVIL)
    name_object(stream, b, EVIL)
    stream.begin()
    stream.fill(a, 7)
    stream.blocks[-1].site = f"{folder}/{FILE}:{FILL_LINE}"
    stream.copy(a, b, 1024)
    stream.blocks[-1].site = f"{folder}/{FILE}:{COPY_LINE}"
    stream.submit()
    save(place / "trace.jsonl", stream.blocks)
    before = np.full(1024, 0x11, np.uint8)
    after = before.copy()
    after[16 : 16 + 256] = 0xAE
    expected, observed = (Outputs({(b, None): Surface(b, None, data)}) for data in (before, after))
    record = {
        "row": row.scenario,
        "device": where,
        "caption": f"READ_AFTER_WRITE on VkBuffer {a} {EVIL}",
        "outcome": "witness:1",
    }
    write_pictures(place / "0-read_after_write", expected, observed, compare(expected, observed), record)
    row.artifacts.append(str((place / "0-read_after_write").relative_to(folder)))
    return row


def write_clean_trace(folder: Path, row: Row) -> Path:
    """The trace of a clean row in `folder`: a fill, a barrier and a copy."""
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    stream.barrier()
    stream.copy(a, b, 64)
    stream.submit()
    place = folder / row.scenario / row.variant / row.device
    place.mkdir(parents=True)
    save(place / "trace.jsonl", stream.blocks)
    return place / "trace.jsonl"


def write_source(folder: Path) -> None:
    """Writes the file of the scenarios below `folder`."""
    (folder / FILE).parent.mkdir(parents=True)
    (folder / FILE).write_text(SOURCE)

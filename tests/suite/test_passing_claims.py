"""A reduced trace becomes a claim that passes, or none: contents, addresses and ownership are those of the trace."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.reproduction.test_written_claims import copies_after_fill
from tests.support.streams import Stream
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Finding, UserError
from vkharness.reduction.reduce import reduce
from vkharness.reproduction.scenario_file import write_claim
from vkharness.reproduction.script import wrapped
from vkharness.suite import passing_scenario as module
from vkharness.suite.passing_scenario import Passing, passing_scenario
from vkharness.trace.calls import Block
from vkharness.trace.codec import load

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
TWINS = [
    ("descriptor/scenario_addresses.py", "stores_and_loads_through_addresses", "rig.address_bytes("),
    ("descriptor/scenario_loaded_values.py", "an_address_in_a_uniform_block", "rig.address_bytes("),
    ("queue/scenario_ownership.py", "image_goes_to_another_family", "exclusive=True"),
    ("engines/scenario_dxvk.py", "upload_ahead_of_the_frame", "rig.queues[1].family"),
    ("draw/scenario_indirect.py", "draw_reads_updated_parameters", ""),
]
"""Scenarios without their first dependency: what a program with a race is, and what its scenario must say."""


def first_finding(blocks: list[Block]) -> Finding:
    return next(each for each in Analysis().follow(blocks).findings if each.counts)


def written(blocks: list[Block], folder: Path, name: str = "scenario_race.py") -> Passing:
    small = reduce(blocks, first_finding(blocks))
    return passing_scenario(small.blocks, small.finding, folder / name, "x.jsonl", [find_driver("lavapipe")], [])


@pytest.mark.parametrize(("file", "scenario", "says"), TWINS, ids=[each[1] for each in TWINS])
def test_a_program_with_a_race_becomes_a_claim_that_passes(file: str, scenario: str, says: str, tmp_path: Path) -> None:
    trace = tmp_path / "whole.jsonl"
    arguments = {"module": str(SCENARIOS / file), "scenario": f"scenario_{scenario}", "trace": str(trace)}
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        worker.call("tests.support.claim_jobs:recorded_without", arguments)
    made = written(load(trace), tmp_path)
    assert made.devices == ("lavapipe",) and made.known.keys() <= {"witness"}
    assert says in made.made.text


def filled_twice_with_the_same() -> list[Block]:
    stream = Stream()
    a = stream.buffer(64)
    stream.begin()
    stream.fill(a, 7)
    stream.fill(a, 7)
    stream.submit()
    return stream.blocks


@pytest.mark.driver
def test_a_hazard_that_no_outcome_shows_is_said_to_be_benign(tmp_path: Path) -> None:
    made = written(filled_twice_with_the_same(), tmp_path)
    assert made.known.keys() == {"witness"} and "leave the same bytes" in made.known["witness"]
    assert '"witness": ' in made.made.text


@pytest.mark.driver
def test_what_does_not_pass_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario that is written has a barrier where the trace has none."""
    blocks = copies_after_fill()
    finding = first_finding(blocks)

    def wrong(*arguments: object) -> object:
        made = write_claim(*arguments)  # type: ignore[arg-type]
        made.text = made.text.replace("read_after_write(", "write_after_read(").replace(
            "import Rig, read_after_write", "import Rig, write_after_read"
        )
        return made

    monkeypatch.setattr(module, "write_claim", wrong)
    with pytest.raises(UserError, match="it would not pass: without_fill_buffer_before_copy_buffer on lavapipe: sync"):
        passing_scenario(blocks, finding, tmp_path / "scenario_x.py", "x", [find_driver("lavapipe")], [])


@pytest.mark.parametrize("length", [20, 36, 90])
def test_lines_are_cut_at_the_call_at_their_end(length: int) -> None:
    line = f'    code_1 = Path(__file__).with_name("{"a" * length}.spv").read_bytes()'
    for text in (line, f'    made = function("{"a," * length}\\")", [1, (2, 3)], {{"k": (1, 2)}}, x=f(1, 2))'):
        ast.parse("def f():\n" + "\n".join(wrapped(text)))

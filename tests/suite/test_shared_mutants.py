"""Mistakes planted in shared code: what they are, that a process with one says who notices, and how that is told."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from vkharness.layer.parse import LayerMessage
from vkharness.replay.contents.observe import Outputs, Surface
from vkharness.suite.mutation.rule_mutants import RuleMutant
from vkharness.suite.mutation.shared_evidence import Evidence, read_evidence, write_evidence
from vkharness.suite.mutation.shared_judging import TEXT_STREAMS
from vkharness.suite.mutation.shared_mutants import TABLES, shared_mutants
from vkharness.suite.mutation.shared_streams import Planted, judge_planted, table

HOST_IN_ALL_COMMANDS = "STAGE_EXPANSION: VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT with VK_PIPELINE_STAGE_2_HOST_BIT"
OF_ONE_JUDGE = "`if not mask & WHOLE_SECOND` never"
"""A function that syncval reads alone: the model works its second scopes out by itself."""


@cache
def mutants() -> tuple[RuleMutant, ...]:
    return tuple(shared_mutants())


def named(end: str) -> list[RuleMutant]:
    """The mutants whose text ends so."""
    return [each for each in mutants() if str(each).endswith(end)]


def folder_of_texts(folder: Path, count: int) -> Path:
    (folder / TEXT_STREAMS).write_text(json.dumps({"first": 1, "count": count, "left_out": []}), encoding="utf-8")
    return folder


def test_every_mistake_has_a_name_of_its_own_and_tables_have_theirs() -> None:
    several = mutants()
    assert len({(each.decider, each.number) for each in several}) == len(several) > 1000
    assert any(str(each).endswith(HOST_IN_ALL_COMMANDS) for each in several if each.module == TABLES)
    assert {each.judge for each in several} == {"spec", "trace", "commands", "spans"}


def test_what_only_one_judge_reads_makes_them_disagree(tmp_path: Path) -> None:
    (noticed,) = judge_planted(named(OF_ONE_JUDGE), folder_of_texts(tmp_path, 15), 1)
    assert noticed.ways == ["agreement"]


def test_what_both_judges_read_alike_is_not_noticed_by_agreement(tmp_path: Path) -> None:
    (noticed,) = judge_planted(named(HOST_IN_ALL_COMMANDS), folder_of_texts(tmp_path, 5), 1)
    assert noticed.told == {"agreement": "", "layer": "", "bytes": ""} and noticed.ways == []


@pytest.mark.parametrize("runs", [True, False])
def test_what_is_known_of_a_stream_is_read_as_it_was_written(runs: bool, tmp_path: Path) -> None:
    texels = np.arange(8, dtype=np.uint8).reshape(1, 2, 2, 2)
    surfaces = {
        (7, (1, 0, 0)): Surface(7, (1, 0, 0), texels, "VK_FORMAT_R8G8_UNORM"),
        (3, None): Surface(3, None, texels),
    }
    left = Outputs(surfaces, {9: "no memory"}) if runs else None
    hazard = LayerMessage("SYNC-HAZARD-READ-AFTER-WRITE", "READ_AFTER_WRITE", "vkCmdCopyBuffer", "text", "record")
    said = [hazard, replace(hazard, handle=("VkBuffer", 5), bytes=(0, 64), call=12)]
    write_evidence(tmp_path / "000000001.jsonl", Evidence((1, 4, 364), said, left))
    read = read_evidence(tmp_path / "000000001.jsonl")
    assert (read.version, read.messages) == ((1, 4, 364), said)
    assert (read.left is None) is (left is None)
    if left is not None and read.left is not None:
        assert read.left.unobserved == left.unobserved and read.left.surfaces.keys() == left.surfaces.keys()
        for name, held in left.surfaces.items():
            now = read.left.surfaces[name]
            assert (now.resource, now.subresource, now.format, now.samples) == (*name, held.format, held.samples)
            assert np.array_equal(now.data, held.data)


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ({"agreement": "", "layer": "", "bytes": ""}, "1 0 0 0 0 0 1"),
        ({"agreement": "7", "layer": "", "bytes": "000000004"}, "1 1 1 0 1 0 0"),
        ({"error": "KeyError"}, "1 0 0 0 0 1 0"),
    ],
)
def test_the_table_says_who_noticed(told: dict[str, str], counts: str) -> None:
    told_to = io.StringIO()
    Console(width=200, file=told_to).print(
        table([Planted(RuleMutant("vkharness.spec.scopes", "bits", 0, 1, "changed"), told)])
    )
    rows = [line.split() for line in told_to.getvalue().splitlines()[2:]]
    assert rows == [["spec", *counts.split()], ["all", *counts.split()]]

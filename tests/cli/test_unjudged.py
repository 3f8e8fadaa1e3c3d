"""Parts that a verdict leaves out, as `check` names them in words and in JSON, and their form with `--bounds`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.ring import HALVES, Ring
from vkharness.cli.check import check
from vkharness.trace.codec import save

DRAWS = "vertices through indices whose contents are unknown"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A ring buffer with two draws whose indices nobody knows."""
    ring = Ring().overwrites(HALVES[0])
    for _ in range(2):
        ring.draws(indexCount=3, instanceCount=1)
    ring.submit()
    path = tmp_path / "ring.jsonl"
    save(path, ring.blocks)
    return path


def checked(trace: Path, *options: str) -> tuple[Result, dict[str, Any]]:
    document = trace.with_suffix(".json")
    result = CliRunner().invoke(check, [str(trace), "--json", str(document), *options])
    return result, json.loads(document.read_text())


def test_what_is_left_out_is_counted_and_makes_the_verdict_unknown_where_it_is_in_no_order(trace: Path) -> None:
    result, document = checked(trace)
    assert (result.exit_code, document["verdict"], document["findings"]) == (3, "unknown", [])
    assert document["left_out"] == {DRAWS: 2}
    (what,) = document["unmodelled"]
    assert "vkCmdDrawIndexed may read of VkBuffer" in what and "--bounds" in what
    assert f"2 draws read {DRAWS}" in result.stdout.splitlines()


def test_what_is_left_out_leaves_verdict_and_exit_code_alone_where_it_is_in_order(tmp_path: Path) -> None:
    ring = Ring().overwrites(HALVES[0])
    ring.barrier()
    ring.draws(indexCount=3, instanceCount=1).submit()
    path = tmp_path / "ordered.jsonl"
    save(path, ring.blocks)
    result, document = checked(path)
    assert (result.exit_code, document["verdict"], document["left_out"]) == (0, "clean", {DRAWS: 1})
    assert result.stdout.splitlines() == ["clean - no hazard", f"1 draw reads {DRAWS}"]


def test_bounds_show_it_as_findings_that_say_so(trace: Path) -> None:
    result, document = checked(trace, "--bounds")
    assert (result.exit_code, document["verdict"], document["left_out"]) == (1, "hazards", {})
    assert [each["certainty"] for each in document["findings"]] == ["bound", "bound"]
    assert result.stdout.count("(at most: which bytes are read follows from contents that are unknown)") == 2

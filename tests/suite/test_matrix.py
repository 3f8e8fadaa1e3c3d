"""The operation matrix: what its rules say, and a sample of its cells on both drivers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vkharness.device.pool import Answer, sample
from vkharness.device.process import Died
from vkharness.findings import Hazard
from vkharness.suite import runner
from vkharness.suite.matrix import totals as table
from vkharness.suite.matrix.cells import Cell, cells
from vkharness.suite.matrix.defects import DEFECTS
from vkharness.suite.matrix.judge_cells import judge_cells, judge_together
from vkharness.suite.matrix.operation_table import DEVICE, ENGINE, HOST
from vkharness.suite.matrix.operations import OPERATIONS
from vkharness.suite.matrix.page import write_page
from vkharness.suite.matrix.primitives import PRIMITIVES
from vkharness.suite.matrix.resource_kinds import RESOURCES
from vkharness.suite.row import Row
from vkharness.verdicts import Status, WitnessVerdict

SEED, CELLS = 20261121, 40


def cell(first: str, second: str, primitive: str = "barrier2", defect: str = "none") -> Cell:
    kind = next(each for each in OPERATIONS[first].kinds if each in OPERATIONS[second].kinds)
    resource = next(each for each in RESOURCES.values() if each.kind == kind)
    return Cell(OPERATIONS[first], OPERATIONS[second], resource, PRIMITIVES[primitive], DEFECTS[defect])


def hazard(of: Cell) -> Hazard | None:
    return of.expected[0].hazard if of.expected else None


@pytest.mark.parametrize(
    ("first", "second", "without", "execution_only"),
    [
        ("fill", "copy from buffer", Hazard.READ_AFTER_WRITE, Hazard.READ_AFTER_WRITE),
        ("copy from buffer", "fill", Hazard.WRITE_AFTER_READ, None),
        ("fill", "update", Hazard.WRITE_AFTER_WRITE, Hazard.WRITE_AFTER_WRITE),
        ("clear color attachment", "load color attachment", Hazard.READ_AFTER_WRITE, Hazard.READ_AFTER_WRITE),
    ],
)
def test_what_the_rules_call_for(
    first: str, second: str, without: Hazard | None, execution_only: Hazard | None
) -> None:
    assert hazard(cell(first, second)) is None
    assert hazard(cell(first, second, "nothing")) == without
    assert hazard(cell(first, second, defect="missing")) == without
    assert hazard(cell(first, second, defect="wrong source stage")) == without
    assert hazard(cell(first, second, defect="execution only")) == execution_only


def test_there_are_thousands_of_cells_with_names_of_their_own() -> None:
    names = [each.name for each in cells()]
    assert len(names) > 10_000
    assert len(set(names)) == len(names)
    assert {each.primitive.name for each in cells()} == set(PRIMITIVES)
    assert {each.defect.name for each in cells()} == set(DEFECTS)
    assert {each.second.name for each in cells()} == set(OPERATIONS)
    assert {each.first.name for each in cells()} == set(OPERATIONS) - {"present"}
    assert {each.resource.name for each in cells()} == set(RESOURCES)


def test_the_matrix_has_the_scale_of_the_conformance_suite() -> None:
    writes = [each for each in OPERATIONS.values() if each.writes]
    assert len(RESOURCES) >= 17 and len(writes) >= 33 and len(OPERATIONS) - len(writes) >= 39
    assert {each.place for each in OPERATIONS.values()} == {DEVICE, HOST, ENGINE}


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    total = len(cells())
    assert sample(total, 50, 1) == sample(total, 50, 1) != sample(total, 50, 2)
    assert len(set(sample(total, 50, 1))) == 50


@pytest.mark.parametrize("device", ["lavapipe", "swiftshader"])
@pytest.mark.slow
def test_cells_agree_and_their_hazards_are_shown(device: str) -> None:
    numbers = sample(len(cells()), CELLS, SEED)
    print(f"{CELLS} cells, seed {SEED}")
    rows = [row for _, row in judge_cells(numbers, device, "auto", True, 1)]
    assert len(rows) == CELLS
    failed = [row for row in rows if row.status not in (Status.PASSED, Status.UNAVAILABLE)]
    assert [f"{row.scenario}: {row.reasons or row.problem}" for row in failed] == []
    assert all(row.problem for row in rows if row.status is Status.UNAVAILABLE)
    assert sum(row.witness is not None and row.witness.is_complete for row in rows) > CELLS // 4


@pytest.mark.driver
def test_cells_in_one_recording_are_judged_like_each_alone() -> None:
    cells_of = {each.name: number for number, each in enumerate(cells())}
    chosen = [
        cell("fill", "copy from buffer"),
        cell("fill", "copy from buffer", "nothing"),
        cell("capture vertices", "draw byte count", defect="missing"),
        cell("copy from buffer", "fill", defect="execution only"),
        cell("clear color", "present", "presentation"),
    ]
    rows = dict(judge_together([cells_of[each.name] for each in chosen], "lavapipe"))
    said = [rows[cells_of[each.name]] for each in chosen]
    assert [row.scenario for row in said] == [each.name for each in chosen]
    assert [row.syncval for row in said] == [[str(each) for each in of.expected] for of in chosen[:4]] + [[]]
    lacks = "VK_EXT_headless_surface" in said[4].problem  # as lavapipe does before Mesa 25
    assert [str(row.status) for row in said] == ["passed"] * 4 + ["unavailable" if lacks else "passed"]


def test_a_cell_of_a_recording_that_disagrees_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from vkharness.suite.matrix import judge_cells as module

    tried: list[int] = []

    def alone(number: int, device: str, layer: str, execute: bool) -> dict[str, Any]:
        tried.append(number)
        return Row(cells()[number].name, "whole", device, [], status=Status.FAILED, reasons=["so it is"]).to_dict()

    def together(several: list[Cell], _: object, device: str) -> list[Row]:
        return [Row(each.name, "whole", device, [], status=list(Status)[at > 0]) for at, each in enumerate(several)]

    assert list(Status)[:2] == [Status.PASSED, Status.FAILED]
    monkeypatch.setattr(module, "run", alone)
    monkeypatch.setattr(module, "_judged_together", together)
    rows = module.run_together([0, 1, 2], "lavapipe")["rows"]
    assert tried == [1, 2]
    assert [row["reasons"] for row in rows] == [[], ["so it is"], ["so it is"]]


def test_a_dead_driver_costs_the_cell_that_killed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deadly = 7

    def jobs(
        _: object, __: str, several: list[dict[str, Any]], ___: int, **____: object
    ) -> Iterator[tuple[int, Answer]]:
        for position, job in enumerate(several):
            number = job["task"]["number"]
            if number == deadly:
                yield position, Died(11, None, "")
            else:
                yield position, {"value": Row(cells()[number].name, "whole", "lavapipe", []).to_dict()}

    monkeypatch.setattr(runner, "run_jobs", jobs)
    done: list[int] = []
    rows = dict(judge_cells(range(50), "lavapipe", "off", False, 1, done.append))
    assert {number: row.status for number, row in rows.items()} == {
        n: Status.DIED if n == deadly else Status.PASSED for n in range(50)
    }
    assert rows[deadly].problem == "the driver process was killed by SIGSEGV"
    assert sum(done) == 50


def test_tables_and_page_count_cells(tmp_path: Path) -> None:
    chosen = [cell("fill", "copy from buffer", "nothing"), cell("fill", "update"), cell("clear color", "blit to image")]
    rows = [
        Row(chosen[0].name, "whole", "lavapipe", [], ["READ_AFTER_WRITE"], witness=WitnessVerdict(1, 1)),
        Row(chosen[1].name, "whole", "lavapipe", [], status=Status.FAILED, reasons=["syncval: <unexpected>"]),
        Row(chosen[2].name, "whole", "lavapipe", []),
    ]
    judged = list(zip(chosen, rows, strict=True))
    by_primitive = table.sums(judged, "primitive")
    assert (by_primitive["nothing"].shown, by_primitive["nothing"].hazards) == (1, 1)
    assert (by_primitive["barrier2"].cells, by_primitive["barrier2"].agreed) == (2, 1)
    assert len(table.tables(judged)) == 5
    write_page(tmp_path / "page.html", judged)
    page = (tmp_path / "page.html").read_text()
    assert "syncval: &lt;unexpected&gt;" in page
    assert page.count('class="wrong"') == 1

"""The page of a case: which picture stands below which surface."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.support.streams import two_buffers
from vkharness.case.case_page import write_page
from vkharness.case.case_steps import PICTURES, Case, CaseSource
from vkharness.check import Analysis
from vkharness.groups import groups_of
from vkharness.replay.contents.observe import Outputs, Surface, compare
from vkharness.report.pictures import write_pictures


def surfaces(value: int, *resources: int) -> Outputs:
    made = Outputs()
    for resource in resources:
        made.surfaces[resource, None] = Surface(resource, None, np.full(64, value, np.uint8), "", 1)
    return made


def test_a_surface_that_one_run_alone_has_shifts_no_pictures(tmp_path: Path) -> None:
    stream, a, b = two_buffers(256)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 256)
    stream.submit()
    (group,) = groups_of(Analysis().follow(stream.blocks).findings)
    case = Case(CaseSource(stream.blocks, "t.jsonl", [], "no driver", 1), group, tmp_path)
    expected, observed = surfaces(0, 5, 7), surfaces(1, 7)
    differences = compare(expected, observed)
    assert [each.resource for each in differences] == [5, 7]
    paths = write_pictures(tmp_path / PICTURES, expected, observed, differences, {})
    case.shown = {"differences": [each.to_dict() for each in differences], "pictures": [*map(str, paths)]}
    write_page(case, [])
    page = (tmp_path / "index.html").read_text()
    pictured = {
        text: part.count("data:image/png") for text, part in re.findall(r"<h3>(buffer \d)(.*?)(?=<h3>|<ul)", page, re.S)
    }
    assert pictured == {"buffer 5": 0, "buffer 7": 3}

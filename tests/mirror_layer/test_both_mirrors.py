"""Python's mirror and the layer on the same programs: `bench.mirrored_scenarios`, on a few of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.mirrored_scenarios import ROOT, compared, differences, heard_by_layer, heard_by_python, record_file
from vkharness import mirror_layer
from vkharness.trace.calls import Call, HostWrite

FEW = {
    "descriptor/scenario_ranges.py": ("scenario_pushed_descriptors",),
    "engines/scenario_filament.py": ("scenario_secondaries_of_a_pass",),
    "host/scenario_writes.py": ("scenario_two_frames_in_flight",),
}

pytestmark = [
    pytest.mark.driver,
    pytest.mark.skipif(mirror_layer.manifest() is None, reason="the mirror layer is not built here (ci/setup)"),
]


@pytest.mark.parametrize("file", FEW, ids=lambda each: Path(each).parent.name)
def test_both_have_the_same_calls_and_findings(file: str, tmp_path: Path) -> None:
    variants = record_file(ROOT / "scenarios" / file, list(FEW[file]), tmp_path)
    assert len(variants) > 1
    assert {each.name: compared(each) for each in variants} == {each.name: ("same", []) for each in variants}
    whole = next(each for each in variants if each.name == "whole")
    python, layer = heard_by_python(whole), heard_by_layer(whole)
    assert "host" not in file or any(isinstance(each, HostWrite) for each in layer.blocks)
    submit = next(each for each in layer.blocks if isinstance(each, Call) and each.name.startswith("vkQueueSubmit"))
    at = layer.blocks.index(submit)
    other = [*layer.blocks[:at], replace(submit, result=-4), *layer.blocks[at + 1 :]]
    (told,) = differences(python, layer._replace(blocks=other))
    assert told.endswith("Python: [0]; layer: [-4]")
    (told,) = differences(python, layer._replace(verdict="unknown"))
    assert told.startswith("verdict: Python: clean; layer: unknown")

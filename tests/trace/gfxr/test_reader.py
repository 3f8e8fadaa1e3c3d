"""A capture of GFXReconstruct read as it is: the same calls as converted, and what the converter leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.capture_files import CAPTURE, put_together, take_apart
from vkharness.check import Analysis
from vkharness.trace.calls import FOUND_WRITES, Call, HostWrite
from vkharness.trace.codec import load, save

CONVERTED = CAPTURE.with_suffix(".jsonl")
SPIRV = Path(__file__).parents[3] / "shaders" / "array_specialized_index.comp.spv"


def differences(ours: Any, theirs: Any, path: str) -> list[str]:
    """Paths of the values that differ, where the converted capture has a value at all."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        return [line for key in ours for line in differences(ours[key], theirs[key], f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [line for a, b in zip(ours, theirs, strict=True) for line in differences(a, b, path)]
    return [] if ours == theirs else [path]


def calls(path: Path) -> list[Call]:
    return [block for block in load(path) if isinstance(block, Call)]


def test_every_call_is_that_of_the_converted_capture() -> None:
    """The two are of two runs of one program. What differs are its heap addresses, floats that the converter rounds,
    and bytes that it leaves out."""
    ours, theirs = calls(CAPTURE), calls(CONVERTED)
    assert [call.name for call in ours] == [call.name for call in theirs]
    assert [call.index for call in ours] == [call.index for call in theirs]
    assert [call.result for call in ours] == [call.result for call in theirs]
    found = set()
    for a, b in zip(ours, theirs, strict=True):
        a.args.pop(FOUND_WRITES, None)
        b.args.pop(FOUND_WRITES, None)
        found.update(differences(a.args, b.args, a.name))
    assert found == {
        "vkGetPhysicalDeviceProperties.pProperties.limits.lineWidthGranularity",
        "vkGetPhysicalDeviceProperties2.pProperties.properties.limits.lineWidthGranularity",
        "vkMapMemory.ppData",
        "vkCreateComputePipelines.pCreateInfos.stage.pSpecializationInfo.pData",
        "vkCmdUpdateBuffer.pData",
        "vkCmdPushConstants.pValues",
    }


def test_what_the_converter_leaves_out_is_there(tmp_path: Path) -> None:
    by_name = {call.name: call.args for call in calls(CAPTURE)}
    assert by_name["vkCreateShaderModule"]["pCreateInfo"]["pCode"] == SPIRV.read_bytes()
    stage = by_name["vkCreateComputePipelines"]["pCreateInfos"][0]["stage"]
    assert stage["pSpecializationInfo"]["pData"] == (1).to_bytes(4, "little")
    assert by_name["vkCmdUpdateBuffer"]["pData"] == b"abcdefg\0"
    assert by_name["vkCmdPushConstants"]["pValues"] == b"@\0\0\0"
    assert any(isinstance(block, HostWrite) and any(block.data) for block in load(CAPTURE))


@pytest.mark.parametrize("compression", [0, 1, 2, 3])
def test_every_compression_gives_the_same_blocks(tmp_path: Path, compression: int) -> None:
    path = put_together(tmp_path / "c.gfxr", take_apart(CAPTURE), compression)
    notes: list[str] = []
    assert load(path, notes) == load(CAPTURE)
    assert notes == []


def test_a_capture_and_the_trace_saved_of_it_are_judged_alike(tmp_path: Path) -> None:
    blocks = load(CAPTURE)
    save(tmp_path / "t.jsonl", blocks)
    assert load(tmp_path / "t.jsonl") == blocks
    of_capture, of_trace = Analysis().follow(blocks), Analysis().follow(load(tmp_path / "t.jsonl"))
    assert of_capture.findings and of_capture.findings == of_trace.findings
    hazards = sorted((each.hazard, each.place.command) for each in of_capture.findings)
    assert hazards == [
        ("READ_AFTER_WRITE", "vkCmdCopyBuffer"),
        ("WRITE_AFTER_READ", "vkCmdUpdateBuffer"),
        ("WRITE_AFTER_WRITE", "vkCmdDispatch"),
        ("WRITE_AFTER_WRITE", "vkCmdDispatch"),
    ]
    assert of_capture.unmodelled == {}

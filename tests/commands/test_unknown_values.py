"""Values that today's registry lacks, by number or by name, make a verdict `unknown` and never a clean one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import vkharness
from tests.support.interpreted import InterpretedStream
from tests.support.normal_form import Generator
from tests.support.streams import Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.coverage import handled
from vkharness.commands.interpret import Interpreter
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkAccess2, VkPipelineStage2, VkStructureType
from vkharness.spec.shapes import struct_types
from vkharness.trace.calls import Call
from vkharness.trace.codec import load
from vkharness.trace.effects import Barrier, Unmodelled, UnmodelledCall
from vkharness.trace.unfollowed_structs import IDLE, UNFOLLOWED
from vkharness.trace.unknown_values import unknown_values

PACKAGE = Path(vkharness.__file__).parent
NEWER = 1000999000
"""A number of an extension that no registry has."""


def barrier(stream: Stream, **members: Any) -> dict[str, Any]:
    """A VkDependencyInfo with a barrier of one image."""
    part = {"aspectMask": 1, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}
    moved = struct("VkImageMemoryBarrier2", image=stream.image((8, 8, 1)), subresourceRange=part, **members)
    return struct("VkDependencyInfo", pImageMemoryBarriers=[moved])


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"newLayout": NEWER}, "newLayout: 1000999000 is no VkImageLayout"),
        ({"dstStageMask": 1 << 60}, "dstStageMask: 0x1000000000000000 is no VkPipelineStageFlags2"),
        ({"srcAccessMask": 1 << 62 | 2}, "srcAccessMask: 0x4000000000000000 is no VkAccessFlags2"),
        ({"pNext": {"sType": NEWER, "pNext": None}}, "pNext: 1000999000 is no VkStructureType"),
    ],
)
def test_a_barrier_with_what_nobody_knows_is_judged_and_named(
    stream: InterpretedStream, members: dict[str, Any], said: str
) -> None:
    effects = stream.effects("PipelineBarrier2", pDependencyInfo=barrier(stream, **members))
    assert [type(each) for each in effects] == [Barrier, Unmodelled]
    assert isinstance(effects[1], Unmodelled)
    assert effects[1].what == f"vkCmdPipelineBarrier2 ({said} of today's registry)"


def test_a_barrier_of_known_values_is_not_named(stream: InterpretedStream) -> None:
    known: dict[str, Any] = {"newLayout": tables.ENUMS["VkImageLayout"]["VK_IMAGE_LAYOUT_ZERO_INITIALIZED_EXT"]}
    known |= {"dstStageMask": VkPipelineStage2.COPY, "pNext": struct("VkMemoryBarrierAccessFlags3KHR")}
    (effect,) = stream.effects("PipelineBarrier2", pDependencyInfo=barrier(stream, **known))
    assert isinstance(effect, Barrier)


@pytest.mark.parametrize(("more", "verdict"), [(0, "hazard"), (1, "hazard"), (None, "clean")])
def test_a_third_mask_adds_no_access(more: int | None, verdict: str) -> None:
    """It has no flags but none, so that the two other masks decide; a bit that it has not is named."""
    stream = Stream()
    a = stream.buffer(16)
    mask = VkAccess2.TRANSFER_WRITE if more is None else 0
    third = struct("VkMemoryBarrierAccessFlags3KHR", srcAccessMask3=more or 0)
    one = struct(
        "VkMemoryBarrier2",
        pNext=third,
        srcStageMask=VkPipelineStage2.ALL_TRANSFER,
        srcAccessMask=mask,
        dstStageMask=VkPipelineStage2.ALL_TRANSFER,
        dstAccessMask=mask,
    )
    stream.begin()
    stream.fill(a, 1)
    stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))
    stream.fill(a, 2)
    stream.submit()
    judged = Analysis().follow(stream.blocks)
    assert agreement(stream.blocks).disagreements == ()
    assert [str(each.hazard) for each in judged.findings] == (["WRITE_AFTER_WRITE"] if verdict == "hazard" else [])
    assert bool(judged.unmodelled) is bool(more)


def test_state_with_a_value_that_nobody_knows_is_named(stream: InterpretedStream) -> None:
    assert stream.effects("SetCullMode", cullMode=2) == ()
    (effect,) = stream.effects("SetCullMode", cullMode=1 << 20)
    assert isinstance(effect, Unmodelled)


def test_what_an_object_is_made_with_is_looked_at(stream: InterpretedStream) -> None:
    stream.did()
    stream.image((8, 8, 1), flags=1 << 30)
    named = [each.what for each in stream.did() if isinstance(each, UnmodelledCall)]
    assert named == ["vkCreateImage (flags: 0x40000000 is no VkImageCreateFlags of today's registry)"]


@pytest.mark.parametrize(
    "kind", [VkStructureType.LOADER_DEVICE_CREATE_INFO, VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR]
)
def test_a_device_made_through_the_loader_is_known(kind: int) -> None:
    info = struct("VkDeviceCreateInfo", pNext={"sType": kind, "pNext": None})
    assert unknown_values("vkCreateDevice", {"pCreateInfo": info}) == ""
    info["pNext"]["pNext"] = {"sType": NEWER, "pNext": None}
    assert "VkStructureType" in unknown_values("vkCreateDevice", {"pCreateInfo": info})


@pytest.mark.parametrize("seed", range(3))
def test_no_value_of_the_registry_is_unknown(seed: int) -> None:
    """Calls of every command with values of the tables, but for the structs and numbers that the generator invents."""
    made = Generator(seed)
    for name in tables.COMMANDS:
        said = unknown_values(name, made.call(name).args)
        expected = (": 1999999999 is no VkStructureType", ": 999 is no ", "is not followed")
        assert said == "" or any(each in said for each in expected), (name, said)


def test_no_bit_of_the_registry_is_the_one_that_stands_for_unknown_names() -> None:
    for kind, bits in tables.BITMASKS.items():
        assert all(0 <= value < 1 << tables.FLAG_WIDTH[kind] - 1 or value == 0x7FFFFFFF for value in bits.values()), (
            kind
        )


# Structs of chains


@pytest.mark.parametrize("name", sorted(UNFOLLOWED))
def test_a_struct_that_is_not_followed_is_named(name: str) -> None:
    info = struct("VkSemaphoreCreateInfo", pNext={"sType": struct_types()[name], "pNext": None})
    assert unknown_values("vkCreateSemaphore", {"pCreateInfo": info}) == f"{name} is not followed: {UNFOLLOWED[name]}"


def test_each_struct_that_extends_what_judged_calls_take_is_accounted_for() -> None:
    """Also of calls that make objects: not of `vkCreateDevice`, whose structs name features, nor of what only asks."""
    taken: set[str] = set()
    for name in tables.COMMANDS.keys() - tables.COMMAND_ALIASES.keys() - {"vkCreateDevice"}:
        if handled(name) and not name.startswith("vkGet"):
            taken |= held_by(tables.COMMANDS[name][1])
    reached = {name for name, owners in tables.EXTENDED.items() if taken & set(owners)}
    folders = (PACKAGE / "commands", PACKAGE / "trace")
    read = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    named = set(re.findall(r"\bVkStructureType\.(\w+)", read))
    spelled = {value for name, value in tables.ENUMS["VkStructureType"].items() if name[18:] in named}
    followed = {name for name in reached if struct_types()[name] in spelled}
    assert sorted(reached - followed - UNFOLLOWED.keys() - IDLE.keys()) == []
    assert sorted((UNFOLLOWED.keys() | IDLE.keys()) - reached) == []
    assert sorted(followed & UNFOLLOWED.keys()) == []


def held_by(members: tuple[tables.Member, ...]) -> set[str]:
    """The structs that members lead to."""
    found: set[str] = set()
    left = [member[1] for member in members]
    while left:
        name = left.pop()
        if name in tables.STRUCTS and name not in found:
            found.add(name)
            left += [member[1] for member in tables.STRUCTS[name]]
    return found


# Calls of the host


@pytest.mark.parametrize(
    "name",
    [
        "vkSignalSemaphore2KHR",
        "vkWriteTensorDescriptorsEXT",
        "vkBindTensorMemoryARM",
        "vkGetWhatNobodyKnowsEXT",
        "vkCreateWhatNobodyKnowsEXT",
        "vkQueueSubmit3",
    ],
)
def test_a_call_of_the_host_that_nobody_knows_is_named(name: str) -> None:
    assert list(Interpreter().step(Call(1, name, {}))) == [UnmodelledCall(name)]


@pytest.mark.parametrize(
    "name",
    [
        "vkGetPhysicalDeviceSparseImageFormatProperties2",
        "vkMergePipelineCaches",
        "vkAntiLagUpdateAMD",
        "vkGetDeviceImageSubresourceLayout",
    ],
)
def test_a_call_that_touches_nothing_is_not_named(name: str) -> None:
    assert list(Interpreter().step(Call(1, name, {}))) == []


# Names in traces


def test_a_struct_newer_than_the_binding_is_read_with_its_members(tmp_path: Path) -> None:
    enabled = {"sType": "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR", "maintenance9": True}
    (call,) = converted(tmp_path, enabled)
    assert call.args["pCreateInfo"]["pNext"] == {"sType": 1000584000, "pNext": None, "maintenance9": 1}
    assert verdict([call]) == "clean"


@pytest.mark.parametrize(
    "link", ["0x7ffe00001000", {"sType": "VK_STRUCTURE_TYPE_OF_NEXT_YEAR_EXT"}, {"sType": "Unhandled VkStructureType"}]
)
def test_a_struct_that_no_registry_has_makes_the_verdict_unknown(tmp_path: Path, link: Any) -> None:
    notes: list[str] = []
    (call,) = converted(tmp_path, link, notes=notes)
    assert call.name == "vkCreateDevice" and not call.unread
    assert verdict([call]) == "unknown"
    assert "which make the verdict unknown" in notes[0]


def test_no_chain_is_clean(tmp_path: Path) -> None:
    (call,) = converted(tmp_path, "0x0")
    assert verdict([call]) == "clean"


def test_a_flag_that_no_registry_has_makes_the_verdict_unknown(tmp_path: Path) -> None:
    for flags, expected in (("0x00000000", "clean"), ("VK_DEVICE_CREATE_OF_NEXT_YEAR_BIT_EXT", "unknown")):
        assert verdict(converted(tmp_path, None, flags)) == expected


def converted(tmp_path: Path, link: Any, flags: str = "0x00000000", notes: list[str] | None = None) -> list[Call]:
    """A converted capture of vkCreateDevice with a pNext chain."""
    info = {"sType": "VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO", "pNext": link, "flags": flags, "queueCreateInfoCount": 0}
    info |= {"pQueueCreateInfos": [], "pEnabledFeatures": None}
    args = {"physicalDevice": 1, "pCreateInfo": info, "pAllocator": None, "pDevice": 2}
    function = {"name": "vkCreateDevice", "thread": 1, "return": "VK_SUCCESS", "args": args}
    lines = ({"header": {"gfxrecon-version": "1.0.6"}}, {"index": 1, "function": function})
    path = tmp_path / "converted.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [block for block in load(path, notes) if isinstance(block, Call)]


def verdict(blocks: list[Call]) -> str:
    """Returns "unknown" where something is not modelled, else "clean"."""
    analysis = Analysis()
    analysis.follow(blocks)
    return "unknown" if analysis.unmodelled else "clean"

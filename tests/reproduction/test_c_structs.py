"""Calls whose structs hold unions, as a scenario writes them: what is written is run."""

from __future__ import annotations

from typing import Any

import pytest

from vkharness.findings import UserError
from vkharness.reproduction.c_structs import c_call
from vkharness.reproduction.script import DeviceAddress, Script
from vkharness.trace.calls import Call

VERTICES, SCRATCH, BOTTOM, ONE_BYTE = 0x10000, 0x20000, 0x30000, 0x40000
SIZES = "vkGetAccelerationStructureBuildSizesKHR"
BUILD = "vkCmdBuildAccelerationStructuresKHR"


class Rig:
    """What the lines ask of a rig: keeps the arguments of the call, and the base of each buffer here."""

    def __init__(self) -> None:
        self.device: Any = None
        self.called: list[tuple[str, tuple[Any, ...]]] = []

    def c_function(self, name: str) -> Any:
        return lambda *arguments: self.called.append((name, arguments))

    def address_bytes(self, base: int, offset: int = 0) -> bytes:
        return (base + offset).to_bytes(8, "little")


def geometry(kind: str, **members: Any) -> dict[str, Any]:
    data = {"sType": 1000150005, "pNext": None, **members}
    return {"sType": 1000150006, "pNext": None, "geometryType": 0, "geometry": {kind: data}, "flags": 1}


def info(*geometries: dict[str, Any], scratch: int = 0) -> dict[str, Any]:
    return {
        "sType": 1000150000, "pNext": None, "type": 1, "flags": 0, "mode": 0, "srcAccelerationStructure": 0,
        "dstAccelerationStructure": 0, "geometryCount": len(geometries), "pGeometries": list(geometries),
        "ppGeometries": None, "scratchData": {"deviceAddress": scratch},
    }  # fmt: skip


def script() -> Script:
    made = Script()
    made.addresses = [
        DeviceAddress(VERTICES, 0x100, 1),
        DeviceAddress(SCRATCH, 0x100, 2),
        DeviceAddress(ONE_BYTE, 1, 1),
    ]
    made.addresses.append(DeviceAddress(BOTTOM, 1, 3, of_structure=True))
    made.names.update({1: "0x70000", 2: "0x80000", 3: "bottom"})
    return made


def run(made: Script, line: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Runs what is written. The variables must live as long as what points to them."""
    import vulkan

    rig = Rig()
    variables = {"vk": vulkan, "rig": rig, "commands": vulkan.ffi.NULL}
    exec("\n".join([*(each.removeprefix("    ") for each in made.lines), line]), variables)
    return *rig.called[0], variables


def test_a_build_is_written_with_its_unions_and_the_addresses_of_the_rig() -> None:
    made = script()
    triangles = geometry(
        "triangles", vertexFormat=106, vertexData={"deviceAddress": VERTICES + 4}, vertexStride=12, maxVertex=2,
        indexType=1000165000, indexData={"deviceAddress": 0}, transformData={"deviceAddress": 0},
    )  # fmt: skip
    part = {"primitiveCount": 3, "primitiveOffset": 0, "firstVertex": 5, "transformOffset": 0}
    args = {"commandBuffer": 9, "infoCount": 1, "pInfos": [info(triangles, scratch=SCRATCH)]}
    call = Call(1, BUILD, {**args, "ppBuildRangeInfos": [[part]]})
    name, (_, count, infos, ranges), kept = run(made, c_call(made, call, ["commands"]))
    assert (name, count) == (BUILD, 1) and kept
    assert infos[0].scratchData.deviceAddress == 0x80000
    held = infos[0].pGeometries[0]
    assert (held.flags, held.geometry.triangles.vertexData.deviceAddress) == (1, 0x70004)
    assert (held.geometry.triangles.vertexStride, held.geometry.triangles.indexType) == (12, 1000165000)
    assert (ranges[0][0].primitiveCount, ranges[0][0].firstVertex) == (3, 5)


def test_a_query_of_sizes_needs_no_address() -> None:
    made = script()
    boxes = geometry("aabbs", data={"deviceAddress": 0xDEAD0000}, stride=24)
    args = {"device": 3, "buildType": 1, "pBuildInfo": info(boxes), "pMaxPrimitiveCounts": [7]}
    told = {"sType": 1000150020, "pNext": None, "accelerationStructureSize": 5}
    name, (_, kind, one, counts, sizes), _ = run(
        made, c_call(made, Call(1, SIZES, {**args, "pSizeInfo": told}), ["rig.device"])
    )
    assert (name, kind, counts[0], sizes.sType) == (SIZES, 1, 7, 1000150020)
    assert (one.pGeometries[0].geometry.aabbs.stride, one.pGeometries[0].geometry.aabbs.data.deviceAddress) == (24, 0)


def test_a_query_of_sizes_needs_no_address_of_the_host() -> None:
    made = script()
    boxes = geometry("aabbs", data={"hostAddress": 0x7F00}, stride=24)
    args = {"device": 3, "buildType": 1, "pBuildInfo": info(boxes), "pMaxPrimitiveCounts": [7], "pSizeInfo": None}
    _, (_, _, one, _, _), _ = run(made, c_call(made, Call(1, SIZES, args), ["rig.device"]))
    assert one.pGeometries[0].geometry.aabbs.data.deviceAddress == 0


def test_an_instance_has_the_address_of_the_structure_that_is_made_here() -> None:
    assert (
        script().data(bytes(4) + BOTTOM.to_bytes(8, "little"))
        == "b'\\x00\\x00\\x00\\x00' + structure_address(rig, bottom)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scratchData": {"deviceAddress": 0xDEAD0000}}, "what is at device address 0xdead0000"),
        ({"pNext": {"sType": 1}}, "VkAccelerationStructureBuildGeometryInfoKHR chains another struct"),
        ({"dstAccelerationStructure": 77}, "VkAccelerationStructureKHR 77"),
        ({"scratchData": {"hostAddress": 0x7F00}}, "hostAddress of void"),
        ({"type": [1]}, "type of VkAccelerationStructureTypeKHR"),
    ],
)
def test_what_is_not_made_here_is_refused(change: dict[str, Any], message: str) -> None:
    args = {"commandBuffer": 9, "infoCount": 1, "pInfos": [info() | change], "ppBuildRangeInfos": [[]]}
    with pytest.raises(UserError, match=message):
        c_call(script(), Call(1, BUILD, args), ["commands"])

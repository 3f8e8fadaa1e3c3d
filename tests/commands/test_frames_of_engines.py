"""Frames of engines that no driver here runs: with mesh shaders, with local reads, with pipelines that trace rays.

Each frame is clean as a whole. Without one of its dependencies it has the hazard that the dependency was for. The
frames that drivers run are `scenarios/engines/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import drawing, rays
from tests.support.drawing import blend, descriptors, reads_uniform_writes_storage
from tests.support.spirv_text import module
from tests.support.streams import Dispatch, Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkAccess2, VkDependency, VkPipelineStage2, VkShaderStage
from vkharness.trace.calls import Call

COMPUTE, WRITE, READ = VkPipelineStage2.COMPUTE_SHADER, VkAccess2.SHADER_WRITE, VkAccess2.SHADER_READ
OUTPUT, FRAGMENT = VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT, VkPipelineStage2.FRAGMENT_SHADER
RAYS, BUILDS = VkPipelineStage2.RAY_TRACING_SHADER_KHR, VkPipelineStage2.ACCELERATION_STRUCTURE_BUILD_KHR
AS_READ, AS_WRITE = VkAccess2.ACCELERATION_STRUCTURE_READ_KHR, VkAccess2.ACCELERATION_STRUCTURE_WRITE_KHR
COUNTED, DRAW, BUILD, TRACE, COPY = (
    "vkCmdDrawMeshTasksIndirectCountEXT",
    "vkCmdDraw",
    "vkCmdBuildAccelerationStructuresKHR",
    "vkCmdTraceRaysKHR",
    "vkCmdCopyBuffer",
)
Masks = tuple[int, int]


class Frame:
    """A stream with barriers that have names; the one called `without` is left out."""

    def __init__(self, stream: Stream, without: str) -> None:
        self.stream, self.without, self.names = stream, without, set[str]()

    def barrier(self, name: str, before: Masks, after: Masks, flags: int = 0) -> None:
        """vkCmdPipelineBarrier2 of one global barrier of (stages, accesses)."""
        self.names.add(name)
        if name != self.without:
            masks = {"srcStageMask": before[0], "srcAccessMask": before[1]}
            masks |= {"dstStageMask": after[0], "dstAccessMask": after[1]}
            one = struct("VkMemoryBarrier2", **masks)
            info = struct("VkDependencyInfo", dependencyFlags=flags, pMemoryBarriers=[one])
            self.stream.cmd("PipelineBarrier2", pDependencyInfo=info)


def meshlets(without: str) -> Frame:
    """A dispatch culls: it writes how many groups of mesh shaders run and what they read. (vkd3d-proton's indirect
    execution of mesh shaders, and nvpro's culling of clusters.)"""
    stream = Stream()
    arguments, count, clusters, out = (stream.buffer(256) for _ in range(4))
    culls = [Dispatch(stream, "fill_words.comp", [each], b"\1\0\0\0") for each in (arguments, count, clusters)]
    _, view = drawing.color_target(stream)
    mesh = drawing.stage(stream, reads_uniform_writes_storage(VkShaderStage.MESH_EXT), VkShaderStage.MESH_EXT)
    made = drawing.pipeline(stream, "constant_color.frag", vertex=None, stages=[mesh])
    frame = Frame(stream, without)
    stream.begin()
    for each in culls:
        each.run()
    frame.barrier("arguments", (COMPUTE, WRITE), (VkPipelineStage2.DRAW_INDIRECT, VkAccess2.INDIRECT_COMMAND_READ))
    frame.barrier("clusters", (COMPUTE, WRITE), (VkPipelineStage2.MESH_SHADER_EXT, VkAccess2.UNIFORM_READ))
    drawing.render(stream, view)
    drawing.bind(stream, made)
    drawing.bind_descriptors(stream, (6, clusters), (7, out))
    given = {"buffer": arguments, "countBuffer": count, "maxDrawCount": 1, "stride": 12}
    stream.cmd("DrawMeshTasksIndirectCountEXT", **given)
    stream.cmd("EndRendering")
    stream.submit()
    return frame


def local_reads(without: str) -> Frame:
    """Tone mapping reads the colour of the draws before it where it stands, in one instance of dynamic rendering.
    (Mobile renderers of Filament and Godot, as VK_KHR_dynamic_rendering_local_read has it.)"""
    stream = Stream()
    _, scene = drawing.color_target(stream)
    _, shown = drawing.color_target(stream)
    colors = [blend()] * 2
    draws = drawing.pipeline(stream, "constant_color.frag", vertex="fullscreen.vert", colors=colors)
    maps = drawing.pipeline(stream, "invert_input.frag", vertex="fullscreen.vert", colors=colors)
    frame = Frame(stream, without)
    stream.begin()
    drawing.render(stream, scene, shown)
    drawing.bind(stream, draws)
    drawing.draw(stream)
    region = VkDependency.BY_REGION
    read = FRAGMENT, VkAccess2.INPUT_ATTACHMENT_READ
    frame.barrier("drawn", (OUTPUT, VkAccess2.COLOR_ATTACHMENT_WRITE), read, region)
    _mapped(stream, "vkCmdSetRenderingAttachmentLocations", "pLocationInfo", "pColorAttachmentLocations", 0)
    _mapped(
        stream,
        "vkCmdSetRenderingInputAttachmentIndices",
        "pInputAttachmentIndexInfo",
        "pColorAttachmentInputIndices",
        1,
    )
    drawing.bind(stream, maps)
    drawing.bind_descriptors(stream, (10, scene))
    drawing.draw(stream)
    stream.cmd("EndRendering")
    stream.submit()
    return frame


def _mapped(stream: Stream, name: str, argument: str, member: str, unused: int) -> None:
    """Maps two attachments: the one at `unused` to nothing, and the other one to 0."""
    places = [VK_ATTACHMENT_UNUSED if at == unused else 0 for at in range(2)]
    info = {"pNext": None, "colorAttachmentCount": 2, member: places}
    info |= {"pDepthInputAttachmentIndex": None, "pStencilInputAttachmentIndex": None} if unused else {}
    stream.blocks.append(Call(len(stream.blocks) + 1, name, {"commandBuffer": stream.commands, argument: info}))


def traced(without: str) -> Frame:
    """Structures are built, binding tables are uploaded, and rays store what they find. (The ray tracing samples of
    nvpro and Khronos; DispatchRays of vkd3d-proton.)"""
    scene = rays.Scene()
    scene.instance(0, scene.one)
    staging, tables, out, copied = (scene.buffer(256) for _ in range(4))
    tables_at = scene.addressed(tables)
    capabilities = 'OpCapability RayTracingKHR\nOpExtension "SPV_KHR_ray_tracing"'
    body = "%to = OpAccessChain %word_pointer %a %zero %zero\nOpStore %to %one"
    code = module(body, capabilities=capabilities, model="RayGenerationKHR", interface="%a", modes="", target="spv1.4")
    held, layout = descriptors(scene, (7, out))
    stage = drawing.stage(scene, code, VkShaderStage.RAYGEN_KHR)
    group = struct("VkRayTracingShaderGroupCreateInfoKHR", generalShader=0)
    info = struct("VkRayTracingPipelineCreateInfoKHR", pStages=[stage], pGroups=[group], layout=layout)
    made = scene.id()
    scene.call("vkCreateRayTracingPipelinesKHR", device=scene.device, pCreateInfos=[info], pPipelines=[made])
    frame = Frame(scene, without)
    scene.copy(staging, tables, 256)
    scene.bottom(scene.one)
    frame.barrier("bottoms", (BUILDS, AS_WRITE), (BUILDS, AS_READ))
    scene.build_top(1)
    transfer = VkPipelineStage2.COPY, VkAccess2.TRANSFER_WRITE
    frame.barrier("tables", transfer, (RAYS, VkAccess2.SHADER_BINDING_TABLE_READ_KHR))
    frame.barrier("top", (BUILDS, AS_WRITE), (RAYS, AS_READ))
    scene.cmd("BindPipeline", pipelineBindPoint=1000165000, pipeline=made)
    scene.cmd("BindDescriptorSets", pipelineBindPoint=1000165000, layout=layout, pDescriptorSets=[held])
    table = struct("VkStridedDeviceAddressRegionKHR", deviceAddress=tables_at, stride=64, size=64)
    none = struct("VkStridedDeviceAddressRegionKHR")
    regions: dict[str, Any] = {f"p{each}ShaderBindingTable": none for each in ("Miss", "Hit", "Callable")}
    regions["pRaygenShaderBindingTable"] = table
    scene.cmd("TraceRaysKHR", **regions, width=8, height=8, depth=1)
    frame.barrier("stored", (RAYS, WRITE), (VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ))
    scene.copy(out, copied, 256)
    scene.submit()
    return frame


FRAMES: dict[Callable[[str], Frame], dict[str, tuple[str, str]]] = {
    meshlets: {"arguments": (COUNTED, "vkCmdDispatch"), "clusters": (COUNTED, "vkCmdDispatch")},
    local_reads: {"drawn": (DRAW, DRAW)},
    traced: {"bottoms": (BUILD, BUILD), "tables": (TRACE, COPY), "stored": (COPY, TRACE)},
}
"""By dependency of a frame: the command that is too early without it, and the one that it must wait for."""
TWINS = [(made, name, places) for made, twins in FRAMES.items() for name, places in twins.items()]


def judged(frame: Frame) -> list[tuple[str, str, str]]:
    """The findings of both judges; nothing of the frame is unknown."""
    assert agreement(frame.stream.blocks).disagreements == ()
    analysis = Analysis().follow(frame.stream.blocks)
    assert analysis.unmodelled == {}
    return [(each.hazard, each.place.command, each.prior.command) for each in analysis.findings]


@pytest.mark.parametrize("made", FRAMES)
def test_a_frame_is_clean(made: Callable[[str], Frame]) -> None:
    assert judged(made("")) == []


@pytest.mark.parametrize(("made", "name", "places"), TWINS)
def test_a_frame_without_one_dependency_has_its_hazard(
    made: Callable[[str], Frame], name: str, places: tuple[str, str]
) -> None:
    frame = made(name)
    found = judged(frame)
    assert name in frame.names and found and set(found) == {("READ_AFTER_WRITE", *places)}

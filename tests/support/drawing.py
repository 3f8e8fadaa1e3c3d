"""Graphics in traces written by hand: pipelines, vertex input, descriptors and the effects of draws, for
`tests.support.streams.Stream`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.support import passes
from tests.support.interpreted import effects_of
from tests.support.spirv_text import assemble
from tests.support.streams import D32_S8, DEPTH, R8G8B8A8, STENCIL, Stream, struct
from vkharness.commands.interpret import Interpreter
from vkharness.findings import Certainty
from vkharness.layer.silence import is_unrecorded
from vkharness.layer.stream import Stream as RecordedStream
from vkharness.shader.library import load
from vkharness.spec.enums import VkCompareOp, VkFormat, VkPrimitiveTopology, VkShaderStage, VkStencilOp
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Submitted, Unmodelled

VERTEX, FRAGMENT = VkShaderStage.VERTEX, VkShaderStage.FRAGMENT
R32G32, R32 = VkFormat.R32G32_SFLOAT, VkFormat.R32_SFLOAT
FLOAT2 = 8
"""Bytes of R32G32."""
KEEP, REPLACE = VkStencilOp.KEEP, VkStencilOp.REPLACE
NEVER, LESS, GREATER, ALWAYS = VkCompareOp.NEVER, VkCompareOp.LESS, VkCompareOp.GREATER, VkCompareOp.ALWAYS
SIZE = (8, 8)


def binding(number: int = 0, stride: int = 8, per_instance: bool = False) -> dict[str, Any]:
    """A VkVertexInputBindingDescription."""
    return {"binding": number, "stride": stride, "inputRate": int(per_instance)}


def attribute(number: int = 0, offset: int = 0, form: int = R32G32, location: int = 0) -> dict[str, Any]:
    """A VkVertexInputAttributeDescription of binding `number`."""
    return {"location": location, "binding": number, "format": form, "offset": offset}


def vertex_input(
    bindings: Sequence[dict[str, Any]] = (),
    attributes: Sequence[dict[str, Any]] = (),
    divisors: dict[int, int] | None = None,
) -> dict[str, Any]:
    """A VkPipelineVertexInputStateCreateInfo."""
    chain = None
    if divisors:
        listed = [{"binding": each, "divisor": divisor} for each, divisor in divisors.items()]
        chain = struct("VkPipelineVertexInputDivisorStateCreateInfoKHR", pVertexBindingDivisors=listed)
    return struct(
        "VkPipelineVertexInputStateCreateInfo",
        pNext=chain,
        pVertexBindingDescriptions=list(bindings),
        pVertexAttributeDescriptions=list(attributes),
    )


def blend(write: int = 0xF, enable: bool = False, factors: tuple[int, int] = (1, 1), op: int = 0) -> dict[str, Any]:
    """A VkPipelineColorBlendAttachmentState with (source, destination) factors for colour and alpha."""
    return struct(
        "VkPipelineColorBlendAttachmentState",
        blendEnable=int(enable),
        srcColorBlendFactor=factors[0],
        dstColorBlendFactor=factors[1],
        colorBlendOp=op,
        srcAlphaBlendFactor=factors[0],
        dstAlphaBlendFactor=factors[1],
        alphaBlendOp=op,
        colorWriteMask=write,
    )


def face(
    fail: int = KEEP, passed: int = KEEP, depth_fail: int = KEEP, compare: int = LESS, write: int = 0xFF
) -> dict[str, Any]:
    """A VkStencilOpState that compares all bits."""
    return {
        "failOp": fail,
        "passOp": passed,
        "depthFailOp": depth_fail,
        "compareOp": compare,
        "compareMask": 0xFF,
        "writeMask": write,
        "reference": 0,
    }


def depth_tests(
    depth: bool = False, write: bool = False, compare: int = LESS, stencil: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A VkPipelineDepthStencilStateCreateInfo; `stencil` is the state of the front face and enables the test."""
    return struct(
        "VkPipelineDepthStencilStateCreateInfo",
        depthTestEnable=int(depth),
        depthWriteEnable=int(write),
        depthCompareOp=compare,
        stencilTestEnable=int(stencil is not None),
        **{"front": stencil or face(), "back": face(), **more},
    )


def stage(stream: Stream, name: str | bytes, which: int) -> dict[str, Any]:
    """A VkPipelineShaderStageCreateInfo of a shader of the library, or of SPIR-V."""
    code = load(name) if isinstance(name, str) else name
    module = stream.make(
        "vkCreateShaderModule", "pShaderModule", struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)
    )
    return struct("VkPipelineShaderStageCreateInfo", stage=which, module=module, pName="main")


def pipeline(
    stream: Stream,
    fragment: str | bytes | None = "constant_color.frag",
    *,
    vertex: str | bytes | None = "vertex_position.vert",
    input: dict[str, Any] | None = None,
    colors: Sequence[dict[str, Any]] | None = (blend(),),
    depth_stencil: dict[str, Any] | None = None,
    discard: bool = False,
    cull: int = 0,
    topology: int = VkPrimitiveTopology.TRIANGLE_LIST,
    dynamic: Iterable[int] = (),
    logic: int | None = None,
    formats: Sequence[int] | None = None,
    stages: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> int:
    """vkCreateGraphicsPipelines of one pipeline."""
    shaders = [stage(stream, name, which) for name, which in ((vertex, VERTEX), (fragment, FRAGMENT)) if name]
    states = list(dynamic)
    chain = None
    if formats is not None:
        chain = struct("VkPipelineRenderingCreateInfo", pColorAttachmentFormats=list(formats))
    info = struct(
        "VkGraphicsPipelineCreateInfo",
        **{
            "pNext": chain,
            "stageCount": len(shaders) + len(stages),
            "pStages": [*shaders, *stages],
            "pVertexInputState": input or vertex_input(),
            "pRasterizationState": struct(
                "VkPipelineRasterizationStateCreateInfo", rasterizerDiscardEnable=int(discard), cullMode=cull
            ),
            "pInputAssemblyState": struct("VkPipelineInputAssemblyStateCreateInfo", topology=topology),
            "pDepthStencilState": depth_stencil,
            "pColorBlendState": None if colors is None else _color_blend(colors, logic),
            "pDynamicState": struct("VkPipelineDynamicStateCreateInfo", pDynamicStates=states),
            **more,
        },
    )
    made = stream.id()
    stream.call("vkCreateGraphicsPipelines", device=stream.device, pCreateInfos=[info], pPipelines=[made])
    return made


def _color_blend(colors: Sequence[dict[str, Any]], logic: int | None) -> dict[str, Any]:
    return struct(
        "VkPipelineColorBlendStateCreateInfo",
        logicOpEnable=int(logic is not None),
        logicOp=logic or 0,
        pAttachments=list(colors),
    )


def bind(stream: Stream, made: int) -> None:
    """vkCmdBindPipeline."""
    stream.cmd("BindPipeline", pipelineBindPoint=0, pipeline=made)


def bind_vertices(stream: Stream, *buffers: int, first: int = 0, offset: int = 0) -> None:
    """vkCmdBindVertexBuffers, all at one offset."""
    stream.cmd("BindVertexBuffers", firstBinding=first, pBuffers=list(buffers), pOffsets=[offset] * len(buffers))


def bind_indices(stream: Stream, buffer: int, offset: int = 0, kind: int = 0) -> None:
    """vkCmdBindIndexBuffer; `kind` is the VkIndexType."""
    stream.cmd("BindIndexBuffer", buffer=buffer, offset=offset, indexType=kind)


def draw(stream: Stream, vertices: int = 3, instances: int = 1, first: int = 0, first_instance: int = 0) -> int:
    """vkCmdDraw."""
    return stream.cmd(
        "Draw", vertexCount=vertices, instanceCount=instances, firstVertex=first, firstInstance=first_instance
    )


def descriptors(stream: Stream, *entries: tuple[int, int]) -> tuple[int, int]:
    """(set, pipeline layout) of (VkDescriptorType, buffer, image view or buffer view) from binding 0 on."""
    bindings = [
        struct("VkDescriptorSetLayoutBinding", binding=at, descriptorType=kind, descriptorCount=1, stageFlags=0x3F)
        for at, (kind, _) in enumerate(entries)
    ]
    info = struct("VkDescriptorSetLayoutCreateInfo", pBindings=bindings)
    layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info)
    made = stream.id()
    allocation = struct("VkDescriptorSetAllocateInfo", pSetLayouts=[layout])
    stream.call("vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=allocation, pDescriptorSets=[made])
    writes = []
    for at, (kind, resource) in enumerate(entries):
        write = struct("VkWriteDescriptorSet", dstSet=made, dstBinding=at, descriptorCount=1, descriptorType=kind)
        if kind in (6, 7):
            write["pBufferInfo"] = [struct("VkDescriptorBufferInfo", buffer=resource, range=0xFFFFFFFFFFFFFFFF)]
        elif kind in (4, 5):
            write["pTexelBufferView"] = [resource]
        else:
            write["pImageInfo"] = [struct("VkDescriptorImageInfo", imageView=resource, imageLayout=1)]
        writes.append(write)
    stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=writes)
    layout_info = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[layout])
    return made, stream.make("vkCreatePipelineLayout", "pPipelineLayout", layout_info)


def bind_descriptors(stream: Stream, *entries: tuple[int, int]) -> None:
    """A new set of these descriptors, bound for graphics."""
    made, layout = descriptors(stream, *entries)
    stream.cmd("BindDescriptorSets", layout=layout, pDescriptorSets=[made])


def color_target(stream: Stream, array: int = 1) -> tuple[int, int]:
    """(image, view) of 8 by 8 texels."""
    image = stream.image((*SIZE, 1), array=array)
    return image, passes.view(stream, image, R8G8B8A8, layers=(0, array))


def depth_target(stream: Stream) -> tuple[int, int]:
    """(image, view) of 8 by 8 texels of depth and stencil."""
    image = stream.image((*SIZE, 1), D32_S8)
    return image, passes.view(stream, image, D32_S8, aspects=DEPTH | STENCIL)


def render(stream: Stream, *views: int | None, depth: int = 0, area: dict[str, Any] | None = None, **more: Any) -> None:
    """vkCmdBeginRendering with colour views (None: unused) and a depth/stencil view, nothing loaded."""
    none = (passes.NONE_LOAD, passes.NONE_STORE)
    attached = passes.attached(depth, *none) if depth else None
    colors = [passes.attached(each or 0, *none) for each in views]
    passes.begin_rendering(stream, area or passes.rect(SIZE), colors, attached, attached, **more)


Seen = tuple[int, str, tuple[tuple[int, int], ...]]


def seen(stream: Stream, command: int) -> list[Seen]:
    """(resource, access without SYNC_, spans from the start of its space) of each access of a command, in order."""
    found = effects_of(stream).get(command, ())
    assert not [each for each in found if isinstance(each, Unmodelled)], found
    return [
        (each.resource, ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_"), each.spans)
        for each in found
        if isinstance(each, Access)
    ]


def executed(stream: Stream, command: int, bounds: bool = False) -> list[tuple[Seen, Certainty]]:
    """Returns the accesses of `seen` once rendering has ended and the commands are submitted, with how sure each is.

    `bounds`: what could be reached at most counts.
    """
    stream.cmd("EndRendering")
    stream.submit()
    interpreter, found = Interpreter(bounds), list[tuple[Seen, Certainty]]()
    for event in [event for block in stream.blocks for event in interpreter.step(block)]:
        batches = event.batches if isinstance(event, Submitted) else ()
        commands = [each for batch in batches for _, held in batch.buffers for each in held]
        for access in [each for made in commands if made.call == command for each in made.effects]:
            assert isinstance(access, Access), access
            name = ACCESS_KINDS[access.access_kind].name.removeprefix("SYNC_")
            found.append(((access.resource, name, access.spans), access.certainty))
    return found


def accesses(stream: Stream, command: int) -> list[Access]:
    """The accesses of a command."""
    return [each for each in effects_of(stream).get(command, ()) if isinstance(each, Access)]


def unrecorded(stream: Stream, command: int) -> list[bool]:
    """Of each access of a command, in its execution if it was submitted, whether the Khronos layer does not record it,
    by design."""
    submits = [block.index for block in stream.blocks if isinstance(block, Call) and block.name.startswith("vkQueueS")]
    recorded = RecordedStream(stream.blocks).as_executed((submits[-1], 0, 0) if submits else None)
    call = recorded.at(command)
    assert call is not None
    return [is_unrecorded(call, touch, recorded) for touch in recorded.touches(call)]


def unmodelled(stream: Stream, command: int) -> list[str]:
    """Names the parts of a command that are not modelled."""
    return [each.what for each in effects_of(stream).get(command, ()) if isinstance(each, Unmodelled)]


WHOLE_COLOR = ((0, 64),)
DEPTH_SPANS, STENCIL_SPANS = ((0, 64),), ((64, 128),)


MODELS = {
    0x1: "Vertex",
    0x2: "TessellationControl",
    0x4: "TessellationEvaluation",
    0x8: "Geometry",
    0x40: "TaskEXT",
    0x80: "MeshEXT",
}
MODES = {
    "Vertex": "",
    "TessellationControl": "OpExecutionMode %main OutputVertices 3",
    "TessellationEvaluation": "OpExecutionMode %main Triangles",
    "Geometry": """
        OpExecutionMode %main Triangles
        OpExecutionMode %main OutputTriangleStrip
        OpExecutionMode %main OutputVertices 3
        OpExecutionMode %main Invocations 1
    """,
    "TaskEXT": "OpExecutionMode %main LocalSize 1 1 1",
    "MeshEXT": """
        OpExecutionMode %main LocalSize 1 1 1
        OpExecutionMode %main OutputTrianglesEXT
        OpExecutionMode %main OutputVertices 3
        OpExecutionMode %main OutputPrimitivesEXT 1
    """,
}
BUFFERS_ONLY = """
OpCapability Shader
OpCapability Tessellation
OpCapability Geometry
{capability}
OpMemoryModel Logical GLSL450
OpEntryPoint {model} %main "main" {interface}
{modes}
OpMemberDecorate %block 0 Offset 0
OpDecorate %block Block
OpDecorate %source DescriptorSet 0
OpDecorate %source Binding 0
OpDecorate %target DescriptorSet 0
OpDecorate %target Binding 1
%void = OpTypeVoid
%uint = OpTypeInt 32 0
%function = OpTypeFunction %void
%zero = OpConstant %uint 0
%block = OpTypeStruct %uint
%uniform_block = OpTypePointer Uniform %block
%storage_block = OpTypePointer StorageBuffer %block
%uniform_word = OpTypePointer Uniform %uint
%storage_word = OpTypePointer StorageBuffer %uint
%source = OpVariable %uniform_block Uniform
%target = OpVariable %storage_block StorageBuffer
%main = OpFunction %void None %function
%entry = OpLabel
%from = OpAccessChain %uniform_word %source %zero
%to = OpAccessChain %storage_word %target %zero
%value = OpLoad %uint %from
OpStore %to %value
OpReturn
OpFunctionEnd
"""


DECLARES_OUTPUTS = """
OpCapability Shader
{capabilities}
OpMemoryModel Logical GLSL450
OpEntryPoint Fragment %main "main" {interface}
OpExecutionMode %main OriginUpperLeft
{modes}
{locations}
%void = OpTypeVoid
%float = OpTypeFloat 32
%float4 = OpTypeVector %float 4
%function = OpTypeFunction %void
%output = OpTypePointer Output %float4
{variables}
%main = OpFunction %void None %function
%entry = OpLabel
OpReturn
OpFunctionEnd
"""


def declares(*locations: int, modes: Iterable[str] = ()) -> bytes:
    """SPIR-V of a fragment shader that declares outputs and writes none, with these execution modes."""
    return assemble(
        DECLARES_OUTPUTS.format(
            capabilities='OpExtension "SPV_AMD_shader_early_and_late_fragment_tests"',
            interface=" ".join(f"%out{at}" for at in locations),
            modes="\n".join(f"OpExecutionMode %main {mode}" for mode in modes),
            locations="\n".join(f"OpDecorate %out{at} Location {at}" for at in locations),
            variables="\n".join(f"%out{at} = OpVariable %output Output" for at in locations),
        ),
        "vulkan1.1",
    )


def reads_uniform_writes_storage(which: int, modes: str = "") -> bytes:
    """SPIR-V of any stage before the rasterizer: word 0 of the uniform buffer at binding 0 goes into word 0 of the
    storage buffer at binding 1. `modes` are execution modes without operands, instead of those that such a stage has.
    """
    model = MODELS[which]
    mesh = model.endswith("EXT")
    named = "\n".join(f"OpExecutionMode %main {mode}" for mode in modes.split())
    return assemble(
        BUFFERS_ONLY.format(
            model=model,
            modes=named or MODES[model],
            capability='OpCapability MeshShadingEXT\nOpExtension "SPV_EXT_mesh_shader"' if mesh else "",
            interface="%source %target" if mesh else "",
        ),
        "spv1.4" if mesh else "vulkan1.1",
    )


def library(stream: Stream, parts: int, fragment: str | None, **more: Any) -> int:
    """A pipeline library of these parts (VkGraphicsPipelineLibraryFlags)."""
    chain = struct("VkGraphicsPipelineLibraryCreateInfoEXT", flags=parts)
    return pipeline(stream, fragment, pNext=chain, flags=0x800, **more)


def linked(stream: Stream, libraries: Sequence[int]) -> int:
    """A pipeline linked from libraries that give all of it."""
    chain = struct("VkPipelineLibraryCreateInfoKHR", libraryCount=len(libraries), pLibraries=list(libraries))
    return pipeline(stream, None, vertex=None, colors=None, pNext=chain)

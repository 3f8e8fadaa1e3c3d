"""Descriptor heaps: mapped bindings whose descriptors lie in memory. No driver here has them: the traces follow the
text of the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_descriptor_buffers import executed, hazards
from tests.support.spirv_text import assemble
from tests.support.streams import COLOR, Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.drawing.pipelines import PACKED_BITS
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkDescriptorType
from vkharness.trace.calls import Call
from vkharness.trace.codec import load as load_trace
from vkharness.trace.codec import save

BYTES, STRIDE = 16, 32
"""Of a descriptor on the device of these traces, and from one to the next in the heap."""
HEAP_READ, WRITE = "COMPUTE_SHADER_RESOURCE_HEAP_READ_EXT", "COMPUTE_SHADER_SHADER_STORAGE_WRITE"
CONSTANT, PUSH_INDEX, INDIRECT, PUSH_DATA, PUSH_ADDRESS = 0, 1, 2, 5, 6
UNKNOWN = "descriptors in memory whose bytes are unknown"
UNMAPPED = "a binding that is mapped by memory, by heap data or by nothing that is known"


def constant(offset: int, stride: int = 0, **more: Any) -> dict[str, Any]:
    """VkDescriptorMappingSourceConstantOffsetEXT."""
    return struct("VkDescriptorMappingSourceConstantOffsetEXT", heapOffset=offset, heapArrayStride=stride, **more)


class Heaped:
    """A trace with two storage buffers, a resource heap in memory of its own, and a compute shader that writes binding
    0 of set 0, or uses others, which `mappings` map."""

    def __init__(self, *mappings: dict[str, Any], shader: str = "fill_words_writeonly.comp") -> None:
        self.stream = stream = Stream()
        self.a, self.b = stream.buffer(256), stream.buffer(256)
        self.memory = stream.memory(4096)
        self.heap = stream.buffer(4096, self.memory)
        self.addresses = {id: 0x10000 * (at + 1) for at, id in enumerate((self.a, self.b, self.heap))}
        for id, address in self.addresses.items():
            at = stream.call("vkGetBufferDeviceAddress", pInfo=struct("VkBufferDeviceAddressInfo", buffer=id))
            block = stream.blocks[at - 1]
            assert isinstance(block, Call)
            block.result = address
        code, self.pipeline = load(shader), stream.id()
        module_info = struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)
        module = stream.make("vkCreateShaderModule", "pShaderModule", module_info)
        chain = struct("VkShaderDescriptorSetAndBindingMappingInfoEXT", pMappings=list(mappings))
        stage = struct("VkPipelineShaderStageCreateInfo", pNext=chain, stage=32, module=module, pName="main")
        made = struct("VkComputePipelineCreateInfo", stage=stage)
        stream.call("vkCreateComputePipelines", pCreateInfos=[made], pPipelines=[self.pipeline])

    def descriptor(self, buffer: int) -> bytes:
        """vkWriteResourceDescriptorsEXT of a storage buffer: the bytes."""
        data = bytes([buffer]) * BYTES
        where = struct("VkDeviceAddressRangeKHR", address=self.addresses[buffer], size=256)
        kind = VkDescriptorType.STORAGE_BUFFER
        info = struct("VkResourceDescriptorInfoEXT", type=kind, data={"pAddressRange": where})
        held = struct("VkHostAddressRangeEXT", address=data, size=BYTES)
        self.put("Resource", info, held)
        return data

    def put(self, kind: str, info: dict[str, Any], held: dict[str, Any]) -> None:
        """vkWriteResourceDescriptorsEXT or vkWriteSamplerDescriptorsEXT of one descriptor, which succeeds."""
        name = f"vkWrite{kind}DescriptorsEXT"
        args = {f"{kind.lower()}Count": 1, f"p{kind}s": [info], "pDescriptors": [held]}
        block = self.stream.blocks[self.stream.call(name, **args) - 1]
        assert isinstance(block, Call)
        block.result = 0

    def bind(self, offset: int = 0) -> None:
        """Binds the pipeline and the heap, which begins at an offset in its buffer."""
        self.stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self.pipeline)
        where = struct("VkDeviceAddressRangeKHR", address=self.addresses[self.heap] + offset, size=4096 - offset)
        info = struct("VkBindHeapInfoEXT", heapRange=where, reservedRangeOffset=3072 - offset, reservedRangeSize=1024)
        self.stream.cmd("BindResourceHeapEXT", pBindInfo=info)
        self.push(0, words(1))

    def push(self, offset: int, data: bytes) -> None:
        """vkCmdPushDataEXT."""
        held = struct("VkHostAddressRangeConstEXT", address=data, size=len(data))
        self.stream.cmd("PushDataEXT", pPushDataInfo=struct("VkPushDataInfoEXT", offset=offset, data=held))

    def dispatch(self) -> int:
        """vkCmdDispatch of one workgroup."""
        return self.stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)


def dispatched() -> Heaped:
    """A dispatch that writes a buffer through the descriptor at offset 64 of its heap; the recording goes on."""
    trace = Heaped(mapping(CONSTANT, {"constantOffset": constant(64)}))
    trace.stream.host_write(trace.memory, 64, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.bind()
    trace.dispatch()
    return trace


def mapping(
    source: int, data: dict[str, Any], mask: int = 0x7FFFFFFF, first: int = 0, count: int = 1
) -> dict[str, Any]:
    """VkDescriptorSetAndBindingMappingEXT of set 0."""
    return struct(
        "VkDescriptorSetAndBindingMappingEXT",
        descriptorSet=0,
        firstBinding=first,
        bindingCount=count,
        resourceMask=mask,
        source=source,
        sourceData=data,
    )


def pushed_index(packed: bool = False) -> dict[str, Any]:
    """A mapping by an index at byte 8 of push data."""
    held = struct(
        "VkDescriptorMappingSourcePushIndexEXT",
        heapOffset=64,
        pushOffset=8,
        heapIndexStride=STRIDE,
        useCombinedImageSamplerIndex=int(packed),
    )
    return mapping(PUSH_INDEX, {"pushIndex": held})


def accessed(trace: Heaped, place: int, buffer: int) -> list[object]:
    """A descriptor that is read in the heap, and the buffer that is written."""
    return [(trace.heap, HEAP_READ, ((place, place + BYTES),)), (buffer, WRITE, ((0, 256),))]


@pytest.mark.parametrize("offset", [0, 512])
def test_a_constant_offset_leads_to_the_descriptor(offset: int) -> None:
    trace = Heaped(mapping(CONSTANT, {"constantOffset": constant(64)}))
    trace.stream.host_write(trace.memory, offset + 64, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.bind(offset)
    at = trace.dispatch()
    trace.stream.submit()
    assert executed(trace.stream, at) == accessed(trace, offset + 64, trace.a)
    assert Analysis().follow(trace.stream.blocks).verdict == "clean"


def test_bindings_of_one_mapping_lie_apart() -> None:
    """The stride counts from the first binding of the mapping on."""
    trace = Heaped(mapping(CONSTANT, {"constantOffset": constant(64, STRIDE)}, count=4), shader="copy_words.comp")
    for at, buffer in enumerate((trace.a, trace.b)):
        trace.stream.host_write(trace.memory, 64 + at * STRIDE, trace.descriptor(buffer))
    trace.stream.begin()
    trace.bind()
    at = trace.dispatch()
    trace.stream.submit()
    (heap, *shaded) = executed(trace.stream, at)
    assert heap == (trace.heap, HEAP_READ, ((64, 64 + BYTES), (64 + STRIDE, 64 + STRIDE + BYTES)))
    assert {(each[0], each[1].rpartition("_")[2]) for each in shaded} == {(trace.a, "READ"), (trace.b, "WRITE")}


def image_descriptor(trace: Heaped, image: int, kind: int, mark: int) -> bytes:
    """vkWriteResourceDescriptorsEXT of an image, whose view no other call makes."""
    part = struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1)
    view = struct("VkImageViewCreateInfo", image=image, viewType=1, format=37, subresourceRange=part)
    made = struct("VkImageDescriptorInfoEXT", pView=view, layout=1)
    data = bytes([mark]) * BYTES
    info = struct("VkResourceDescriptorInfoEXT", type=kind, data={"pImage": made})
    held = struct("VkHostAddressRangeEXT", address=data, size=BYTES)
    trace.put("Resource", info, held)
    return data


@pytest.mark.parametrize("embedded", [False, True])
def test_a_combined_image_sampler_lies_in_both_heaps(embedded: bool) -> None:
    sampler = struct("VkSamplerCreateInfo") if embedded else None
    made = constant(64, samplerHeapOffset=128, pEmbeddedSampler=sampler)
    stored = mapping(CONSTANT, {"constantOffset": constant(512)}, first=1)
    trace = Heaped(mapping(CONSTANT, {"constantOffset": made}), stored, shader="sample_2d.comp")
    stream = trace.stream
    image = stream.image((4, 4, 1), usage=4)
    stream.host_write(trace.memory, 512, trace.descriptor(trace.a))
    stream.host_write(trace.memory, 64, image_descriptor(trace, image, VkDescriptorType.SAMPLED_IMAGE, 9))
    held = struct("VkHostAddressRangeEXT", address=b"s" * 8, size=8)
    info = struct("VkSamplerCreateInfo")
    trace.put("Sampler", info, held)
    stream.begin()
    trace.bind()
    where = struct("VkDeviceAddressRangeKHR", address=trace.addresses[trace.heap] + 2048, size=1024)
    stream.cmd("BindSamplerHeapEXT", pBindInfo=struct("VkBindHeapInfoEXT", heapRange=where))
    at = trace.dispatch()
    stream.submit()
    found = executed(stream, at)
    assert (trace.heap, HEAP_READ, ((64, 64 + BYTES), (512, 512 + BYTES))) in found
    samplers = (trace.heap, "COMPUTE_SHADER_SAMPLER_HEAP_READ_EXT", ((2176, 2184),))
    assert (samplers in found) is not embedded
    assert any(each[:2] == (image, "COMPUTE_SHADER_SHADER_SAMPLED_READ") for each in found)


@pytest.mark.parametrize(("index", "packed"), [(3, False), (3 | 5 << PACKED_BITS, True)])
def test_an_index_in_push_data_chooses_the_descriptor(index: int, packed: bool) -> None:
    """The packed form is one of combined image samplers alone: a buffer takes all bits of the word."""
    trace = Heaped(pushed_index(packed))
    trace.stream.host_write(trace.memory, 64 + 3 * STRIDE, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.bind()
    trace.push(8, words(index))
    at = trace.dispatch()
    trace.stream.submit()
    expected = [UNKNOWN] if packed else accessed(trace, 64 + 3 * STRIDE, trace.a)
    assert [each for each in executed(trace.stream, at) if isinstance(each, str) or not packed] == expected


def test_what_is_pushed_last_counts_for_each_dispatch(tmp_path: Path) -> None:
    trace = Heaped(pushed_index())
    for at, buffer in enumerate((trace.a, trace.b)):
        trace.stream.host_write(trace.memory, 64 + at * STRIDE, trace.descriptor(buffer))
    trace.stream.begin()
    trace.bind()
    several = []
    for index in (1, 0, 1):
        trace.push(8, words(index))
        several.append(trace.dispatch())
    trace.stream.submit()
    written = [executed(trace.stream, each)[-1][0] for each in several]
    assert written == [trace.b, trace.a, trace.b]
    assert hazards(trace.stream) == ["WRITE_AFTER_WRITE"], "the third dispatch after the first"
    path = tmp_path / "trace.jsonl"
    save(path, trace.stream.blocks)  # equal commands of a file are asked once
    found = Analysis().follow(load_trace(path)).findings
    assert [(str(each.hazard), each.place.call, each.prior.call) for each in found] == [
        ("WRITE_AFTER_WRITE", several[2], several[0])
    ]


def test_an_address_in_push_data_is_the_block() -> None:
    trace = Heaped(mapping(PUSH_ADDRESS, {"pushAddressOffset": 8}))
    trace.stream.begin()
    trace.bind()
    trace.push(8, (trace.addresses[trace.b] + 64).to_bytes(8, "little"))
    at = trace.dispatch()
    trace.stream.submit()
    assert executed(trace.stream, at) == [(trace.b, WRITE, ((64, 256),))]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (mapping(INDIRECT, {"indirectIndex": struct("VkDescriptorMappingSourceIndirectIndexEXT")}), UNMAPPED),
        (mapping(CONSTANT, {"constantOffset": constant(64)}, mask=0x20), UNMAPPED),
        (mapping(CONSTANT, {"constantOffset": constant(64)}, first=1), UNMAPPED),
        (mapping(CONSTANT, {"constantOffset": constant(2048)}), UNKNOWN),
        (pushed_index(), UNMAPPED),
        (mapping(PUSH_ADDRESS, {"pushAddressOffset": 8}), UNKNOWN),
    ],
)
def test_what_is_not_known_makes_the_verdict_unknown(made: dict[str, Any], reason: str) -> None:
    """A mapping by memory, of other resources or bindings, of bytes that nobody wrote, or of data that was not
    pushed."""
    trace = Heaped(made)
    trace.descriptor(trace.a)
    trace.stream.begin()
    trace.bind()
    trace.dispatch()
    trace.stream.submit()
    analysis = Analysis().follow(trace.stream.blocks)
    assert (analysis.verdict, list(analysis.unmodelled)) == ("unknown", [reason])


def test_without_a_heap_nothing_is_known() -> None:
    trace = Heaped(mapping(CONSTANT, {"constantOffset": constant(64)}))
    trace.descriptor(trace.a)
    trace.stream.begin()
    trace.stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=trace.pipeline)
    trace.push(0, words(1))
    trace.dispatch()
    trace.stream.submit()
    assert list(Analysis().follow(trace.stream.blocks).unmodelled) == [
        "a descriptor heap at an address of no known buffer, or none"
    ]


HEAP_STAGES = {"resource": 0x400000000000000, "sampler": 0x200000000000000, "uniform": 0x8}


@pytest.mark.parametrize("access", HEAP_STAGES)
def test_descriptors_that_the_device_copies_need_a_dependency_to_the_heap(access: str) -> None:
    """The copy must be visible to RESOURCE_HEAP_READ of the shader's stage; other accesses do not cover that."""
    trace = Heaped(mapping(CONSTANT, {"constantOffset": constant(64)}))
    staging_memory = trace.stream.memory(256)
    staging = trace.stream.buffer(256, staging_memory)
    trace.stream.host_write(staging_memory, 0, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.stream.copy(staging, trace.heap, BYTES, to=64)
    seen = struct(
        "VkMemoryBarrier2",
        srcStageMask=0x100000000,
        srcAccessMask=0x1000,
        dstStageMask=0x800,
        dstAccessMask=HEAP_STAGES[access],
    )
    trace.stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[seen]))
    trace.bind()
    trace.dispatch()
    trace.stream.submit()
    assert hazards(trace.stream) == ([] if access == "resource" else ["READ_AFTER_WRITE"])


@pytest.mark.parametrize("waits", [False, True])
def test_the_host_may_write_a_descriptor_once_no_work_reads_it(waits: bool) -> None:
    trace = dispatched()
    trace.stream.submit(wait=waits)
    trace.stream.host_write(trace.memory, 64 + STRIDE, trace.descriptor(trace.b))
    trace.stream.host_write(trace.memory, 64, trace.descriptor(trace.b))
    assert hazards(trace.stream) == ([] if waits else ["WRITE_AFTER_READ"])


def test_what_shaders_write_through_a_heap_is_judged() -> None:
    for barrier in False, True:
        trace = dispatched()
        if barrier:
            trace.stream.barrier()
        trace.stream.copy(trace.a, trace.b, 16)
        trace.stream.submit()
        assert hazards(trace.stream) == ([] if barrier else ["READ_AFTER_WRITE"])


UNTYPED = """
OpCapability Shader
OpCapability UntypedPointersKHR
OpExtension "SPV_KHR_untyped_pointers"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %heap
OpExecutionMode %main LocalSize 1 1 1
%void = OpTypeVoid
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%vec4 = OpTypeVector %float 4
%uvec2 = OpTypeVector %uint 2
%one = OpConstant %uint 1
%at = OpConstantNull %uvec2
%white = OpConstantNull %vec4
%function = OpTypeFunction %void
%pointer = OpTypeUntypedPointerKHR UniformConstant
%image = OpTypeImage %float 2D 0 0 0 2 Rgba8
%array = OpTypeRuntimeArray %image
%heap = OpUntypedVariableKHR %pointer UniformConstant
%main = OpFunction %void None %function
%entry = OpLabel
%place = OpUntypedAccessChainKHR %pointer %array %heap %one
%held = OpLoad %image %place
OpImageWrite %held %at %white
OpReturn
OpFunctionEnd
"""


def test_a_shader_that_uses_the_heap_itself_is_not_modelled() -> None:
    """SPV_EXT_descriptor_heap: an untyped variable without set and binding. What it holds nobody knows."""
    assert reflect(assemble(UNTYPED, "vulkan1.3"), "main").unmodelled == ("resource of an unknown type",)


@pytest.mark.parametrize(("ordered", "found"), [(True, "clean"), (False, "unknown")])
def test_descriptors_that_a_shader_chooses_as_it_runs_may_be_read(ordered: bool, found: str) -> None:
    """One of four at binding 0. The last one is overwritten, which is in order with the read or not."""
    places = (
        mapping(CONSTANT, {"constantOffset": constant(64, STRIDE)}),
        mapping(CONSTANT, {"constantOffset": constant(1024)}, first=1),
    )
    trace = Heaped(*places, shader="array_any_index.comp")
    for at, buffer in ((64, trace.a), (1024, trace.b)):
        trace.stream.host_write(trace.memory, at, trace.descriptor(buffer))
    trace.stream.begin()
    trace.bind()
    trace.dispatch()
    if ordered:
        trace.stream.barrier()
    trace.stream.fill(trace.heap, 0, 64 + 3 * STRIDE, BYTES)
    trace.stream.submit()
    analysis = Analysis().follow(trace.stream.blocks)
    assert (analysis.verdict, analysis.findings) == (found, [])
    assert agreement(trace.stream.blocks).disagreements == ()


@pytest.mark.parametrize(
    ("ordered", "place", "found"), [(True, 3072, "clean"), (False, 3072, "unknown"), (False, 2048, "clean")]
)
def test_reserved_ranges_may_be_read(ordered: bool, place: int, found: str) -> None:
    """They are the implementation's while the heap is bound; what it does there is not said."""
    trace = dispatched()
    if ordered:
        trace.stream.barrier()
    trace.stream.fill(trace.heap, 0, place, 16)
    trace.stream.submit()
    analysis = Analysis().follow(trace.stream.blocks)
    assert (analysis.verdict, analysis.findings) == (found, [])
    assert agreement(trace.stream.blocks).disagreements == ()

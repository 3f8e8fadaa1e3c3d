"""Descriptor buffers: descriptors that lie in memory, as the host wrote them, updates and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.streams import READ_WRITE, Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.interpret import Interpreter
from vkharness.findings import Certainty
from vkharness.shader.library import load
from vkharness.spec.enums import VkDescriptorType, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Submitted, Unmodelled

STORAGE = VkDescriptorType.STORAGE_BUFFER
BYTES = 16
"""Of a descriptor on the device of these traces."""
FIRST_BINDING, SECOND_BINDING = 32, 64
"""Where its bindings begin."""
DESCRIPTOR_READ, WRITE = "COMPUTE_SHADER_DESCRIPTOR_BUFFER_READ_EXT", "COMPUTE_SHADER_SHADER_STORAGE_WRITE"
UNKNOWN = "descriptors in memory whose bytes are unknown"


class Described:
    """A trace with two storage buffers, a descriptor buffer on memory of its own, and a compute shader that writes
    binding 0, or copies binding 0 to binding 1."""

    def __init__(self, shader: str = "fill_words_writeonly.comp", bindings: int = 1, asks: bool = True) -> None:
        self.stream = stream = Stream()
        self.a, self.b = stream.buffer(256), stream.buffer(256)
        self.memory = stream.memory(4096)
        self.descriptors = stream.buffer(4096, self.memory)
        self.addresses = {id: 0x10000 * (at + 1) for at, id in enumerate((self.a, self.b, self.descriptors))}
        for id, address in self.addresses.items():
            at = stream.call("vkGetBufferDeviceAddress", pInfo=struct("VkBufferDeviceAddressInfo", buffer=id))
            block = stream.blocks[at - 1]
            assert isinstance(block, Call)
            block.result = address
        slots = [
            struct("VkDescriptorSetLayoutBinding", binding=at, descriptorType=STORAGE, descriptorCount=1, stageFlags=32)
            for at in range(bindings)
        ]
        info = struct("VkDescriptorSetLayoutCreateInfo", flags=16, pBindings=slots)
        set_layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info)
        for at in range(bindings) if asks else ():
            offset = (FIRST_BINDING, SECOND_BINDING)[at]
            stream.call("vkGetDescriptorSetLayoutBindingOffsetEXT", layout=set_layout, binding=at, pOffset=offset)
        layout_info = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[set_layout])
        self.layout = stream.make("vkCreatePipelineLayout", "pPipelineLayout", layout_info)
        code, self.pipeline = load(shader), stream.id()
        module_info = struct("VkShaderModuleCreateInfo", codeSize=len(code), pCode=code)
        module = stream.make("vkCreateShaderModule", "pShaderModule", module_info)
        stage = struct("VkPipelineShaderStageCreateInfo", stage=32, module=module, pName="main")
        made = struct("VkComputePipelineCreateInfo", stage=stage, layout=self.layout)
        stream.call("vkCreateComputePipelines", pCreateInfos=[made], pPipelines=[self.pipeline])

    def descriptor(self, buffer: int, mark: int = 0, size: int = 256) -> bytes:
        """vkGetDescriptorEXT of a storage buffer (0: a null descriptor): the bytes, which begin with `mark`."""
        where = None
        if buffer:
            where = struct("VkDescriptorAddressInfoEXT", address=self.addresses[buffer], range=size)
        info = struct("VkDescriptorGetInfoEXT", type=STORAGE, data={"pStorageBuffer": where})
        data = bytes([mark or buffer]) * BYTES
        self.stream.call("vkGetDescriptorEXT", pDescriptorInfo=info, dataSize=BYTES, pDescriptor=data)
        return data

    def bind(self, offset: int = 0, address: int | None = None) -> None:
        """Binds the pipeline, the descriptor buffer, and set 0 at an offset in it."""
        stream, place = self.stream, self.addresses[self.descriptors] if address is None else address
        stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self.pipeline)
        bound = struct("VkDescriptorBufferBindingInfoEXT", address=place)
        stream.cmd("BindDescriptorBuffersEXT", bufferCount=1, pBindingInfos=[bound])
        self.set_offset(offset)
        stream.cmd("PushConstants", layout=self.layout, stageFlags=32, offset=0, size=4, pValues=words(1))

    def set_offset(self, offset: int) -> None:
        """vkCmdSetDescriptorBufferOffsetsEXT of set 0."""
        place: dict[str, Any] = {"pipelineBindPoint": 1, "layout": self.layout, "firstSet": 0, "setCount": 1}
        self.stream.cmd("SetDescriptorBufferOffsetsEXT", **place, pBufferIndices=[0], pOffsets=[offset])

    def dispatch(self) -> int:
        """vkCmdDispatch of one workgroup."""
        return self.stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)

    def executed(self, command: int) -> list[tuple[int, str, tuple[tuple[int, int], ...]] | str]:
        """Returns the accesses of a command as it was executed, and the parts of it that are not modelled."""
        return executed(self.stream, command)


def executed(stream: Stream, command: int) -> list[tuple[int, str, tuple[tuple[int, int], ...]] | str]:
    """Returns the certain accesses of a command, and the parts of it that are not modelled."""
    interpreter, found = Interpreter(), list[tuple[int, str, tuple[tuple[int, int], ...]] | str]()
    for event in [event for block in stream.blocks for event in interpreter.step(block)]:
        batches = event.batches if isinstance(event, Submitted) else ()
        for each in [each for batch in batches for _, held in batch.buffers for each in held if each.call == command]:
            for effect in each.effects:
                if isinstance(effect, Access) and effect.certainty is not Certainty.BOUND:
                    name = ACCESS_KINDS[effect.access_kind].name.removeprefix("SYNC_")
                    found.append((effect.resource, name, effect.spans))
                elif isinstance(effect, Unmodelled):
                    found.append(effect.what)
    return found


def hazards(stream: Stream) -> list[str]:
    """Returns the hazards that both judges find."""
    assert agreement(stream.blocks).disagreements == ()
    return [str(each.hazard) for each in Analysis().follow(stream.blocks).findings]


class TestWhatIsAccessed:
    def test_the_descriptor_that_the_host_wrote(self) -> None:
        trace = Described()
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
        trace.stream.begin()
        trace.bind()
        at = trace.dispatch()
        trace.stream.submit()
        assert trace.executed(at) == [
            (trace.descriptors, DESCRIPTOR_READ, ((FIRST_BINDING, FIRST_BINDING + BYTES),)),
            (trace.a, WRITE, ((0, 256),)),
        ]
        assert Analysis().follow(trace.stream.blocks).verdict == "clean"

    def test_what_counts_is_what_memory_holds_at_the_execution(self) -> None:
        """The host writes the descriptor after the recording, and another one before the second submit."""
        trace = Described()
        first, second = trace.descriptor(trace.a), trace.descriptor(trace.b)
        trace.stream.begin()
        trace.bind()
        at = trace.dispatch()
        trace.stream.end()
        for data in (first, second):
            trace.stream.host_write(trace.memory, FIRST_BINDING, data)
            trace.stream.submit(trace.stream.commands)
        found = [each for each in trace.executed(at) if each[1] == WRITE]
        assert [each[0] for each in found] == [trace.a, trace.b]

    def test_the_offset_of_the_set_counts(self) -> None:
        trace = Described()
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
        trace.stream.host_write(trace.memory, 512 + FIRST_BINDING, trace.descriptor(trace.b))
        trace.stream.begin()
        trace.bind()
        trace.set_offset(512)
        at = trace.dispatch()
        trace.stream.submit()
        begin = 512 + FIRST_BINDING
        assert trace.executed(at) == [
            (trace.descriptors, DESCRIPTOR_READ, ((begin, begin + BYTES),)),
            (trace.b, WRITE, ((0, 256),)),
        ]

    def test_the_range_of_the_descriptor_counts(self) -> None:
        trace = Described()
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a, size=64))
        trace.stream.begin()
        trace.bind()
        at = trace.dispatch()
        trace.stream.submit()
        assert trace.executed(at)[1:] == [(trace.a, WRITE, ((0, 64),))]

    def test_descriptors_that_a_copy_brought(self) -> None:
        trace = Described("copy_words.comp", 2)
        stream = trace.stream
        memory = stream.memory(4096)
        staging = stream.buffer(4096, memory)
        stream.host_write(memory, FIRST_BINDING, trace.descriptor(trace.a))
        stream.host_write(memory, SECOND_BINDING, trace.descriptor(trace.b))
        stream.begin()
        stream.copy(staging, trace.descriptors, 256)
        stream.barrier()
        trace.bind()
        at = trace.dispatch()
        stream.submit()
        assert sorted(each[0] for each in trace.executed(at)) == sorted([trace.a, trace.b, trace.descriptors])
        assert hazards(stream) == []

    def test_a_null_descriptor_means_nothing(self) -> None:
        trace = Described()
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(0, mark=9))
        trace.stream.begin()
        trace.bind()
        at = trace.dispatch()
        trace.stream.submit()
        assert [each[0] for each in trace.executed(at)] == [trace.descriptors]

    def test_bytes_mean_what_the_device_gave_them_for_last(self) -> None:
        trace = Described()
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a, mark=7))
        trace.descriptor(trace.b, mark=7)
        trace.stream.begin()
        trace.bind()
        at = trace.dispatch()
        trace.stream.submit()
        assert [each[0] for each in trace.executed(at)] == [trace.descriptors, trace.b]


class TestHazards:
    @pytest.mark.parametrize(
        ("access", "expected"), [("DESCRIPTOR_BUFFER_READ", []), ("SHADER_READ", ["READ_AFTER_WRITE"])]
    )
    def test_the_read_of_the_descriptors_needs_its_access(self, access: str, expected: Sequence[str]) -> None:
        bits = {"DESCRIPTOR_BUFFER_READ": 1 << 41, "SHADER_READ": 0x20}
        trace = Described()
        data = trace.descriptor(trace.a)
        stream = trace.stream
        stream.begin()
        stream.cmd("UpdateBuffer", dstBuffer=trace.descriptors, dstOffset=FIRST_BINDING, dataSize=BYTES, pData=data)
        barrier = struct(
            "VkMemoryBarrier2",
            srcStageMask=VkPipelineStage2.ALL_TRANSFER,
            srcAccessMask=READ_WRITE,
            dstStageMask=VkPipelineStage2.COMPUTE_SHADER,
            dstAccessMask=bits[access],
        )
        stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[barrier]))
        trace.bind()
        trace.dispatch()
        stream.submit()
        assert hazards(stream) == expected

    def test_what_the_shader_wrote_is_found(self) -> None:
        trace = Described()
        stream = trace.stream
        stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
        stream.begin()
        trace.bind()
        trace.dispatch()
        stream.copy(trace.a, trace.b, 256)
        stream.submit()
        assert hazards(stream) == ["READ_AFTER_WRITE"]

    def test_descriptors_that_are_overwritten_too_early(self) -> None:
        trace = Described()
        stream = trace.stream
        stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
        stream.begin()
        trace.bind()
        trace.dispatch()
        stream.fill(trace.descriptors, 0)
        stream.submit()
        assert hazards(stream) == ["WRITE_AFTER_READ"]


class TestUnknown:
    def what(self, trace: Described) -> list[str]:
        trace.stream.begin()
        trace.bind()
        trace.dispatch()
        trace.stream.submit()
        mirror = Analysis().follow(trace.stream.blocks)
        assert mirror.verdict == "unknown"
        return list(mirror.unmodelled)

    def test_bytes_that_nobody_wrote(self) -> None:
        trace = Described()
        trace.descriptor(trace.a)
        assert UNKNOWN in " ".join(self.what(trace))

    def test_bytes_that_the_device_did_not_give(self) -> None:
        trace = Described()
        trace.descriptor(trace.a)
        trace.stream.host_write(trace.memory, FIRST_BINDING, bytes(range(BYTES)))
        assert UNKNOWN in " ".join(self.what(trace))

    def test_a_layout_of_which_nobody_asked_the_offsets(self) -> None:
        trace = Described(asks=False)
        trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
        assert "did not ask the device about" in " ".join(self.what(trace))

    def test_a_type_of_which_nobody_made_a_descriptor(self) -> None:
        assert "did not ask the device about" in " ".join(self.what(Described()))

    def test_a_descriptor_buffer_that_nobody_knows(self) -> None:
        trace = Described()
        trace.addresses[trace.descriptors] = 0x99990000
        assert "at an address of no known buffer" in " ".join(self.what(trace))

    def test_bytes_that_a_shader_wrote(self) -> None:
        """The first dispatch writes the descriptors of the second one."""
        trace = Described()
        stream = trace.stream
        stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.descriptors, size=4096))
        stream.begin()
        trace.bind()
        trace.dispatch()
        stream.barrier()
        at = trace.dispatch()
        stream.submit()
        assert UNKNOWN in trace.executed(at)
        assert Analysis().follow(stream.blocks).verdict == "unknown"


def test_draws_read_their_descriptors_too() -> None:
    trace = Described("fill_words_writeonly.comp")
    stream = trace.stream
    info = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[])
    stream.make("vkCreatePipelineLayout", "pPipelineLayout", info)
    made = drawing.pipeline(stream, "store_words.frag", input=drawing.vertex_input())
    stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
    _, view = drawing.color_target(stream)
    stream.begin()
    drawing.render(stream, view)
    drawing.bind(stream, made)
    bound = struct("VkDescriptorBufferBindingInfoEXT", address=trace.addresses[trace.descriptors])
    stream.cmd("BindDescriptorBuffersEXT", bufferCount=1, pBindingInfos=[bound])
    place: dict[str, Any] = {"pipelineBindPoint": 0, "layout": trace.layout, "firstSet": 0, "setCount": 1}
    stream.cmd("SetDescriptorBufferOffsetsEXT", **place, pBufferIndices=[0], pOffsets=[0])
    several = [drawing.draw(stream), drawing.draw(stream)]
    stream.cmd("EndRendering")
    stream.submit()
    for at in several:
        found = [each for each in executed(stream, at) if each[1].startswith("FRAGMENT_SHADER")]
        assert [(each[0], each[1]) for each in found] == [
            (trace.descriptors, "FRAGMENT_SHADER_DESCRIPTOR_BUFFER_READ_EXT"),
            (trace.a, "FRAGMENT_SHADER_SHADER_STORAGE_WRITE"),
        ]


SIZES = {VkDescriptorType.STORAGE_IMAGE: 64, VkDescriptorType.UNIFORM_TEXEL_BUFFER: 24, STORAGE: BYTES}
"""Of descriptors by type."""


class Kinds:
    """A trace with a compute shader whose set has bindings of these VkDescriptorTypes, each 1,024 bytes behind the one
    before."""

    def __init__(self, shader: str, kinds: Sequence[int], count: int = 1, mutable: Sequence[int] = ()) -> None:
        self.trace = trace = Described(shader, 0)
        stream = trace.stream
        slots = [
            struct(
                "VkDescriptorSetLayoutBinding", binding=at, descriptorType=kind, descriptorCount=count, stageFlags=32
            )
            for at, kind in enumerate(kinds)
        ]
        lists = [struct("VkMutableDescriptorTypeListEXT", pDescriptorTypes=list(mutable)) for _ in kinds]
        chain = struct("VkMutableDescriptorTypeCreateInfoEXT", pMutableDescriptorTypeLists=lists) if mutable else None
        info = struct("VkDescriptorSetLayoutCreateInfo", pNext=chain, flags=16, pBindings=slots)
        made = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info)
        for at in range(len(kinds)):
            stream.call("vkGetDescriptorSetLayoutBindingOffsetEXT", layout=made, binding=at, pOffset=1024 * at)
        layout_info = struct("VkPipelineLayoutCreateInfo", pSetLayouts=[made])
        trace.layout = stream.make("vkCreatePipelineLayout", "pPipelineLayout", layout_info)

    def write(self, place: int, kind: int, data: dict[str, Any], mark: int) -> None:
        """vkGetDescriptorEXT, and a write of the bytes by the host."""
        stream = self.trace.stream
        info = struct("VkDescriptorGetInfoEXT", type=kind, data=data)
        made = bytes([mark]) * SIZES[kind]
        stream.call("vkGetDescriptorEXT", pDescriptorInfo=info, dataSize=len(made), pDescriptor=made)
        stream.host_write(self.trace.memory, place, made)

    def storage(self, place: int, buffer: int, mark: int = 0) -> None:
        """That of a storage buffer."""
        where = struct("VkDescriptorAddressInfoEXT", address=self.trace.addresses[buffer], range=256)
        self.write(place, STORAGE, {"pStorageBuffer": where}, mark or buffer)

    def dispatched(self) -> list[tuple[int, str, tuple[tuple[int, int], ...]] | str]:
        """Records a dispatch and returns its accesses."""
        self.trace.stream.begin()
        self.trace.bind()
        at = self.trace.dispatch()
        self.trace.stream.submit()
        return self.trace.executed(at)


def test_an_image_behind_a_descriptor() -> None:
    kind = VkDescriptorType.STORAGE_IMAGE
    kinds = Kinds("image_store_2d.comp", [kind])
    stream = kinds.trace.stream
    image = stream.image((16, 16, 1))
    view = passes.view(stream, image)
    kinds.write(0, kind, {"pStorageImage": struct("VkDescriptorImageInfo", imageView=view, imageLayout=1)}, 5)
    assert kinds.dispatched() == [(kinds.trace.descriptors, DESCRIPTOR_READ, ((0, 64),)), (image, WRITE, ((0, 64),))]


def test_texels_behind_a_descriptor() -> None:
    kind = VkDescriptorType.UNIFORM_TEXEL_BUFFER
    kinds = Kinds("texel_fetch_buffer.comp", [kind, STORAGE])
    where = struct(
        "VkDescriptorAddressInfoEXT", address=kinds.trace.addresses[kinds.trace.a] + 64, range=128, format=98
    )
    kinds.write(0, kind, {"pUniformTexelBuffer": where}, 5)
    kinds.storage(1024, kinds.trace.b)
    found = [each for each in kinds.dispatched() if each[0] != kinds.trace.descriptors]
    assert (kinds.trace.a, "COMPUTE_SHADER_SHADER_SAMPLED_READ", ((64, 192),)) in found
    assert kinds.trace.b in {each[0] for each in found}


def test_mutable_descriptors_lie_as_far_apart_as_the_largest_type() -> None:
    types = [VkDescriptorType.STORAGE_IMAGE, STORAGE]
    kinds = Kinds("fill_words_writeonly.comp", [VkDescriptorType.MUTABLE_EXT], mutable=types)
    stream = kinds.trace.stream
    view = passes.view(stream, stream.image((16, 16, 1)))
    kinds.write(256, types[0], {"pStorageImage": struct("VkDescriptorImageInfo", imageView=view)}, 5)
    kinds.storage(0, kinds.trace.a)
    assert kinds.dispatched() == [
        (kinds.trace.descriptors, DESCRIPTOR_READ, ((0, 64),)),
        (kinds.trace.a, WRITE, ((0, 256),)),
    ]


def test_any_element_of_an_array_may_be_chosen_that_was_written() -> None:
    """All descriptors of the array may be read, and those that nobody wrote are not chosen."""
    kinds = Kinds("array_any_index.comp", [STORAGE, STORAGE], count=32)
    kinds.storage(0, kinds.trace.a)
    kinds.storage(3 * BYTES, kinds.trace.b)
    kinds.storage(1024, kinds.trace.b, 9)
    found = kinds.dispatched()
    assert not [each for each in found if isinstance(each, str)]
    assert {each[0] for each in found} == {kinds.trace.descriptors, kinds.trace.a, kinds.trace.b}
    reads = [
        span for each in found if each[0] == kinds.trace.descriptors for span in each[2] if not isinstance(each, str)
    ]
    assert (0, 32 * BYTES) in reads


@pytest.mark.parametrize("stages", [32, 0x1F])
def test_offsets_for_the_bind_points_of_stages(stages: int) -> None:
    """vkCmdSetDescriptorBufferOffsets2EXT sets them where a stage runs; the other bind point keeps its own."""
    trace = Described()
    stream = trace.stream
    stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
    stream.host_write(trace.memory, 512 + FIRST_BINDING, trace.descriptor(trace.b))
    stream.begin()
    trace.bind()
    place = {"stageFlags": stages, "layout": trace.layout, "firstSet": 0, "setCount": 1}
    info = struct("VkSetDescriptorBufferOffsetsInfoEXT", **place, pBufferIndices=[0], pOffsets=[512])
    stream.cmd("SetDescriptorBufferOffsets2EXT", pSetDescriptorBufferOffsetsInfo=info)
    at = trace.dispatch()
    stream.submit()
    assert trace.executed(at)[1:] == [(trace.b if stages == 32 else trace.a, WRITE, ((0, 256),))]


def test_embedded_samplers_take_the_place_of_a_set() -> None:
    trace = Described()
    trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.bind()
    trace.stream.cmd("BindDescriptorBufferEmbeddedSamplersEXT", pipelineBindPoint=1, layout=trace.layout, set=0)
    at = trace.dispatch()
    trace.stream.submit()
    assert trace.executed(at) == []


def test_binding_buffers_anew_ends_the_offsets() -> None:
    trace = Described()
    trace.stream.host_write(trace.memory, FIRST_BINDING, trace.descriptor(trace.a))
    trace.stream.begin()
    trace.bind()
    bound = struct("VkDescriptorBufferBindingInfoEXT", address=trace.addresses[trace.descriptors])
    trace.stream.cmd("BindDescriptorBuffersEXT", bufferCount=1, pBindingInfos=[bound])
    at = trace.dispatch()
    trace.stream.submit()
    assert trace.executed(at) == []

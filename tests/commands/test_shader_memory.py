"""Which bytes a dispatch touches, and how sure that is: by workgroups, push constants, conditions and addresses."""

from __future__ import annotations

import pytest

from tests.support.interpreted import InterpretedStream
from tests.support.streams import Dispatch, struct, words
from vkharness.check import Analysis
from vkharness.findings import Certainty
from vkharness.spec.enums import VK_WHOLE_SIZE, VkStructureType
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Effect, Recorded, Submitted, Unmodelled, UnmodelledCall

WRITE, READ = "SHADER_STORAGE_WRITE", "SHADER_STORAGE_READ"
EXACT, DECLARED = Certainty.EXACT, Certainty.DECLARED
Seen = tuple[str, int, tuple[tuple[int, int], ...], Certainty]


def seen(effects: tuple[Effect, ...]) -> list[Seen]:
    """(access without its stage, resource, spans, certainty) of each access; an atomic is a read with a star."""
    assert all(isinstance(each, Access) for each in effects), effects
    return [
        (
            ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_COMPUTE_SHADER_") + "*" * each.atomic,
            each.resource,
            each.spans,
            each.certainty,
        )
        for each in effects
        if isinstance(each, Access)
    ]


def ready(stream: InterpretedStream, dispatch: Dispatch, *pushed: int) -> None:
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=dispatch.layout, pDescriptorSets=[dispatch.set])
    push(stream, dispatch, *pushed)


def push(stream: InterpretedStream, dispatch: Dispatch, *pushed: int, at: int = 0) -> None:
    data = words(*pushed)
    stream.cmd("PushConstants", layout=dispatch.layout, stageFlags=0x20, offset=at, size=len(data), pValues=data)


def run(stream: InterpretedStream, *count: int, base: tuple[int, int, int] = (0, 0, 0)) -> tuple[Effect, ...]:
    counts = dict(zip(("groupCountX", "groupCountY", "groupCountZ"), (*count, 1, 1), strict=False))
    bases = dict(zip(("baseGroupX", "baseGroupY", "baseGroupZ"), base, strict=True))
    return stream.effects("DispatchBase", **counts, **bases)


def test_workgroups_decide_the_bytes(stream: InterpretedStream) -> None:
    a = stream.buffer(4096)
    ready(stream, stream.compute("fill_words", [a], b"1234"), 7)
    assert seen(run(stream, 1)) == [(WRITE, a, ((0, 256),), EXACT)]
    assert seen(run(stream, 2, base=(3, 0, 0))) == [(WRITE, a, ((768, 1280),), EXACT)]
    assert seen(run(stream, 100)) == [(WRITE, a, ((0, 4096),), EXACT)], "the length of the block is the guard"
    assert run(stream, 1, base=(16, 0, 0)) == ()


def test_push_constants_decide_the_bytes(stream: InterpretedStream) -> None:
    a = stream.buffer(512)
    dispatch = stream.compute("limited_words", [a], b"1" * 12)
    ready(stream, dispatch)
    assert seen(run(stream, 1)) == [(WRITE, a, ((0, 512),), DECLARED)], "nothing was pushed"
    push(stream, dispatch, 10, 40, 7)
    assert seen(run(stream, 1)) == [(WRITE, a, ((40, 200),), EXACT)]
    push(stream, dispatch, 5, at=4)
    assert seen(run(stream, 1)) == [(WRITE, a, ((40, 60),), EXACT)]
    push(stream, dispatch, 0, at=4)
    assert run(stream, 1) == ()


def test_what_may_lie_past_the_end_is_the_whole_range(stream: InterpretedStream) -> None:
    a = stream.buffer(512)
    dispatch = stream.compute("limited_words", [a], b"1" * 12)
    ready(stream, dispatch, 100, 64, 7)
    assert seen(run(stream, 1)) == [(WRITE, a, ((0, 512),), DECLARED)]
    push(stream, dispatch, 0xFFFFFFFF)
    assert seen(run(stream, 1)) == [(WRITE, a, ((0, 512),), DECLARED)], "the sum may wrap"


def test_an_indirect_dispatch_is_bounded_by_its_guard(stream: InterpretedStream) -> None:
    a, parameters = stream.buffer(512), stream.buffer(64)
    ready(stream, stream.compute("limited_words", [a], b"1" * 12), 10, 40, 7)
    effects = stream.effects("DispatchIndirect", buffer=parameters, offset=0)
    assert seen(effects[1:]) == [(WRITE, a, ((40, 200),), DECLARED)]


def test_how_sure_an_access_is_is_not_that_of_another_dispatch(stream: InterpretedStream) -> None:
    """The bytes do not vary, so that nothing but the workgroups told the two dispatches apart."""
    a, parameters = stream.buffer(128), stream.buffer(64)
    ready(stream, stream.compute("half_range_copy", [a]))
    direct, indirect = (WRITE, a, ((64, 128),), EXACT), (WRITE, a, ((64, 128),), DECLARED)
    for _ in range(2):
        assert direct in seen(run(stream, 1))
        assert indirect in seen(stream.effects("DispatchIndirect", buffer=parameters, offset=0)[1:])


def test_tiles_are_rows(stream: InterpretedStream) -> None:
    a = stream.buffer(4096)
    ready(stream, stream.compute("tile_words", [a], b"1" * 12), 8, 16, 7)
    rows = tuple((32 + 64 * row, 64 + 64 * row) for row in range(8))
    assert seen(run(stream, 1)) == [(WRITE, a, rows, EXACT)]
    (everything,) = seen(run(stream, 2, 1))
    assert everything[2] == ((32, 32 + 7 * 64 + 64),)


def test_each_instruction_has_its_own_kind_and_bytes(stream: InterpretedStream) -> None:
    a = stream.buffer(4 + 128)
    ready(stream, stream.compute("count_and_store", [a], b"1" * 8), 3, 7)
    assert seen(run(stream, 1)) == [(WRITE, a, ((16, 80),), EXACT), (READ + "*", a, ((0, 4),), EXACT)]


def test_a_condition_on_memory_narrows_nothing(stream: InterpretedStream) -> None:
    a, switch = stream.buffer(512), stream.buffer(64)
    ready(stream, stream.compute("branch_on_a_word", [a, switch], b"1234"), 7)
    assert seen(run(stream, 1)) == [(READ, switch, ((0, 4),), EXACT), (WRITE, a, ((0, 256),), DECLARED)]


def test_a_pipeline_whose_shaders_were_not_seen_is_not_modelled(stream: InterpretedStream) -> None:
    assert run(stream, 1) == (Unmodelled("a pipeline whose shaders were not seen"),)


# -- arrays of descriptors

UPDATE_AFTER_BIND, PARTIALLY_BOUND = 1, 4


def bindless(stream: InterpretedStream, flags: int, *held: int) -> tuple[Dispatch, int]:
    """(pipeline of `array_any_index`, its set): an array of four buffers, the first ones given, and the choice."""
    dispatch = stream.compute("array_any_index", [], b"1234")
    bindings = [
        struct("VkDescriptorSetLayoutBinding", binding=at, descriptorType=7, descriptorCount=count, stageFlags=0x20)
        for at, count in ((0, 4), (1, 1))
    ]
    extra = struct("VkDescriptorSetLayoutBindingFlagsCreateInfo", bindingCount=2, pBindingFlags=[flags, 0])
    extra["sType"] = VkStructureType.DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO
    pool_flag = 2 if flags & UPDATE_AFTER_BIND else 0
    info = struct("VkDescriptorSetLayoutCreateInfo", flags=pool_flag, pBindings=bindings, pNext=extra)
    layout = stream.make("vkCreateDescriptorSetLayout", "pSetLayout", info)
    pool = stream.make("vkCreateDescriptorPool", "pDescriptorPool", struct("VkDescriptorPoolCreateInfo", maxSets=1))
    made = stream.id()
    allocate = struct("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=[layout])
    stream.call("vkAllocateDescriptorSets", device=stream.device, pAllocateInfo=allocate, pDescriptorSets=[made])
    for element, buffer in enumerate(held):
        write(stream, made, 0, element, buffer)
    write(stream, made, 1, 0, stream.buffer(64))
    stream.begin()
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=dispatch.layout, pDescriptorSets=[made])
    push(stream, dispatch, 7)
    return dispatch, made


def write(stream: InterpretedStream, target: int, binding: int, element: int, buffer: int) -> None:
    info = struct("VkDescriptorBufferInfo", buffer=buffer, range=VK_WHOLE_SIZE)
    place = {"dstSet": target, "dstBinding": binding, "dstArrayElement": element}
    made = struct("VkWriteDescriptorSet", descriptorCount=1, descriptorType=7, pBufferInfo=[info], **place)
    stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[made])


def written(effects: tuple[Effect, ...]) -> list[tuple[int, Certainty]]:
    return [(resource, certainty) for access, resource, _, certainty in seen(effects) if access == WRITE]


def test_an_index_from_memory_may_choose_each_element_that_was_written(stream: InterpretedStream) -> None:
    a, b, gone = stream.buffer(512), stream.buffer(512), stream.buffer(512)
    bindless(stream, PARTIALLY_BOUND, a, b, gone)
    stream.call("vkDestroyBuffer", device=stream.device, buffer=gone)
    assert written(run(stream, 1)) == [(a, DECLARED), (b, DECLARED)]


def test_descriptors_updated_after_bind_count_as_they_are_at_the_submit(stream: InterpretedStream) -> None:
    a, b, c = stream.buffer(512), stream.buffer(512), stream.buffer(512)
    _, target = bindless(stream, UPDATE_AFTER_BIND, a, b)
    assert written(run(stream, 1)) == [], "nothing is final while recording"
    write(stream, target, 0, 1, c)
    stream.submit()
    (submitted,) = [each for each in stream.did() if isinstance(each, Submitted)]
    ((_, commands),) = submitted.batches[0].buffers
    assert written(commands[-1].effects) == [(a, DECLARED), (c, DECLARED)]


# -- device addresses

AT = 0x7F00_0000_1000


def addressed(stream: InterpretedStream, size: int, address: int) -> int:
    buffer = stream.buffer(size)
    stream.call("vkGetBufferDeviceAddress", device=stream.device, pInfo={"buffer": buffer})
    stream.did(result=address)
    return buffer


def pushed_addresses(source: int, target: int, count: int) -> tuple[int, ...]:
    return (source & 0xFFFFFFFF, source >> 32, target & 0xFFFFFFFF, target >> 32, count)


def test_addresses_in_push_constants_lead_to_their_buffers(stream: InterpretedStream) -> None:
    a, b = addressed(stream, 512, AT), addressed(stream, 1024, AT + 4096)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), *pushed_addresses(AT + 16, AT + 4096, 10))
    assert seen(run(stream, 1)) == [(READ, a, ((16, 56),), EXACT), (WRITE, b, ((0, 40),), EXACT)]


def test_what_is_not_known_of_an_index_reaches_from_the_address_on(stream: InterpretedStream) -> None:
    a, b, parameters = addressed(stream, 512, AT), addressed(stream, 1024, AT + 4096), stream.buffer(64)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), *pushed_addresses(AT + 16, AT + 4100, 1 << 31))
    effects = stream.effects("DispatchIndirect", buffer=parameters, offset=0)
    assert seen(effects[1:]) == [(READ, a, ((16, 512),), DECLARED), (WRITE, b, ((4, 1024),), DECLARED)]


def test_an_address_of_no_buffer_is_not_modelled(stream: InterpretedStream) -> None:
    b = addressed(stream, 1024, AT)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), *pushed_addresses(AT - 64, AT, 4))
    effects = run(stream, 1)
    assert Unmodelled("a device address of no known buffer") in effects
    assert [each.resource for each in effects if isinstance(each, Access)] == [b]


def test_an_address_that_was_not_pushed_is_not_modelled(stream: InterpretedStream) -> None:
    ready(stream, stream.compute("address_copy", [], b"1" * 20), 1)
    assert run(stream, 1) == (Unmodelled("PhysicalStorageBuffer"),)


def test_an_unknown_address_may_lead_to_any_buffer_with_an_address(stream: InterpretedStream) -> None:
    """`address_copy` loads through one address and stores through another one. A buffer of which nobody asked for the
    address is none of them."""
    stream.interpreter.objects.contents.bounds = True
    a, b = addressed(stream, 512, AT), addressed(stream, 512, AT + 0x1000)
    stream.buffer(512)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), 1)
    assert [each for each in run(stream, 1) if isinstance(each, Access)] == []
    effects, unmodelled = executed(stream)
    found = {(name, each, certainty) for name, each, _, certainty in seen(effects)}
    assert found == {(name, each, Certainty.BOUND) for name in (READ, WRITE) for each in (a, b)} and not unmodelled


@pytest.mark.parametrize(("bounds", "expected"), [(False, ("unknown", [])), (True, ("hazards", [Certainty.BOUND]))])
def test_the_most_that_unknown_addresses_reach_is_judged_where_it_is_asked_for(
    stream: InterpretedStream, bounds: bool, expected: tuple[str, list[Certainty]]
) -> None:
    a = addressed(stream, 512, AT)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), 1)
    run(stream, 1)
    stream.copy(a, stream.buffer(512), 512)
    stream.submit()
    mirror = Analysis(bounds=bounds).follow(stream.blocks)
    assert (mirror.verdict, [each.certainty for each in mirror.findings]) == expected


def test_a_dispatch_by_unknown_addresses_may_overwrite_what_is_known(stream: InterpretedStream) -> None:
    """The parameters of the second dispatch are none any more: it may run."""
    stream.interpreter.objects.contents.bounds = True
    parameters = addressed(stream, 512, AT)
    update(stream, parameters, 0, 0, 0)
    ready(stream, stream.compute("address_copy", [], b"1" * 20), 1)
    run(stream, 1)
    stream.cmd("DispatchIndirect", buffer=parameters, offset=0)
    effects, _ = executed(stream)
    assert [each for each in effects if isinstance(each, Access) and each.certainty is Certainty.BOUND]


# -- values that a shader loads


def update(stream: InterpretedStream, buffer: int, *values: int) -> None:
    data = words(*values)
    stream.cmd("UpdateBuffer", dstBuffer=buffer, dstOffset=0, dataSize=len(data), pData=data)


def executed(stream: InterpretedStream) -> tuple[tuple[Effect, ...], list[str]]:
    """(effects of the last command of the next submit, what turned out to be not modelled there)."""
    stream.did()
    stream.submit()
    events = stream.did()
    commands = [each for event in events if isinstance(event, Submitted) for each in event.batches[0].buffers[0][1]]
    return commands[-1].effects, [each.what for each in events if isinstance(each, UnmodelledCall)]


def ranged(stream: InterpretedStream, a: int, numbers: int) -> tuple[Effect, ...]:
    ready(stream, stream.compute("uniform_range", [a, numbers], b"1234"), 7)
    return run(stream, 1)


def test_values_that_are_known_at_the_submit_decide_the_bytes(stream: InterpretedStream) -> None:
    a, numbers = stream.buffer(512), stream.buffer(16)
    update(stream, numbers, 10, 40)
    recorded = ranged(stream, a, numbers)
    may = [(READ, numbers, ((0, 4),), DECLARED), (WRITE, a, ((0, 512),), DECLARED)]
    assert seen(recorded)[0] == (READ, numbers, ((4, 8),), EXACT) and sorted(seen(recorded)[1:]) == may
    effects, unmodelled = executed(stream)
    read = (READ, numbers, ((0, 8),), EXACT)
    assert sorted(seen(effects)) == sorted([read, (WRITE, a, ((40, 200),), EXACT)]) and not unmodelled


def test_only_what_no_value_decides_is_judged_while_it_is_recorded(stream: InterpretedStream) -> None:
    a, numbers = stream.buffer(512), stream.buffer(16)
    update(stream, numbers, 10, 40)
    ready(stream, stream.compute("uniform_range", [a, numbers], b"1234"), 7)
    stream.did()
    stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
    (command,) = [event.command for event in stream.did() if isinstance(event, Recorded)]
    assert seen(command.certain.effects) == [(READ, numbers, ((4, 8),), EXACT)]


def test_an_earlier_dispatch_hides_only_what_it_writes(stream: InterpretedStream) -> None:
    a, numbers = stream.buffer(512), stream.buffer(16)
    update(stream, numbers, 0, 64)
    ranged(stream, a, numbers)
    ranged(stream, a, numbers)
    assert (WRITE, a, ((0, 256),), EXACT) in seen(executed(stream)[0])


def test_values_that_are_not_known_leave_the_declared_range(stream: InterpretedStream) -> None:
    a, numbers = stream.buffer(512), stream.buffer(16)
    declared = (WRITE, a, ((0, 512),), DECLARED)
    ready(stream, stream.compute("fill_words", [numbers], b"1234"), 7)
    run(stream, 1)
    recorded = seen(ranged(stream, a, numbers))
    assert declared in recorded
    assert sorted(seen(executed(stream)[0])) == sorted(recorded)


def test_a_dispatch_that_may_write_the_values_itself_has_its_declared_range(stream: InterpretedStream) -> None:
    numbers = stream.buffer(512)
    update(stream, numbers, 1, 4)
    recorded = ranged(stream, numbers, numbers)
    assert (WRITE, numbers, ((0, 512),), DECLARED) in seen(recorded)
    assert (WRITE, numbers, ((0, 512),), DECLARED) in seen(executed(stream)[0])


def test_an_address_in_a_block_leads_to_its_buffer(stream: InterpretedStream) -> None:
    a, where = addressed(stream, 512, AT), stream.buffer(16)
    update(stream, where, AT & 0xFFFFFFFF, AT >> 32)
    ready(stream, stream.compute("uniform_address", [where], b"1234"), 7)
    run(stream, 1)
    effects, unmodelled = executed(stream)
    assert (WRITE, a, ((0, 256),), EXACT) in seen(effects) and not unmodelled


def test_an_unknown_address_in_a_block_is_not_modelled(stream: InterpretedStream) -> None:
    ready(stream, stream.compute("uniform_address", [stream.buffer(16)], b"1234"), 7)
    assert Unmodelled("PhysicalStorageBuffer", open=True) in run(stream, 1)
    assert executed(stream)[1] == ["PhysicalStorageBuffer"]


@pytest.mark.parametrize("bounds", [False, True])
def test_what_an_unknown_address_may_reach_may_be_written(stream: InterpretedStream, bounds: bool) -> None:
    """Also where it counts as accesses that may be: the command is recorded as one that may access anything."""
    memory = stream.memory(512)
    target = stream.buffer(512, memory)
    stream.call("vkGetBufferDeviceAddress", device=stream.device, pInfo={"buffer": target})
    stream.did(result=AT)
    ready(stream, stream.compute("uniform_address", [stream.buffer(16)], b"1234"), 7)
    run(stream, 1)
    dispatch = stream.commands
    stream.submit()
    analysis = Analysis(bounds=bounds).follow(stream.blocks)
    assert bool(analysis.unmodelled) is not bounds
    assert analysis.may_write([dispatch])[memory] == [(0, 512)]

"""Traces on disk: what is written comes back equal; converted captures of both dialects read as the calls they were."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.normal_form import Generator
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.trace.calls import CUT_OFF, Block, Call, HostRead, HostWrite, cut_off, unread_call
from vkharness.trace.codec import TraceWriter, load, read_header, read_trace, save

DATA = Path(__file__).parents[1] / "data" / "gfxrecon"
DEBIAN, UPSTREAM = DATA / "debian-0.9.18.jsonl", DATA / "upstream-1.x.jsonl"
SPIRV = Path(__file__).parents[2] / "shaders" / "array_specialized_index.comp.spv"


def calls(path: Path) -> dict[str, list[Call]]:
    """The calls of a trace by name."""
    found: dict[str, list[Call]] = {}
    for block in load(path):
        if isinstance(block, Call):
            found.setdefault(block.name, []).append(block)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_every_command_of_the_tables_comes_back_equal(tmp_path: Path, seed: int) -> None:
    made = Generator(seed)
    blocks = [made.call(name, index) for index, name in enumerate(tables.COMMANDS, 1)]
    save(tmp_path / "all.jsonl", blocks)
    back = load(tmp_path / "all.jsonl")
    for sent, received in zip(blocks, back, strict=True):
        assert received == sent


def test_every_struct_of_the_tables_comes_back_equal_in_a_chain(tmp_path: Path) -> None:
    made = Generator(7)
    info = {"sType": tables.ENUMS["VkStructureType"]["VK_STRUCTURE_TYPE_FENCE_CREATE_INFO"], "flags": 1}
    blocks: list[Block] = []
    for name in tables.STYPES.values():
        chained = {"device": 1, "pCreateInfo": info | {"pNext": made.struct(name, 1)}, "pAllocator": None, "pFence": 2}
        blocks.append(Call(len(blocks) + 1, "vkCreateFence", chained, 0))
    save(tmp_path / "chains.jsonl", blocks)
    assert load(tmp_path / "chains.jsonl") == blocks


@given(
    seed=st.integers(0, 2**32),
    names=st.lists(st.sampled_from(sorted(tables.COMMANDS)), max_size=4),
    size=st.integers(0, 300),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_traces_come_back_equal(tmp_path: Path, seed: int, names: list[str], size: int) -> None:
    made = Generator(seed)
    blocks: list[Block] = [made.call(name, index) for index, name in enumerate(names, 1)]
    blocks.append(HostWrite(len(names) + 1, 3, 4096, made.random.randbytes(size), "program.py:3"))
    save(tmp_path / "random.jsonl", blocks)
    assert load(tmp_path / "random.jsonl") == blocks


def test_not_a_number_comes_back_as_such(tmp_path: Path) -> None:
    args = {"commandBuffer": 1, "depthBiasConstantFactor": math.nan, "depthBiasClamp": -math.inf}
    save(tmp_path / "nan.jsonl", [Call(1, "vkCmdSetDepthBias", args | {"depthBiasSlopeFactor": 1.0})])
    (back,) = load(tmp_path / "nan.jsonl")
    assert isinstance(back, Call)
    assert math.isnan(back.args["depthBiasConstantFactor"])
    assert back.args["depthBiasClamp"] == -math.inf


def test_device_addresses_that_calls_returned_come_back(tmp_path: Path) -> None:
    """Small ones too, though VkResult has names for such numbers; a capture may lack them, or spell them in hex."""
    info = {"sType": 1000244001, "pNext": None, "buffer": 4}
    blocks = [
        Call(at, "vkGetBufferDeviceAddressKHR", {"device": 3, "pInfo": info}, address)
        for at, address in enumerate((0, 1, 0xFFFF_8000_0001_0000, None), 1)
    ]
    path = tmp_path / "addresses.jsonl"
    save(path, blocks)
    assert load(path) == blocks
    path.write_text(path.read_text().replace(str(0xFFFF_8000_0001_0000), '"0xffff800000010000"'))
    assert load(path) == blocks
    path.write_text(path.read_text().replace('"0xffff800000010000"', '"many"'))
    notes: list[str] = []
    lost = load(path, notes)
    assert lost[:2] + lost[3:] == [*blocks[:2], blocks[3]] and notes == []
    assert lost[2] == unread_call(3, blocks[2].name, "block 3: expected an integer, found a text 'many'")


def test_lines_have_the_shape_of_the_upstream_converter(tmp_path: Path) -> None:
    path = tmp_path / "shape.jsonl"
    barrier: dict[str, Any] = {"sType": 46, "pNext": None, "srcAccessMask": 0x1000, "dstAccessMask": 0x800}
    args: dict[str, Any] = {"commandBuffer": 5, "srcStageMask": 0x1000, "dstStageMask": 0x1800, "dependencyFlags": 0}
    args |= {"memoryBarrierCount": 1, "pMemoryBarriers": [barrier], "bufferMemoryBarrierCount": 0}
    args |= {"pBufferMemoryBarriers": None, "imageMemoryBarrierCount": 0, "pImageMemoryBarriers": None}
    wait = {"device": 1, "fenceCount": 1, "pFences": [9], "waitAll": 1, "timeout": 5}
    save(path, [Call(1, "vkCmdPipelineBarrier", args, None, "a.py:7", 3), Call(2, "vkWaitForFences", wait, 2)])
    header, first, second, end = (json.loads(line) for line in path.read_text().splitlines())
    assert end == {"end": {}}
    assert header["header"]["vkharness"]["version"] == 2
    assert list(first) == ["index", "function", "site"]
    assert list(first["function"]) == ["name", "thread", "args"]
    assert first["function"]["args"]["dstStageMask"] == "0x00001800"
    assert first["function"]["args"]["pMemoryBarriers"] == [
        {
            "sType": "VK_STRUCTURE_TYPE_MEMORY_BARRIER",
            "pNext": None,
            "srcAccessMask": "0x00001000",
            "dstAccessMask": "0x00000800",
        }
    ]
    assert second["function"] == {
        "name": "vkWaitForFences",
        "thread": 0,
        "return": "VK_TIMEOUT",
        "args": wait | {"waitAll": True},
    }


def test_equal_bytes_are_stored_once_in_a_folder_beside_the_trace(tmp_path: Path) -> None:
    same, other = bytes(range(200)), bytes(200)
    save(tmp_path / "run.jsonl", [HostWrite(n, 4, 0, data) for n, data in enumerate((same, other, same), 1)])
    files = sorted((tmp_path / "run.bin").iterdir())
    assert sorted(file.read_bytes() for file in files) == sorted((same, other))
    assert [block.data for block in load(tmp_path / "run.jsonl") if isinstance(block, HostWrite)] == [same, other, same]


def test_a_file_that_was_damaged_is_stored_anew(tmp_path: Path) -> None:
    blocks: list[Block] = [HostWrite(1, 4, 0, bytes(range(200)))]
    save(tmp_path / "run.jsonl", blocks)
    (file,) = (tmp_path / "run.bin").iterdir()
    file.write_bytes(bytes(200))
    save(tmp_path / "run.jsonl", blocks)
    assert load(tmp_path / "run.jsonl") == blocks


def test_a_trace_may_be_called_as_its_folder_would_be(tmp_path: Path) -> None:
    save(tmp_path / "run.bin", [HostWrite(1, 4, 0, bytes(100))])
    assert load(tmp_path / "run.bin") == [HostWrite(1, 4, 0, bytes(100))]


def test_a_trace_and_its_folder_can_be_moved(tmp_path: Path) -> None:
    save(tmp_path / "run.jsonl", [HostWrite(1, 4, 0, bytes(100))])
    (tmp_path / "elsewhere").mkdir()
    for name in ("run.jsonl", "run.bin"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    assert load(tmp_path / "elsewhere" / "run.jsonl") == [HostWrite(1, 4, 0, bytes(100))]


def test_an_exception_leaves_the_earlier_trace_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(path, [HostWrite(1, 4, 0, bytes(100))])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(KeyError), TraceWriter(path) as writer:
        writer.write(HostWrite(1, 4, 0, b"new" * 99))
        writer.write(Call(2, "vkQueueWaitIdle", {}))
    assert sorted(tmp_path.rglob("*")) == before
    assert load(path) == [HostWrite(1, 4, 0, bytes(100))]


def test_the_target_appears_when_the_writer_closes(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = TraceWriter(path, {"program": "p.py"})
    writer.write(Call(1, "vkQueueWaitIdle", {"queue": 4}, 0))
    assert not path.exists()
    (part,) = tmp_path.iterdir()
    left = [Call(1, "vkQueueWaitIdle", {"queue": 4}, 0), cut_off(1)]
    assert load(part) == left  # what a crash would leave
    writer.close()
    writer.close()
    assert read_header(path)["vkharness"] == {"version": 2, "program": "p.py"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_trace_from_a_pipe_is_refused_in_one_line(tmp_path: Path) -> None:
    """Nobody writes into it: to open it would wait."""
    pipe = tmp_path / "trace.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="no plain file: save it to one first"):
        load(pipe)


def test_a_trace_cannot_be_written_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        TraceWriter(tmp_path / "no" / "run.jsonl")


def test_both_dialects_read_as_the_same_calls() -> None:
    debian, upstream = calls(DEBIAN), calls(UPSTREAM)
    compared = 0
    for name in upstream:
        for ours, theirs in zip(debian[name][-len(upstream[name]) :], upstream[name], strict=True):
            assert ours.result == theirs.result
            for key, value in ours.args.items():
                if not missing_in_old_dialect(value):
                    assert value == theirs.args[key], f"{name} {key}"
                    compared += 1
    assert compared > 150


def missing_in_old_dialect(value: object) -> bool:
    """0.9.18 leaves out bytes (None) and addresses differ; the specialization's bytes are in a struct."""
    text = repr(value)
    return value is None or "'pSpecializationInfo': {" in text or (type(value) is int and value > 1 << 40)


def test_a_capture_of_the_debian_package_reads_in_normal_form() -> None:
    found = calls(DEBIAN)
    (barrier,) = found["vkCmdPipelineBarrier2"]
    image = barrier.args["pDependencyInfo"]["pImageMemoryBarriers"][0]
    assert (
        image["srcStageMask"]
        == tables.STAGES["VK_PIPELINE_STAGE_2_COPY_BIT"] | tables.STAGES["VK_PIPELINE_STAGE_2_CLEAR_BIT"]
    )
    assert image["srcAccessMask"] == 0
    assert image["newLayout"] == 7
    (device,) = found["vkCreateDevice"]
    assert device.args["pCreateInfo"]["pNext"]["pNext"]["synchronization2"] == 1
    (clear,) = found["vkCmdClearColorImage"]
    assert clear.args["pColor"] == {"uint32": [0x3E800000, 0x3F000000, 0x3F400000, 0x3F800000]}
    (pipeline,) = found["vkCreateComputePipelines"]
    assert pipeline.args["pipelineCache"] == 0
    failed = found["vkAllocateMemory"][-1]
    assert (failed.result, failed.args["pMemory"]) == (-2, None)
    assert found["vkGetFenceStatus"][0].result == 1
    assert [block.index for block in load(DEBIAN)][:4] == [2, 3, 4, 7]


def test_spirv_that_gfxrecon_extract_left_beside_the_trace_is_found() -> None:
    (module,) = calls(DEBIAN)["vkCreateShaderModule"]
    assert module.args["pCreateInfo"]["pCode"] == SPIRV.read_bytes()


def test_what_the_debian_converter_leaves_out_is_said() -> None:
    notes: list[str] = []
    load(DEBIAN, notes)
    assert notes == [f"{DEBIAN}: 3 values without their bytes (convert with --include-binaries to have them)"]


def test_binaries_and_host_writes_of_the_upstream_converter_are_read() -> None:
    notes: list[str] = []
    blocks = load(UPSTREAM, notes)
    assert notes == []
    assert [block for block in blocks if isinstance(block, HostWrite)] == [HostWrite(44, 5, 0, bytes(range(8)))]
    found = calls(UPSTREAM)
    assert found["vkCreateShaderModule"][0].args["pCreateInfo"]["pCode"] == SPIRV.read_bytes()
    assert found["vkCmdPushConstants"][0].args["pValues"] == (64).to_bytes(4, "little")
    assert found["vkCmdUpdateBuffer"][0].args["pData"] == b"abcdefg\0"


@pytest.mark.parametrize("path", [DEBIAN, UPSTREAM], ids=["debian", "upstream"])
def test_a_converted_capture_can_be_saved_as_ours(tmp_path: Path, path: Path) -> None:
    blocks = load(path)
    save(tmp_path / "ours.jsonl", blocks)
    assert load(tmp_path / "ours.jsonl") == blocks


def test_the_indented_array_that_upstream_writes_by_default_is_read(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in UPSTREAM.read_text().splitlines()]
    text = "[\n" + ",\n".join(json.dumps(line, indent=2) for line in lines) + "\n]\n"
    (tmp_path / "array.json").write_text(text)
    (tmp_path / "upstream-1.x").symlink_to(tmp_path / "files")
    (tmp_path / "files").mkdir()
    for file in (DATA / "upstream-1.x").iterdir():
        (tmp_path / "files" / file.name).write_bytes(file.read_bytes())
    assert load(tmp_path / "array.json") == load(UPSTREAM)


def converted(tmp_path: Path, *blocks: object) -> Path:
    """A converted capture with these blocks."""
    path = tmp_path / "converted.jsonl"
    header = {"header": {"source-path": "x.gfxr", "gfxrecon-version": "1.0.6", "vulkan-version": "1.4.400"}}
    path.write_text("".join(json.dumps(block) + "\n" for block in (header, *blocks)))
    return path


def test_a_function_newer_than_the_tables_is_a_call(tmp_path: Path) -> None:
    args = {"commandBuffer": 3, "stage": "VK_PIPELINE_STAGE_2_COPY_BIT|VK_PIPELINE_STAGE_2_CLEAR_BIT"}
    args |= {"flags": "0x0000000c", "none": "VK_NULL_HANDLE", "on": True, "kind": "VK_FORMAT_R8_UNORM", "new": "VK_NEW"}
    path = converted(tmp_path, {"index": 1, "function": {"name": "vkCmdFromTheFuture", "thread": 2, "args": args}})
    (call,) = load(path)
    assert call == Call(
        1,
        "vkCmdFromTheFuture",
        {"commandBuffer": 3, "stage": 0x900000000, "flags": 12, "none": 0, "on": 1, "kind": 9, "new": "VK_NEW"},
        None,
        None,
        2,
    )


def test_an_enum_name_newer_than_the_tables_is_no_value_and_is_said(tmp_path: Path) -> None:
    args = {"commandBuffer": 3, "pipelineBindPoint": "VK_PIPELINE_BIND_POINT_FUTURE", "pipeline": 4}
    path = converted(tmp_path, {"index": 1, "function": {"name": "vkCmdBindPipeline", "thread": 1, "args": args}})
    notes: list[str] = []
    (call,) = load(path, notes)
    assert isinstance(call, Call)
    assert call.args["pipelineBindPoint"] == 0x7FFFFFFF
    assert len(notes) == 1
    assert "VK_PIPELINE_BIND_POINT_FUTURE" in notes[0]


def test_a_stage_newer_than_the_tables_is_not_dropped_from_a_barrier(tmp_path: Path) -> None:
    args = {"commandBuffer": 3, "event": 4, "stageMask": "VK_PIPELINE_STAGE_2_COPY_BIT|VK_PIPELINE_STAGE_2_FUTURE_BIT"}
    path = converted(tmp_path, {"index": 1, "function": {"name": "vkCmdResetEvent2", "thread": 1, "args": args}})
    (call,) = load(path)
    assert isinstance(call, Call)
    assert (call.name, call.args) == ("vkCmdResetEvent2", {"commandBuffer": 3})
    assert re.match("block 1: stageMask: .*VK_PIPELINE_STAGE_2_FUTURE_BIT is newer", call.unread)
    (name,) = Analysis().follow([call]).unmodelled
    assert name == f"vkCmdResetEvent2 ({call.unread})"


def test_a_value_that_is_not_understood_costs_the_call_and_not_the_file(tmp_path: Path) -> None:
    size = {"commandBuffer": 3, "dstBuffer": 4, "dstOffset": 0, "size": "many", "data": 7}
    fill = {"index": 7, "function": {"name": "vkCmdFillBuffer", "thread": 1, "args": size}}
    query = {"index": 8, "function": {"name": "vkGetBufferMemoryRequirements", "thread": 1, "args": {"device": "one"}}}
    wait = {
        "index": 9,
        "function": {"name": "vkDeviceWaitIdle", "thread": 1, "return": "VK_SUCCESS", "args": {"device": 1}},
    }
    odd = {"index": 10, "meta": {"name": "FillMemoryCommand", "args": {"memory_id": -1}}}
    notes: list[str] = []
    blocks = load(converted(tmp_path, fill, query, wait, odd), notes)
    assert [getattr(block, "name", "") for block in blocks] == ["vkCmdFillBuffer", "vkDeviceWaitIdle"]
    assert list(Analysis().follow(blocks).unmodelled) == [
        "vkCmdFillBuffer (block 7: size: expected an integer, found a text 'many')"
    ]
    assert [note.split(": ", 1)[1] for note in notes] == [
        "1 queries passed over that cannot be read: vkGetBufferMemoryRequirements",
        "1 blocks passed over: that cannot be read (memory_id: expected an integer from 0, found an integer -1)",
    ]


@pytest.mark.parametrize("args", [
    {"device": "one"}, {"device": 1, "queueFamilyIndex": 0, "queueIndex": 0, "pQueue": None},
])  # fmt: skip
def test_a_queue_that_cannot_be_read_makes_the_verdict_unknown(args: dict[str, Any], tmp_path: Path) -> None:
    """Nobody knows then which family it is of."""
    got = {"index": 8, "function": {"name": "vkGetDeviceQueue", "thread": 1, "args": args}}
    notes: list[str] = []
    analysis = Analysis().follow(load(converted(tmp_path, got), notes))
    assert (analysis.verdict, notes) == ("unknown", [])
    assert [each.partition(" ")[0] for each in analysis.unmodelled] == ["vkGetDeviceQueue"]


def test_names_that_promotion_changed_are_known(tmp_path: Path) -> None:
    info = {"sType": "VK_STRUCTURE_TYPE_COPY_IMAGE_TO_MEMORY_INFO", "pNext": None}
    create = {"sType": "VK_STRUCTURE_TYPE_FENCE_CREATE_INFO", "flags": "0x00000000", "pNext": info}
    args = {"device": 1, "pCreateInfo": create, "pAllocator": None, "pFence": 2}
    block = {"index": 1, "function": {"name": "vkCreateFence", "thread": 1, "return": "VK_SUCCESS", "args": args}}
    notes: list[str] = []
    (call,) = load(converted(tmp_path, block), notes)
    assert isinstance(call, Call)
    assert tables.STYPES[call.args["pCreateInfo"]["pNext"]["sType"]] == "VkCopyImageToMemoryInfoEXT"
    assert notes == []


def test_contents_that_a_trimmed_capture_starts_with_are_said_to_be_passed_over(tmp_path: Path) -> None:
    meta = {"name": "InitBufferCommand", "args": {"device_id": 1, "buffer_id": 2, "data_size": 4, "data": "x"}}
    notes: list[str] = []
    assert load(converted(tmp_path, {"index": 1, "meta": meta}, {"frame": {"frame_number": 1}}), notes) == []
    assert len(notes) == 1
    assert "1 blocks passed over: meta InitBufferCommand" in notes[0]


def test_reading_holds_one_block_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    save(path, [Call(n, "vkQueueWaitIdle", {"queue": 4}, 0) for n in range(1, 50)])
    path.write_text(path.read_text().replace('{"end":{}}', "not JSON"))
    blocks = read_trace(path)
    assert [next(blocks).index for _ in range(49)] == list(range(1, 50))
    with pytest.raises(UserError, match=r"long\.jsonl:51: not JSON"):
        next(blocks)


def test_a_push_template_of_the_debian_converter_has_no_set(tmp_path: Path) -> None:
    args = {"commandBuffer": 71, "descriptorUpdateTemplate": 85, "layout": 84, "pData": {"dstBinding": 0}}
    block = {"index": 522, "vkFunc": {"name": "vkCmdPushDescriptorSetWithTemplateKHR", "args": args}}
    (call,) = load(converted(tmp_path, block))
    assert isinstance(call, Call) and not call.unread
    assert list(Analysis().follow([call]).unmodelled) == ["vkCmdPushDescriptorSetWithTemplateKHR"]


def test_an_empty_pipeline_cache_lacks_no_bytes(tmp_path: Path) -> None:
    create = {"sType": "VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO", "pNext": None, "flags": 0}
    create |= {"initialDataSize": 0, "pInitialData": "0x0"}
    args = {"device": 3, "pCreateInfo": create, "pAllocator": None, "pPipelineCache": 88}
    block = {"index": 1, "vkFunc": {"name": "vkCreatePipelineCache", "return": "VK_SUCCESS", "args": args}}
    notes: list[str] = []
    (call,) = load(converted(tmp_path, block), notes)
    assert isinstance(call, Call) and call.args["pCreateInfo"]["pInitialData"] is None
    assert notes == []


def stream(count: int) -> list[Block]:
    return [Call(index, "vkDeviceWaitIdle", {"device": 1}, 0) for index in range(1, count + 1)]


def test_a_trace_without_its_last_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(path, stream(3))
    assert load(path) == stream(3)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-2]) + "\n", encoding="utf-8")
    *whole, rest = load(path)
    assert whole == stream(2)
    assert isinstance(rest, Call)
    assert (rest.name, rest.unread) == (CUT_OFF, "cut off after call 2")
    save(path, [*whole, rest])
    assert load(path)[-1] == rest  # what is made from such a trace knows it, too


def test_a_trace_of_the_first_version_has_no_last_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(path, stream(2))
    first, *lines = path.read_text(encoding="utf-8").splitlines()[:-1]
    path.write_text("\n".join([first.replace('"version":2', '"version":1'), *lines]) + "\n", encoding="utf-8")
    assert load(path) == stream(2)


def test_nothing_stands_behind_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(path, stream(1))
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    with pytest.raises(UserError, match=r"run.jsonl:4: a line behind the last one"):
        load(path)


def test_a_disk_that_recovers_does_not_make_a_cut_trace_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good trace stays, and what was written before the disk was full is beside it, without a last line."""
    path = tmp_path / "run.jsonl"
    save(path, stream(1))
    good = path.read_bytes()
    writer = TraceWriter(path)
    writer.write(Call(1, "vkQueueWaitIdle", {"queue": 2}, 0))
    whole_write = os.write

    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(UserError, match="No space left on device"):
        writer.write(Call(2, "vkQueueWaitIdle", {"queue": 2}, 0))
    monkeypatch.setattr(os, "write", whole_write)
    writer.keep(Call(3, "vkQueueWaitIdle", {"queue": 2}, 0))
    with pytest.raises(
        UserError, match=r"No space left on device; what came before is in run.jsonl.partial-\d+-\w+, cut"
    ):
        writer.close()
    assert path.read_bytes() == good
    (part,) = tmp_path.glob("run.jsonl.partial-*")
    assert [block.index for block in load(part)] == [1, 2]
    assert load(part)[-1].name == CUT_OFF  # type: ignore[union-attr]


def test_what_killed_programs_left_stays_until_a_trace_is_whole(tmp_path: Path) -> None:
    for number in range(3):
        killed = TraceWriter(tmp_path / "run.jsonl")
        killed.write(HostRead(1, 2, number, 4))
        killed._lines.flush()
        killed._close_file()  # as the end of the process does
        assert len(list(tmp_path.iterdir())) == min(2, number + 1)
    save(tmp_path / "run.jsonl", [HostRead(1, 2, 3, 4)])
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = TraceWriter(path)
    writer.write(stream(2)[0])
    child = os.fork()
    if not child:
        writer.write(stream(2)[1])
        writer.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not path.exists()
    writer.write(stream(2)[1])
    writer.close()
    assert load(path) == stream(2)

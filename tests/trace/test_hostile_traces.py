"""Broken and hostile traces: one clear line that says file, line and what; never a traceback, no other file read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.streams import Stream
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.replay.objects.recreation import refuse_without_data
from vkharness.trace import binaries, lines
from vkharness.trace.calls import Call, HostWrite
from vkharness.trace.codec import load, read_header, save

DATA = Path(__file__).parents[1] / "data" / "gfxrecon"
HEADER = {"header": {"vulkan-version": "1.3.275", "vkharness": {"version": 1}}}
FILL = {"commandBuffer": 3, "dstBuffer": 4, "dstOffset": 0, "size": 16, "data": 7}
COPY = {
    "commandBuffer": 3,
    "srcBuffer": 4,
    "dstBuffer": 5,
    "regionCount": 1,
    "pRegions": [{"srcOffset": 0, "dstOffset": 0, "size": 16}],
}


def function(name: str, args: Any, **more: Any) -> dict[str, Any]:
    """The JSON object of a call."""
    return {"index": 1, "function": {"name": name, "thread": 0, **more, "args": args}}


def write(tmp_path: Path, *blocks: Any, header: Any = HEADER) -> Path:
    """A trace of these lines; texts stand as they are."""
    path = tmp_path / "t.jsonl"
    texts = [block if isinstance(block, str) else json.dumps(block) for block in (header, *blocks)]
    path.write_text("".join(text + "\n" for text in texts))
    return path


def complaint(path: Path) -> str:
    """The one line that reading `path` ends with."""
    with pytest.raises(UserError) as caught:
        load(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    assert len(text) < len(str(path)) + 300
    return text


def copied(**changed: Any) -> dict[str, Any]:
    """vkCmdCopyBuffer with some arguments changed."""
    return function("vkCmdCopyBuffer", COPY | changed)


def filled(**changed: Any) -> dict[str, Any]:
    """vkCmdFillBuffer with some arguments changed."""
    return function("vkCmdFillBuffer", FILL | changed)


def host_write(name: Any, size: int = 4, offset: int = 0) -> dict[str, Any]:
    """A host write whose bytes are in the file `name`."""
    args = {"memory_id": 1, "offset": offset, "size": size, "data": name}
    return {"index": 1, "meta": {"name": "FillMemoryCommand", "args": args}}


def made_fence(chain: Any) -> dict[str, Any]:
    """vkCreateFence with this pNext chain."""
    info = {"sType": 8, "pNext": chain, "flags": 0}
    return function(
        "vkCreateFence", {"device": 1, "pCreateInfo": info, "pAllocator": None, "pFence": 1}, **{"return": 0}
    )


def width(text: str) -> str:
    """A line with vkCmdSetLineWidth of the number that is written so."""
    return '{"index":1,"function":{"name":"vkCmdSetLineWidth","args":{"commandBuffer":1,"lineWidth":' + text + "}}}"


def reset(flags: str) -> dict[str, Any]:
    """vkResetCommandBuffer with these flags."""
    return function("vkResetCommandBuffer", {"commandBuffer": 1, "flags": flags}, **{"return": 0})


UNSIZED = {key: value for key, value in FILL.items() if key != "size"}
DEEP_CHAIN = '{"function":' * 900 + "1" + "}" * 900
BROKEN: dict[str, tuple[Any, str]] = {
    "no JSON": ("{'index': 1}", ":2: not JSON"),
    "a list": ([1, 2], ":2: expected a JSON object, found list"),
    "nested deeply": ("[" * 100_000, ":2: nested too deeply"),
    "objects nested deeply": (DEEP_CHAIN, ":2: "),
    "a number of many digits": ('{"index": ' + "9" * 5000 + "}", "too many digits"),
    "NaN": ('{"index": NaN}', "NaN is not a JSON number"),
    "Infinity": ('{"index": -Infinity}', "-Infinity is not a JSON number"),
    "a key twice": ('{"index": 1, "index": 2}', "the key 'index' comes twice"),
    "a second header": (HEADER, "second header"),
    "no name": ({"index": 1, "function": {"args": {}}}, "expected the name of a C function"),
    "a name that is none": (function("vkCmd; rm", {}), "expected the name of a C function"),
    "a function that is a text": ({"index": 1, "function": "x"}, "function: expected an object"),
    "a negative index": (filled() | {"index": -1}, "index: expected an integer from 0"),
    "an index of 64 bits": (filled() | {"index": 1 << 63}, "index: expected an integer from 0"),
    "an index that is a boolean": (filled() | {"index": True}, "index: expected"),
    "an index of two lines": (filled() | {"index": "1\n2"}, "index: expected"),
    "a host write with no file": (host_write(5), "expected the name of the file"),
    "a host write at a negative offset": (host_write("x", offset=-1), "offset: expected"),
}


def chained(links: int) -> dict[str, Any]:
    """vkCreateFence with a chain of so many structs."""
    chain: dict[str, Any] | None = None
    for _ in range(links):
        chain = {"sType": 1000113000, "pNext": chain, "handleTypes": 0}
    return made_fence(chain)


def blitted(**changed: Any) -> dict[str, Any]:
    """vkCmdBlitImage with one region, of which some members are changed."""
    corner = {"x": 0, "y": 0, "z": 0}
    part = {"aspectMask": 1, "mipLevel": 0, "baseArrayLayer": 0, "layerCount": 1}
    region = {"srcSubresource": part, "srcOffsets": [corner] * 2, "dstSubresource": part, "dstOffsets": [corner] * 2}
    args = {"srcImage": 4, "srcImageLayout": 1, "dstImage": 5, "dstImageLayout": 1, "regionCount": 1, "filter": 0}
    return function("vkCmdBlitImage", {"commandBuffer": 3, **args, "pRegions": [region | changed]})


MADE: dict[str, Any] = {
    "device": 1,
    "pCreateInfo": {"sType": 8, "pNext": None, "flags": 0},
    "pAllocator": None,
    "pFence": 1,
}
MISTAKES: dict[str, tuple[Any, str]] = {
    "no arguments": (function("vkCmdFillBuffer", None), "args: expected an object"),
    "an argument missing": (function("vkCmdFillBuffer", UNSIZED), "the argument 'size' is missing"),
    "a site that is no text": (filled() | {"site": 5}, "site: expected"),
    "a negative handle": (filled(dstBuffer=-1), "dstBuffer: expected a handle"),
    "a handle that is a boolean": (filled(dstBuffer=True), "dstBuffer: expected a handle"),
    "a size beyond its type": (filled(size=1 << 64), "size: 18446744073709551616 is out of the range"),
    "a fraction": (filled(data=1.5), "data: expected an integer, found a number 1.5"),
    "a text for a number": (filled(data="x"), "data: expected an integer, found a text"),
    "a text for a struct": (copied(pRegions=["x"]), "pRegions[0]: expected an object"),
    "a struct for a list": (copied(pRegions={}), "pRegions: expected a list, found an object"),
    "a count that lies": (copied(regionCount=9), "pRegions: 1 elements where regionCount says 9"),
    "a member missing": (copied(pRegions=[{"srcOffset": 0}]), "pRegions[0].dstOffset: missing"),
    "no result": (function("vkQueueWaitIdle", {"queue": 1}), "no 'return'"),
    "a result that is a list": (function("vkQueueWaitIdle", {"queue": 1}, **{"return": []}), "expected an enum value"),
    "flags that are no names": (reset("a b;"), "no name of a Vulkan value"),
    "a byte of 300": (function("vkCmdUpdateBuffer", FILL | {"dataSize": 1, "pData": [300]}), "a list of bytes"),
    "a float beyond its type": (width("1e300"), "out of the range"),
    "a number beyond a double": (width("1e999"), "out of the range"),
    "a chain that is a list": (made_fence([]), "pCreateInfo.pNext: expected a pNext chain"),
    "a chain without a type": (made_fence({"flags": 1}), "pCreateInfo.pNext: expected an enum value"),
    "a null struct": (function("vkCreateFence", MADE | {"pCreateInfo": None}, **{"return": 0}), "pCreateInfo: a null"),
    "a null array": (copied(pRegions=None), "pRegions: a null pointer"),
    "nothing made": (function("vkCreateFence", MADE | {"pFence": None}, **{"return": 0}), "pFence: the call does"),
    "a short array": (blitted(srcOffsets=[]), "pRegions[0].srcOffsets: 0 elements in an array of 2"),
    "an endless chain": (chained(90), "pCreateInfo.pNext: a pNext chain of more than 64 structs"),
}
"""A call to what is wrong with it."""


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_block_is_one_line_that_says_what_and_where(tmp_path: Path, case: str) -> None:
    block, said = BROKEN[case]
    path = write(tmp_path, block)
    text = complaint(path)
    assert f"{path}:2: " in text
    assert said in text


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_call_costs_that_call_and_no_other(tmp_path: Path, case: str) -> None:
    block, said = MISTAKES[case]
    path = write(tmp_path, filled(), block, filled())
    first, bad, last = load(path)
    assert isinstance(bad, Call)
    assert said in bad.unread
    assert bad.unread.startswith("block 1: ")
    assert "\n" not in bad.unread
    assert len(bad.unread) < 200
    assert first == last
    assert isinstance(first, Call)
    assert not first.unread


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_call_is_named_with_its_number_and_all_others_are_judged(tmp_path: Path, case: str) -> None:
    stream = Stream()
    one, other = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(one, 7)
    stream.copy(one, other, 16)
    stream.submit()
    path = tmp_path / "t.jsonl"
    save(path, stream.blocks)
    lines = path.read_text().splitlines()
    block, _ = MISTAKES[case]
    bad = block if isinstance(block, str) else json.dumps(block)
    for at in (4, len(lines) - 1):  # before the recording, and behind the submit
        path.write_text("\n".join([*lines[:at], bad, *lines[at:]]) + "\n")
        analysis = Analysis().follow(load(path))
        assert [found.hazard for found in analysis.findings] == ["READ_AFTER_WRITE"]
        (named,) = analysis.unmodelled
        assert named.startswith(f"{json.loads(bad)['function']['name']} (block 1: "), named


def test_a_mistake_in_a_call_is_named_as_not_modelled(tmp_path: Path) -> None:
    analysis = Analysis().follow(load(write(tmp_path, copied(pRegions=None))))
    assert analysis.verdict == "unknown"
    assert list(analysis.unmodelled) == ["vkCmdCopyBuffer (block 1: pRegions: a null pointer)"]


BAD_HEADERS: dict[str, tuple[Any, str]] = {
    "no header": (function("vkQueueWaitIdle", {"queue": 1}), "not a trace: the first line has no header"),
    "a header that is a text": ({"header": "x"}, "not a trace"),
    "a later version": ({"header": {"vkharness": {"version": 3}}}, "trace version 3 of a newer vkharness; this one"),
    "a version that is a text": ({"header": {"vkharness": {"version": "1"}}}, "version is not a number"),
    "a version that is a list": ({"header": {"vkharness": []}}, "version is not a number"),
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_a_wrong_header_is_refused_before_anything_is_read(tmp_path: Path, case: str) -> None:
    header, said = BAD_HEADERS[case]
    path = write(tmp_path, "not looked at", header=header)
    assert said in complaint(path)
    with pytest.raises(UserError):
        read_header(path)


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in complaint(tmp_path / "none.jsonl")
    assert "cannot be read: Is a directory" in complaint(tmp_path)


def test_an_empty_file_and_a_capture_that_ends_in_its_header(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b"")
    assert "empty, not a trace" in complaint(tmp_path / "t.jsonl")
    (tmp_path / "x.gfxr").write_bytes(b"GFXR\x01\0\0\0")
    assert "a capture that ends in its header" in complaint(tmp_path / "x.gfxr")


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"index": "\xff"}\n')
    assert ":2: not UTF-8 text" in complaint(path)


@pytest.mark.parametrize("name", ["debian-0.9.18.jsonl", "upstream-1.x.jsonl"])
def test_what_comes_before_a_cut_counts(tmp_path: Path, name: str) -> None:
    whole = load(DATA / name)
    text = (DATA / name).read_bytes()
    for folder in DATA.iterdir():
        if folder.is_dir():
            (tmp_path / folder.name).mkdir()
            for file in folder.iterdir():
                (tmp_path / folder.name / file.name).write_bytes(file.read_bytes())
    for cut in range(len(text) - 700, len(text), 37):
        (tmp_path / name).write_bytes(text[:cut])
        notes: list[str] = []
        found = load(tmp_path / name, notes)
        assert found == whole[: len(found)]
        assert len(found) >= len(whole) - 8
        between_blocks = b"\n" in text[cut - 1 : cut + 1]
        assert between_blocks or "ends in the middle of a block" in notes[0]


def test_a_cut_in_the_first_block_leaves_nothing_to_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text() + '{"index": 1, "func')
    assert ":2: the trace ends in the middle of its first block" in complaint(path)
    path.write_text('{"header": {"vulk')
    assert ":1: not JSON" in complaint(path)


def test_a_line_longer_than_any_block_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BLOCK", 1 << 20)
    path = write(tmp_path, '{"x": "' + "a" * (2 << 20) + '"}')
    assert ":2: a block of more than 1 MiB" in complaint(path)
    array = tmp_path / "t.json"
    array.write_text("[\n" + json.dumps(HEADER, indent=2) + ",\n{\n" + '  "a": 1,\n' * 150_000)
    assert "a block of more than 1 MiB" in complaint(array)


def outside(tmp_path: Path) -> Path:
    """A folder for the trace, with a file beside the folder that no trace in it may read."""
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"1234")
    return folder


def link(path: Path, target: Path | str) -> str:
    """Makes a symbolic link; returns its name."""
    path.symlink_to(target)
    return path.name


def folder_named(path: Path) -> str:
    """Makes a folder; returns its name."""
    path.mkdir()
    return path.name


def pipe(path: Path) -> str:
    """Makes a named pipe, which would block who opens it; returns its name."""
    os.mkfifo(path)
    return path.name


ESCAPES: dict[str, Callable[[Path], str]] = {
    "a parent": lambda folder: "../secret",
    "a parent further in": lambda folder: "x/../../secret",
    "an absolute path": lambda folder: str(folder.parent / "secret"),
    "a link to a file": lambda folder: link(folder / "link", folder.parent / "secret"),
    "a link to a folder": lambda folder: link(folder / "up", folder.parent) + "/secret",
    "a device": lambda folder: "/dev/zero",
    "a name with a NUL": lambda folder: "a\0b",
    "an empty name": lambda folder: "",
    "a folder": lambda folder: folder_named(folder / "d"),
    "a pipe": lambda folder: pipe(folder / "pipe"),
    "a link to itself": lambda folder: link(folder / "loop", "loop"),
    "a name that is too long": lambda folder: "n" * 5000,
    "nothing there": lambda folder: "none.bin",
}


@pytest.mark.parametrize("case", ESCAPES)
def test_bytes_are_read_from_regular_files_in_the_folder_of_the_trace_only(tmp_path: Path, case: str) -> None:
    folder = outside(tmp_path)
    path = write(folder, host_write(ESCAPES[case](folder)))
    text = complaint(path)
    assert f"{path}:2: " in text
    assert any(word in text for word in ("leaves the trace's folder", "link out of", "missing", "not a regular file"))


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "five").write_bytes(b"12345")
    assert "'five' has 5 bytes where the trace says 4" in complaint(write(tmp_path, host_write("five")))
    info = {"sType": 16, "pNext": None, "flags": 0, "codeSize": 8, "pCode": "five"}
    args = {"device": 1, "pCreateInfo": info, "pAllocator": None, "pShaderModule": 2}
    path = write(tmp_path, function("vkCreateShaderModule", args, **{"return": 0}))
    (module,) = load(path)
    assert isinstance(module, Call)
    assert "pCreateInfo.pCode: 5 bytes where codeSize says 8" in module.unread


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "MAX_BINARY", 1 << 10)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # sparse: takes no room on the disk
    assert "more than the" in complaint(write(tmp_path, host_write("huge", 1 << 40)))


def module(path: str, size: int) -> dict[str, Any]:
    """vkCreateShaderModule with the bytes of a file."""
    info = {"sType": 16, "pNext": None, "flags": 0, "codeSize": size, "pCode": path}
    args = {"device": 1, "pCreateInfo": info, "pAllocator": None, "pShaderModule": 2}
    return function("vkCreateShaderModule", args, **{"return": 0})


def test_files_that_take_no_room_on_the_disk_take_none_in_memory(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(32 << 20)
    assert "a sparse file" in complaint(write(tmp_path, module("sparse", 32 << 20)))
    assert "a sparse file" in complaint(write(tmp_path, host_write("sparse", 32 << 20)))
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 30)
    assert "more than the 64 MiB that are read" in complaint(write(tmp_path, module("huge", 1 << 30)))


def test_a_file_that_many_calls_name_is_in_memory_once(tmp_path: Path) -> None:
    (tmp_path / "code").write_bytes(bytes(range(256)) * 16)
    modules = load(write(tmp_path, *[module("code", 4096)] * 3))
    codes = [block.args["pCreateInfo"]["pCode"] for block in modules if isinstance(block, Call)]
    assert len(codes) == 3
    assert all(code is codes[0] for code in codes)


def test_a_file_of_ours_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    save(path, [HostWrite(1, 4, 0, bytes(100))])
    (file,) = (tmp_path / "run.bin").iterdir()
    file.write_bytes(bytes(99) + b"x")
    assert "does not hold the bytes that it was named after" in complaint(path)


CAPTURES = ("debian-0.9.18.jsonl", "upstream-1.x.jsonl")
MUTANTS = [line for name in CAPTURES for line in (DATA / name).read_text().splitlines(keepends=True)]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("VK_NULL_HANDLE"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def replace_one(value: Any, place: int, new: Any) -> tuple[Any, int]:
    """`value` with its place-th inner value (counted depth first) replaced; also how many places are left to count."""
    if place == 0:
        return new, -1
    place -= 1
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        changed, place = replace_one(inner, place, new)
        if place < 0:
            value[key] = changed
            return value, -1
    return value, place


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_changed_to_any_other_loads_or_gets_one_line(tmp_path: Path, data: st.DataObject) -> None:
    text = MUTANTS[data.draw(st.integers(0, len(MUTANTS) - 1))]
    block, _ = replace_one(json.loads(text), data.draw(st.integers(0, 60)), data.draw(JSON_VALUES))
    path = write(tmp_path, json.dumps(block), header={"header": {}})
    try:
        blocks = load(path)
    except UserError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))
    else:
        assert all(isinstance(found, Call | HostWrite) for found in blocks)
        save(tmp_path / "again.jsonl", blocks)


@given(text=st.binary(max_size=200), cut=st.integers(0, 3000))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_the_middle_load_or_get_one_line(tmp_path: Path, text: bytes, cut: int) -> None:
    good = (DATA / "upstream-1.x.jsonl").read_bytes()
    path = tmp_path / "t.jsonl"
    path.write_bytes(good[:cut] + text + good[cut:3000])
    try:
        load(path)
    except UserError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(str(path))


def test_a_capture_without_the_bytes_of_a_command_is_refused_in_one_line() -> None:
    call = Call(
        38, "vkCmdUpdateBuffer", {"commandBuffer": 1, "dstBuffer": 2, "dstOffset": 0, "dataSize": 8, "pData": None}
    )
    with pytest.raises(UserError, match="block 38: vkCmdUpdateBuffer cannot be replayed: its data is not in the trace"):
        refuse_without_data(call)
    refuse_without_data(Call(39, "vkCmdPushConstants", {"size": 4, "pValues": b"1234"}))
    with pytest.raises(UserError, match="vkCmdPushConstants"):
        refuse_without_data(Call(39, "vkCmdPushConstants", {"size": 4, "pValues": None}))


@pytest.mark.parametrize(
    ("told", "instead", "verdict"),
    [
        ("", "", "hazards"),
        ('"memoryTypes":[', '"memoryTypes":["?",', "unknown"),
        ('"pMemoryProperties":{', '"pMemoryProperties":null,"was":{', "unknown"),
    ],
)
def test_a_lost_answer_that_hides_a_race_is_not_clean(told: str, instead: str, verdict: str, tmp_path: Path) -> None:
    """What the host wrote to memory that is not coherent is available after a flush alone."""
    made = Stream()
    types = [{"propertyFlags": 2, "heapIndex": 0}]
    properties = {"memoryTypeCount": 1, "memoryTypes": types, "memoryHeapCount": 1}
    properties["memoryHeaps"] = [{"size": 1 << 30, "flags": 0}]
    made.call("vkGetPhysicalDeviceMemoryProperties", physicalDevice=0, pMemoryProperties=properties)
    memory = made.memory(64)
    source, target = made.buffer(16, memory=memory), made.buffer(16)
    made.call("vkMapMemory", device=made.device, memory=memory, offset=0, size=64, ppData=4096)
    made.begin()
    made.copy(source, target, 16)
    made.end()
    made.host_write(memory, 0, b"unflushed")
    made.submit(made.commands)
    path = tmp_path / "lost.jsonl"
    save(path, made.blocks)
    path.write_text(path.read_text().replace(told, instead, 1))
    assert Analysis().follow(load(path)).verdict == verdict

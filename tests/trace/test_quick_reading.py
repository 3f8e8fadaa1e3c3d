"""The quick reading of a trace gives the same as the slow one: `json` and the codecs are the oracles of msgspec and the
functions that are made from the tables."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.rounds import Rounds
from tests.support.streams import Stream
from vkharness.findings import UserError
from vkharness.fuzz.filled_calls import default
from vkharness.replay.objects.encode import parameters
from vkharness.spec import _generated as tables
from vkharness.trace import dialects, lines, plain_calls, repeated_lines
from vkharness.trace.binaries import FolderReader, FolderWriter
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save
from vkharness.trace.dialects import write_block
from vkharness.trace.lines import Corrupt
from vkharness.trace.plain_calls import read_plain
from vkharness.trace.scalars import Reading

DATA = Path(__file__).parents[1] / "data"


def answer(read: Any, raw: bytes) -> str:
    """Returns the answer of a reader of JSON to a line: the value with its types, or its error."""
    try:
        return repr(read(raw))
    except Corrupt as error:
        return f"wrong: {error}"


def both_alike(raw: bytes) -> None:
    """Both readers of JSON say the same."""
    assert answer(lines.parse, raw) == answer(lines._parse_any, raw)


HOSTILE = [
    b'{"a":1,"a":1}', b'{"a":1,"\\u0061":1}', b'{"a":{"b":1,"b":2}}', b'{"a":NaN}', b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":nan}', b'{"a":18446744073709551615}', b'{"a":18446744073709551616}', b'{"a":-9223372036854775809}',
    b'{"a":' + b"9" * 400 + b"}", b'{"a":' + b"9" * 5000 + b"}", b'{"a":1e400}', b'{"a":-0}', b'{"a":-0.0}',
    b'{"a":01}',
    b'{"a":1.}', b'{"a":.5}', b'{"a":1e5}', b'{"a":1E5}', b'{"a":1e+16}', b'{"a":1e16}', b'{"a":1.0}',
    b'{"a":100000.0}',
    b'{"a":0.1}', b'{"a":2.2250738585072014e-308}', b'{"a":5e-324}', b'{"a":1.7976931348623157e308}', b'{"a":1e-400}',
    b'{"a":123456789012345680000.0}', b'{"a":9007199254740993.0}', b'{"a":0.30000000000000004}', b'{"a":"\\ud800"}',
    b'{"a":"\\udc00\\ud800"}', b'{"a":"\\ud83d\\ude00"}', '{"a":"\U0001f600"}'.encode(), b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xff"}', b'{"a":"\xc0\x80"}', b'{"\xff":1}', b'{"a":"\x00"}', b'{"a":"\x1f"}', b'{"a":"\x7f"}',
    b'{"a":"\\u0000"}', b'{"a":"\\u001f"}', b'{"a":"\\x"}', b'{"a":"\\/"}', b'{"a":"/"}', b'{"a":"\\b\\f\\n\\r\\t"}',
    b'{"a":1}x', b'{"a":1} ', b' {"a":1}', b'{"a":1}\r', b'{"a":1}{"b":1}', b'{"a":1,}', b"{'a':1}", b"{a:1}",
    b"{}", b"[]",
    b"null", b"1", b'"a"', b"", b" ", b"\xef\xbb\xbf{}", b'{"a":tru}', b'{"a":true}', b'{"a":[1,]}', b'{"a":[}',
    b'{"a"',
    b'{"a":"b', b'{"":0}', b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"[" * 99 + b"]" * 99 + b"}",
    b'{"a":' + b"[" * 150 + b"]" * 150 + b"}", b'{"a":' + b"[" * 850 + b"]" * 850 + b"}",
    b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"a":' + b'{"b":' * 900 + b"1" + b"}" * 901,
    b'{"a":"' + b"[" * 200 + b'"}', b'{"a":[' + b"{}," * 200 + b"{}]}", b'{"\\ud800":1,"\\ud800":2}',
    b'{"a":1,"b":"\\u003a"}', b'{"a":/**/1}', b"{\"a\":0x10}", b'{"a":+1}', b'{"a":1_0}',
    b'{"a":"' + b"a" * 100 + b'"}',
]  # fmt: skip


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\n\n"], ids=["none", "line", "crlf", "lines"])
@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_hostile_json_is_read_alike(at: int, ending: bytes) -> None:
    both_alike(HOSTILE[at] + ending)


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.integers(-(1 << 70), 1 << 70) | st.floats() | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)
PIECES = st.sampled_from(
    [b'"a":1,', b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\ud800", b"\\u0061", b" ", b"NaN", b"-",
     b"1e", b"0",
     b"9" * 30, b"\xff", b"\xc3", b"\x00", b"\n", b".", b"true", b'"a":']
)  # fmt: skip


@settings(max_examples=600)
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.booleans(), st.data())
def test_text_that_is_nearly_json_is_read_alike(value: dict[str, Any], escaped: bool, data: st.DataObject) -> None:
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=escaped).encode("utf-8", "surrogatepass") + b"\n"
    both_alike(raw)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(raw)))
        cut = data.draw(st.integers(0, 2))
        raw = raw[:at] + data.draw(PIECES) + raw[at + cut :]
        both_alike(raw)


# -- calls -------------------------------------------------------------------------------------------------------------


def reading(folder: Path, ours: bool = True) -> Reading:
    """The state of a reader whose trace is in a folder."""
    return Reading(FolderReader(folder / "t.jsonl"), ours)


def by_codecs(value: dict[str, Any], folder: Path, ours: bool) -> str:
    """Returns the block that the codecs make, and whether they have a remark about it; or their error."""
    state = reading(folder, ours)
    try:
        block = dialects._read_block(value, state, Counter())
    except Corrupt as error:
        return f"wrong: {error}"
    return f"{block!r} {sorted(state.newer_names)} {state.without_bytes}"


def alike(value: dict[str, Any], folder: Path) -> bool:
    """Whether the block is plain; then the codecs make the same of it."""
    plain = read_plain(value, reading(folder))
    for ours in (True, False) if plain is not None else ():
        assert f"{plain!r} [] 0" == by_codecs(value, folder, ours)
    return plain is not None


def test_every_command_that_returns_nothing_is_plain(tmp_path: Path) -> None:
    read, left = set[str](), set[str]()
    for name in tables.COMMANDS:
        args = {each.name: default(each) for each in parameters(name)}
        value = json.loads(json.dumps(write_block(Call(1, name, args, 0), FolderWriter(tmp_path / "t.jsonl"))))
        if alike(value, tmp_path):
            read.add(name)
        elif not by_codecs(value, tmp_path, True).startswith("wrong"):
            left.add(name)
    assert {"vkCmdCopyBuffer", "vkCmdPipelineBarrier", "vkQueueSubmit2", "vkCmdDraw", "vkDestroyBuffer"} <= read
    assert [name for name in left if name.startswith("vkCmd") and "Template" not in name] == []


def test_a_program_is_nearly_all_plain(tmp_path: Path) -> None:
    rounds = Rounds(1, ("fence", "idle", "timeline"))
    blocks = [block for _ in range(3) for block in rounds.round()]
    save(tmp_path / "t.jsonl", blocks)
    values = [json.loads(line) for line in (tmp_path / "t.jsonl").read_bytes().splitlines()[1:-1]]
    recorded = [each for each in values if each["function"]["name"].startswith("vkCmd")]
    assert all(alike(each, tmp_path) for each in recorded)
    assert sum(alike(each, tmp_path) for each in values) > len(values) * 2 // 3
    assert [repr(each) for each in load(tmp_path / "t.jsonl")] == [repr(each) for each in blocks]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    if not isinstance(value, (dict, list)):
        return []
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    return [found for key, inner in pairs for found in [(value, key), *places(inner)]]


ODD = st.sampled_from(
    [None, True, False, 0, 1, -1, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1.0, 1.5, -0.5, 1e300, "", "0x0", "0x00000004",
     "0x", "NaN", "Infinity", "VK_NULL_HANDLE", "VK_SUCCESS", "VK_SHADER_STAGE_COMPUTE_BIT", "A|B", "VK_ACCESS_NONE",
     "VK_STRUCTURE_TYPE_MEMORY_BARRIER_2", "[Binary data]", "VK_RESOLVE_MODE_NONE", [], [0], [256], [1, 2, 3, 4], {},
     {"uint32": [0, 0, 0, 0]}, {"sType": "VK_STRUCTURE_TYPE_MEMORY_BARRIER_2", "pNext": None}, "a.bin", "x\ny"]
)  # fmt: skip


@settings(max_examples=1500)
@given(st.data())
def test_a_changed_call_is_plain_or_left_to_the_codecs(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp()
    value = json.loads(data.draw(st.sampled_from(_lines(folder))))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(value) or [({}, "index")]))
        if isinstance(holder, dict) and data.draw(st.integers(0, 5)) == 0:
            holder.pop(key, None)
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = deepcopy(data.draw(ODD))
    alike(value, folder)


KEPT: list[bytes] = []


def _lines(folder: Path) -> list[bytes]:
    """Lines of calls: those of a program, and every command with values that are zero."""
    if not KEPT:
        blocks: list[Any] = Rounds(2, ("fence", "timeline")).round()
        for name in tables.COMMANDS:
            blocks.append(Call(1, name, {each.name: default(each) for each in parameters(name)}, 0))
        binaries = FolderWriter(folder / "t.jsonl")
        KEPT.extend(json.dumps(write_block(block, binaries)).encode() for block in blocks)
    return KEPT


def test_converted_captures_are_read_alike(tmp_path: Path) -> None:
    """Also those of the older converter, whose calls are left to the codecs."""
    plain = Counter[bool]()
    for path in sorted(DATA.glob("**/*.jsonl")):
        for raw in path.read_bytes().splitlines():
            try:
                value = lines.parse(raw + b"\n")
            except Corrupt:
                continue
            plain[alike(value, path.parent)] += 1
    assert plain[True]


def test_a_long_chain_of_structs_is_left_to_the_codecs(tmp_path: Path) -> None:
    link: Any = None
    for _ in range(plain_calls.MOST_LINKS + 1):
        link = {"sType": "VK_STRUCTURE_TYPE_MEMORY_BARRIER_2", "pNext": link, "srcStageMask": "0x0000000000000000",
                "srcAccessMask": "0x0000000000000000", "dstStageMask": "0x0000000000000000",
                "dstAccessMask": "0x0000000000000000"}  # fmt: skip
    stream = Stream()
    stream.begin()
    stream.cmd("PipelineBarrier2", pDependencyInfo={**stream_info(), "pNext": None})
    value = json.loads(json.dumps(write_block(stream.blocks[-1], FolderWriter(tmp_path / "t.jsonl"))))
    assert alike(value, tmp_path)
    value["function"]["args"]["pDependencyInfo"]["pNext"] = link["pNext"]
    assert alike(value, tmp_path)
    value["function"]["args"]["pDependencyInfo"]["pNext"] = link
    assert not alike(value, tmp_path)


def stream_info() -> dict[str, Any]:
    """An empty VkDependencyInfo."""
    return {each.name: default(each) for each in parameters("vkCmdPipelineBarrier2")}["pDependencyInfo"] or {
        "sType": tables.ENUMS["VkStructureType"]["VK_STRUCTURE_TYPE_DEPENDENCY_INFO"], "pNext": None,
        "dependencyFlags": 0, "memoryBarrierCount": 0, "pMemoryBarriers": None, "bufferMemoryBarrierCount": 0,
        "pBufferMemoryBarriers": None, "imageMemoryBarrierCount": 0, "pImageMemoryBarriers": None,
    }  # fmt: skip


# -- repeated lines ----------------------------------------------------------------------------------------------------

FILL = b'"function":{"name":"vkCmdFillBuffer","thread":0,"args":{"commandBuffer":3,"dstBuffer":4,"dstOffset":0,"size":16,"data":7}},"site":"a.py:1"}'  # noqa: E501
HEADER = b'{"header":{"vulkan-version":"1.3.275","vkharness":{"version":1}}}\n'


def written(folder: Path, *indices: bytes) -> Path:
    """A trace of one command again and again, under these indices."""
    path = folder / "t.jsonl"
    path.write_bytes(HEADER + b"".join(b'{"index":' + index + b"," + FILL + b"\n" for index in indices))
    return path


def test_a_repeated_line_is_the_same_call_with_its_own_index(tmp_path: Path) -> None:
    first, second, third = load(written(tmp_path, b"1", b"2", b"999999999999999999"))
    assert isinstance(first, Call) and isinstance(third, Call)
    assert (first.index, second.index, third.index) == (1, 2, 999999999999999999)
    assert third.args is first.args and (third.name, third.site) == (first.name, first.site)


@pytest.mark.parametrize(
    "index",
    [
        b"01",
        b"+1",
        b"1_0",
        b" 1",
        b"1 ",
        b"-1",
        b"1.0",
        b'"1"',
        b"",
        b"9223372036854775807",
        b"9223372036854775808",
        b"18446744073709551616",
        b"\xb2",
    ],
)
def test_an_index_is_read_the_same_in_a_repeated_line(tmp_path: Path, index: bytes) -> None:
    def said(path: Path) -> str:
        try:
            return repr(load(path)[-1])
        except UserError as error:
            return str(error).replace(f"{path}:3", f"{path}:2")

    assert said(written(tmp_path, b"1", index)) == said(written(tmp_path, index))


def test_the_lines_that_are_kept_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "MOST_BYTES", 10 * len(FILL))
    known = repeated_lines.RepeatedLines()
    for size in range(100):
        value = known.read(b'{"index":1,' + FILL.replace(b"16", b"%d" % (4 * size)) + b"\n")
        assert isinstance(value, dict)
        call = read_plain(value, reading(tmp_path))
        assert call is not None
        known.keep(call)
    assert sum(map(len, known._calls)) <= 10 * len(FILL)
    assert isinstance(known.read(b'{"index":7,' + FILL.replace(b"16", b"396") + b"\n"), Call)

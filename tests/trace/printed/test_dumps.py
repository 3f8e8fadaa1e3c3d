"""Dumps of api_dump as reports attach them: whole, cut, mixed with other output and threads, with its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.api_dump_printer import json_dump, printed_text, text_dump
from tests.support.streams import Stream, struct
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.fuzz.hostile.samples import DUMP, STREAM_KINDS, read_samples
from vkharness.trace.calls import UNSEEN_WRITES, Block, Call
from vkharness.trace.codec import load, save

DATA = Path(__file__).parents[2] / "data" / "api_dump"
DUMPS = sorted(each.name for each in DATA.iterdir() if each.suffix != ".md")
TEXT = (DATA / "fill_copy-1.4.350.txt").read_text()
JSON = (DATA / "fill_copy-1.4.350.json").read_text()


def read(folder: Path, text: str) -> tuple[list[Block], list[str]]:
    path, notes = folder / "dump.txt", list[str]()
    path.write_bytes(text.encode())
    blocks = load(path, notes)
    return blocks, [each.removeprefix(str(path)) for each in notes]


def shapes(blocks: list[Block]) -> list[tuple[object, ...]]:
    return [(each.name, each.args, each.result, each.thread) for each in blocks if isinstance(each, Call)]


def unread(blocks: list[Block]) -> list[tuple[str, str]]:
    return [(each.name, each.unread) for each in blocks if isinstance(each, Call) and each.unread]


@pytest.mark.parametrize("name", DUMPS)
def test_the_race_of_the_program_is_found_in_each_form_of_each_version(name: str) -> None:
    notes: list[str] = []
    blocks = load(DATA / name, notes)
    assert [(each.hazard, each.place.command, each.prior.command) for each in Analysis().follow(blocks).findings] == [
        ("READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")
    ]
    assert unread(blocks) == [] and notes == []


def test_a_call_has_the_number_of_its_line(tmp_path: Path) -> None:
    blocks, _ = read(tmp_path, TEXT)
    lines = TEXT.split("\n")
    assert all(lines[each.index - 1].startswith(f"{each.name}(") for each in blocks if isinstance(each, Call))


@pytest.mark.parametrize(
    "changed",
    [
        TEXT.replace("\n", "\r\n"),
        "some output\nof the program: 5\n" + TEXT + "\nand the rest\n",
        TEXT.replace("    ", "\t"),
        TEXT.replace("Thread 0, Frame 0:\n", ""),
        TEXT.replace("Frame 0:\n", "Frame 0, Time 77 us:\n"),
        "".join(f"11-29 17:00:00.123  1234 {n} I api_dump: {line}\n" for n, line in enumerate(TEXT.split("\n"))),
        "".join(f"I/api_dump( 1234): {line}\n" for line in TEXT.split("\n")),
        "".join(f"  {line}\n" for line in TEXT.split("\n")),
        TEXT.replace("Thread 0, Frame 0:\nvkCmdCopy", "INFO: copies\n  now = 5\nThread 0, Frame 0:\nvkCmdCopy"),
    ],
    ids=["crlf", "mixed", "tabs", "headless", "timed", "logcat", "old logcat", "indented", "between"],
)  # fmt: skip
def test_a_text_says_the_same_however_it_came(tmp_path: Path, changed: str) -> None:
    whole, _ = read(tmp_path, TEXT)
    blocks, _ = read(tmp_path, changed)
    assert shapes(blocks) == shapes(whole)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
@pytest.mark.parametrize("text", [TEXT, JSON], ids=["text", "json"])
def test_a_byte_order_mark_says_how_it_is_encoded(tmp_path: Path, text: str, encoding: str) -> None:
    """As PowerShell writes what a program prints."""
    marked = "\ufeff" + text.replace("\n", "\r\n")
    (tmp_path / "marked").write_bytes(marked.encode(encoding))
    assert shapes(load(tmp_path / "marked")) == shapes(read(tmp_path, text)[0])


def test_without_types_and_addresses_of_structs_it_says_the_same(tmp_path: Path) -> None:
    whole, _ = read(tmp_path, TEXT)
    typed, _ = read(tmp_path, text_dump(whole))
    untyped, _ = read(tmp_path, text_dump(whole, types=False))
    as_json, _ = read(tmp_path, json_dump(whole))
    assert shapes(typed) == shapes(untyped) == shapes(as_json) == shapes(whole)


def test_lines_that_are_no_part_of_it_are_counted(tmp_path: Path) -> None:
    _, notes = read(tmp_path, "hello\n" + TEXT + "\nbye\n")
    assert notes == [": 2 lines passed over that are no part of the dump"]


def test_a_dump_that_is_cut_says_where(tmp_path: Path) -> None:
    cut = TEXT[: TEXT.index("dstBuffer:")]
    blocks, notes = read(tmp_path, cut)
    line = cut.count("\n", 0, cut.index("vkCmdFillBuffer")) + 1
    assert notes == [f":{line}: the dump ends in the middle of this call; what comes before it is read"]
    assert "vkCmdFillBuffer" not in [each.name for each in blocks if isinstance(each, Call)]
    cut = JSON[: JSON.index('"dstOffset"')]
    blocks, notes = read(tmp_path, cut)
    line = cut.count("\n", 0, cut.index('"vkCmdFillBuffer"'))
    assert notes == [f":{line}: the dump ends in the middle of this call; what comes before it is read"]


def test_a_text_that_is_cut_anywhere_in_a_call_has_none_of_it(tmp_path: Path) -> None:
    """Of a number that is cut, the rest is a number."""
    whole, _ = read(tmp_path, TEXT)
    begin = TEXT.index("vkCmdFillBuffer")
    for end in range(TEXT.index("size:", begin), TEXT.index("\n\n", begin) + 1):
        blocks, notes = read(tmp_path, TEXT[:end])
        assert shapes(blocks) == shapes(whole)[: len(blocks)] and blocks[-1].index < line_of(TEXT, "vkCmdFillBuffer")
        assert notes[0].startswith(f":{line_of(TEXT, 'vkCmdFillBuffer')}: the dump ends in the middle of this call")


def test_html_that_is_cut_within_a_call_has_none_of_it(tmp_path: Path) -> None:
    html = (DATA / "fill_copy-1.4.350.html").read_text()
    end = html.index("<details class='fn'>", html.index("vkCmdFillBuffer"))
    inner = html.rindex("</details>", 0, end)
    blocks, notes = read(tmp_path, html[:inner])
    assert "vkCmdFillBuffer" not in [each.name for each in blocks if isinstance(each, Call)]
    assert len(notes) == 1 and "the dump ends in the middle of this call" in notes[0]


def test_two_threads_in_one_line_cost_their_calls(tmp_path: Path) -> None:
    """LunarG/VulkanTools issue 932: the head of one call, then all of another, then the rest of the first one."""
    head = "vkCmdCopyBuffer(commandBuffer, srcBuffer, dstBuffer, regionCount, pRegions) returns void"
    mixed = TEXT.replace(head + ":\n", head + "Thread 5, Frame 0:\n" + printed_other() + ":\n")
    blocks, _ = read(tmp_path, mixed)
    other = printed_other().split("(")[0]
    assert unread(blocks) == [
        ("vkCmdCopyBuffer", f"block {line_of(mixed, head)}: its parameters are mixed with those of another thread"),
        (
            other,
            f"block {line_of(mixed, other)}: 'commandBuffer' is no parameter of it: other output is mixed with them",
        ),
    ]
    assert Analysis().follow(blocks).unmodelled


@pytest.mark.parametrize(
    ("behind", "line", "why"),
    [
        ("data:", "    dstOffset: now = 64", "dstOffset: it comes twice"),
        ("data:", "    left: KiB = 64", "'left' is no parameter of it: other output is mixed with them"),
        ("data:", "        left: KiB = 64", "data: 'left' stands below it, and it has no members"),
        ("data:", "\n    dstOffset: now = 64", "dstOffset: it comes twice"),
        ("dstOffset:", "    dstBuffer: VkBuffer = 0x77", "dstBuffer: it comes twice"),
    ],
    ids=["last", "foreign", "deeper", "behind the end", "in the middle"],
)
def test_a_line_that_is_no_part_of_a_call_costs_it(tmp_path: Path, behind: str, line: str, why: str) -> None:
    """Which of two values is the call's nobody knows."""
    call = TEXT.index("vkCmdFillBuffer")
    end = TEXT.index("\n", TEXT.index(behind, call))
    blocks, _ = read(tmp_path, f"{TEXT[:end]}\n{line}{TEXT[end:]}")
    assert unread(blocks) == [("vkCmdFillBuffer", f"block {line_of(TEXT, 'vkCmdFillBuffer')}: {why}")]


def test_a_member_that_comes_twice_costs_the_call(tmp_path: Path) -> None:
    end = TEXT.index("\n", TEXT.index("size:", TEXT.index("vkCmdCopyBuffer")))
    blocks, _ = read(tmp_path, f"{TEXT[:end]}\n            dstOffset: now = 64{TEXT[end:]}")
    assert [(name, why.partition(": ")[2]) for name, why in unread(blocks)] == [
        ("vkCmdCopyBuffer", "pRegions[0].dstOffset: it comes twice")
    ]


def test_a_call_inside_another_costs_both(tmp_path: Path) -> None:
    """What is left of the first one stands behind the second one's parameters."""
    begin = TEXT.rindex("Thread", 0, TEXT.index("vkCmdFillBuffer"))
    end = TEXT.index("\n\n", begin)
    first = TEXT[begin:end].split("\n")
    mixed = [*first[:3], *TEXT[begin:end].replace("Thread 0", "Thread 1").split("\n"), *first[3:]]
    blocks, _ = read(tmp_path, TEXT[:begin] + "\n".join(mixed) + TEXT[end:])
    assert [(name, why.partition(": ")[2]) for name, why in unread(blocks)] == [
        ("vkCmdFillBuffer", "the argument 'dstBuffer' is missing"),
        ("vkCmdFillBuffer", "dstBuffer: it comes twice"),
    ]


def printed_other() -> str:
    return printed_text(Call(1, "vkGetFenceStatus", {"device": 1, "fence": 9}, 0, None, 5), head="")


def line_of(text: str, part: str) -> int:
    return text.count("\n", 0, text.index(part)) + 1


def test_a_call_of_which_a_member_is_missing_costs_itself(tmp_path: Path) -> None:
    """Other output in the middle may have taken its place."""
    changed = TEXT.replace("allocationSize:", "allocation_size:", 1)
    blocks, _ = read(tmp_path, changed)
    assert [name for name, _ in unread(blocks)] == ["vkAllocateMemory"]
    assert unread(blocks)[0][1].endswith("pAllocateInfo.allocationSize: missing in VkMemoryAllocateInfo")


def test_numbers_have_the_separators_of_a_locale(tmp_path: Path) -> None:
    """As Blender's locale makes it write them (LunarG/VulkanTools issue 2063); handles have names there."""
    changed = TEXT.replace("= 1024\n", "= 1,024\n").replace("(1.2.0)", "(1.2,0)")
    handle = TEXT[TEXT.index("VkBuffer* = ") + 12 :].partition("\n")[0]
    grouped = "0x" + handle[2:-6] + "," + handle[-6:-3] + "," + handle[-3:]
    blocks, _ = read(tmp_path, changed.replace(f"VkBuffer = {handle}", f"VkBuffer = {grouped} [first buffer]"))
    assert shapes(blocks) == shapes(read(tmp_path, TEXT)[0])


def test_handles_of_windows_have_no_prefix(tmp_path: Path) -> None:
    import re

    changed = re.sub(r"= 0x([0-9a-f]+)", lambda found: f"= {found[1].upper():0>16}", TEXT)
    assert shapes(read(tmp_path, changed)[0]) == shapes(read(tmp_path, TEXT)[0])


def test_a_handle_that_comes_again_is_another_object(tmp_path: Path) -> None:
    info = {"sType": 12, "pNext": None, "flags": 0, "size": 64, "usage": 2, "sharingMode": 0}
    info |= {"queueFamilyIndexCount": 0, "pQueueFamilyIndices": None}
    create = {"device": 5, "pCreateInfo": info, "pAllocator": None, "pBuffer": 7}
    destroy = {"device": 5, "buffer": 7, "pAllocator": None}
    calls = [Call(1, "vkCreateBuffer", create, 0), Call(2, "vkDestroyBuffer", destroy)] * 2
    blocks, _ = read(tmp_path, text_dump(calls))
    ids = [each.args.get("pBuffer", each.args.get("buffer")) for each in blocks if isinstance(each, Call)]
    assert ids[0] == ids[1] != ids[2] == ids[3]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("".join(line for line in TEXT.splitlines(True) if line[0] in "Tv\n"), ":2: no call has parameters"),
        ("".join(line.lstrip() for line in TEXT.splitlines(True)), ":2: the lines have lost their indentation"),
        (TEXT.replace("= 0x", "= address ").replace("= address ", "= address\n#"), ":2: handles are left out"),
        (TEXT[: TEXT.index("pCreateInfo: ")], ":2: the dump ends in the middle of its first call"),
        ("just text\n", ":1: not JSON"),
    ],
    ids=["names alone", "no columns", "no handles", "no whole call", "no dump"],
)
def test_what_says_nothing_is_refused_in_one_line(tmp_path: Path, changed: str, said: str) -> None:
    with pytest.raises(UserError) as told:
        read(tmp_path, changed)
    assert said in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    "changed",
    [
        JSON.replace(" :", ":").replace("\n", "\r\n"),
        json.dumps(json.loads(JSON)),
        json.dumps(json.loads(JSON), indent=1),
        "Selected GPU 0\n" + JSON.rstrip()[:-1],
        JSON.replace("                },\n                {", "                }\n                {"),
    ],
    ids=["crlf", "one line", "written again", "mixed and without end", "a comma is missing"],
)  # fmt: skip
def test_json_says_the_same_however_it_was_written(tmp_path: Path, changed: str) -> None:
    assert shapes(read(tmp_path, changed)[0]) == shapes(read(tmp_path, JSON)[0])
    assert changed != JSON


def test_json_and_text_say_the_same(tmp_path: Path) -> None:
    """The JSON has an empty text where a pointer to one is null."""
    from_json, from_text = (json.dumps(shapes(read(tmp_path, each)[0])) for each in (JSON, TEXT))
    assert from_json.replace('""', "null") == from_text


def test_html_and_text_say_the_same(tmp_path: Path) -> None:
    html = (DATA / "fill_copy-1.4.350.html").read_text()
    assert shapes(read(tmp_path, html)[0]) == shapes(read(tmp_path, TEXT)[0])
    cut = html[: html.index("vkCmdFillBuffer") + 400]
    blocks, notes = read(tmp_path, cut)
    assert shapes(blocks) == shapes(read(tmp_path, TEXT)[0])[: len(blocks)]
    assert len(notes) == 1 and "the dump ends in the middle of this call" in notes[0]


def test_texts_that_the_layer_does_not_escape_are_read(tmp_path: Path) -> None:
    label = Call(1, "vkCmdBeginDebugUtilsLabelEXT", {"commandBuffer": 5, "pLabelInfo": {
        "sType": 1000128002, "pNext": None, "pLabelName": "NAME", "color": [0.0] * 4}})  # fmt: skip
    dump = json.dumps([{"apiCalls": json.loads(json_dump([label]))[0]["apiCalls"]}], indent=1)
    blocks, _ = read(tmp_path, dump.replace('"NAME"', '"a "quoted" C:\\name"'))
    call = blocks[0]
    assert isinstance(call, Call) and call.args["pLabelInfo"]["pLabelName"] == 'a "quoted" C:\\name'


@pytest.mark.parametrize("given_by", ["nothing", "vkMapMemory", "vkAllocateMemory"])
@pytest.mark.parametrize("has_device", [True, False])
def test_contents_of_what_the_host_may_write_are_unknown(tmp_path: Path, has_device: bool, given_by: str) -> None:
    """The host may write there, and nobody sees it: how many groups run is unknown, and so is what they write."""
    stream = dispatches_nothing(given_by)
    kept = [each for each in stream.blocks if has_device or getattr(each, "name", "") != "vkCreateDevice"]
    blocks, notes = read(tmp_path, text_dump(kept))
    marked = [each.name for each in blocks if isinstance(each, Call) and each.args.get(UNSEEN_WRITES)]
    verdict = Analysis().follow(blocks).verdict
    if given_by == "nothing":
        assert (marked, notes, verdict) == ([], [], "clean")
    else:
        assert (marked, verdict) == ([given_by], "hazards")
        assert len(notes) == 1 and notes[0].startswith(": a dump lacks what the host writes to mapped memory")


def dispatches_nothing(given_by: str) -> Stream:
    """Groups of which the number is zero in memory that a command of this name gives to the host."""
    stream = Stream()
    memory = stream.memory(64)
    allocation = stream.blocks[-1]
    assert isinstance(allocation, Call)
    if given_by == "vkAllocateMemory":
        pointer = struct("VkImportMemoryHostPointerInfoEXT", handleType=0x80, pHostPointer=1)
        allocation.args["pAllocateInfo"]["pNext"] = pointer
    if given_by == "vkMapMemory":
        mapped = {"device": stream.device, "memory": memory, "offset": 0, "size": 64, "flags": 0, "ppData": 1}
        stream.blocks.append(Call(len(stream.blocks) + 1, "vkMapMemory", mapped, 0))
    counts, target = stream.buffer(64, memory), stream.buffer(64)
    shader = stream.compute("fill_words", [target], (1).to_bytes(4, "little"))
    stream.begin()
    stream.fill(counts, 0)
    stream.barrier()
    stream.submit()
    stream.begin()
    stream.fill(target, 0)
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=shader.pipeline)
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=shader.layout, pDescriptorSets=[shader.set])
    stream.cmd("DispatchIndirect", buffer=counts)
    stream.submit()
    return stream


def test_a_trace_that_is_made_of_a_dump_keeps_what_it_lacks(tmp_path: Path) -> None:
    blocks, _ = read(tmp_path, text_dump(dispatches_nothing("vkMapMemory").blocks))
    save(tmp_path / "trace.jsonl", blocks)
    assert shapes(load(tmp_path / "trace.jsonl")) == shapes(blocks)


def test_dumps_are_among_the_streams_that_hostile_hunts_change() -> None:
    samples = read_samples([DATA])
    assert [each.subject for each in samples] == DUMPS and {each.kind for each in samples} == {DUMP}
    assert DUMP in STREAM_KINDS

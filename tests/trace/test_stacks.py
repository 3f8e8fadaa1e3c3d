"""Stacks of call sites in a trace: written once, read as they were, and wrong ones told in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import two_buffers
from vkharness.call_sites import CallStacks, Frame, frames_of
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load, save
from vkharness.trace.lines import Corrupt
from vkharness.trace.stacks import StackReader

INNER, ONE, OTHER = Frame("lib.py:3", "copy"), Frame("app.py:20", "shadow"), Frame("app.py:40", "bloom")
WHOLE = {"number": 1, "frames": [INNER._asdict(), ONE._asdict()]}


def stream() -> list[Block]:
    """Calls of two stacks with one innermost line, each several times."""
    made, a, b = two_buffers(256)
    made.begin()
    for _ in range(4):
        made.copy(a, b, 256)
    made.submit()
    stacks = CallStacks()
    for at, block in enumerate(made.blocks):
        block.site = stacks.site((INNER, ONE if at % 2 else OTHER))
    made.blocks[0].site = "lib.py:3"
    return made.blocks


def test_a_stack_is_written_once_and_read_as_it_was(tmp_path: Path) -> None:
    blocks = stream()
    save(tmp_path / "t.jsonl", blocks)
    again = load(tmp_path / "t.jsonl")
    assert [frames_of(each.site) for each in again] == [frames_of(each.site) for each in blocks]
    text = (tmp_path / "t.jsonl").read_text()
    assert text.count("shadow") == text.count("bloom") == 1
    save(tmp_path / "u.jsonl", again)
    assert (tmp_path / "u.jsonl").read_text() == text.replace("t.bin", "u.bin")


def test_a_reader_that_knows_no_stacks_has_the_site(tmp_path: Path) -> None:
    save(tmp_path / "t.jsonl", stream())
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert {each["site"] for each in lines[1:-1]} == {"lib.py:3"}


def test_a_number_that_nothing_explains_says_nothing() -> None:
    assert StackReader().site({"site": "lib.py:3", "stack": 7}) == "lib.py:3"
    assert StackReader().site({"stack": 7}) is None


def test_a_number_may_be_explained_again_but_not_otherwise() -> None:
    reader = StackReader()
    first = reader.site({"site": "lib.py:3", "stack": WHOLE})
    assert reader.site({"site": "lib.py:3", "stack": WHOLE}) is first is reader.site({"site": "lib.py:3", "stack": 1})
    with pytest.raises(Corrupt, match="number 1 is that of another stack"):
        reader.site({"site": "lib.py:3", "stack": {"number": 1, "frames": [INNER._asdict(), OTHER._asdict()]}})


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ("7", "expected a number, or an object"),
        ({"number": 1}, "expected a number, or an object"),
        ({"number": True, "frames": WHOLE["frames"]}, "expected a number, or an object"),
        ({"number": 1, "frames": []}, "expected a number, or an object"),
        ({"number": 1, "frames": [INNER._asdict()] * 65}, "expected a number, or an object"),
        ({"number": 1, "frames": [ONE._asdict()]}, "the site as its first frame"),
        ({"number": 1, "frames": [INNER._asdict(), {"site": "a.py:1"}]}, "frames with a site and a function"),
        ({"number": 1, "frames": [INNER._asdict(), {"site": "a\n", "function": "f"}]}, "frames with a site"),
        ({"number": 1, "frames": [INNER._asdict(), 7]}, "frames with a site and a function"),
    ],
)
def test_a_stack_that_is_none_is_told(tmp_path: Path, stack: object, message: str) -> None:
    with pytest.raises(Corrupt, match=message):
        StackReader().site({"site": "lib.py:3", "stack": stack})
    save(tmp_path / "t.jsonl", stream())
    lines = (tmp_path / "t.jsonl").read_text().splitlines(keepends=True)
    lines[3] = json.dumps(json.loads(lines[3]) | {"stack": stack}) + "\n"
    (tmp_path / "t.jsonl").write_text("".join(lines))
    (block,) = (each for each in load(tmp_path / "t.jsonl") if isinstance(each, Call) and each.unread)
    assert message in block.unread, "a mistake in a call costs that call"


def changed(path: Path, blocks: list[Block], change: Callable[[list[dict[str, Any]]], object]) -> list[Block]:
    """The blocks of a trace after a change of its lines."""
    save(path, blocks)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return load(path)


def definitions(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if isinstance(line.get("stack"), dict)]


@pytest.mark.parametrize("wrong", ["a call that cannot be read", "a note", "no site"])
def test_a_stack_counts_whatever_is_wrong_with_the_block_that_explains_it(tmp_path: Path, wrong: str) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        for line in definitions(lines):
            if wrong == "a call that cannot be read":
                line["function"]["args"] = {}
            elif wrong == "a note":
                line["annotation"] = line.pop("function")
            else:
                del line["site"]

    blocks = stream()
    again = {each.index: each for each in changed(tmp_path / "t.jsonl", blocks, change)}
    found = [(frames_of(again[each.index].site), frames_of(each.site)) for each in blocks[-6:] if each.index in again]
    assert len(found) == 6 and all(one == other for one, other in found)


def test_a_line_that_came_before_its_stack_was_explained_is_read_again(tmp_path: Path) -> None:
    made, a, b = two_buffers(256)
    made.begin()
    for _ in range(3):
        made.copy(a, b, 256)
    copies = made.blocks[-3:]
    for block in copies:
        block.site = "lib.py:3"

    def change(lines: list[dict[str, Any]]) -> None:
        copied = [line for line in lines if line.get("site")]
        for line, stack in zip(copied, (1, WHOLE, 1), strict=True):
            line["stack"] = stack

    found = changed(tmp_path / "t.jsonl", made.blocks, change)[-3:]
    assert [len(frames_of(each.site)) for each in found] == [1, 2, 2]

"""Dumps that cost a reader more than their size, if it looks at some of their bytes again and again."""

from __future__ import annotations

import io

import pytest

from vkharness.trace.file_kinds import HTML_CALL
from vkharness.trace.printed import call_pieces
from vkharness.trace.printed.api_dump_html import html_calls
from vkharness.trace.printed.api_dump_json import json_calls
from vkharness.trace.printed.api_dump_text import TextCalls

MANY = 1 << 20
"""A reader whose cost is the square of this needs an hour."""
JSON = b'{"name":"vkCmdDraw","thread":"Thread 0",'
HTML = b"<details class='fn'><summary><div class='var'>vkCmdDraw(a)</div>"


@pytest.mark.parametrize("filler", [b"\n", b" \n", b'\n"a":"', b'" ', b'\n "a":"' + b'"  ' * 64])
def test_json_that_is_none_costs_its_size(filler: bytes) -> None:
    calls = list(json_calls(io.BytesIO(JSON + filler * (MANY // len(filler)) + b"x")))
    assert [each.trouble for each in calls] == ["what stands here is no JSON"]


@pytest.mark.parametrize("filler", [b"<div class='var'>", b"<details class='fn'>", b"</details"])
def test_html_without_ends_costs_its_size(filler: bytes) -> None:
    calls = list(html_calls(io.BytesIO(HTML + filler * (MANY // len(filler)))))
    assert [(each.name, each.trouble) for each in calls] == [("vkCmdDraw", "it has no end")]


def test_many_calls_cost_their_size() -> None:
    calls = list(json_calls(io.BytesIO((JSON + b"\n\n\n") * (MANY // len(JSON)))))
    assert [each.line for each in calls] == [1 + 3 * at for at in range(len(calls))] and len(calls) == MANY // len(JSON)


def test_a_text_of_many_lines_costs_its_size() -> None:
    head = ["vkCreateInstance(a) returns VkResult VK_SUCCESS (0):", '    pName: const char* = "a']
    lines = [*head, *["b"] * (MANY // 4), '"', "    next: int = 1"]
    (call,) = TextCalls().read(enumerate(lines, 1))
    assert [each.name for each in call.values] == ["pName", "next"]
    assert call.values[0].text == "\n".join(['"a', *lines[2:-1]])


@pytest.mark.parametrize("size", [1, 7, 100, 600, 1 << 20])
def test_pieces_are_the_same_however_much_is_read_at_a_time(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The optional start of a call must not be cut from it."""
    monkeypatch.setattr(call_pieces, "_READ", size)
    starts = [b"<div class='thd'>Thread: 1</div>" * (at % 2) + HTML for at in range(12)]
    wanted = [each + b"\n" * (90 * at) for at, each in enumerate(starts)]
    pieces = list(call_pieces.call_pieces(io.BytesIO(b"output\n" * 100 + b"".join(wanted)), HTML_CALL))
    assert [each.raw for each in pieces] == wanted
    lines = [101 + sum(each.count(b"\n") for each in wanted[:at]) for at in range(len(wanted))]
    assert [each.line for each in pieces] == lines
    assert [each.is_last for each in pieces] == [False] * 11 + [True]

"""The report for a layer team, from data: everything it needs stands in it, and no text of a program breaks it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.support.streams import two_buffers
from vkharness.report.layer_report import MOST_CALLS, LayerCase, layer_lines, layer_report, message_text
from vkharness.report.rules import PAGE, RULE_OF_FINDING, rule_sections
from vkharness.trace.calls import Block

MESSAGE = {"severity": "error", "id": "SYNC-HAZARD-READ-AFTER-WRITE", "text": "vkCmdCopyBuffer(): hazard.\nMore.\n"}
AT = {**MESSAGE, "call": 31, "command": "vkCmdCopyBuffer", "site": "tail.py:7"}
KNOWN = {"line": "ours-only at submit", "id": "an-entry", "reason": "The old layer."}
SAID: dict[str, Any] = {
    "layer": "1.4.364",
    "settings": {"VK_VALIDATION_VALIDATE_SYNC": "1"},
    "device": "lavapipe",
    "messages": [AT],
    "of_replay": [{**MESSAGE, "call": None}],
    "findings": ["A on B\n  rule: x\n"],
    "rules": ["read-after-write", "write-after-read"],
    "model": "differs",
    "unmodelled": {"vkCmdX": 2},
    "notes": ["without VK_EXT_y"],
    "agreed": 1,
    "ours": 1,
    "expected": [KNOWN],
    "disagreements": ["layer-only at record (block 31): READ_AFTER_WRITE"],
}
CASE = LayerCase("access/scenario_tail [whole]", "The tail stays.\n", (), ("read-after-write",))
COMMAND = "replay trace.jsonl --layer 1.4.364 --device lavapipe"


def blocks(copies: int = 1) -> list[Block]:
    """A stream that fills and copies."""
    stream, a, b = two_buffers(64)
    commands = stream.begin()
    stream.fill(a, 1)
    for _ in range(copies):
        stream.copy(a, b, 64)
    stream.end()
    stream.submit(commands)
    return stream.blocks


def report(case: LayerCase = CASE, stream: list[Block] | None = None, **said: Any) -> str:
    """The report of what was said, with something else in it."""
    return layer_report({**SAID, **said}, stream or blocks(), case, "trace.jsonl", "1.4.364", 40)


def test_a_report_says_everything() -> None:
    stream = blocks()
    text = report(stream=stream)
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Khronos validation layer 1.4.364: access/scenario_tail [whole]",
        "## What differs",
        "## What layer 1.4.364 says",
        "## What vkharness says",
        "## What the specification says",
        "### Read after write",
        "### Write after read",
        "## How to repeat it",
        f"## The {len(stream)} calls of trace.jsonl, what is left of 40",
    ]
    assert "\nThe tail stays.\n" in text and "Expected of it: no hazard." in text
    assert f"```console\nvkharness {COMMAND}\n```" in text
    assert f"```console\ngdb --args python -m vkharness {COMMAND} --in-process\n```" in text
    assert (
        "```text\nlayer-only at record (block 31): READ_AFTER_WRITE\n```\n\n```text\nours-only at submit\n```" in text
    )
    assert "\nKnown: The old layer.\n" in text
    words = "error SYNC-HAZARD-READ-AFTER-WRITE at call 31 vkCmdCopyBuffer (tail.py:7)\n  vkCmdCopyBuffer(): hazard.\n"
    assert f"```text\n{words}  More.\n```" in text
    assert "```text\nA on B\n  rule: x\n```" in text
    assert "Specification: [Memory Dependencies](https://docs.vulkan.org/spec/latest/" in text
    assert "Rule: `docs/rules.md#read-after-write` of vkharness." in text
    assert "```text\nVK_VALIDATION_VALIDATE_SYNC=1\n```" in text
    commands = [f"{each.index} {each.name}" for each in stream if each.name in ("vkCmdFillBuffer", "vkCmdCopyBuffer")]  # type: ignore[union-attr]
    assert "\n".join(commands) in text and text.endswith("\n")


def test_silence_is_said() -> None:
    case = LayerCase("a.jsonl", expected=("a", "b"))
    text = report(case, messages=[], findings=[], rules=[])
    assert "It says nothing." in text and "It finds no hazard." in text and "No rule is named." in text
    assert "Expected of it: a; b." in text and "Expected" not in report(LayerCase("a.jsonl"))


def test_what_cannot_be_replayed_says_why() -> None:
    text = report(LayerCase("a", refusal="2 queues", repeat="pytest x"))
    assert "is not played below the layer: 2 queues.\n" in text and "```console\npytest x\n```" in text
    assert "vkharness replay" not in text


def test_texts_of_programs_stay_in_their_fences() -> None:
    evil = {**MESSAGE, "text": "name ```\n# a title\x1b[2J", "call": None}
    text = report(LayerCase("a", "```\n# another"), messages=[evil])
    fence = "````"
    assert f"{fence}text\nerror SYNC-HAZARD-READ-AFTER-WRITE\n  name ```\n  # a title\\x1b[2J\n{fence}" in text
    assert f"{fence}text\n```\n# another\n{fence}" in text and "\x1b" not in text


def test_names_of_files_are_quoted() -> None:
    text = layer_report(SAID, blocks(), CASE, "a trace.jsonl", "a build/layer.json", 40)
    assert "vkharness replay 'a trace.jsonl' --layer 'a build/layer.json' --device lavapipe" in text


def test_of_many_calls_some_are_listed() -> None:
    assert "\nand 3 more calls\n" in report(stream=blocks(MOST_CALLS + 1))


def test_a_rule_without_a_section_is_named() -> None:
    name = "no-such-rule"
    assert f"### {name}\n\nRule: `{PAGE}#{name}` of vkharness." in report(rules=[name])


@pytest.mark.parametrize("anchor", sorted({anchor for *_, anchor in RULE_OF_FINDING}))
def test_each_rule_of_a_finding_has_its_sentences_and_links(anchor: str) -> None:
    section = rule_sections()[anchor]
    assert section.text and "](#" not in section.text
    assert "](https://docs.vulkan.org/spec/" in section.specification


def test_a_message_without_a_call() -> None:
    assert message_text({**MESSAGE, "call": None}).splitlines()[0] == "error SYNC-HAZARD-READ-AFTER-WRITE"


def test_lines_for_the_terminal() -> None:
    assert list(layer_lines({**SAID, "report": "a/report.md"})) == [
        "layer 1.4.364 on lavapipe, as recorded: 1 message, 1 finding of ours",
        "  note: without VK_EXT_y",
        "  error SYNC-HAZARD-READ-AFTER-WRITE at call 31 vkCmdCopyBuffer (tail.py:7)",
        "    vkCmdCopyBuffer(): hazard.",
        "    More.",
        "  not counted: 1 message about the replay's own work",
        "  ours: A on B",
        "    rule: x",
        "  known: ours-only at submit: The old layer.",
        "  our two judges differ: `vkharness check` on the trace says where",
        "  not modelled: vkCmdX x2",
        "  disagreement: layer-only at record (block 31): READ_AFTER_WRITE",
        "  report: a/report.md",
        "layer 1.4.364: disagrees",
    ]
    assert list(layer_lines({**SAID, "disagreements": []}))[-1] == "layer 1.4.364: agrees"


def test_names_are_no_markdown() -> None:
    hostile = "[x](y) <script> `touch pwned` **b**\n# head\x1b"
    case = replace(CASE, title=hostile)
    text = layer_report({**SAID, "device": hostile}, blocks(), case, hostile, "layer", 40)
    outside = "".join(re.split(r"(?ms)^```+\w+$.*?^```+$", text))
    assert "<script>" not in outside and "](y)" not in outside and "\n# head" not in outside and "\x1b" not in text
    assert "`touch" not in outside.replace("\\`", "") and "**b" not in outside.replace("\\*", "")

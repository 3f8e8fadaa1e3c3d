"""The report for a layer team, from data: everything it needs stands in it, and no text of a program breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from vkharness.report.layer_report import layer_lines, layer_report, message_text
from vkharness.report.rules import RULE_OF_FINDING, rule_sections

ROW: dict[str, Any] = {
    "scenario": "access/scenario_tail",
    "variant": "whole",
    "device": "lavapipe",
    "expected": [],
    "layer_disagreements": {"1.4.364": ["layer-only at record (block 31): READ_AFTER_WRITE"], "1.3.239": []},
}
MESSAGE = {"severity": "error", "id": "SYNC-HAZARD-READ-AFTER-WRITE", "text": "vkCmdCopyBuffer(): hazard.\nMore.\n"}
AT = {**MESSAGE, "call": 31, "command": "vkCmdCopyBuffer", "site": "tail.py:7"}


def test_a_report_says_everything() -> None:
    text = layer_report(
        ROW, ["READ_AFTER_WRITE on VkBuffer 6"], [AT], "trace.jsonl", "1.4.364", claim="The tail stays.",
        rules=["read-after-write", "read-after-write"],
    )  # fmt: skip
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "# Khronos validation layer 1.4.364 on access/scenario_tail [whole]",
        "## How to repeat it",
        "## What differs",
        "## What layer 1.4.364 says",
        "## What vkharness says",
        "## What the specification says",
        "### Read after write",
    ]
    assert "\nThe tail stays.\n" in text and "Expected of this stream: no hazard." in text
    command = "replay trace.jsonl --layer 1.4.364 --device lavapipe"
    assert f"```console\nvkharness {command}\n```" in text
    assert f"`gdb --args python -m vkharness {command} --in-process`" in text
    assert "```text\nlayer-only at record (block 31): READ_AFTER_WRITE\n```" in text
    words = "error SYNC-HAZARD-READ-AFTER-WRITE at call 31 vkCmdCopyBuffer (tail.py:7)\n  vkCmdCopyBuffer(): hazard.\n"
    assert f"```text\n{words}  More.\n```" in text
    assert "```text\nREAD_AFTER_WRITE on VkBuffer 6\n```" in text
    assert "Specification: [Memory Dependencies](https://docs.vulkan.org/spec/latest/" in text
    assert "Rule: `docs/rules.md#read-after-write` of vkharness." in text
    assert text.endswith("\n")


def test_silence_is_said() -> None:
    text = layer_report({**ROW, "expected": ["a", "b"]}, [], [], "a trace.jsonl", "1.3.239")
    assert "It says nothing." in text and "It finds no hazard." in text and "No rule is named." in text
    assert "Expected of this stream: a; b." in text
    assert "vkharness replay 'a trace.jsonl' --layer 1.3.239" in text


def test_texts_of_programs_stay_in_their_fences() -> None:
    evil = {**MESSAGE, "text": "name ```\n# a title\x1b[2J", "call": None}
    text = layer_report(ROW, [], [evil], "trace.jsonl", "1.4.364")
    fence = "````"
    assert f"{fence}text\nerror SYNC-HAZARD-READ-AFTER-WRITE\n  name ```\n  # a title\\x1b[2J\n{fence}" in text
    assert "\x1b" not in text


def test_a_rule_without_a_section_is_named() -> None:
    text = layer_report(ROW, [], [], "trace.jsonl", "1.4.364", rules=["no-such-rule"])
    assert "### no-such-rule\n\nRule: `docs/rules.md#no-such-rule` of vkharness." in text


@pytest.mark.parametrize("anchor", sorted({anchor for *_, anchor in RULE_OF_FINDING}))
def test_each_rule_of_a_finding_has_its_sentences_and_links(anchor: str) -> None:
    section = rule_sections()[anchor]
    assert section.text and "](#" not in section.text
    assert "](https://docs.vulkan.org/spec/" in section.specification


def test_a_message_without_a_call() -> None:
    assert message_text({**MESSAGE, "call": None}).splitlines()[0] == "error SYNC-HAZARD-READ-AFTER-WRITE"


RESULT: dict[str, Any] = {
    "layer": "1.4.364",
    "device": "lavapipe",
    "messages": [AT],
    "of_replay": [{**MESSAGE, "call": None}],
    "findings": ["A on B\n  rule: x\n"],
    "model": "differs",
    "unmodelled": {"vkCmdX": 2},
    "notes": ["without VK_EXT_y"],
    "agreed": 1,
    "ours": 1,
    "expected": [{"side": "ours-only", "id": "", "reason": "old"}],
    "disagreements": ["ours-only at submit"],
}


def test_lines_for_the_terminal() -> None:
    assert list(layer_lines(RESULT)) == [
        "layer 1.4.364 on lavapipe, as recorded: 1 message, 1 finding of ours",
        "  note: without VK_EXT_y",
        "  error SYNC-HAZARD-READ-AFTER-WRITE at call 31 vkCmdCopyBuffer (tail.py:7)",
        "    vkCmdCopyBuffer(): hazard.",
        "    More.",
        "  not counted: 1 message about the replay's own work",
        "  ours: A on B",
        "    rule: x",
        "  known: ours-only: old",
        "  our two judges differ: `vkharness check` on the trace says where",
        "  not modelled: vkCmdX x2",
        "  disagreement: ours-only at submit",
        "layer 1.4.364: disagrees",
    ]
    assert list(layer_lines({**RESULT, "disagreements": []}))[-1] == "layer 1.4.364: agrees"

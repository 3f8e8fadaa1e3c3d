"""What a Khronos layer said of a trace, in words: for the terminal, and as a report that a layer team can file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vkharness.report.printable import printable, printable_lines
from vkharness.report.rules import PAGE, rule_sections

COUNTS = "agrees"
"""The word of a comparison in which nothing is left unexplained."""


def layer_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The answer of `vkharness.layered_replay.layer_job` in words, a line each."""
    head = f"layer {result['layer']} on {result['device']}, as recorded"
    yield f"{head}: {_count(len(result['messages']), 'message')}, {_count(result['ours'], 'finding')} of ours"
    for note in result["notes"]:
        yield f"  note: {note}"
    for message in result["messages"]:
        yield from (f"  {line}" for line in message_text(message).splitlines())
    if result["of_replay"]:
        yield f"  not counted: {_count(len(result['of_replay']), 'message')} about the replay's own work"
    for finding in result["findings"]:
        yield from (f"  ours: {line}" if not at else f"  {line}" for at, line in enumerate(finding.splitlines()))
    for each in result["expected"]:
        yield f"  known: {each['side']}: {each['reason']}"
    if result["model"] == "differs":
        yield "  our two judges differ: `vkharness check` on the trace says where"
    if result["unmodelled"]:
        yield "  not modelled: " + ", ".join(f"{name} x{count}" for name, count in sorted(result["unmodelled"].items()))
    for line in result["disagreements"]:
        yield f"  disagreement: {printable(line)}"
    yield f"layer {result['layer']}: {'disagrees' if result['disagreements'] else COUNTS}"


def message_text(message: Mapping[str, Any]) -> str:
    """`error SYNC-HAZARD-... at call 26 vkCmdCopyBuffer (program.py:77)`, and below it the layer's own words.

    `message` has `severity`, `id`, `text`, `call` (block index or None) and, where known, `command` and `site`.
    """
    where = "" if message["call"] is None else f" at call {message['call']}"
    command, site = message.get("command", ""), message.get("site", "")
    where += f" {printable(command)}" if command else ""
    where += f" ({printable(site)})" if site else ""
    words = printable_lines(message["text"].strip()).splitlines()
    return "\n".join([f"{message['severity']} {printable(message['id'])}{where}", *(f"  {line}" for line in words)])


def layer_report(
    row: Mapping[str, Any],
    findings: Sequence[str],
    messages: Sequence[Mapping[str, Any]],
    trace: str,
    layer: str,
    *,
    claim: str = "",
    rules: Sequence[str] = (),
) -> str:
    """A row of the suite at which a layer disagrees, as Markdown that its team can read without this project.

    `row` is `Row.to_dict()`; `findings` are ours in words (`finding_text(...).plain`); `messages` are all that it
    says, as `message_text` takes them; `trace` is the file's name beside the report and `layer` the version. `claim` is
    the scenario's docstring, `rules` are anchors in docs/rules.md. Texts of programs stand in fences.
    """
    name = f"{row['scenario']} [{row['variant']}]"
    command = f"vkharness replay {shlex.quote(trace)} --layer {layer} --device {shlex.quote(row['device'])}"
    expected = "; ".join(row["expected"]) or "no hazard"
    disagreements = row["layer_disagreements"].get(layer, ())
    return "\n".join(
        [
            f"# Khronos validation layer {layer} on {printable(name)}",
            "",
            *([printable_lines(claim.strip()), ""] if claim.strip() else []),
            f"Expected of this stream: {expected}. Device: {printable(row['device'])}.",
            "",
            "## How to repeat it",
            "",
            "The trace lies beside this file. This plays exactly its calls below the layer:",
            "",
            _fenced(command, "console"),
            "",
            "With `--in-process` it runs under a debugger: "
            f"`gdb --args python -m vkharness {command.removeprefix('vkharness ')} --in-process`.",
            "",
            "## What differs",
            "",
            *(_fenced(each) for each in disagreements),
            "",
            *_section(f"What layer {layer} says", [message_text(each) for each in messages], "It says nothing."),
            *_section("What vkharness says", findings, "It finds no hazard."),
            "## What the specification says",
            "",
            *(line for anchor in dict.fromkeys(rules) for line in _rule_lines(anchor)),
            *([] if rules else ["No rule is named.", ""]),
        ]
    )


def _section(title: str, texts: Sequence[str], otherwise: str) -> list[str]:
    return [f"## {title}", "", *([_fenced(each) for each in texts] or [otherwise]), ""]


def _fenced(text: str, language: str = "text") -> str:
    """A block of code that no text of a program can end."""
    text = printable_lines(text.rstrip())
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _rule_lines(anchor: str) -> Iterator[str]:
    section = rule_sections().get(anchor)
    yield f"### {section.title if section else anchor}"
    yield ""
    if section is not None:
        yield section.text
        yield ""
        yield f"Specification: {section.specification}"
        yield ""
    yield f"Rule: `{PAGE}#{anchor}` of vkharness."
    yield ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"

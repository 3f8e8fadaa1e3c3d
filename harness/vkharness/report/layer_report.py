"""A Khronos layer's answer to a trace, in words: for the terminal, and as a report that a layer team can file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.generated_text import markdown
from vkharness.report.printable import printable, printable_lines
from vkharness.report.rules import rule_name, rule_sections
from vkharness.report.stack_text import site_text
from vkharness.spec.command_classes import is_recorded, is_submit
from vkharness.trace.calls import Block, Call

COUNTS = "agrees"
"""The word of a comparison in which nothing is left unexplained."""
MOST_CALLS = 200
"""Commands and submits that a report lists."""


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
        yield f"  known: {printable(each['line'])}: {each['reason']}"
    if result.get("model") == "differs":
        yield "  our two judges differ: `vkharness check` on the trace says where"
    if result["unmodelled"]:
        yield "  not modelled: " + ", ".join(f"{name} x{count}" for name, count in sorted(result["unmodelled"].items()))
    for line in result["disagreements"]:
        yield f"  disagreement: {printable(line)}"
    if result.get("report"):
        yield f"  report: {printable(result['report'])}"
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


@dataclass(frozen=True, slots=True)
class LayerCase:
    """Subject of a report, beside the layer's answer."""

    title: str
    """The row or the trace."""
    about: str = ""
    """The claim of the program, in prose."""
    expected: tuple[str, ...] | None = None
    """The hazards that it must have; None where nobody says."""
    rules: tuple[str, ...] = ()
    """Anchors in docs/rules.md of the rules that it claims."""
    refusal: str = ""
    """The reason why the trace cannot be replayed below the layer."""
    repeat: str = ""
    """The command that repeats the case where a replay does not."""


def layer_report(
    said: Mapping[str, Any], blocks: Sequence[Block], case: LayerCase, trace: str, layer: str, whole: int
) -> str:
    """Writes how a layer and we differ about one stream: Markdown that its team can read without this project.

    `said` is `vkharness.layered_replay.LayerAnswer.to_dict` of `blocks`; `trace` is their file beside the report, and
    `whole` the number of calls of which they are left. `layer` is what --layer takes. Texts of programs stand in
    fences.
    """
    version = said["layer"]
    words = [message_text(each) for each in said["messages"]]
    rules = list(dict.fromkeys([*case.rules, *said["rules"]]))
    expected = [] if case.expected is None else [f"Expected of it: {'; '.join(case.expected) or 'no hazard'}.", ""]
    return "\n".join(
        [
            f"# Khronos validation layer {version}: {markdown(case.title)}",
            "",
            *([_fenced(case.about), ""] if case.about.strip() else []),
            *expected,
            "## What differs",
            "",
            *(line for each in said["disagreements"] for line in (_fenced(each), "")),
            *(line for known in said["expected"] for line in _known_lines(known)),
            *_section(f"What layer {version} says", words, "It says nothing."),
            *_section("What vkharness says", said["findings"], "It finds no hazard."),
            "## What the specification says",
            "",
            *(line for anchor in rules for line in _rule_lines(anchor)),
            *([] if rules else ["No rule is named.", ""]),
            *_repeat_lines(said, case, trace, layer),
            *_call_lines(blocks, trace, whole),
        ]
    )


def _known_lines(difference: Mapping[str, str]) -> Iterator[str]:
    yield from (_fenced(difference["line"]), "", f"Known: {difference['reason']}", "")


def _repeat_lines(said: Mapping[str, Any], case: LayerCase, trace: str, layer: str) -> Iterator[str]:
    """The commands that repeat a case, and the layer's settings."""
    device = markdown(said["device"])
    command = f"replay {shlex.quote(trace)} --layer {shlex.quote(layer)} --device {shlex.quote(said['device'])}"
    yield from ("## How to repeat it", "")
    if case.refusal:
        yield from (f"The trace beside this file is not played below the layer: {markdown(case.refusal)}.", "")
        yield from ("This records the program below the layer anew:", "", _fenced(case.repeat, "console"), "")
    else:
        yield from (f"This plays exactly the calls of the trace beside this file below the layer, on {device}:", "")
        yield from (_fenced(f"vkharness {command}", "console"), "")
        yield from ("The same in one process, under a debugger:", "")
        yield from (_fenced(f"gdb --args python -m vkharness {command} --in-process", "console"), "")
        yield from ("`--layer` also takes the path of the manifest of another build.", "")
    yield from ("The layer runs with these settings:", "")
    yield from (_fenced("\n".join(f"{name}={value}" for name, value in said["settings"].items())), "")


def _call_lines(blocks: Sequence[Block], trace: str, whole: int) -> Iterator[str]:
    """The commands of a stream and what executes them, a line each."""
    shown = [each for each in blocks if isinstance(each, Call) and (is_recorded(each.name) or is_submit(each.name))]
    left = "" if len(blocks) == whole else f", what is left of {whole}"
    yield from (f"## The {_count(len(blocks), 'call')} of {markdown(trace)}{left}", "")
    sites = (f" ({site_text(each.site)})" if each.site else "" for each in shown)
    lines = [f"{each.index} {each.name}{site}" for each, site in zip(shown[:MOST_CALLS], sites, strict=False)]
    more = len(shown) - len(lines)
    yield _fenced("\n".join([*lines, *([f"and {_count(more, 'more call')}"] if more else [])]))
    yield ""


def _section(title: str, texts: Sequence[str], otherwise: str) -> list[str]:
    said = [line for each in texts for line in (_fenced(each), "")]
    return [f"## {title}", "", *(said or [otherwise, ""])]


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
    yield f"Rule: `{rule_name(anchor)}` of vkharness."
    yield ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"

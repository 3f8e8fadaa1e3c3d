"""Sentences of AsciiDoc as the Vulkan specification writes it: each begins on a line of its own.

A file is read with its includes at their place, each file once. Conditionals are those of the specification with all
extensions. Notes, code and comments are left out: the specification calls all notes informative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::([^\[]*)\[(.*)\]$")
INCLUDE = re.compile(r"include::\{chapters\}/([^\[]+)\[([^\]]*)\]")
CORE = re.compile(r"VK_(?:BASE_|COMPUTE_|GRAPHICS_)?VERSION_\d")
REFPAGE = re.compile(r"\[open,\s*refpage='([^']+)'")
ANCHOR = re.compile(r"\[\[([^\]]+)\]\]")
HEADING = re.compile(r"=+ ")
ITEM = re.compile(r"\s*(?:\*+|-|\.+|\d+\.)\s+(?=\S)|.*\S::(?:\s|$)")
LABEL = re.compile(r"(?<=\S)::(?=\s|$)")
ADMONITION = re.compile(r"\[(?:NOTE|TIP|WARNING|IMPORTANT|CAUTION|source|latexmath|listing)\b")
FENCE = re.compile(r"(?:={4,}|-{4,}|\.{4,}|\+{4,}|`{3,}.*|/{4,}|_{4,})$")
NOISE = re.compile(r"\[.*\]$|\.[A-Z]|:[\w-]+:|image::|ifdef::|<<<|'''|\|={3,}$")
END = re.compile(
    r"(?:(?<!\bmust)(?<!\bcan)(?<!\bmay)(?<!\bnot)(?<!\bshould)(?<!\bcannot)(?<!\brequired):|[.?!])[)\"'_*`]*$"
)


COMMON = "commonvalidity/"
"""The folder of valid usage that many commands include."""


class Line(NamedTuple):
    """A line of the text, and whether it is there in core Vulkan without any extension."""

    text: str
    core: bool


class Sentence(NamedTuple):
    """A sentence in plain words, with the command, struct or anchor that it stands below."""

    chapter: str
    section: str
    text: str
    core: bool
    usage: bool = False
    """It is valid usage."""


@dataclass
class Sources:
    """The files of a checkout's chapters, by the path that an include names."""

    files: Mapping[str, str]
    seen: set[str] = field(default_factory=set)

    def chapters(self) -> Iterator[str]:
        """The files that no other includes, and what many include, in order."""
        included = {name for text in self.files.values() for name, how in INCLUDE.findall(text) if "tag" not in how}
        yield from sorted(name for name in self.files if name not in included or name.startswith(COMMON))

    def lines(self, name: str, core: bool = True) -> Iterator[Line]:
        """The lines of a file and of what it includes, without those that no document with all extensions has."""
        if name in self.seen or name not in self.files:
            return
        self.seen.add(name)
        stack = [(True, core)]
        for text in self.files[name].splitlines():
            found = CONDITION.match(text)
            if found is None:
                if stack[-1][0]:
                    yield from self._line(text.rstrip(), stack[-1][1])
            elif found[1] == "endif":
                stack = stack[:-1] or stack
            else:
                shown = tuple(now and then for now, then in zip(stack[-1], _holds(found[1], found[2]), strict=True))
                if found[3] and found[1] != "ifeval":
                    if shown[0]:
                        yield Line(found[3], shown[1])
                else:
                    stack.append((shown[0], shown[1]))

    def _line(self, text: str, core: bool) -> Iterator[Line]:
        found = INCLUDE.match(text)
        if found is None:
            if not text.startswith("include::"):  # what the registry generates
                yield Line(text, core)
        elif "tag" not in found[2] and not found[1].startswith(COMMON):  # what has a tag is read where it stands
            yield from self.lines(found[1], core)


def _holds(kind: str, names: str) -> tuple[bool, bool]:
    """Whether a condition holds with all extensions, and in core Vulkan."""
    if kind == "ifeval":
        return True, True
    every = "+" in names
    answers = []
    for known in (lambda name: name.startswith("VK_"), CORE.match):
        each = [bool(known(name)) for name in re.split("[,+]", names)]
        value = all(each) if every else any(each)
        answers.append(value if kind == "ifdef" else not value)
    return answers[0], answers[1]


LINKS = "flink|slink|elink|tlink|ename|pname|fname|sname|dname|dlink|basetype|apiext|reflink|attr|tname|code"
WORDS = "undefined|must|can|cannot|may|should|required|optional|eq"
PLAIN = (
    (re.compile(rf"\b(?:{LINKS}):(?=[\w{{\[]|[,.;)]|\s|$)"), ""),
    (re.compile(rf"\b({WORDS}):(?=[\w{{\[]|[,.;)]|\s|$)"), r"\1"),
    (re.compile(r"<<[^,>]+,\s*([^>]*)>>"), r"\1"),
    (re.compile(r"<<([^>]+)>>"), r"\1"),
    (re.compile(r"https?://\S+\[([^\]]*)\]"), r"\1"),
    (re.compile(r"(?:latexmath|eq|etext|footnote\w*):?\[([^\]]*)\]"), r"\1"),
    (re.compile(r"\{([\w-]+)\}"), r"\1"),
    (re.compile(r"[`*~^]|(?<!\w)_|_(?!\w)|\+\+"), ""),
    (re.compile(r"\s+"), " "),
)


def plain(text: str) -> str:
    """A text without markup, its white space single.

    >>> plain("flink:vkCmdX must: be _in order_ with <<a-b,\\n  this one>>, {refpage}'s pname:p.")
    "vkCmdX must be in order with this one, refpage's p."
    """
    for pattern, replacement in PLAIN:
        text = pattern.sub(replacement, text)
    return text.strip()


@dataclass
class _Reader:
    """State of the reader at a line: the section, the open fence, the lines of the sentence so far."""

    chapter: str
    page: str = ""
    """The command or struct whose description is open."""
    anchor: str = ""
    heading: str = ""
    """The anchor of the heading, which counts again after the description of a command or struct."""
    fence: str = ""
    hidden: bool = False
    """The next block is no text: a note, or code."""
    opening: str = ""
    """The refpage whose block the next `--` opens."""
    usage: str = ""
    """Within valid usage: the number of the statement that was read last, or a blank before the first."""
    where: tuple[str, bool] = "", False
    """Section of the sentence that is read, and whether that is valid usage."""
    lines: list[Line] = field(default_factory=list)

    def read(self, lines: Iterator[Line]) -> Iterator[Sentence]:
        for line in lines:
            yield from self._read(line)
        yield from self._end()

    def _read(self, line: Line) -> Iterator[Sentence]:
        text = line.text
        if self.fence:
            if text == self.fence:
                self.fence = ""
        elif not text or text == "+":
            yield from self._end()
            self.hidden = self.hidden and not self.lines and text == ""
        elif text.startswith("//") and not FENCE.match(text):
            return
        elif FENCE.match(text) and not (HEADING.match(text)):
            yield from self._end()
            if self.hidden or not text.startswith("="):
                self.fence, self.hidden = text.rstrip() if not text.startswith("`") else "```", False
        elif self._mark(text):
            yield from self._end()
        else:
            yield from self._text(line)

    def _mark(self, text: str) -> bool:
        """Whether the line is no text but says something of the lines after it."""
        page, anchor = REFPAGE.match(text), ANCHOR.fullmatch(text)
        if text == "****":
            self.usage = "" if self.usage else " "
        elif page:
            self.opening = page[1]
        elif text == "--":
            if self.opening:
                self.page, self.anchor, self.opening = self.opening, "", ""
            else:
                self.page, self.anchor = "", self.heading
        elif anchor:
            self.anchor = anchor[1]
        elif HEADING.match(text):
            self.hidden, self.heading = False, self.anchor
        elif ADMONITION.match(text):
            self.hidden = True
        elif not NOISE.match(text):
            return False
        return True

    def _text(self, line: Line) -> Iterator[Sentence]:
        text = line.text
        found = ITEM.match(text)
        if found:
            yield from self._end()
            text = LABEL.sub("", text if found[0].rstrip().endswith("::") else text[found.end() :], count=1)
        elif text.startswith("|") or " | " in text:
            yield from self._end()
            text = text.lstrip("| ")
        anchor = ANCHOR.match(text.strip())
        if anchor:
            text = ANCHOR.sub("", text, count=1)
            if self.usage:
                self.usage = anchor[1]
            else:
                self.anchor = anchor[1]
        if not self.lines:
            self.where = self.usage.strip() or self.anchor or self.page, bool(self.usage)
        self.lines.append(Line(text, line.core))
        if END.search(text):
            yield from self._end()

    def _end(self) -> Iterator[Sentence]:
        """The sentence so far."""
        text = plain(" ".join(line.text for line in self.lines))
        if text:
            yield Sentence(self.chapter, self.where[0], text, self.lines[0].core, self.where[1])
        self.lines = []


def sentences(chapter: str, lines: Iterator[Line]) -> Iterator[Sentence]:
    """The sentences of a chapter."""
    yield from _Reader(chapter, usage=" " if chapter.startswith(COMMON) else "").read(lines)

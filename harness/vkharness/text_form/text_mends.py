"""What mends a text, and what in it is wider than it needs: lines are changed, and both judges asked again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vkharness.agreement import compare
from vkharness.findings import Finding, UserError
from vkharness.model import judge_stream_events
from vkharness.needed_scopes import needed
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.text_form.dependency_text import spell_scope
from vkharness.text_form.stream_text import parse

MOST_JUDGED = 120
"""Changed texts that are judged."""
SOURCE = "text"
_SCOPE = re.compile(r"[A-Z][A-Z0-9_|]*(?:/[A-Z0-9_|]+)?")
_DEPENDENCY = re.compile(rf"({_SCOPE.pattern}) > ({_SCOPE.pattern})")
_NUMBER = re.compile(r"\bs(\d+)\b")


class TextChange(NamedTuple):
    """A change of a text: `text` is the whole changed one, `line` where it differs first, from 1."""

    line: int
    what: str
    text: str


def judged(text: str) -> list[Finding]:
    """The findings of syncval, which the model must share. Raises `TextError`, or `UserError` where the two differ."""
    stream = parse(text, SOURCE)
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    findings = [found for each in stream for found in validator.consume(each)] + validator.finish()
    if compare(findings, judge_stream_events(stream)).disagreements:
        raise UserError("the two judges differ on this text: please report it")
    return findings


class _Judge:
    """Judges changed texts, up to a number of them."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.left = MOST_JUDGED
        self.known = self._kinds(text)

    def _kinds(self, text: str) -> set[tuple[str, ...]] | None:
        try:
            return {_kind(each) for each in judged(text)}
        except (ValueError, UserError):
            return None

    def found(self, lines: Sequence[str]) -> set[tuple[str, ...]] | None:
        """What is found in changed lines; None where they cannot be read or judged, or too many were."""
        self.left -= 1
        return self._kinds("\n".join(lines)) if self.left >= 0 else None


def _kind(finding: Finding) -> tuple[str, ...]:
    """Of lines whose numbers may change."""
    place, prior = finding.place, finding.prior
    return (finding.hazard, place.command, prior.command, finding.access, finding.prior_access, str(finding.resource))


def mends(text: str) -> list[TextChange]:
    """For each finding the smallest line that takes it away and brings no other, where one line or two ends do."""
    judge, made = _Judge(text), dict[str, TextChange]()
    for finding in judged(text):
        for line, what, lines in _candidates(judge.lines, finding):
            found = judge.found(lines)
            if found is not None and judge.known is not None and found < judge.known and _kind(finding) not in found:
                changed = "\n".join(lines)
                made.setdefault(changed, TextChange(line, what, changed))
                break
    return list(made.values())


def _candidates(lines: Sequence[str], finding: Finding) -> Iterator[tuple[int, str, list[str]]]:
    at, before = line_of(finding.place.site), line_of(finding.prior.site)
    masks = needed(finding)
    src, dst = spell_scope(masks.src_stages, masks.src_accesses), spell_scope(masks.dst_stages, masks.dst_accesses)
    submit, prior_submit = _submit_of(lines, at), _submit_of(lines, before)
    if at and masks.src_stages and masks.dst_stages and lines[at - 1][:1].isspace():
        margin = lines[at - 1][: len(lines[at - 1]) - len(lines[at - 1].lstrip())]
        barrier = f"barrier {src} > {dst}"
        yield at, f"{barrier} before line {at}", [*lines[: at - 1], margin + barrier, *lines[at - 1 :]]
    if submit and prior_submit and prior_submit < submit:
        free = 1 + max([0, *(int(each) for each in _NUMBER.findall("\n".join(lines)))])
        signal, wait = f"signal s{free}@ALL_COMMANDS", f"wait s{free}@{spell_scope(masks.dst_stages, 0)}"
        changed = list(lines)
        changed[prior_submit - 1] = _with(changed[prior_submit - 1], "signal", signal)
        changed[submit - 1] = _with(changed[submit - 1], "wait", wait)
        yield prior_submit, f"{signal} in line {prior_submit}, {wait} in line {submit}", changed
    if at and not lines[at - 1][:1].isspace():
        yield at, f"host waits before line {at}", [*lines[: at - 1], "host waits", *lines[at - 1 :]]


def _with(line: str, word: str, operation: str) -> str:
    """A submit with one more operation."""
    if f" {word} " in line:
        return line.replace(f" {word} ", f" {operation}, ", 1)
    head = re.match(r"\s*(?:next|\w+ \w+)(?: wait .*?(?= signal| fence| family|$))?", line)
    assert head is not None
    return f"{head[0]} {operation}{line[head.end() :]}"


def line_of(site: str | None) -> int:
    """The line that a site names; 0 for none."""
    number = (site or "").rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _submit_of(lines: Sequence[str], at: int) -> int:
    """The line of the submit that has a line; 0 where none has."""
    while at and (lines[at - 1][:1].isspace() or not lines[at - 1]):
        at -= 1
    return at if at and lines[at - 1].startswith(("submit", "bind", "next")) else 0


def wider(text: str) -> list[TextChange]:
    """Each part of a dependency without which no other finding comes up: a whole dependency, else single names."""
    judge, made = _Judge(text), list[TextChange]()
    for number, line in enumerate(judge.lines, 1):
        for found in _DEPENDENCY.finditer(line):
            for what, changed in _narrower(line, found):
                lines = [*judge.lines[: number - 1], *([changed] if changed.strip() else []), *judge.lines[number:]]
                if judge.known is not None and judge.found(lines) == judge.known:
                    made.append(
                        TextChange(number, f"{what} of line {number} orders nothing that is accessed", "\n".join(lines))
                    )
                    if not changed.strip():
                        break
    return made


def _narrower(line: str, found: re.Match[str]) -> Iterator[tuple[str, str]]:
    if line.strip() == f"barrier {found[0]}":
        yield "the barrier", ""
    for group in (1, 2):
        stages, slash, accesses = found[group].partition("/")
        for which, names in (("stages", stages.split("|")), ("accesses", accesses.split("|"))):
            for name in names if slash or which == "stages" else ():
                left = "|".join(each for each in names if each != name)
                if which == "stages" and not left:
                    continue
                scope = f"{left}{slash}{accesses}" if which == "stages" else stages + (f"/{left}" if left else "")
                yield name, line[: found.start(group)] + scope + line[found.end(group) :]

"""Links to the playground: from each rule, hazard and system to a smallest stream, out of the data that tests judge."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from vkharness.fuzz.kept_streams import kept_streams
from vkharness.report.rules import rule_of
from vkharness.text_form.format import canonical
from vkharness.text_form.text_mends import judged

ROOT = Path(__file__).resolve().parents[1]
DIFF = re.compile(r"^```diff\n(?P<stream>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(?P<marks>##+) (?P<title>.+)$", re.MULTILINE)
SYSTEMS = ROOT / "ci" / "playground" / "systems.toml"
"""Streams of the pages about systems."""


class Stream(NamedTuple):
    """A stream of the playground, and the hazards that it claims to have."""

    text: str
    finds: tuple[str, ...]


def href(text: str, up: str = "") -> str:
    """The address of a text in the playground."""
    return f"{up}playground.html#{quote(text, safe='')}"


def of_hazards(page: str) -> Iterator[tuple[re.Match[str], Stream, Stream]]:
    """Each stream of docs/hazards.md: where it stands, as it is, and mended."""
    for found in DIFF.finditer(page):
        yield found, _side(found["stream"], "-"), _side(found["stream"], "+")


def _side(stream: str, sign: str) -> Stream:
    text = canonical("\n".join(line[1:] for line in stream.splitlines() if line[:1] in (" ", sign)))
    return Stream(text, _finds(text))


def _finds(text: str) -> tuple[str, ...]:
    return tuple(each.hazard for each in judged(text))


@cache
def of_rules() -> dict[str, Stream]:
    """By the anchor of a rule the smallest stream with a finding of it."""
    page = (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8")
    texts = [bad.text for _, bad, _ in of_hazards(page)]
    texts += [canonical(each.text) for each in kept_streams([ROOT / "scenarios" / "streams"])]
    found: dict[str, Stream] = {}
    for text in sorted(texts, key=lambda each: (each.count("\n"), len(each), each)):
        findings = judged(text)
        for anchor in map(rule_of, findings):
            found.setdefault(anchor, Stream(text, tuple(each.hazard for each in findings)))
    return found


@cache
def of_systems() -> dict[str, list[tuple[str, Stream]]]:
    """By the name of a page about a system the streams of it, with their titles."""
    found: dict[str, list[tuple[str, Stream]]] = {}
    for each in tomllib.loads(SYSTEMS.read_text(encoding="utf-8"))["stream"]:
        found.setdefault(each["page"], []).append((each["name"], Stream(each["text"], tuple(each["finds"]))))
    return found


def with_links(page: str, markdown: str) -> str:
    """A page, named as in docs/, with its links."""
    if page == "hazards.md":
        for found, bad, good in reversed(list(of_hazards(markdown))):
            links = f"\n\n{_link(bad, 'Try it')} · {_link(good, 'mended')}"
            markdown = markdown[: found.end()] + links + markdown[found.end() :]
    elif page == "rules.md":
        markdown = HEADING.sub(_with_rule, markdown)
    elif page.startswith("systems/") and (several := of_systems().get(Path(page).stem)):
        links = " · ".join(_link(stream, name, "../") for name, stream in several)
        head, newline, rest = markdown.partition("\n")
        markdown = f"{head}{newline}\nTry it: {links}\n{rest}"
    return markdown


def _with_rule(found: re.Match[str]) -> str:
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", found["title"].lower()).strip())
    stream = of_rules().get(anchor)
    return found[0] if stream is None else f"{found[0]}\n\n{_link(stream, 'Try it')}"


def _link(stream: Stream, name: str, up: str = "") -> str:
    return f'<a class="try-it" href="{href(stream.text, up)}">{name}</a>'

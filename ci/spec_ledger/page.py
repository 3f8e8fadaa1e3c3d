"""docs/specification.md: the ledger chapter by chapter, made of `ledger.tsv` and `bindings.toml` alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ci.spec_ledger.ledger import KINDS, REGISTRY, ROOT, Bindings, Entry, Ledger
from ci.spec_ledger.patterns import PATTERNS

HEAD = """\
# Specification

vkharness knows version {version} of the Vulkan specification (commit `{commit}` of Vulkan-Docs). A script reads the
specification's sources and finds each sentence that fixes an access, an order or a scope, and of Vulkan's registry each
stage, access, command, struct, flag and feature that does. Each of them is *bound*: to a rule of [Rules](rules.md), to
a scenario, a kept stream or a test, to a gap that [Limits](limits.md) names, or to a reason why it is about neither
accesses nor order of a program. This page is made of that ledger. It copies no sentence: a row says where to read.

* `ci/ledger --check SPEC` holds a checkout of the sources against the ledger: what is new, changed, gone or unbound
  there fails. Contributing says how to go on with a new version.
* `pytest tests/docs/test_specification.py` needs no sources. What is bound must exist, and this page must be what the
  ledger makes.

"Core" is what Vulkan 1.4 has without any extension.
"""


def page(ledger: Ledger, bound: Bindings) -> str:
    """The whole page."""
    parts = [
        HEAD.format(version=ledger.version, commit=ledger.commit),
        _summary(ledger),
        _patterns(),
        _reasons(ledger, bound),
    ]
    parts += ["## Chapters\n", _chapters(ledger), *_sections(ledger)]
    return "\n".join(parts)


def anchors(path: Path) -> set[str]:
    """The anchors of a page, as GitHub and MkDocs make them."""
    titles = re.findall(r"^##+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def missing(targets: set[str], bound: Bindings) -> Iterator[str]:
    """A line for each target that does not exist."""
    known = {
        "rule": anchors(ROOT / "docs" / "rules.md"),
        "gap": anchors(ROOT / "docs" / "limits.md"),
        "not": bound.reasons,
    }
    for target in sorted(targets):
        kind, _, name = target.partition(" ")
        if not (_tested(name) if kind == "test" else name in known.get(kind, ())):
            yield f"{target}: {_where(kind)} has it no more; bind what is bound to it anew in bindings.toml"


def _tested(name: str) -> bool:
    """Whether a file has a scenario, a stream or a test of this name."""
    file, _, test = name.partition("::")
    looked = re.compile(rf"def {re.escape(test)}\b|^name = \"{re.escape(test)}\"", re.MULTILINE)
    return (ROOT / file).is_file() and looked.search((ROOT / file).read_text(encoding="utf-8")) is not None


def _where(kind: str) -> str:
    return {"rule": "docs/rules.md", "gap": "docs/limits.md", "not": "[reasons]"}.get(kind, "no file")


def _summary(ledger: Ledger) -> str:
    rows = [("all", ledger.entries)]
    rows += [("core", [each for each in ledger.entries if each.core])]
    rows += [("sentences", [each for each in ledger.entries if each.chapter != REGISTRY])]
    rows += [("registry", [each for each in ledger.entries if each.chapter == REGISTRY])]
    lines = [
        "| | bound | to a rule | to a scenario, stream or test | to a gap | to a reason |",
        "|---|---|---|---|---|---|",
    ]
    for name, entries in rows:
        counts = Counter(each.target.partition(" ")[0] for each in entries)
        share = f"{counts['gap']} ({100 * counts['gap'] / max(1, len(entries)):.1f} %)"
        cells = [name, str(len(entries)), str(counts["rule"]), str(counts["test"]), share, str(counts["not"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _patterns() -> str:
    lines = ["## What is looked for\n", "| pattern | it |", "|---|---|"]
    lines += [f"| {each.name} | {each.reason} |" for each in PATTERNS]
    return "\n".join(lines) + "\n"


def _reasons(ledger: Ledger, bound: Bindings) -> str:
    counts = Counter(each.target for each in ledger.entries)
    lines = ["## Reasons\n", "| class | bound | what it says of the sentence |", "|---|---|---|"]
    lines += [f"| {name} | {counts[f'not {name}']} | {_linked(reason)} |" for name, reason in bound.reasons.items()]
    return "\n".join(lines) + "\n"


def _linked(text: str) -> str:
    return re.sub(r"\((limits\.md)#([\w-]+)\)", r"([Limits](\1#\2))", text)


def _chapters(ledger: Ledger) -> str:
    lines = ["| chapter | bound | rule | test | gap | reason |", "|---|---|---|---|---|---|"]
    for chapter in _names(ledger):
        counts = ledger.counts(chapter)
        cells = [f"[{chapter}](#{_anchor(chapter)})", str(sum(counts.values())), *(str(counts[kind]) for kind in KINDS)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _names(ledger: Ledger) -> list[str]:
    return sorted({each.chapter for each in ledger.entries}, key=lambda name: (name == REGISTRY, name.lower()))


def _anchor(chapter: str) -> str:
    return re.sub(r"[^\w -]", "", chapter.lower()).replace(" ", "-")


def _sections(ledger: Ledger) -> Iterator[str]:
    for chapter in _names(ledger):
        entries = [each for each in ledger.entries if each.chapter == chapter]
        lines = [f"### {chapter}\n"]
        for kind, title in (("rule", "Rules"), ("test", "Scenarios, streams and tests"), ("gap", "Gaps")):
            said = [f"{_link(target)} {count}" for target, count in _counted(entries, kind)]
            if said:
                lines.append(f"{title}: {', '.join(said)}.\n")
        gaps = Counter(each.section for each in entries if each.target.startswith("gap "))
        if gaps:
            lines.append(f"Where the gaps are: {', '.join(f'`{section}`' for section in sorted(gaps))}.\n")
        yield "\n".join(lines)


def _counted(entries: list[Entry], kind: str) -> list[tuple[str, int]]:
    counts = Counter(each.target for each in entries if each.target.startswith(f"{kind} "))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _link(target: str) -> str:
    kind, _, name = target.partition(" ")
    if kind == "test":
        file, _, test = name.partition("::")
        return f"`{test}` ({file.removeprefix('tests/').removeprefix('scenarios/')})"
    return f"[{name.replace('-', ' ')}]({'rules' if kind == 'rule' else 'limits'}.md#{name})"

"""The ledger of the specification without its sources: what is bound exists, and the page is what the ledger makes."""

from __future__ import annotations

import re

from ci.spec_ledger.ledger import KINDS, OURS, REGISTRY, ROOT, Bindings, Ledger
from ci.spec_ledger.page import anchors, missing, page

LEDGER = Ledger.read(OURS.ledger)
BOUND = Bindings.read(OURS.bindings)
PAGE = OURS.page
MOST_WORDS = 8
"""Of a citation: no sentence of the specification is copied."""


def test_what_is_bound_to_exists() -> None:
    assert list(missing({line.target for line in BOUND.lines} | {each.target for each in LEDGER.entries}, BOUND)) == []


def test_a_target_that_is_not_there_is_named() -> None:
    wrong = {
        "rule no-such-rule",
        "gap no-such-gap",
        "not reason",
        "test tests/docs/test_specification.py::test_nothing",
        "test tests/no_file.py::test_nothing",
        "other rule",
    }
    right = "test scenarios/streams/access.toml::two markers come in any order"
    assert [line.partition(":")[0] for line in missing({*wrong, right}, BOUND)] == [
        each.partition(":")[0] for each in sorted(wrong)
    ]


def test_everything_is_bound() -> None:
    entries = LEDGER.entries
    assert len(entries) > 2000
    assert [each.place for each in entries if each.target.partition(" ")[0] not in KINDS] == []


def test_an_entry_stands_once() -> None:
    keys = [each[:3] for each in LEDGER.entries]
    assert len(keys) == len(set(keys))


def test_nothing_is_copied() -> None:
    for each in LEDGER.entries:
        assert len(each.words.split()) <= MOST_WORDS, each
        assert each.chapter == REGISTRY or re.fullmatch(r"[0-9a-f]{10}", each.hash), each
    for line in BOUND.lines:
        parts = line.words.pattern.split("|") if line.words else []
        assert all(len(part.split()) <= MOST_WORDS for part in parts), parts


def test_every_entry_is_bound_by_a_line_that_is_still_there() -> None:
    targets = {line.target for line in BOUND.lines}
    assert sorted({each.target for each in LEDGER.entries} ^ targets) == []


def test_the_page_is_what_the_ledger_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(LEDGER, BOUND), "run ci/ledger --page"
    assert "specification.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_page_says_which_version_is_known() -> None:
    assert re.fullmatch(r"1\.\d+\.\d+", LEDGER.version)
    assert re.fullmatch(r"[0-9a-f]{40}", LEDGER.commit)
    assert LEDGER.version in PAGE.read_text(encoding="utf-8").partition("##")[0]


def test_every_chapter_has_a_section() -> None:
    linked = set(re.findall(r"\]\(#([\w-]+)\)", PAGE.read_text(encoding="utf-8")))
    assert linked == anchors(PAGE) - {"what-is-looked-for", "reasons", "chapters"}

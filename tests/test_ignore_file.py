"""Files of known findings: what an entry covers, and that a wrong, expired or useless entry is one clear line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from vkharness.findings import Finding, Hazard, Place, UserError
from vkharness.ignore_file import IgnoreFile, read_ignore_file

TODAY = date(2026, 7, 1)
Read = Callable[[str], IgnoreFile]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def from_text(text: str) -> IgnoreFile:
        path = tmp_path / "known.toml"
        path.write_text(text, encoding="utf-8")
        return read_ignore_file(path, TODAY)

    return from_text


def finding(**more: Any) -> Finding:
    place, prior = Place(20, "vkCmdDraw", "/src/app.py:20"), Place(10, "vkCmdDraw", "/src/app.py:10")
    values: dict[str, Any] = {
        "labels": ("main pass", "opaque"),
        "prior_labels": ("shadow pass",),
        "names": {7: "shadow map"},
    }
    return Finding(Hazard.READ_AFTER_WRITE, "read", "write", place, prior, 7, "VkImage", **(values | more))


@pytest.mark.parametrize(
    "pattern",
    [
        'hazard = "READ_AFTER_WRITE"',
        'hazard = "*_AFTER_WRITE"',
        'resource = "shadow*"',
        'site = "*/app.py:20"',
        'site = "*/app.py:10"',
        'label = "main pass / *"',
        'label = "shadow pass"',
        'hazard = "READ*"\nresource = "shadow map"\nsite = "*"\nlabel = "*opaque"',
    ],
)
def test_an_entry_covers_what_fits(read: Read, pattern: str) -> None:
    entries, found = read(f'[[ignore]]\n{pattern}\nreason = "known"\n'), finding()
    entries.mark([found])
    assert (found.ignored, found.counts) == ("known", False)
    assert found.to_dict()["ignored"] is True
    assert found.to_dict()["ignored_reason"] == "known"
    entries.require_use()


@pytest.mark.parametrize(
    "pattern",
    [
        'hazard = "WRITE_AFTER_READ"',
        'resource = "Shadow map"',
        'site = "app.py:20"',
        'label = "main pass"',
        'label = "opaque"',
        'hazard = "READ*"\nresource = "another"',
    ],
)
def test_an_entry_leaves_what_does_not_fit(read: Read, pattern: str) -> None:
    entries, found = read(f'[[ignore]]\n{pattern}\nreason = "known"\n'), finding()
    entries.mark([found])
    assert (found.ignored, found.counts) == ("", True)
    assert found.to_dict()["ignored"] is False
    with pytest.raises(UserError, match=r"known\.toml: entry 1 covers no finding, .*\(known\)"):
        entries.require_use()


def test_the_first_entry_that_covers_a_finding_counts(read: Read) -> None:
    entries = read('[[ignore]]\nhazard = "*"\nreason = "one"\n[[ignore]]\nhazard = "READ*"\nreason = "two"\n')
    found = finding()
    entries.mark([found])
    assert found.ignored == "one"
    assert [each.partition("entry ")[2][:1] for each in entries.unused()] == ["2"]


def test_an_entry_holds_until_its_last_day(read: Read) -> None:
    text = '[[ignore]]\nhazard = "*"\nreason = "issue\\n 812"\nexpires = {}\n'
    assert len(read(text.format("2026-07-01")).entries) == 1
    with pytest.raises(UserError, match=r"known\.toml: entry 1 expired on 2026-06-30 \(issue 812\)$"):
        read(text.format("2026-06-30"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[ignore]", "is no TOML"),
        ("\x00", "is no TOML"),
        ("a = " + "[" * 5000, "is no TOML"),
        ("ignore = 3", "has [[ignore]] entries and nothing else"),
        ("ignore = [3]", "entry 1 is no table"),
        ("[[muted]]\nreason = 'x'", "has [[ignore]] entries and nothing else"),
        ("[[ignore]]\nhazard = '*'", "entry 1 has no reason"),
        ("[[ignore]]\nhazard = '*'\nreason = ' '", "entry 1: reason is no text"),
        ("[[ignore]]\nhazard = 3\nreason = 'x'", "entry 1: hazard is no text"),
        ("[[ignore]]\nreason = 'x'", "entry 1 has none of hazard, resource, site, label"),
        (
            "[[ignore]]\nhazards = '*'\nreason = 'x'",
            "entry 1 has 'hazards': the keys are hazard, resource, site, label,",
        ),
        ("[[ignore]]\nhazard = '*'\nreason = 'x'\nexpires = '2026'", "entry 1: expires is no date"),
        ("[[ignore]]\nhazard = '*'\nreason = 'x'\nexpires = 2026-01-01T00:00:00", "entry 1: expires is no date"),
    ],
)
def test_a_wrong_file_is_one_line(read: Read, text: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        read(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_ignore_file(tmp_path / "none.toml", TODAY)

"""Call sites: which frames of two stacks are shown, and what that makes of groups and of lists of known findings."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.support.streams import two_buffers
from vkharness.call_sites import (
    DEEPEST,
    MOST_STACKS,
    CallSite,
    CallStacks,
    Frame,
    between,
    common_frames,
    frames_of,
    shown,
)
from vkharness.commands.interpret import Interpreter
from vkharness.findings import Finding, Hazard, Place
from vkharness.groups import Repetitions, groups_of
from vkharness.ignore_file import read_ignore_file
from vkharness.report.stack_text import StackText, relative, stack_text
from vkharness.trace.effects import Recorded

COPY = Frame("lib.py:3", "copy")
MAIN = Frame("app.py:90", "<module>")


def stack(stacks: CallStacks, *callers: tuple[int, str]) -> str:
    """The site of a copy behind the helper, by the lines of app.py that led there."""
    return stacks.site((COPY, *(Frame(f"app.py:{line}", function) for line, function in callers), MAIN))


def found(site: str | None, prior: str | None, resource: int = 7) -> Finding:
    late, early = Place(2, "vkCmdCopyBuffer", site), Place(1, "vkCmdCopyBuffer", prior)
    return Finding(Hazard.READ_AFTER_WRITE, "read", "write", late, early, resource, "VkBuffer")


def test_a_helper_with_one_caller_is_shown_itself() -> None:
    stacks = CallStacks()
    site = stack(stacks, (20, "shadow_pass"))
    assert shown(site) == "lib.py:3"
    stack(stacks, (40, "bloom_pass"))
    assert shown(site) == "app.py:20", "the helper has two callers now"


def test_sites_with_one_line_and_two_stacks_are_two_and_equal_to_the_line() -> None:
    stacks = CallStacks()
    one, other = stack(stacks, (20, "shadow_pass")), stack(stacks, (40, "bloom_pass"))
    assert one != other and one == "lib.py:3" == other and len({one, other}) == 2
    assert stack(stacks, (20, "shadow_pass")) is one
    assert stack(CallStacks(), (20, "shadow_pass")) == one, "stacks of another stream"


def test_bugs_behind_one_helper_are_groups_of_their_own() -> None:
    stacks = CallStacks()
    sites = [
        stack(stacks, (line, name)) for line, name in ((20, "shadow"), (21, "shadow"), (40, "bloom"), (41, "bloom"))
    ]
    groups = groups_of([found(sites[1], sites[0]), found(sites[3], sites[2]), found(sites[1], sites[0])])
    assert [(each.first.prior_site, each.first.site, each.count) for each in groups] == [
        ("app.py:20", "app.py:21", 2),
        ("app.py:40", "app.py:41", 1),
    ]


def test_who_calls_a_function_that_is_wrong_does_not_matter() -> None:
    """A frame that is rendered once to warm up, and then in a loop, has one bug."""
    stacks = CallStacks()
    findings = []
    for line in (60, 70):
        first, second = (
            stacks.site((Frame(f"app.py:{at}", "render"), Frame(f"app.py:{line}", "<module>"))) for at in (10, 11)
        )
        findings.append(found(second, first))
    (group,) = groups_of(findings)
    assert group.count == 2 and (group.first.prior_site, group.first.site) == ("app.py:10", "app.py:11")


def test_a_line_that_races_with_itself_is_shown_behind_its_helpers() -> None:
    stacks = CallStacks()
    site = stack(stacks, (20, "shadow_pass"))
    stack(stacks, (40, "bloom_pass"))
    assert [each.site for each in between(site, site)[0]] == ["lib.py:3", "app.py:20"]


def test_texts_without_a_stack_are_sites_as_before() -> None:
    assert shown("app.py:7") == "app.py:7" and between(None, "app.py:7") == ((), (Frame("app.py:7", ""),))
    (group,) = groups_of([found("app.py:7", "app.py:6"), found("app.py:7", "app.py:6", 8)])
    assert (group.first.site, group.first.prior_site) == ("app.py:7", "app.py:6")
    assert found(None, None).site is None and found(None, None).to_dict()["stack"] == []


def test_what_is_counted_without_being_kept_is_told_apart_by_its_stack() -> None:
    stacks = CallStacks()
    sites = [stack(stacks, (line, name)) for line, name in ((20, "shadow"), (40, "bloom"))]
    repetitions = Repetitions()
    kept = [each for site in sites for _ in range(300) for each in repetitions.first([found(site, site)])]
    assert [each.count for each in groups_of(kept)] == [300, 300]


def covered(folder: Path, pattern: str, *findings: Finding) -> list[bool]:
    """Which findings an entry with this pattern of a site covers."""
    path = folder / "known.toml"
    path.write_text(f'[[ignore]]\nsite = "{pattern}"\nreason = "known"\n')
    for each in findings:
        each.ignored = ""
    read_ignore_file(path, date(2026, 1, 31)).mark(findings)
    return [bool(each.ignored) for each in findings]


def test_muting_one_caller_of_a_helper_leaves_the_other(tmp_path: Path) -> None:
    stacks = CallStacks()
    findings = [
        found(stack(stacks, (line + 1, name)), stack(stacks, (line, name)))
        for line, name in ((20, "shadow"), (40, "bloom"))
    ]
    assert covered(tmp_path, "app.py:20", *findings) == [True, False]
    assert covered(tmp_path, "lib.py:3", *findings) == [True, True]
    assert covered(tmp_path, "app.py:90", *findings) == [False, False], "both accesses have it in common"


def test_what_is_muted_does_not_depend_on_what_was_called_before(tmp_path: Path) -> None:
    stacks = CallStacks()
    finding = found(stack(stacks, (21, "shadow")), stack(stacks, (20, "shadow")))
    alone = found(stack(CallStacks(), (20, "shadow")), None)
    for _ in range(2):
        assert covered(tmp_path, "app.py:20", finding, alone) == [True, True]
        assert covered(tmp_path, "app.py:90", finding, alone) == [False, True]
        stack(stacks, (40, "bloom"))
        assert finding.prior_site == "app.py:20", "the helper has two callers now"


def test_words_name_the_helper_the_callers_and_who_called_both() -> None:
    stacks = CallStacks()
    outer = ((70, "frame"), (80, "main"))
    first, second = stack(stacks, (20, "shadow"), *outer), stack(stacks, (21, "shadow"), *outer)
    way = "in shadow, through copy at lib.py:3"
    assert stack_text(found(second, first)) == StackText(way, way, "from frame at app.py:70, main at app.py:80")
    other = stack(stacks, (40, "bloom"), (71, "frame"), (80, "main"))
    words = stack_text(found(other, second))
    assert words.place == "in bloom, through copy at lib.py:3, from frame at app.py:71"
    assert words.both == "from main at app.py:80"
    assert stack_text(found("a.py:2", "a.py:1")) == StackText("", "", "")


def test_files_below_the_current_folder_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert relative(f"{tmp_path}/sub/app.py:7") == "sub/app.py:7"
    assert relative(f"{tmp_path}-other/app.py:7") == f"{tmp_path}-other/app.py:7"
    assert relative("app\x1b.py:7") == "app\\x1b.py:7"


def test_stacks_beyond_the_limit_are_their_innermost_line() -> None:
    stacks = CallStacks()
    for line in range(MOST_STACKS):
        stacks.site((COPY, Frame(f"app.py:{line}", "f")))
    beyond = stacks.site((COPY, Frame("app.py:-1", "f")))
    assert beyond == "lib.py:3" and not isinstance(beyond, CallSite) and len(frames_of(beyond)) == 1


def deep(*inner: Frame) -> tuple[Frame, ...]:
    """A stack behind many callers, cut as it is recorded."""
    return (*inner, *(Frame(f"app.py:{line}", f"level_{line}") for line in range(100, 130)))[:DEEPEST]


def test_stacks_that_are_cut_are_laid_side_by_side_where_they_are_alike() -> None:
    early, late = (
        deep(COPY, Frame("app.py:20", "pass_")),
        deep(COPY, Frame("lib.py:9", "twice"), Frame("app.py:21", "pass_")),
    )
    assert common_frames(late, early) == (DEEPEST - 3, DEEPEST - 2)
    stacks = CallStacks()
    for line in (50, 51):  # whatever is called in them has several callers
        stacks.site((*deep(COPY, Frame("lib.py:9", "twice"))[:3], Frame(f"app.py:{line}", "other")))
        stacks.site((Frame("app.py:21", "pass_"), Frame(f"app.py:{line}", "other")))
    finding = found(stacks.site(late), stacks.site(early))
    assert (finding.site, finding.prior_site) == ("app.py:21", "app.py:20"), "no caller of both is shown"
    words = stack_text(finding)
    assert words.both.startswith("from level_100 at app.py:100, ") and "level_" not in words.place + words.prior
    shallow = (Frame("app.py:20", "pass_"), *early[2:5])
    assert common_frames(shallow, (COPY, *shallow[1:])) == (3, 3)
    assert common_frames(shallow, (*shallow[:1], *shallow[2:])) == (2, 2), "a stack that is whole has its outer end"


def test_calls_with_one_innermost_line_keep_their_own_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks, interpreter = CallStacks(), Interpreter()
    made, a, b = two_buffers(256)
    made.begin()
    sites = [stack(stacks, (line, "pass_")) for line in range(64)] + ["lib.py:3"]
    for site in sites:
        made.copy(a, b, 256)
        made.blocks[-1].site = site
    compared: list[object] = []

    def compare(one: CallSite, other: object) -> bool:
        compared.append(one)
        return str.__eq__(one, other) is True

    monkeypatch.setattr(CallSite, "__eq__", compare)
    events = [event for block in made.blocks for event in interpreter.step(block)]
    recorded = [frames_of(each.command.site) for each in events if isinstance(each, Recorded)]
    assert recorded == [frames_of(site) for site in sites]
    assert not compared, "a program has thousands of stacks behind one helper"

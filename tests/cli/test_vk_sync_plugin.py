"""`pytest --vk-sync` in anyone's project: a test that causes a hazard fails with it, and nothing else changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.recording import PROGRAMS
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.trace.codec import read_trace

CONFTEST = """
import pytest
from rig import Rig

@pytest.fixture(scope="module")
def rig():
    made = Rig()
    made.a, made.b = made.buffer()[0], made.buffer()[0]
    yield made
    made.close()
"""
TESTS = """
import pytest
from vulkan import *

def record(rig, barrier):
    commands = rig.commands()
    vkCmdFillBuffer(commands, rig.a, 0, 64, 7)
    if barrier:
        transfer = VK_PIPELINE_STAGE_TRANSFER_BIT
        info = VkMemoryBarrier(srcAccessMask=VK_ACCESS_TRANSFER_WRITE_BIT, dstAccessMask=VK_ACCESS_TRANSFER_READ_BIT)
        vkCmdPipelineBarrier(commands, transfer, transfer, 0, 1, [info], 0, None, 0, None)
    vkCmdCopyBuffer(commands, rig.a, rig.b, 1, [VkBufferCopy(0, 0, 64)])
    rig.submit(commands)

def test_sound(rig):
    record(rig, True)

def test_racy(rig):
    record(rig, False)

def test_sound_again(rig):
    record(rig, True)

def test_fails_by_itself(rig):
    record(rig, False)
    assert 1 == 2

@pytest.fixture
def racy_set_up(rig):
    record(rig, False)
    yield
    record(rig, False)

def test_between(racy_set_up):
    pass

@pytest.mark.xfail(strict=True)
def test_known_race(rig):
    record(rig, False)
"""


ADVISED = """
def test_advised(rig):
    event, transfer = vkCreateEvent(rig.device, VkEventCreateInfo(), None), VK_PIPELINE_STAGE_TRANSFER_BIT
    commands = rig.commands()
    vkCmdSetEvent(commands, event, transfer)
    vkCmdResetEvent(commands, event, transfer)
    rig.submit(commands)
    vkDestroyEvent(rig.device, event, None)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)
    pytester.makeconftest(CONFTEST)
    shutil.copy(PROGRAMS / "rig.py", pytester.path / "rig.py")
    return pytester


def test_racy_tests_fail_with_the_finding(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-rA", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=3, errors=1, xfailed=1)
    text = result.stdout.str()
    sound, racy = ("PASSED test_theirs.py::test_sound", "FAILED test_theirs.py::test_racy")
    assert sound in text
    assert racy in text
    site = "*test_theirs.py"
    lines = [
        "1. SYNC-HAZARD-READ-AFTER-WRITE: *",
        f"*vkCmdCopyBuffer at {site}:11",
        f"*vkCmdFillBuffer at {site}:6",
        "*rule: docs/rules.md#read-after-write",
    ]
    result.stdout.fnmatch_lines(lines)
    assert "ERROR test_theirs.py::test_between" in text
    assert "FAILED test_theirs.py::test_between" in text


def test_a_test_that_fails_by_itself_keeps_its_failure(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-k", "by_itself", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, deselected=5)
    result.stdout.fnmatch_lines(["*assert 1 == 2", "*vkharness*", "1. SYNC-HAZARD-READ-AFTER-WRITE: *"])


def test_advice_is_a_warning(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS + ADVISED)
    result = project.runpytest_subprocess("--vk-sync", "-k", "advised", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, deselected=6, warnings=1)
    result.stdout.fnmatch_lines(["*VkSyncWarning: 1. SYNC-vkCmdResetEvent-set-race: *"])


def test_without_the_option_nothing_is_mirrored(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("-k", "racy or sound", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, deselected=3)


def test_tests_spread_over_processes_are_mirrored(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-n", "2", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=3, errors=1, xfailed=1)


def test_what_cannot_be_judged_is_a_warning(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_theirs="""
        import gc
        from vkharness.record.session import Session

        def test_something():
            session = next(o for o in gc.get_objects() if isinstance(o, Session))
            session.unseen("vkCmdOfTomorrow")
        """
    )
    result = project.runpytest_subprocess("--vk-sync", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*VkSyncWarning: no verdict without it, unmodelled: vkCmdOfTomorrow"])


def test_tests_without_vulkan_run_as_ever(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\nsys.modules.setdefault('vulkan', None)\ndef test_it(): assert True")
    pytester.runpytest_subprocess("--vk-sync", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_option_is_in_the_group_of_the_harness(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--help")
    result.stdout.fnmatch_lines(["*(vkharness):*", "*--vk-sync*"])


KNOWN = """
[[ignore]]
hazard = "READ_AFTER_WRITE"
site = "*test_theirs.py:*"
reason = "known"
"""


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two"])
def test_what_a_file_names_fails_no_test(project: pytest.Pytester, processes: tuple[str, ...]) -> None:
    project.makepyfile(test_theirs=TESTS)
    (project.path / "known.toml").write_text(KNOWN)
    words = ("--vk-sync", "--vk-ignore", "known.toml", "-p", "no:cacheprovider", *processes)
    result = project.runpytest_subprocess(*words)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*assert 1 == 2", "vkharness: 5 findings are ignored"])


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two"])
def test_an_entry_that_covers_nothing_fails_the_run(project: pytest.Pytester, processes: tuple[str, ...]) -> None:
    project.makepyfile(test_theirs="def test_nothing(): pass")
    (project.path / "known.toml").write_text(KNOWN)
    words = ("--vk-sync", "--vk-ignore", "known.toml", "-p", "no:cacheprovider", *processes)
    result = project.runpytest_subprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["vkharness: known.toml: entry 1 covers no finding*(known)"])
    part = project.runpytest_subprocess(*words, "-k", "nothing")
    assert part.ret == pytest.ExitCode.OK


def test_a_wrong_file_ends_the_run_with_one_line(project: pytest.Pytester) -> None:
    (project.path / "known.toml").write_text(KNOWN + "expires = 1999-12-31\n")
    result = project.runpytest_subprocess("--vk-sync", "--vk-ignore", "known.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: known.toml: entry 1 expired on 1999-12-31 (known)"])


@pytest.mark.parametrize("option", ["--vk-ignore=known.toml", "--vk-bounds", "--vk-strict"])
def test_an_option_of_vk_sync_without_it_is_refused(pytester: pytest.Pytester, option: str) -> None:
    result = pytester.runpytest_subprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {option.partition('=')[0]} goes with --vk-sync"])


def test_settings_of_vk_sync_stand_in_a_file_also_for_runs_without_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nvk_strict = true\nvk_bounds = true\nvk_ignore = known.toml")
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


MARKED = """
@pytest.mark.vk_sync(allow=["READ_AFTER_WRITE"])
def test_allowed(rig):
    record(rig, False)

@pytest.mark.vk_sync(allow=["SYNC-HAZARD-WRITE-AFTER-READ"])
def test_allows_another(rig):
    record(rig, False)
"""


def test_a_marker_allows_the_hazards_that_it_names(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS + MARKED)
    result = project.runpytest_subprocess("--vk-sync", "--strict-markers", "-k", "allow", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1, deselected=6)
    result.stdout.fnmatch_lines(["vkharness: * calls seen, 2 findings, 0 unjudged", "FAILED *::test_allows_another*"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("allow=['READ']", "vk_sync(allow=['READ']): no hazard has that name"),
        ("'READ_AFTER_WRITE'", "write the marker as vk_sync(allow=[NAME, ...])"),
        ("allow='READ_AFTER_WRITE'", "write the marker as vk_sync(allow=[NAME, ...])"),
    ],
)
def test_a_marker_that_allows_no_hazard_ends_the_run(project: pytest.Pytester, marker: str, message: str) -> None:
    project.makepyfile(test_theirs=f"import pytest\n\n@pytest.mark.vk_sync({marker})\ndef test_a():\n    pass\n")
    result = project.runpytest_subprocess("--vk-sync", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = [line for line in result.outlines + result.errlines if message in line]
    assert len(said) == 1


@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_the_trace_of_a_failing_test_is_kept(project: pytest.Pytester, processes: tuple[str, ...]) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-k", "racy or again", "-p", "no:cacheprovider", *processes)
    (trace,) = (project.path / "artifacts").glob("*.jsonl")
    result.stdout.fnmatch_lines([f"*trace: {trace}, this test: calls * to *"])
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in {each.vuid for each in Analysis().follow(read_trace(trace)).findings}
    numbers = next(line for line in result.outlines if line.startswith("vkharness: ") and "calls seen" in line)
    assert int(numbers.split()[1]) == len(list(read_trace(trace)))


def test_without_a_failing_test_no_trace_is_kept(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-k", "sound", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, deselected=4)
    result.stdout.fnmatch_lines(["vkharness: * calls seen, 0 findings, 0 unjudged"])
    assert not (project.path / "artifacts").exists()


def test_a_folder_that_was_there_stays(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    (project.path / "artifacts").mkdir()
    project.runpytest_subprocess("--vk-sync", "-k", "sound", "-p", "no:cacheprovider").assert_outcomes(
        passed=2, deselected=4
    )
    assert list((project.path / "artifacts").iterdir()) == []


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "workers"])
def test_pictures_of_failing_tests_are_kept(project: pytest.Pytester, processes: tuple[str, ...]) -> None:
    project.makepyfile(test_theirs=TESTS)
    result = project.runpytest_subprocess("--vk-sync", "-k", "test_racy", "-p", "no:cacheprovider", *processes)
    result.assert_outcomes(failed=1, deselected=0 if processes else 5)
    (line,) = (line for line in result.outlines if line.startswith("vkharness: test_theirs.py::test_racy: "))
    folder = Path(line.partition("pictures in ")[2])
    assert folder.is_relative_to(project.path / "artifacts") and folder.name.endswith("test_racy")
    record = json.loads((folder / "record.json").read_text())
    assert record["finding"]["hazard"] == "READ_AFTER_WRITE" and record["shown"]
    assert {path.stem.rpartition("-")[2] for path in folder.glob("*.png")} == {"expected", "observed", "difference"}


SAME_BYTES = """
from vulkan import *

def test_same_bytes(rig):
    commands = rig.commands()
    for _ in range(2):
        vkCmdFillBuffer(commands, rig.a, 0, 64, 7)
    rig.submit(commands)
"""


def test_why_a_failing_test_has_no_pictures(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=SAME_BYTES)
    result = project.runpytest_subprocess("--vk-sync", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["vkharness: test_theirs.py::test_same_bytes: no pictures: *"])


def test_options_may_stand_in_a_file_of_settings(project: pytest.Pytester) -> None:
    project.makepyfile(test_theirs=TESTS)
    project.makeini("[pytest]\nvk_sync = true\nvk_artifacts = kept\nvk_retries = many\n")
    result = project.runpytest_subprocess("-k", "racy", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: vk_retries: 'many' is not a whole number from 0 on"])
    project.makeini("[pytest]\nvk_sync = true\nvk_artifacts = kept\n")
    result = project.runpytest_subprocess("-k", "test_racy", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, deselected=5)
    assert (project.path / "kept" / "vk-sync.jsonl").exists()

"""Commands and writers of files that are killed: each operation on a file is a point, and what is left is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hunts.kills.kill_campaign import KillFile, KillPlan
from hunts.kills.killed_commands import COMMANDS, OURS, STREAMS, TEMPORARY
from hunts.kills.left import Left, faults_of_kill, faults_of_next, left_in
from tests.support.drivers_here import FOUND
from tests.support.written_streams import MirrorStream, buffer_calls
from vkharness.cli import cli
from vkharness.findings import UserError
from vkharness.temporary import PREFIX

ROOT = Path(__file__).resolve().parents[2]
NEEDS_LAVAPIPE = pytest.mark.skipif("lavapipe" not in FOUND, reason="lavapipe is not installed; ci/setup installs it")
LEAVES_A_CHILD = """
import os, sys, threading
from pathlib import Path
from hunts.kills.tracing import run_traced
child = "import os, threading; os.fork() or threading.Event().wait()"
command = [sys.executable, "-c", child]
ending = run_traced(command, Path.cwd(), os.environ, Path("said.txt"), lambda *_: False, 0.5)
print(ending.code, [each.partition(" -c ")[2][:9] for each in ending.orphans])
"""


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own: one that traces may have no other children."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/harness"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_writers_that_are_killed_at_each_point_leave_whole_files(tmp_path: Path) -> None:
    ran = run("-m", "tests.support.killed_writers", str(tmp_path / "files"), folder=ROOT)
    (line,) = ran.stdout.splitlines() or [ran.stderr]
    operations, _, halves, *_ = line.split()
    assert (int(operations) >= 25, int(halves) >= 6) == (True, True), line


def test_a_process_that_is_left_is_noticed_and_ended(tmp_path: Path) -> None:
    ran = run("-c", LEAVES_A_CHILD, folder=tmp_path)
    assert ran.stdout == "0 ['import os']\n", ran.stderr


@pytest.mark.driver
@NEEDS_LAVAPIPE
def test_commands_that_are_killed_leave_what_can_be_gone_on_with(tmp_path: Path) -> None:
    command = ["-m", "hunts", "kills", str(ROOT / "examples" / "two_submits.py")]
    chosen = ["--only", "run", "--only", "reduce", "--seed", "2", "-o", "kills.jsonl"]
    ran = run(*command, "--count", "1", *chosen, folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 kills (1 run, 1 reduce)" in ran.stdout and "0 faults" in ran.stdout
    again = run(*command, "--count", "1", *chosen, folder=tmp_path)
    assert again.stdout == ran.stdout
    assert len((tmp_path / "kills.jsonl").read_text().splitlines()) == 3


def stream_left(folder: Path, calls: int, *, killed: bool) -> Left:
    """What a program left that made a device, buffers and so many pools."""
    stream = MirrorStream(folder / STREAMS / "process-7", killed=killed)
    buffer_calls(stream)
    info = {"sType": 39, "pNext": None, "flags": 0, "queueFamilyIndex": 0}
    for number in range(calls):
        stream.call("vkCreateCommandPool", {"device": 2, "pCreateInfo": info, "pCommandPool": 20 + number}, 0)
    return left_in(folder, 0, COMMANDS["program"])


@pytest.mark.driver
def test_a_stream_that_is_cut_off_says_so_and_begins_as_the_whole_one(tmp_path: Path) -> None:
    program = COMMANDS["program"]
    whole, cut, lost = (
        stream_left(tmp_path / name, calls, killed=killed)
        for name, calls, killed in (("whole", 3, False), ("cut", 1, True), ("lost", 1, False))
    )
    nothing = left_in(tmp_path / "nothing", 0, program)
    assert len(whole.lines) > len(cut.lines) > 9 and not nothing.lines
    for each in (nothing, cut, whole):
        assert list(faults_of_kill(each, whole, {}, program)) == [] == list(faults_of_next(whole, whole, each, program))
    (fault,) = faults_of_kill(lost, whole, {}, program)
    assert fault.startswith("a line that no run writes: the whole stream has ")
    assert list(faults_of_next(cut, whole, cut, program)) == ["the next run has done something else"]


@pytest.mark.driver
def test_a_stream_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    program = COMMANDS["program"]
    whole = stream_left(tmp_path / "whole", 1, killed=False)
    stream_left(tmp_path / "cut", 1, killed=True)
    first = tmp_path / "cut" / STREAMS / "process-7" / "segment-00000000"
    first.write_bytes(b"other" + first.read_bytes()[5:])
    (fault, *_) = faults_of_kill(left_in(tmp_path / "cut", 0, program), whole, {}, program)
    assert fault.startswith("a line that no run writes: ")


READ = {"--ignore", "--observed", "--scenarios", "--since", "--sources"}
"""Options that name files which a command reads."""
NOT_KILLED = {
    "campaign matrix -o": "the file is that of `campaign fuzz`, and the smallest matrix takes hours",
    "fuzz hostile --total": "the same writer as that of `fuzz hostile -o`, and one line for each hunt",
}


def writing_options(group: click.Group, name: str = "") -> Iterator[str]:
    """Each option that names a file to write, behind its command."""
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        if isinstance(command, click.Group):
            yield from writing_options(command, f"{name}{each} ")
        elif command is not None:
            options = (made for made in command.params if isinstance(made, click.Option))
            named = (made.opts[0] for made in options if isinstance(made.type, click.Path))
            yield from (f"{name}{each} {option}" for option in named if option not in READ)


def test_every_option_that_names_a_file_to_write_is_hunted() -> None:
    killed = {each.arguments[len(OURS) :] for each in COMMANDS.values() if each.arguments[: len(OURS)] == OURS}
    said = {f"{' '.join(words[:count])} {word}" for words in killed for word in words for count in (1, 2)}
    wanted = set(writing_options(cli))
    assert len(wanted) > 20 and wanted - said == NOT_KILLED.keys()


def folder_with(folder: Path, **files: str) -> Path:
    (folder / TEMPORARY).mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_what_is_not_whole_is_a_fault(tmp_path: Path) -> None:
    check, campaign = COMMANDS["check"], COMMANDS["campaign"]
    good = left_in(folder_with(tmp_path / "good", out_json=f'"in {tmp_path / "good"} for 1.25","ppData":94'), 1, check)
    other = f'"in {tmp_path / "same"} for 3.5","ppData":1088876544'
    same = left_in(folder_with(tmp_path / "same", out_json=other), 1, check)
    half = left_in(folder_with(tmp_path / "half", out_json='"in'), 1, check)
    assert list(faults_of_kill(same, good, {}, check)) == [] == list(faults_of_next(same, good, same, check))
    assert list(faults_of_kill(half, good, {}, check)) == ["out.json is there and is not whole"]
    assert list(faults_of_kill(half, good, {"out.json": '"in'}, check)) == []
    assert list(faults_of_next(half, good, half, check)) == ["the next run leaves another out.json"]
    part = folder_with(tmp_path / "part", out_json='"in')
    (part / "out.json").rename(part / "out.json.partial-12-abcdefgh")
    beside = left_in(part, 0, check)
    assert list(faults_of_kill(beside, good, {"out.json": ""}, check)) == ["out.json is gone"]
    assert set(faults_of_next(beside, good, beside, check)) == {
        "the next run ends with 0, not with 1",
        "the next run leaves no out.json",
        "the next run leaves out.json.partial-*",
    }
    told, half_told = COMMANDS["run"], left_in(folder_with(tmp_path / "told", out_json='{"verdict": 1'), 1, check)
    said = left_in(folder_with(tmp_path / "said", out_json='{"verdict": 1}\n'), 1, told)
    assert (list(faults_of_kill(said, good, {}, told)), len(list(faults_of_kill(half_told, good, {}, told)))) == ([], 1)
    lines = [json.dumps({"plan": {}}), json.dumps({"number": 1, "seconds": 2.5}), json.dumps({"number": 2})]
    whole, cut = (
        left_in(folder_with(tmp_path / name, out_jsonl="\n".join(lines)[:end]), 0, campaign)
        for name, end in (("whole", None), ("cut", -1))
    )
    assert whole.lines == cut.lines == Counter({'{"number": 1}': 1})
    lost = Left(0, whole.files, Counter(), 0)
    assert "the next run loses what was done" in set(faults_of_next(lost, whole, whole, campaign))
    assert [*faults_of_kill(whole, lost, {}, campaign)] == ['a line that no run writes: {"number": 1}']


def test_a_temporary_folder_may_be_left_by_a_kill_and_not_by_the_next_run(tmp_path: Path) -> None:
    command = COMMANDS["reproduce"]
    whole = left_in(folder_with(tmp_path / "whole", a_txt="1"), 0, command)
    folder = folder_with(tmp_path / "killed", a_txt="1")
    (folder / f"{PREFIX}abcdefgh").mkdir()
    (folder / f"{PREFIX}abcdefgh" / "finding.txt").write_text("")
    killed = left_in(folder, 0, command)
    assert list(faults_of_kill(killed, whole, {}, command)) == []
    assert list(faults_of_next(killed, whole, killed, command)) == ["the next run leaves temporary folders"]


def test_a_campaign_goes_on_with_the_same_plan_only(tmp_path: Path) -> None:
    plan = KillPlan(3, ("run",), "program.py", "lavapipe")
    line = {"command": "run", "met": "write", "blow": "all", "faults": ["a"], "left_after": 0.5}
    with KillFile(tmp_path / "k.jsonl", plan) as file:
        file.append(line)
    with KillFile(tmp_path / "k.jsonl", plan) as file:
        assert (file.tally.points["run"], file.tally.faults, file.tally.longest) == (1, Counter({"run: a": 1}), 0.5)
    with pytest.raises(UserError, match="holds another plan"):
        KillFile(tmp_path / "k.jsonl", plan._replace(seed=4))

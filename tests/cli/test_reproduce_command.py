"""`vkharness reproduce` as a user meets it: the folder, what is said, and what happens where a step cannot be done."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from tests.cli.test_cli import PROGRAMS, run_vkharness
from tests.cli.test_failing_programs import SUBMITS
from tests.support.streams import Stream, two_buffers
from vkharness.case.case_folder import new_folder
from vkharness.case.shown_reduction import ShownReduction
from vkharness.check import Analysis
from vkharness.cli import cli, reproduce
from vkharness.cli.processes import Options
from vkharness.device.process import JobError, Worker
from vkharness.findings import UnwrittenError, UserError
from vkharness.groups import groups_of
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save

NO_DRIVER = "no driver to run on"


def racy(*, twice: bool = False) -> Stream:
    """A copy that does not wait for a fill; a fill that does not wait for the copy, too, if asked for."""
    stream, a, b = two_buffers(256)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 256)
    if twice:
        stream.fill(b, 9)
    stream.submit()
    return stream


def kept(folder: Path, stream: Stream) -> Path:
    path = folder / "t.jsonl"
    save(path, stream.blocks)
    return path


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The current folder, on a machine without a driver."""
    monkeypatch.setattr(reproduce, "_drivers", lambda device: ([], NO_DRIVER))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.driver
def test_a_trace_becomes_a_folder_that_stands_alone(tmp_path: Path) -> None:
    kept(tmp_path, racy())
    ran = run_vkharness("reproduce", "t.jsonl", "-o", "case", "--device", "lavapipe", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["case/index.html", "case.tar.gz"] and "could not" not in ran.stderr
    case = tmp_path / "case"
    page = (case / "index.html").read_text()
    assert not re.search(r'(?:src|href)="(?!data:)', page), "nothing is asked of another file"
    assert page.count("data:image/png") == 3 and "data:image/svg+xml" in page and "vkCmdPipelineBarrier" in page
    readme = (case / "README.txt").read_text()
    assert all(
        each.name in readme for each in case.iterdir() if each.suffix not in (".bin",) and each.name != "README.txt"
    )
    assert "scenario_read_after_write.py: passes on lavapipe" in readme and str(tmp_path) not in readme
    for command, code in (
        ("check trace.jsonl", 1),
        ("check mended.jsonl", 0),
        ("replay trace.jsonl --mode witness", 1),
    ):
        assert command in readme
        assert run_vkharness(*command.split(), cwd=case).returncode == code, command
    with tarfile.open(tmp_path / "case.tar.gz") as archive:
        names = archive.getnames()
    assert names == sorted(["case", *(str(each.relative_to(tmp_path)) for each in case.rglob("*"))])
    assert not [each for each in tmp_path.iterdir() if each.name.startswith("vkharness-")]


@pytest.mark.driver
def test_a_program_becomes_a_folder_with_its_lines(tmp_path: Path) -> None:
    program = PROGRAMS / "wrapped_copies.py"
    ran = run_vkharness(
        "reproduce", "-o", "case", "--device", "lavapipe", "--first", "1", "--", program, "--mended", cwd=tmp_path
    )
    assert ran.returncode == 1, ran.stderr
    page = (tmp_path / "case" / "index.html").read_text()
    assert "copy(commands, b, a)  # bloom, second" in page and "<code>bloom_pass</code>" in page
    assert "hazards - 2 hazards" in ran.stderr, "the verdict of `vkharness run`"


@pytest.mark.driver
def test_the_exit_code_of_a_program_without_a_call_is_that_of_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nsys.exit(7)\n")
    ran = run_vkharness("reproduce", "program.py", "-o", "case", cwd=tmp_path)
    assert ran.returncode == 7 and "no hazard was found" in ran.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.driver
def test_what_a_program_did_before_it_died_becomes_a_case(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SUBMITS + "import os; os.abort()")
    ran = run_vkharness("reproduce", "program.py", "-o", "case", "--device", "lavapipe", cwd=tmp_path)
    assert ran.returncode == 134, ran.stderr
    assert "was ended by SIGABRT" in ran.stderr and ran.stdout.splitlines()[-1] == "case.tar.gz"
    assert {each.name for each in tmp_path.iterdir()} == {"program.py", "case", "case.tar.gz"}
    assert "READ_AFTER_WRITE" in (tmp_path / "case" / "finding.txt").read_text()


def test_of_several_traces_of_a_program_the_first_with_a_hazard_counts(
    no_driver: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("traces")
    idle, a, _ = two_buffers(256)
    idle.begin()
    idle.fill(a, 7)
    idle.submit()
    traces = [folder / name for name in ("trace.vkt", "trace-2.vkt", "trace-10.vkt")]
    for path, stream in zip(traces, (idle, racy(), racy(twice=True)), strict=True):
        save(path, stream.blocks)

    def run_judged(program: str, arguments: object, options: Options) -> int:
        assert options.trace_path is not None
        for each in folder.iterdir():
            shutil.copy(each, options.trace_path.parent)
        return 1

    monkeypatch.setattr("vkharness.cli.run.run_judged", run_judged)
    ran = CliRunner().invoke(cli, ["reproduce", "-o", "case", "--", "program", "argument"])
    assert ran.exit_code == 1 and (no_driver / "case" / "finding.json").exists(), ran.output
    assert "left out: 2 in trace-10.vkt of `vkharness run --trace trace.vkt`" in ran.stderr


def test_without_a_driver_the_rest_is_there_and_each_lack_is_told_once(no_driver: Path) -> None:
    kept(no_driver, racy())
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl"])
    assert ran.exit_code == 1, ran.output
    told = [line for line in ran.stderr.splitlines() if "could not be done" in line]
    assert [line.split(": ")[2] for line in told] == ["pictures", "mended trace", "scenario"]
    assert all(line.endswith(NO_DRIVER) for line in told)
    case = no_driver / "t-case"
    assert {each.name for each in case.iterdir()} >= {
        "index.html",
        "trace.jsonl",
        "mended.jsonl",
        "mend.txt",
        "order.svg",
    }
    readme, page = (case / "README.txt").read_text(), (case / "index.html").read_text()
    assert readme.count(NO_DRIVER) == page.count(NO_DRIVER) == 3
    assert len(load(case / "trace.jsonl")) < len(load(no_driver / "t.jsonl"))


def test_several_groups_have_a_folder_each(no_driver: Path) -> None:
    kept(no_driver, racy(twice=True))
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"])
    assert ran.exit_code == 1
    assert {each.name for each in (no_driver / "case").iterdir()} == {
        "index.html",
        "README.txt",
        "finding-1",
        "finding-2",
    }
    page = (no_driver / "case" / "index.html").read_text()
    assert re.findall(r'href="([^"]+)"', page) == ["finding-1/index.html", "finding-2/index.html"]
    for options, name in ((["--finding", "2"], "WRITE_AFTER_WRITE"), (["--first", "1"], "READ_AFTER_WRITE")):
        target = no_driver / options[0].strip("-")
        assert CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", str(target), *options]).exit_code == 1
        assert json.loads((target / "finding.json").read_text())["findings"][0]["hazard"] == name


def test_what_is_ignored_becomes_no_case(no_driver: Path) -> None:
    kept(no_driver, racy(twice=True))
    known = no_driver / "known.toml"
    known.write_text('[[ignore]]\nhazard = "READ_*"\nreason = "known"\n')
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case", "--ignore", "known.toml"])
    assert ran.exit_code == 1
    (one,) = json.loads((no_driver / "case" / "finding.json").read_text())["findings"]
    assert one["hazard"] == "WRITE_AFTER_WRITE"
    known.write_text(known.read_text().replace("READ_*", "*"))
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "none", "--ignore", "known.toml"])
    assert (ran.exit_code, ran.stdout) == (0, "nothing to reproduce: no hazard was found\n")
    known.write_text(known.read_text().replace('"*"', '"host-*"'))
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "none", "--ignore", "known.toml"])
    assert isinstance(ran.exception, UserError) and "known.toml: entry 1 covers no finding" in str(ran.exception)
    assert not (no_driver / "none").exists()


class Answers:
    """A worker that shows what it is told to."""

    def __init__(self, *shown: bool) -> None:
        self._shown = list(shown)

    def call(self, job: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"shown": self._shown.pop(0), "reason": "both leave the same bytes", "at": 0}


def test_what_was_shown_of_one_hazard_is_not_asked_of_the_next() -> None:
    blocks = racy(twice=True).blocks
    driver = ShownReduction(cast(Worker, Answers(True, False)), "lavapipe")
    first, second = groups_of(Analysis().follow(blocks).findings)
    assert driver.choose(blocks, first) and driver.shown
    assert driver.choose(blocks, second) and not driver.shown
    assert driver.shows(blocks, second.first), "any smaller trace will do"


def test_a_clean_trace_leaves_nothing(no_driver: Path) -> None:
    stream, a, _ = two_buffers(256)
    stream.begin()
    stream.fill(a, 7)
    stream.submit()
    kept(no_driver, stream)
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"])
    assert (ran.exit_code, ran.stdout) == (0, "nothing to reproduce: no hazard was found\n")
    assert [each.name for each in no_driver.iterdir()] == ["t.jsonl"]
    save(no_driver / "t.jsonl", [*stream.blocks, Call(900, "vkCmdOfTheFuture", {"commandBuffer": 5}, unread="no data")])
    assert CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"]).exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["broken.jsonl"], "broken.jsonl:1"),
        (["text.txt"], "text.txt:1"),
        (["t.jsonl", "-o", "full"], "full: is there, and not empty"),
        (["t.jsonl", "-o", "t.jsonl"], "t.jsonl: is there, and no folder"),
        (["t.jsonl", "-o", "no/where"], "no/where: cannot be made"),
        (["t.jsonl", "-o", "."], ".: is no name of a new folder"),
        (["t.jsonl", "-o", "full/.."], "full/..: is no name of a new folder"),
        (["t.jsonl", "-o", "n" * 250], "cannot be made: File name too long"),
        (["t.jsonl", "-o", "old"], "old.tar.gz: is there"),
        (["t.jsonl", "--finding", "7"], "--finding 7: t.jsonl has 1 group"),
        (["t.jsonl", "--finding", "1", "--first", "1"], "choose one"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(no_driver: Path, arguments: list[str], message: str) -> None:
    kept(no_driver, racy())
    (no_driver / "broken.jsonl").write_text("{}\n")
    (no_driver / "text.txt").write_text("import os\nos.mkdir('ran')\n")
    (no_driver / "full").mkdir()
    (no_driver / "full" / "file").write_text("of the user")
    (no_driver / "old.tar.gz").write_text("of the user")
    before = sorted(no_driver.rglob("*"))
    ran = CliRunner().invoke(cli, ["reproduce", *arguments])
    assert isinstance(ran.exception, UserError) and message in str(ran.exception)
    assert sorted(no_driver.rglob("*")) == before, "text is not run for being text"


def test_a_disk_that_takes_no_more_leaves_nothing(no_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(no_driver, racy())

    def full(path: Path, text: str) -> None:
        raise UnwrittenError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr("vkharness.case.case_page.write_whole", full)
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"])
    assert isinstance(ran.exception, UnwrittenError)
    assert [each.name for each in no_driver.iterdir()] == ["t.jsonl"]


def test_a_folder_with_the_longest_name_is_made(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 248)
    with new_folder(target) as folder:
        (folder / "file").write_text("of the case")
    assert {len(each.name) for each in tmp_path.iterdir()} == {248, 255}


def test_what_fails_while_a_folder_is_filled_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), new_folder(tmp_path / "case"):
        raise FileNotFoundError("of what fills it")
    assert not [*tmp_path.iterdir()]


def test_a_job_that_fails_costs_its_step_alone(no_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(case: object, driver: object) -> list[str]:
        raise JobError("Traceback (most recent call last):\n  ...\nAssertionError: of the job\n")

    monkeypatch.setattr("vkharness.case.case_steps._show", fail)
    kept(no_driver, racy())
    ran = CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"])
    assert ran.exit_code == 1 and (no_driver / "case.tar.gz").exists()
    assert "finding 1: pictures: could not be done: AssertionError: of the job\n" in ran.stderr


def test_no_line_of_a_file_elsewhere_gets_into_the_page(
    no_driver: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A trace may name any file: only Python below the current folder, or beside the program, is read."""
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.py"
    secret.write_text("password = 'hunter2'\n" * 3)
    (no_driver / "notes.txt").write_text("hunter2\n" * 3)
    stream = racy()
    for block, site in zip(stream.blocks[-4:-2], (f"{secret}:2", "notes.txt:2"), strict=True):
        block.site = site
    kept(no_driver, stream)
    assert CliRunner().invoke(cli, ["reproduce", "t.jsonl", "-o", "case"]).exit_code == 1
    assert "hunter2" not in (no_driver / "case" / "index.html").read_text()


def test_an_archive_says_neither_when_nor_by_whom(tmp_path: Path) -> None:
    archives = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        with new_folder(tmp_path / str(number) / "case") as folder:
            for name in ("b", "a"):
                (folder / name).write_text(name)
                os.utime(folder / name, (number, number))
        archives.append((tmp_path / str(number) / "case.tar.gz").read_bytes())
    assert archives[0] == archives[1]


def test_what_is_a_program_and_what_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "p.py": b"import vulkan",
        "p": b"\x7fELF",
        "t.jsonl": b'{"header":{}}',
        "t": b'{"header":{}}',
        "x": b"import os",
        "report.jsonl": b"#!/bin/sh",
        "report.JSON": b"\x7fELF",
        "x.gfxr": b"#!/bin/sh",
        "dump.txt": b"#!/bin/sh",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in ("p", "t", "report.jsonl", "report.JSON", "x.gfxr", "dump.txt"):
        (tmp_path / name).chmod(0o755)
    assert [name for name in files if reproduce._is_program(Path(name))] == ["p.py", "p"]
    assert reproduce._is_program(Path("sh")) and not reproduce._is_program(Path("no-such-program"))


def test_an_executable_file_with_the_name_of_a_trace_is_not_run(no_driver: Path) -> None:
    (no_driver / "report.jsonl").write_text("#!/bin/sh\ntouch ran\n")
    (no_driver / "report.jsonl").chmod(0o755)
    ran = CliRunner().invoke(cli, ["reproduce", "report.jsonl"])
    assert isinstance(ran.exception, UserError) and "*.jsonl is never run as a program" in str(ran.exception)
    assert [each.name for each in no_driver.iterdir()] == ["report.jsonl"]

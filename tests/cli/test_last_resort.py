"""Output of vkharness when it fails itself, when nobody takes what it prints, and when names are hostile."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.streams import two_buffers
from vkharness import cli
from vkharness.cli.last_resort import echo
from vkharness.trace.codec import save

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from vkharness.cli import main; main()"
HOSTILE = "shadow\x1b[2Jmap\x07\x9b1m\u202e"


def start(*arguments: str, **streams: object) -> subprocess.CompletedProcess[str]:
    """`vkharness` in a process of its own, without Python's unbuffered mode."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/harness", "PYTHONUNBUFFERED": ""}
    made: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-c", MAIN, *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **streams,
    )
    return made


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes `vkharness check` fail with this error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("vkharness.text_form.text_file.read_stream", fail)


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    return left.value.code


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError("deep"), MemoryError(), AssertionError("a\nb")])
def test_an_error_of_ours_is_one_line_and_a_report(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, error)
    monkeypatch.chdir(tmp_path)
    assert run("check", "a trace.jsonl") == 70
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err
    (report,) = tmp_path.glob("vkharness-error-*.txt")
    assert str(report) in told.err
    text = report.read_text()
    assert "'check' 'a trace.jsonl'" in text
    assert type(error).__name__ in text
    assert "Traceback" in text


def test_the_report_goes_elsewhere_where_the_folder_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    failing(monkeypatch, KeyError("x"))
    monkeypatch.chdir(here)
    here.rmdir()
    monkeypatch.setattr("tempfile.tempdir", str(there))
    assert run("check", "t.jsonl") == 70
    (report,) = there.glob("vkharness-error-*.txt")
    assert str(report) in capsys.readouterr().err


def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    save(trace, two_buffers()[0].blocks)
    with open("/dev/full", "w") as full:
        done = start("check", str(trace), stdout=full, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "vkharness: the output cannot be written: No space left on device\n")
    assert not list(tmp_path.glob("vkharness-error-*"))


def test_a_closed_stdout_changes_nothing_but_what_is_printed(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    save(trace, two_buffers()[0].blocks)
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", MAIN, "check", str(trace)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/harness"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("ending", ["", "import os; os.close(1)", "sys.stdout.close()"])
def test_a_program_whose_output_nobody_takes_ends_as_under_python(tmp_path: Path, ending: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nprint('some text')\n{ending}\n")
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        alone = subprocess.run(
            [sys.executable, program], stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
        ours = start("run", "--model", "never", str(program), stdout=full)
    assert ours.returncode == alone.returncode != 0
    assert "harness/vkharness/" not in ours.stderr
    assert ours.stderr.endswith(f"no Vulkan call was seen; the program failed with exit code {alone.returncode}\n")


def test_characters_that_a_terminal_obeys_are_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    from vkharness.report.console import terminal

    echo(f"{HOSTILE}\nsecond \ud800line")
    echo(HOSTILE, err=True)
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    terminal().print(table)
    terminal().print(HOSTILE, markup=False)
    told = capsys.readouterr()
    assert told.out.splitlines()[:2] == ["shadow\\x1b[2Jmap\\x07\\x9b1m\\u202e", "second \\ud800line"]
    assert all(each.isprintable() for text in (told.out, told.err) for each in text.splitlines())


def test_a_missing_file_with_a_hostile_name_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", HOSTILE) == 2
    assert capsys.readouterr().err.rstrip("\n").isprintable()


def test_every_command_prints_through_the_one_function() -> None:
    for path in Path(cli.__file__).parent.glob("*.py"):
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert path.name == "last_resort.py" or not {"print", "click.echo", "click.secho"} & set(calls), path

"""`--ignore FILE` as a user meets it: `check`, `run` and `replay --mode witness`. (The plugin has `--vk-ignore`.)"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.test_cli import PROGRAMS, run_vkharness
from tests.support.streams import two_buffers
from vkharness.cli import cli
from vkharness.findings import UserError
from vkharness.trace.codec import save

KNOWN = '[[ignore]]\nhazard = "READ_AFTER_WRITE"\nreason = "issue 812"\n'
USELESS = '[[ignore]]\nresource = "nothing has this name"\nreason = "gone"\n'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A copy that does not wait for a fill, and a fill that does not wait for the copy."""
    stream, a, b = two_buffers(256)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 256)
    stream.fill(b, 9)
    stream.submit()
    path = tmp_path / "t.jsonl"
    save(path, stream.blocks)
    return path


def write(folder: Path, text: str) -> Path:
    path = folder / "known.toml"
    path.write_text(text)
    return path


def test_what_is_ignored_is_counted_in_the_summary_and_listed_in_json(trace: Path, tmp_path: Path) -> None:
    answer = tmp_path / "out.json"
    ran = CliRunner().invoke(cli, ["check", str(trace), "--ignore", str(write(tmp_path, KNOWN)), "--json", str(answer)])
    assert ran.exit_code == 1
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("2. WRITE_AFTER_WRITE"), "a number is the same with and without the file"
    assert lines[-2:] == ["hazards - 1 hazard: 1 WRITE_AFTER_WRITE", "ignored, and not counted: 1 READ_AFTER_WRITE"]
    known, other = json.loads(answer.read_text())["findings"]
    assert (known["ignored"], known["ignored_reason"], known["ignored_count"]) == (True, "issue 812", 1)
    assert (other["ignored"], other["ignored_reason"], other["ignored_count"]) == (False, "", 0)


def test_nothing_else_is_clean(trace: Path, tmp_path: Path) -> None:
    both = KNOWN + KNOWN.replace("READ_", "WRITE_")
    ran = CliRunner().invoke(cli, ["check", str(trace), "--ignore", str(write(tmp_path, both))])
    assert (ran.exit_code, ran.stdout.splitlines()[0]) == (0, "clean - no hazard")


def test_an_entry_that_covers_nothing_is_an_error_behind_the_verdict(trace: Path, tmp_path: Path) -> None:
    ran = run_vkharness("check", trace, "--ignore", write(tmp_path, KNOWN + USELESS))
    assert ran.returncode == 2
    assert "hazards - 1 hazard: 1 WRITE_AFTER_WRITE" in ran.stdout
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"vkharness: {tmp_path / 'known.toml'}: entry 2 covers no finding")
    assert line.endswith("(gone)")


def test_an_expired_entry_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    file = write(tmp_path, KNOWN + "expires = 1999-12-31\n")
    for command in ("check", "run"):
        ran = CliRunner().invoke(cli, [command, "--ignore", str(file), "nothing is read.jsonl"])
        assert isinstance(ran.exception, UserError)
        assert "entry 1 expired on 1999-12-31 (issue 812)" in str(ran.exception)


def test_run_ignores_by_name_and_label(tmp_path: Path) -> None:
    text = (
        '[[ignore]]\nresource = "particles*"\nlabel = "round ? / upload"\nsite = "*labelled.py:*"\nreason = "known"\n'
    )
    ran = run_vkharness("run", "--ignore", write(tmp_path, text), PROGRAMS / "labelled.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines() == [
        "clean - no hazard",
        "ignored, and not counted: 1 READ_AFTER_WRITE; found 5 times",
    ]


def test_a_witness_is_not_run_for_what_is_ignored(trace: Path, tmp_path: Path) -> None:
    file = write(tmp_path, KNOWN)
    ran = run_vkharness("replay", trace, "--mode", "witness", "--ignore", file)
    assert ran.returncode == 1
    assert [line[:2] for line in ran.stdout.splitlines() if line[0] != " "] == ["2."]
    asked = run_vkharness("replay", trace, "--mode", "witness", "--ignore", file, "--finding", "1")
    assert asked.stdout.startswith("1. READ_AFTER_WRITE")


def test_other_modes_have_nothing_to_ignore(trace: Path, tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["replay", str(trace), "--ignore", str(write(tmp_path, KNOWN))])
    assert str(ran.exception) == "--ignore goes with --mode witness"


def test_two_bugs_behind_one_helper_are_muted_one_by_one(tmp_path: Path) -> None:
    """The calls are recorded natively where there is a native core; the trace is judged as the program was."""
    program = PROGRAMS / "wrapped_copies.py"
    lines = {
        line.rpartition("# ")[2]: at for at, line in enumerate(program.read_text().splitlines(), 1) if "# " in line
    }
    known = write(tmp_path, f'[[ignore]]\nsite = "*:{lines["shadow, second"]}"\nreason = "issue 812"\n')
    documents = []
    for words in (["run", "--trace", "t.jsonl", str(program)], ["check", "t.jsonl"]):
        ran = run_vkharness(words[0], "--ignore", str(known), "--json", "out.json", *words[1:], cwd=tmp_path)
        said = ran.stdout + ran.stderr
        assert ran.returncode == 1, said
        assert "in bloom_pass, through copy at " in said and "in shadow_pass" not in said
        documents.append(json.loads((tmp_path / "out.json").read_text()))
    live, checked = (each["findings"] for each in documents)
    assert live == checked
    places = {(each["ignored"], each["site"].rpartition(":")[2]) for each in live}
    assert places == {(True, str(lines["shadow, second"])), (False, str(lines["bloom, second"]))}
    assert {tuple(frame["function"] for frame in each["stack"]) for each in live} == {
        ("copy", name, "frame", "<module>") for name in ("shadow_pass", "bloom_pass")
    }

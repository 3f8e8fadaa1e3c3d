"""What shells and readers expect: completion, a manual page, the width of the terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vkharness.cli import COMMANDS, COMPLETE, main
from vkharness.report.console import PIPE_WIDTH, terminal


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, capsys.readouterr().out


def completed(*words: str) -> list[str]:
    """What bash is offered behind these words."""
    line = " ".join(words)
    asking = {COMPLETE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "vkharness"], env=os.environ | asking, capture_output=True, text=True, check=True
    )
    return [each.partition(",")[2] for each in done.stdout.splitlines()]


def test_a_shell_completes_commands_and_options() -> None:
    assert completed("vkharness", "exp") == ["explain", "explain-rule"]
    assert {"--as-text", "--sarif"} <= set(completed("vkharness", "check", "--"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = told(capsys, "completion", shell)
    assert code == 0
    assert f"{COMPLETE}={shell}_complete" in out


def test_the_manual_page_has_every_command_and_no_stray_request(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = told(capsys, "man")
    assert code == 0
    assert {line.split()[2].strip('"') for line in out.splitlines() if line.startswith(".SS")} >= set(COMMANDS)
    requests = {line.split()[0] for line in out.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".I", ".PP", ".TP"}
    assert "as\\-text" in out


def test_tables_are_as_wide_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal().width == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal().width == 72

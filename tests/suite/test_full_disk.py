"""Commands that work long, on a disk that is full: one line, no traceback, what was done stays, and the rest is done
later."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.streams import Stream
from tests.support.suite_runs import CLAIM, FILE, suite
from vkharness.campaign.record import read_campaign
from vkharness.results.read_results import read_results
from vkharness.results.states import RowState
from vkharness.trace.codec import save

OURS = ("-c", "from vkharness.cli import main; main()")
QUICK = ("--vk-device", "lavapipe", "--vk-layer", "off")


def limited(folder: Path, most_bytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, of which no file may have more bytes: `write` fails beyond, as it does on a full disk. It keeps no
    compiled modules: Python takes those that are cut off for whole ones."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "COLUMNS": "180"}
        | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_python_ignores_the_signal_of_the_limit() -> None:
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN


def test_no_module_is_kept_that_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    (tmp_path / "module.py").write_text(f"text = {'long' * 100!r}\n")
    assert limited(tmp_path, 64, "-c", "import module").returncode == 0
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_trace_that_cannot_be_reduced_to_a_file_leaves_the_earlier_one(tmp_path: Path) -> None:
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    save(tmp_path / "t.jsonl", stream.blocks)
    for arguments in (("reduce", "t.jsonl", "-o", "out"), ("mend", "t.jsonl", "--apply", "out")):
        (tmp_path / "out").write_text("earlier\n")
        ran = limited(tmp_path, 64, *OURS, *arguments)
        assert (ran.returncode, ran.stderr) == (2, "vkharness: out: cannot be written: File too large\n")
        assert (tmp_path / "out").read_text() == "earlier\n"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "t.jsonl"}


def test_a_campaign_keeps_the_chunks_that_the_disk_took(tmp_path: Path) -> None:
    command = (*OURS, "campaign", "fuzz", "--count", "6", "--chunk", "2", "--jobs", "1", "-o", "c.jsonl")
    most = 300
    ran = limited(tmp_path, most, *command)
    said = "vkharness: c.jsonl: cannot be written: File too large; what was done is kept"
    assert ran.returncode == 2 and said in ran.stderr.splitlines() and "Traceback" not in ran.stderr
    before = (tmp_path / "c.jsonl").read_bytes()
    assert len(before) == most and b"\n" in before
    again = limited(tmp_path, resource.RLIM_INFINITY, *command)
    assert again.returncode == 0 and "6 streams" in again.stdout
    after = (tmp_path / "c.jsonl").read_bytes()
    assert after.startswith(before[: before.rindex(b"\n") + 1])
    assert len(read_campaign(tmp_path / "c.jsonl").results) == 3


@pytest.mark.driver
def test_rows_that_the_disk_did_not_take_fail_and_run_later(tmp_path: Path) -> None:
    """The limit is above the header of the results and below a trace."""
    (tmp_path / FILE).write_text(CLAIM)
    (tmp_path / "pytest.ini").touch()
    ran = limited(tmp_path, 4000, "-m", "pytest", "-p", "no:cacheprovider", *QUICK, FILE)
    assert ran.returncode == 1, ran.stdout
    assert ran.stdout.count("cannot be written: File too large") >= 2 and "Traceback" not in ran.stdout
    found = read_results(tmp_path / "artifacts")
    assert found.rows == {} and found.header.options["device"] == ["lavapipe"]
    again = suite(tmp_path, *QUICK, "--vk-resume")
    assert again.code == 0, again.output
    rows = read_results(tmp_path / "artifacts").rows.values()
    assert [each.state for each in rows] == [RowState.PASS, RowState.PASS]
    assert not [*tmp_path.rglob("*.partial-*")]

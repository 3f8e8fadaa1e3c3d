"""`vkharness run` of programs that fail, die or are interrupted: there is a verdict, and it is never `clean`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.formats import require_documented
from tests.support.recording import PROGRAMS
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.trace.codec import read_trace

FILL_COPY = PROGRAMS / "fill_copy.py"
SUBMITS = f"""
import runpy, sys
sys.path.insert(0, {str(PROGRAMS)!r})
sys.argv = ["fill_copy.py", *sys.argv[1:]]
runpy.run_path({str(FILL_COPY)!r}, run_name="__main__")
"""
ENUMERATES = "import vulkan as vk\nvk.vkEnumerateInstanceExtensionProperties(None)\n"
MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from vkharness.cli import main; main()"
"""A shell's & lets SIGINT be ignored."""
DEATHS = {
    "an exception": ("raise ValueError('of the program')", 1, ""),
    "an exit code": ("import sys; sys.exit(3)", 3, ""),
    "an exit without handlers": ("import os; os._exit(9)", 9, ""),
    "an abort": ("import os; os.abort()", 134, "SIGABRT"),
    "a fault": ("import ctypes; ctypes.string_at(0)", 139, "SIGSEGV"),
    "a kill": ("import os; os.kill(os.getpid(), 9)", 137, "SIGKILL"),
    "a signal": ("import os; os.kill(os.getpid(), 15)", 143, "SIGTERM"),
    "an interrupt": ("import os; os.kill(os.getpid(), 2)", 130, "SIGINT"),
}

KINDS = ("an exit code", "an abort")


def run(folder: Path, *arguments: str, main: str = MAIN) -> tuple[int, str, dict[str, Any]]:
    """The exit code as a shell gives it, stderr, and the document."""
    ran = subprocess.run(
        [sys.executable, "-c", main, "run", "--json", "found.json", *arguments],
        cwd=folder,
        env={**os.environ, **environment(find_driver("lavapipe")), "PYTHONPATH": str(PROGRAMS.parents[1])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads((folder / "found.json").read_text())
    require_documented("findings", [document])
    left = [each.name for each in folder.iterdir() if ".json.partial" in each.name]
    assert not left
    return ran.returncode if ran.returncode >= 0 else 128 - ran.returncode, ran.stderr, document


@pytest.mark.parametrize(("submits", "death"), [*((False, each) for each in DEATHS), *((True, each) for each in KINDS)])
def test_a_program_that_fails_is_named_and_not_clean(submits: bool, death: str, tmp_path: Path) -> None:
    dies, code, name = DEATHS[death]
    (tmp_path / "program.py").write_text((SUBMITS if submits else ENUMERATES) + dies)
    ended, printed, document = run(tmp_path, "program.py", "--barrier")
    assert ended == code, printed
    assert document["verdict"] == "unknown"
    assert (document["program_end"]["exit_code"], document["program_end"]["signal"]) == (code, name)
    said = f"the program was ended by {name}" if name else f"the program failed with exit code {code}"
    assert [line.partition(" - ")[0] for line in printed.splitlines() if said in line] == ["unknown"], printed


@pytest.mark.parametrize("death", KINDS)
def test_what_a_program_did_before_it_died_is_judged_where_it_is_kept(death: str, tmp_path: Path) -> None:
    dies, code, _ = DEATHS[death]
    for option, verdict in (("", "hazards"), ("--barrier", "unknown")):
        (tmp_path / "program.py").write_text(SUBMITS + dies)
        ended, printed, document = run(tmp_path, "program.py", "--trace", "t.jsonl", *option.split())
        assert (ended, document["verdict"]) == (code, verdict), printed
        (trace,) = tmp_path.glob("t.jsonl*")
        assert Analysis().follow(read_trace(trace)).verdict == verdict
        trace.unlink()


def test_a_program_that_leaves_without_its_exit_handlers_has_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SUBMITS + "import os; os._exit(0)")
    ended, printed, document = run(tmp_path, "program.py", "--barrier")
    assert (ended, document["verdict"], document["program_end"]["judged"]) == (3, "unknown", "nothing"), printed
    assert "ended without its exit handlers" in printed


def test_of_a_program_that_ends_well_there_is_nothing_to_say(tmp_path: Path) -> None:
    ended, _, document = run(tmp_path, str(FILL_COPY), "--barrier")
    assert (ended, document["verdict"]) == (0, "clean")
    assert "program_end" not in document


def test_a_signal_for_the_command_comes_to_the_program_once(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        ENUMERATES + "import os, signal, subprocess\n"
        "came, wakes = os.pipe()\n"
        "os.set_blocking(wakes, False)\n"
        "signal.set_wakeup_fd(wakes)\n"
        "for each in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):\n"
        "    signal.signal(each, lambda *_: None)\n"
        "    subprocess.run(['sh', '-c', f'kill -{int(each)} {os.getppid()}'], check=True)\n"
        "    assert os.read(came, 1)[0] == each\n"
        "os.set_blocking(came, False)\n"
        "try:\n"
        "    raise SystemExit(f'{os.read(came, 9)} came twice')\n"
        "except BlockingIOError:\n"
        "    pass\n"
    )
    ended, printed, _ = run(tmp_path, "program.py")
    assert ended == 0, printed


INTERRUPTED = f"""
import os, signal
from vkharness import agreement
judge = agreement.judge_stream_events
def interrupted(*given, **named):
    for _ in range(PRESSED):
        os.kill(os.getpid(), signal.SIGINT)
    return judge(*given, **named)
agreement.judge_stream_events = interrupted
{MAIN}
"""


@pytest.mark.parametrize("pressed", [1, 2, 5])
@pytest.mark.parametrize("first", ["", "import os; os.kill(os.getpid(), 2)"], ids=["judging", "program and judging"])
def test_there_is_a_verdict_after_any_number_of_interrupts(pressed: int, first: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SUBMITS + first)
    main = INTERRUPTED.replace("PRESSED", str(pressed))
    ended, printed, document = run(tmp_path, "--trace", "t.jsonl", "program.py", main=main)
    assert document["verdict"] == "hazards" and document["model"] == "not asked"
    assert document["program_end"]["judged"] == "part" and "incomplete: " in printed
    assert ended == (130 if first else 1), printed
    assert Analysis().follow(read_trace(tmp_path / "t.jsonl")).verdict == "hazards"


def test_an_interrupt_while_the_program_ends_costs_no_verdict(tmp_path: Path) -> None:
    """While it waits for its threads, and in its exit handlers."""
    (tmp_path / "program.py").write_text(
        "import atexit, os, threading\n"
        "atexit.register(lambda: os.kill(os.getpid(), 2))\n"
        "waits = threading.Event()\n"
        "class Last(threading.Thread):\n"
        "    def join(self, *given):\n"
        "        waits.set()\n"
        "        os.kill(os.getpid(), 2)\n"
        "Last(target=waits.wait).start()\n"
        f"{SUBMITS}"
    )
    _, printed, document = run(tmp_path, "program.py")
    assert document["verdict"] == "hazards", printed

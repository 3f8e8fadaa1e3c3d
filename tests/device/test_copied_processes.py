"""Processes that begin as copies do what others do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.copied_processes import CopiedPopen, CopiedProcesses

TELL = """
import __main__, json, os, sys
print(json.dumps([__name__, __main__.__name__, sys.argv, os.getcwd(), dict(os.environ), sys.path, sys.stdin.read()]))
print("beside it", file=sys.stderr)
"""
IS_COPY = "import sys; print('vkharness.check' in sys.modules)"


@pytest.fixture(scope="module")
def copies() -> Iterator[CopiedProcesses]:
    made = CopiedProcesses()
    yield made
    made.close()


def ran(words: tuple[str, ...], cwd: Path | None, env: dict[str, str]) -> tuple[int, str, str]:
    """Exit code and output of Python with these words."""
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, input="words\n", capture_output=True, text=True, check=False
    )
    # Since Python 3.13 a traceback quotes what -c ran; a copy does not know the text.
    said = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith("    ")]
    return done.returncode, done.stdout, "".join(said)


def both(copies: CopiedProcesses, *words: str, cwd: Path | None = None, **variables: str) -> tuple[int, str, str]:
    """What a command does as a copy, which is what it does by itself."""
    by_itself = ran(words, cwd, os.environ | variables)
    with copies.begun():
        assert ran(words, cwd, os.environ | variables) == by_itself
    return by_itself


@pytest.mark.parametrize("safe", [[], ["-P"]], ids=["", "safe path"])
@pytest.mark.parametrize("how", ["code", "file", "module", "joined"])
def test_a_copy_has_what_it_was_begun_with(copies: CopiedProcesses, how: str, safe: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "telling.py").write_text(TELL)
    words = {"code": ["-c", TELL], "file": ["telling.py"], "module": ["-m", "telling"], "joined": ["-mtelling"]}[how]
    path = f"{folder}{os.pathsep}elsewhere"
    code, told, _ = both(copies, *safe, *words, "a", "b c", cwd=folder, ONE="1", PYTHONPATH=path)
    assert code == 0 and '"a", "b c"' in told and '"ONE": "1"' in told and "words" in told


def test_a_copy_writes_bytecode_or_not_as_it_is_told(copies: CopiedProcesses) -> None:
    code = "import sys; print(sys.dont_write_bytecode)"
    told = [both(copies, "-c", code, PYTHONDONTWRITEBYTECODE=each)[1] for each in ("1", "")]
    assert told == ["True\n", "False\n"]
    with copies.begun():
        assert ran(("-c", IS_COPY), None, os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})[1] == "True\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(7)", 7),
        ("raise SystemExit('why')", 1),
        ("1 / 0", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("import os; print('lost'); os._exit(3)", 3),
        ("import ctypes; ctypes.CDLL(None).printf(b'held back')", 0),
        ("import atexit; atexit.register(print, 'last'); print('first')", 0),
        ("import threading; threading.Timer(0, print, ['from a thread']).start()", 0),
        ("import signal; signal.signal(signal.SIGINT, signal.default_int_handler); raise KeyboardInterrupt", -2),
        ("import os, sys; sys.exit(os.getppid() == int(os.environ['BEGAN']))", 1),
    ],
)
def test_a_copy_ends_as_the_process_would(copies: CopiedProcesses, code: str, status: int) -> None:
    assert both(copies, "-c", code, BEGAN=str(os.getpid()))[0] == status


def test_a_copy_gets_the_files_that_are_passed_on(copies: CopiedProcesses) -> None:
    reading, writing = os.pipe()
    with copies.begun():
        subprocess.run(
            [sys.executable, "-c", f"import os; os.write({writing}, b'to you')"], pass_fds=[writing], check=True
        )
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"to you"  # nobody else holds the other end


def test_a_copy_can_be_killed_and_waited_for(copies: CopiedProcesses) -> None:
    code = "import signal, sys; print('there', flush=True); signal.pause()"
    with copies.begun(), subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert isinstance(process, CopiedPopen) and process.stdout is not None
        assert process.stdout.readline() == b"there\n" and process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.kill()
        assert process.wait() == process.poll() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "variables", "is_copy"),
    [
        ([], {}, "True"),
        (["-I"], {}, "False"),
        ([], {"PYTHONHASHSEED": "1"}, "False"),
        ([], {"LD_BIND_NOW": "1"}, "False"),
        ([], {"ANY_OTHER": "1"}, "True"),
    ],
)
def test_another_interpreter_is_no_copy(
    copies: CopiedProcesses, words: list[str], variables: dict[str, str], is_copy: str
) -> None:
    command = [sys.executable, *words, "-c", IS_COPY]
    with copies.begun():
        ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == is_copy


def test_what_a_copy_begins_is_one_too(copies: CopiedProcesses) -> None:
    inner = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {IS_COPY!r}]).returncode)"
    with copies.begun():
        told = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True, check=True)
    assert told.stdout == "True\n"


def test_a_folder_that_is_not_there_is_refused(copies: CopiedProcesses, tmp_path: Path) -> None:
    with copies.begun(), pytest.raises(FileNotFoundError, match="nowhere"):
        subprocess.run([sys.executable, "-c", ""], cwd=tmp_path / "nowhere", check=False)


def test_who_leaves_in_the_middle_ends_no_template(copies: CopiedProcesses) -> None:
    for said in (b"", b"\x05", b"\x05\0\0\0{", b"\x02\0\0\0{}"):
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(copies.template.address)
            end.sendall(said)
    with copies.begun():
        assert subprocess.run([sys.executable, "-c", IS_COPY], capture_output=True, check=True).stdout == b"True\n"


def test_without_its_template_a_process_begins_by_itself_and_a_copy_counts_as_killed() -> None:
    made = CopiedProcesses()
    with made.begun():
        copy = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        made.close()
        assert copy.poll() is None
        copy.kill()
        assert copy.wait() == -signal.SIGKILL
        copy.communicate()
        assert subprocess.run([sys.executable, "-c", IS_COPY], capture_output=True, check=True).stdout == b"False\n"

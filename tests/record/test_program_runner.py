"""Running a program under a session: the program cannot tell, and its failures stay its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.recording import PROGRAMS
from vkharness.device.drivers import environment, find_driver

RUNNER = """
import sys, vkharness
from vkharness.findings import UserError
from vkharness.record.program_runner import exit_status, run_program
try:
    with vkharness.attach() as session:
        own = run_program(sys.argv[1], sys.argv[2:], session)
except UserError as error:
    sys.exit(f"vkharness: {error}")
with open("verdict", "w") as file:
    sites = [finding.place.site for finding in session.findings]
    file.write(f"{session.verdict} {own} {sites} {session.internal_errors}")
status = exit_status(session, own)
"""
EXIT = "sys.exit(status if session.saw_calls or session.unmodelled else own)\n"
"""A program without Vulkan calls has no verdict, and its own status is what counts here."""

Ran = subprocess.CompletedProcess[str]


def python(*arguments: str, cwd: Path) -> Ran:
    variables = environment(find_driver("lavapipe"))
    root = str(PROGRAMS.parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **variables, "PYTHONPATH": root},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def mirrored(*arguments: str, cwd: Path) -> Ran:
    return python("-c", RUNNER + EXIT, *arguments, cwd=cwd)


SNIPPETS = {
    "is main": """
        import __main__, sys, os
        class Thing: pass
        import pickle
        pickle.loads(pickle.dumps(Thing()))
        values = {name: each for name, each in vars(__main__).items() if " at 0x" not in repr(each)}
        print(values, type(__loader__).__name__, __main__.Thing is Thing, sys.argv, os.path.realpath(sys.path[0]))
        count: int = 1
        print(__main__.__annotations__, sorted(vars(__main__)))
        """,
    "imports its neighbour": "import neighbour\nprint(neighbour.__name__)",
    "exit none": "import sys\nsys.exit()",
    "exit number": "import sys\nsys.exit(5)",
    "exit large number": "import sys\nsys.exit(259)",
    "exit text": "import sys\nprint('out')\nsys.exit('what went wrong')",
    "exit builtin": "raise SystemExit(4)",
    "raises": "def inner():\n    raise ValueError('of the program')\ninner()",
    "chains": "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('second') from e",
    "own hook": "import sys\nsys.excepthook = lambda kind, error, trace: print('hook', kind.__name__)\n1 / 0",
    "broken syntax": "print(1\n",
    "wrong indent": "if True:\nprint(1)",
    "future": "from __future__ import annotations\ndef f(x: Nowhere): pass\nprint(f.__annotations__)",
    "encoding": "# -*- coding: latin-1 -*-\nprint('plain')",
    "no text": "",
    "exit handlers": """
        import atexit, threading
        gate = threading.Event()
        def work():
            gate.wait()
            print('thread', flush=True)
        atexit.register(print, 'first registered', flush=True)
        atexit.register(print, 'last registered', flush=True)
        threading.Thread(target=work).start()
        print('end of main', flush=True)
        gate.set()
        """,
    "exit handler raises": """
        import atexit
        class Handler:
            def __repr__(self): return 'handler'
            def __call__(self): return 1 / 0
        atexit.register(print, 'after')
        atexit.register(Handler())
        """,
    "threads start threads": """
        import threading
        def second(): print('second', flush=True)
        def first():
            print('first', flush=True)
            threading.Thread(target=second).start()
        threading.Thread(target=first).start()
        """,
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_program_cannot_tell(name: str, tmp_path: Path) -> None:
    if name == "threads start threads" and (3, 12) <= sys.version_info < (3, 12, 2):
        pytest.skip("this CPython starts no thread while it waits for threads at its end, in time or not (gh-114570)")
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program.py").write_text(textwrap.dedent(SNIPPETS[name]))
    (folder / "neighbour.py").write_text("")
    arguments = ("programs/program.py", "-x", "two words")
    plain, ours = python(*arguments, cwd=tmp_path), mirrored(*arguments, cwd=tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def verdict(folder: Path) -> str:
    return (folder / "verdict").read_text()


def test_hazards_give_exit_1_and_name_the_program(tmp_path: Path) -> None:
    program = str(PROGRAMS / "fill_copy.py")
    ran = mirrored(program, cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "main is __main__ of fill_copy.py [] programs" in ran.stdout
    copy = next(
        i for i, line in enumerate(Path(program).read_text().splitlines(), 1) if line.startswith("vkCmdCopyBuffer")
    )
    assert verdict(tmp_path) == f"hazards 0 ['{program}:{copy}'] []"


def test_a_clean_program_gives_exit_0(tmp_path: Path) -> None:
    ran = mirrored(str(PROGRAMS / "fill_copy.py"), "--barrier", "--thread", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "the thread ran" in ran.stdout
    assert verdict(tmp_path) == "clean 0 [] []"


@pytest.mark.parametrize(("option", "status"), [("--exit", 7), ("--raise", 1)])
def test_the_programs_own_failure_is_passed_on(option: str, status: int, tmp_path: Path) -> None:
    ran = mirrored(str(PROGRAMS / "fill_copy.py"), "--barrier", option, cwd=tmp_path)
    assert ran.returncode == status
    assert verdict(tmp_path) == f"clean {status} [] []"
    assert ("RuntimeError: of the program itself" in ran.stderr) == (option == "--raise")


def test_unmodelled_commands_give_exit_3(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import gc\nfrom vkharness.record.session import Session\n"
        "session = next(o for o in gc.get_objects() if isinstance(o, Session))\nsession.unseen('vkCmdOfTomorrow')\n"
    )
    ran = mirrored("program.py", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert verdict(tmp_path) == "unknown 0 [] []"


def test_a_module_beside_the_program_comes_before_one_that_we_imported(tmp_path: Path) -> None:
    """Such as a `logging.py` of its own, or a package `numpy`; what Python has imported before it stays."""
    folder = tmp_path / "folder"
    (folder / "numpy").mkdir(parents=True)
    (folder / "numpy" / "__init__.py").write_text("name = 'a package of its own'")
    (folder / "logging.py").write_text("name = 'its own'")
    (folder / "os.py").write_text("1 / 0")
    program = folder / "program.py"
    program.write_text("import logging, os, numpy, json\nprint(logging.name, os.name, numpy.name, json.dumps(1))")
    runner = "import logging, numpy, json\n" + RUNNER + "assert sys.modules['numpy'] is numpy"
    plain, ours = python(str(program), cwd=tmp_path), python("-c", runner, str(program), cwd=tmp_path)
    assert plain.stdout == "its own posix a package of its own 1\n", plain.stderr
    assert (ours.stdout, ours.returncode) == (plain.stdout, 0), ours.stderr


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.py", "cannot read the program nowhere.py: No such file or directory"),
        (".", "cannot read the program .: Is a directory"),
        ("binary.py", "binary.py is not a Python source file"),
    ],
)
def test_what_is_no_program_gets_one_line(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\x7fELF\0\0")
    ran = mirrored(path, cwd=tmp_path)
    assert ran.stderr == f"vkharness: {message}\n"
    assert ran.returncode != 0

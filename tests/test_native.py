"""The native core: when it is used and what it is built of, and that what is judged does not depend on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vkharness import native
from vkharness.native import build

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "tests" / "data" / "gfxrecon" / "upstream-1.x.jsonl"
BOTH_WAYS = (
    "tests/test_spans.py", "tests/test_agreement.py", "tests/test_recordings.py", "tests/syncval",
    "tests/record/test_proxy.py", "tests/record/test_threads.py",
)  # fmt: skip
"""Modules that are run both ways: a run of all tests runs them in one way, `VKHARNESS_PURE=1 ci/test` in the other."""
needs_core = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
IN_USE = "from vkharness import native; print(native.in_use)"


def run(*arguments: str, cwd: Path = ROOT, **variables: str) -> tuple[int, str]:
    """Exit code and output of a new Python."""
    environ = {**{name: value for name, value in os.environ.items() if name != "VKHARNESS_PURE"}, **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_checkout_that_was_set_up_has_a_core_of_its_sources() -> None:
    """ci/setup brings the compiler. Where there can be none, that is why there is none."""
    if run("-c", IN_USE)[1].strip() == "native core":
        return
    with pytest.raises(build.NotBuilt):
        build.build(ROOT / "harness" / "vkharness" / "native" / build.file_name())


@pytest.mark.parametrize(("value", "pure"), [("1", True), ("yes", True), ("0", None), ("", None)])
def test_a_variable_turns_it_off(value: str, pure: bool | None) -> None:
    status, said = run("-c", IN_USE, VKHARNESS_PURE=value)
    wanted = "pure Python (VKHARNESS_PURE is set)" if pure else run("-c", IN_USE)[1].strip()
    assert (status, said.strip()) == (0, wanted)


INTERPRETERS = """
import sys
from vkharness import native
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = f"import sys; sys.path[:] = {sys.path!r}; {sys.argv[1]}"
interpreters.run_string(interpreters.create(), other)
from vkharness.check import Analysis
print(Analysis().verdict, native.in_use)
"""
"""A program of two interpreters. The second one does what it is told."""


@needs_core
def test_a_second_interpreter_leaves_the_core_to_the_first_one() -> None:
    """It replaced the types of the core, so that the first interpreter could judge nothing any more."""
    status, said = run("-c", INTERPRETERS, IN_USE.replace("native.in_use", "native.in_use, flush=True"))
    other, first = said.splitlines()
    assert status == 0 and other.startswith("pure Python (")
    assert first == "clean native core"


@needs_core
def test_no_core_is_used_that_is_older_than_its_sources(tmp_path: Path) -> None:
    shutil.copytree(build.FOLDER, tmp_path / "vkharness" / "native")
    (tmp_path / "vkharness" / "__init__.py").touch()
    assert run("-c", IN_USE, cwd=tmp_path) == (0, "native core\n")
    with (tmp_path / "vkharness" / "native" / "module.cpp").open("a") as source:
        source.write("// changed\n")
    assert "older than its sources" in run("-c", IN_USE, cwd=tmp_path)[1]
    (tmp_path / "vkharness" / "native" / build.file_name()).unlink()
    assert "no native core was built" in run("-c", IN_USE, cwd=tmp_path)[1]


def test_without_a_compiler_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when an earlier core is in the way: it stays."""
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    (tmp_path / build.file_name()).write_text("an earlier one")
    for name, value in (("CXX", "no-such-compiler"), ("CXX", "false"), ("PATH", str(tmp_path))):
        monkeypatch.setenv(name, value)
        if name == "PATH":
            monkeypatch.delenv("CXX")
        build.main()
        said = capsys.readouterr().err
        assert said.startswith("vkharness: pure Python, because the native core was not built: ")
        assert len(said.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == [build.file_name()]


@needs_core
@pytest.mark.slow
def test_the_tests_of_the_judges_pass_in_pure_python() -> None:
    arguments = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist")
    status, output = run("-m", "pytest", *arguments, *BOTH_WAYS, VKHARNESS_PURE="1")
    assert status == 0, output


@needs_core
def test_a_check_says_the_same_in_both_ways() -> None:
    check = ("-c", "from vkharness.cli import main; main()", "check", str(TRACE))
    assert run(*check) == run(*check, VKHARNESS_PURE="1")


@pytest.mark.driver
def test_drivers_says_which_is_in_use() -> None:
    drivers = ("-c", "from vkharness.cli import main; main()", "drivers")
    assert "pure Python (VKHARNESS_PURE is set)" in run(*drivers, VKHARNESS_PURE="1")[1]
    assert native.in_use in run(*drivers, VKHARNESS_PURE="" if native.core else "1")[1]


def test_the_same_sources_in_two_folders_give_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An assertion names its file, which must not be the whole path. `ci/release` compares whole wheels."""
    made = []
    for folder in (tmp_path / "a", tmp_path / "another and longer one"):
        folder.mkdir()
        (folder / "part.hpp").write_text("#include <cassert>\ninline int part(int of) { assert(of > 1); return of; }\n")
        (folder / "module.cpp").write_text('#include "part.hpp"\nextern "C" int whole(int of) { return part(of); }\n')
        monkeypatch.setattr(build, "FOLDER", folder)
        try:
            build.build(folder / "made.so", folder / "module.cpp")
        except build.NotBuilt as why:
            pytest.skip(f"nothing can be built here: {why}")
        made.append((folder / "made.so").read_bytes())
    assert made[0] == made[1] and str(tmp_path).encode() not in made[0] and b"part.hpp" in made[0]

"""Every code block of the pages, and every command in the docstring of an example, runs as it is written.

* console: each line behind `$ ` runs in bash. It exits with 0, or with N when `# exits N` stands behind it. The lines
  below it are its output, compared as a doctest with ELLIPSIS and NORMALIZE_WHITESPACE; no lines: any output will do.
  The page's folder is left out of paths.
* python: runs by itself; one with prompts runs as a doctest. toml: must parse. text: nothing to run.
* A comment before a block changes that: `file: NAME` also saves it for later blocks, `from: FILE` says that it is
  a part of that file of the checkout, and `not run: REASON` leaves it out.
* A comment `needs: PROGRAM` in a page: without that program none of its blocks runs. ci/setup installs it.

The blocks of one page run in order and share a folder, which holds copies of examples/ and shaders/.
"""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

from bench import measurements
from vkharness.device.drivers import environment, find_driver

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "device")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES.append(ROOT / "tests" / "support" / "README.md")
NOT_RUN = 5
"""Blocks of all pages that carry a reason why they cannot run in a test."""
COMMAND = re.compile(r"^\$ (?P<command>.*?)(?: +# exits (?P<status>\d+))?$", re.MULTILINE)
MARKER = re.compile(r"<!-- (?P<kind>file|from|not run): (?P<text>.+?) -->\s*\Z")
NEEDS = re.compile(r"<!-- needs: (.+?) -->")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """One code block: its language, its text and what the comment before it says."""

    language: str
    text: str
    kind: str = ""
    marker: str = ""


def blocks_of(text: str) -> Iterator[Block]:
    """The code blocks of a page or docstring; an indented one counts as console."""
    before = ""
    for token in MarkdownIt().parse(text):
        if token.type == "fence":
            found = MARKER.search(before)
            yield Block(token.info.split(" ")[0], token.content, *(found.groups() if found else ()))
        elif token.type == "code_block":
            yield Block("console", token.content)
        before = token.content if token.type == "html_block" else ""


def text_of(path: Path) -> str:
    """A page, or the docstring of a program."""
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".md" else ast.get_docstring(ast.parse(text), clean=False) or ""


def name_of(path: Path) -> str:
    """Without the word that selects the suite, which `-k` looks for in names of tests."""
    return path.name.removeprefix("scenario_")


class Runner:
    """Runs the blocks of one page in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("examples", "shaders"):
            shutil.copytree(ROOT / name, folder / name)
        self.variables = {
            **os.environ,
            **environment(find_driver("lavapipe")),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),  # pages for contributors import `tests`
            "PYTHONUNBUFFERED": "1",
            "PYTEST_ADDOPTS": f"{os.environ.get('PYTEST_ADDOPTS', '')} -p no:cacheprovider",
            "COLUMNS": "120",
        }

    def run(self, block: Block) -> None:
        """Fails when the block does not do what it shows."""
        if block.kind == "from":
            lines = (ROOT / block.marker).read_text(encoding="utf-8")
            assert textwrap.dedent(block.text) in textwrap.dedent(lines) or block.text in lines, block.text
            return
        if block.kind == "file":
            (self.folder / block.marker).write_text(block.text, encoding="utf-8")
        if block.kind != "not run":
            getattr(self, block.language)(block.text)

    def console(self, text: str) -> None:
        commands = list(COMMAND.finditer(text))
        assert commands, f"no command in:\n{text}"
        for at, found in enumerate(commands):
            end = commands[at + 1].start() if at + 1 < len(commands) else len(text)
            wanted = text[found.end() : end].strip()
            status, output = self.shell(["bash", "-c", found["command"]])
            assert status == int(found["status"] or 0), f"{found['command']} exited with {status}\n{output}"
            if wanted:
                checker, example = doctest.OutputChecker(), doctest.Example("", wanted)
                if not checker.check_output(wanted, output.strip(), FLAGS):
                    pytest.fail(f"{found['command']}\n{checker.output_difference(example, output, FLAGS)}")

    def python(self, text: str) -> None:
        if text.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(text, {}, "block", None, 0)
            assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0, text
            return
        status, output = self.shell([sys.executable, "-c", text])
        assert status == 0, f"{text}\n{output}"

    def toml(self, text: str) -> None:
        tomllib.loads(text)

    def text(self, text: str) -> None:
        """Drawings and formats."""

    def diff(self, text: str) -> None:
        """Streams, which test_hazards.py runs."""

    def shell(self, command: list[str]) -> tuple[int, str]:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return ran.returncode, ran.stdout.replace(f"{self.folder}/", "")


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=name_of)
def test_the_blocks_of_a_page_run(path: Path, tmp_path: Path) -> None:
    for program in NEEDS.findall(text_of(path)):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine; ci/setup installs it")
    runner = Runner(tmp_path)
    for block in blocks_of(text_of(path)):
        runner.run(block)


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_shows_its_output(path: Path) -> None:
    """Without a command and its output nothing of an example would be checked."""
    assert any(line for block in blocks_of(text_of(path)) for line in block.text.splitlines() if line[:2] != "$ ")


def test_scripts_that_a_page_names_can_be_run() -> None:
    named = {
        script
        for page in PAGES
        for script in re.findall(r"\b(?:ci|bench)/[a-z_]+\b(?!\.(?:py|jsonl|txt)\b)", text_of(page))
    }
    assert {"ci/setup", "ci/scenarios", "ci/test"} <= named
    assert [script for script in named if not os.access(ROOT / script, os.X_OK)] == []


def test_the_table_of_packages_is_true_of_the_tree() -> None:
    rows = re.findall(r"^\| (`.*?) \|", text_of(ROOT / "docs" / "ARCHITECTURE.md"), re.MULTILINE)
    named = [name.rstrip("/") for row in rows for name in re.findall(r"`(.*?)`", row)]
    found = {
        path.name
        for path in (ROOT / "harness" / "vkharness").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(named) == sorted(found - {"__init__.py"})


def test_the_table_of_frames_has_each_file_with_its_count() -> None:
    rows = re.findall(
        r"^\| `(scenario_\w+\.py)` \| (\d+) \|", (ROOT / "docs" / "real_programs.md").read_text("utf-8"), re.MULTILINE
    )
    files = sorted((ROOT / "scenarios" / "engines").glob("scenario_*.py"))
    counts = [len(re.findall(r"^def scenario_", each.read_text("utf-8"), re.MULTILINE)) for each in files]
    assert rows == [(each.name, str(count)) for each, count in zip(files, counts, strict=True)]


def test_few_blocks_are_left_out() -> None:
    blocks = [(page.name, block) for page in PAGES for block in blocks_of(text_of(page))]
    left_out = [(name, block.marker) for name, block in blocks if block.kind == "not run"]
    assert len(left_out) == NOT_RUN, left_out


def test_what_a_block_shows_is_compared(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.console("$ echo one; echo two; exit 3  # exits 3\none\n...\n")
    for wrong in ("$ echo one\ntwo\n", "$ false\n", "$ true  # exits 1\n", "no command\n"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            runner.console(wrong)


def test_the_page_of_measurements_is_what_was_measured() -> None:
    state = json.loads(measurements.STATE.read_text(encoding="utf-8"))
    assert set(state) <= set(measurements.MEASUREMENTS)
    assert measurements.page(state) == measurements.PAGE.read_text(encoding="utf-8")

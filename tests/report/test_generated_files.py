"""Hostile words in what is written of runs: CSV, JUnit, the matrix' page, pictures, observations, joined traces."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from PIL import Image

from tests.report.test_generated_text import (
    EVERYTHING,
    KEPT_RESULTS,
    PLAIN,
    ROOT,
    Page,
    elements,
    hostile_results,
    in_file_name,
    json_shape,
    recorded,
    site_of,
)
from vkharness.cli import cli
from vkharness.results.read_results import read_results
from vkharness.suite.csv_files import FAILURES, RESULTS, name_of, write_csv_files
from vkharness.suite.matrix.cells import cells
from vkharness.suite.matrix.page import write_page
from vkharness.suite.row import Row
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load, save
from vkharness.verdicts import Status

STEM = in_file_name(EVERYTHING)
JOINED = ROOT / "tests" / "data" / "joining"
FAILS = """
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vkharness.check import Analysis
from vkharness.trace.codec import load


def test_it(record_property):
    found = Analysis().follow(load(Path("t.jsonl"))).findings
    record_property("first", found[0].message)
    assert not found, "\\n".join(each.message for each in found)
"""
FIT = {0x0A}
"""Characters beside the printable ones that a text file may have."""


def is_fit(text: str) -> bool:
    return all(each.isprintable() or ord(each) in FIT for each in text)


def test_csv_files_have_the_same_rows(tmp_path: Path) -> None:
    hostile_results(tmp_path / "hostile")
    rows = list(read_results(tmp_path / "hostile" / "results.jsonl").rows.values())
    write_csv_files(tmp_path, rows)
    for file, columns in ((RESULTS, 3), (FAILURES, 2)):
        text = (tmp_path / file).read_bytes().decode()
        assert is_fit(text)
        found = list(csv.reader(text.splitlines(keepends=True)))
        assert all(len(each) == columns for each in found)
        if file == RESULTS:
            assert len(found) == len(rows) == text.count("\n")
    assert any("touch pwned" in name_of(each) for each in rows)


def test_the_page_of_a_matrix_has_the_same_elements(tmp_path: Path) -> None:
    pages = []
    for word in (EVERYTHING, PLAIN):
        row = Row(word, word, word, [word], status=Status.FAILED, reasons=[word], problem=word)
        write_page(tmp_path / "page.html", [(cells()[0], row)])
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert is_fit(text)
        pages.append(Page(text).tags)
    assert pages[0] == pages[1]


def test_a_failure_is_whole_in_the_junit_file(tmp_path: Path) -> None:
    """The plugin's message about a program with hostile names is one failure, and any reader of XML can read the
    file."""
    save(tmp_path / "t.jsonl", recorded(EVERYTHING).blocks)
    (tmp_path / "test_it.py").write_text(FAILS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "out.xml", "test_it.py"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "harness"), "PYTHONDONTWRITEBYTECODE": "1"}
    told = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert told.returncode == 1, told.stdout
    assert is_fit(told.stdout)
    text = (tmp_path / "out.xml").read_text(encoding="utf-8")
    assert elements(text).count("failure") == 1 and "script" not in elements(text)
    (said,) = (each for each in ElementTree.fromstring(text).iter("property") if each.get("name") == "first")
    assert "<script>alert(1)" in str(said.get("value"))


def without_extensions(word: str) -> list[Block]:
    """The stream of `recorded`, which a driver can run."""
    blocks = recorded(word).blocks
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateDevice":
            block.args["pCreateInfo"] |= {"ppEnabledExtensionNames": None, "enabledExtensionCount": 0}
    return blocks


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the current folder."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / f"{STEM}.jsonl", without_extensions(EVERYTHING))
    return tmp_path / f"{STEM}.jsonl"


def told_by(*words: str | Path) -> int:
    """The exit code of a command in this process; drivers have one of their own."""
    told = CliRunner().invoke(cli, list(map(str, words)))
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    assert is_fit(told.output), told.output
    return told.exit_code


@pytest.mark.driver
def test_a_replay_leaves_pictures_that_are_named_by_numbers(trace: Path, tmp_path: Path) -> None:
    pictures, document = tmp_path / f"{STEM} pictures", tmp_path / f"{STEM} out.json"
    asked = ("--mode", "witness", "--finding", "1", "--artifacts", pictures, "--json", document)
    assert told_by("replay", trace, *asked) == 1
    left = {str(each.relative_to(pictures)): each for each in pictures.rglob("*") if each.is_file()}
    wanted = [f"finding-1/buffer-6-{each}.png" for each in ("difference", "expected", "observed")]
    assert sorted(left) == [*wanted, "finding-1/record.json", "finding-1/values.npz"]
    for name in wanted:
        with Image.open(left[name]) as picture:
            assert is_fit(picture.info["Description"]) and "touch pwned" in picture.info["Description"]
    for text in (left["finding-1/record.json"].read_text(encoding="utf-8"), document.read_text(encoding="utf-8")):
        assert is_fit(text) and EVERYTHING in list(strings(json.loads(text)))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(each)


@pytest.mark.driver
def test_observations_are_read_again(trace: Path, tmp_path: Path) -> None:
    seen = tmp_path / f"{STEM} seen.jsonl"
    assert told_by("observe", trace, "-o", seen, "--runs", "2") == 0
    text = seen.read_text(encoding="utf-8")
    assert is_fit(text) and all(map(json.loads, text.splitlines()))
    assert told_by("check", trace, "--observed", seen) == 1


def test_a_joined_trace_has_the_names_of_both(tmp_path: Path) -> None:
    made = []
    for word in (EVERYTHING, PLAIN):
        stem = in_file_name(word)
        for which in ("client", "server"):
            blocks = load(JOINED / f"{which}-files.jsonl")
            for block in blocks:
                block.site = site_of(word)
            save(tmp_path / f"{stem} {which}.jsonl", blocks)
        both = [tmp_path / f"{stem} {which}.jsonl" for which in ("server", "client")]
        assert told_by("join", *both, "-o", tmp_path / f"{stem} both.jsonl") == 0
        text = (tmp_path / f"{stem} both.jsonl").read_text(encoding="utf-8")
        assert is_fit(text)
        made.append([json_shape(json.loads(each)) for each in text.splitlines()])
        assert {each.site for each in load(tmp_path / f"{stem} both.jsonl")} <= {site_of(word), None, ""}
    assert made[0] == made[1]


def test_kept_results_are_still_read(tmp_path: Path) -> None:
    """The tests above find some texts to change."""
    assert len(read_results(KEPT_RESULTS).rows) > 1 and hostile_results(tmp_path / "hostile") > 60

"""Generated text is data to its reader: names of files, objects, labels, sites, extensions and calls, whatever they
hold, stay strings in Python, HTML, DOT, SVG, SARIF, C, TOML, XML, shell lines and on the terminal.

Each command that writes is asked twice, for a trace with plain words and for one with hostile ones. What it wrote is
parsed, and must have the same structure.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import graphviz
import pytest
from click.testing import CliRunner
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log

from tests.commands.test_debug_info import BUFFER, insert, name, region
from tests.support.streams import Stream, two_buffers
from vkharness.cli import cli
from vkharness.findings import UserError
from vkharness.results.read_results import read_results
from vkharness.trace.calls import Call
from vkharness.trace.codec import save

ROOT = Path(__file__).parents[2]
KEPT_RESULTS = ROOT / "tests" / "data" / "formats" / "results" / "version-1-bytes.jsonl"
QUEUE, COMMANDS = 4, 6
"""VK_OBJECT_TYPE_*."""
BREAKS = (
    *(
        '"',
        "'",
        '"""',
        "'''",
        "\n",
        "\r",
        "</script>",
        "<script>alert(1)</script>",
        "]]>",
        "-->",
        "<!--",
        "*/",
        "/*",
        "//",
    ),
    *("\\", "\\\\", "\x1b[2J", "\x07", "\x7f", "\x9b", "\u202e", "\u2066", "\u2028", "\ufeff", "\udcff", "\x00"),
    *("$(touch pwned)", "`touch pwned`", "; touch pwned;", "%s%n", "{{7*7}}", "{% raw %}", "{0}", "|", "&amp;", "<b>"),
    *("\\N{BULLET}", "\\u0041", "\\G", "#", "??/", "}", ")", "[x](y)", "__import__('os').system('touch pwned')"),
    "\nimport os; os.mkdir('pwned')\n",
)
EVERYTHING = "".join(BREAKS)
PLAIN = "plain"


def in_file_name(text: str) -> str:
    """As much of a text as may be in the name of a file, which ends in another letter than that of a kind of file."""
    return text.replace("/", "").replace("\x00", "").encode("utf-8", "surrogateescape")[:120].decode("utf-8", "replace")


def site_of(text: str) -> str:
    """A site has one line, else the trace is refused."""
    return f"{text.replace(chr(10), ' ')}:12"


def recorded(word: str) -> Stream:
    """A stream with three hazards, with this word wherever a program may say one."""
    stream, a, b = two_buffers(256)
    first = stream.blocks[0]
    assert isinstance(first, Call)
    for block in stream.blocks:
        if isinstance(block, Call) and block.name == "vkCreateDevice":
            block.args["pCreateInfo"]["ppEnabledExtensionNames"] = [word]
            block.args["pCreateInfo"]["enabledExtensionCount"] = 1
    name(stream, a, word, BUFFER)
    name(stream, b, word, BUFFER)
    name(stream, stream.queue, word, QUEUE)
    commands = stream.begin()
    name(stream, commands, word, COMMANDS)
    with region(stream, word):
        stream.fill(a, 7)
        insert(stream, word)
        stream.copy(a, b, 256)
    stream.fill(b, 9)
    stream.end()
    with region(stream, word, stream.queue):
        stream.submit(commands)
    for block in stream.blocks:
        if isinstance(block, Call):
            block.site = site_of(word)
    return stream


class Written:
    """A folder with what the commands left of one trace, and what they printed."""

    def __init__(self, folder: Path, word: str, *, in_names: bool = True) -> None:
        self.folder, self.word = folder, word
        stem = in_file_name(word) if in_names else "plain"
        self.trace = folder / f"{stem}.jsonl"
        self.printed: dict[str, str] = {}
        save(self.trace, recorded(word).blocks)
        mine = f"{stem} out"
        self.sarif, self.json = folder / f"{mine}.sarif", folder / f"{mine}.json"
        self.dot, self.svg = folder / f"{mine}.dot", folder / f"{mine}.svg"
        self.small, self.scenario = folder / f"{mine} small.jsonl", folder / f"scenario_{mine}.py"
        self.mends, self.mended = folder / f"{mine} mends.json", folder / f"{mine} mended.jsonl"
        self.advice = folder / f"{mine} advice.json"
        self.run("check", self.trace, "--json", self.json, "--sarif", self.sarif)
        self.run("explain", self.trace)
        self.run("graph", self.trace, "--finding", "1", "-o", self.dot)
        self.run("graph", self.trace, "--finding", "1", "-o", self.svg)
        self.run("reduce", self.trace, "--finding", "1", "-o", self.small, "--scenario", self.scenario)
        for code in ("C", "Python"):
            self.run("mend", self.trace, "--code", code, "--json", self.mends, "--apply", self.mended)
            self.run("advise", self.mended, "--code", code, "--json", self.advice)
        self.run("check", folder / f"{mine} that is not there", key="a mistake")
        self.run("check", self.trace, "--ignore", folder / f"{mine} no list", key="no list")

    def run(self, *words: str | Path, key: str = "") -> None:
        ran = subprocess.run(
            [sys.executable, "-c", "from vkharness.cli import main; main()", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "harness"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        told = (ran.stdout + ran.stderr).decode("utf-8")
        assert ran.returncode in (0, 1, 2, 3), told
        assert "Traceback" not in told and "internal" not in told, told
        place = f"{words[0]} {key or ' '.join(each for each in words[2:] if isinstance(each, str))}"
        self.printed[place] = f"exit {ran.returncode}\n{told}"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("plain"), PLAIN)


@pytest.fixture(scope="module", params=["everything", "code"])
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    words = {
        "everything": EVERYTHING,
        "code": '"""; __import__("os").mkdir("pwned"); """ $(touch pwned) ]]> \\'
        + "\nimport os; os.mkdir('pwned')\n'''\n",
    }
    return Written(tmp_path_factory.mktemp("hostile"), words[request.param])


def test_a_terminal_obeys_nothing(hostile: Written) -> None:
    for command, told in hostile.printed.items():
        odd = {each for each in told if not each.isprintable() and each != "\n"}
        assert not odd, (command, odd)


def test_each_command_ends_as_it_does_with_plain_words(hostile: Written, plain: Written) -> None:
    ends = [{key: told.partition("\n")[0] for key, told in each.printed.items()} for each in (hostile, plain)]
    assert ends[0] == ends[1], hostile.printed


def test_nothing_was_run(hostile: Written) -> None:
    loads = "import runpy, sys; runpy.run_path(sys.argv[1])"
    loaded = subprocess.run(
        [sys.executable, "-c", loads, hostile.scenario],
        cwd=hostile.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
        capture_output=True,
        check=False,
    )
    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (0, b"", b"")
    assert not [each for each in hostile.folder.rglob("*") if each.name == "pwned"]


def shape_of(code: str) -> Any:
    """A module without what its strings say, and without names that a file's name gives."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        if isinstance(node, ast.FunctionDef):
            node.name = "scenario"
    return ast.dump(tree)


def test_a_claim_is_the_same_program(hostile: Written, plain: Written) -> None:
    shapes = [shape_of(each.scenario.read_text(encoding="utf-8")) for each in (hostile, plain)]
    assert shapes[0] == shapes[1]
    text = hostile.scenario.read_text(encoding="utf-8")
    assert all(each.isprintable() or each == "\n" for each in text), "an editor shows what is there"


def json_shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: json_shape(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [json_shape(each) for each in value]
    return type(value).__name__


def test_json_and_sarif_are_the_same_documents(hostile: Written, plain: Written) -> None:
    for which in ("json", "sarif", "mends", "advice"):
        texts = [getattr(each, which).read_text(encoding="utf-8") for each in (hostile, plain)]
        shapes = [json_shape(json.loads(text)) for text in texts]
        assert shapes[0] == shapes[1], which
        assert all(each.isprintable() or each == "\n" for each in texts[0]), which
    Log.model_validate_json(hostile.sarif.read_text(encoding="utf-8"))


def test_what_is_said_comes_back_from_json(hostile: Written) -> None:
    document = json.loads(hostile.json.read_text(encoding="utf-8"))
    found = document["findings"][0]
    assert found["site"] == site_of(hostile.word)
    assert hostile.word in found["resource_name"] or found["resource_name"] == hostile.word


def elements(text: str) -> list[str]:
    return [each.tag for each in ElementTree.fromstring(text).iter()]


def test_a_picture_has_the_same_elements(hostile: Written, plain: Written) -> None:
    for drawn in (hostile, plain):
        dot = drawn.dot.read_text(encoding="utf-8")
        assert all(each.isprintable() or each in "\n\t" for each in dot)
        assert graphviz.Source(dot).pipe(format="dot", quiet=True)
    pictures = [set(elements(each.svg.read_text(encoding="utf-8"))) for each in (hostile, plain)]
    assert pictures[0] == pictures[1]
    counts = [each.dot.read_text(encoding="utf-8").count(" -> ") for each in (hostile, plain)]
    assert counts[0] == counts[1]


# -- results of a suite ------------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts."""
    if isinstance(value, str):
        yield path
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(each, (*path, key))


def with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """A copy in which the text at a place is another one."""
    if not path:
        return text
    if isinstance(value, dict):
        return {key: with_text(each, path[1:], text) if key == path[0] else each for key, each in value.items()}
    return [with_text(each, path[1:], text) if at == path[0] else each for at, each in enumerate(value)]


def is_read(lines: list[Any], folder: Path) -> bool:
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    try:
        read_results(folder / "results.jsonl")
    except UserError:
        return False
    return True


def hostile_results(folder: Path) -> int:
    """Kept results in which every text is hostile that may be any; how many these are."""
    folder.mkdir()
    lines = [json.loads(each) for each in KEPT_RESULTS.read_text().splitlines()]
    count = 0
    for path in list(leaves(lines)):
        changed = with_text(lines, path, EVERYTHING)
        if is_read(changed, folder):
            lines, count = changed, count + 1
    assert is_read(lines, folder)
    return count


class Page(HTMLParser):
    """The elements of a page with their attributes' names, and the scripts in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))


def test_the_page_of_hostile_results_is_the_same_page(tmp_path: Path) -> None:
    assert hostile_results(tmp_path / "hostile") > 60
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "results.jsonl").write_text(KEPT_RESULTS.read_text())
    pages = []
    for which in ("hostile", "plain"):
        words = ["report", str(tmp_path / which), "-o", str(tmp_path / f"{which} page"), "--sources", str(tmp_path)]
        told = CliRunner().invoke(cli, words)
        assert told.exit_code == 0, told.exception
        assert all(each.isprintable() or each == "\n" for each in told.output)
        pages.append(Page((tmp_path / f"{which} page" / "index.html").read_text(encoding="utf-8")).tags)
        for data in (tmp_path / f"{which} page" / "data").rglob("*.js"):
            text = data.read_text(encoding="ascii")
            json.loads(f"[{text.partition('(')[2].rstrip().removesuffix(');')}]")
    kinds = [[tag for tag in tags if tag[0] in ("script", "img", "iframe", "link", "style")] for tags in pages]
    assert kinds[0] == kinds[1]
    assert {tag for tag, _ in pages[0]} == {tag for tag, _ in pages[1]}


def test_what_is_said_of_hostile_results_is_fit_for_a_terminal(tmp_path: Path) -> None:
    hostile_results(tmp_path / "hostile")
    file = str(tmp_path / "hostile" / "results.jsonl")
    kept = str(KEPT_RESULTS)
    for words in (["compare", file, kept], ["compare", kept, file], ["shown", file], ["computed", file]):
        told = CliRunner().invoke(cli, words)
        assert told.exception is None or isinstance(told.exception, SystemExit | UserError), told.exception
        assert all(each.isprintable() or each == "\n" for each in told.output), words[0]


def test_a_new_project_of_any_name_is_the_same_project(tmp_path: Path) -> None:
    projects = []
    for word in (in_file_name(EVERYTHING), PLAIN):
        folder = tmp_path / word
        told = CliRunner().invoke(cli, ["init", str(folder)])
        assert told.exit_code == 0 and all(each.isprintable() or each == "\n" for each in told.output), told.output
        projects.append({each.relative_to(folder): each.read_bytes() for each in folder.rglob("*") if each.is_file()})
    assert projects[0] == projects[1]
    for path, content in projects[0].items():
        if path.suffix == ".toml":
            tomllib.loads(content.decode())
        if path.suffix == ".py":
            ast.parse(content)

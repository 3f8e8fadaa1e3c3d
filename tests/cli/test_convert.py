"""`vkharness convert`, and every command with each form of a trace: text, one file, a stream of the mirror layer."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.support.written_streams import MirrorStream, buffer_calls, copy_calls, submit_args
from vkharness.check import Analysis
from vkharness.cli import cli
from vkharness.findings import UserError
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, read_header, save

DATA = Path(__file__).parents[1] / "data"
_SHOWN = {"swapchainCount": 1, "pSwapchains": [9], "pImageIndices": [0], "pResults": None}
_INFO = {"sType": 1000001001, "pNext": None, "waitSemaphoreCount": 0, "pWaitSemaphores": None, **_SHOWN}
PRESENTS = {"queue": 3, "pPresentInfo": _INFO}
SOURCES = sorted(
    [each for each in (DATA / "formats" / "trace").iterdir() if each.is_file()]
    + [DATA / "gfxrecon" / "debian-0.9.18.gfxr", DATA / "gfxrecon" / "upstream-1.x.jsonl"]
    + [DATA / "api_dump" / "fill_copy-1.4.350.txt", DATA / "renderdoc" / "many_shapes.zip.xml"]
    + [*(DATA / "joining").glob("*.jsonl")]
)


def asked(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert isinstance(result.exception, (UserError, SystemExit)), result.exception
    return str(result.exception) if isinstance(result.exception, UserError) else result.output


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """The folder of a process: a copy reads what the host writes again too early."""
    made = MirrorStream(tmp_path / "out" / "process-7")
    buffer_calls(made)
    copy_calls(made)
    made.call("vkQueueSubmit", submit_args(), 0)
    made.data(4, 16, b"early!!!")
    made.call("vkQueueSubmit", submit_args(), 0)
    return made.folder


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_what_is_read_becomes_either_form(tmp_path: Path, source: Path) -> None:
    """The lines are the same by either way, and so are calls and verdict."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    asked("convert", source, tmp_path / "t.vkt")
    asked("convert", tmp_path / "t.vkt", tmp_path / "a" / "t.jsonl")
    asked("convert", source, tmp_path / "b" / "t.jsonl")
    assert (tmp_path / "a" / "t.jsonl").read_bytes() == (tmp_path / "b" / "t.jsonl").read_bytes()
    blocks = load(source)
    assert load(tmp_path / "t.vkt") == load(tmp_path / "a" / "t.jsonl") == blocks
    judged = [Analysis(partial=True).follow(load(each)) for each in (source, tmp_path / "t.vkt")]
    assert judged[0].verdict == judged[1].verdict
    assert [each.message for each in judged[0].findings] == [each.message for each in judged[1].findings]


def test_what_the_header_says_is_kept(tmp_path: Path) -> None:
    save(tmp_path / "a.jsonl", [Call(1, "vkQueueWaitIdle", {"queue": 3}, 0)], {"joined": {"from": ["x", "y"]}})
    asked("convert", tmp_path / "a.jsonl", tmp_path / "a.vkt")
    assert read_header(tmp_path / "a.vkt")["vkharness"] == {"version": 3, "joined": {"from": ["x", "y"]}}
    asked("convert", tmp_path / "a.vkt", tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    trace = DATA / "formats" / "trace" / "version-3.vkt"
    assert "cannot be read" in refused("convert", tmp_path / "none", tmp_path / "t.vkt")
    assert "is what is to be converted" in refused("convert", trace, trace)
    assert "nothing of the mirror layer" in refused("convert", tmp_path, tmp_path / "t.vkt")
    assert "is no number of frames" in refused("convert", "--frames", "5-2", trace, tmp_path / "t.vkt")
    for number in (1, 2):
        MirrorStream(tmp_path / "out" / f"process-{number}")
    for command in (["convert"], ["explain"], ["join", "-o", tmp_path / "j.vkt"]):
        more = [tmp_path / "t.vkt"] if command[0] != "explain" else []
        said = refused(*command, tmp_path / "out", *more)
        assert "the streams of 2 processes: name the folder of one (process-1, process-2)" in said
    assert not (tmp_path / "t.vkt").exists()


def test_frames_are_found_by_the_index_as_by_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkharness.trace.packed.LINES_OF_A_GROUP", 1000)
    blocks = []
    for number in range(1, 120):
        name = "vkQueuePresentKHR" if number % 4 == 0 else "vkQueueWaitIdle"
        blocks.append(Call(number, name, PRESENTS if number % 4 == 0 else {"queue": 3}, 0))
    save(tmp_path / "t.vkt", blocks)
    save(tmp_path / "t.jsonl", blocks)
    for frames, first, last in (("1", 1, 4), ("3", 1, 12), ("7-9", 25, 36), ("12-12", 45, 48), ("29-40", 113, 119)):
        found = []
        for source in ("t.vkt", "t.jsonl"):
            asked("convert", "--frames", frames, tmp_path / source, tmp_path / "part.vkt")
            found.append(load(tmp_path / "part.vkt"))
        assert found[0] == found[1]
        part = [each for each in found[0] if not (isinstance(each, Call) and each.unread)]
        assert part == blocks[first - 1 : last]
        assert (Analysis(partial=True).follow(found[0]).verdict == "unknown") or first == 1


@pytest.mark.parametrize("form", ["vkt", "jsonl"])
def test_frames_of_one_group_are_found_and_others_refused(form: str, tmp_path: Path) -> None:
    """A trace without the blocks that were asked for would be one that nothing is wrong with."""
    source, target = tmp_path / f"t.{form}", tmp_path / "part.vkt"
    save(source, [Call(number, "vkQueuePresentKHR", PRESENTS, 0) for number in range(1, 6)])
    asked("convert", "--frames", "2-2", source, target)
    assert [each.index for each in load(target) if isinstance(each, Call) and not each.unread] == [2]
    target.unlink()
    assert refused("convert", "--frames", "6-9", source, target) == f"{source}: no frame 6: it has only 5 frames"
    assert [each.name for each in tmp_path.glob("part*")] == []


@pytest.mark.driver
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("check IN", 1),
        ("advise IN", 0),
        ("explain IN", 0),
        ("graph IN -o OUT.svg", 0),
        ("mend IN --apply OUT.vkt", 0),
        ("mend IN --apply OUT.jsonl", 0),
        ("reduce IN -o OUT.vkt", 0),
        ("convert IN OUT.vkt", 0),
        ("convert IN OUT.jsonl", 0),
    ],
)
def test_every_command_says_the_same_of_each_form(tmp_path: Path, stream: Path, arguments: str, code: int) -> None:
    (tmp_path / "forms").mkdir()
    forms = [tmp_path / "forms" / name for name in ("process-7.vkt", "process-7.jsonl")]
    for form in forms:
        asked("convert", stream, form)
    said, made = [], []
    for number, form in enumerate((stream, stream.parent, *forms)):
        out = tmp_path / f"made{number}"
        words = [word.replace("OUT", str(out)).replace("IN", str(form)) for word in arguments.split()]
        result = asked(*words, code=code)
        lines = [line for line in result.output.splitlines() if "process-7" not in line and str(form) not in line]
        said.append("\n".join(lines).replace(str(out), "OUT"))
        made.append([load(each) for each in tmp_path.glob(f"{out.name}.*") if each.suffix in (".vkt", ".jsonl")])
    assert said[0] and said[0] == said[1] == said[2] == said[3]
    assert made[0] == made[1] == made[2] == made[3]


@pytest.mark.driver
def test_the_drawing_of_a_stream_is_beside_its_folder(tmp_path: Path, stream: Path) -> None:
    asked("graph", stream)
    assert (tmp_path / "out" / "process-7.svg").exists()


@pytest.mark.driver
def test_a_stream_and_its_trace_have_the_same_findings(tmp_path: Path, stream: Path) -> None:
    asked("check", stream, "--json", tmp_path / "a.json", code=1)
    asked("convert", stream, tmp_path / "t.vkt")
    asked("check", tmp_path / "t.vkt", "--json", tmp_path / "b.json", code=1)
    folder, file = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert folder["processes"][0]["findings"] == file["findings"] and file["findings"]
    assert folder["verdict"] == file["verdict"]


def test_every_command_that_takes_a_trace_takes_a_folder() -> None:
    """By its parameter; `check` judges all processes of a folder, and `convert` reads the folder itself."""
    context = click.Context(cli)
    plain = set()
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        for each in command.params:
            if isinstance(each, click.Argument) and each.name in ("trace", "first", "second", "subject", "source"):
                plain |= {name} if type(each.type) is click.Path else set()
    assert plain == {"check", "convert"}

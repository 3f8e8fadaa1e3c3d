"""`vkharness reduce`: what a user sees, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.test_witness_presentation import BLUE, GREEN, RED, TOP, Presenter
from tests.support.streams import Stream
from vkharness.cli import main
from vkharness.syncval.validator import Validator
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, read_header, save


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    stream = Stream()
    a, b, c = stream.buffer(64), stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(c, 1)
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    path = tmp_path / "whole.jsonl"
    save(path, stream.blocks)
    return path


def reduce(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main(["reduce", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_it_writes_a_trace_that_the_other_commands_read(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = trace.with_name("small.jsonl")
    assert reduce(trace, "--finding", "1", "-o", small) == 0
    told = capsys.readouterr()
    assert told.err == "", "nothing but results in a pipe"
    assert f"{small}: {len(load(small))} calls, 2 commands" in told.out
    assert "READ_AFTER_WRITE on VkBuffer" in told.out
    assert read_header(small)["vkharness"]["reduced"] == {"from": "whole.jsonl", "finding": 1}
    with pytest.raises(SystemExit) as left:
        main(["check", str(small)])
    assert left.value.code == 1


def test_a_number_that_no_finding_has_exits_2_with_what_there_is(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reduce(trace, "--finding", "3", "-o", trace.with_name("small.jsonl")) == 2
    assert capsys.readouterr().err == f"vkharness: --finding 3: {trace} has 1 group of findings\n"
    assert not trace.with_name("small.jsonl").exists()


def test_the_trace_itself_is_never_overwritten(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = trace.read_bytes()
    assert reduce(trace, "-o", trace) == 2
    assert trace.read_bytes() == before
    assert "choose another file" in capsys.readouterr().err


def test_no_time_leaves_the_slice_and_exits_1(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reduce(trace, "-o", trace.with_name("small.jsonl"), "--seconds", "0") == 1
    assert "the limit of time or work came first" in capsys.readouterr().out


def test_a_device_says_whether_the_hazard_is_still_shown(
    trace: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reduce(trace, "-o", trace.with_name("small.jsonl"), "--device", device) == 0
    assert capsys.readouterr().out.endswith(f"shown on {device}\n")


@pytest.fixture(params=["lavapipe", "swiftshader"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.driver
def test_it_writes_a_claim_for_pytest_beside_the_trace(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trace.with_name("race.py")
    assert reduce(trace, "-o", trace.with_name("small.jsonl"), "--scenario", file, "--device", "lavapipe") == 0
    assert capsys.readouterr().out.endswith(f"{file}: passes on lavapipe (pytest {file})\n")
    assert "commands.barrier" not in file.read_text(), "variables are named after the objects of the trace"
    assert '"fill buffer before copy buffer"' in file.read_text()
    compile(file.read_text(), str(file), "exec")


@pytest.mark.driver
def test_what_only_the_model_finds_is_reduced_by_the_model(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Validator, "consume", lambda validator, event: [])
    monkeypatch.setattr(Validator, "judge_recording", lambda validator, *recording: [])
    small = trace.with_name("small.jsonl")
    assert reduce(trace, "-o", small) == 0
    told = capsys.readouterr().out
    assert "2 commands" in told and "the model alone" in told
    file = trace.with_name("race.py")
    assert reduce(trace, "-o", small, "--scenario", file, "--device", "lavapipe") == 0
    assert "passes on lavapipe" in capsys.readouterr().out, "syncval finds it in the process that runs the scenario"
    claimed = 'without={"fill buffer before copy buffer": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]}'
    assert claimed in file.read_text()
    for command in (["mend", str(trace), "--finding", "1"], ["graph", str(trace), "--finding", "1"]):
        with pytest.raises(SystemExit) as left:
            main(command)
        assert left.value.code in (0, None)
    told = capsys.readouterr().out
    assert "mended by change 1" in told and "finding 1" in told
    with pytest.raises(SystemExit) as left:
        main(["explain", str(trace)])
    assert "CONFLICT unordered: vkCmdCopyBuffer" in capsys.readouterr().out


def test_pixels_choose_the_finding_and_keep_what_shows_it(
    tmp_path: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The image of the first frame was never on the screen, so that nothing of its finding can be seen."""
    presenter = Presenter()
    for colour in (RED, GREEN, BLUE):
        presenter.frame(colour, starts=TOP)
    trace, small = tmp_path / "whole.jsonl", tmp_path / "small.jsonl"
    save(trace, presenter.blocks)
    assert reduce(trace, "-o", small, "--device", device) == 0
    assert capsys.readouterr().out.endswith(f"shown on {device}\n")
    names = [block.name for block in load(small) if isinstance(block, Call)]
    assert (names.count("vkAcquireNextImageKHR"), names.count("vkQueuePresentKHR")) == (2, 1)
    assert reduce(trace, "-o", small) == 0
    names = [block.name for block in load(small) if isinstance(block, Call)]
    assert (names.count("vkAcquireNextImageKHR"), names.count("vkQueuePresentKHR")) == (1, 0), "the judge needs no more"

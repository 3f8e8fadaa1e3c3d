"""The hunt with hostile files: what it makes, what it notices, how small it gets, and how it goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import cli
from harness.findings import UserError
from harness.fuzz.hostile.binary_changes import changed_capture, changed_shader, changed_text, put_together, take_apart
from harness.fuzz.hostile.call_streams import CallStream
from harness.fuzz.hostile.hunt import HuntPlan, conduct
from harness.fuzz.hostile.json_changes import changed_trace
from harness.fuzz.hostile.line_counter import LineCounter
from harness.fuzz.hostile.samples import CAPTURE, TRACE, Sample, read_samples
from harness.fuzz.hostile.smaller import smaller
from harness.fuzz.hostile.trial import Limits, Trial, Trials
from harness.trace.codec import load, save
from tests.support.capture_files import CAPTURE as CAPTURED
from tests.support.streams import Dispatch, Stream

FORMATS = Path(__file__).parents[1] / "data" / "formats"
SMALL = Sample(TRACE, "t.jsonl", {"t.jsonl": b'{"header":{}}\nfirst\nbad\nlast\n', "t.bin/x": b"1234"})
LIMITS = Limits(seconds=4.0, memory=300 << 20)


def words_of(*words: str) -> Callable[[list[str]], None]:
    """A command that does what the words of its file say."""

    def main(arguments: list[str]) -> None:
        text = Path(arguments[-1]).read_text()
        if "bad" not in text:
            sys.exit(0)
        for word in words:
            deeds[word]()
        sys.exit(0)

    return main


def spin() -> None:
    while True:
        pass


def leave(code: int, said: str = "") -> Callable[[], None]:
    def end() -> None:
        print(said, file=sys.stderr, end="")
        sys.exit(code)

    return end


def fail() -> None:
    raise KeyError("x")


deeds: dict[str, Callable[[], None]] = {
    "fail": fail,
    "internal": leave(70, "an error"),
    "other code": leave(9),
    "two lines": leave(2, "one\ntwo\n"),
    "one line": leave(2, "vkharness: note: a note\nvkharness: t.jsonl: bad\n"),
    "no file": leave(2, "vkharness: bad\n"),
    "control": lambda: print("\x1b[2J"),
    "spin": spin,
    "grow": lambda: held.append(b"x" * (400 << 20)),
    "die": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "vanish": lambda: os._exit(0),
}
held: list[bytes] = []


@pytest.mark.parametrize(
    ("deed", "fault"),
    [
        ("fail", "KeyError at "),
        ("internal", "an error at "),
        ("other code", "exit code 9 (check)"),
        ("two lines", "several lines of an error (check)"),
        ("one line", ""),
        ("no file", "an error that names no file: 'vkharness: bad"),
        ("control", "a raw character '\\x1b' on the terminal"),
        ("spin", "slow: check: "),
        ("grow", "memory (check)"),
        ("die", "SIGSEGV: "),
        ("vanish", "status 0: "),
    ],
)
def test_each_broken_promise_is_noticed_and_costs_the_others_nothing(deed: str, fault: str, tmp_path: Path) -> None:
    good = SMALL.with_subject(b"good\n")
    trials = [Trial(sample, ("check", "t.jsonl")) for sample in (good, SMALL, good)]
    ends = Trials(words_of(deed), tmp_path, LIMITS, False).run(trials)
    assert [bool(each.fault) for each in ends] == [False, bool(fault), False]
    assert ends[1].fault.startswith(fault)


def test_the_smallest_input_with_a_fault_has_nothing_else(tmp_path: Path) -> None:
    trials = Trials(words_of("fail"), tmp_path, LIMITS, False)
    trial = Trial(SMALL, ("check", "t.jsonl"))
    found = smaller(trials, trial, trials.run([trial])[0].fault)
    assert found.files == {"t.jsonl": b"bad\n"}


def test_the_same_seed_changes_a_file_in_the_same_way() -> None:
    (sample,) = read_samples([FORMATS / "trace" / "version-1.jsonl"])
    trace, capture = sample.files[sample.subject], CAPTURED.read_bytes()
    toml = (FORMATS / "ignore" / "version-1.toml").read_bytes()
    changes: list[Callable[[random.Random], bytes]] = [
        lambda rng: changed_trace(rng, trace, trace),
        lambda rng: changed_capture(rng, capture),
        lambda rng: changed_text(rng, toml),
        lambda rng: CallStream(rng).text(),
    ]
    for change in changes:
        made = [change(random.Random(seed)) for seed in range(20)]
        assert made == [change(random.Random(seed)) for seed in range(20)]
        assert len(set(made)) > 15


def test_most_generated_calls_are_calls(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for seed in range(10):
        path.write_bytes(CallStream(random.Random(seed)).text())
        blocks = load(path)
        assert sum(not getattr(block, "unread", "") for block in blocks) > len(blocks) / 2, f"seed {seed}"


def test_a_changed_shader_is_read_as_the_trace_names_it(tmp_path: Path) -> None:
    stream = Stream()
    Dispatch(stream, "copy_words", [stream.buffer(64), stream.buffer(64)], b"")
    save(tmp_path / "t.jsonl", stream.blocks)
    (sample,) = read_samples([tmp_path / "t.jsonl"])
    subject, files = changed_shader(random.Random(3), sample.files[sample.subject], sample.files)
    sample._replace(files={**files, sample.subject: subject}).write(tmp_path / "changed")
    (before,), (after,) = (
        [block for block in load(path) if getattr(block, "name", "") == "vkCreateShaderModule"]
        for path in (tmp_path / "t.jsonl", tmp_path / "changed" / "t.jsonl")
    )
    assert not getattr(after, "unread", "")
    assert before != after


def test_a_capture_taken_apart_and_put_together_is_the_same_calls(tmp_path: Path) -> None:
    path = tmp_path / "c.gfxr"
    path.write_bytes(put_together(*take_apart(CAPTURED.read_bytes())))
    assert load(path) == load(CAPTURED)


def test_kinds_of_samples_are_told_by_their_content() -> None:
    kinds = {sample.kind for sample in read_samples([FORMATS, CAPTURED])}
    assert {TRACE, CAPTURE, "ignore", "observations", "results"} == kinds
    with pytest.raises(UserError, match="no trace"):
        read_samples([FORMATS / "README.md"])


def test_lines_count_once() -> None:
    counter = LineCounter(set())
    found = []
    for text in (b"{}", b"{}", b"[1]"):
        counter.start()
        try:
            changed_text(random.Random(1), text)
        finally:
            found.append(counter.stop())
    assert found[0]
    assert not found[1] & found[0]


def test_a_hunt_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    def go(count: int, seed: int = 4) -> int:
        plan = HuntPlan(seed, "")
        file, keep = tmp_path / "hunt.jsonl", tmp_path / "keep"
        tally = conduct(words_of("fail"), plan, [SMALL], keep, file, LIMITS, (count, 0.0), lambda _: None)
        return tally.inputs

    assert go(40) == 40
    assert go(80) == 80
    lines = (tmp_path / "hunt.jsonl").read_text().splitlines()
    assert [json.loads(line).get("inputs") for line in lines] == [None, 40, 40]
    told = next((tmp_path / "keep").glob("KeyError*/fault.txt")).read_text()
    assert told.splitlines()[1].startswith("vkharness ")
    with pytest.raises(UserError, match="another plan"):
        go(80, seed=5)


def test_the_command_finds_nothing_in_a_few_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = str(tmp_path / "keep")
    with pytest.raises(SystemExit) as left:
        cli.main(["fuzz", "hostile", "--count", "40", "--seed", "2", "--keep", keep, str(FORMATS / "trace")])
    told = capsys.readouterr().out
    assert (left.value.code, told.splitlines()[0]) == (0, "seed 2, 3 samples given"), told
    assert "40 inputs (40 trace)" in told

"""The hunt with hostile files: what it makes, what it notices, how small it gets, and how it goes on."""

from __future__ import annotations

import json
import mmap
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.capture_files import CAPTURE as CAPTURED
from tests.support.renderdoc_captures import RELY
from tests.support.streams import Dispatch, Stream
from vkharness import cli, pytest_plugin
from vkharness.check import Analysis
from vkharness.cli.hostile_readers import READERS
from vkharness.findings import UserError
from vkharness.fuzz.hostile import job_processes
from vkharness.fuzz.hostile.binary_changes import (
    changed_capture,
    changed_shader,
    changed_text,
    put_together,
    take_apart,
)
from vkharness.fuzz.hostile.call_orders import CallOrders
from vkharness.fuzz.hostile.call_streams import CallStream
from vkharness.fuzz.hostile.commands import ANY, ON, PATHS, SUBJECT, TRUSTED, WRITTEN, ways
from vkharness.fuzz.hostile.hunt import Hunt
from vkharness.fuzz.hostile.job_processes import Ends, conduct, device_of
from vkharness.fuzz.hostile.json_changes import changed_trace, shortened
from vkharness.fuzz.hostile.line_counter import LineCounter
from vkharness.fuzz.hostile.packed_changes import changed_packed, packed_of
from vkharness.fuzz.hostile.samples import CAPTURE, DUMP, PACKED, TRACE, Sample, read_samples, remove_left
from vkharness.fuzz.hostile.shader_orders import CODE
from vkharness.fuzz.hostile.smaller import smaller
from vkharness.fuzz.hostile.tally import HuntPlan, SumsFile, Tally
from vkharness.fuzz.hostile.trial import Limits, Trial, TrialEnd, Trials
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, save

FORMATS = Path(__file__).parents[1] / "data" / "formats"
BATCH = 20
"""Inputs of one process in these tests, which are about what happens between batches."""
SMALL = Sample(TRACE, "t.jsonl", {"t.jsonl": b'{"header":{}}\nfirst\nbad\nlast\n', "t.bin/x": b"1234"})


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("hunt", "job_processes"):
        monkeypatch.setattr(f"vkharness.fuzz.hostile.{module}.BATCH", BATCH)


def limits(seconds: float = 4.0) -> Limits:
    """A trial begins with all that this process holds, and other tests have run in it."""
    return Limits(seconds=seconds, memory=resident_bytes() + (300 << 20))


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
    ends = Trials(words_of(deed), tmp_path, limits(1.0 if deed == "spin" else 4.0), False).run(trials)
    assert [bool(each.fault) for each in ends] == [False, bool(fault), False]
    assert ends[1].fault.startswith(fault)


def test_the_smallest_input_with_a_fault_has_nothing_else(tmp_path: Path) -> None:
    trials = Trials(words_of("fail"), tmp_path, limits(), False)
    trial = Trial(SMALL, ("check", "t.jsonl"))
    found = smaller(trials, trial, trials.run([trial])[0].fault)
    assert found.files == {"t.jsonl": b"bad\n"}


def test_the_same_seed_changes_a_file_in_the_same_way() -> None:
    (sample,) = read_samples([FORMATS / "trace" / "version-1.jsonl"])
    trace, capture = sample.files[sample.subject], CAPTURED.read_bytes()
    packed = packed_of(random.Random(1), trace, sample.files)
    toml = (FORMATS / "ignore" / "version-1.toml").read_bytes()
    changes: list[Callable[[random.Random], bytes]] = [
        lambda rng: changed_trace(rng, trace, trace),
        lambda rng: changed_capture(rng, capture),
        lambda rng: changed_packed(rng, packed, lambda lines: changed_trace(rng, lines, trace)),
        lambda rng: changed_text(rng, toml),
        lambda rng: CallStream(rng).text(),
        lambda rng: CallOrders(rng).text(),
    ]
    for change in changes:
        made = [change(random.Random(seed)) for seed in range(20)]
        assert made == [change(random.Random(seed)) for seed in range(20)]
        assert len(set(made)) > 15


def test_a_trace_becomes_one_file_with_its_contents(tmp_path: Path) -> None:
    """What is changed is whole before, however it is cut into groups; most changes are met behind the checksums."""
    (sample,) = read_samples([FORMATS / "trace" / "version-2.jsonl"])
    trace = sample.files[sample.subject]
    path = tmp_path / "t.vkt"
    told: Counter[str] = Counter()
    for seed in range(20):
        rng = random.Random(seed)
        packed = packed_of(rng, trace, sample.files)
        path.write_bytes(packed)
        assert load(path) == load(FORMATS / "trace" / "version-2.jsonl")
        path.write_bytes(changed_packed(rng, packed, lambda lines, rng=rng: changed_trace(rng, lines, trace)))  # type: ignore[misc]
        try:
            load(path)
        except UserError as error:
            told["damaged" if "damaged" in str(error) else "behind"] += 1
    assert told["damaged"] < 10


def test_most_generated_calls_are_calls(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for seed in range(10):
        path.write_bytes(CallStream(random.Random(seed)).text())
        blocks = load(path)
        assert sum(not getattr(block, "unread", "") for block in blocks) > len(blocks) / 2, f"seed {seed}"


def write_orders(path: Path, seed: int) -> None:
    path.write_bytes(CallOrders(random.Random(seed)).text())
    for name, code in CODE.items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(code)


def test_orders_have_shaders_sets_and_swapchains(tmp_path: Path) -> None:
    names: Counter[str] = Counter()
    path = tmp_path / "t.jsonl"
    for seed in range(30):
        write_orders(path, seed)
        analysis = Analysis().follow(load(path))
        several = [each.place.command + each.prior.command for each in analysis.findings]
        names["a hazard of a dispatch"] += sum("Dispatch" in each for each in several)
        names.update(each.name for each in load(path) if isinstance(each, Call))
    assert min(names[each] for each in ("vkUpdateDescriptorSets", "vkQueuePresentKHR", "vkAcquireNextImageKHR")) > 5
    assert names["vkCmdBindDescriptorSets"] > 10 and names["a hazard of a dispatch"]


@pytest.mark.parametrize("seed", [159, 611])
def test_calls_in_any_order_are_judged(seed: int, tmp_path: Path) -> None:
    """These allocate a command buffer that is alive, and wait for events in it."""
    path = tmp_path / "t.jsonl"
    write_orders(path, seed)
    blocks = load(path)
    assert not any(getattr(block, "unread", "") for block in blocks)
    assert Analysis(keep_events=True).follow(blocks).verdict in ("unknown", "hazards")


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


def test_an_input_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    for left in ("one.7.partial", "corpus/two.7.partial"):
        (tmp_path / left).mkdir(parents=True)
        (tmp_path / left / "t.jsonl").write_bytes(b"of a hunt that was ki")
    remove_left(tmp_path)
    assert SMALL.keep(tmp_path / "one", "a fault")
    assert not SMALL._replace(files={"t.jsonl": b"later"}).keep(tmp_path / "one")
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told = {"one/fault.txt": b"a fault"}
    assert files == {f"one/{name}": data for name, data in SMALL.files.items()} | told


def test_kinds_of_samples_are_told_by_their_content() -> None:
    beside = Path(__file__).parents[2] / "scenarios"
    kinds = {sample.kind for sample in read_samples([FORMATS, CAPTURED, beside])}
    lists = {"ignore", "observations", "results", "answers", "baseline", "campaign", "expectations", "streams"}
    assert kinds == {TRACE, PACKED, CAPTURE, "shader", *lists}
    with pytest.raises(UserError, match="no trace"):
        read_samples([FORMATS / "README.md"])


def test_the_archive_beside_a_capture_is_a_part_of_the_sample() -> None:
    (sample,) = read_samples([RELY])
    assert (sample.kind, set(sample.files)) == (DUMP, {"frames_that_rely.zip.xml", "frames_that_rely.zip"})


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


def leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each in command.commands:
            yield from leaves(f"{name} {each}", command.commands[each])
    else:
        yield name, command


def every_command() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli.cli)
    for name in cli.cli.list_commands(context):
        command = cli.cli.get_command(context, name)
        assert command is not None
        yield from leaves(name, command)


def test_every_path_that_a_command_takes_is_known_to_the_hunt() -> None:
    paths = {
        (name, str(parameter.name))
        for name, command in every_command()
        for parameter in command.params
        if isinstance(parameter.type, (click.Path, click.File))
    }
    assert paths == PATHS.keys()


def test_the_hunt_gives_an_input_to_every_path_that_is_read() -> None:
    """Commands that run a driver or a program first are asked by a reader, or through another command's same option."""
    by_name = dict(every_command())
    given = set()
    for kind in {*PATHS.values()} - {WRITTEN, TRUSTED, ANY}:
        for way in ways(kind):
            if way.arguments[0] in READERS:
                given |= {place for place, known in PATHS.items() if known == kind}
                continue
            words = [word for part in way.arguments[1:] for word in (("--device", "x") if part == ON else (part,))]
            context = by_name[way.arguments[0]].make_context(way.arguments[0], words)
            held = {key: value if isinstance(value, tuple) else (value,) for key, value in context.params.items()}
            given |= {(way.arguments[0], key) for key, values in held.items() if Path(SUBJECT) in values}
    read = {place for place, kind in PATHS.items() if kind not in (WRITTEN, TRUSTED, ANY)}
    # Read by the same function as that of `check`.
    assert read - given == {("run", "ignore_path"), ("reproduce", "ignore_path")}


def test_every_option_of_pytest_that_is_read_has_a_reader() -> None:
    assert set(pytest_plugin.PATHS) - {"artifacts", "report"} == {"ignore", "baseline"}
    assert "read-baseline" in READERS


def test_a_shorter_trace_keeps_what_makes_objects() -> None:
    (sample,) = read_samples([FORMATS / "trace" / "version-1.jsonl"])
    before = sample.files[sample.subject]
    for seed in range(20):
        after = shortened(random.Random(seed), before)
        assert len(after) < len(before)
        made = [line for line in before.split(b"\n") if b'"vkCreate' in line]
        assert [line for line in after.split(b"\n") if b'"vkCreate' in line] == made


def hunt(folder: Path, main: Callable[[list[str]], None], count: int, seed: int = 4, jobs: int = 1) -> Tally:
    plan = HuntPlan(seed, "")
    file, keep = folder / "hunt.jsonl", folder / "keep"
    return conduct(main, plan, [SMALL], keep, file, limits(), Ends(count), jobs, lambda _: None)


def test_a_hunt_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    assert hunt(tmp_path, words_of("fail"), BATCH).inputs == BATCH
    assert hunt(tmp_path, words_of("fail"), 2 * BATCH).inputs == 2 * BATCH
    lines = [json.loads(line) for line in (tmp_path / "hunt.jsonl").read_text().splitlines()]
    assert [(line.get("number"), line.get("inputs")) for line in lines] == [(None, None), (0, BATCH), (1, BATCH)]
    told = next((tmp_path / "keep").glob("KeyError*/smallest/fault.txt")).read_text()
    assert told.splitlines()[1].startswith("vkharness ")
    with pytest.raises(UserError, match="another plan"):
        hunt(tmp_path, words_of("fail"), 3 * BATCH, seed=5)


def test_several_processes_share_a_hunt(tmp_path: Path) -> None:
    assert hunt(tmp_path, words_of("fail"), 5 * BATCH, jobs=3).inputs == 5 * BATCH
    lines = [json.loads(line) for line in (tmp_path / "hunt.jsonl").read_text().splitlines()]
    assert sorted(line["number"] for line in lines[1:]) == [0, 1, 2, 3, 4]


def test_an_input_with_a_fault_is_kept_before_the_next_one_is_tried(tmp_path: Path) -> None:
    """What is kept is what was tried, and more than the smallest input of each fault."""
    keep = tmp_path / "keep"
    seen: list[int] = []

    class Watched(Trials):
        """Counts what is kept when an end is known."""

        def ends(self, trials: Sequence[Trial]) -> Iterator[TrialEnd]:
            """As it is."""
            for end in super().ends(trials):
                seen.append(len([*keep.glob("KeyError*/*")]))
                yield end

    samples = [SMALL.with_subject(b"bad %d\n" % at) for at in range(40)]
    Hunt(HuntPlan(4, ""), samples, Watched(words_of("fail"), tmp_path, limits(), False), keep).batch(1)
    first = seen[:BATCH]  # the others ask for the smallest input, which is kept beside
    assert first == sorted(first) and {*first} == {*range(len({*first}))} and len({*first}) > 3
    kept = [each for each in keep.glob("KeyError*/*") if each.name != "smallest"]
    for each in kept:
        command = (each / "fault.txt").read_text().splitlines()[1].split()
        with pytest.raises(KeyError):
            words_of("fail")([str(each / command[-1])])


def test_an_input_that_takes_more_memory_is_changed_further(tmp_path: Path) -> None:
    def main(arguments: list[str]) -> None:
        """Takes a megabyte for each byte of its file, of the system: what other tests freed is no growth."""
        with mmap.mmap(-1, Path(arguments[-1]).stat().st_size << 20) as held:
            held[::4096] = b"x" * (len(held) // 4096)
        sys.exit(0)

    hunter = Hunt(HuntPlan(4, ""), [SMALL], Trials(main, tmp_path, limits(), False), tmp_path / "keep")
    small, large = (Trial(SMALL.with_subject(b"x" * size), ("check", "t.jsonl")) for size in (8, 40))
    ends = Trials(main, tmp_path, limits(), False).run([small, large])
    assert [each.grown >> 20 for each in ends] == pytest.approx([8, 40], abs=3)
    assert [hunter._is_costly(small, each) for each in (*ends, *ends)] == [False, True, False, False]


def test_an_input_that_takes_much_memory_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkharness.fuzz.hostile.hunt.MUCH_MEMORY", 0)
    hunt(tmp_path, words_of(), BATCH)
    kept = next((tmp_path / "keep" / "much-memory").iterdir())
    assert (kept / "fault.txt").read_text().splitlines()[1].startswith("vkharness ")


def test_the_death_of_a_process_costs_its_batch_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Hunt.batch

    def deadly(hunter: Hunt, number: int) -> dict[str, Any]:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch(hunter, number)

    monkeypatch.setattr(Hunt, "batch", deadly)
    tally = hunt(tmp_path, words_of("fail"), 4 * BATCH, jobs=2)
    assert (tally.inputs, tally.lost) == (3 * BATCH, 1)
    assert "1 batches lost" in str(tally)
    assert [each.name for each in (tmp_path / "keep").glob("lost-*")] == ["lost-1"]


def test_a_process_that_dies_with_nothing_left_to_do_costs_nothing() -> None:
    """That of batch 1 is killed when it has answered; only then does the one of batch 0 go on."""
    taking, giving = os.pipe()
    done: dict[int, int] = {}

    def begin(_: int) -> Callable[[int], dict[str, Any]]:
        return lambda number: {"process": os.getpid(), "read": number or len(os.read(taking, 1))}

    def numbers() -> Iterator[int]:
        yield from (0, 1)
        os.kill(done[1], signal.SIGKILL)
        os.waitid(os.P_PID, done[1], os.WEXITED | os.WNOWAIT)
        os.write(giving, b"!")

    pool = job_processes._Pool(begin)
    try:
        for line in pool.run(numbers(), 2, None):
            done[line["number"]] = line["process"]
    finally:
        pool.close()
        os.close(taking)
        os.close(giving)
    assert done.keys() == {0, 1}


def test_the_sums_of_hunts_add_up(tmp_path: Path) -> None:
    one = Tally(3, 1, slowest=0.5, kinds=Counter(trace=3), codes=Counter({"2": 3}))
    two = Tally(4, 1, slowest=0.25, kinds=Counter(trace=1, capture=3), faults=Counter(bad=4))
    for at, each in enumerate((one, two)):
        with SumsFile(tmp_path / "sums.jsonl") as sums:
            assert sums.seeds == [*range(at)]
            sums.add(at, 1.5, 2, each)
    with SumsFile(tmp_path / "sums.jsonl") as sums:
        assert sums.tally.to_dict() == {
            **Tally(7, 2, 0.0, 0.5).to_dict(),
            "kinds": {"trace": 4, "capture": 3},
            "codes": {"2": 3},
            "faults": {"bad": 4},
        }
        told = str(sums)
    assert told.splitlines()[0] == "2 hunts together:"
    assert "seed 1: 4 inputs, 4 with a fault, in 1.5 min, 2 jobs" in told


@pytest.mark.parametrize("line", ["[]", '{"inputs": "x"}', '{"kinds": []}', '{"faults": {"x": -1}}', '{"inputs": NaN}'])
def test_a_line_that_is_no_sum_is_one_line_of_an_error(line: str, tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    SumsFile(path).close()
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UserError, match=r"sums.jsonl:2: "):
        SumsFile(path)


def test_a_machine_without_a_driver_replays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_processes, "find_drivers", list)
    assert device_of("auto") == device_of("none") == ""


def test_the_command_finds_nothing_in_a_few_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep, sums = str(tmp_path / "keep"), str(tmp_path / "sums.jsonl")
    given = ["--jobs", "2", "--device", "none", "--keep", keep, "--total", sums]
    for _ in range(2):
        with pytest.raises(SystemExit) as left:
            cli.main(["fuzz", "hostile", "--count", str(BATCH), *given, str(FORMATS / "trace")])
        told = capsys.readouterr().out
        assert left.value.code == 0, told
    assert told.splitlines()[0] == "seed 2, 9 samples given, 2 jobs, device none"
    kinds = re.search(rf"^{BATCH} inputs \((.*?)\)", told, re.MULTILINE)
    assert kinds is not None and sorted(re.findall(r"[a-z]+", kinds[1])) == [PACKED, "shader", TRACE], told
    assert f"2 hunts together:\n{2 * BATCH} inputs" in told

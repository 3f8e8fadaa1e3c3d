"""The `vkharness` command as a user meets it: output, exit codes, files, and one line for every mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vkharness
from tests.support.drivers_here import on_each_driver
from tests.support.streams import TRANSFER, struct, two_buffers
from vkharness.cli.run import split_arguments
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import Finding, Hazard, Place, UserError
from vkharness.groups import groups_of
from vkharness.report.findings_json import write_json
from vkharness.report.text import finding_text, summary_text
from vkharness.trace.codec import save

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
TWO_SUBMITS = ROOT / "examples" / "two_submits.py"
MAIN = "from vkharness.cli import main; main()"


def run_vkharness(*arguments: str | Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    bound = environment(find_driver("lavapipe"))
    return subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **bound, "PYTHONPATH": f"{ROOT}:{ROOT}/harness", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def hazards(document: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """(hazard, command, its line, prior command, its line)."""
    return [
        (
            found["hazard"],
            found["command"],
            found["site"].rpartition(":")[2],
            found["prior_command"],
            found["prior_site"].rpartition(":")[2],
        )
        for found in document["findings"]
    ]


def lines_with(text: str) -> list[str]:
    """Numbers, as text, of the lines of the program that hold `text`."""
    lines = TWO_SUBMITS.read_text(encoding="utf-8").splitlines()
    return [str(number) for number, line in enumerate(lines, start=1) if text in line]


def save_stream(path: Path, *, hazard: bool = False, advice: bool = False, unmodelled: bool = False) -> Path:
    stream, a, b = two_buffers(256)
    commands = stream.begin()
    stream.fill(a, 0x11111111)
    if not hazard:
        stream.barrier()
    stream.copy(a, b, 256)
    if advice:
        event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
        stream.cmd("SetEvent", event=event, stageMask=TRANSFER)
        stream.cmd("ResetEvent", event=event, stageMask=TRANSFER)
    if unmodelled:
        stream.cmd("SubpassShadingHUAWEI")
    stream.end()
    stream.submit(commands)
    save(path, stream.blocks)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The program with two submits, run under the mirror; its folder holds trace.jsonl and found.json."""
    folder = tmp_path_factory.mktemp("recorded")
    trace, found = folder / "trace.jsonl", folder / "found.json"
    return run_vkharness("run", "--json", found, "--trace", trace, TWO_SUBMITS, "x", "--verbose"), folder


def test_run_names_both_call_sites_and_exits_1(recorded: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    result, folder = recorded
    document = json.loads((folder / "found.json").read_text())
    (fill,), (copy,), dispatches = (
        lines_with("vkCmdFillBuffer("),
        lines_with("vkCmdCopyBuffer("),
        lines_with("Dispatch("),
    )
    first, second = dispatches
    found = hazards(document)
    assert ("READ_AFTER_WRITE", "vkCmdCopyBuffer", copy, "vkCmdFillBuffer", fill) in found
    assert ("WRITE_AFTER_WRITE", "vkCmdDispatch", second, "vkCmdDispatch", first) in found
    assert ("READ_AFTER_WRITE", "vkCmdDispatch", first, "vkCmdFillBuffer", fill) in found
    assert ("WRITE_AFTER_WRITE", "vkCmdDispatch", first, "vkCmdCopyBuffer", copy) in found
    assert all(str(TWO_SUBMITS) in entry["site"] for entry in document["findings"])
    assert (result.returncode, document["verdict"], document["unmodelled"]) == (1, "hazards", {})
    assert f"two_submits.py:{copy}" in result.stderr


def test_run_leaves_the_programs_own_output_and_arguments_alone(
    recorded: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    assert recorded[0].stdout == "done x --verbose\n"


def test_check_of_the_trace_says_the_same(recorded: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    ran, folder = recorded
    again = folder / "again.json"
    result = run_vkharness("check", folder / "trace.jsonl", "--json", again)
    assert again.read_bytes() == (folder / "found.json").read_bytes()
    assert (result.returncode, result.stdout) == (1, ran.stderr)


@on_each_driver
def test_replay_shows_the_hazard_of_the_copy(
    recorded: tuple[subprocess.CompletedProcess[str], Path], driver: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    trace = recorded[1] / "trace.jsonl"
    options = ("--mode", "witness", "--finding", "1", "--artifacts", tmp_path / "artifacts", "--json", out)
    result = run_vkharness("replay", trace, "--device", driver, *options)
    (shown,) = json.loads(out.read_text())["results"]
    assert (result.returncode, shown["shown"]) == (1, True), result.stderr
    (difference,) = shown["differences"]
    assert difference["expected"] == "11111111" != difference["observed"]
    pictures = [Path(picture) for picture in shown["pictures"]]
    assert sum(picture.suffix == ".png" for picture in pictures) == 3
    assert all(picture.is_relative_to(tmp_path / "artifacts") and picture.stat().st_size for picture in pictures)


@on_each_driver
def test_replay_runs_serially_and_natively(
    recorded: tuple[subprocess.CompletedProcess[str], Path], driver: str
) -> None:
    trace = recorded[1] / "trace.jsonl"
    serial = run_vkharness("replay", trace, "--device", driver)
    assert (serial.returncode, serial.stdout.splitlines()[0]) == (
        0,
        f"serial on {driver}: 2 buffers and image subresources observed",
    )
    native = run_vkharness("replay", trace, "--device", driver, "--mode", "native", "--iterations", "2")
    assert native.returncode == 0, native.stderr
    assert "0 of 2 runs differ" in native.stdout


@on_each_driver
def test_replay_in_other_orders_finds_the_race_and_repeats_it(driver: str, tmp_path: Path) -> None:
    trace = save_stream(tmp_path / "t.jsonl", hazard=True)
    mode = ("--device", driver, "--mode", "reorder")
    several = run_vkharness("replay", trace, *mode, "--seed", "3", "--iterations", "9", "--json", tmp_path / "out.json")
    assert (several.returncode, several.stderr) == (1, "")
    _, computed, summary, order, difference = several.stdout.splitlines()
    assert computed == "  512 of 512 bytes computed without the driver, and left so"
    assert summary == "  1 of 1 legal orders differ from the serial run"
    assert order.startswith("  reorder random seed=") and order.endswith(": 1 of 2 out of place, differs")
    assert "differ, first at 0: expected" in difference
    (result,) = json.loads((tmp_path / "out.json").read_text())["results"]
    assert len(result["orders"]) == 9
    seed = order.split("seed=")[1].split(":")[0]
    again = run_vkharness("replay", trace, *mode, "--seed", seed, "--iterations", "1")
    assert again.stdout.splitlines()[1:] == several.stdout.splitlines()[1:]


@on_each_driver
@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ({}, 0, "nothing was reordered: the orders drawn are submission order"),
        ({"unmodelled": True}, 3, "no legal order but submission order is known: not modelled: "),
    ],
    ids=["clean", "unmodelled"],
)
def test_replay_where_nothing_may_move(
    driver: str, options: dict[str, bool], code: int, line: str, tmp_path: Path
) -> None:
    trace = save_stream(tmp_path / "t.jsonl", **options)
    result = run_vkharness("replay", trace, "--device", driver, "--mode", "reorder", "--strategy", "reverse")
    assert (result.returncode, result.stderr) == (code, "")
    assert result.stdout.startswith(f"reorder on {driver}: {line}") and result.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        ({}, 0, "clean - no hazard"),
        ({"hazard": True}, 1, "hazards - 1 hazard: 1 READ_AFTER_WRITE"),
        ({"advice": True}, 0, "advice: 1 vkCmdResetEvent-set-race"),
        ({"hazard": True, "advice": True}, 1, "advice: 1 vkCmdResetEvent-set-race"),
        ({"unmodelled": True}, 3, "not modelled: vkCmdSubpassShadingHUAWEI x1"),
        ({"hazard": True, "unmodelled": True}, 1, "not modelled: vkCmdSubpassShadingHUAWEI x1"),
    ],
    ids=["clean", "hazard", "advice", "hazard and advice", "unmodelled", "hazard and unmodelled"],
)
def test_check_exits_by_its_verdict(tmp_path: Path, options: dict[str, bool], code: int, line: str) -> None:
    result = run_vkharness("check", save_stream(tmp_path / "t.jsonl", **options))
    assert (result.returncode, result.stderr) == (code, "")
    assert result.stdout.splitlines()[-1] == line


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "code"),
    [("print('fine')", 3), ("import sys; sys.exit(7)", 7), ("raise SystemExit('why')", 1), ("1 / 0", 1)],
)
def test_run_passes_the_programs_own_failure_on(tmp_path: Path, text: str, code: int) -> None:
    assert run_vkharness("run", program(tmp_path, text)).returncode == code


def test_files_named_on_the_command_line_stay_where_they_were_named(tmp_path: Path) -> None:
    path = program(tmp_path, "import os; os.chdir('/')")
    result = run_vkharness("run", path.name, "--json", "found.json", "--trace", "t.jsonl", cwd=tmp_path)
    assert result.returncode == 3, result.stderr  # it makes no Vulkan call
    assert json.loads((tmp_path / "found.json").read_text())["verdict"] == "unknown"
    assert (tmp_path / "t.jsonl").is_file()


@pytest.mark.parametrize(
    ("words", "own", "rest"),
    [
        (["p.py"], [], ["p.py"]),
        (["--json", "f", "p.py", "-v"], ["--json", "f"], ["p.py", "-v"]),
        (["p.py", "a", "--trace=t", "-h"], ["--trace=t"], ["p.py", "a", "-h"]),
        (["p.py", "--", "--json", "theirs"], [], ["p.py", "--json", "theirs"]),
        (["--", "p.py", "--json", "theirs"], [], ["p.py", "--json", "theirs"]),
        (["--json", "f", "p.py", "--", "--", "x"], ["--json", "f"], ["p.py", "--", "x"]),
        (["--help"], ["--help"], []),
    ],
)
def test_options_of_run_are_told_from_the_programs(words: list[str], own: list[str], rest: list[str]) -> None:
    assert split_arguments(words) == (own, rest)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "none.jsonl"], "none.jsonl"),
        (["check"], "Missing argument 'TRACE'"),
        (["check", "--wrong", "x"], "--wrong"),
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "none.py"], "none.py"),
        (["run"], "Missing argument 'PROGRAM'"),
        (["run", "p.py", "--json"], "--json"),
        (["replay", "none.jsonl"], "none.jsonl"),
        (["replay", "none.jsonl", "--device", "warp"], "no Vulkan driver 'warp'"),
        (["replay", "none.jsonl", "--mode", "sideways"], "sideways"),
        (["replay", "none.jsonl", "--finding", "1"], "--finding goes with --mode witness"),
        (["replay", "none.jsonl", "--observed", "x"], "--observed goes with --mode witness"),
        (["check", "none.jsonl", "--observed", "none"], "none: cannot be read"),
        pytest.param(
            ["observe"], "observe takes a TRACE, --scenarios or --random COUNT: one of them", id="observe of nothing"
        ),
        (["observe", "none.jsonl"], "none.jsonl: cannot be read"),
        (["replay", "none.jsonl", "--seed", "1"], "--strategy and --seed go with --mode reorder"),
        (["replay", "none.jsonl", "--mode", "reorder", "--strategy", "sideways"], "sideways"),
        (["drivers", "--json", "no/such/folder/out.json"], "no/such/folder/out.json: cannot be written"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    result = run_vkharness(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("vkharness: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_finding_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    trace = save_stream(tmp_path / "t.jsonl", hazard=True)
    result = run_vkharness("replay", trace, "--mode", "witness", "--finding", "9")
    assert (result.returncode, result.stderr) == (2, f"vkharness: --finding 9: {trace} has 1 group of findings\n")


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    bound = environment(find_driver("lavapipe"))
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "drivers"],
        cwd=ROOT,
        env={**os.environ, **bound},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait()
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (-signal.SIGPIPE, b"")


def test_an_interrupt_ends_it_as_the_signal_would(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text("")
    code = f"""if True:
        import os, signal
        from vkharness import ignore_file
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
        ignore_file.read_plain = lambda path: os.kill(os.getpid(), signal.SIGINT)
        {MAIN}"""
    command = [sys.executable, "-c", code, "check", "--ignore", str(known), "t.jsonl"]
    ended = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


def test_drivers_lists_what_was_found(tmp_path: Path) -> None:
    out = tmp_path / "drivers.json"
    broken = tmp_path / "broken_icd.json"
    broken.write_text("{")
    crashing = tmp_path / "crashing_icd.json"
    crashing.write_text(json.dumps({"ICD": {"library_path": "./absent.so", "api_version": "1.3.0"}}))
    result = run_vkharness("drivers", "--json", out, VK_ADD_DRIVER_FILES=f"{broken}{os.pathsep}{crashing}")
    document = json.loads(out.read_text())
    rows = {row["name"]: row for row in document["drivers"]}
    assert result.returncode == 0
    assert rows["lavapipe"]["status"] == "ok"
    assert "vkCreateInstance failed" in rows["crashing"]["status"]
    assert "vkCreateInstance: Found no drivers!" in rows["crashing"]["loader_says"]
    uuid = rows["lavapipe"]["devices"][0]["uuid"]
    assert len(uuid) == 32 and uuid in result.stdout
    assert f"vkharness {vkharness.__version__}, Python " in result.stdout
    assert "lavapipe" in result.stdout
    assert f"writes to mapped memory are found by: {document['mapped_memory']}" in result.stdout
    assert f"unreadable manifest {broken}: not JSON" in result.stderr
    assert "VK_LAYER_KHRONOS_validation" in {layer["name"] for layer in document["layers"]}


def test_a_finding_in_words() -> None:
    place = Place(12, "vkCmdCopyBuffer", "a.py:9", command_buffer=5, submit=20, queue=3)
    prior = Place(11, "vkCmdFillBuffer", None, command_buffer=5)
    finding = Finding(
        hazard=Hazard.READ_AFTER_WRITE,
        access="SYNC_COPY_TRANSFER_READ",
        prior_access="SYNC_CLEAR_TRANSFER_WRITE",
        place=place,
        prior=prior,
        resource=7,
        resource_type="VkBuffer",
        ranges=((0, 256),),
    )
    assert finding_text(finding).plain.splitlines() == [
        "READ_AFTER_WRITE on VkBuffer 7 [0, 256)",
        "        vkCmdCopyBuffer SYNC_COPY_TRANSFER_READ at a.py:9 (call 12, command buffer 5, submit 20, queue 3)",
        "  after vkCmdFillBuffer SYNC_CLEAR_TRANSFER_WRITE (call 11, command buffer 5)",
        "  missing: a memory dependency from VK_PIPELINE_STAGE_2_CLEAR_BIT/VK_ACCESS_2_TRANSFER_WRITE_BIT to "
        "VK_PIPELINE_STAGE_2_COPY_BIT/VK_ACCESS_2_TRANSFER_READ_BIT",
        "  rule: docs/rules.md#read-after-write",
    ]
    summary = summary_text("hazards", groups_of([finding, finding]), {})
    assert summary.plain == "hazards - 1 hazard: 1 READ_AFTER_WRITE; found 2 times"
    finding.hazard = Hazard.RESET_EVENT_AFTER_SET
    assert finding_text(finding).plain.startswith("advice: vkCmdResetEvent-set-race on VkBuffer 7")
    assert (
        summary_text("clean", groups_of([finding]), {}).plain == "clean - no hazard\nadvice: 1 vkCmdResetEvent-set-race"
    )


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write_json(path, {"ü": 1})
    path.chmod(0o640)
    with pytest.raises(TypeError):
        write_json(path, {"bad": object()})
    write_json(path, {"ü": 2})
    assert json.loads(path.read_text(encoding="utf-8")) == {"ü": 2}
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UserError, match="cannot be written"):
        write_json(tmp_path / "none" / "out.json", {})


def test_json_goes_through_links_and_into_pipes(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    write_json(link, [1])
    assert link.is_symlink()
    assert json.loads(target.read_text()) == [1]
    write_json(Path(os.devnull), [1])
    assert Path(os.devnull).is_char_device()


def test_names_and_labels_of_a_program_are_in_one_group(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    result = run_vkharness("run", "--json", found, PROGRAMS / "labelled.py")
    first, copy, fill, *_ = result.stderr.splitlines()
    assert first == r'1. READ_AFTER_WRITE on VkBuffer 6 "particles \x1b[31m" [0, 1024), 5 times'
    assert 'in "round 0 / upload" at ' in copy
    assert 'command buffer 10 "round 0")' in copy
    assert 'in "round 0 / clear" at ' in fill
    assert len(result.stderr.splitlines()) == 7
    (entry,) = json.loads(found.read_text())["findings"]
    assert (entry["count"], entry["resource_name"]) == (5, "particles \x1b[31m")
    assert (entry["labels"], entry["prior_labels"]) == (["round 0", "upload"], ["round 0", "clear"])
    assert entry["names"] == {"6": "particles \x1b[31m", "10": "round 0"}

"""Drivers that break a promise, one after the other: which rows notice, and which of them claim the promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vkharness.cli import main
from vkharness.device.faults.broken_promises import BROKEN_DRIVERS, BrokenDriver, promises_named
from vkharness.device.faults.fault_driver import compiler
from vkharness.suite.mutation.driver_mutants import ENOUGH, DriverMutant, NoticingRow, break_drivers, suite_rows
from vkharness.suite.whole_suite import suite_scenarios

HEAD = """
from vkharness.suite import Rig, read_after_write, scenario
"""
FILL = """

@scenario(without={{"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]}})
def scenario_fill_{number}(rig: Rig) -> None:
    "A copy waits for the fill that it reads."
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, {number})
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b)
"""
UPDATE = """

@scenario()
def scenario_update(rig: Rig) -> None:
    "One update."
    with rig.submission() as commands:
        commands.update(rig.buffer(), b"1234")
"""
FILLS = ENOUGH + 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two families: one that claims what barriers do, with more rows than are enough, and another one."""
    files = {
        "barrier/scenario_fills.py": [FILL.format(number=each) for each in range(1, FILLS + 1)],
        "other/scenario_fills.py": [FILL.format(number=100), UPDATE],
    }
    for name, parts in files.items():
        file = tmp_path / "rows" / name
        file.parent.mkdir(parents=True)
        file.write_text(HEAD + "".join(parts))
    return tmp_path / "rows"


def named(*names: str) -> list[BrokenDriver]:
    return [each for each in BROKEN_DRIVERS if each.name in names]


def tried(folder: Path, built: Path, *names: str, every: bool = False) -> dict[str, DriverMutant]:
    if compiler() is None:
        pytest.skip("no C compiler here, with which the fault driver is built")
    rows, counted = suite_rows([folder], every=every), []
    found = break_drivers(
        named(*names), rows, "lavapipe", built, 1, every=every, advance=lambda: counted.append(1), timeout=300
    )
    by_name = {each.name: each for each in found}
    assert len(counted) == len(names) * len(rows)
    return by_name


@pytest.mark.driver
def test_rows_that_claim_a_promise_are_asked_until_enough_notice(folder: Path, tmp_path: Path) -> None:
    found = tried(folder, tmp_path / "built", "fill-past-a-barrier", "update-past-a-barrier")
    late = found["fill-past-a-barrier"]
    assert (late.rows, len(late.claiming), len(late.noticed)) == (ENOUGH, ENOUGH, ENOUGH)
    assert {(each.state, each.family) for each in late.noticed} == {("barrier", "barrier/fills")}
    assert str(late).endswith(
        f"noticed by {ENOUGH} of {ENOUGH} rows, first barrier/scenario_fill_1[whole]; {ENOUGH} of them claim it; "
        f"barrier {ENOUGH}; in barrier {ENOUGH}"
    )
    other = found["update-past-a-barrier"]  # of which these rows have none
    assert (other.rows, other.noticed) == (FILLS, [])
    assert str(other).endswith(f"noticed by 0 of {FILLS} rows")


@pytest.mark.driver
def test_with_all_every_row_and_every_twin_is_asked(folder: Path, tmp_path: Path) -> None:
    found = tried(folder, tmp_path / "built", "fill-of-a-wrong-value", every=True)["fill-of-a-wrong-value"]
    assert (found.rows, len(found.noticed), len(found.claiming)) == (2 * FILLS + 3, 2 * FILLS + 2, 2 * FILLS)
    assert {each.state for each in found.noticed} == {"computation"}
    assert (found.observing, found.missed) == (2 * FILLS + 2, [])
    assert str(found).endswith(f"; {2 * FILLS + 2} of {2 * FILLS + 2} rows that observe it say computation")
    assert DriverMutant.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.driver
def test_the_command_says_how_many_promises_are_noticed_by_whom(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if compiler() is None:
        pytest.skip("no C compiler here, with which the fault driver is built")
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    words = ["mutate", str(folder), "--drivers", "--sample", "3", "--seed", "2", "--jobs", "1", "--out", str(out)]
    for resumed in ([], ["--resume", "--json", str(report)]):
        with pytest.raises(SystemExit) as left:
            main([*words, *resumed])
        assert left.value.code == 1
        *lines, last = capsys.readouterr().out.splitlines()
        kept = [json.loads(line)["key"] for line in out.read_text().splitlines()[1:]]
        assert sorted(line.partition(":")[0] for line in lines) == sorted(kept)
        noticed = sum(", first " in line and "none of them" not in line for line in lines)
        assert last == f"{noticed} of 3 broken promises are noticed by a row that claims them"
    assert sorted(each["name"] for each in json.loads(report.read_text())["drivers"]) == sorted(kept)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all"], "--all goes with --drivers"),
        (["--promise", "fence-early"], "--promise goes with --drivers"),
        (["--drivers", "--promise", "fence-late"], "no promise is called fence-late"),
    ],
)
def test_options_for_drivers_are_refused_elsewhere(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["mutate", *words])
    assert said in capsys.readouterr().err


def test_promises_have_names() -> None:
    assert promises_named([]) == [*BROKEN_DRIVERS]
    assert [each.name for each in promises_named(["flush-ignored", "fence-early"])] == ["fence-early", "flush-ignored"]


def test_a_row_that_must_notice_and_does_not_is_named() -> None:
    found = DriverMutant("fill-past-a-barrier", "p", 7, [NoticingRow("a/x[whole]", "a/m", True, "barrier", "")])
    found.observing, found.missed = 3, ["a/y[whole] (passed)"]
    assert str(found).endswith("; 2 of 3 rows that observe it say barrier, not a/y[whole] (passed)")
    assert DriverMutant.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_the_first_row_that_claims_stands_for_all() -> None:
    rows = [
        NoticingRow("a/x[whole]", "a/m", claims=False, state="computation", said=""),
        NoticingRow("b/y[whole]", "b/m", claims=True, state="barrier", said=""),
        NoticingRow("a/z[whole]", "a/n", claims=False, state="barrier", said=""),
    ]
    said = str(DriverMutant("n", "p", 7, rows))
    assert said == (
        "n: p: noticed by 3 of 7 rows, first b/y[whole]; 1 of them claims it; barrier 2, computation 1; in a 2, b 1"
    )
    assert "first a/x[whole]; none of them claims it" in str(DriverMutant("n", "p", 7, rows[:1]))


def test_each_promise_is_claimed_by_families_that_there_are() -> None:
    rows = suite_rows([suite_scenarios()])
    known = {each.family for each in rows} | {each.file.parent.name for each in rows}
    for broken in BROKEN_DRIVERS:
        assert broken.claimed_by and known.issuperset(broken.claimed_by), broken.name
        assert any(each.claims(broken) for each in rows)


def test_rows_come_from_each_file_in_turn(folder: Path) -> None:
    names = [each.name for each in suite_rows([folder])]
    assert names[:4] == [
        "barrier/scenario_fill_1[whole]",
        "other/scenario_fill_100[whole]",
        "barrier/scenario_fill_2[whole]",
        "other/scenario_update[whole]",
    ]
    assert len(names) == FILLS + 2

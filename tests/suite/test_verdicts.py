"""Rows of the verdict table: what the judges said, and which entries of the expectation file excuse it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.support.run_results import clean_row, result
from vkharness.computed.expected_bytes import ComputedBytes
from vkharness.computed.known_cells import Cells
from vkharness.findings import FailedCallError, UserError
from vkharness.replay.contents.observe import Outputs, Surface
from vkharness.replay.native_strategies import table
from vkharness.replay.native_strategies.table import STRATEGIES, NativeStrategy
from vkharness.report.native_table import print_native
from vkharness.report.rows import PROMISES, layers_in_short
from vkharness.results.native_counts import count_native
from vkharness.results.result_lines import RowResult
from vkharness.suite import judge_bytes
from vkharness.suite.expectations import KnownDisagreement, load
from vkharness.suite.native_times import native_times
from vkharness.suite.row import Row, settle
from vkharness.verdicts import (
    BrokenOrder,
    BrokenPromise,
    BytesVerdict,
    LayerVerdict,
    ModelVerdict,
    NativeVerdict,
    OrdersVerdict,
    Status,
    StrategyRuns,
    Unshown,
    WitnessVerdict,
)

WAW = "WRITE_AFTER_WRITE vkCmdFillBuffer after vkCmdFillBuffer"


def row(**layers: list[str]) -> Row:
    """A row whose layers (`v1_3_239`) disagree about those lines."""
    made = Row("access/x", "whole", "lavapipe", [WAW], [WAW])
    for name, several in layers.items():
        version = name.removeprefix("v").replace("_", ".")
        made.layers[version] = LayerVerdict(disagreements=tuple(several))
    return made


def entries(folder: Path, more: str) -> list[KnownDisagreement]:
    path = folder / "expectations.toml"
    path.write_text(f'[[expect]]\nscenario="access/x"\nvariant="whole"\nreason="known"\n{more}')
    return load(path)


def test_the_layers_in_short() -> None:
    def short(**layers: list[str]) -> str:
        return layers_in_short(row(**layers).layers)

    assert short() == "-"
    assert short(v1_3_239=[]) == short(v1_3_239=[], v1_4_364=[]) == "agrees"
    assert short(v1_3_239=[], v1_4_364=["x"]) == "1.3.239 agrees, 1.4.364 disagrees"
    assert layers_in_short({"1.3.239": LayerVerdict(by_version=2), "1.4.364": LayerVerdict()}) == "agrees*"


def test_a_layer_that_nobody_asked_fails_no_row(tmp_path: Path) -> None:
    needless = entries(tmp_path, 'judge="layer"\n')
    made = row(v1_3_275=["layer-only: x"], v1_3_239=["layer-only: y"])
    settle(made, [])
    assert (made.status, made.reasons) == (Status.FAILED, ["layer 1.3.239: layer-only: y"])
    assert made.excused == ["layer 1.3.275: not known for this layer: layer-only: x"]
    made = row(v1_3_275=[])
    settle(made, needless)
    assert (made.status, made.reasons, made.excused) == (Status.PASSED, [], [])


BARRIER = BrokenPromise.BARRIER
PLAIN, SPIN = StrategyRuns("plain", 0, 3), StrategyRuns("spin", 1, 3)
SPIN_LESS = StrategyRuns("spin", 0, 0, "no shader")
BROKEN = OrdersVerdict(2, (BrokenOrder("reorder reverse", "buffer 7 differs"),))


@pytest.mark.parametrize(
    ("verdicts", "key", "words"),
    [
        ({}, "model", "-"),
        ({"model": ModelVerdict()}, "model", "agrees"),
        ({"model": ModelVerdict(("x",))}, "model", "disagrees"),
        ({"layers": {"1": LayerVerdict(by_version=2)}}, "layers", {"1": "agrees (2 by version)"}),
        ({"layers": {"1": LayerVerdict(disagreements=("x",))}}, "layer_disagreements", {"1": ["x"]}),
        ({}, "witness", "-"),
        ({"witness": WitnessVerdict(2, 2)}, "witness", "shown 2/2"),
        ({"witness": WitnessVerdict(1, 2, (Unshown("H", "same"),))}, "witness", "part shown 1/2 (H: same)"),
        ({"witness": WitnessVerdict(0, 1, (Unshown("H", "same"),))}, "witness", "benign 0/1 (H: same)"),
        ({"orders": OrdersVerdict(2)}, "witness", "held 2/2"),
        ({"orders": OrdersVerdict()}, "witness", "nothing to reorder"),
        ({"orders": OrdersVerdict(problem="no device")}, "witness", "not run (no device)"),
        ({"orders": BROKEN}, "witness", "broken 1/2 (reorder reverse: buffer 7 differs)"),
        ({"native": NativeVerdict(1, 3)}, "native", "corrupt 1/3"),
        ({"native": NativeVerdict(0, 3)}, "native", "same 3/3"),
        ({"native": NativeVerdict(1, 6, (PLAIN, SPIN))}, "native", "corrupt 1/6 (spin 1/3)"),
        ({"native": NativeVerdict(0, 0, (SPIN_LESS,))}, "native", "same 0/0"),
        ({}, "bytes", "-"),
        ({"bytes": BytesVerdict(8, 8)}, "bytes", "all computed"),
        ({"bytes": BytesVerdict(4, 8)}, "bytes", "computed 4/8"),
        ({"bytes": BytesVerdict(0, 8)}, "bytes", "not computed"),
        ({"bytes": BytesVerdict(8, 8, BARRIER, "b 7")}, "bytes", f"{PROMISES[BARRIER]} (b 7)"),
    ],
)
def test_verdicts_in_words_and_through_json(verdicts: dict[str, Any], key: str, words: Any) -> None:
    made = Row("access/x", "whole", "lavapipe", [], **verdicts)
    assert made.to_dict()[key] == words
    assert Row.from_dict(json.loads(json.dumps(made.to_dict()))) == made


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        ({"witness": WitnessVerdict(0, 1, (Unshown("H", "same"),))}, "witness: benign 0/1 (H: same)"),
        ({"orders": BROKEN}, "witness: broken 1/2 (reorder reverse: buffer 7 differs)"),
        ({"native": NativeVerdict(1, 3)}, "native: corrupt 1/3: nothing is expected"),
        ({"bytes": BytesVerdict(8, 8, BARRIER, "b 7")}, f"bytes: {PROMISES[BARRIER]} (b 7)"),
        ({"model": ModelVerdict(("syncval only: x",))}, "model: syncval only: x"),
        ({"unmodelled": ["vkCmdY"]}, "not modelled: vkCmdY"),
        ({"syncval": ["B"], "expected": ["A"]}, "syncval: missing A; unexpected B"),
    ],
)
def test_a_judge_that_disagrees_fails_the_row(verdicts: dict[str, Any], reason: str) -> None:
    made = Row(**{"scenario": "access/x", "variant": "whole", "device": "lavapipe", "expected": [], **verdicts})
    settle(made, [])
    assert (made.status, made.reasons) == (Status.FAILED, [reason])


def test_an_entry_for_one_version(tmp_path: Path) -> None:
    only_old = entries(tmp_path, 'judge="layer"\nbefore="1.4.364"')
    disagreeing = row(v1_3_239=["x"], v1_4_364=[])
    settle(disagreeing, only_old)
    assert (disagreeing.status, disagreeing.excused) == (Status.PASSED, ["layer 1.3.239: known"])
    both = row(v1_3_239=["x"], v1_4_364=["y"])
    settle(both, only_old)
    assert (both.status, both.reasons) == (Status.FAILED, ["layer 1.4.364: y"])
    settle(both := row(v1_3_239=["x"], v1_4_364=["y"]), entries(tmp_path, 'judge="layer"'))
    assert both.status == Status.PASSED


def test_an_entry_must_be_needed_by_every_layer_that_was_asked(tmp_path: Path) -> None:
    settle(wide := row(v1_3_239=["x"], v1_4_364=[]), entries(tmp_path, 'judge="layer"'))
    assert wide.status == Status.FAILED and wide.reasons[0].startswith("expectation is not needed for layer 1.4.364")
    settle(today := row(v1_4_364=[]), entries(tmp_path, 'judge="layer"\nbefore="1.4.364"'))
    assert today.status == Status.PASSED, "the old layer was not asked"
    settle(off := row(), entries(tmp_path, 'judge="layer"'))
    assert off.status == Status.PASSED, "no layer was asked"


@pytest.mark.parametrize(
    ("driver", "covered"),
    [
        ("llvmpipe Mesa 22.3.6 (LLVM 15.0.6)", True),
        ("llvmpipe Mesa 22.3.6-1+deb12u2", True),
        ("llvmpipe Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", False),
        ("llvmpipe Mesa 22.2", False),
        ("radv Mesa 22.3.6", False),
        ("llvmpipe", False),
        ("", False),
    ],
)
def test_an_entry_for_the_versions_of_a_driver(tmp_path: Path, driver: str, covered: bool) -> None:
    known = entries(tmp_path, 'judge="witness"\ndriver="llvmpipe Mesa"\nsince="22.3"\nbefore="23"')
    for shown in (0, 1):
        made = Row("access/x", "whole", "any name", [], driver=driver, witness=WitnessVerdict(shown, 1))
        settle(made, known)
        assert made.excused == (["witness: known"] if covered and not shown else [])
        assert (made.status == Status.PASSED) == (covered != bool(shown)), "neither unknown nor needless"


def test_what_is_left_to_a_driver_excuses_no_other_judge_and_no_fact_that_is_none(tmp_path: Path) -> None:
    free, fact = entries(tmp_path, 'judge="witness"\nmay=true') + entries(tmp_path, 'judge="witness"')
    model = ModelVerdict(("x",))
    settle(made := Row("access/x", "whole", "lavapipe", [], witness=WitnessVerdict(0, 1), model=model), [free])
    assert made.reasons == ["model: x"]
    settle(made := Row("access/x", "whole", "lavapipe", [], witness=WitnessVerdict(1, 1)), [free, fact])
    assert made.reasons[0].startswith("expectation is not needed for witness")


def test_an_entry_about_a_freedom_of_the_driver_is_never_needless(tmp_path: Path) -> None:
    may = entries(tmp_path, 'judge="native"\nmay=true')
    for corrupt, excused in ((1, ["native: known"]), (0, [])):
        made = Row("access/x", "whole", "lavapipe", [], native=NativeVerdict(corrupt, 1))
        settle(made, may)
        assert (made.status, made.excused) == (Status.PASSED, excused)


@pytest.mark.parametrize(
    "wrong",
    [
        'judge="native"\nmay=1',
        'judge="layer"\nmay=true',
        'judge="layer"\ndriver="x"',
        'judge="witness"\ndriver=1',
        'judge="layer"\nsince="new"',
        'judge="witness"\nbefore="1.4"',
        'judge="layers"',
    ],
)
def test_wrong_entries_are_one_clear_line(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UserError, match=r"expectation 1: "):
        entries(tmp_path, wrong)


@pytest.mark.parametrize(
    ("option", "times"),
    [
        (0, {}),
        ("3", {"plain": 3}),
        ("2:spin,plain", {"plain": 2, "spin": 2}),
        ("4:all", dict.fromkeys(STRATEGIES, 4)),
        ("all", dict.fromkeys(STRATEGIES, 3)),
    ],
)
def test_the_runs_that_an_option_asks_for(option: int | str, times: dict[str, int]) -> None:
    assert native_times(option) == times
    assert native_times(option, 1) == {"plain": 1, **times}, "a clean stream has a plain run"


@pytest.mark.parametrize("option", ["", "x", "-1", "3:", "3:spins", "3:spin,", ":spin", "all:spin"])
def test_options_that_ask_for_no_runs(option: str) -> None:
    with pytest.raises(UserError, match=r"is not a form of N, N:STRATEGY,\.\.\. or all, with"):
        native_times(option)


def test_rows_that_were_shown_by_strategy_and_family() -> None:
    def of(scenario: str, expected: list[str], *runs: StrategyRuns) -> RowResult:
        corrupt, times = sum(each.corrupt for each in runs), sum(each.times for each in runs)
        verdict = NativeVerdict(corrupt, times, runs, "one queue" if expected else "")
        witness = WitnessVerdict(int(scenario != "draw/scenario_b"), 1) if expected else None
        return result(Row(scenario, "whole", "lavapipe", expected, expected, native=verdict, witness=witness))

    rows = [
        of("draw/scenario_a", [WAW], PLAIN, SPIN),
        of("draw/scenario_b", [WAW], StrategyRuns("plain", 2, 3), SPIN_LESS),
        of("copy/scenario_c", [WAW], PLAIN),
        of("copy/scenario_d", [], PLAIN),
        of("copy/scenario_e", [], SPIN),
        result(clean_row("copy/scenario_not_run")),
    ]
    counts = count_native(rows)
    assert counts.hazards == {"draw": 2, "copy": 1}
    shown = {"plain": {"draw": 1}, "spin": {"draw": 1}, "any": {"draw": 2}}
    assert {key: dict(each) for key, each in counts.shown.items()} == shown
    assert counts.unchanged == {"spin": {"no shader": 1}}
    assert (counts.clean, counts.corrupt) == (2, [rows[4].nodeid])
    assert (counts.relations, counts.seen, counts.witnessed) == ({"one queue": 3}, {"one queue": 2}, {"one queue": 2})
    console = Console(width=100, file=StringIO())
    for whole in (False, True):
        print_native(counts, console, whole)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line.split() for line in text.splitlines()]
    assert lines[1:4] == [
        ["family", "plain", "spin", "any", "of"],
        ["draw", "1", "1", "2", "2"],
        ["all", "1", "1", "2", "3"],
    ]
    assert ["copy", "-", "-", "-", "1"] in lines, "the whole table has families of which nothing was shown"
    assert text.count(f"1 of 2, first {rows[4].nodeid}\n") == 2
    assert lines[-2:] == [["executions", "shown", "a", "witness", "shows", "of"], ["one", "queue", "2", "2", "3"]]


def test_results_from_before_there_were_strategies_count_as_plain() -> None:
    made = result(Row("draw/scenario_a", "whole", "lavapipe", [WAW], [WAW], native=NativeVerdict(1, 3)))
    del made.row["verdicts"]["native"]["strategies"]
    assert {key: each.total() for key, each in count_native([made]).shown.items()} == {"plain": 1, "any": 1}
    assert Row.from_dict(made.row).native == NativeVerdict(1, 3)


@pytest.mark.parametrize("error", [UserError("it cannot be replayed"), FailedCallError("vkQueueSubmit failed")])
def test_what_cannot_be_replayed_has_no_native_run_and_a_failed_call_fails_the_row(
    error: UserError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(blocks: object, device: str) -> None:
        raise error

    monkeypatch.setattr(judge_bytes, "run_serial", refuse)
    made = Row("host_copy/x", "whole", "lavapipe", [])
    if isinstance(error, FailedCallError):
        with pytest.raises(FailedCallError):
            judge_bytes.judge_bytes(made, [], None, {"plain": 4}, None)
    else:
        judge_bytes.judge_bytes(made, [], None, {"plain": 4}, None)
        assert made.bytes == BytesVerdict(0, 0, unknown=("it cannot be replayed",))
    assert made.native is None


@pytest.mark.parametrize(("at", "counts"), [(0, True), (2, False)])
def test_undefined_bytes_of_a_clean_row_are_compared_with_nothing(
    at: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bytes are computed, and two are undefined, as in sparse memory that nobody wrote. One of them differs."""
    serial, left = (Outputs({(1, None): Surface(1, None, np.zeros(4, np.uint8))}) for _ in range(2))
    left.surfaces[1, None].data[at] = 9
    halves = np.array([True, True, False, False])
    computed = ComputedBytes({(1, None): Cells(np.zeros(4, np.uint8), halves)}, undefined={(1, None): ~halves})
    strategy = NativeStrategy("", run=lambda blocks, device, number: left)
    monkeypatch.setattr(table, "STRATEGIES", {"plain": strategy})
    monkeypatch.setattr(judge_bytes, "computed_bytes", lambda *_: computed)
    monkeypatch.setattr(judge_bytes, "_relation", lambda *_: "")
    made = Row("sparse/x", "whole", "lavapipe", [])
    judge_bytes.judge_bytes(made, [], None, {"plain": 2}, serial)
    assert made.bytes is not None and (made.bytes.known, made.bytes.total) == (2, 2)
    assert made.native is not None and made.native.corrupt == (2 if counts else 0)
    assert bool(made.bytes.broken) == counts

"""Hostile calls of the native core: a short run of `python -m hunts extension`, and what it finds and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hunts import extension_calls, extension_hunt
from hunts.__main__ import hunts
from hunts.extension_calls import HostileProgram, NativeType, run_programs
from hunts.extension_hunt import ExtensionSums, ExtensionTally, hunt
from vkharness import native
from vkharness.cli import main
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError

SEED, COUNT = 20261123, 2_000
needs_core = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")


@needs_core
def test_the_core_survives_hostile_calls(fresh_seed: int) -> None:
    """Those that nobody has seen, too; the failure says which."""
    print(f"seed {fresh_seed}")
    for first in (SEED, fresh_seed):
        tally = hunt(first, COUNT)
        assert tally.faults == []
        assert tally.programs == COUNT and tally.calls > 10 * COUNT


@needs_core
def test_a_program_is_that_of_its_seed() -> None:
    programs = {seed: HostileProgram(seed) for seed in range(SEED, SEED + 40)}
    seeds = [seed for seed, each in programs.items() if each.name == "SpanMap" and not each.threaded]
    calls = [[run_programs(seed, 1)["calls"] for seed in seeds] for _ in range(2)]
    assert calls[0] == calls[1] and sum(calls[0]) > 100


class Careless:
    """Keeps what it was given, forgets its rules, and dies when told to."""

    kept: list[Any] = []  # noqa: RUF012

    def assign(self, _begin: int, _end: int, value: Any) -> None:
        Careless.kept.append(value)

    def update(self, begin: int, _end: int, _change: Any) -> None:
        raise SystemError("an answer and an exception")

    def _check(self) -> None:
        assert not Careless.kept, "it holds too much"


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (("assign", "aav"), "Careless: broken: it holds too much"),
        (("update", "aaf"), "Careless: update: an answer and an exception"),
    ],
)
def test_what_is_broken_is_a_fault(monkeypatch: pytest.MonkeyPatch, method: tuple[str, str], says: str) -> None:
    kind = NativeType(lambda program: Careless(), (method,))
    monkeypatch.setattr(extension_calls, "native_types", lambda: {"Careless": kind})
    monkeypatch.setattr(Careless, "kept", [])
    faults = run_programs(1, 20)["faults"]
    assert says in [fault for _, fault in faults]


def test_what_is_never_given_up_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Careless, "_check", lambda self: None)
    kind = NativeType(lambda program: Careless(), (("assign", "aav"),))
    monkeypatch.setattr(extension_calls, "native_types", lambda: {"Careless": kind})
    monkeypatch.setattr(Careless, "kept", [])
    faults = run_programs(1, 20)["faults"]
    assert any(fault.endswith("values are never given up") for _, fault in faults)


@needs_core
def test_the_program_of_which_a_process_dies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fatal = SEED + 77

    def call(self: Worker, target: str, arguments: dict[str, int]) -> dict[str, Any] | Died:
        first, count = arguments["first"], arguments["count"]
        return Died(11, None, "") if first <= fatal < first + count else {"calls": count, "faults": []}

    monkeypatch.setattr(Worker, "call", call)
    tally = hunt(SEED, 100)
    assert tally.faults == [(fatal, "the process killed by SIGSEGV")]
    assert tally.programs == 100 and tally.calls == 99


def fuzz(*arguments: str) -> int:
    """The exit code of `python -m hunts extension`."""
    with pytest.raises(SystemExit) as ended:
        main(["extension", *arguments], hunts)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command_adds_up_what_hunts_came_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[int, int]] = []

    def hunted(seed: int, count: int, judged: object) -> ExtensionTally:
        asked.append((seed, count))
        return ExtensionTally(count, 20 * count, [(seed, "it died")] if count == 500 else [])

    monkeypatch.setattr(extension_hunt, "hunt", hunted)
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libasan.so")
    total = str(tmp_path / "sums.jsonl")
    assert fuzz("--count", "1000", "--total", total) == 0
    monkeypatch.delenv("LD_PRELOAD")
    assert fuzz("--count", "500", "--total", total) == 1
    assert fuzz("--count", "0", "--total", total) == 0
    assert asked == [(1, 1000), (1001, 500), (1501, 0)]
    told = capsys.readouterr().out
    assert "from seed 1001 on: 500 programs, 10,000 calls, 1 faults\n  seed 1001: it died" in told
    assert (
        "with sanitizers: 1,000 programs, 20,000 calls, 0 faults\nwithout: 500 programs, 10,000 calls, 1 faults" in told
    )


@pytest.mark.parametrize(
    "line", [{}, {"seed": -1}, {"seed": "1"}, {"faults": 3}, {"faults": [[1]]}, {"programs": 1 << 80}]
)
def test_sums_that_are_none_are_an_error_of_their_line(line: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    with ExtensionSums(path) as sums:
        sums.add(1, ExtensionTally(1, 20))
    hunt = json.loads(path.read_text().splitlines()[1])
    with open(path, "a") as file:
        file.write(json.dumps(hunt | line if line else {}) + "\n")
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"sums.jsonl:3: not a line of a file of sums over hunts: "):
        ExtensionSums(path)
    assert path.read_bytes() == before


def test_without_a_native_core_there_is_nothing_to_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(native, "core", None)
    monkeypatch.setattr(native, "in_use", "pure Python")
    assert fuzz("--count", "1") == 2
    assert capsys.readouterr().err == "vkharness: there is no native core to call: pure Python\n"

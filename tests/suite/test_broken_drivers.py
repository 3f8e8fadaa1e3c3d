"""Drivers that break a promise, and the rows that notice: the bytes that a row expects do not come from the driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_drivers import built
from vkharness.device.drivers import Driver
from vkharness.device.faults.broken_promises import BREAKS, SHADOWS
from vkharness.suite.runner import ROW, NoAnswer, Runner

CLAIMS = """
from vkharness.suite import Rig, read_after_write, scenario


@scenario(without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]})
def scenario_copy_reads_a_fill(rig: Rig) -> None:
    "A copy waits for the fill that it reads."
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 1)
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b)


@scenario()
def scenario_one_fill(rig: Rig) -> None:
    "One fill."
    with rig.submission() as commands:
        commands.fill(rig.buffer(), 1)
"""


FLUSHES = """
from vkharness.suite import Rig, read_after_write, scenario


@scenario(without={"flush": [read_after_write("vkCmdCopyBuffer", "host write")]})
def scenario_copy_reads_a_flush(rig: Rig) -> None:
    "A copy reads what the host flushed."
    a = rig.non_coherent()
    rig.host_write(a, bytes(range(256)))
    rig.flush("flush", (a, 0, 256))
    with rig.submission() as commands:
        commands.copy(a, rig.buffer())


@scenario(without={"invalidate": [read_after_write("host read", "vkCmdFillBuffer")]})
def scenario_host_reads_an_invalidate(rig: Rig) -> None:
    "The host reads what it invalidated."
    a = rig.non_coherent()
    with rig.submission() as commands:
        commands.fill(a, 7)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "HOST/HOST_READ")
    rig.wait()
    rig.invalidate("invalidate", (a, 0, 256))
    rig.host_read(a)
    rig.host_write(a, bytes(4))  # not flushed: the end of a run shows it all the same
"""
FLUSH_ROWS = (
    ("scenario_copy_reads_a_flush", "whole"),
    ("scenario_copy_reads_a_flush", "without_flush"),
    ("scenario_host_reads_an_invalidate", "whole"),
    ("scenario_host_reads_an_invalidate", "without_invalidate"),
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("driver"))


FILL_ROWS = (
    ("scenario_copy_reads_a_fill", "whole"),
    ("scenario_copy_reads_a_fill", "without_fill_before_copy"),
    ("scenario_one_fill", "whole"),
)


def rows(
    driver: Driver, folder: Path, claims: str = CLAIMS, several: Sequence[tuple[str, str]] = FILL_ROWS
) -> dict[str, Any]:
    """Each row of the claims by scenario and variant: (status of the bytes, reasons are settled elsewhere)."""
    module = folder / "scenario_claims.py"
    module.write_text(claims)
    runner, found = Runner(), {}
    try:
        for scenario, variant in several:
            task = {"module": str(module), "scenario": scenario, "variant": variant, "device": driver.name}
            answer = runner.run(ROW, {**task, "artifacts": None, "layers": [], "native": 0}, driver)
            assert not isinstance(answer, NoAnswer), answer
            found[f"{scenario}[{variant}]"] = answer
    finally:
        runner.close()
    return found


def broken(found: dict[str, Any]) -> list[str]:
    return [row["verdicts"]["bytes"]["broken"] for row in found.values()]


@pytest.mark.driver
@pytest.mark.parametrize(
    ("breaks", "states"),
    [
        ("", ["", "", ""]),
        ("fill-past-a-barrier", ["barrier", "barrier", ""]),
        ("fill-of-a-wrong-value", ["computation", "computation", "computation"]),
    ],
)
def test_a_row_says_which_promise_a_driver_broke(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str, states: list[str]
) -> None:
    monkeypatch.setenv(BREAKS, breaks)
    found = rows(driver, tmp_path)
    assert broken(found) == states
    if breaks:
        first = found["scenario_copy_reads_a_fill[whole]"]
        assert first["bytes"].startswith(("barriers are broken", "the driver computes wrongly"))
        assert first["verdicts"]["bytes"]["known"] == first["verdicts"]["bytes"]["total"]


@pytest.mark.driver
@pytest.mark.parametrize(
    ("breaks", "states"),
    [
        ("", ["", "", "", ""]),
        ("flush-ignored", ["dependency", "", "dependency", ""]),  # a run as recorded ends with a flush
        ("invalidate-ignored", ["", "", "dependency", ""]),
    ],
)
def test_a_row_says_that_a_flush_or_an_invalidate_is_broken(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str, states: list[str]
) -> None:
    monkeypatch.setenv(SHADOWS, "1")
    monkeypatch.setenv(BREAKS, breaks)
    found = rows(driver, tmp_path, FLUSHES, FLUSH_ROWS)
    assert broken(found) == states
    assert all(row["syncval"] == row["expected"] for row in found.values())


@pytest.mark.driver
def test_a_row_without_such_memory_is_skipped_with_the_reason(driver: Driver, tmp_path: Path) -> None:
    found = rows(driver, tmp_path, FLUSHES, FLUSH_ROWS[:1])
    (row,) = found.values()
    assert row["status"] == "unavailable" and row["problem"].endswith("has no memory that is not HOST_COHERENT")

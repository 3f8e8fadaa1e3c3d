"""The programs of examples/shared_swapchain: two real processes, each recorded, joined and judged as one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.joining.join import join
from vkharness.model import judge
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "shared_swapchain"
FRAMES = 5
SECONDS = 120.0

pytestmark = pytest.mark.driver


def recorded(folder: Path, server: tuple[str, ...], client: tuple[str, ...]) -> list[str]:
    """Runs both programs, each under `vkharness run`; what both printed. Their traces are in the folder."""
    try:
        driver = environment(find_driver("swiftshader"))
    except UserError as error:
        pytest.skip(str(error))
    path = str(folder / "s")  # a socket's path is short
    arguments = {"server": (path, str(FRAMES), *server), "client": (path, *client)}
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", "from vkharness.cli import main; main()", "run"),
                *("--trace", str(folder / f"{name}.jsonl"), str(PROGRAMS / f"{name}.py"), *given),
            ],
            env={**os.environ, **driver},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, given in arguments.items()
    ]
    try:
        return [each.communicate(timeout=SECONDS)[0] for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


RACE, LOST = "WRITE_RACING_WRITE", "ownership-not-released"


@pytest.mark.parametrize(
    ("server", "client", "alone", "together"),
    [
        ((), (), set(), set()),
        (("--without", "rendering-done"), (), set(), {RACE}),
        (("--at-once",), ("--without", "copying-done"), set(), {RACE}),
        ((), ("--without", "release"), set(), {LOST}),
        ((), ("--without", "transition"), set(), {"ownership-mismatch"}),
        (("--without", "acquire"), (), set(), {"ownership-not-acquired"}),
        (
            ("--document",),
            ("--document",),
            {"READ_AFTER_WRITE", "WRITE_AFTER_WRITE"},
            {"READ_AFTER_WRITE", "WRITE_AFTER_WRITE", "ownership-mismatch"},
        ),
    ],
    ids=["whole", "no rendering done", "no copying done", "no release", "no transition", "no acquire", "document"],
)
def test_two_processes(
    tmp_path: Path, server: tuple[str, ...], client: tuple[str, ...], alone: set[str], together: set[str]
) -> None:
    said = recorded(tmp_path, server, client)
    assert f"server: {FRAMES} frames, 0 wrong texels" in said[0] and f"client: {FRAMES} frames" in said[1], said
    traces = [load(tmp_path / f"{name}.jsonl") for name in ("server", "client")]
    found = [Analysis().follow(each) for each in traces]
    assert {each.hazard.value for one in found for each in one.findings} == alone
    assert all(one.unmodelled == {} and one.unjudged.outside_waits for one in found if not (server or client))
    made = join(traces[0], traces[1], {})
    assert Counter(each.kind for each in made.pairs) == {"VkDeviceMemory": 3, "VkSemaphore": 6}
    analysis = Analysis().follow(made.blocks)
    by_order = {LOST} if RACE in together else set()  # what races may be put in the wrong order, too
    assert {each.hazard.value for each in analysis.findings} - by_order == together
    assert analysis.unmodelled == {} and analysis.unjudged.outside_waits == 0
    assert bool(judge(made.blocks).everything) == bool(together)

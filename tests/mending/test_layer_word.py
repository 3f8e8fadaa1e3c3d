"""Messages of the Khronos layer about a mended trace: whether they prove the mend."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.streams import two_buffers
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.mending import device_runs
from vkharness.replay.contents.observe import Outputs, Surface
from vkharness.trace.calls import Block
from vkharness.trace.codec import save

OURS = ("READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")
OTHER = ("WRITE_AFTER_WRITE", "vkCmdDispatch", "vkCmdDispatch")


def race(mended: bool = False) -> list[Block]:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    if mended:
        stream.barrier()
    stream.copy(a, b, 16)
    stream.submit()
    return stream.blocks


def findings() -> list[Finding]:
    return Analysis().follow(race()).findings


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        ([OURS], [], True),
        ([OURS], [OURS], False),
        ([OURS, OTHER], [OTHER], True),
        ([OURS], [OTHER], False),
        ([OURS, OTHER], [OURS, OTHER], False),
    ],
)
def test_a_hazard_that_the_layer_still_reports_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], holds: bool
) -> None:
    """Only what it reports of the trace as it was, and what no judge finds there, is not the mend's."""
    said = {"before": set(before), "after": set(after)}
    monkeypatch.setattr(device_runs, "find_layer", lambda _: Layer)
    monkeypatch.setattr(device_runs, "_reported", lambda trace, *_: said[trace.stem])
    monkeypatch.setattr(device_runs, "_are_known", lambda *_: False)
    [(held, line)] = device_runs._under_the_layer(Path("before"), Path("after"), "lavapipe", findings())
    assert held is holds and ("no hazard" in line) == (not after)


def test_a_read_of_the_host_is_the_same_one_behind_an_inserted_barrier() -> None:
    """A read is named by its block, and a mend moves that."""

    def left(*blocks: int, byte: int = 1) -> Outputs:
        bytes_ = np.full(4, byte, np.uint8)
        return Outputs({(-each, None): Surface(-each, None, bytes_) for each in blocks})

    assert device_runs._differing(left(30, 32), left(31, 33)) == []
    assert device_runs._differing(left(30), left(31, byte=2)) == [-1]
    assert device_runs._differing(left(30, 32), left(31)) == [-2], "one read is gone"


@pytest.mark.parametrize(
    ("mended", "disagreements", "holds"),
    [(True, [], True), (True, ["layer-only: something else"], False), (False, [], False)],
)
def test_a_known_difference_of_the_layer_is_no_doubt_about_the_mend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mended: bool, disagreements: list[str], holds: bool
) -> None:
    """A hazard on which the layer and we agree leaves no disagreement, either."""
    after = tmp_path / "after.jsonl"
    save(after, race(mended))
    monkeypatch.setattr(device_runs, "find_layer", lambda _: Layer)
    monkeypatch.setattr(device_runs, "find_driver", lambda _: None)
    monkeypatch.setattr(device_runs, "_reported", lambda *_: {OURS})
    monkeypatch.setattr(device_runs, "Worker", lambda *_: nullcontext(Asked(disagreements)))
    [(held, line)] = device_runs._under_the_layer(Path("before"), after, "lavapipe", findings())
    known = ", which is a known difference of that layer" if holds else ""
    assert held is holds and line.endswith(f"READ_AFTER_WRITE at vkCmdCopyBuffer{known}")


@dataclass
class Asked:
    """A worker that asked the layer."""

    disagreements: list[str]

    def call(self, *_: object) -> dict[str, list[str]]:
        return {"disagreements": self.disagreements}


class Layer:
    version_text = "1.4.0"
    manifest = "layer.json"


def test_messages_of_a_log_are_read_by_their_commands() -> None:
    log = """Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] | MessageID = 0x1
vkCmdCopyBuffer(): made up.
[Extra properties]
hazard_type = READ_AFTER_WRITE
command = vkCmdCopyBuffer
prior_command = vkCmdFillBuffer
Validation Warning: [ VUID-something-else ] | MessageID = 0x2
vkCmdCopyBuffer(): also made up.
"""
    assert device_runs.hazards_in(log) == {OURS}

"""Messages of the Khronos layer beside ours on an H200, whose queues a software driver lacks: all is explained.

`tests/data/queues` has streams of scenarios that were recorded there and, for each, what layer 1.4.364 said of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vkharness.check import Analysis
from vkharness.layer.compare import Comparison, compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.parse import LayerMessage
from vkharness.trace.codec import load

DATA = Path(__file__).resolve().parents[1] / "data" / "queues"
VERSION = (1, 4, 364)
SHOWN = {
    "early-waits-are-judged-at-the-signal": "timeline-stages_of_an_early_wait-the_wait_at_the_vertex_shader",
    "payloads-are-not-shared": "shared_swapchain-frames_of_two_programs-without_rendering_done",
    "races-go-on": "queue-buffer_goes_to_another_family-without_semaphore",
}
"""By entry, a stream that needs it."""


def _said(path: Path) -> list[LayerMessage]:
    told = json.loads(path.with_suffix(".messages.json").read_text(encoding="utf-8"))
    return [LayerMessage(**{"text": "", **each, "bytes": each.get("bytes") and tuple(each["bytes"])}) for each in told]


def _compared(path: Path, less: str = "") -> Comparison:
    blocks = load(path)
    known = [each for each in known_differences(VERSION) if each.id != less]
    return compare(Analysis().follow(blocks).findings, _said(path), known, blocks)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_difference_is_explained(path: Path) -> None:
    assert _compared(path).lines() == []


@pytest.mark.parametrize(("entry", "name"), sorted(SHOWN.items()))
def test_the_entry_is_needed_there(entry: str, name: str) -> None:
    assert _compared(DATA / f"{name}.jsonl", less=entry).lines()


def test_one_payload_is_one_resource_for_both() -> None:
    """The layer names the imported image, we name the one whose payload it has. In each of two frames both mean one
    access."""
    path = DATA / "shared_swapchain-frames_of_two_programs-layout_for_rendering_before_nothing.jsonl"
    assert _compared(path).agreed == 2


@pytest.mark.parametrize(
    "stream", ["fill_waits_for_its_memory-without_the_wait", "two_ranges_of_one_memory-without_fill_before_copy"]
)
def test_the_layer_is_silent_about_sparse_memory(stream: str) -> None:
    compared = _compared(DATA / f"sparse-{stream}.jsonl")
    assert compared.used == {"silent-by-design": 1}

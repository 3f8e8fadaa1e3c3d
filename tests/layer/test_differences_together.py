"""Streams in which a known difference shows beside another one, or in a form of its own: the entry explains it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.layer.differing_rows import TODAY
from tests.layer.test_known_differences import (
    COLOR,
    FRAGMENTS,
    MOVED,
    MOVED_COLOR,
    OUTPUT,
    SET,
    STORED,
    WAIT,
    WORD,
    WRITES,
    attachment,
    barrier,
    event,
    render_pass,
    rendering,
    submit,
)
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.fuzz.random_steps import Step
from vkharness.layer.manifest import find_layer
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL as EXTERNAL

SAMPLED: Step = ("draw", "sample", {"blend": False}, 0, "draw")
MOVED_FIRST: dict[str, Any] = {**MOVED, "image": 0}

STREAMS: dict[str, list[Step]] = {
    "indirect-commands-always-run/before-a-dispatch-that-loads-values": [
        ("write_counts", 12, 4, "update"), ("indirect", 12, 0), ("stride_words", 0, 0, 1, 1, "host"), submit(0, 1),
    ],
    "draws-without-a-fragment-shader/found-where-an-idle-draw-was-recorded": [
        ("copy", 1, 1, [(20, 152, 64)], False),
        rendering([], (2, 2, 4, 4), (("draw", "sample", {"blend": False}, 2, "draw"),)),
        ("rendering", {
            "colors": [{"image": 0, "layer": 0, "load": "LOAD", "store": "STORE", "resolve": None}],
            "depth": None, "stencil": ("CLEAR", "DONT_CARE"), "area": (0, 0, 8, 8), "suspended": False,
            "secondary": False,
        }, [("draw", "no_fragment", {"blend": False, "cull": 2, "topology": 3}, 2, "indirect")]),
        submit(0),
    ],
    "indirect-commands-always-run/between-what-was-found-where-it-was-recorded": [
        barrier("FRAGMENT_SHADER", STORED, sync2=True, image=0, mips=(0, 1), layers=(0, 2), old="UNDEFINED"),
        render_pass([], [{}], draws=[(0, ("draw", "sample", {"blend": False}, 1, "indirect"))]),
        barrier("FRAGMENT_SHADER", "FRAGMENT_SHADER"),
        ("copy", 3, 2, [(56, 4, 4)], False),
        render_pass(
            [attachment(0, load="NONE", store="NONE")], [{"colors": [COLOR]}],
            draws=[(0, ("draw", "early", {"blend": False}, 3, "indirect"))],
        ),
        submit(0),
    ],
    "one-hazard-a-region-at-submit/ordered-in-another-execution": [
        ("secondary", []),
        ("secondary", [("copy", 2, 3, [(0, 128, 64), (64, 0, 64)], True)]),
        barrier("ALL_COMMANDS", "TOP_OF_PIPE"),
        ("secondary", [("copy", 0, 2, [(20, 4, 120)], False), ("fill", 2, 28, 120)]),
        ("execute", [1, 2]),
    ],
    "one-hazard-a-region-as-it-sees-it/beside-a-wait-without-a-set": [
        event(**MOVED_FIRST), rendering([1], draws=(SAMPLED,)), WAIT,
        ("buffer_to_image", 3, 0, {**WORD, "offset": (0, 4, 0)}, False), ("clear_color", 0, {}),
    ],
    "no-chain-through-a-pass/after-a-semaphore": [
        render_pass([attachment(1)], [{"colors": [COLOR]}], (0, EXTERNAL, OUTPUT, WRITES, 0)),
        ("copy", 1, 1, [(28, 144, 64)], True),
        ("submit", [{"buffers": [0], "waits": [], "signals": [(0, "ALL_COMMANDS", 1)]}], None),
        ("submit", [{"buffers": [0], "waits": [(0, "DRAW_INDIRECT", 1)], "signals": []}], None),
    ],
    "read-after-a-load/of-what-a-store-operation-none-wrote": [
        render_pass(
            [attachment(3, load="NONE", store="NONE")], [{}, {"colors": [COLOR]}, {}], area=(0, 0, 4, 8),
            draws=[(1, ("clear_inside", 0, True)), (1, ("clear_inside", 0, True))],
        ),
        render_pass(
            [attachment(0, load="DONT_CARE", store="DONT_CARE", initial="UNDEFINED"), attachment(3, store="NONE")],
            [{"colors": [(1, "GENERAL")], "resolves": [MOVED_COLOR]}, {"colors": [MOVED_COLOR]}], area=(2, 2, 4, 4),
            draws=[(0, ("draw", "plain", {"blend": False}, 1, "draw")), (0, ("clear_inside", 0, True))],
        ),
    ],
    "ordered-after-a-read/of-a-draw-that-never-runs": [
        barrier("COMPUTE_SHADER", "COMPUTE_SHADER", **MOVED),
        render_pass(
            [attachment(0, layer=1, load="DONT_CARE", store="NONE")],
            [{"colors": [MOVED_COLOR]}, {"colors": [MOVED_COLOR]}],
            (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", FRAGMENTS, 0), area=(0, 0, 4, 8),
            draws=[
                (0, ("draw", "sample", {"blend": True}, 0, "indirect")),
                (1, ("draw", "sample", {"blend": False}, 1, "indexed")),
            ],
        ),
    ],
    "barriers-of-one-command-around-events/up-to-what-a-set-waits-for": [
        ("event", 1, [{"src": "EARLY_FRAGMENT_TESTS", "dst": "ALL_COMMANDS", "sync2": True}]),
        ("set_event", 1),
        ("barriers", [
            {"src": "ALL_COMMANDS", "dst": OUTPUT, "sync2": True, "image": 2},
            {"src": OUTPUT, "dst": "EARLY_FRAGMENT_TESTS", "sync2": True, "image": 1},
        ]),
        submit(0, 0),
    ],
    "transition-for-unordered-sets/behind-a-barrier-to-what-no-set-waits-for": [
        ("event", 0, barrier("COMPUTE_SHADER", "COMPUTE_SHADER/SHADER_READ", **MOVED_FIRST)[1]), SET,
        barrier("ALL_COMMANDS/MEMORY_WRITE", "COPY/TRANSFER_WRITE", sync2=True), SET, WAIT,
        ("secondary", [("clear_color", 0, {})]),
    ],
    "last-read-of-a-stage/before-a-clear": [
        ("rendering", {
            "colors": [{"image": 3, "layer": 0, "load": "LOAD", "store": "NONE", "resolve": (0, 0)}], "depth": None,
            "stencil": ("DONT_CARE", "NONE"), "area": (0, 0, 8, 8), "suspended": False, "secondary": False,
        }, []),
        ("clear_samples",),
    ],
    "set-after-a-wait-that-did-nothing/as-the-event-was-reset-last": [
        ("event", 0, [{"src": "TOP_OF_PIPE", "dst": "COMPUTE_SHADER/SHADER_READ", "sync2": False}]),
        SET, ("reset_event", 0, "COMPUTE_SHADER"), WAIT, SET,
    ],
}  # fmt: skip
"""By entry and what it comes together with."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(find_driver("lavapipe")) as started:
        yield started


@pytest.mark.skipif(find_layer(TODAY) is None, reason="the Khronos layer is not installed (ci/setup installs it)")
@pytest.mark.parametrize("name", STREAMS)
def test_the_entry_explains_it(worker: Worker, name: str) -> None:
    answer = worker.call("vkharness.fuzz.layer_fuzz:judge", {"layer": TODAY, "steps": STREAMS[name]})
    assert isinstance(answer, dict), answer
    assert answer["disagreements"] == []
    assert name.partition("/")[0] in answer["expected"]

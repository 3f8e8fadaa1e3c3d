"""The smallest random streams that showed a difference from today's layer: each is explained by just that entry of
differences.toml, so that the entry is needed and the layer still does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.device.drivers import find_driver
from harness.device.process import Worker
from harness.layer.manifest import find_layer
from harness.spec.enums import VK_SUBPASS_EXTERNAL
from tests.fuzz.random_steps import Step
from tests.fuzz.random_streams import ask
from tests.fuzz.random_targets import BY_REGION

LAYER = "1.4.364"
pytestmark = pytest.mark.skipif(find_layer(LAYER) is None, reason=f"evidence about {LAYER}, which is not installed")

ALL = "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"
TRANSFERS = {"src": "ALL_TRANSFER/TRANSFER_WRITE", "dst": ALL, "form": 1}
MOVED = {"image": 1, "mips": (0, 2), "layers": (0, 2), "old": "UNDEFINED"}
WORD = {"mip": 0, "layer": 0, "offset": (0, 0, 0), "extent": (1, 1, 1)}
INDEXED = ("draw", "vertices", {"blend": False}, 0, "indexed")


def submit(*buffers: int) -> Step:
    return ("submit", [{"buffers": list(buffers), "waits": [], "signals": []}], None)


def signal(value: int) -> Step:
    return ("submit", [{"buffers": [0], "waits": [], "signals": [(0, "ALL_COMMANDS", value)]}], None)


def rendering(colors: list[int], area: tuple[int, ...] = (0, 0, 8, 8), draws: list[Step] | None = None) -> Step:
    attached = [{"image": each, "layer": 0, "load": "LOAD", "store": "NONE", "resolve": None} for each in colors]
    depth = ("CLEAR", "STORE")
    spec = {"colors": attached, "depth": depth, "stencil": depth, "area": area, "suspended": False, "secondary": False}
    return ("rendering", spec, draws or [])


def depth_pass() -> Step:
    attachment = {"image": 2, "layer": 0, "load": "LOAD", "store": "STORE", "stencil": ("CLEAR", "STORE")}
    attachment["initial"] = "GENERAL"
    subpass = {"colors": [], "resolves": [], "depth": (0, "GENERAL"), "inputs": [], "secondary": False}
    into = (
        VK_SUBPASS_EXTERNAL,
        0,
        "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ",
        "FRAGMENT_SHADER/SHADER_READ",
        0,
    )
    spec: dict[str, Any] = {"attachments": [attachment], "subpasses": [subpass], "dependencies": [into]}
    return ("pass", spec | {"area": (0, 0, 8, 8), "form": 1}, [])


def attachment(image: int, layer: int = 0) -> dict[str, Any]:
    kept = ("LOAD", "STORE")
    return {"image": image, "layer": layer, "load": "LOAD", "store": "STORE", "stencil": kept, "initial": "GENERAL"}


def in_passes(
    attachments: list[dict[str, Any]],
    *subpasses: dict[str, Any],
    dependencies: list[tuple[Any, ...]] | None = None,
    draws: list[Any] | None = None,
) -> Step:
    """A render pass instance; what a subpass does not name it does not use."""
    unused: dict[str, Any] = {"colors": [], "resolves": [], "depth": None, "inputs": [], "secondary": False}
    spec: dict[str, Any] = {"attachments": attachments, "subpasses": [unused | each for each in subpasses]}
    return ("pass", spec | {"dependencies": dependencies or [], "area": (0, 0, 8, 8), "form": 1}, draws or [])


def upload(image: int, *offset: int) -> Step:
    return ("buffer_to_image", 3, image, {"mip": 0, "layer": 0, "offset": (*offset, 0), "extent": (1, 1, 1)}, 1)


COLOR, MOVED_COLOR = (0, "GENERAL"), (0, "COLOR_ATTACHMENT_OPTIMAL")
FRAGMENTS = "FRAGMENT_SHADER/SHADER_READ"
DEPTHS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
RESOLVED = [attachment(3) | {"load": "CLEAR"}, attachment(0)]

STREAMS: dict[str, list[Step]] = {
    "host-wait-for-an-older-value": [
        ("fill", 0, 0, 64),
        signal(1),
        ("idle",),
        signal(1),
        ("host_wait", 0, 1),
        submit(0),
    ],
    "wait-for-an-event-set-elsewhere": [
        ("event", 0, [TRANSFERS | MOVED]),
        ("resolve", 1, WORD, WORD, 1),
        ("wait_events", [0]),
    ],
    "after-a-wait-for-an-event-set-elsewhere": [
        ("event", 0, [TRANSFERS | MOVED]),
        ("image_to_buffer", 1, 0, WORD, 1),
        ("wait_events", [0]),
        ("clear_color", 1, {}),
    ],
    "transitions-at-two-waits": [
        ("event", 0, [TRANSFERS | MOVED | {"dst": "COMPUTE_SHADER/SHADER_WRITE"}]),
        ("set_event", 0),
        ("wait_events", [0]),
        ("wait_events", [0]),
    ],
    "bottom-of-pipe-orders-operations-on-events": [
        ("event", 0, [TRANSFERS]),
        ("reset_event", 0, "ALL_TRANSFER"),
        ("barriers", [{"src": "BOTTOM_OF_PIPE", "dst": ALL, "form": 1}]),
        ("set_event", 0),
    ],
    "one-aspect-a-load-operation": [
        ("barriers", [{"src": "ALL_TRANSFER", "dst": "ALL_TRANSFER", "form": 1, "image": 2, "old": "UNDEFINED"}]),
        depth_pass(),
    ],
    "before-whole-attachments": [("clear_depth_stencil", 4), rendering([], (2, 2, 4, 4)), submit(0, 0)],
    "unordered-set-moves-nothing": [
        ("event", 0, [TRANSFERS | MOVED]),
        ("reset_event", 0, "COMPUTE_SHADER"),
        ("set_event", 0),
        ("image_to_buffer", 1, 0, WORD, 1),
        ("wait_events", [0]),
    ],
    "first-piece-of-an-access": [upload(1, 5, 4), in_passes([attachment(1)], {"colors": [COLOR]})],
    "clears-of-later-layers": [
        in_passes(
            [attachment(1, layer=1)],
            {"colors": [COLOR]},
            {"colors": [MOVED_COLOR]},
            dependencies=[(0, 1, FRAGMENTS, "COLOR_ATTACHMENT_OUTPUT", 0)],
            draws=[(0, ("clear_inside", 0, False))],
        )
    ],
    "transition-before-one-dependency": [
        in_passes(
            [attachment(0) | {"load": "CLEAR", "initial": "UNDEFINED"}],
            {},
            {"colors": [COLOR]},
            dependencies=[
                (0, 1, FRAGMENTS, "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", BY_REGION),
                (VK_SUBPASS_EXTERNAL, 1, "ALL_TRANSFER/TRANSFER_WRITE", "FRAGMENT_SHADER", 0),
            ],
        )
    ],
    "read-in-another-subpass": [
        in_passes(
            RESOLVED,
            {"colors": [COLOR], "resolves": [(1, "COLOR_ATTACHMENT_OPTIMAL")]},
            {"colors": [COLOR], "resolves": [(1, "GENERAL")]},
            dependencies=[(0, 1, "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ", FRAGMENTS, BY_REGION)],
        )
    ],
    "no-chain-through-a-pass": [
        in_passes(
            [attachment(3)], {}, dependencies=[(0, VK_SUBPASS_EXTERNAL, FRAGMENTS, "ALL_TRANSFER/TRANSFER_WRITE", 0)]
        ),
        upload(1, 2, 0),
        ("barriers", [{"src": "ALL_COMMANDS/MEMORY_WRITE", "dst": DEPTHS, "form": 2}]),
        submit(0, 0),
    ],
    "after-an-unrecorded-read": [("copy", 1, 0, [(0, 0, 64)], 1), rendering([1], draws=[INDEXED]), submit(0, 0)],
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as made:
        yield made


@pytest.mark.parametrize("entry", STREAMS)
def test_the_entry_explains_the_stream(worker: Worker, entry: str) -> None:
    answer = ask(worker, 0, LAYER, (), STREAMS[entry])
    assert answer["disagreements"] == []
    assert entry in answer["expected"], answer

"""Every known difference is needed: a small stream, played on a real layer, shows it, and nothing else explains it.

A stream is a variant of a scenario where one shows the difference, else steps as random streams have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from tests.layer.differing_rows import OLD, SCENARIOS, SWIFTSHADER, TODAY
from tests.layer.test_queues_of_a_gpu import SHOWN as RECORDED
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.fuzz.random_steps import Step
from vkharness.layer.known_differences import asked_versions, load
from vkharness.layer.manifest import find_layer, parse_version
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL as EXTERNAL
from vkharness.spec.enums import VkDependency

ALL = "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"
WRITES, READS, EXECUTION = "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ", "ALL_TRANSFER"
STORED, FRAGMENTS = "COMPUTE_SHADER/SHADER_WRITE", "FRAGMENT_SHADER/SHADER_READ"
DEPTH_READ, OUTPUT = "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ", "COLOR_ATTACHMENT_OUTPUT"
DEPTHS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
MOVED: dict[str, Any] = {"image": 1, "mips": (0, 2), "layers": (0, 2), "old": "UNDEFINED"}
WORD = {"mip": 0, "layer": 0, "offset": (0, 0, 0), "extent": (1, 1, 1)}
COLOR, MOVED_COLOR = (0, "GENERAL"), (0, "COLOR_ATTACHMENT_OPTIMAL")
MOVED_DEPTH = (0, "DEPTH_STENCIL_ATTACHMENT_OPTIMAL")
NEXT: Step = ("next",)
CLEAR: Step = ("clear_color", 1, {})
DOWNLOAD: Step = ("image_to_buffer", 1, 0, WORD, 1)
SET: Step = ("set_event", 0)
WAIT: Step = ("wait_events", [0])


def barrier(src: str, dst: str, *more: tuple[str, str], **target: Any) -> Step:
    """One barrier, with memory barriers beside it."""
    several = [{"src": src, "dst": dst, "sync2": False, **target}]
    return ("barriers", several + [{"src": before, "dst": after, "sync2": False} for before, after in more])


def event(dst: str = ALL, **target: Any) -> Step:
    return ("event", 0, barrier(WRITES, dst, **target)[1])


def fill(begin: int = 0, size: int = 256) -> Step:
    return ("fill", 0, begin, size)


def copy(source: int, target: int, begin: int = 0) -> Step:
    return ("copy", source, target, [(0, begin, 256 - begin)], 1)


def upload(image: int, *offset: int) -> Step:
    return ("buffer_to_image", 3, image, {**WORD, "offset": (*offset, 0)}, 1)


def dispatch(shader: str, second: int = 1) -> Step:
    return ("dispatch", shader, 0, second, 0, 0, "plain")


def submit(*buffers: int, signal: int = 0) -> Step:
    signals = [(0, "ALL_COMMANDS", signal)] if signal else []
    return ("submit", [{"buffers": list(buffers), "waits": [], "signals": signals}], None)


def rendering(colors: list[int], area: tuple[int, ...] = (0, 0, 8, 8), draws: tuple[Step, ...] = ()) -> Step:
    attached = [{"image": each, "layer": 0, "load": "LOAD", "store": "NONE", "resolve": None} for each in colors]
    depth = ("CLEAR", "STORE")
    spec = {"colors": attached, "depth": depth, "stencil": depth, "area": area, "suspended": False, "secondary": False}
    return ("rendering", spec, list(draws))


def attachment(image: int, **more: Any) -> dict[str, Any]:
    usual = {"image": image, "layer": 0, "load": "LOAD", "store": "STORE", "initial": "GENERAL"}
    return usual | {"stencil": ("LOAD", "STORE")} | more


def render_pass(attachments: list[Any], subpasses: list[Any], *dependencies: Any, **more: Any) -> Step:
    """A render pass instance with its area and draws; what a subpass does not name it does not use."""
    unused: dict[str, Any] = {"colors": [], "resolves": [], "depth": None, "inputs": [], "secondary": False}
    spec: dict[str, Any] = {"attachments": attachments, "subpasses": [unused | each for each in subpasses]}
    area = more.get("area", (0, 0, 8, 8))
    return ("pass", spec | {"dependencies": list(dependencies), "area": area, "v2": False}, list(more.get("draws", ())))


WRITTEN = dispatch("fill_words_writeonly")
RESOLVES = {"colors": [COLOR], "resolves": [(1, "GENERAL")]}
DRAWN: Step = ("draw", "vertices", {"blend": False}, 0, "indexed")
INPUT: Step = ("draw", "input", {"blend": False}, 0, "draw")

# fmt: off
STREAMS: dict[str, dict[str, list[Step]]] = {OLD: {
    "in-order-by-more/all-commands-needs-the-available-write": [
        fill(), barrier(ALL, "NONE", sync2=True), barrier("ALL_COMMANDS", READS), copy(0, 1),
    ],
    "beyond-tracked-memory": [fill(0, 64), fill(0, 128), fill(64, 64)],
    "reads-forgotten-at-submit/older-write": [
        fill(), NEXT, barrier(WRITES, READS), copy(0, 1), NEXT, barrier(EXECUTION, EXECUTION), fill(),
        submit(0), submit(1), submit(2),
    ],
    "only-the-first-read": [
        fill(), NEXT, barrier(WRITES, READS), copy(0, 1), dispatch("copy_words", 3), submit(0), submit(1),
    ],
    "optimal-images-hide-buffers": [fill(), NEXT, fill(), CLEAR, submit(0), submit(1)],
    "reads-forgotten-at-submit": [
        fill(), NEXT, barrier(WRITES, READS + "|TRANSFER_WRITE"), copy(0, 1), submit(0), submit(1), submit(0),
    ],
    "same-descriptor-write-twice/more": [WRITTEN, fill(64, 64), WRITTEN],
    "several-barriers-of-one-command": [CLEAR, barrier(WRITES, EXECUTION, (WRITES, WRITES), **MOVED), CLEAR],
    "write-after-own-read-against-older-write": [
        WRITTEN, NEXT, barrier(STORED, READS), copy(0, 1), barrier(EXECUTION, EXECUTION),
        fill(), submit(0), submit(1),
    ],
    "only-the-first-read/then-written": [fill(), NEXT, copy(0, 1), fill(), submit(0), submit(1)],
    "one-hazard-a-region-as-the-old-layer-sees-it": [
        ("fill", 2, 32, 32), ("indirect", 12, 3), ("dispatch", "scale_words", 2, 0, 0, 1, "base"), ("fill", 2, 48, 92),
        ("copy", 2, 3, [(28, 20, 84)], True),
    ],
}, TODAY: {
    "after-an-unrecorded-access": [
        ("copy", 1, 0, [(0, 0, 4)], 1), rendering([1], draws=(("draw", "vertices", {"blend": False}, 0, "indexed"),)),
        submit(0, 0),
    ],
    "all-commands-of-a-subpass-dependency": [
        ("dispatch", "image_store_2d", 3, 0, 0, 1, "push"),
        render_pass([attachment(1)], [{"colors": [MOVED_COLOR]}], (EXTERNAL, 0, ALL, "FRAGMENT_SHADER", 0)),
    ],
    "in-order-by-more/all-commands-needs-the-available-write": [
        render_pass(
            [attachment(0, load="CLEAR"), attachment(2, load="CLEAR", initial="UNDEFINED")],
            [{"depth": (1, "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"), "inputs": [COLOR]}],
        ),
        barrier("ALL_COMMANDS", FRAGMENTS, image=0, mips=(0, 2), layers=(0, 2), old="UNDEFINED"),
    ],
    "in-order-by-more/all-commands-needs-the-available-write-for-a-write": [
        WRITTEN, barrier(ALL, "NONE", sync2=True), barrier("ALL_COMMANDS", "ALL_COMMANDS"), barrier(WRITES, STORED),
        WRITTEN,
    ],
    "in-order-by-more/all-commands-needs-the-available-write-that-names-it-for-another-resource": [
        fill(), barrier(ALL, "NONE", sync2=True), barrier(ALL, "ALL_COMMANDS/MEMORY_READ", **MOVED),
        barrier("COMPUTE_SHADER", READS), copy(0, 1),
    ],
    "in-order-by-more/all-commands-needs-the-available-write-before-another-execution-dependency": [
        WRITTEN, barrier(ALL, "NONE", sync2=True), barrier("ALL_COMMANDS", "ALL_COMMANDS"),
        barrier("COMPUTE_SHADER", "ALL_COMMANDS"), barrier(WRITES, STORED), WRITTEN,
    ],
    "atomics-are-reads": [WRITTEN, NEXT, copy(0, 1), dispatch("atomic_add"), submit(0, 1)],
    "another-of-several-reads": [fill(), copy(0, 1), dispatch("sum_uniform"), submit(0), submit(0)],
    "barriers-beside-a-transition": [barrier(WRITES, READS, (WRITES, WRITES), **MOVED), CLEAR],
    "wait-for-an-event-set-elsewhere/afterwards": [event(**MOVED), DOWNLOAD, WAIT, CLEAR],
    "bottom-of-pipe-orders-operations-on-events": [
        event(), ("reset_event", 0, "ALL_TRANSFER"), barrier("BOTTOM_OF_PIPE", ALL), SET,
    ],
    "clears-of-later-layers": [render_pass(
        [attachment(1, layer=1)], [{"colors": [COLOR]}, {"colors": [MOVED_COLOR]}], (0, 1, FRAGMENTS, OUTPUT, 0),
        draws=((0, ("clear_inside", 0, False)),),
    )],
    "clears-of-whole-attachments": [
        upload(1, 0, 0), rendering([1], (2, 2, 4, 4), (("clear_inside", 0, False),)),
    ],
    "draws-without-a-fragment-shader": [
        DOWNLOAD, rendering([1], draws=(("draw", "no_fragment", {"blend": False}, 0, "draw"),)),
    ],
    "draws-of-whole-attachments": [render_pass(
        [attachment(1, load="CLEAR")], [{"colors": [COLOR]}, {"colors": [MOVED_COLOR]}], (0, 1, FRAGMENTS, DEPTHS, 0),
        area=(0, 0, 4, 8), draws=((1, DRAWN),),
    )],
    "first-piece-of-an-access/of-what-earlier-command-buffers-cut": [
        render_pass([attachment(1, load="CLEAR")], [{"colors": [COLOR]}]), upload(1, 5, 4), submit(0, 0),
    ],
    "first-piece-of-an-access": [upload(1, 5, 4), render_pass([attachment(1)], [{"colors": [COLOR]}])],
    "indirect-commands-always-run": [("indirect", 4, 3), submit(0), submit(0)],
    "host-wait-for-an-older-value": [
        fill(), submit(0, signal=1), ("idle",), submit(0, signal=1), ("host_wait", 0, 1), submit(0),
    ],
    "later-rows-outside-the-subpass": [("clear_samples",), render_pass(
        [attachment(0), attachment(3, load="CLEAR")], [{"colors": [(1, "GENERAL")], "resolves": [COLOR]}],
        area=(2, 2, 4, 4),
    )],
    "last-operation-alone": [event(), SET, ("reset_event", 0, "COMPUTE_SHADER"), ("reset_event", 0, "COMPUTE_SHADER")],
    "no-chain-through-a-pass": [
        render_pass([attachment(3)], [{}], (0, EXTERNAL, FRAGMENTS, WRITES, 0)), upload(1, 2, 0),
        barrier("ALL_COMMANDS/MEMORY_WRITE", DEPTHS), submit(0, 0),
    ],
    "one-hazard-a-region/of-two-aspects": [
        barrier(EXECUTION, EXECUTION, image=2, old="UNDEFINED"),
        render_pass(
            [attachment(2, stencil=("CLEAR", "STORE"))], [{"depth": COLOR}], (EXTERNAL, 0, DEPTH_READ, FRAGMENTS, 0)
        ),
    ],
    "one-hazard-a-region": [copy(1, 0, 64), fill(0, 64), fill()],
    "one-hazard-a-region-at-submit": [fill(), NEXT, fill(0, 64), ("update", 0, 0, 128), submit(0, 1)],
    "one-hazard-a-region-as-it-sees-it/at-submit": [
        ("indirect", 8, 3), ("update", 3, 60, 4), NEXT, ("dispatch", "sum_uniform", 3, 0, 0, 0, "base"), submit(0, 1),
    ],
    "one-hazard-a-region-as-it-sees-it": [("indirect", 8, 1), ("fill", 1, 52, 112), submit(0), submit(0)],
    "read-after-a-load/that-is-an-input-attachment": [
        upload(1, 2, 1), render_pass([attachment(1)], [{"inputs": [COLOR]}], draws=[(0, INPUT)]),
    ],
    "read-after-a-load": [
        render_pass([attachment(3, load="CLEAR"), attachment(0)], [RESOLVES, RESOLVES], area=(2, 2, 4, 4)),
        render_pass([attachment(3), attachment(0)], [RESOLVES]),
    ],
    "several-differences-at-once": [
        ("clear_depth_stencil", 6),
        ("rendering", {
            "colors": [], "depth": ("LOAD", "STORE"), "stencil": ("DONT_CARE", "NONE"), "area": (0, 0, 4, 8),
            "suspended": False, "secondary": False,
        }, [("clear_inside", 6, True)]),
    ],
    "pair-reported-once": [fill(), submit(0), submit(0), submit(0)],
    "in-order-beyond-subpasses/barrier-inside": [render_pass(
        [attachment(0, load="CLEAR")], [{"colors": [COLOR]}, {"inputs": [COLOR]}],
        (0, 0, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ", VkDependency.BY_REGION),
        (0, 1, "FRAGMENT_SHADER", FRAGMENTS, 0),
        draws=[(0, DRAWN), (0, ("pass_barrier",)), (1, INPUT)],
    )],
    "judged-where-it-is-submitted": [
        WRITTEN, render_pass([attachment(0)], [{"colors": [COLOR]}], draws=[(0, DRAWN)]), WRITTEN,
    ],
    "all-commands-of-a-subpass-dependency/before-a-transition": [
        render_pass(
            [attachment(0)], [{"colors": [COLOR]}],
            (0, EXTERNAL, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "ALL_COMMANDS/MEMORY_WRITE", 0),
        ),
        render_pass([attachment(0)], [{"colors": [MOVED_COLOR]}]),
    ],
    "one-hazard-a-region-as-it-sees-it/of-a-drawn-aspect": [render_pass(
        [attachment(2, stencil=("DONT_CARE", "DONT_CARE"))], [{"depth": MOVED_DEPTH}, {"depth": COLOR}],
        (0, 1, "VERTEX_INPUT/INDEX_READ", OUTPUT, 0), area=(2, 2, 4, 4),
        draws=[(0, ("draw", "vertices", {"blend": False, "depth_test": True, "depth_write": True}, 0, "draw"))],
    )],
    "last-read-of-a-stage": [render_pass(
        [attachment(3), attachment(0)], [RESOLVES, {"colors": [MOVED_COLOR]}],
        (0, 1, DEPTHS, "VERTEX_INPUT/INDEX_READ", 0), area=(2, 2, 4, 4),
    )],
    "stored-after-an-own-resolve": [render_pass(
        [attachment(3), attachment(0)],
        [RESOLVES | {"colors": [MOVED_COLOR]}, RESOLVES], (0, 1, "VERTEX_INPUT/INDEX_READ", DEPTHS, 0),
    )],
    "indirect-commands-always-run/inside-a-secondary": [
        ("rendering", {
            "colors": [], "depth": ("LOAD", "STORE"), "stencil": ("NONE", "STORE"), "area": (0, 0, 8, 8),
            "suspended": False, "secondary": True,
        }, [("draw", "sample", {"blend": False}, 0, "indirect")]),
        barrier("TOP_OF_PIPE", FRAGMENTS, **{**MOVED, "image": 0}),
    ],
    "transitions-of-one-instance": [render_pass(
        [attachment(2, load="NONE", stencil=("NONE", "NONE"))], [{"depth": MOVED_DEPTH}, {"depth": COLOR}],
        (0, 1, DEPTH_READ, OUTPUT, 0), (EXTERNAL, 0, OUTPUT, "FRAGMENT_SHADER", 0), area=(2, 2, 4, 4),
    )],
    "used-after-a-wait-for-unordered-sets/set": [
        ("event", 0, barrier("COMPUTE_SHADER/SHADER_READ", "ALL_COMMANDS/TRANSFER_WRITE", sync2=True)[1]),
        ("reset_event", 0, "COMPUTE_SHADER"), SET, WAIT, SET,
    ],
    "operations-before-a-wait-for-a-semaphore": [
        ("event", 0, barrier(STORED, ALL)[1]), SET,
        ("submit", [{"buffers": [0], "waits": [], "signals": [(1, "TOP_OF_PIPE", 0)]}], None),
        ("submit", [{"buffers": [0], "waits": [(1, EXECUTION, 0)], "signals": []}], None),
    ],
    "read-after-a-set-of-what-nothing-touched": [event(**MOVED), SET, DOWNLOAD, WAIT],
    "host-wait-for-some-stages": [
        fill(), NEXT, ("fill", 1, 0, 4),
        ("submit", [{"buffers": [0, 1], "waits": [], "signals": [(0, "COMPUTE_SHADER", 1)]}], None),
        ("host_wait", 0, 1), submit(0),
    ],
    "transition-for-unordered-sets/reset-last": [
        event(**MOVED), SET, ("reset_event", 0, "COMPUTE_SHADER"), CLEAR, WAIT,
    ],
    "transition-for-unordered-sets/that-the-first-command-waits-for": [event(READS, **MOVED), SET, SET, WAIT, CLEAR],
    "no-chain-through-a-pass/from-one-subpass-to-another": [
        render_pass(
            [attachment(1)], [{"colors": [COLOR]}, {}],
            (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ", 0),
        ),
        barrier(DEPTHS, ALL, **MOVED),
    ],
    "no-chain-through-a-pass/beside-a-wait-without-a-set": [
        ("event", 0, barrier(f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", ALL, sync2=True)[1]),
        copy(0, 1), barrier(ALL, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"), WAIT,
        render_pass(
            [attachment(0)], [{"colors": [COLOR]}],
            (0, EXTERNAL, f"{OUTPUT}/COLOR_ATTACHMENT_READ", "ALL_COMMANDS", 0),
        ),
        WRITTEN,
    ],
    "in-order-by-more/available-by-what-meets-at-another-transition": [
        barrier("ALL_COMMANDS", "ALL_COMMANDS"),
        render_pass(
            [
                attachment(0, load="CLEAR", initial="UNDEFINED"),
                attachment(2, load="CLEAR", store="NONE", stencil=("NONE", "STORE")),
            ],
            [{"depth": (1, "GENERAL"), "inputs": [COLOR]}, {"colors": [COLOR], "depth": (1, MOVED_DEPTH[1])}],
            (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", "VERTEX_INPUT/INDEX_READ", 1),
            (0, EXTERNAL, "LATE_FRAGMENT_TESTS", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", 0),
            area=(0, 0, 4, 8),
        ),
        submit(0, 0),
    ],
    "moved-again-for-a-later-subpass": [render_pass(
        [attachment(2)],
        [{"depth": (0, "DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL")}, {"depth": COLOR}, {"depth": COLOR}],
        (0, 1, DEPTHS, "VERTEX_INPUT/INDEX_READ", 0), (0, 2, DEPTH_READ, DEPTH_READ, 1),
        (1, 2, OUTPUT, OUTPUT, VkDependency.BY_REGION), area=(0, 0, 4, 8),
    )],
    "own-write-after-an-input-read": [render_pass(
        [attachment(0, load="NONE", store="DONT_CARE")],
        [{"colors": [COLOR], "inputs": [COLOR]}, {"colors": [MOVED_COLOR]}],
        (0, 1, DEPTH_READ, "FRAGMENT_SHADER", 0), draws=[(0, ("draw", "input", {"blend": False}, 1, "indexed"))],
    )],
    "judged-where-it-is-submitted/around-a-secondary": [
        ("secondary", [copy(2, 1)]),
        ("rendering", {
            "colors": [], "depth": ("CLEAR", "DONT_CARE"), "stencil": ("LOAD", "DONT_CARE"), "area": (2, 2, 4, 4),
            "suspended": False, "secondary": False,
        }, [("draw", "vertices", {"blend": False}, 1, "indirect")]),
        ("execute", [0]),
    ],
    "indirect-commands-always-run/where-nobody-foresees-it": [
        render_pass([attachment(1)], [{"colors": [COLOR], "secondary": True}]),
        ("stride_words", 1, 15, 20, 2, "host"), ("indirect", 8, 1), submit(0),
    ],
    "indirect-commands-always-run/or-load-what-they-loaded-before": [
        ("loaded_words", 3, 8, 8, "copy"), NEXT, ("loaded_words", 2, 32, 1, "kept"), submit(1), submit(0, 1),
    ],
    "used-after-a-wait-for-unordered-sets": [
        event(), SET, WAIT, NEXT, ("reset_event", 0, EXECUTION), submit(1), submit(0, 1),
    ],
    "write-in-place-of-an-own-read": [render_pass(
        [attachment(0)], [{"colors": [COLOR], "inputs": [COLOR]}, {"colors": [COLOR]}],
        (0, 1, "VERTEX_INPUT/INDEX_READ", "VERTEX_INPUT/INDEX_READ", 0),
        draws=[(0, INPUT), (1, DRAWN)],
    )],
    "in-order-by-more/wait-shows-what-is-available": [
        event(), SET, fill(), barrier(WRITES, "ALL_COMMANDS"), WAIT, copy(0, 1),
    ],
    "in-order-by-more/transition-before-one-dependency-into-several-subpasses": [render_pass(
        [attachment(1, load="CLEAR", initial="UNDEFINED")], [{"colors": [COLOR]}, {"colors": [COLOR]}],
        (EXTERNAL, 0, WRITES, "FRAGMENT_SHADER", 0), (EXTERNAL, 1, WRITES, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", 0),
    )],
    "pair-reported-once/inside-of-an-execution": [event(**MOVED), CLEAR, SET, WAIT, submit(0, 0), submit(0)],
    "no-chain-through-a-pass/to-a-transition": [
        upload(0, 0, 0),
        render_pass(
            [attachment(1)], [{"colors": [COLOR]}],
            (EXTERNAL, 0, WRITES, FRAGMENTS, 0), (0, EXTERNAL, OUTPUT, "ALL_COMMANDS/MEMORY_WRITE", 0),
        ),
        barrier("VERTEX_INPUT", "ALL_COMMANDS"),
        render_pass([attachment(0, load="CLEAR")], [{"colors": [MOVED_COLOR]}]),
    ],
    "one-hazard-a-region-as-it-sees-it/of-two-aspects": [render_pass(
        [attachment(2, stencil=("DONT_CARE", "DONT_CARE"))], [{"depth": MOVED_DEPTH}, {"depth": COLOR}],
        (0, 1, "VERTEX_INPUT/INDEX_READ", OUTPUT, 0),
    )],
    "several-differences-at-once/resolved-and-not-stored": [
        render_pass(
            [attachment(3), attachment(0, store="NONE")],
            [{"colors": [COLOR], "resolves": [(1, "COLOR_ATTACHMENT_OPTIMAL")]}, {"colors": [(1, "GENERAL")]}],
            (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", DEPTH_READ, 0), area=(2, 2, 4, 4),
        ),
        render_pass([attachment(3), attachment(0, store="NONE")], [RESOLVES]),
    ],
    "several-differences-at-once/blit-and-resolve": [
        ("blit", 0, 1, {**WORD, "offset": (4, 5, 0), "extent": (1, 3, 1)}, {**WORD, "extent": (3, 1, 1)}, False, True),
        ("rendering", {
            "colors": [{"image": 3, "layer": 0, "load": "CLEAR", "store": "STORE", "resolve": (0, 0)}],
            "depth": None, "stencil": ("CLEAR", "STORE"), "area": (0, 0, 4, 8), "suspended": False, "secondary": False,
        }, []),
    ],
    "several-differences-at-once/piece-of-what-a-resolve-cut": [
        render_pass(
            [attachment(0, load="DONT_CARE")], [{"colors": [COLOR]}, {"colors": [MOVED_COLOR]}],
            (0, 1, "FRAGMENT_SHADER", DEPTH_READ, 0),
        ),
        render_pass(
            [attachment(3), attachment(0, load="NONE")], [RESOLVES, {"colors": [(1, "GENERAL")]}],
            (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_READ", "VERTEX_INPUT/INDEX_READ", 0), area=(2, 2, 4, 4),
        ),
        submit(0, 0),
    ],
    "in-order-by-more/transition-before-one-dependency": [render_pass(
        [attachment(0, load="CLEAR", initial="UNDEFINED")], [{}, {"colors": [COLOR]}],
        (0, 1, FRAGMENTS, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", VkDependency.BY_REGION),
        (EXTERNAL, 1, WRITES, "FRAGMENT_SHADER", 0),
    )],
    "set-after-a-wait-that-did-nothing": [
        ("event", 0, barrier("TOP_OF_PIPE", WRITES, **MOVED)[1]), SET, SET, WAIT, submit(0, 0),
    ],
    "other-aspects-are-rewritten/then-not-stored": [
        barrier(ALL, "FRAGMENT_SHADER/SHADER_READ", image=2, old="UNDEFINED"),
        ("rendering", {
            "colors": [], "depth": ("CLEAR", "DONT_CARE"), "stencil": ("NONE", "NONE"), "area": (0, 0, 4, 8),
            "suspended": False, "secondary": False,
        }, []),
        ("depth_to_buffer", 1, 4, WORD | {"offset": (1, 0, 0)}, True),
    ],
    "in-order-by-more/second-dependency-after-a-final-transition": [
        render_pass(
            [attachment(3, load="CLEAR", initial="UNDEFINED")], [{"colors": [MOVED_COLOR]}],
            (0, EXTERNAL, "VERTEX_INPUT/INDEX_READ", DEPTH_READ, 0),
            (0, EXTERNAL, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "ALL_COMMANDS/MEMORY_WRITE", 0),
        ),
        render_pass([attachment(3, load="DONT_CARE")], [{"colors": [COLOR]}], area=(0, 0, 4, 8)),
    ],
    "no-chain-through-a-pass/beside-what-the-pass-accesses": [
        ("copy_image", 1, 0, {**WORD, "mip": 1, "offset": (3, 1, 0)}, {**WORD, "offset": (7, 7, 0)}, True),
        render_pass(
            [attachment(1, load="CLEAR")], [{"colors": [COLOR]}],
            (EXTERNAL, 0, EXECUTION, "FRAGMENT_SHADER", 0),
        ),
        barrier("FRAGMENT_SHADER", "NONE", sync2=True, image=1, mips=(1, 1), layers=(0, 2), old="UNDEFINED"),
    ],
    "wait-for-an-event-set-elsewhere/said-at-submit": [
        ("event", 0, barrier("COMPUTE_SHADER", "ALL_COMMANDS", sync2=True, **MOVED)[1]), SET, NEXT, WAIT, CLEAR,
        submit(0, 1),
    ],
    "several-differences-at-once/waited-without-set-and-whole-views": [
        ("event", 0, barrier("TOP_OF_PIPE", "COMPUTE_SHADER/UNIFORM_READ", sync2=True, **{**MOVED, "image": 0})[1]),
        ("resolve", 0, WORD, {**WORD, "offset": (1, 7, 0)}, True), WAIT,
        ("dispatch", "image_load_2d", 1, 0, 0, 0, "push"),
    ],
    "several-differences-at-once/two-of-three": [
        render_pass(
            [attachment(2, load="NONE", stencil=("LOAD", "NONE"))], [{"depth": COLOR}], area=(0, 0, 4, 8),
            draws=[(0, ("clear_inside", 6, False))],
        ),
        NEXT, ("buffer_to_stencil", 1, {**WORD, "offset": (5, 0, 0)}, True), submit(1), submit(0, 1),
    ],
    "ordered-after-a-read/by-a-dependency-of-a-pass": [
        barrier("VERTEX_INPUT", "COMPUTE_SHADER/SHADER_READ", image=0, old="UNDEFINED"),
        ("rendering", {
            "colors": [], "depth": ("NONE", "STORE"), "stencil": ("NONE", "NONE"), "area": (0, 0, 8, 8),
            "suspended": False, "secondary": False,
        }, [("draw", "sample", {"blend": False}, 0, "indexed")]),
        render_pass(
            [attachment(0)], [{"colors": [COLOR]}],
            (EXTERNAL, 0, "FRAGMENT_SHADER", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ", 0),
        ),
    ],
    "in-order-by-more/barrier-to-all-before-a-dependency-from-none": [
        render_pass([attachment(0, load="CLEAR")], [{"colors": [COLOR]}], area=(0, 0, 8, 8)),
        barrier(DEPTHS, "ALL_COMMANDS/MEMORY_READ", image=0, old="UNDEFINED"),
        render_pass(
            [attachment(0, load="CLEAR"), attachment(1, initial="UNDEFINED", load="CLEAR")],
            [{"colors": [COLOR, (1, "GENERAL")]}],
        ),
    ],
    "in-order-beyond-subpasses/load-before-a-barrier": [render_pass(
        [attachment(1)], [{"colors": [COLOR]}, {"colors": [MOVED_COLOR]}],
        (0, 1, "FRAGMENT_SHADER", "VERTEX_INPUT/INDEX_READ", 0),
        (0, 0, f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ", VkDependency.BY_REGION),
        draws=[(0, ("pass_barrier",))],
    )],
    "in-order-beyond-subpasses/shown-behind-the-instance": [
        barrier("COPY", FRAGMENTS, sync2=True, image=1, mips=(0, 2), layers=(0, 2), old="UNDEFINED"),
        render_pass(
            [attachment(0)], [{}, {}],
            (0, 1, "FRAGMENT_SHADER", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", 0), area=(0, 0, 4, 8),
            draws=[(1, ("draw", "sample", {"blend": False}, 0, "draw"))],
        ),
        render_pass([attachment(1)], [{"inputs": [COLOR]}]),
    ],
    "indirect-commands-always-run/where-they-are-recorded": [
        ("stride_words", 1, 15, 20, 2, "host"), ("indirect", 8, 1), submit(0),
    ],
    "one-hazard-a-region-at-submit/another-one-in-each-region": [
        ("copy", 3, 2, [(0, 128, 64), (64, 0, 64)], True), ("fill", 2, 0, 4), ("update", 2, 128, 8), submit(0, 0),
    ],
    "one-hazard-a-region-as-it-sees-it/in-a-gap-of-results": [
        ("fill", 1, 56, 32), ("copy_results", 0, 2, 1, 48, 16, 4), submit(1), submit(0), submit(0, 1),
    ],
    "barriers-of-one-command-around-events": [
        ("event", 0, barrier(STORED, ALL)[1]), SET,
        ("barriers", [
            {"src": "ALL_COMMANDS", "dst": EXECUTION, "sync2": True, "buffer": 0, "offset": 16, "size": 116},
            {"src": WRITES, "dst": "ALL_COMMANDS/TRANSFER_WRITE", "sync2": True, **MOVED},
        ]),
        submit(0, 0),
    ],
    "read-behind-one-in-order": [
        ("rendering", {
            "colors": [{"image": 0, "layer": 1, "load": "LOAD", "store": "NONE", "resolve": None}],
            "depth": ("NONE", "NONE"), "stencil": ("NONE", "NONE"), "area": (0, 0, 8, 8), "suspended": False,
            "secondary": False,
        }, []),
        ("blit", 0, 1, {**WORD, "layer": 1, "offset": (1, 2, 0)}, {**WORD, "mip": 1}, True, False),
        ("rendering", {
            "colors": [{"image": 0, "layer": 1, "load": "CLEAR", "store": "NONE", "resolve": None}],
            "depth": ("NONE", "NONE"), "stencil": ("NONE", "NONE"), "area": (0, 0, 8, 8), "suspended": False,
            "secondary": False,
        }, []),
    ],
    "stored-after-an-own-resolve/that-may-read": [render_pass(
        [attachment(3, load="CLEAR"), attachment(0)],
        [RESOLVES | {"colors": [MOVED_COLOR]}, {"colors": [COLOR], "resolves": [(1, "COLOR_ATTACHMENT_OPTIMAL")]}],
        (0, 1, f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE", f"{OUTPUT}/COLOR_ATTACHMENT_READ", 0),
    )],
    "one-hazard-a-region-as-it-sees-it/of-a-pair-that-we-found-above": [
        ("store_words", "limited_words", 2, 32, 1, 0), ("copy", 2, 1, [(32, 20, 40)], False),
        ("store_words", "tile_words", 2, 16, 1, 0),
    ],
    "transitions-at-two-waits": [event("COMPUTE_SHADER/SHADER_WRITE", **MOVED), SET, WAIT, WAIT],
    "transition-for-unordered-sets": [
        event(**MOVED), ("reset_event", 0, "COMPUTE_SHADER"), SET, CLEAR, WAIT,
    ],
    "in-order-by-more/wait-for-an-unknown-set": [
        barrier("COMPUTE_SHADER", "ALL_COMMANDS", **MOVED), event(), WAIT, DOWNLOAD,
    ],
    "wait-for-an-event-set-elsewhere": [event(**MOVED), ("resolve", 1, WORD, WORD, 1), WAIT],
}}
# fmt: on
"""By layer and entry; after a slash stands which of its several forms it is."""


Evidence = tuple[str, str, str, dict[str, Any]]


def evidence() -> Iterator[Evidence]:
    """(entry, layer, job, its arguments) each."""
    for layer, lines in SCENARIOS.items():
        for line in lines.split("\n")[1:-1]:
            entry, _, row = line.partition(" ")
            scenario, _, variant = row.rstrip("]").partition("[")
            yield entry, layer, "need_of_row", {"scenario": scenario, "variant": variant}
    for layer, streams in STREAMS.items():
        yield from (
            (entry.partition("/")[0], layer, "need_of_steps", {"steps": steps}) for entry, steps in streams.items()
        )


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[tuple[str, str], Worker]]:
    """One for each driver and layer: the layers have one soname, so that a process has room for one."""
    with ExitStack() as stack:
        yield {
            (device, layer): stack.enter_context(Worker(find_driver(device), packages=("tests",)))
            for device in ("lavapipe", "swiftshader")
            for layer in SCENARIOS
        }


def test_every_entry_has_evidence() -> None:
    assert sorted(entry.id for entry in load()) == sorted({each[0] for each in evidence()} | set(RECORDED))


def test_an_entry_was_seen_with_each_layer_that_it_has_evidence_of_and_with_none_beyond_its_limits() -> None:
    asked = {".".join(map(str, each)) for each in asked_versions()}
    assert asked == SCENARIOS.keys()
    for entry in load():
        shown = {layer for id, layer, _, _ in evidence() if id == entry.id}
        assert entry.seen and shown <= set(entry.seen), entry.id
        assert all(entry.holds_for(parse_version(each)) for each in entry.seen), entry.id


@pytest.mark.parametrize(
    ("versions", "held"),
    [("all", "ABC"), ("<1.4", "A"), (">=1.4.309", "BC"), (">=1.3.254,<1.4.348", "B"), ("<1.3.239", "")],
)
def test_limits_of_versions(versions: str, held: str) -> None:
    entry = replace(load()[0], versions=versions)
    layers = {"A": (1, 3, 239), "B": (1, 4, 309), "C": (1, 4, 364)}
    assert "".join(name for name, version in layers.items() if entry.holds_for(version)) == held


@pytest.mark.parametrize(("entry", "layer", "job", "arguments"), list(evidence()))
def test_the_entry_is_needed(
    workers: dict[tuple[str, str], Worker], entry: str, layer: str, job: str, arguments: dict[str, Any]
) -> None:
    if find_layer(layer) is None:
        pytest.skip(f"evidence about the layer {layer}, which is not installed")
    device = "swiftshader" if entry in SWIFTSHADER else "lavapipe"
    arguments |= {"entry": entry, "layer": layer}
    answer = workers[device, layer].call(f"tests.support.layer_jobs:{job}", arguments)
    assert isinstance(answer, dict), answer
    assert answer["left"] == []
    assert answer["without"], f"{entry} explains nothing"

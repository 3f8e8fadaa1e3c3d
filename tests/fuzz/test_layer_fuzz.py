"""Random streams: syncval and the Khronos layers agree command by command, apart from the cited differences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.fuzz import layer_fuzz
from vkharness.fuzz.random_rendering import READ_ONLY
from vkharness.fuzz.random_steps import Step, make, shrink
from vkharness.layer.manifest import find_layer, find_layers

STREAMS = {"lavapipe": 50, "swiftshader": 30}
CLEARED: Step = ("clear_inside", 0, False)
RENDERED = {
    "colors": [{"image": 0, "layer": 0, "load": "LOAD", "store": "STORE", "resolve": None}],
    "depth": None, "stencil": ("LOAD", "STORE"), "area": (0, 0, 8, 8), "suspended": False, "secondary": False,
}  # fmt: skip


def submit(*buffers: int) -> Step:
    return ("submit", [{"buffers": list(buffers), "waits": [], "signals": []}], None)


def listed(steps: Any) -> Any:
    """Steps as JSON has them."""
    return json.loads(json.dumps(steps))


LAYERS = [layer.version_text for layer in find_layers()]


@pytest.mark.skipif(find_layer() is None, reason="the Khronos validation layer is not installed (ci/setup installs it)")
@pytest.mark.parametrize("layer", LAYERS or ["today"])
@pytest.mark.parametrize("device", ["lavapipe", "swiftshader"])
@pytest.mark.slow
def test_syncval_and_the_layer_agree_but_for_cited_differences(device: str, layer: str) -> None:
    count = STREAMS[device]
    tally = layer_fuzz.run(range(count), device, layer, layer_fuzz.known_families(layer), [""])
    print(f"{device}, layer {layer}: {tally}")
    assert not tally.disagreements, str(tally)
    assert tally.agreed > count, "the streams hardly contain hazards: the comparison would prove nothing"


@pytest.mark.skipif(find_layer() is None, reason="the Khronos validation layer is not installed (ci/setup installs it)")
def test_steps_of_the_host_and_waits_of_another_form_are_played_and_agree() -> None:
    families = ["host", "forms"]
    kinds = {step[0] for seed in range(20) for step in make(seed, families)}
    assert kinds >= {"host_access", "late_host", "wait_otherwise", "set_event"}
    tally = layer_fuzz.run(range(20), "lavapipe", "today", families, [""])
    assert not tally.disagreements, str(tally)
    assert tally.expected["late-sets-of-the-host"] and tally.expected["no-rules-of-usage"]


def test_both_judges_agree_on_dispatches_that_load_what_they_access() -> None:
    seeds = [seed for seed in range(60) if any(step[0] == "loaded_words" for step in make(seed, ["loads"]))]
    ways = {step[-1] for seed in seeds for step in make(seed, ["loads"]) if step[0] == "loaded_words"}
    assert ways == {"host", "late", "update", "fill", "copy", "kept"}
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        answers = {seed: _judged(worker, seed) for seed in seeds}
    assert not {seed: each for seed, each in answers.items() if each["disagreements"] or each["unmodelled"]}
    assert sum(each["dispatches"] for each in answers.values()) > len(seeds)


def test_both_judges_agree_on_texels_and_loops() -> None:
    kinds = {"store_texels", "fetch_level", "stride_words"}
    seeds = [seed for seed in range(70) if any(step[0] in kinds for step in make(seed, ["texels"]))]
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        answers = [
            worker.call("tests.support.loading_jobs:judge_stream", {"seed": seed, "family": "texels"}) for seed in seeds
        ]
    assert {kind for seed in seeds for kind, *_ in make(seed, ["texels"])} >= kinds
    assert not [each for each in answers if isinstance(each, Died) or each["disagreements"] or each["unmodelled"]]
    assert sum(each["dispatches"] for each in answers if not isinstance(each, Died)) > len(seeds)


def _judged(worker: Worker, seed: int) -> dict[str, Any]:
    answer = worker.call("tests.support.loading_jobs:judge_stream", {"seed": seed})
    assert not isinstance(answer, Died), seed
    return answer


def test_each_family_has_an_account_of_what_is_excused() -> None:
    tally = layer_fuzz.LayerTally()
    answer = {"calls": 9, "agreed": 3, "expected": {"queries": 1}, "disagreements": []}
    tally.add(0, answer, ["events", "queries"])
    tally.add(1, {**answer, "expected": {}}, ["events"])
    tally.add(2, answer)
    lines = str(tally).splitlines()
    assert "  family events: 7 hazards, 1 excused (14.3 %), 1 by queries" in lines
    assert "  family queries: 4 hazards, 1 excused (25.0 %), 1 by queries" in lines
    assert "  family plain: 4 hazards, 1 excused (25.0 %), 1 by queries" in lines


AT_THE_END: Step = ("event", 0, [{"src": "BOTTOM_OF_PIPE", "dst": "ALL_COMMANDS", "sync2": True, "image": 2}])
TWO_BATCHES: Step = ("submit", [{"buffers": [at], "waits": [], "signals": []} for at in (1, 0)], None)
LEFT = [
    # Submitted again, the layer says the pair again: only one execution is left.
    (
        [("fill", 0, 0, 64), ("copy", 0, 1, [(0, 0, 64)], True), submit(0), submit(0, 0)],
        [("fill", 0, 0, 64), ("copy", 0, 1, [(0, 0, 64)], True), submit(0), submit()],
    ),
    # The layer takes all bytes from the first result to the last one.
    ([("copy_results", 0, 2, 0, 0, 16, 4), ("fill", 0, 0, 64)], [("fill", 0, 0, 64)]),
    # Draws without a fragment shader may write undefined values: the one inside goes, its pass stays.
    (
        [("rendering", RENDERED, [("draw", "no_fragment", {"blend": False}, 0, "draw"), CLEARED])],
        [("rendering", RENDERED, [CLEARED])],
    ),
    # For the layer BOTTOM_OF_PIPE orders no operations on events: in the second of two batches that begin alike.
    (
        [AT_THE_END, ("set_event", 0), ("next",), ("set_event", 0), TWO_BATCHES],
        [AT_THE_END, ("next",), ("set_event", 0), TWO_BATCHES],
    ),
]
"""Steps, and what is left of them."""


@pytest.mark.skipif(find_layer() is None, reason="the Khronos validation layer is not installed (ci/setup installs it)")
@pytest.mark.parametrize(("steps", "left"), LEFT, ids=["repeated", "results", "inside", "batches"])
def test_what_a_known_difference_may_cover_is_left_out(steps: list[Step], left: list[Step]) -> None:
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        answer = worker.call("tests.support.layer_jobs:left_of_steps", {"steps": steps, "layer": "today"})
    assert answer == {"left": listed(left)}


@pytest.mark.skipif(find_layer() is None, reason="the Khronos validation layer is not installed (ci/setup installs it)")
def test_streams_without_excuses_agree_with_nothing_explained() -> None:
    families = ["passes", "texels", "events"]
    tally = layer_fuzz.run(range(8), "lavapipe", "today", families, [layer_fuzz.UNEXCUSED])
    assert not tally.disagreements and not tally.expected, str(tally)
    assert tally.agreed > 6 and set(tally.families) >= {f"{name}, {layer_fuzz.UNEXCUSED}" for name in families}


def test_an_excuse_of_a_stream_that_cannot_need_one_is_a_difference() -> None:
    tally = layer_fuzz.LayerTally()
    answer = {"calls": 9, "agreed": 3, "expected": {"queries": 2}, "disagreements": []}
    tally.add(4, answer, ["events"])
    assert not tally.disagreements
    tally.add(4, answer, ["events"], layer_fuzz.UNEXCUSED)
    assert tally.disagreements == {4: ["no excuse: 2 excused by queries"]}
    assert "  family events, no excuse: 5 hazards, 2 excused (40.0 %), 2 by queries" in str(tally).splitlines()


def test_read_only_layouts_are_among_the_steps() -> None:
    passes = [step[1] for seed in range(60) for step in make(seed, ["read_only"]) if step[0] == "pass"]
    layouts = {each["depth"][1] for spec in passes for each in spec["subpasses"] if each["depth"]}
    assert set(READ_ONLY) <= layouts


def test_a_seed_is_a_reproduction() -> None:
    assert make(7) == make(7)
    assert make(7) != make(8)


def test_shrinking_leaves_what_is_needed() -> None:
    steps: list[Step] = [("fill", at) for at in range(20)]
    needed = {("fill", 3), ("fill", 4), ("fill", 17)}
    assert shrink(steps, lambda rest: needed <= set(rest)) == sorted(needed)
    assert shrink(steps, lambda rest: True) == []


UNTOUCHED = {"image": 1, "mips": (0, 1), "layers": (0, 2), "old": "UNDEFINED", "sync2": True}
DEADLY: list[Step] = [
    ("event", 0, [
        {"src": "ALL_COMMANDS", "dst": "ALL_TRANSFER", "sync2": True, "image": 1, "mips": (0, 2), "layers": (0, 1)},
    ]),
    ("barriers", [{"src": "ALL_COMMANDS", "dst": "ALL_TRANSFER", **UNTOUCHED}]),
    ("set_event", 0), ("wait_events", [0]),
]  # fmt: skip
"""Of a wait for an event with a barrier for an image of which a part was moved before, today's layer dies."""


@pytest.mark.skipif(find_layer() is None, reason="the Khronos validation layer is not installed (ci/setup installs it)")
def test_the_death_of_the_layer_is_a_result_of_its_own() -> None:
    tally = layer_fuzz.LayerTally()
    with Worker(find_driver("lavapipe")) as worker:
        for seed, steps in enumerate([DEADLY, [("fill", 0, 0, 64)]]):
            tally.add(seed, layer_fuzz.ask(worker, steps, "today"))
    assert tally.deaths == {0: ["layer: died: killed by SIGSEGV"]} and not tally.disagreements
    assert "2 streams" in str(tally) and "the layer dies of 1" in str(tally)
    assert tally.calls > 0, "the hunt did not go on"

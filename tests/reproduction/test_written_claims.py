"""Scenarios that are written from reduced traces: what they say, and that they show what the trace showed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce as folded
from operator import or_
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_sparse_memory import BLOCK, Sparse
from tests.replay.test_witness_presentation import GREEN, PRESENTED, RED, TOP, TRANSFER, Presenter
from tests.support.streams import GENERAL, UNDEFINED, Stream, struct
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import UserError
from vkharness.fuzz.random_steps import make
from vkharness.reduction.reduce import reduce
from vkharness.reproduction.scenario_file import ScenarioFile, indirect_features, write_claim
from vkharness.reproduction.script import NAMED_FLAGS, named
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkPipelineStage2
from vkharness.suite.claims import Claim
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load

SECONDARIES = Path(__file__).resolve().parents[2] / "scenarios" / "secondary" / "scenario_inside.py"


def written(
    blocks: list[Block], folder: Path, name: str = "race", *, in_full: bool = False
) -> tuple[Path, ScenarioFile]:
    """The scenario of a stream's first finding that counts, and the file that holds it. It is reduced, unless
    `in_full`."""
    finding = next(each for each in Analysis().follow(blocks).findings if each.counts)
    if not in_full:
        small = reduce(blocks, finding)
        blocks, finding = small.blocks, small.finding
    path = folder / f"scenario_{name}.py"
    made = write_claim(blocks, finding, path, "whole.jsonl")
    path.write_text(made.text, encoding="utf-8")
    for file, code in made.shaders.items():
        (folder / file).write_bytes(code)
    return path, made


def claim_of(path: Path) -> Claim:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    claim = getattr(module, path.stem)
    assert isinstance(claim, Claim)
    return claim


COUNT, MULTI = "drawIndirectCount", "multiDrawIndirect"


@pytest.mark.parametrize(
    ("name", "args", "features"),
    [
        ("DrawIndirect", {"drawCount": 1}, []),
        ("DrawIndexedIndirect", {"drawCount": 2}, [MULTI]),
        ("DrawIndirectCountKHR", {"maxDrawCount": 2}, [COUNT]),
        ("DrawMeshTasksIndirectEXT", {"drawCount": 2}, [MULTI]),
        ("DrawMeshTasksIndirectCountNV", {"maxDrawCount": 1}, [COUNT]),
        ("DrawMeshTasksIndirect2EXT", {"pInfo": {"drawCount": 2}}, [MULTI]),
        ("DrawIndirectByteCountEXT", {"instanceCount": 2}, []),
        ("DrawMeshTasksEXT", {"groupCountX": 2}, []),
    ],
)
def test_features_of_indirect_draws(name: str, args: dict[str, Any], features: list[str]) -> None:
    assert indirect_features([Call(1, f"vkCmd{name}", args)]) == features


def rows(worker: Worker, path: Path, device: str = "lavapipe") -> Iterator[dict[str, Any]]:
    """Yields the row of each variant of a scenario on a device."""
    for variant in claim_of(path).variants:
        arguments = {"module": str(path), "scenario": path.stem, "variant": variant.name, "device": device}
        answer = worker.call(
            "vkharness.suite.judge_scenario:run", {**arguments, "artifacts": None, "layers": [], "native": 0}
        )
        assert isinstance(answer, dict), answer
        yield answer


def copies_after_fill() -> list[Block]:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    return stream.blocks


def dispatches_after_fill() -> list[Block]:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    dispatch = stream.compute("copy_words", [a, b])
    stream.begin()
    stream.fill(a, 7)
    stream.submit(wait=False)
    stream.begin()
    dispatch.run()
    stream.submit()
    return stream.blocks


def clears_twice() -> list[Block]:
    stream = Stream()
    image, target = stream.image((8, 8, 1)), stream.buffer(256)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.clear(image, (1, 0, 0, 1), layout=GENERAL)
    stream.clear(image, (0, 1, 0, 1), layout=GENERAL)
    stream.barrier()
    stream.fill(target, 1)
    stream.submit()
    return stream.blocks


def transition_does_not_wait() -> list[Block]:
    """The second transition is a barrier that is nearly right."""
    stream = Stream()
    image = stream.image((8, 8, 1))
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.clear(image, (1, 0, 0, 1), layout=GENERAL)
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    barrier = struct("VkImageMemoryBarrier", oldLayout=UNDEFINED, newLayout=GENERAL, image=image, subresourceRange=part,
                     dstAccessMask=0x1000, srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF)  # fmt: skip
    stream.cmd("PipelineBarrier", srcStageMask=1, dstStageMask=0x1000, pImageMemoryBarriers=[barrier])
    stream.submit()
    return stream.blocks


def wait_too_early() -> list[Block]:
    """The wait for an event makes a transition, and the event is set before the clear: a barrier takes its place."""
    stream = Stream()
    image = stream.image((8, 8, 1))
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    barrier = struct("VkImageMemoryBarrier", oldLayout=GENERAL, newLayout=6, image=image, subresourceRange=part,
                     srcAccessMask=0x1000, dstAccessMask=0x800,
                     srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF)  # fmt: skip
    stream.cmd("SetEvent", event=event, stageMask=0x1000)
    stream.clear(image, (1, 0, 0, 1), layout=GENERAL)
    stream.cmd("WaitEvents", eventCount=1, pEvents=[event], srcStageMask=0x1000, dstStageMask=0x1000,
               pImageMemoryBarriers=[barrier])  # fmt: skip
    stream.submit()
    return stream.blocks


def test_it_reads_as_if_somebody_wrote_it(tmp_path: Path) -> None:
    _, made = written(copies_after_fill(), tmp_path)
    assert (
        made.text
        == '''\
"""A hazard that was found in whole.jsonl, reduced to what it needs by `vkharness reduce`."""

from vkharness.suite import Rig, read_after_write, scenario


@scenario(
    without={"fill buffer before copy buffer": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
)
def scenario_race(rig: Rig) -> None:
    """vkCmdCopyBuffer needs a dependency on vkCmdFillBuffer."""
    buffer_4 = rig.buffer(16, data=bytes([159]) * 16)
    buffer_6 = rig.buffer(16)
    with rig.commands() as commands_8:
        commands_8.fill(buffer_4, 0x7)
        commands_8.barrier(
            "fill buffer before copy buffer",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            buffer=buffer_4,
            size=16,
        )
        commands_8.copy(buffer_4, buffer_6, (0, 0, 16))
    rig.submit(commands_8)
'''
    )


@pytest.mark.parametrize(
    ("make_stream", "variants"),
    [
        (copies_after_fill, ["whole", "without_fill_buffer_before_copy_buffer"]),
        (dispatches_after_fill, ["whole", "without_fill_buffer_before_dispatch"]),
        (clears_twice, ["whole", "without_clear_color_image_before_clear_color_image"]),
        (transition_does_not_wait, ["whole", "clear_color_image_before_pipeline_barrier_as_recorded"]),
        (wait_too_early, ["whole", "clear_color_image_before_wait_events_as_recorded"]),
    ],
)
def test_the_whole_is_clean_and_the_twin_shows_the_finding(
    make_stream: Any, variants: list[str], tmp_path: Path
) -> None:
    path, _ = written(make_stream(), tmp_path)
    with Worker(find_driver("lavapipe")) as worker:
        found = list(rows(worker, path))
    assert [row["variant"] for row in found] == variants
    for row in found:
        assert (row["syncval"], row["model"], row["problem"]) == (row["expected"], "agrees", "")
    assert found[0]["expected"] == [] and found[1]["expected"]


def pipeline_before_its_buffer() -> list[Block]:
    """The pipeline is made before one of the buffers of its descriptor set."""
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    dispatch = stream.compute("copy_words", [a, b])
    stream.begin()
    stream.fill(a, 7)
    dispatch.run()
    stream.submit()
    names = [block.name if isinstance(block, Call) else "" for block in stream.blocks]
    first, update = names.index("vkCreateBuffer") + 3, names.index("vkUpdateDescriptorSets")
    order = [*range(first), *range(first + 3, update), *range(first, first + 3), *range(update, len(names))]
    return [replace(stream.blocks[at], index=number) for number, at in enumerate(order, 1)]


def submitted_twice() -> list[Block]:
    """Reduction parts the finding from others by a barrier, for which there is no number between its neighbours."""
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    commands = stream.begin()
    stream.copy(a, b, 16)
    stream.fill(b, 3)
    stream.end()
    stream.submit(commands, wait=False)
    stream.submit(commands, wait=False)
    return stream.blocks


def waits_for_an_event_that_the_host_sets_late() -> list[Block]:
    """Advice beside the finding: the event is set while a submitted wait is pending."""
    stream = Stream()
    memory = stream.memory(64)
    a, b = stream.buffer(64, memory), stream.buffer(64)
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.cmd("WaitEvents", pEvents=[event], srcStageMask=VkPipelineStage2.HOST, dstStageMask=0x800)
    stream.copy(a, b, 16)
    stream.submit(wait=False)
    stream.host_write(memory, 0, bytes(16))
    stream.call("vkSetEvent", device=stream.device, event=event)
    return stream.blocks


def dispatches_that_reach_a_part_of_what_is_bound() -> list[Block]:
    stream = Stream()
    a, b, c = (stream.buffer(4096) for _ in range(3))
    one, other = stream.compute("copy_words", [a, b]), stream.compute("copy_words", [b, c])
    stream.begin()
    one.run(16)
    other.run(16)
    stream.submit()
    return stream.blocks


def test_a_barrier_between_shaders_is_about_all_that_is_bound(tmp_path: Path) -> None:
    """Layers take the whole range of a descriptor for accessed, and would report what a narrower barrier leaves."""
    path, made = written(dispatches_that_reach_a_part_of_what_is_bound(), tmp_path)
    [barrier] = re.findall(r"commands_\d+\.barrier\((.*?)\)", made.text, re.DOTALL)
    assert re.search(r"buffer=buffer_\d+,?\s*$", barrier)
    assert re.search(r"rig\.descriptors\(pipeline_\d+, b0=buffer_\d+, b1=buffer_\d+\)", made.text)
    with Worker(find_driver("lavapipe")) as worker:
        whole, race = rows(worker, path)
    assert (whole["syncval"], whole["problem"], race["syncval"]) == ([], "", race["expected"])


def dispatches_as_unknown_words_say() -> list[Block]:
    """Nobody writes the parameters of the indirect dispatch."""
    stream = Stream()
    a, b, parameters = (stream.buffer(64) for _ in range(3))
    dispatch = stream.compute("copy_words", [a, b])
    stream.begin()
    dispatch.run()
    stream.cmd("DispatchIndirect", buffer=parameters, offset=8)
    stream.submit()
    return stream.blocks


@pytest.mark.parametrize(
    "make_stream",
    [
        pipeline_before_its_buffer,
        submitted_twice,
        waits_for_an_event_that_the_host_sets_late,
        dispatches_as_unknown_words_say,
    ],
)
def test_each_variant_shows_what_it_declares(make_stream: Any, tmp_path: Path) -> None:
    path, _ = written(make_stream(), tmp_path)
    with Worker(find_driver("lavapipe")) as worker:
        found = list(rows(worker, path))
    for row in found:
        assert (row["syncval"], row["model"], row["problem"]) == (row["expected"], "agrees", "")
    assert found[-1]["expected"]


def two_frames(starts: int) -> list[Block]:
    """Two frames of one image. The first transition of the second one begins after the stage `starts`."""
    presenter = Presenter()
    # Whoever asks for the number of images alone, as a layer does that draws over them, takes none of them away.
    presenter.call("vkGetSwapchainImagesKHR", device=presenter.device, swapchain=presenter.swapchain)
    presenter.frame(RED)
    presenter.frame(GREEN, starts=starts)
    return presenter.blocks


def waits_too_late() -> list[Block]:
    """The second frame keeps what the first one left, and waits for its acquire in a stage that does not cover the
    transition. So the first frame stays, with its acquire and its present."""
    presenter = Presenter()
    presenter.frame(RED)
    acquired, done = presenter.semaphore(), presenter.semaphore()
    presenter.acquire(0, acquired)
    presenter.begin()
    presenter.move(presenter.images[0], (PRESENTED, GENERAL), (TRANSFER, 0), (TRANSFER, 0x1000))
    presenter.send(acquired, done)
    submit = presenter.blocks[-1]
    assert isinstance(submit, Call)
    submit.args["pSubmits"][0]["pWaitDstStageMask"] = [VkPipelineStage2.FRAGMENT_SHADER]
    presenter.present(0, done)
    return presenter.blocks


@pytest.mark.parametrize(
    "make_stream", [lambda: two_frames(TOP), waits_too_late], ids=["transition too early", "wait too late"]
)
def test_a_stream_that_presents_becomes_a_claim_on_a_headless_surface(make_stream: Any, tmp_path: Path) -> None:
    path, made = written(make_stream(), tmp_path)
    assert "rig.shown_swapchain(images=1," in made.text and "wanted=0)" in made.text
    with Worker(find_driver("swiftshader")) as worker:
        whole, race = rows(worker, path, "swiftshader")
    assert (whole["syncval"], whole["expected"], whole["problem"]) == ([], [], "")
    assert race["variant"] == "acquire_next_image_before_pipeline_barrier_as_recorded"
    assert race["syncval"] == race["expected"] == ["WRITE_AFTER_READ vkCmdPipelineBarrier after vkAcquireNextImageKHR"]


def test_images_that_are_held_at_once_and_acquires_that_nobody_waits_for_leave_no_driver_dead(tmp_path: Path) -> None:
    """Two images are acquired, and presented with one semaphore; the reduced stream draws to the second one alone."""
    presenter = Presenter(2)
    acquired, done = [presenter.semaphore(), presenter.semaphore()], presenter.semaphore()
    for index in (0, 1):
        presenter.acquire(index, acquired[index])
    for index in (0, 1):
        presenter.begin()
        presenter.move(presenter.images[index], (UNDEFINED, PRESENTED), (TRANSFER, 0), (TRANSFER, 0))
        presenter.send(acquired[index], done)
        presenter.present(index, done)
    path, made = written(presenter.blocks, tmp_path)
    assert "images=2" in made.text and "at_once=2" in made.text
    assert "RigBatch([], [SemaphoreUse(" in made.text.rpartition("rig.present(")[2]
    with Worker(find_driver("swiftshader")) as worker:
        (whole,) = rows(worker, path, "swiftshader")
    assert whole["syncval"] == whole["expected"] == ["semaphore-in-use vkQueueSubmit after vkQueuePresentKHR"]
    assert whole["problem"] == ""


def replaced() -> list[Block]:
    """A frame of one swapchain, then two of another one that replaces it. The last transition does not wait for its
    acquire."""
    presenter = Presenter()
    presenter.frame(RED)
    presenter.replace()
    presenter.frame(RED)
    presenter.frame(GREEN, starts=TOP)
    return presenter.blocks


@pytest.mark.parametrize("whole", [False, True])
def test_a_swapchain_that_replaces_another_one_becomes_a_claim(whole: bool, tmp_path: Path) -> None:
    """Of the whole stream the first swapchain is needed, too."""
    path, made = written(replaced(), tmp_path, in_full=whole)
    assert ("rig.swapchain(images=1, extent=(8, 8), old=swapchain_" in made.text) == whole
    with Worker(find_driver("swiftshader")) as worker:
        clean, race = rows(worker, path, "swiftshader")
    assert (clean["syncval"], clean["expected"], clean["problem"]) == ([], [], "")
    assert race["syncval"] == race["expected"] == ["WRITE_AFTER_READ vkCmdPipelineBarrier after vkAcquireNextImageKHR"]
    assert race["problem"] == ""


def test_secondaries_that_continue_rendering_become_claims(tmp_path: Path) -> None:
    named = "secondary_draws_vertices_that_the_primary_filled"
    trace = tmp_path / "whole.jsonl"
    arguments = {"module": str(SECONDARIES), "scenario": f"scenario_{named}", "trace": str(trace)}
    with Worker(find_driver("lavapipe"), packages=("tests", "vkharness")) as worker:
        worker.call("tests.support.claim_jobs:recorded_without", arguments)
        path, made = written(load(trace), tmp_path)
        assert "rig.secondary(inherits=" in made.text
        found = list(rows(worker, path))
    assert len(found) == 2
    for row in found:
        assert (row["syncval"], row["model"], row["problem"]) == (row["expected"], "agrees", "")
    assert not found[0]["expected"] and found[1]["expected"]


@pytest.mark.slow
def test_random_streams_become_claims_that_show_the_same(tmp_path: Path, given_seed: int) -> None:
    first, shown = given_seed % 1_000_000, 0
    print(f"seeds {first} to {first + 5}")
    with Worker(find_driver("lavapipe")) as worker:
        for seed in range(first, first + 6):
            small = tmp_path / f"{seed}.jsonl"
            arguments = {"steps": make(seed), "seed": seed, "device": "lavapipe", "keep": str(small)}
            worker.call("vkharness.fuzz.reduce_fuzz:attempt", arguments)
            if not small.exists():
                continue
            try:
                path, _ = written(load(small), tmp_path, str(seed))
            except UserError as error:
                print(f"seed {seed}: {error}")
                continue
            for row in rows(worker, path):
                assert (row["syncval"], row["problem"]) == (row["expected"], ""), (seed, row)
            shown += 1
    assert shown, "no stream became a scenario: nothing is shown"


def test_the_package_has_every_name_that_is_written() -> None:
    import vulkan

    kinds = {**tables.ENUMS, **{kind: names for kind, names in tables.BITMASKS.items() if kind in NAMED_FLAGS}}
    assert kinds.keys() > NAMED_FLAGS
    texts = {named(kind, value) for kind, names in kinds.items() for value in names.values()}
    written = {name for text in texts for name in re.findall(r"vk\.(\w+)", text)}
    assert [name for name in sorted(written) if not hasattr(vulkan, name)] == []
    for kind, names in kinds.items():
        for value in names.values():
            several = re.findall(r"vk\.(\w+)", named(kind, value))
            assert not several or folded(or_, (getattr(vulkan, name) for name in several)) == value, (kind, several)
    assert len(written) > 1000
    assert named("VkImageLayout", 1) == "vk.VK_IMAGE_LAYOUT_GENERAL"
    assert named("VkImageUsageFlags", 1 << 22) == "vk.VK_IMAGE_USAGE_HOST_TRANSFER_BIT_EXT", "the package has no other"
    assert named("VkResolveModeFlagBits", 0x20) == "0x20", "it has none"


@pytest.mark.parametrize(
    "name",
    [
        'a"""; raise SystemExit(7); """.jsonl',
        "a\\",
        'a\n"""\nraise SystemExit\n"""',
        "\udc80.jsonl",
        "\U0001f600",
        "\0",
    ],
)
def test_the_name_of_a_trace_is_no_code(name: str) -> None:
    """It stands in a docstring, which pytest executes as it collects."""
    import ast

    from vkharness.generated_text import python_string
    from vkharness.reproduction.script import docstring

    said = f"found in {name}, reduced"
    (only,) = ast.parse(docstring(said)).body
    assert isinstance(only, ast.Expr) and ast.literal_eval(only.value) == said
    assert ast.literal_eval(python_string(name)) == name
    docstring(said).encode()


def test_sparse_bindings_are_written_with_their_memory(tmp_path: Path) -> None:
    """Only a GPU has sparse memory here: `python -m bench.reproduce_scenarios --device NVIDIA scenarios/sparse`."""
    stream = Sparse()
    buffer, image, memory = stream.sparse_buffer(), stream.sparse_image(), stream.memory(2 * BLOCK)
    bound = stream.semaphore()
    stream.bind(buffer, (0, memory, 0))
    stream.bind_texels(image, (1, memory, 1), signals=(bound,))
    stream.begin()
    stream.fill(buffer, 1, size=256)
    stream.submit_after()
    _, made = written(stream.blocks, tmp_path, in_full=True)
    text = made.text
    assert '@scenario(expects=[race("sparse-binding-race", "vkCmdFillBuffer", "vkQueueBindSparse")])' in text
    assert f"buffer_{buffer} = rig.buffer(131072, flags=0x3)" in text and f"image_{image} = rig.image(" in text
    assert text.count(f"memory_{memory} = rig.sparse_memory(buffer_{buffer}, 2)") == 1
    assert f"pBinds=[vk.VkSparseMemoryBind(size=65536, memory=memory_{memory})]" in text
    assert f"memory=memory_{memory}, memoryOffset=65536)" in text and f"pSignalSemaphores=[semaphore_{bound}]" in text
    assert text.count("vk.vkQueueBindSparse(rig.queues[0].handle, 1, [") == 2


def test_a_call_that_makes_nothing_is_refused(tmp_path: Path) -> None:
    stream = Stream()
    buffer = stream.buffer(16)
    stream.begin()
    stream.fill(buffer, 1)
    stream.fill(buffer, 2)
    stream.submit()
    (finding,) = Analysis().follow(stream.blocks).findings
    call = next(each for each in stream.blocks if isinstance(each, Call) and each.name == "vkCreateBuffer")
    call.args["pBuffer"] = None
    with pytest.raises(UserError, match=f"call {call.index}, vkCreateBuffer, makes nothing"):
        write_claim(stream.blocks, finding, tmp_path / "scenario_race.py", "whole.jsonl")

"""Mends as code: every member that is written exists, and Python can read what is meant for it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.streams import Stream, struct, two_buffers
from vkharness.mending.mend import Mending, mend
from vkharness.report.call_code import C, Python
from vkharness.report.mends import code_of, document, summary
from vkharness.spec.shapes import members, signature
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, BufferPart, Masks
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit

BARRIER = BarrierCommand(7, (BarrierEntry(Masks(1 << 35, 0x1000, 1 << 32, 0x800), BufferPart(3, 0, 16)),))


class FakeVulkan:
    """Stands for the `vulkan` package: knows functions, structs and constants by their names alone."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("VK_"):
            return 1
        if name.startswith("vk"):
            found = signature(name)
            assert found is not None, name
            return lambda *args: self.made.append((name, args))
        known = members(name)
        assert known is not None, name

        def struct(**values: Any) -> SimpleNamespace:
            assert values.keys() <= {each.name for each in known}, name
            return SimpleNamespace(**values)

        return struct


def filled_and_copied() -> Mending:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, 16)
    stream.submit()
    return mend(stream.blocks)


@pytest.mark.parametrize("name", ["vkCmdPipelineBarrier", SECOND])
def test_python_runs(name: str) -> None:
    fake = FakeVulkan()
    code = "\n".join(Python().call(name, BARRIER.call(name).args))
    exec(code, {"vk": fake, "commandBuffer7": 7, "buffer3": 3})
    [(called, args)] = fake.made
    assert called == name
    found = signature(name)
    assert found is not None and len(args) == len(found.params)


def test_c_names_each_scope() -> None:
    lines = C().call(SECOND, BARRIER.call(SECOND).args)
    assert lines[0] == "const VkBufferMemoryBarrier2 bufferMemoryBarrier = {"
    assert "    .srcStageMask = VK_PIPELINE_STAGE_2_CLEAR_BIT," in lines
    assert lines[-1] == "vkCmdPipelineBarrier2(commandBuffer7, &dependencyInfo);"


def test_the_same_change_is_told_once() -> None:
    stream = Stream()
    for _ in range(3):
        a, b = stream.buffer(16), stream.buffer(16)
        stream.begin()
        stream.fill(a, 1)
        stream.copy(a, b, 16)
        stream.submit()
    found = mend(stream.blocks)
    lines = list(summary(found.trace, found.applied, found.outcomes, ("C",)))
    assert sum(line.startswith("change ") for line in lines) == 1
    assert sum("the same: insert a barrier before" in line for line in lines) == 2


def test_the_document_is_json() -> None:
    found = filled_and_copied()
    made = document(found.trace, found.applied, found.outcomes)
    assert json.loads(json.dumps(made)) == made
    assert [group["changes"] for group in made["groups"]] == [[1]]
    assert made["groups"][0]["mended"] and made["changes"][0]["before"] is None


def test_a_subpass_dependency_with_another_struct_behind_it_has_its_own_masks() -> None:
    depends = struct("VkSubpassDependency2", srcStageMask=1, dstStageMask=1, pNext=struct("VkMemoryBarrier"))
    info = struct("VkRenderPassCreateInfo2", dependencyCount=1, pDependencies=[depends])
    bare = Call(1, "vkCreateRenderPass2", {"pCreateInfo": struct("VkRenderPassCreateInfo2", pDependencies=None)}, 0)
    first, second = code_of(Edit(0, bare, replace(bare, args={"pCreateInfo": info})), bare)
    assert (first[1][1]["srcStageMask"], second[1][1]["dstStageMask"]) == (1, 1)

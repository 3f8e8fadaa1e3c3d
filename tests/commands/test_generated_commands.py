"""Commands that the device generates: what they read, write and run, held against each other by both judges."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing
from tests.support.addressed import Scene, barrier, executed
from tests.support.drawing import FLOAT2
from tests.support.streams import struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access

EXECUTION_SET, PUSH, VERTEX_BUFFER, DRAW_INDEXED, DRAW, DRAW_COUNT, DISPATCH = 0, 1, 4, 5, 6, 8, 9
FILL, INDIRECT = VkPipelineStage2.ALL_TRANSFER, VkPipelineStage2.DRAW_INDIRECT
PREPROCESS = VkPipelineStage2.COMMAND_PREPROCESS_EXT
WRITE, READ = VkAccess2.TRANSFER_WRITE, VkAccess2.INDIRECT_COMMAND_READ
READS, WRITES = VkAccess2.COMMAND_PREPROCESS_READ_EXT, VkAccess2.COMMAND_PREPROCESS_WRITE_EXT
STRIDE = 32


class Generated(Scene):
    """Buffer 0 has sequences, 1 is what the preprocessing makes of them, 2 is used by the action, 3 has a number."""

    def layout(self, *tokens: tuple[int, int], push: int = 4) -> int:
        """A layout of (type, offset) tokens."""
        made = []
        for kind, offset in tokens:
            data: dict[str, Any] = {}
            if kind == PUSH:
                place = struct("VkPushConstantRange", stageFlags=32, size=push)
                data = {"pPushConstant": struct("VkIndirectCommandsPushConstantTokenEXT", updateRange=place)}
            made.append(struct("VkIndirectCommandsLayoutTokenEXT", type=kind, offset=offset, data=data))
        info = struct("VkIndirectCommandsLayoutCreateInfoEXT", indirectStride=STRIDE, pTokens=made)
        return self.make("vkCreateIndirectCommandsLayoutEXT", "pIndirectCommandsLayout", info)

    def info(self, layout: int, most: int = 2, counted: bool = False, preprocess: bool = True) -> dict[str, Any]:
        """A VkGeneratedCommandsInfoEXT."""
        address = [self.addresses[each] for each in self.buffers]
        return struct(
            "VkGeneratedCommandsInfoEXT", indirectCommandsLayout=layout, indirectAddress=address[0],
            indirectAddressSize=256, preprocessAddress=address[1] * preprocess, preprocessSize=128 * preprocess,
            maxSequenceCount=most, sequenceCountAddress=address[3] * counted,
        )  # fmt: skip

    def execute(self, info: dict[str, Any], is_preprocessed: bool = False) -> int:
        """vkCmdExecuteGeneratedCommandsEXT."""
        return self.cmd("ExecuteGeneratedCommandsEXT", isPreprocessed=int(is_preprocessed), pGeneratedCommandsInfo=info)

    def dependency(self, src: int, src_access: int, dst: int, dst_access: int) -> None:
        """A global memory barrier."""
        one = struct(
            "VkMemoryBarrier2", srcStageMask=src, srcAccessMask=src_access, dstStageMask=dst, dstAccessMask=dst_access
        )
        self.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))


def accesses(scene: Generated) -> list[tuple[int, str, tuple[tuple[int, int], ...]]]:
    """Returns the accesses of the last command of the submit, as (buffer, access, spans)."""
    return [
        (scene.buffers.index(each.resource), ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_"), each.spans)
        for each in executed(scene)[-1]
        if isinstance(each, Access) and each.resource in scene.buffers
    ]


def hazards(scene: Generated) -> list[str]:
    """Returns the hazards that both judges find."""
    assert agreement(scene.blocks).disagreements == ()
    return [str(each.hazard) for each in Analysis().follow(scene.blocks).findings]


def dispatching(*tokens: tuple[int, int]) -> tuple[Generated, int]:
    """A scene with a shader that writes buffer 2, and a layout."""
    scene = Generated()
    shader = scene.compute("fill_words_writeonly.comp", [scene.buffers[2]], words(1))
    layout = scene.layout(*(tokens or ((DISPATCH, 0),)))
    scene.begin()
    shader.run(0)
    return scene, layout


INDIRECT_READ = "DRAW_INDIRECT_INDIRECT_COMMAND_READ"
MADE = "COMMAND_PREPROCESS_EXT_COMMAND_PREPROCESS_WRITE_EXT"
SHADER_WRITE = "COMPUTE_SHADER_SHADER_STORAGE_WRITE"


class TestAccesses:
    def test_dispatches_by_sequences(self) -> None:
        scene, layout = dispatching((PUSH, 0), (DISPATCH, 16))
        scene.execute(scene.info(layout))
        scene.submit()
        assert accesses(scene) == [
            (1, MADE, ((0, 128),)),
            (1, INDIRECT_READ, ((0, 128),)),
            (0, INDIRECT_READ, ((0, 48),)),
            (0, INDIRECT_READ, ((16, 28), (48, 60))),
            (2, SHADER_WRITE, ((0, 256),)),
        ]
        assert Analysis().follow(scene.blocks).verdict == "clean"

    @pytest.mark.parametrize(("groups", "runs"), [((0, 0), False), ((0, 1), True)])
    def test_known_sequences_say_whether_anything_runs(self, groups: tuple[int, int], runs: bool) -> None:
        scene, layout = dispatching()
        for at, number in enumerate(groups):
            scene.fill(scene.buffers[0], number, at * STRIDE, 12)
        barrier(scene)
        scene.execute(scene.info(layout, preprocess=False))
        scene.submit()
        assert ((2, SHADER_WRITE, ((0, 256),)) in accesses(scene)) is runs

    @pytest.mark.parametrize(("number", "read"), [(0, ()), (1, ((0, 12),)), (9, ((0, 12), (32, 44)))])
    def test_the_number_of_sequences_may_lie_in_memory(self, number: int, read: tuple[tuple[int, int], ...]) -> None:
        scene, layout = dispatching()
        scene.fill(scene.buffers[3], number)
        scene.fill(scene.buffers[0], 1)
        barrier(scene)
        scene.execute(scene.info(layout, counted=True, preprocess=False))
        scene.submit()
        assert [spans for at, _, spans in accesses(scene) if at == 0] == [read] * bool(read)
        assert (3, INDIRECT_READ, ((0, 4),)) in accesses(scene)
        assert ((2, SHADER_WRITE, ((0, 256),)) in accesses(scene)) is bool(number)

    def test_preprocessing_reads_sequences_and_writes_its_buffer(self) -> None:
        scene, layout = dispatching()
        scene.cmd("PreprocessGeneratedCommandsEXT", pGeneratedCommandsInfo=scene.info(layout, counted=True))
        scene.submit()
        read = "COMMAND_PREPROCESS_EXT_COMMAND_PREPROCESS_READ_EXT"
        assert accesses(scene) == [(3, read, ((0, 4),)), (0, read, ((0, 64),)), (1, MADE, ((0, 128),))]

    def test_what_was_preprocessed_is_read_and_the_sequences_are_not(self) -> None:
        scene, layout = dispatching()
        scene.execute(scene.info(layout), is_preprocessed=True)
        scene.submit()
        read = (1, INDIRECT_READ, ((0, 128),))
        assert accesses(scene) == [read, (1, MADE, ((0, 128),)), read, (2, SHADER_WRITE, ((0, 256),))]

    def test_draws_read_the_vertices_of_their_parameters(self) -> None:
        scene = Generated()
        layout = scene.layout((DRAW, 0))
        made = drawing.pipeline(scene, input=drawing.vertex_input([drawing.binding()], [drawing.attribute()]))
        _, view = drawing.color_target(scene)
        scene.begin()
        scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dataSize=16, pData=words(3, 1, 2, 0))
        barrier(scene)
        drawing.render(scene, view)
        drawing.bind(scene, made)
        drawing.bind_vertices(scene, scene.buffers[2])
        scene.execute(scene.info(layout, most=1, preprocess=False))
        scene.cmd("EndRendering")
        scene.submit()
        found = [each for each in executed(scene)[-2] if isinstance(each, Access) and each.resource == scene.buffers[2]]
        assert [each.spans for each in found] == [((2 * FLOAT2, 5 * FLOAT2),)]
        assert hazards(scene) == [] and Analysis().follow(scene.blocks).verdict == "clean"


class TestOrder:
    @pytest.mark.parametrize("ordered", [False, True])
    def test_sequences_are_read_as_indirect_parameters(self, ordered: bool) -> None:
        scene, layout = dispatching()
        scene.fill(scene.buffers[0], 1, 0, 12)
        if ordered:
            scene.dependency(FILL, WRITE, INDIRECT, READ)
        scene.execute(scene.info(layout))
        scene.submit()
        assert hazards(scene) == ["READ_AFTER_WRITE"] * (not ordered)

    @pytest.mark.parametrize(("stages", "found"), [(None, 1), (INDIRECT, 0), (FILL, 1)])
    def test_preprocessing_must_be_waited_for(self, stages: int | None, found: int) -> None:
        scene, layout = dispatching()
        info = scene.info(layout)
        scene.cmd("PreprocessGeneratedCommandsEXT", pGeneratedCommandsInfo=info)
        if stages is not None:
            scene.dependency(PREPROCESS, WRITES, stages, READ if stages == INDIRECT else WRITE)
        scene.execute(info, is_preprocessed=True)
        scene.submit()
        assert hazards(scene) == ["READ_AFTER_WRITE"] * found

    @pytest.mark.parametrize("ordered", [False, True])
    def test_preprocessing_reads_in_a_stage_of_its_own(self, ordered: bool) -> None:
        scene, layout = dispatching()
        scene.fill(scene.buffers[0], 1, 0, 12)
        scene.dependency(FILL, WRITE, PREPROCESS if ordered else INDIRECT, READS if ordered else READ)
        scene.cmd("PreprocessGeneratedCommandsEXT", pGeneratedCommandsInfo=scene.info(layout))
        scene.submit()
        assert hazards(scene) == ["READ_AFTER_WRITE"] * (not ordered)

    def test_executions_of_one_preprocess_buffer_order_themselves(self) -> None:
        """Each inserts barriers around its writes. What the actions write is not ordered by that."""
        scene, layout = dispatching()
        scene.execute(scene.info(layout))
        scene.execute(scene.info(layout))
        scene.submit()
        assert hazards(scene) == ["WRITE_AFTER_WRITE"]
        (found,) = Analysis().follow(scene.blocks).findings
        assert found.resource == scene.buffers[2]

    def test_the_preprocess_buffer_is_written_behind_indirect_reads(self) -> None:
        """A fill of it before needs a dependency to DRAW_INDIRECT."""
        found = []
        for ordered in (False, True):
            scene, layout = dispatching()
            scene.fill(scene.buffers[1], 0)
            if ordered:
                scene.dependency(FILL, WRITE, INDIRECT, READ)
            scene.execute(scene.info(layout))
            scene.submit()
            found.append(hazards(scene))
        assert found == [["WRITE_AFTER_WRITE"], []]


class TestUnknown:
    @pytest.mark.parametrize("tokens", [((VERTEX_BUFFER, 0), (DRAW, 16)), ((DRAW_COUNT, 0),)])
    def test_what_only_the_device_knows_is_named(self, tokens: tuple[tuple[int, int], ...]) -> None:
        scene, layout = dispatching(*tokens)
        scene.execute(scene.info(layout))
        scene.submit()
        assert Analysis().follow(scene.blocks).verdict == "unknown"

    def test_a_layout_that_was_not_seen(self) -> None:
        scene, _ = dispatching()
        scene.execute(scene.info(12345))
        scene.submit()
        assert Analysis().follow(scene.blocks).verdict == "unknown"

    @pytest.mark.parametrize(("members", "verdict"), [(1, "clean"), (2, "unknown")])
    def test_an_execution_set_with_one_member_is_that_pipeline(self, members: int, verdict: str) -> None:
        scene = Generated()
        shader = scene.compute("fill_words_writeonly.comp", [scene.buffers[2]], words(1))
        other = scene.compute("fill_words_writeonly.comp", [scene.buffers[2]], words(1))
        layout = scene.layout((EXECUTION_SET, 0), (DISPATCH, 16))
        first = struct("VkIndirectExecutionSetPipelineInfoEXT", initialPipeline=shader.pipeline, maxPipelineCount=2)
        held = struct("VkIndirectExecutionSetCreateInfoEXT", info={"pPipelineInfo": first})
        made = scene.make("vkCreateIndirectExecutionSetEXT", "pIndirectExecutionSet", held)
        if members > 1:
            write = struct("VkWriteIndirectExecutionSetPipelineEXT", index=1, pipeline=other.pipeline)
            scene.call(
                "vkUpdateIndirectExecutionSetPipelineEXT", indirectExecutionSet=made, pExecutionSetWrites=[write]
            )
        scene.begin()
        shader.run(0)
        scene.execute(scene.info(layout) | {"indirectExecutionSet": made})
        scene.submit()
        assert Analysis().follow(scene.blocks).verdict == verdict

    def test_pushed_constants_of_sequences_are_unknown_to_shaders(self) -> None:
        """A shader that takes an address from them may reach anything."""
        for token, verdict in ((DISPATCH, "clean"), (PUSH, "unknown")):
            scene = Generated()
            shader = scene.compute(
                "address_copy.comp", [], words(*(w for each in scene.buffers[:2] for w in (scene.addresses[each], 0)))
            )
            layout = scene.layout(*(((PUSH, 0),) if token == PUSH else ()), (DISPATCH, 16), push=8)
            scene.begin()
            shader.run(0)
            scene.execute(scene.info(layout, preprocess=False))
            scene.submit()
            assert Analysis().follow(scene.blocks).verdict == verdict, token

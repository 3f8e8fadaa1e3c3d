"""Shader objects: what commands access with shaders that are bound stage by stage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support import drawing
from tests.support.drawing import FRAGMENT, VERTEX
from tests.support.streams import Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.interpret import Interpreter
from vkharness.reduction.shader_state import ShaderStates
from vkharness.reduction.structure import Structure
from vkharness.reduction.visible_state import unseen
from vkharness.shader.library import load
from vkharness.spec.enums import VkShaderStage
from vkharness.trace.calls import Call

COMPUTE = VkShaderStage.COMPUTE
SPIRV, BINARY = 1, 0


def shader(stream: Stream, name: str | bytes, stage: int, code_type: int = SPIRV) -> int:
    """vkCreateShadersEXT of one shader of the library, or of SPIR-V."""
    code, made = load(name) if isinstance(name, str) else name, stream.id()
    info = struct(
        "VkShaderCreateInfoEXT", stage=stage, codeType=code_type, codeSize=len(code), pCode=code, pName="main"
    )
    stream.call("vkCreateShadersEXT", device=stream.device, createInfoCount=1, pCreateInfos=[info], pShaders=[made])
    return made


def bind_shaders(stream: Stream, stages: Sequence[int], shaders: Sequence[int] | None) -> int:
    """vkCmdBindShadersEXT."""
    return stream.cmd(
        "BindShadersEXT", stageCount=len(stages), pStages=list(stages), pShaders=shaders and list(shaders)
    )


def drawn_to(stream: Stream) -> tuple[int, int]:
    """Begins commands inside rendering to one colour image: (image, vertex buffer), with vertex input set."""
    image, view = drawing.color_target(stream)
    vertices = stream.buffer(24)
    stream.begin()
    drawing.render(stream, view)
    drawing.bind_vertices(stream, vertices)
    binding = struct("VkVertexInputBindingDescription2EXT", binding=0, stride=8, inputRate=0, divisor=1)
    attribute = struct("VkVertexInputAttributeDescription2EXT", location=0, binding=0, format=drawing.R32G32, offset=0)
    stream.cmd("SetVertexInputEXT", pVertexBindingDescriptions=[binding], pVertexAttributeDescriptions=[attribute])
    return image, vertices


class TestDraws:
    def test_a_draw_accesses_what_one_with_a_pipeline_of_these_shaders_does(self) -> None:
        stream = Stream()
        image, vertices = drawn_to(stream)
        stages = shader(stream, "vertex_position.vert", VERTEX), shader(stream, "constant_color.frag", FRAGMENT)
        bind_shaders(stream, (VERTEX, FRAGMENT), stages)
        assert drawing.seen(stream, drawing.draw(stream)) == [
            (vertices, "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ", ((0, 24),)),
            (image, "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", drawing.WHOLE_COLOR),
        ]

    def test_dynamic_state_decides_what_is_accessed(self) -> None:
        stream = Stream()
        image, vertices = drawn_to(stream)
        stages = shader(stream, "vertex_position.vert", VERTEX), shader(stream, "constant_color.frag", FRAGMENT)
        bind_shaders(stream, (VERTEX, FRAGMENT), stages)
        stream.cmd("SetColorBlendEnableEXT", attachmentCount=1, pColorBlendEnables=[1])
        equation = struct("VkColorBlendEquationEXT", srcColorBlendFactor=1, dstColorBlendFactor=1)
        stream.cmd("SetColorBlendEquationEXT", attachmentCount=1, pColorBlendEquations=[equation])
        blended = drawing.draw(stream)
        stream.cmd("SetRasterizerDiscardEnable", rasterizerDiscardEnable=1)
        discarded = drawing.draw(stream)
        assert [(each, name) for each, name, _ in drawing.seen(stream, blended)] == [
            (vertices, "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"),
            (image, "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"),
            (image, "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"),
        ]
        assert [each for each, _, _ in drawing.seen(stream, discarded)] == [vertices]

    def test_stages_are_bound_one_by_one(self) -> None:
        """Without its fragment shader a vertex shader alone runs, which reads and writes buffers here."""
        stream = Stream()
        source, target = stream.buffer(64), stream.buffer(64)
        made, layout = drawing.descriptors(stream, (6, source), (7, target))
        vertex = shader(stream, "vertex_position.vert", VERTEX)
        fragment = shader(stream, "constant_color.frag", FRAGMENT)
        other = shader(stream, drawing.reads_uniform_writes_storage(VERTEX), VERTEX)
        image, _ = drawn_to(stream)
        stream.cmd("BindDescriptorSets", layout=layout, pDescriptorSets=[made])
        bind_shaders(stream, (VERTEX,), (vertex,))
        bind_shaders(stream, (FRAGMENT,), (fragment,))
        plain = drawing.draw(stream)
        bind_shaders(stream, (VERTEX,), (other,))
        storing = drawing.draw(stream)
        assert {each for each, _, _ in drawing.seen(stream, plain)} & {source, target, image} == {image}
        assert {each for each, _, _ in drawing.seen(stream, storing)} >= {source, target, image}


def dispatched() -> tuple[Stream, int, int]:
    """Begins commands with a set of one storage buffer: (stream, buffer, a compute shader that writes it)."""
    stream = Stream()
    target = stream.buffer(256)
    made, layout = drawing.descriptors(stream, (7, target))
    fill = shader(stream, "fill_words_writeonly.comp", COMPUTE)
    stream.begin()
    stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=layout, pDescriptorSets=[made])
    stream.cmd("PushConstants", layout=layout, stageFlags=COMPUTE, offset=0, size=8, pValues=words(0x11, 64))
    return stream, target, fill


def dispatch(stream: Stream) -> int:
    """vkCmdDispatch of one workgroup."""
    return stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)


class TestDispatches:
    def test_a_dispatch_writes_what_its_shader_writes(self) -> None:
        stream, target, fill = dispatched()
        bind_shaders(stream, (COMPUTE,), (fill,))
        found = drawing.seen(stream, dispatch(stream))
        assert [(each, name) for each, name, _ in found] == [(target, "COMPUTE_SHADER_SHADER_STORAGE_WRITE")]
        stream.copy(target, stream.buffer(256), 256)
        stream.submit()
        assert [found.hazard for found in Analysis().follow(stream.blocks).findings] == ["READ_AFTER_WRITE"]
        assert agreement(stream.blocks).disagreements == ()

    def test_a_destroyed_shader_leaves_recorded_commands_as_they_are(self) -> None:
        stream, target, fill = dispatched()
        bind_shaders(stream, (COMPUTE,), (fill,))
        at = dispatch(stream)
        stream.end()
        stream.call("vkDestroyShaderEXT", device=stream.device, shader=fill)
        stream.submit(stream.commands)
        assert [each for each, _, _ in drawing.seen(stream, at)] == [target]
        assert Analysis().follow(stream.blocks).verdict == "clean"


class TestPipelinesAndShaderObjects:
    """Specification: "Interaction With Pipelines"."""

    def test_shaders_end_the_binding_of_a_pipeline(self) -> None:
        """The fragment shader of the pipeline runs no more, so that nothing but the vertex shader object is bound."""
        stream = Stream()
        vertex = shader(stream, "vertex_position.vert", VERTEX)
        made = drawing.pipeline(stream, "store_words.frag", input=drawing.vertex_input())
        image, _ = drawn_to(stream)
        drawing.bind(stream, made)
        bind_shaders(stream, (VERTEX,), (vertex,))
        at = drawing.draw(stream)
        interpreter = Interpreter()
        for block in stream.blocks:
            interpreter.step(block)
        bound = interpreter.objects.by_id[stream.commands].pipelines[0]
        assert [each.stage for each in bound.stages] == [VERTEX]
        assert image in {each for each, _, _ in drawing.seen(stream, at)}

    def test_a_pipeline_ends_the_binding_of_shaders(self) -> None:
        stream = Stream()
        stages = shader(stream, "vertex_position.vert", VERTEX), shader(stream, "constant_color.frag", FRAGMENT)
        made = drawing.pipeline(stream, None, colors=None, discard=True)
        drawn_to(stream)
        bind_shaders(stream, (VERTEX, FRAGMENT), stages)
        drawing.bind(stream, made)
        assert drawing.seen(stream, drawing.draw(stream)) == []
        bind_shaders(stream, (VERTEX,), stages[:1])  # the fragment shader object is not bound again by that
        interpreter = Interpreter()
        for block in stream.blocks:
            interpreter.step(block)
        bound = interpreter.objects.by_id[stream.commands].pipelines[0]
        assert [each.stage for each in bound.stages] == [VERTEX]

    def test_the_other_bind_point_keeps_its_pipeline(self) -> None:
        stream, target, fill = dispatched()
        bind_shaders(stream, (COMPUTE,), (fill,))
        bind_shaders(stream, (VERTEX,), (shader(stream, "vertex_position.vert", VERTEX),))
        assert [each for each, _, _ in drawing.seen(stream, dispatch(stream))] == [target]


class TestUnknown:
    @pytest.mark.parametrize("shaders", [None, (0,)])
    def test_nothing_is_bound_after_null(self, shaders: Sequence[int] | None) -> None:
        stream, _, fill = dispatched()
        bind_shaders(stream, (COMPUTE,), (fill,))
        bind_shaders(stream, (COMPUTE,), shaders)
        assert drawing.unmodelled(stream, dispatch(stream)) == ["a pipeline whose shaders were not seen"]

    def test_binary_code_is_named(self) -> None:
        stream, _, _ = dispatched()
        bind_shaders(stream, (COMPUTE,), (shader(stream, "fill_words_writeonly.comp", COMPUTE, BINARY),))
        assert drawing.unmodelled(stream, dispatch(stream)) == ["shader objects of binary code"]

    def test_one_stage_of_binary_code_is_enough(self) -> None:
        stream = Stream()
        stages = (
            shader(stream, "vertex_position.vert", VERTEX),
            shader(stream, "constant_color.frag", FRAGMENT, BINARY),
        )
        drawn_to(stream)
        bind_shaders(stream, (VERTEX, FRAGMENT), stages)
        assert drawing.unmodelled(stream, drawing.draw(stream)) == ["shader objects of binary code"]

    def test_shaders_from_before_the_recording_are_named(self) -> None:
        stream, _, _ = dispatched()
        bind_shaders(stream, (COMPUTE,), (999,))
        assert drawing.unmodelled(stream, dispatch(stream)) == ["shader objects that were not seen"]


def test_combinations_are_forgotten_with_their_shaders() -> None:
    stream, _, fill = dispatched()
    bind_shaders(stream, (COMPUTE,), (fill,))
    dispatch(stream)
    stream.call("vkDestroyShaderEXT", device=stream.device, shader=fill)
    interpreter = Interpreter()
    for block in stream.blocks:
        interpreter.step(block)
    assert interpreter.objects.shaders.linked == {} and interpreter.objects.reflected == {}


def test_a_binding_of_one_stage_does_not_replace_that_of_another() -> None:
    """`reduce` leaves out what is bound anew before anything runs."""
    stream = Stream()
    first, second = shader(stream, "vertex_position.vert", VERTEX), shader(stream, "vertex_position.vert", VERTEX)
    fragment = shader(stream, "constant_color.frag", FRAGMENT)
    drawn_to(stream)
    begin = len(stream.blocks)
    replaced = bind_shaders(stream, (VERTEX,), (first,))
    bind_shaders(stream, (FRAGMENT,), (fragment,))
    bind_shaders(stream, (VERTEX,), (second,))
    drawing.draw(stream)
    commands = [each for each in stream.blocks[begin:] if isinstance(each, Call)]
    assert unseen(commands, ShaderStates(Structure(stream.blocks))) == {replaced}

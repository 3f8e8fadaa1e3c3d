"""Facts of shaders from which the rig makes a pipeline layout."""

from __future__ import annotations

from vkharness.rig.pipeline_layouts import descriptor_type, reflected_sets
from vkharness.shader.library import load, names
from vkharness.shader.reflect import ReflectedEntryPoint, reflect
from vkharness.spec.enums import VkShaderStage

COMPUTE, VERTEX, FRAGMENT = VkShaderStage.COMPUTE, VkShaderStage.VERTEX, VkShaderStage.FRAGMENT
STORAGE = descriptor_type("STORAGE_BUFFER")


def reflected(name: str, constants: dict[int, bytes] | None = None) -> ReflectedEntryPoint:
    return reflect(load(name), "main", constants)


def test_each_set_has_the_bindings_that_the_shader_uses() -> None:
    shader = reflected("copy_two_sets")
    assert reflected_sets({COMPUTE: shader}) == {0: {0: [STORAGE, 1, COMPUTE]}, 1: {0: [STORAGE, 1, COMPUTE]}}
    assert shader.push_bytes == 0


def test_an_array_of_descriptors_has_its_length() -> None:
    assert reflected_sets({COMPUTE: reflected("array_dynamic_index")}) == {0: {0: [STORAGE, 4, COMPUTE]}}


def test_a_binding_that_is_declared_and_not_used_is_left_out() -> None:
    assert len(reflected_sets({COMPUTE: reflected("unused_binding")})[0]) == 1


def test_stages_of_one_binding_are_joined() -> None:
    shader = reflected("pulled_position")
    assert reflected_sets({VERTEX: shader, FRAGMENT: shader}) == {0: {0: [STORAGE, 1, VERTEX | FRAGMENT]}}


def test_a_combined_image_sampler_and_an_input_attachment_have_their_types() -> None:
    sampled = reflected_sets({FRAGMENT: reflected("sample_color")})[0][0]
    attached = reflected_sets({FRAGMENT: reflected("invert_input")})[0][0]
    assert sampled == [descriptor_type("COMBINED_IMAGE_SAMPLER"), 1, FRAGMENT]
    assert attached == [descriptor_type("INPUT_ATTACHMENT"), 1, FRAGMENT]


def test_push_constants_end_where_their_block_ends() -> None:
    """Two addresses and a word; a block of four words; a word; none."""
    several = ("address_copy", "push_constant_copy", "fill_words", "copy_words")
    assert [reflected(name).push_bytes for name in several] == [20, 16, 4, 0]


def test_every_shader_of_the_harness_has_a_layout() -> None:
    for name in names():
        shader = reflected(name)
        assert bool(shader.push_bytes) == shader.push_constants
        assert sum(map(len, reflected_sets({shader.stage: shader}).values())) == len(
            {(u.set, u.binding) for u in shader.uses}
        )

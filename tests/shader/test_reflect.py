"""Resources that each of the project's shaders statically uses, as claims; and the limits and errors of reflection."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from vkharness.findings import UserError
from vkharness.shader import opcodes
from vkharness.shader import reflect as room
from vkharness.shader.library import load, names
from vkharness.shader.reflect import ResourceUse, reflect

EARLY, REPLACING = opcodes.ExecutionMode.EarlyFragmentTests, opcodes.ExecutionMode.DepthReplacing
SHADERS = {
    "add_words.comp": ["0.0 storage_buffer read", "0.1 storage_buffer read", "0.2 storage_buffer write"],
    "address_copy.comp": [],
    "array_any_index.comp": ["0.0[any] storage_buffer write", "0.1 storage_buffer read 0+4"],
    "array_constant_copy.comp": ["0.0[0] storage_buffer read", "0.0[3] storage_buffer write"],
    "array_constant_index.comp": ["0.0[2] storage_buffer write"],
    "array_dynamic_index.comp": ["0.0[any] storage_buffer write"],
    "array_remainder_index.comp": ["0.0[any] storage_buffer write", "0.1 storage_buffer read 0+8"],
    "array_specialized_index.comp": ["0.0[1] storage_buffer write"],
    "atomic_add.comp": ["0.0 storage_buffer atomic"],
    "atomic_exchange.comp": ["0.0 storage_buffer atomic", "0.1 storage_buffer write"],
    "atomic_load.comp": ["0.0 storage_buffer read", "0.1 storage_buffer write"],
    "atomic_store.comp": ["0.0 storage_buffer write"],
    "branch_not_taken.comp": ["0.0 storage_buffer write"],
    "branch_on_a_word.comp": ["0.0 storage_buffer write", "0.1 storage_buffer read 0+4"],
    "constant_color.frag": [],
    "copy_two_sets.comp": ["0.0 storage_buffer read", "1.0 storage_buffer write"],
    "copy_words.comp": ["0.0 storage_buffer read", "0.1 storage_buffer write"],
    "copy_words_plain.comp": ["0.0 storage_buffer read", "0.1 storage_buffer write"],
    "count_and_store.comp": ["0.0 storage_buffer read 0+4 write"],
    "cull_draws.comp": ["0.0 storage_buffer atomic 0+4", "0.1 storage_buffer write"],
    "early_color.frag": [],
    "early_tests.frag": ["0.0 storage_buffer atomic 0+4"],
    "feedback_words.vert": [],
    "fetch_level_2d.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_color.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_color_array.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_depth.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_depth_array.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_stencil.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_stencil_array.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_uint.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fetch_ms_uint_array.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "fill_words.comp": ["0.0 storage_buffer write"],
    "fill_words_writeonly.comp": ["0.0 storage_buffer write"],
    "fullscreen.vert": [],
    "gradient.frag": [],
    "half_color.frag": ["0.0 combined read"],
    "half_range.comp": ["0.0 storage_buffer write 0+64"],
    "half_range_copy.comp": ["0.0 storage_buffer read 0+64 write 64+64"],
    "half_range_high.comp": ["0.0 storage_buffer write 64+64"],
    "image_atomic_add.comp": ["0.0 storage_image atomic"],
    "image_copy_2d.comp": ["0.0 storage_image read", "0.1 storage_image write"],
    "image_invert_2d.comp": ["0.0 storage_image read write"],
    "image_load_2d.comp": ["0.0 storage_image read", "0.1 storage_buffer write"],
    "image_store_2d.comp": ["0.0 storage_image write"],
    "indirect_args.comp": ["0.0 storage_buffer write 0+12"],
    "input_color.frag": ["0.0 input_attachment(1) read"],
    "invert_input.frag": ["0.0 input_attachment(0) read"],
    "length_only.comp": ["0.0 storage_buffer", "0.1 storage_buffer write"],
    "limited_words.comp": ["0.0 storage_buffer write"],
    "lit.frag": [f"0.{at} input_attachment({at}) read" for at in range(3)],
    "loaded_texel_color.frag": ["0.0 storage_image read"],
    "plain.tesc": [],
    "plain.tese": [],
    "point_by_index.vert": [],
    "point_by_loaded_texel.vert": ["0.0 storage_image read"],
    "point_by_sampled_texel.vert": ["0.0 combined read"],
    "point_by_stored_word.geom": ["0.0 storage_buffer read"],
    "point_by_stored_word.tesc": ["0.0 storage_buffer read"],
    "point_by_stored_word.tese": ["0.0 storage_buffer read"],
    "point_by_stored_word.vert": ["0.0 storage_buffer read"],
    "point_by_uniform_word.vert": ["0.0 uniform_buffer read 0+256"],
    "point_by_word.vert": [],
    "pulled_position.vert": ["0.0 storage_buffer read"],
    "push_constant_copy.comp": ["0.0 storage_buffer write"],
    "reverse_words.comp": ["0.0 storage_buffer read", "0.1 storage_buffer write"],
    "sample_2d.comp": ["0.0 combined read", "0.1 storage_buffer write"],
    "sample_color.frag": ["0.0 combined read"],
    "sampled_separate.comp": ["0.0 sampled_image read", "0.1 sampler", "0.2 storage_buffer write"],
    "scale_words.comp": ["0.0 storage_buffer read write"],
    "shifted_position.vert": [],
    "shrink_2d.comp": ["0.0 storage_image read", "0.1 storage_image write"],
    "size_only.comp": ["0.0 storage_image", "0.1 combined", "0.2 storage_buffer write"],
    "store_columns.frag": ["0.0 storage_buffer write"],
    "store_layer_2d.comp": ["0.0 storage_image write"],
    "store_texels.frag": ["0.0 storage_image write"],
    "store_texels.vert": ["0.0 storage_image write"],
    "store_tile_2d.comp": ["0.0 storage_image write"],
    "store_words.frag": ["0.0 storage_buffer write"],
    "store_words.geom": ["0.0 storage_buffer write"],
    "store_words.tesc": ["0.0 storage_buffer write"],
    "store_words.tese": ["0.0 storage_buffer write"],
    "store_words.vert": ["0.0 storage_buffer write"],
    "stored_word_color.frag": ["0.0 storage_buffer read"],
    "stride_words.comp": ["0.0 storage_buffer write"],
    "sum_uniform.comp": ["0.0 uniform_buffer read 0+256", "0.1 storage_buffer write"],
    "surface.frag": [],
    "texel_fetch_buffer.comp": ["0.0 uniform_texel_buffer read", "0.1 storage_buffer write"],
    "texel_load_buffer.comp": ["0.0 storage_texel_buffer read", "0.1 storage_buffer write"],
    "texel_store_buffer.comp": ["0.0 storage_texel_buffer write"],
    "tile_words.comp": ["0.0 storage_buffer write"],
    "trace_ray.comp": ["0.0 acceleration_structure read", "0.1 storage_buffer write"],
    "uniform_address.comp": ["0.0 uniform_buffer read 0+8"],
    "uniform_color.frag": ["0.0 uniform_buffer read 0+16"],
    "uniform_range.comp": ["0.0 storage_buffer write", "0.1 uniform_buffer read 0+8"],
    "uniform_stride.comp": ["0.0 storage_buffer write", "0.1 uniform_buffer read 0+8"],
    "uniform_word.frag": ["0.0 storage_buffer write", "0.1 uniform_buffer read 0+4"],
    "uniform_word_color.frag": ["0.0 uniform_buffer read 0+256"],
    "unused_binding.comp": ["0.1 storage_buffer write"],
    "vertex_position.vert": [],
    "write_depth.frag": [],
}
"""set.binding[element] kind and accesses, with offset+size where the bytes are known."""


def claim(use: ResourceUse) -> str:
    """One Use in the words of the table above."""
    place = f"{use.set}.{use.binding}"
    if use.elements is None:
        place += "[any]"
    elif use.array_size != 1:
        place += f"[{','.join(map(str, use.elements))}]"
    kind = use.kind if use.input_attachment_index is None else f"{use.kind}({use.input_attachment_index})"
    words = [place, kind]
    if use.atomics and use.reads and use.writes and not use.plain_writes:
        return " ".join([*words, "atomic", *ranges(use.write_ranges)])
    if use.reads:
        words += ["read", *ranges(use.read_ranges)]
    if use.writes:
        words += ["write", *ranges(use.write_ranges)]
    return " ".join(words)


def ranges(found: tuple[tuple[int, int], ...] | None) -> list[str]:
    return [f"{offset}+{size}" for offset, size in found or ()]


def claims(code: bytes, specialization: dict[int, bytes] | None = None) -> list[str]:
    """All uses of the entry point main."""
    return [claim(use) for use in reflect(code, "main", specialization).uses]


def test_the_table_has_every_shader() -> None:
    assert list(SHADERS) == names()


@pytest.mark.parametrize("name", SHADERS)
def test_a_shader_uses_what_its_source_says(name: str) -> None:
    assert claims(load(name)) == SHADERS[name]


def test_a_specialized_index_chooses_the_descriptor() -> None:
    code = load("array_specialized_index")
    assert claims(code) == ["0.0[1] storage_buffer write"]
    assert claims(code, {0: b"\x03\0\0\0"}) == ["0.0[3] storage_buffer write"]
    assert claims(code, {7: b"\x03\0\0\0"}) == ["0.0[1] storage_buffer write"], "an id that no constant has is ignored"


def test_an_index_past_the_array_may_be_any_descriptor() -> None:
    assert claims(load("array_specialized_index"), {0: b"\x04\0\0\0"}) == ["0.0[any] storage_buffer write"]


def test_a_specialization_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(UserError, match="specialization constant 0 has 4 bytes in the shader, 2 are given"):
        reflect(load("array_specialized_index"), "main", {0: b"\x03\0"})


def test_arrays_and_runtime_arrays_say_their_length() -> None:
    assert [use.array_size for use in reflect(load("array_constant_index"), "main").uses] == [4]
    assert [use.array_size for use in reflect(load("fill_words"), "main").uses] == [1]


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("constant_color.frag", {0}),
        ("sample_color.frag", {0}),
        ("input_color.frag", {0}),
        ("early_tests.frag", {1, 3}),
        ("write_depth.frag", set()),
        ("fullscreen.vert", set()),
        ("fill_words.comp", set()),
    ],
)
def test_outputs_are_the_locations_that_are_written(name: str, outputs: set[int]) -> None:
    assert reflect(load(name), "main").outputs == outputs


def test_an_output_that_is_declared_need_not_be_written() -> None:
    entry = reflect(load("input_color.frag"), "main")
    assert entry.outputs == {0}
    assert entry.declared_outputs == {0, 2}
    assert reflect(load("fullscreen.vert"), "main").declared_outputs == frozenset()


def test_execution_modes_and_stages() -> None:
    early, depth, compute = (reflect(load(name), "main") for name in ("early_tests", "write_depth", "half_range"))
    assert (EARLY in early.modes, REPLACING in early.modes, early.stage) == (True, False, 0x10)
    assert (EARLY in depth.modes, REPLACING in depth.modes, depth.stage) == (False, True, 0x10)
    assert (compute.local_size, compute.stage) == ((1, 1, 1), 0x20)
    assert reflect(load("fullscreen"), "main").stage == 1
    assert reflect(load("fill_words"), "main").local_size == (64, 1, 1)
    assert early.local_size is None


def test_push_constants_count_only_when_used() -> None:
    assert reflect(load("fill_words"), "main").push_constants
    assert not reflect(load("copy_words"), "main").push_constants


def test_a_missing_entry_point_gives_one_line_with_what_there_is() -> None:
    with pytest.raises(UserError, match=r"^SPIR-V has no entry point 'start' for this stage; it has 'main'$"):
        reflect(load("fill_words"), "start")
    with pytest.raises(UserError, match="no entry point 'main' for this stage"):
        reflect(load("fill_words"), "main", stage=0x10)


def test_asking_again_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code = load("fill_words")
    first = reflect(code, "main")
    monkeypatch.setattr(room, "parse", None)
    assert reflect(bytes(bytearray(code)), "main") is first
    assert room._by_digest(code, "main", 0, ()) is first
    assert reflect(code, "main", {}) is first


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CACHED_ENTRIES", 2)
    monkeypatch.setattr(room, "_cache", OrderedDict())
    for name in names()[:5]:
        room._by_digest(load(name), "main", 0, ())
    assert len(room._cache) == 2


def test_either_byte_order_is_read() -> None:
    code = load("half_range_copy")
    swapped = b"".join(code[at : at + 4][::-1] for at in range(0, len(code), 4))
    assert reflect(swapped, "main") == reflect(code, "main")


def test_numbers_are_those_of_the_khronos_header() -> None:
    (header,) = Path(sys.prefix).glob("lib/python*/site-packages/cmeel.prefix/include/glslang/SPIRV/spirv.hpp")
    text = header.read_text()
    matches = {f"OpImageBlockMatch{how}{error}QCOM" for how in ("Window", "Gather") for error in ("SAD", "SSD")}
    newer = {"OpUntypedVariableKHR", *matches}
    prefixes = {
        opcodes.Op: "Op",
        opcodes.StorageClass: "StorageClass",
        opcodes.Decoration: "Decoration",
        opcodes.ExecutionMode: "ExecutionMode",
    }
    for enum, prefix in prefixes.items():
        known = dict(re.findall(rf"^    ({prefix}\w+) = (\d+),", text, re.MULTILINE))
        ours = {prefix + member.name: str(member.value) for member in enum}
        assert ours.items() - known.items() == {(name, ours[name]) for name in newer & ours.keys()}
    models = dict(re.findall(r"^    ExecutionModel(\w+) = (\d+),", text, re.MULTILINE))
    assert {int(number) for name, number in models.items() if name != "Kernel"} == set(opcodes.STAGES)

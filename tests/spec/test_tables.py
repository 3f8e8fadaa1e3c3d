"""The generated tables: made again they are the same; they agree with the specification and the binding's header."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from vkharness.spec import _generated as tables
from vkharness.spec import shapes
from vkharness.spec._newer_types import newer_types
from vkharness.spec.declared_types import DeclaredTypes

ROOT = Path(__file__).resolve().parents[2]

# SYNC_ names by stage, in order, with the number of accesses of each stage: indices 1 to 165 are contiguous.
STAGE_COUNTS = [
    ("DRAW_INDIRECT", 2),
    ("VERTEX_SHADER", 9),
    ("TESSELLATION_CONTROL_SHADER", 9),
    ("TESSELLATION_EVALUATION_SHADER", 9),
    ("GEOMETRY_SHADER", 9),
    ("FRAGMENT_SHADER", 14),
    ("EARLY_FRAGMENT_TESTS", 2),
    ("LATE_FRAGMENT_TESTS", 2),
    ("COLOR_ATTACHMENT_OUTPUT", 3),
    ("COMPUTE_SHADER", 11),
    ("HOST", 2),
    ("COMMAND_PREPROCESS_EXT", 2),
    ("CONDITIONAL_RENDERING_EXT", 1),
    ("TASK_SHADER_EXT", 9),
    ("MESH_SHADER_EXT", 9),
    ("RAY_TRACING_SHADER", 9),
    ("FRAGMENT_SHADING_RATE_ATTACHMENT", 1),
    ("FRAGMENT_DENSITY_PROCESS_EXT", 1),
    ("TRANSFORM_FEEDBACK_EXT", 3),
    ("ACCELERATION_STRUCTURE_BUILD", 7),
    ("VIDEO_DECODE", 2),
    ("VIDEO_ENCODE", 2),
    ("ACCELERATION_STRUCTURE_COPY", 4),
    ("OPTICAL_FLOW_NV", 2),
    ("MICROMAP_BUILD_EXT", 5),
    ("COPY", 2),
    ("RESOLVE", 2),
    ("BLIT", 2),
    ("CLEAR", 1),
    ("INDEX_INPUT", 1),
    ("VERTEX_ATTRIBUTE_INPUT", 1),
    ("SUBPASS_SHADER_HUAWEI", 10),
    ("INVOCATION_MASK_HUAWEI", 1),
    ("CLUSTER_CULLING_SHADER_HUAWEI", 9),
    ("DATA_GRAPH_ARM", 2),
    ("CONVERT_COOPERATIVE_VECTOR_MATRIX_NV", 2),
    ("MEMORY_DECOMPRESSION_EXT", 2),
    ("COPY_INDIRECT", 1),
]
PSEUDO = [
    "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL",
    "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL",
    "SYNC_IMAGE_LAYOUT_TRANSITION",
    "SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER",
]
SHADER_SET = [
    "ACCELERATION_STRUCTURE_READ",
    "DESCRIPTOR_BUFFER_READ_EXT",
    "RESOURCE_HEAP_READ_EXT",
    "SAMPLER_HEAP_READ_EXT",
    "SHADER_BINDING_TABLE_READ",
    "SHADER_SAMPLED_READ",
    "SHADER_STORAGE_READ",
    "SHADER_STORAGE_WRITE",
    "UNIFORM_READ",
]


STAGE_BITS = {
    full.removeprefix("VK_PIPELINE_STAGE_2_").replace("_BIT", "").removesuffix("_KHR"): bit
    for full, bit in tables.STAGES.items()
}


def stage(name: str) -> int:
    """Bit of a stage by the short name that SYNC_ names use."""
    return STAGE_BITS[name]


def access(name: str) -> int:
    return tables.ACCESSES[f"VK_ACCESS_2_{name}"]


def accesses_of(stage_name: str) -> list[str]:
    prefix = f"SYNC_{stage_name}_"
    bit = stage(stage_name)
    return [name.removeprefix(prefix) for name, at, _, _ in tables.SYNC_ACCESSES if at == bit]


def test_generating_again_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "ci/gen_spec.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_notices_a_changed_table(tmp_path: Path) -> None:
    """A copy of the checkout's generator beside edited files must say so and leave the edits alone."""
    for part in ("ci/gen_spec.py", *(str(path.relative_to(ROOT)) for path in ROOT.glob("ci/spec_tables/*.py"))):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_bytes((ROOT / part).read_bytes())
    spec = ROOT / "harness" / "vkharness" / "spec"
    names = [
        "_generated.py",
        "_newer_types.py",
        "enums.py",
        *(f"data/{path.name}" for path in spec.glob("data/*.json")),
    ]
    targets = [tmp_path / "harness" / "vkharness" / "spec" / name for name in names]
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("edited = True\n")
    done = subprocess.run(
        [sys.executable, "ci/gen_spec.py", "--check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    said = [f"{name} is not what ci/gen_spec.py makes; run ci/gen_spec.py" for name in names]
    assert sorted(done.stderr.splitlines()) == sorted(said)
    assert [target.read_text() for target in targets] == ["edited = True\n"] * len(names)


def test_access_names_come_stage_by_stage_in_the_published_order() -> None:
    """165 registry pairs and 4 of our own, numbered as today's sync validation does; a newer registry may add some."""
    real = tables.SYNC_ACCESSES[:-4]
    label = {stage(name): name for name, _ in STAGE_COUNTS}
    counts = [(label[bit], len(list(rows))) for bit, rows in groupby(real, key=lambda row: row[1])]
    assert counts == STAGE_COUNTS
    assert all(name.startswith(f"SYNC_{label[bit]}_") for name, bit, _, _ in real)
    assert [row[0] for row in tables.SYNC_ACCESSES[-4:]] == PSEUDO
    assert len(tables.SYNC_ACCESSES) == 169
    assert len({row[0] for row in tables.SYNC_ACCESSES}) == 169


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (2, "SYNC_DRAW_INDIRECT_TRANSFORM_FEEDBACK_COUNTER_READ_EXT"),
        (39, "SYNC_FRAGMENT_SHADER_ACCELERATION_STRUCTURE_READ"),
        (59, "SYNC_COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"),
        (70, "SYNC_COMPUTE_SHADER_UNIFORM_READ"),
        (112, "SYNC_ACCELERATION_STRUCTURE_BUILD_SHADER_READ"),
        (131, "SYNC_COPY_TRANSFER_WRITE"),
        (136, "SYNC_CLEAR_TRANSFER_WRITE"),
        (165, "SYNC_COPY_INDIRECT_INDIRECT_COMMAND_READ"),
        (167, "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL"),
        (168, "SYNC_IMAGE_LAYOUT_TRANSITION"),
    ],
)
def test_access_has_its_published_index(index: int, name: str) -> None:
    assert tables.SYNC_ACCESSES[index - 1][0] == name


@pytest.mark.parametrize("name", ["VERTEX_SHADER", "GEOMETRY_SHADER", "RAY_TRACING_SHADER"])
def test_shader_stages_have_the_shader_accesses_in_order(name: str) -> None:
    assert accesses_of(name) == SHADER_SET


def test_legal_pairs_follow_the_table_of_supported_access_types() -> None:
    assert accesses_of("COPY") == ["TRANSFER_READ", "TRANSFER_WRITE"]
    assert accesses_of("CLEAR") == ["TRANSFER_WRITE"]
    assert accesses_of("INDEX_INPUT") == ["INDEX_READ"]
    assert accesses_of("HOST") == ["HOST_READ", "HOST_WRITE"]
    assert accesses_of("TOP_OF_PIPE") == []
    assert accesses_of("BOTTOM_OF_PIPE") == []
    assert tables.STAGE_ACCESSES[stage("LATE_FRAGMENT_TESTS")] == access("DEPTH_STENCIL_ATTACHMENT_READ_BIT") | access(
        "DEPTH_STENCIL_ATTACHMENT_WRITE_BIT"
    )
    assert not tables.STAGE_ACCESSES[stage("COMPUTE_SHADER")] & access("SHADER_READ_BIT")
    assert tables.STAGE_ACCESSES[stage("MICROMAP_BUILD_EXT")] & access("SHADER_READ_BIT")


def test_writes_are_the_accesses_named_so() -> None:
    for name, _, _, write in tables.SYNC_ACCESSES[:-4]:
        assert write == ("_WRITE" in name)
    assert [row[3] for row in tables.SYNC_ACCESSES[-4:]] == [False, True, True, True]


def test_meta_stages_expand_to_concrete_ones() -> None:
    concrete = set(tables.EARLIER)
    for meta, mask in tables.STAGE_EXPANSION.items():
        assert meta not in concrete
        assert mask == sum(bit for bit in concrete if bit & mask)
    everything = tables.STAGE_EXPANSION[stage("ALL_COMMANDS")]
    assert everything == sum(concrete) - stage("HOST")
    assert tables.STAGE_EXPANSION[stage("VERTEX_INPUT")] == stage("INDEX_INPUT") | stage("VERTEX_ATTRIBUTE_INPUT")
    assert tables.STAGE_EXPANSION[stage("ALL_TRANSFER")] & stage("CLEAR")
    assert tables.STAGE_EXPANSION[stage("PRE_RASTERIZATION_SHADERS")] & stage("MESH_SHADER_EXT")
    assert not tables.STAGE_EXPANSION[stage("ALL_GRAPHICS")] & stage("COMPUTE_SHADER")
    assert tables.STAGE_EXPANSION[stage("ALL_GRAPHICS")] & stage("INDEX_INPUT")


def test_shader_read_does_not_stand_for_uniform_read() -> None:
    read = tables.ACCESS_EXPANSION[access("SHADER_READ_BIT")]
    assert read & access("SHADER_STORAGE_READ_BIT")
    assert read & access("SHADER_SAMPLED_READ_BIT")
    assert not read & access("UNIFORM_READ_BIT")
    assert tables.ACCESS_EXPANSION[access("SHADER_WRITE_BIT")] & access("SHADER_STORAGE_WRITE_BIT")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("VERTEX_SHADER", "FRAGMENT_SHADER"),
        ("DRAW_INDIRECT", "COMPUTE_SHADER"),
        ("DRAW_INDIRECT", "COLOR_ATTACHMENT_OUTPUT"),
        ("EARLY_FRAGMENT_TESTS", "FRAGMENT_SHADER"),
        ("FRAGMENT_SHADER", "LATE_FRAGMENT_TESTS"),
        ("TASK_SHADER_EXT", "MESH_SHADER_EXT"),
        ("MESH_SHADER_EXT", "FRAGMENT_SHADER"),
        ("FRAGMENT_DENSITY_PROCESS_EXT", "EARLY_FRAGMENT_TESTS"),
        ("FRAGMENT_DENSITY_PROCESS_EXT", "COLOR_ATTACHMENT_OUTPUT"),
        ("TOP_OF_PIPE", "COPY"),
        ("CONDITIONAL_RENDERING_EXT", "BOTTOM_OF_PIPE"),
    ],
)
def test_stage_is_logically_earlier(first: str, second: str) -> None:
    assert tables.EARLIER[stage(second)] & stage(first)
    assert tables.LATER[stage(first)] & stage(second)
    assert not tables.EARLIER[stage(first)] & stage(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COMPUTE_SHADER", "FRAGMENT_SHADER"),
        ("COPY", "CLEAR"),
        ("COPY", "COMPUTE_SHADER"),
        ("CONDITIONAL_RENDERING_EXT", "DRAW_INDIRECT"),
        ("FRAGMENT_DENSITY_PROCESS_EXT", "VERTEX_SHADER"),
        ("GEOMETRY_SHADER", "MESH_SHADER_EXT"),
        ("HOST", "COPY"),
        ("HOST", "BOTTOM_OF_PIPE"),
    ],
)
def test_stages_are_not_ordered(one: str, other: str) -> None:
    assert not (tables.EARLIER[stage(one)] | tables.LATER[stage(one)]) & stage(other)


def test_order_is_a_strict_partial_order() -> None:
    for bit, mask in tables.EARLIER.items():
        assert not mask & bit
        for other, further in tables.EARLIER.items():
            assert bool(mask & other) == bool(tables.LATER[other] & bit)
            assert not mask & other or further & ~mask == 0, "not transitive"


def test_every_command_that_acts_has_its_signature() -> None:
    assert tables.TASKS["vkCmdCopyBuffer"] == ("action",)
    assert "synchronization" in tables.TASKS["vkCmdPipelineBarrier2KHR"]
    assert set(tables.TASKS) <= set(tables.COMMANDS)
    recording = {name for name in tables.COMMANDS if name.startswith("vkCmd")}
    assert set(tables.TASKS) == recording


def test_aliases_fold_to_one_name() -> None:
    assert shapes.main_name("vkCmdCopyBuffer2KHR") == "vkCmdCopyBuffer2"
    # Promoted after the binding's header: the header's name stands for the group.
    assert shapes.main_name("vkCmdPushDescriptorSet") == "vkCmdPushDescriptorSetKHR"
    for alias, main in tables.COMMAND_ALIASES.items():
        assert main in tables.COMMANDS
        assert main not in tables.COMMAND_ALIASES
        assert tables.COMMANDS.get(alias, (None, None, main))[2] == main
    for main in tables.TYPE_ALIASES.values():
        assert main not in tables.TYPE_ALIASES


def test_lengths_name_things_that_exist() -> None:
    """A count is a member beside the array, or a member of the struct that a parameter beside it points to."""
    seen = set()
    groups = [*tables.STRUCTS.values(), *(row[1] for row in tables.COMMANDS.values())]
    for group in groups:
        types = {member[0]: member[1] for member in group}
        for member in group:
            match member[4]:
                case str(name):
                    assert name in types
                case ("path", str(param), str(inner)):
                    assert inner in {row[0] for row in tables.STRUCTS[types[param]]}
                case ("ceil_div", str(name), int(by)):
                    assert name in types
                    assert by == 32
                case ("bytes", str(name)):
                    assert name in types
                case int(count):
                    assert count == 32
                case other:
                    assert other is None
            seen.add(type(member[4]).__name__ if not isinstance(member[4], tuple) else member[4][0])
    assert seen == {"str", "path", "ceil_div", "bytes", "int", "NoneType"}


def test_views_name_the_parts_of_rows() -> None:
    signature = shapes.signature("vkCmdCopyBuffer2KHR")
    assert signature is not None
    assert signature.alias_of == "vkCmdCopyBuffer2"
    assert [param.type for param in signature.params] == ["VkCommandBuffer", "VkCopyBufferInfo2"]
    newer = shapes.signature("vkCmdPushDescriptorSet")
    assert newer is not None
    assert newer.params[-1].length == "descriptorWriteCount"
    copied = shapes.members("VkCopyBufferInfo2KHR")
    assert copied is not None
    assert copied[-1].name == "pRegions"
    assert (copied[-1].length, copied[-1].pointer, copied[-1].const) == ("regionCount", 1, True)
    assert shapes.members("VkNoSuchThing") is None
    assert shapes.signature("vkNoSuchThing") is None


@cache
def binding() -> Any:
    """The binding's cffi declarations and newer ones, loaded from their files so that no Vulkan loader is needed."""
    package = importlib.util.find_spec("vulkan")
    assert package is not None and package.origin is not None
    file = Path(package.origin).with_name("_vulkancache.py")
    found = importlib.util.spec_from_file_location("binding_declarations", file)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return DeclaredTypes(module.ffi, newer_types(module.ffi))


def shape(ctype: Any, stars: int) -> tuple[Any, list[int]]:
    """A C type without `stars` pointers and without array bounds, and those bounds."""
    dims = []
    while ctype.kind == "array":
        dims.append(ctype.length)
        ctype = ctype.item
    for _ in range(stars):
        assert ctype.kind == "pointer", ctype
        ctype = ctype.item
    return ctype, dims


def same_type(ctype: Any, name: str) -> bool:
    """Whether the binding's type is the one that the tables name; foreign types are opaque structs there, and enums
    that are newer are plain numbers."""
    try:
        known = binding().typeof(name)
        return bool(ctype == known or (known.kind == "enum" and ctype.cname in (known.cname, "void")))
    except binding().error:
        return bool(ctype.cname == f"struct {name}")


def test_structs_agree_with_the_binding() -> None:
    """Member by member against cffi's own parse of the header: name, stars, bounds, bit width, base type."""
    checked = 0
    for name, rows in tables.STRUCTS.items():
        ctype = binding().typeof(name)
        assert ctype.kind == ("union" if name in tables.UNIONS else "struct")
        for (field, info), row in zip(ctype.fields, rows, strict=True):
            base, dims = shape(info.type, row[2])
            assert (field, tuple(dims), max(info.bitsize, 0)) == (row[0], row[5], row[7]), name
            assert same_type(base, row[1]), (name, row, base)
            checked += 1
    assert checked > 6000


def test_commands_agree_with_the_binding() -> None:
    """Parameter by parameter against cffi's function types. An array parameter is a pointer in C."""
    checked = 0
    for name, (returns, params, _) in tables.COMMANDS.items():
        ctype = binding().typeof(f"PFN_{name}")
        assert returns == "void" or same_type(ctype.result, returns), name
        for argument, row in zip(ctype.args, params, strict=True):
            base, _ = shape(argument, row[2] or len(row[5]))
            assert same_type(base, row[1]), (name, row, base)
            checked += 1
    assert checked > 2700


def test_enumerants_agree_with_the_binding() -> None:
    checked = 0
    for name, values in tables.ENUMS.items():
        ctype = binding().typeof(name)
        if ctype.kind != "enum":  # newer than the binding
            continue
        for text, value in ctype.relements.items():
            if "_MAX_ENUM" not in text:
                assert values[text] == value, (name, text)
                checked += 1
    assert checked > 1500


def test_no_struct_of_the_binding_is_left_out() -> None:
    package = importlib.util.find_spec("vulkan")
    assert package is not None
    assert package.origin is not None
    text = Path(package.origin).with_name("vulkan.cdef.h").read_text()
    declared = set(re.findall(r"^\} (Vk\w+);", text, re.MULTILINE))
    known = set(tables.STRUCTS) | set(tables.ENUMS) | set(tables.BITMASKS) | set(tables.TYPE_ALIASES)
    assert declared - known == set()
    assert set(re.findall(r"\b(vk[A-Z]\w*)\(", text)) < set(tables.COMMANDS)


def test_struct_types_lead_to_structs() -> None:
    assert (
        tables.STYPES[tables.ENUMS["VkStructureType"]["VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO"]] == "VkBufferCreateInfo"
    )
    for name in tables.STYPES.values():
        assert tables.STRUCTS[name][0][0] == "sType"
    carriers = {name for name, rows in tables.STRUCTS.items() if rows[0][0] == "sType"}
    # The two generic headers of a chain carry whatever sType their struct has.
    assert carriers - set(tables.STYPES.values()) == {"VkBaseInStructure", "VkBaseOutStructure"}

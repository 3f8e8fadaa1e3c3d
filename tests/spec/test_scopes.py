"""Scopes of dependencies: expansion, logically earlier and later stages, and which accesses a barrier covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec import scopes
from vkharness.spec.enums import VkAccess2, VkPipelineStage2, VkQueueFlag

GRAPHICS, COMPUTE, TRANSFER = VkQueueFlag.GRAPHICS, VkQueueFlag.COMPUTE, VkQueueFlag.TRANSFER
UNIVERSAL = GRAPHICS | COMPUTE | TRANSFER
TOP, BOTTOM = VkPipelineStage2.TOP_OF_PIPE, VkPipelineStage2.BOTTOM_OF_PIPE
MASKS = st.sets(st.sampled_from(sorted(tables.STAGE_QUEUES))).map(sum)
ACCESS_MASKS = st.sets(st.sampled_from(sorted(tables.ACCESSES.values()))).map(sum)
QUEUES = st.integers(min_value=0, max_value=UNIVERSAL)


def stage(name: str) -> int:
    return {**tables.STAGES, **tables.STAGE_ALIASES}[f"VK_PIPELINE_STAGE_2_{name}"]


def access(name: str) -> int:
    return tables.ACCESSES[f"VK_ACCESS_2_{name}"]


def covered(stages: int, accesses: int, queue_flags: int = UNIVERSAL) -> set[str]:
    found = scopes.access_scope(stages, accesses, queue_flags)
    return {row.name.removeprefix("SYNC_") for row in scopes.members(found)}


def test_transfer_stands_for_its_operations() -> None:
    expected = stage("COPY_BIT") | stage("RESOLVE_BIT") | stage("BLIT_BIT") | stage("CLEAR_BIT")
    expected |= stage("ACCELERATION_STRUCTURE_COPY_BIT_KHR")
    assert scopes.expand_stages(0x1000, UNIVERSAL) == expected
    assert stage("TRANSFER_BIT") == 0x1000


def test_synchronization1_masks_have_the_same_bits() -> None:
    old = tables.BITMASKS["VkPipelineStageFlags"]
    new = {name.replace("STAGE_", "STAGE_2_"): value for name, value in old.items()}
    both = {**tables.STAGES, **tables.STAGE_ALIASES}
    assert len(new) > 20
    assert {name: both[name] for name in new if name in both} == {n: v for n, v in new.items() if n in both}
    assert sum(name in both for name in new) > 20


def test_meta_stages_stand_only_for_what_the_queue_supports() -> None:
    everything = scopes.expand_stages(VkPipelineStage2.ALL_COMMANDS, COMPUTE)
    assert everything & stage("COMPUTE_SHADER_BIT")
    assert everything & stage("COPY_BIT")
    assert not everything & (TOP | BOTTOM)
    assert not everything & stage("FRAGMENT_SHADER_BIT")
    assert not everything & VkPipelineStage2.HOST
    assert scopes.expand_stages(stage("ALL_GRAPHICS_BIT"), COMPUTE) == stage("DRAW_INDIRECT_BIT") | stage(
        "CONDITIONAL_RENDERING_BIT_EXT"
    )
    assert scopes.expand_stages(stage("FRAGMENT_SHADER_BIT"), COMPUTE) == stage("FRAGMENT_SHADER_BIT")


def test_source_scope_reaches_back_and_destination_scope_reaches_forward() -> None:
    fragment = stage("FRAGMENT_SHADER_BIT")
    source = scopes.execution_scope_src(fragment, UNIVERSAL)
    target = scopes.execution_scope_dst(fragment, UNIVERSAL)
    assert source & stage("VERTEX_SHADER_BIT")
    assert not source & stage("LATE_FRAGMENT_TESTS_BIT")
    assert target & stage("COLOR_ATTACHMENT_OUTPUT_BIT")
    assert not target & stage("VERTEX_SHADER_BIT")
    assert not (source | target) & stage("COMPUTE_SHADER_BIT")
    assert source & target == fragment


def test_ends_of_the_pipe() -> None:
    everything = scopes.expand_stages(VkPipelineStage2.ALL_COMMANDS, UNIVERSAL)
    whole = VkPipelineStage2.ALL_COMMANDS
    assert (
        scopes.execution_scope_dst(TOP, UNIVERSAL) == scopes.execution_scope_dst(whole, UNIVERSAL) == everything | TOP
    )
    assert scopes.execution_scope_src(BOTTOM, UNIVERSAL) == scopes.execution_scope_src(whole, UNIVERSAL)
    assert scopes.execution_scope_src(whole, UNIVERSAL) == everything | BOTTOM
    assert scopes.execution_scope_src(TOP, UNIVERSAL) == 0
    assert scopes.execution_scope_dst(BOTTOM, UNIVERSAL) == 0
    assert scopes.execution_scope_src(0, UNIVERSAL) == 0
    assert scopes.execution_scope_dst(0, UNIVERSAL) == 0


def test_host_is_outside_the_order() -> None:
    assert scopes.execution_scope_src(VkPipelineStage2.HOST, UNIVERSAL) == VkPipelineStage2.HOST
    assert scopes.execution_scope_dst(VkPipelineStage2.HOST, UNIVERSAL) == VkPipelineStage2.HOST
    assert not scopes.execution_scope_dst(TOP, UNIVERSAL) & VkPipelineStage2.HOST


def test_access_scope_is_not_extended() -> None:
    assert covered(stage("VERTEX_SHADER_BIT"), access("SHADER_SAMPLED_READ_BIT")) == {
        "VERTEX_SHADER_SHADER_SAMPLED_READ"
    }


def test_shader_read_covers_storage_and_sampled_but_not_uniform_reads() -> None:
    found = covered(stage("COMPUTE_SHADER_BIT"), access("SHADER_READ_BIT") | access("SHADER_WRITE_BIT"))
    assert {"COMPUTE_SHADER_SHADER_STORAGE_READ", "COMPUTE_SHADER_SHADER_STORAGE_WRITE"} <= found
    assert "COMPUTE_SHADER_SHADER_SAMPLED_READ" in found
    assert "COMPUTE_SHADER_UNIFORM_READ" not in found


@pytest.mark.parametrize("name", ["ACCELERATION_STRUCTURE_BUILD", "MICROMAP_BUILD"])
def test_builds_keep_shader_read_literally(name: str) -> None:
    suffix = "KHR" if name.startswith("ACC") else "EXT"
    bit = stage(f"{name}_BIT_{suffix}")
    label = name if suffix == "KHR" else f"{name}_EXT"
    assert covered(bit, access("SHADER_READ_BIT")) == {f"{label}_SHADER_READ"}
    assert covered(bit, access("SHADER_STORAGE_READ_BIT")) == set()


def test_acceleration_structure_build_stage_covers_copies() -> None:
    build = stage("ACCELERATION_STRUCTURE_BUILD_BIT_KHR")
    write = access("ACCELERATION_STRUCTURE_WRITE_BIT_KHR")
    assert covered(build, write) == {
        "ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_WRITE",
        "ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_WRITE",
    }
    copied = covered(stage("ACCELERATION_STRUCTURE_COPY_BIT_KHR"), write)
    assert copied == {"ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_WRITE"}


def test_memory_read_and_write_are_all_of_the_stage() -> None:
    copy = stage("COPY_BIT")
    assert covered(copy, VkAccess2.MEMORY_READ) == {"COPY_TRANSFER_READ"}
    assert covered(copy, VkAccess2.MEMORY_WRITE) == {"COPY_TRANSFER_WRITE"}
    assert covered(VkPipelineStage2.HOST, VkAccess2.MEMORY_WRITE) == {"HOST_HOST_WRITE"}
    reads = scopes.access_scope(stage("FRAGMENT_SHADER_BIT"), VkAccess2.MEMORY_READ, UNIVERSAL)
    assert reads == scopes.stage_accesses(stage("FRAGMENT_SHADER_BIT")) & ~scopes.WRITES


def test_illegal_access_and_ends_of_the_pipe_cover_nothing() -> None:
    assert covered(stage("CLEAR_BIT"), access("TRANSFER_READ_BIT")) == set()
    assert covered(TOP | BOTTOM, VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE) == set()
    assert covered(stage("COPY_BIT"), 0) == set()
    assert covered(0, VkAccess2.MEMORY_WRITE) == set()


def test_all_commands_covers_layout_transitions_and_all_graphics_does_not() -> None:
    assert covered(VkPipelineStage2.ALL_COMMANDS, 0) == {"IMAGE_LAYOUT_TRANSITION", "QUEUE_FAMILY_OWNERSHIP_TRANSFER"}
    assert "IMAGE_LAYOUT_TRANSITION" in covered(VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_READ)
    assert "IMAGE_LAYOUT_TRANSITION" not in covered(stage("ALL_GRAPHICS_BIT"), VkAccess2.MEMORY_WRITE)
    assert not {
        name for name in covered(VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_WRITE) if name.startswith("HOST")
    }


def test_find_gives_the_access_or_says_that_there_is_none() -> None:
    found = scopes.find(stage("COPY_BIT"), access("TRANSFER_WRITE_BIT"))
    assert (found.name, found.write, found.index) == ("SYNC_COPY_TRANSFER_WRITE", True, 131)
    with pytest.raises(UserError, match=r"^access 0x800 \(VkAccessFlagBits2\) cannot happen at stage 0x800000000 "):
        scopes.find(stage("CLEAR_BIT"), access("TRANSFER_READ_BIT"))
    with pytest.raises(UserError):
        scopes.find(0, 0)


def test_negative_masks_are_refused() -> None:
    with pytest.raises(UserError, match="negative"):
        scopes.expand_stages(-1, UNIVERSAL)


def test_accesses_stand_at_their_index() -> None:
    assert sum(1 << row.index for row in scopes.ACCESS_KINDS[1:] if row.write) == scopes.WRITES
    assert [row.index for row in scopes.ACCESS_KINDS] == list(range(len(scopes.ACCESS_KINDS)))
    assert scopes.ACCESS_KIND["SYNC_CLEAR_TRANSFER_WRITE"] is scopes.ACCESS_KINDS[136]


@given(MASKS, QUEUES)
def test_execution_scopes_contain_the_expansion_and_are_closed(mask: int, queue_flags: int) -> None:
    expanded = scopes.expand_stages(mask, queue_flags)
    for scope in (scopes.execution_scope_src, scopes.execution_scope_dst):
        reached = scope(mask, queue_flags)
        assert reached & expanded == expanded
        assert scope(reached, queue_flags) == reached


@given(MASKS, MASKS, ACCESS_MASKS, QUEUES)
def test_scopes_of_joined_masks_are_joined_scopes(one: int, other: int, accesses: int, queue_flags: int) -> None:
    def joined(scope: int) -> int:
        return scopes.access_scope(scope, accesses, queue_flags)

    assert joined(one | other) == joined(one) | joined(other)
    for execution in (scopes.execution_scope_src, scopes.execution_scope_dst):
        assert execution(one | other, queue_flags) == execution(one, queue_flags) | execution(other, queue_flags)


@given(MASKS, ACCESS_MASKS, QUEUES)
def test_access_scope_holds_only_reads_and_writes_that_were_asked_for(
    mask: int, accesses: int, queue_flags: int
) -> None:
    allowed = scopes.expand_stages(mask, queue_flags)
    named = scopes.expand_accesses(accesses)
    for row in scopes.members(scopes.access_scope(mask, accesses, queue_flags)):
        if row in (scopes.IMAGE_LAYOUT_TRANSITION, scopes.OWNERSHIP_TRANSFER):
            assert mask & VkPipelineStage2.ALL_COMMANDS
            continue
        build = row.stage == stage("ACCELERATION_STRUCTURE_COPY_BIT_KHR")
        assert allowed & row.stage or (build and allowed & stage("ACCELERATION_STRUCTURE_BUILD_BIT_KHR"))
        assert named & (row.access | (VkAccess2.MEMORY_WRITE if row.write else VkAccess2.MEMORY_READ))

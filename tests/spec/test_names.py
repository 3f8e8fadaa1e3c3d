"""Names of masks and values, to text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec import names, scopes
from vkharness.spec.enums import VkAccess2


def test_masks_read_as_the_specification_names_them() -> None:
    assert names.stages(0x1_0000_0800) == "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT|VK_PIPELINE_STAGE_2_COPY_BIT"
    assert names.stages(0) == "VK_PIPELINE_STAGE_2_NONE"
    assert names.accesses(0x1800) == "VK_ACCESS_2_TRANSFER_READ_BIT|VK_ACCESS_2_TRANSFER_WRITE_BIT"
    assert names.accesses(0) == "VK_ACCESS_2_NONE"


def test_pseudo_stages_have_names() -> None:
    assert names.stages(scopes.PRESENT_ENGINE) == "PRESENT_ENGINE"
    assert names.stages(scopes.PRESENT_ENGINE | 0x800) == "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT|PRESENT_ENGINE"


def test_access_sets_are_grouped_by_stage() -> None:
    transfer = scopes.access_scope(0x1_0000_0000 | 0x8_0000_0000, VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE, 7)
    assert names.sync_accesses(transfer) == "COPY(TRANSFER_READ|TRANSFER_WRITE), CLEAR(TRANSFER_WRITE)"
    compute = scopes.stage_accesses(0x800)
    assert names.sync_accesses(compute) == "COMPUTE_SHADER(all)"
    uniform = 1 << scopes.ACCESS_KIND["SYNC_COMPUTE_SHADER_UNIFORM_READ"].index
    assert names.sync_accesses(uniform) == "COMPUTE_SHADER(UNIFORM_READ)"
    assert names.sync_accesses(0) == "NONE"


def test_every_access_reads_as_stage_and_access() -> None:
    """The compact form keeps the whole name: joining its parts gives the SYNC_ name back."""
    for row in scopes.ACCESS_KINDS[1:]:
        text = names.sync_accesses(1 << row.index)
        assert "SYNC_" + text.replace("(", "_").replace(")", "") == row.name


def test_an_enumerant_has_several_names_and_its_number() -> None:
    assert names.enum_value("VkImageLayout", "VK_IMAGE_LAYOUT_ATTACHMENT_OPTIMAL_KHR") == 1000314001
    assert names.enum_value("VkFormat", "37") == 37
    assert names.enum_value("VkFormat", 37) == 37


def test_flags_are_read_from_names_numbers_and_both() -> None:
    both = "VK_ACCESS_2_SHADER_READ_BIT_KHR|VK_ACCESS_2_TRANSFER_READ_BIT"
    assert names.flags_value("VkAccessFlags2KHR", both) == 0x820
    assert names.flags_value("VkAccessFlags2", "VK_ACCESS_2_NONE") == 0
    assert names.flags_value("VkAccessFlags", "VK_ACCESS_INDEX_READ_BIT | 0x1") == 3
    assert names.flags_value("VkPipelineStageFlags2", "0x100000000ULL") == 1 << 32
    assert names.flags_value("VkAccessFlags", "007") == 7
    assert names.flags_value("VkAccessFlags", "") == 0


def test_bits_without_a_name_stay_visible() -> None:
    assert names.flags_names("VkQueueFlags", 0x80000001) == "VK_QUEUE_GRAPHICS_BIT|0x80000000"
    assert names.flags_names("VkQueueFlags", 0) == "0"


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("VkFormat", "VK_FORMAT_NO_SUCH", "VkFormat has no value named 'VK_FORMAT_NO_SUCH'"),
        ("VkNothing", "1", "VkNothing is no enum or flags type that these tables know"),
        ("VkFormat", "__import__('os')", "has no value named"),
        ("VkFormat", "9" * 5000, "has no value named"),
    ],
)
def test_unknown_names_get_one_line(kind: str, text: str, said: str) -> None:
    with pytest.raises(UserError) as raised:
        names.flags_value(kind, text)
    assert said in str(raised.value)
    assert len(str(raised.value)) < 200
    assert "\n" not in str(raised.value)


@given(st.sampled_from(sorted(tables.BITMASKS)), st.integers(min_value=0, max_value=2**64 - 1))
def test_names_of_any_mask_give_the_mask_back(kind: str, mask: int) -> None:
    assert names.flags_value(kind, names.flags_names(kind, mask)) == mask

"""The parser of layer messages, on texts of 1.3.239 and 1.4.364 (as they printed them) and of versions between."""

from __future__ import annotations

import pytest

from harness.layer.parse import (
    RECORD,
    SUBMIT,
    access_name,
    access_names,
    extra_properties,
    is_synchronization,
    parse,
    split_barriers,
)
from harness.spec._generated import SYNC_ACCESSES

OLD_PREFIX = (
    "Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] Object 0: handle = 0x55863ed9c380, type = "
    "VK_OBJECT_TYPE_BUFFER; | MessageID = 0xe4d96472 | "
)
OLD_RECORD = (
    OLD_PREFIX + "vkCmdCopyBuffer: Hazard READ_AFTER_WRITE for srcBuffer VkBuffer 0x55863ed9c380[], region 2. Access "
    "info (usage: SYNC_COPY_TRANSFER_READ, prior_usage: SYNC_COPY_TRANSFER_WRITE, write_barriers: 0, command: "
    "vkCmdFillBuffer, seq_no: 1, reset_no: 3)."
)
OLD_SUBMIT = (
    "Validation Error: [ SYNC-HAZARD-WRITE-AFTER-WRITE ] Object 0: handle = 0x55863f7493f8, type = "
    "VK_OBJECT_TYPE_QUEUE; | MessageID = 0x5c0ec5d6 | vkQueueSubmit: Hazard WRITE_AFTER_WRITE for entry 1, "
    "VkCommandBuffer 0x55863f994f50[], Recorded access info (recorded_usage: SYNC_COPY_TRANSFER_WRITE, command: "
    "vkCmdCopyBuffer, seq_no: 7, reset_no: 1). Access info (prior_usage: SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE, "
    "write_barriers: SYNC_COPY_TRANSFER_READ|SYNC_BLIT_TRANSFER_READ, queue: VkQueue 0x55863f7493f8[], submit: 2, "
    "batch: 0, batch_tag: 9, command: vkCmdDispatch, seq_no: 3, command_buffer: VkCommandBuffer 0x55863f99e110[], "
    "reset_no: 1)."
)
OLD_DESCRIPTOR = (
    "Validation Error: [ SYNC-HAZARD-WRITE-AFTER-READ ] Object 0: handle = 0x5, type = VK_OBJECT_TYPE_BUFFER; | "
    "MessageID = 0x376bc9df | vkCmdDispatch: Hazard WRITE_AFTER_READ for VkBuffer 0x5[] in VkCommandBuffer 0x6[], "
    "VkPipeline 0x7[], and VkDescriptorSet 0x8[], type: VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, binding #1 index 0. Access "
    "info (usage: SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE, prior_usage: SYNC_COPY_TRANSFER_READ, read_barriers: "
    "VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT|VK_PIPELINE_STAGE_2_COPY_BIT, command: vkCmdCopyBuffer, seq_no: 4, "
    "reset_no: 1)."
)
TODAY_RECORD = (
    "vkCmdCopyBuffer(): READ_AFTER_WRITE hazard detected. vkCmdCopyBuffer reads VkBuffer 0x10000000001, which was "
    "previously written by vkCmdFillBuffer. \nThe current synchronization allows VK_ACCESS_2_TRANSFER_READ_BIT "
    "accesses at VK_PIPELINE_STAGE_2_BLIT_BIT, but to prevent this hazard, it must allow these accesses at "
    "VK_PIPELINE_STAGE_2_COPY_BIT.\nBuffer copy region 0: {\n  offset = 0,\n  size = 64\n}\n[Extra properties]\n"
    "message_type = BufferCopyError\nhazard_type = READ_AFTER_WRITE\n"
    "access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)\n"
    "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)\n"
    "write_barriers = VK_PIPELINE_STAGE_2_BLIT_BIT(VK_ACCESS_2_TRANSFER_READ_BIT):"
    "VK_PIPELINE_STAGE_2_HOST_BIT(ALL_ACCESSES)\n"
    "command = vkCmdCopyBuffer\nprior_command = vkCmdFillBuffer\nregion_index = 0\nseq_no = 1\nreset_no = 1"
)
TODAY_SUBMIT = (
    "vkQueueSubmit(): WRITE_AFTER_WRITE hazard detected. vkCmdCopyBuffer (from VkCommandBuffer 0x1 submitted on the "
    "current VkQueue 0x2) writes to resource, which was previously written by vkCmdClearColorImage.\n"
    "[Extra properties]\nmessage_type = SubmitTimeError\nhazard_type = WRITE_AFTER_WRITE\n"
    "prior_access = SYNC_IMAGE_LAYOUT_TRANSITION\nwrite_barriers = 0\ncommand = vkCmdCopyBuffer\n"
    "prior_command = vkCmdPipelineBarrier2\ncommand_buffer_index = 1\nseq_no = 2\nreset_no = 1\nbatch_tag = 5\n"
    "submit_index = 2\nbatch_index = 0"
)

# 1.4.364 on lavapipe, word by word; handles shortened.
REAL_DESCRIPTOR = (
    "vkCmdDispatch(): WRITE_AFTER_WRITE hazard detected. Shader stage VK_SHADER_STAGE_COMPUTE_BIT writes to VkBuffer "
    "0x5, which was previously written by another vkCmdDispatch command. \nThe buffer is referenced by descriptor "
    "binding 0 (VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) from descriptor set 0 (VkDescriptorSet 0x8), VkPipeline 0x7.\nNo "
    "sufficient synchronization is present to ensure that a write (VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT) at "
    "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT does not conflict with a prior write of the same type at the same stage.\n"
    "[Extra properties]\nmessage_type = BufferDescriptorError\nhazard_type = WRITE_AFTER_WRITE\n"
    "access = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT)\n"
    "prior_access = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT)\n"
    "write_barriers = 0\ncommand = vkCmdDispatch\nprior_command = vkCmdDispatch\n"
    "descriptor_type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER\ndescriptor_binding = 0\ndescriptor_array_element = 0\n"
    "seq_no = 1\nreset_no = 0"
)
REAL_TRANSITION = (
    "vkCmdPipelineBarrier(): WRITE_AFTER_WRITE hazard detected. vkCmdPipelineBarrier performs image layout transition "
    "on the VkImage 0x5, which was previously written by vkCmdClearColorImage. \nNo sufficient synchronization is "
    "present to ensure that a layout transition does not conflict with a prior write (VK_ACCESS_2_TRANSFER_WRITE_BIT) "
    "at VK_PIPELINE_STAGE_2_CLEAR_BIT.\nHint: Ensure that srcStageMask includes VK_PIPELINE_STAGE_2_CLEAR_BIT and "
    "srcAccessMask includes VK_ACCESS_2_TRANSFER_WRITE_BIT. The source side of the barrier protects layout transition "
    "writes from previous accesses, and the destination side cannot introduce this specific hazard.\n"
    "pImageMemoryBarriers[0]: {\n  srcStageMask = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,\n"
    "  srcAccessMask = VkAccessFlags2(0),\n  dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,\n"
    "  dstAccessMask = VkAccessFlags2(0),\n}\n[Extra properties]\nmessage_type = ImageBarrierError\n"
    "hazard_type = WRITE_AFTER_WRITE\naccess = SYNC_IMAGE_LAYOUT_TRANSITION\n"
    "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)\nwrite_barriers = 0\n"
    "command = vkCmdPipelineBarrier\nprior_command = vkCmdClearColorImage\nseq_no = 1\nreset_no = 0"
)
REAL_SUBMIT = (
    "vkQueueSubmit(): pSubmits[0].pCommandBuffers[0] WRITE_AFTER_READ hazard detected. vkCmdFillBuffer (from "
    "VkCommandBuffer 0x6 submitted on the current VkQueue 0x2) writes to dstBuffer VkBuffer 0x5, which was previously "
    "read by vkCmdCopyBuffer (from VkCommandBuffer 0x6 submitted on VkQueue 0x2). \nNo sufficient synchronization is "
    "present to ensure that a write (VK_ACCESS_2_TRANSFER_WRITE_BIT) at VK_PIPELINE_STAGE_2_CLEAR_BIT does not "
    "conflict with a prior read (VK_ACCESS_2_TRANSFER_READ_BIT) at VK_PIPELINE_STAGE_2_COPY_BIT.\nHint: An execution "
    "dependency is sufficient to prevent this hazard.\nBuffer access region: {\n  offset = 0\n  size = 256\n}\n"
    "[Extra properties]\nmessage_type = SubmitTimeError\nhazard_type = WRITE_AFTER_READ\n"
    "access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)\n"
    "prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)\nread_barriers = 0\n"
    "command = vkCmdFillBuffer\nprior_command = vkCmdCopyBuffer\nsubmit_index = 0\nbatch_index = 0\n"
    "command_buffer_index = 0\nseq_no = 2\nreset_no = 0\nbatch_tag = 1"
)
REAL_EVENT = (
    "vkCmdSetEvent(): VkEvent 0x3 is set after a previous vkCmdSetEvent without an intervening execution dependency. "
    "This is a race condition and may result in data hazards."
)


def test_old_style_at_record() -> None:
    said = parse("SYNC-HAZARD-READ-AFTER-WRITE", OLD_RECORD)
    assert said.key == (
        "READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer", "SYNC_COPY_TRANSFER_READ", "SYNC_COPY_TRANSFER_WRITE",
    )  # fmt: skip
    assert (said.kind, said.function, said.region, said.seq_no, said.reset_no) == (RECORD, "vkCmdCopyBuffer", 2, 1, 3)
    assert said.barriers == ()
    assert said.objects == (("VK_OBJECT_TYPE_BUFFER", 0x55863ED9C380),)


def test_old_style_at_submit_takes_the_recorded_command() -> None:
    said = parse("SYNC-HAZARD-WRITE-AFTER-WRITE", OLD_SUBMIT, [("VkQueue", 9)])
    assert said.key == (
        "WRITE_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdDispatch", "SYNC_COPY_TRANSFER_WRITE",
        "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE",
    )  # fmt: skip
    assert (said.kind, said.function, said.entry) == (SUBMIT, "vkQueueSubmit", 1)
    assert (said.recorded_seq_no, said.seq_no) == (7, 3)
    assert said.barriers == ("SYNC_COPY_TRANSFER_READ", "SYNC_BLIT_TRANSFER_READ")
    assert said.objects == (("VkQueue", 9),)


def test_old_style_for_descriptors_and_read_barriers() -> None:
    said = parse("", OLD_DESCRIPTOR)
    assert said.vuid == "SYNC-HAZARD-WRITE-AFTER-READ", "taken from the text when the identifier is missing"
    assert (said.command, said.prior_command) == ("vkCmdDispatch", "vkCmdCopyBuffer")
    assert said.barriers == ("VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT", "VK_PIPELINE_STAGE_2_COPY_BIT")


def test_old_style_names_the_2_form_with_parentheses() -> None:
    text = OLD_RECORD.replace("vkCmdCopyBuffer: Hazard", "vkCmdCopyBuffer2(): Hazard")
    assert parse("SYNC-HAZARD-READ-AFTER-WRITE", text).command == "vkCmdCopyBuffer2"


def test_event_rules_have_no_accesses() -> None:
    text = "vkCmdSetEvent(): VkEvent 0x3[] set again without a dependency."
    said = parse("SYNC-vkCmdSetEvent-set-race", text)
    assert (said.hazard, said.command, said.access, said.prior_command) == (
        "vkCmdSetEvent-set-race", "vkCmdSetEvent", "", "",
    )  # fmt: skip


def test_todays_style_reads_the_properties() -> None:
    said = parse("SYNC-HAZARD-READ-AFTER-WRITE", TODAY_RECORD)
    assert said.key == (
        "READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer", "SYNC_COPY_TRANSFER_READ",
        "SYNC_CLEAR_TRANSFER_WRITE",
    )  # fmt: skip
    assert said.barriers == ("SYNC_BLIT_TRANSFER_READ", "SYNC_HOST_ALL_ACCESSES")
    assert (said.kind, said.region, said.seq_no) == (RECORD, 0, 1)


def test_todays_descriptors() -> None:
    said = parse("SYNC-HAZARD-WRITE-AFTER-WRITE", REAL_DESCRIPTOR, [("VkBuffer", 5)])
    access = "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"
    assert said.key == ("WRITE_AFTER_WRITE", "vkCmdDispatch", "vkCmdDispatch", access, access)
    assert (said.kind, said.function, said.barriers, said.seq_no) == (RECORD, "vkCmdDispatch", (), 1)


def test_todays_transitions() -> None:
    said = parse("SYNC-HAZARD-WRITE-AFTER-WRITE", REAL_TRANSITION)
    assert said.key == (
        "WRITE_AFTER_WRITE", "vkCmdPipelineBarrier", "vkCmdClearColorImage", "SYNC_IMAGE_LAYOUT_TRANSITION",
        "SYNC_CLEAR_TRANSFER_WRITE",
    )  # fmt: skip


def test_todays_submits_name_the_recorded_command_and_its_access() -> None:
    said = parse("SYNC-HAZARD-WRITE-AFTER-READ", REAL_SUBMIT)
    assert said.key == (
        "WRITE_AFTER_READ", "vkCmdFillBuffer", "vkCmdCopyBuffer", "SYNC_CLEAR_TRANSFER_WRITE",
        "SYNC_COPY_TRANSFER_READ",
    )  # fmt: skip
    assert (said.kind, said.function, said.entry, said.seq_no, said.barriers) == (SUBMIT, "vkQueueSubmit", 0, 2, ())


@pytest.mark.parametrize(
    ("old", "today"),
    [
        ("vkCmdSetEvent2-missingbarrier-reset", "vkCmdSetEvent2-reset-race"),
        ("vkCmdSetEvent-missingbarrier-set", "vkCmdSetEvent-set-race"),
        ("vkCmdSetEvent-missingbarrier-wait", "vkCmdSetEvent-wait"),
        ("vkCmdResetEvent-missingbarrier-set", "vkCmdResetEvent-set-race"),
        ("vkCmdWaitEvents-unsynchronized-setops", "vkCmdWaitEvents-unsynchronized-setops"),
    ],
)
def test_old_names_of_event_rules(old: str, today: str) -> None:
    """As 1.3.239 was seen to spell them."""
    assert parse(f"SYNC-{old}", "vkCmdSetEvent: VkEvent 0x1[] vkCmdSetEvent operation").hazard == today


def test_todays_event_rules() -> None:
    said = parse("SYNC-vkCmdSetEvent-set-race", REAL_EVENT)
    assert (said.hazard, said.command, said.access) == ("vkCmdSetEvent-set-race", "vkCmdSetEvent", "")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0", ()),
        (
            "VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT|VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT"
            "(VK_ACCESS_2_UNIFORM_READ_BIT|VK_ACCESS_2_SHADER_READ_BIT)"
            ":VK_PIPELINE_STAGE_2_INDEX_INPUT_BIT(VK_ACCESS_2_INDEX_READ_BIT)",
            (
                "SYNC_VERTEX_SHADER_UNIFORM_READ", "SYNC_COMPUTE_SHADER_UNIFORM_READ", "SYNC_VERTEX_SHADER_SHADER_READ",
                "SYNC_COMPUTE_SHADER_SHADER_READ", "SYNC_INDEX_INPUT_INDEX_READ",
            ),
        ),
        (
            "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT|VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT",
            ("VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT", "VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT"),
        ),
    ],
)  # fmt: skip
def test_todays_barriers(text: str, names: tuple[str, ...]) -> None:
    assert access_names(text) == names


def test_todays_style_at_submit_had_no_access() -> None:
    said = parse("SYNC-HAZARD-WRITE-AFTER-WRITE", TODAY_SUBMIT)
    assert (said.kind, said.function, said.entry) == (SUBMIT, "vkQueueSubmit", 1)
    assert (said.command, said.access) == ("vkCmdCopyBuffer", "")
    assert (said.prior_command, said.prior_access) == ("vkCmdPipelineBarrier2", "SYNC_IMAGE_LAYOUT_TRANSITION")


def test_properties_without_spaces_around_the_sign() -> None:
    assert extra_properties("prose a = b\n[Extra properties]\nx=1\ny = 2") == {"x": "1", "y": "2"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("VK_PIPELINE_STAGE_2_TASK_SHADER_BIT_EXT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)",
         "SYNC_TASK_SHADER_EXT_SHADER_STORAGE_READ"),
        ("VK_PIPELINE_STAGE_2_ACCELERATION_STRUCTURE_BUILD_BIT_KHR(VK_ACCESS_2_ACCELERATION_STRUCTURE_READ_BIT_KHR)",
         "SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_READ"),
        ("VK_PIPELINE_STAGE_2_EARLY_FRAGMENT_TESTS_BIT(VK_ACCESS_2_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT)",
         "SYNC_EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"),
        ("VK_PIPELINE_STAGE_2_RAY_TRACING_SHADER_BIT_KHR(VK_ACCESS_2_SHADER_BINDING_TABLE_READ_BIT_KHR)",
         "SYNC_RAY_TRACING_SHADER_SHADER_BINDING_TABLE_READ"),
    ],
)  # fmt: skip
def test_access_names_are_those_of_the_tables(text: str, name: str) -> None:
    assert access_name(text) == name
    assert name in {row[0] for row in SYNC_ACCESSES}


@pytest.mark.parametrize("text", ["", "0", "VK_PIPELINE_STAGE_2_NONE"])
def test_no_barriers(text: str) -> None:
    assert split_barriers(text) == ()


@pytest.mark.parametrize("text", ["", "nonsense", "vkCmdCopyBuffer", "Access info (", "[Extra properties]", "\0" * 9])
def test_unforeseen_texts_are_kept(text: str) -> None:
    said = parse("SYNC-HAZARD-READ-AFTER-WRITE", text)
    assert (said.hazard, said.text, said.access) == ("READ_AFTER_WRITE", text, "")


def test_only_synchronization_identifiers() -> None:
    assert is_synchronization("SYNC-vkCmdSetEvent-set-race")
    assert not is_synchronization("VUID-vkCmdCopyBuffer-size-00115")
    assert not is_synchronization("Loader Message")

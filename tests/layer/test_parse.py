"""The parser of layer messages, on texts of 1.3.239, 1.4.309 and 1.4.364 as they printed them."""

from __future__ import annotations

import pytest

from vkharness.layer.parse import RECORD, SUBMIT, access_name, is_synchronization, parse
from vkharness.spec._generated import SYNC_ACCESSES

RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
COPY_READ, COPY_WRITE, CLEAR_WRITE = "SYNC_COPY_TRANSFER_READ", "SYNC_COPY_TRANSFER_WRITE", "SYNC_CLEAR_TRANSFER_WRITE"
STORAGE_WRITE = "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE"
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
# 1.4.364 on lavapipe, word by word; handles shortened.
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
# 1.4.309 has no property for the later access of a submit.
SUBMIT_309 = (
    "vkQueueSubmit(): READ_AFTER_WRITE hazard detected. vkCmdDispatch (from VkCommandBuffer 0x6 submitted on the "
    "current VkQueue 0x2) reads VkBuffer 0x5, which was previously written by vkCmdFillBuffer (from VkCommandBuffer "
    "0x7 submitted on VkQueue 0x2). \nNo sufficient synchronization is present to ensure that a read "
    "(VK_ACCESS_2_SHADER_STORAGE_READ_BIT) at VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT does not conflict with a prior "
    "write (VK_ACCESS_2_TRANSFER_WRITE_BIT) at VK_PIPELINE_STAGE_2_CLEAR_BIT.\n[Extra properties]\n"
    "message_type = SubmitTimeError\nhazard_type = READ_AFTER_WRITE\n"
    "prior_access = VK_PIPELINE_STAGE_2_CLEAR_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)\nwrite_barriers = 0\n"
    "command = vkCmdDispatch\nprior_command = vkCmdFillBuffer\ncommand_buffer_index = 0\nsubmit_index = 57\n"
    "batch_index = 0\nbatch_tag = 105"
)
STORAGE_READ = "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ"
REAL_EVENT = (
    "vkCmdSetEvent(): VkEvent 0x3 is set after a previous vkCmdSetEvent without an intervening execution dependency. "
    "This is a race condition and may result in data hazards."
)


@pytest.mark.parametrize(
    ("text", "key", "kind", "numbers"),
    [
        (OLD_RECORD, (RAW, "vkCmdCopyBuffer", "vkCmdFillBuffer", COPY_READ, COPY_WRITE), RECORD, (1, None, None)),
        (OLD_SUBMIT, (WAW, "vkCmdCopyBuffer", "vkCmdDispatch", COPY_WRITE, STORAGE_WRITE), SUBMIT, (3, 7, 1)),
        (
            REAL_TRANSITION,
            (WAW, "vkCmdPipelineBarrier", "vkCmdClearColorImage", "SYNC_IMAGE_LAYOUT_TRANSITION", CLEAR_WRITE),
            RECORD,
            (1, None, None),
        ),
        (SUBMIT_309, (RAW, "vkCmdDispatch", "vkCmdFillBuffer", STORAGE_READ, CLEAR_WRITE), SUBMIT, (None, None, 0)),
        (REAL_SUBMIT, (WAR, "vkCmdFillBuffer", "vkCmdCopyBuffer", CLEAR_WRITE, COPY_READ), SUBMIT, (2, None, 0)),
    ],
)
def test_what_a_message_says(
    text: str, key: tuple[str, ...], kind: str, numbers: tuple[int | None, int | None, int | None]
) -> None:
    """`numbers`: of the prior command, of the current one, and the command buffer's index in its batch."""
    said = parse("SYNC-HAZARD-" + key[0].replace("_", "-"), text)
    assert (said.key, said.kind, (said.seq_no, said.recorded_seq_no, said.entry)) == (key, kind, numbers)


@pytest.mark.parametrize(
    ("said", "access"),
    [
        ("a layout transition does not conflict with a prior read", "SYNC_IMAGE_LAYOUT_TRANSITION"),
        ("must allow VK_ACCESS_2_TRANSFER_READ_BIT accesses at VK_PIPELINE_STAGE_2_COPY_BIT.", COPY_READ),
        ("must allow these accesses at VK_PIPELINE_STAGE_2_COPY_BIT.", ""),
        ("it must include VK_PIPELINE_STAGE_2_NONE.", ""),
    ],
)
def test_prose_names_the_later_access_or_leaves_it_open(said: str, access: str) -> None:
    prose = "No sufficient synchronization is present to ensure that " + said
    text = SUBMIT_309.partition("\nNo ")[0] + f"\n{prose}\n[Extra properties]\nhazard_type = READ_AFTER_WRITE"
    assert parse("SYNC-HAZARD-READ-AFTER-WRITE", text).access == access


@pytest.mark.parametrize(
    ("name", "hazard"),
    [
        ("vkCmdSetEvent2-missingbarrier-reset", "vkCmdSetEvent2-reset-race"),
        ("vkCmdSetEvent-missingbarrier-set", "vkCmdSetEvent-set-race"),
        ("vkCmdSetEvent-missingbarrier-wait", "vkCmdSetEvent-wait"),
        ("vkCmdResetEvent-missingbarrier-set", "vkCmdResetEvent-set-race"),
        ("vkCmdWaitEvents-unsynchronized-setops", "vkCmdWaitEvents-unsynchronized-setops"),
        ("vkCmdSetEvent-set-race", "vkCmdSetEvent-set-race"),
    ],
)
def test_event_rules_have_one_name_and_no_accesses(name: str, hazard: str) -> None:
    said = parse(f"SYNC-{name}", REAL_EVENT)
    assert said.key == (hazard, "vkCmdSetEvent", "", "", "")


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


@pytest.mark.parametrize("text", ["", "nonsense", "vkCmdCopyBuffer", "Access info (", "[Extra properties]", "\0" * 9])
def test_unforeseen_texts_are_kept(text: str) -> None:
    said = parse("SYNC-HAZARD-READ-AFTER-WRITE", text)
    assert (said.hazard, said.text, said.access) == ("READ_AFTER_WRITE", text, "")


def test_only_synchronization_identifiers() -> None:
    assert is_synchronization("SYNC-vkCmdSetEvent-set-race")
    assert not is_synchronization("VUID-vkCmdCopyBuffer-size-00115")
    assert not is_synchronization("Loader Message")

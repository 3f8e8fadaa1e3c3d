"""Streams that once told a mistake in a judge: kept as short as they were found, each with what it must give."""

from __future__ import annotations

import pytest

from harness.fuzz import stream_text
from harness.fuzz.agreement_fuzz import judge
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator

FOUND = [
    pytest.param(
        """
        submit q1
            FRAGMENT_SHADER_SHADER_STORAGE_READ a
            pass 1 region EXTERNAL->0 COLOR_ATTACHMENT_OUTPUT > COLOR_ATTACHMENT_OUTPUT
            subpass 0
            barrier region COLOR_ATTACHMENT_OUTPUT > TOP_OF_PIPE
            FRAGMENT_SHADER_SHADER_STORAGE_WRITE a
            end
        """,
        [],
        id="what ends at the top of the pipe is before all commands, and not by region (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1 signal s1@ALL_COMMANDS family 0
            COPY_TRANSFER_WRITE a
        submit q2 wait s1@BOTTOM_OF_PIPE fence f1 family 1
            COPY_TRANSFER_WRITE b
        host waits f1
        submit q1 family 0
            COPY_TRANSFER_WRITE a
        """,
        [],
        id="a fence covers what its batch waited for in no stage of its commands (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            CLEAR_TRANSFER_WRITE a
            pass 1 EXTERNAL->0 CLEAR/TRANSFER_WRITE > ALL_GRAPHICS, 0->EXTERNAL ALL_GRAPHICS > COPY/TRANSFER_WRITE
            subpass 0
            end
            COPY_TRANSFER_READ a
        """,
        ["READ_AFTER_WRITE"],
        id="a pass hands a write on to other accesses than the read (by the operation matrix)",
    ),
    pytest.param(
        """
        submit q1
            barrier i ALL_COMMANDS > ALL_COMMANDS/MEMORY_WRITE, i 0->1 ALL_COMMANDS > ALL_COMMANDS
            COPY_TRANSFER_WRITE i
        """,
        ["WRITE_AFTER_WRITE"],
        id="a plain barrier beside a transition does not act on it (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_WRITE a; COPY_TRANSFER_READ a
            barrier ALL_COMMANDS/MEMORY_WRITE > ALL_COMMANDS
            COPY_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_WRITE"],
        id="a command that writes and reads a range leaves its write as the last (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ a; COMPUTE_SHADER_SHADER_STORAGE_WRITE a
            barrier COMPUTE_SHADER/SHADER_STORAGE_WRITE > CLEAR/TRANSFER_WRITE
            CLEAR_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_READ"],
        id="a barrier after the write of a command need not be after its read (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            set e1 COPY > ALL_COMMANDS
            set e1 COPY > ALL_COMMANDS
            wait e1 COPY > ALL_COMMANDS
            set1 e1 COPY
        """,
        ["vkCmdSetEvent2-set-race", "vkCmdWaitEvents-unsynchronized-setops", "vkCmdSetEvent-set-race"],
        id="a wait that either of two sets may end is after neither (by the fuzzer)",
    ),
    pytest.param(
        """
        acquire p signal s2
        submit q1 wait s2@ALL_COMMANDS
            COPY_TRANSFER_READ a
        host waits
        submit q2
            COPY_TRANSFER_WRITE p
        """,
        [],
        id="who waited for what waited for an acquire has its image (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1 signal s1@ALL_COMMANDS
            set1 e1 COPY
        submit q1 wait s1@ALL_COMMANDS
            set1 e1 COPY
        """,
        [],
        id="a semaphore orders operations on an event (by the fuzzer)",
    ),
    pytest.param(
        """
        queue q1 family 0
        queue q2 family 1
        submit q1 signal s1@ALL_COMMANDS family 0
            COPY_TRANSFER_READ i
            barrier i 1->2 COPY > ALL_COMMANDS
        submit q2 wait s1@ALL_COMMANDS family 1
            COPY_TRANSFER_READ i
        """,
        ["ownership-without-contents"],
        id="what a layout transition left is what was not transferred (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ a
            pass 1 EXTERNAL->0 COPY > FRAGMENT_SHADER
            subpass 0 i 0->1
            end
            barrier FRAGMENT_SHADER > CLEAR/TRANSFER_WRITE
            CLEAR_TRANSFER_WRITE a; CLEAR_TRANSFER_WRITE i
        """,
        [],
        id="a barrier after a render pass instance chains with dependencies into it (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            pass 1 EXTERNAL->0 NONE > COLOR_ATTACHMENT_OUTPUT, 0->EXTERNAL COLOR_ATTACHMENT_OUTPUT > NONE
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color load
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            end i 2->7 after 0
        """,
        [],
        id="what was cleared and then read needs only an execution dependency (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ a; COMPUTE_SHADER_SHADER_STORAGE_WRITE a
            barrier COPY > CLEAR
            CLEAR_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_WRITE"],
        id="nor one after its read after the write (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            pass 2
            subpass 0 i 0->1
            subpass 1 i 0->1
            end
        """,
        ["WRITE_RACING_WRITE"],
        id="transitions of two subpasses are in no submission order (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            pass 2 EXTERNAL->0 NONE > COLOR_ATTACHMENT_OUTPUT, 0->1 VERTEX_SHADER > COLOR_ATTACHMENT_OUTPUT
            subpass 0 i 0->1
            subpass 1 i 1->2 after 0
            end
        """,
        ["WRITE_AFTER_WRITE"],
        id="nor if a dependency of an earlier stage is between (by the fuzzer)",
    ),
    pytest.param(
        """
        semaphore t1 = 0
        submit q2 wait t1=1@ALL_COMMANDS
            COPY_TRANSFER_WRITE a
        submit q1 wait t1=1@ALL_COMMANDS
            COPY_TRANSFER_WRITE a
        host signals t1=1
        """,
        ["WRITE_RACING_WRITE"],
        id="two queues that one signal lets go race, whichever is judged first (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            pass 1 EXTERNAL->0 NONE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE
            subpass 0 i 0->1
            end
            pass 2 EXTERNAL->1 COLOR_ATTACHMENT_OUTPUT > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ
            subpass 0
            barrier region COLOR_ATTACHMENT_OUTPUT > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ i color load
            subpass 1
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ i color load
            end
        """,
        ["READ_AFTER_WRITE"],
        id="EXTERNAL has earlier subpasses in it, a barrier inside a later one has not (by the fuzzer)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ i
            pass 1 EXTERNAL->0 COPY > ALL_COMMANDS
            subpass 0
            end
            barrier i 0->1 TOP_OF_PIPE > COPY
        """,
        ["WRITE_AFTER_READ"],
        id="ALL_COMMANDS into a subpass is all graphics stages, and they hold no later transition",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ a
            pass 1 EXTERNAL->0 ALL_COMMANDS > FRAGMENT_SHADER
            subpass 0
            FRAGMENT_SHADER_SHADER_STORAGE_WRITE a
            end
        """,
        ["WRITE_AFTER_READ"],
        id="ALL_COMMANDS before a subpass is all graphics stages, and holds no copy",
    ),
    pytest.param(
        """
        submit q1
            ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_READ a
            barrier ACCELERATION_STRUCTURE_BUILD > CLEAR
            CLEAR_TRANSFER_WRITE a
            barrier CLEAR/TRANSFER_WRITE > ACCELERATION_STRUCTURE_BUILD/MEMORY_WRITE
            ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_WRITE a
        """,
        [],
        id="the stage of acceleration structure builds has their copies in it, in every scope",
    ),
    pytest.param(
        """
        submit q1 signal s1@TOP_OF_PIPE
            COPY_TRANSFER_WRITE a
            barrier COPY/TRANSFER_WRITE > ALL_COMMANDS
        submit q2 wait s1@ALL_COMMANDS
            COPY_TRANSFER_READ a
        """,
        ["READ_AFTER_WRITE"],
        id="a signal at the top of the pipe has nothing in its first scope",
    ),
    pytest.param(
        """
        submit q1 signal s1@BOTTOM_OF_PIPE
            COPY_TRANSFER_WRITE a
            barrier COPY/TRANSFER_WRITE > NONE
        submit q2 wait s1@TOP_OF_PIPE
            COPY_TRANSFER_READ a
        """,
        [],
        id="a signal at the bottom and a wait at the top are of all commands",
    ),
    pytest.param(
        """
        submit q1 signal s1@ALL_COMMANDS
            COPY_TRANSFER_WRITE a
        submit q2 wait s1@BOTTOM_OF_PIPE
            barrier ALL_COMMANDS/MEMORY_WRITE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["READ_AFTER_WRITE"],
        id="a wait at the bottom of the pipe has nothing in its second scope",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_READ i
            barrier COPY > NONE
            barrier i 0->1 BOTTOM_OF_PIPE > COPY
            barrier i 1->2 BOTTOM_OF_PIPE > COPY/TRANSFER_READ
            COPY_TRANSFER_READ i
        """,
        [],
        id="BOTTOM_OF_PIPE before a transition has transitions in it, and all that is before a barrier to NONE",
    ),
    pytest.param(
        """
        submit q1
            CLEAR_TRANSFER_WRITE i
            barrier CLEAR/TRANSFER_WRITE > ALL_COMMANDS
            barrier i 0->1 HOST > NONE
        """,
        [],
        id="ALL_COMMANDS has later transitions in it, whatever they begin with",
    ),
    pytest.param(
        """
        queue q1 family 0
        queue q2 family 1
        submit q1 signal s1@ALL_COMMANDS family 0
            CLEAR_TRANSFER_WRITE a
            barrier a family 0->1 CLEAR/TRANSFER_WRITE > COPY
        submit q2 wait s1@COPY family 1
            barrier a family 0->1 COPY > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["WRITE_AFTER_WRITE"],
        id="the first scope of an acquire does not apply",
    ),
    pytest.param(
        """
        queue q1 family 0
        queue q2 family 1
        submit q1 signal s1@COPY family 0
            CLEAR_TRANSFER_WRITE a
            barrier a family 0->1 CLEAR/TRANSFER_WRITE > COPY
        submit q2 wait s1@ALL_COMMANDS family 1
            barrier a family 0->1 COPY > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        ["WRITE_AFTER_WRITE"],
        id="the second scope of a release does not apply",
    ),
    pytest.param(
        """
        queue q1 family 0
        queue q2 family 1
        submit q1 signal s1@COPY family 0
            CLEAR_TRANSFER_WRITE a
            barrier a family 0->1 stages CLEAR/TRANSFER_WRITE > COPY
        submit q2 wait s1@COPY family 1
            barrier a family 0->1 stages COPY > COPY/TRANSFER_READ
            COPY_TRANSFER_READ a
        """,
        [],
        id="both apply where the stages of a transfer count",
    ),
    pytest.param(
        """
        semaphore t1 = 0
        submit q1 signal t1=1@COMPUTE_SHADER
            COPY_TRANSFER_WRITE a
        host waits t1=1
        submit q1
            COPY_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_WRITE"],
        id="a value covers the stages of its signal",
    ),
    pytest.param(
        """
        semaphore t1 = 0
        submit q1 signal t1=1@COPY
            COPY_TRANSFER_WRITE a
        submit q1 signal t1=2@COMPUTE_SHADER
            CLEAR_TRANSFER_WRITE b
        host waits t1=2
        submit q2
            COPY_TRANSFER_READ a
            COPY_TRANSFER_READ b
        """,
        ["READ_RACING_WRITE"],
        id="a value covers what came before earlier signals, too",
    ),
    pytest.param(
        """
        submit q1 signal s1@ALL_COMMANDS
            COPY_TRANSFER_WRITE a
        submit q1 signal s2@NONE
            COPY_TRANSFER_WRITE b
        submit q2 wait s2@COPY
            COPY_TRANSFER_READ a
            COPY_TRANSFER_READ b
        """,
        ["READ_AFTER_WRITE"],
        id="a signal of no stages comes after earlier signals",
    ),
    pytest.param(
        """
        submit q1 signal s1@COMPUTE_SHADER
            COPY_TRANSFER_WRITE a
            COMPUTE_SHADER_SHADER_STORAGE_WRITE b
        submit q2 wait s1@ALL_COMMANDS fence f1
            CLEAR_TRANSFER_WRITE c
        host waits f1
        submit q3
            COPY_TRANSFER_READ b
            COPY_TRANSFER_READ a
        """,
        ["READ_RACING_WRITE"],
        id="a fence of another queue covers what that queue knows of",
    ),
    pytest.param(
        """
        submit q1
            rendering
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color store
            rendering
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color load
        """,
        ["WRITE_AFTER_WRITE"],
        id="two render pass instances on one attachment are in no order",
    ),
    pytest.param(
        """
        submit q1
            pass 2
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color load
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            subpass 1
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color store
            end
        """,
        [],
        id="a store comes after every access of the attachment in its render pass instance",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_WRITE i
            pass 2 EXTERNAL->0 COPY/TRANSFER_WRITE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ i color load
            subpass 1
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            end
        """,
        [],
        id="what a load operation read is what all subpasses read",
    ),
    pytest.param(
        """
        submit q1
            pass 2 region 0->1 FRAGMENT_SHADER/SHADER_STORAGE_WRITE > FRAGMENT_SHADER/SHADER_STORAGE_READ
            subpass 0
            FRAGMENT_SHADER_SHADER_STORAGE_WRITE a
            subpass 1
            FRAGMENT_SHADER_SHADER_STORAGE_READ a
            end
        """,
        ["READ_AFTER_WRITE"],
        id="a by-region dependency does not order what fragment shaders do to a buffer",
    ),
    pytest.param(
        """
        submit q1
            pass 2 region 0->1 FRAGMENT_SHADER/SHADER_STORAGE_WRITE > FRAGMENT_SHADER, \
                1->EXTERNAL FRAGMENT_SHADER > COPY/TRANSFER_READ
            subpass 0
            FRAGMENT_SHADER_SHADER_STORAGE_WRITE a
            subpass 1
            end
            COPY_TRANSFER_READ a
        """,
        [],
        id="by region and then everywhere is everywhere",
    ),
    pytest.param(
        """
        submit q1
            pass 1
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster raster_ordered
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color raster_ordered
            end
        """,
        [],
        id="rasterization order attachment access orders input attachment reads",
    ),
    pytest.param(
        """
        submit q1
            pass 1 EXTERNAL->0 NONE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE, \
                0->EXTERNAL COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE
            subpass 0 i 0->1
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE j color resolve_write
            end
            pass 2 0->EXTERNAL COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE \
                > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ i color load
            subpass 1
            end
        """,
        ["READ_AFTER_WRITE"],
        id="a transition in one instance and a load in the next (by the fuzzer, seed 987654)",
    ),
    pytest.param(
        """
        submit q1
            pass 1
            subpass 0
            EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ d depth_stencil; \
                LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ d depth_stencil; \
                LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE d depth_stencil
            end
            pass 2 EXTERNAL->1 LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE \
                > EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ
            subpass 0
            subpass 1
            EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ d depth_stencil; \
                LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ d depth_stencil; \
                LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE d depth_stencil
            end
        """,
        ["READ_AFTER_WRITE", "WRITE_AFTER_WRITE"],
        id="a write to depth is visible to the early test alone, not to the late one (by the fuzzer, seed 2222)",
    ),
    pytest.param(
        """
        submit q1
            rendering
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color raster_ordered
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster raster_ordered
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
        """,
        ["READ_AFTER_WRITE"],
        id="an input read by a pipeline without ordered access is in no order (by the fuzzer, seed 987654)",
    ),
    pytest.param(
        """
        submit q1
            pass 1 EXTERNAL->0 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE \
                > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE, \
                0->EXTERNAL TOP_OF_PIPE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE, \
                0->0 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE
            subpass 0 i 0->1
            barrier region COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE
            end i 2->7 after 0
        """,
        ["WRITE_AFTER_WRITE"],
        id="a barrier inside a subpass holds no transition after it (by the fuzzer, seed 31337)",
    ),
]


def findings_of(text: str) -> list[str]:
    """The kinds of what syncval finds."""
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [found.hazard for each in stream_text.parse(text) for found in validator.consume(each)]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_what_was_once_wrong(text: str, expected: list[str]) -> None:
    assert findings_of(text) == expected


@pytest.mark.parametrize("text", [each.values[0] for each in FOUND], ids=[each.id for each in FOUND])
def test_the_model_says_the_same(text: str) -> None:
    assert judge(text)[1].disagreements == ()

"""Streams of subpasses: which reads a later write must be in order with, and which dependencies order a transition."""

from __future__ import annotations

import pytest

from harness.fuzz.agreement_fuzz import judge

SHARED = """
    submit q1
        pass 3 {}
        subpass 0
        COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i raster
        subpass 1 i 2->5 after 0 used 0&1&2 later 2
        FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i
        subpass 2
        FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i
        end
"""
DRAWN, AS_INPUT = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"


@pytest.mark.parametrize(
    ("dependencies", "hazards"),
    [
        ((f"0->1 {DRAWN} > {AS_INPUT}", f"0->2 {DRAWN} > {AS_INPUT}"), []),
        ((f"0->1 {DRAWN} > {AS_INPUT}", f"1->2 FRAGMENT_SHADER > {AS_INPUT}"), []),
        ((f"0->1 {DRAWN} > {AS_INPUT}",), ["READ_RACING_WRITE"]),
        ((f"0->1 {DRAWN} > {AS_INPUT}", f"0->2 {DRAWN} > FRAGMENT_SHADER"), ["READ_AFTER_WRITE"]),
        ((f"0->2 {DRAWN} > {AS_INPUT}",), ["READ_AFTER_WRITE"]),
    ],
)
def test_a_transition_is_into_each_subpass_that_uses_the_layout(
    dependencies: tuple[str, ...], hazards: list[str]
) -> None:
    """Specification: "Automatic layout transitions into the layout used in a subpass happen-before the visibility
    operations for all dependencies with that subpass as the dstSubpass." Rule: dependencies-meet-at-a-transition."""
    findings, agreement = judge(SHARED.format(", ".join(dependencies)))
    assert [found.hazard for found in findings] == hazards and not agreement.disagreements


READS = [
    pytest.param(
        """
        submit q1
            pass 2 1->EXTERNAL FRAGMENT_SHADER > NONE
            subpass 0
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            subpass 1
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            end i 0->1 after 1
        """,
        ["WRITE_RACING_READ"],
        id="a transition after one of two subpasses that read in one stage",
    ),
    pytest.param(
        """
        submit q1
            pass 2 1->EXTERNAL FRAGMENT_SHADER > CLEAR
            subpass 0
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            subpass 1
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            end
            CLEAR_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_READ"],
        id="a write after one of two subpasses that read in one stage",
    ),
    pytest.param(
        """
        submit q1
            pass 2 1->EXTERNAL FRAGMENT_SHADER > CLEAR
            subpass 0
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            subpass 1
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            end
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            barrier FRAGMENT_SHADER > CLEAR
            CLEAR_TRANSFER_WRITE a
        """,
        [],
        id="a read after the render pass stands for those of its subpasses",
    ),
    pytest.param(
        """
        submit q1
            pass 2 EXTERNAL->1 FRAGMENT_SHADER > FRAGMENT_SHADER, 1->EXTERNAL FRAGMENT_SHADER > CLEAR
            subpass 0
            subpass 1
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            end
            CLEAR_TRANSFER_WRITE a
        """,
        [],
        id="a read of a subpass alone",
    ),
    pytest.param(
        """
        submit q1
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            pass 1 EXTERNAL->0 FRAGMENT_SHADER > FRAGMENT_SHADER, 0->EXTERNAL FRAGMENT_SHADER > CLEAR
            subpass 0
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            end
            CLEAR_TRANSFER_WRITE a
        """,
        [],
        id="a read that is ordered before a subpass is ordered by its read",
    ),
    pytest.param(
        """
        submit q1
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            pass 1 0->EXTERNAL FRAGMENT_SHADER > CLEAR
            subpass 0
            FRAGMENT_SHADER_SHADER_SAMPLED_READ a
            end
            CLEAR_TRANSFER_WRITE a
        """,
        ["WRITE_AFTER_READ"],
        id="a read before a render pass is not ordered by that of its subpass",
    ),
]

TRANSITIONS = [
    pytest.param(
        """
        submit q1
            pass 2 0->1 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE, \
                EXTERNAL->1 NONE > FRAGMENT_SHADER/INPUT_ATTACHMENT_READ
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            subpass 1 j 0->1 after 0
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            end
        """,
        [],
        id="two dependencies into a subpass meet at its layout transition",
    ),
    pytest.param(
        """
        submit q1
            pass 2 0->1 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE, \
                EXTERNAL->1 NONE > FRAGMENT_SHADER/INPUT_ATTACHMENT_READ
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            subpass 1 j 0->1
            FRAGMENT_SHADER_INPUT_ATTACHMENT_READ i raster
            end
        """,
        ["READ_AFTER_WRITE"],
        id="but not at one away from initialLayout, which comes after dependencies from outside alone",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_WRITE i
            pass 2 EXTERNAL->0 COPY/TRANSFER_WRITE > ALL_GRAPHICS/MEMORY_READ|MEMORY_WRITE, \
                0->1 ALL_GRAPHICS/MEMORY_READ|MEMORY_WRITE > ALL_GRAPHICS/MEMORY_READ|MEMORY_WRITE, \
                EXTERNAL->1 NONE > ALL_GRAPHICS/MEMORY_READ|MEMORY_WRITE
            subpass 0
            subpass 1 i 0->1
            end
        """,
        ["WRITE_AFTER_WRITE"],
        id="an initial transition does not come after a dependency into a subpass without the attachment (seed 48)",
    ),
    pytest.param(
        """
        submit q1
            COPY_TRANSFER_WRITE i
            pass 2 EXTERNAL->1 COPY/TRANSFER_WRITE > NONE
            subpass 0 i 0->1 used 0&1
            subpass 1
            end
        """,
        [],
        id="it comes after a dependency into any subpass that uses the attachment",
    ),
    pytest.param(
        """
        submit q1
            pass 3 0->2 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            subpass 1 i 0->1 after 0
            subpass 2
            end
        """,
        [],
        id="a transition comes after all dependencies from the subpass that it leaves",
    ),
    pytest.param(
        """
        submit q1
            pass 3 0->2 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            subpass 1
            subpass 2 i 0->1 after 1
            end
        """,
        ["WRITE_RACING_WRITE"],
        id="and after none from a subpass that used another layout",
    ),
    pytest.param(
        """
        submit q1
            pass 2 0->1 COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE, \
                0->EXTERNAL NONE > COPY/TRANSFER_READ
            subpass 0
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            subpass 1
            end i 0->1 after 0
            COPY_TRANSFER_READ i
        """,
        [],
        id="a final transition comes after a dependency into another subpass",
    ),
    pytest.param(
        """
        submit q1
            pass 2 1->EXTERNAL COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE > NONE, \
                0->EXTERNAL NONE > COPY/TRANSFER_READ
            subpass 0
            subpass 1
            COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE i color
            end i 0->1 after 1 used 0&1
            COPY_TRANSFER_READ i
        """,
        [],
        id="and before one out of any subpass that uses the attachment",
    ),
]


@pytest.mark.parametrize(("text", "expected"), READS + TRANSITIONS)
def test_both_judges_find_what_nothing_orders(text: str, expected: list[str]) -> None:
    findings, agreement = judge(text)
    assert [each.hazard for each in findings] == expected
    assert agreement.disagreements == ()

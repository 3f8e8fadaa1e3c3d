"""Streams in which several subpasses read one range: with what each write after them must be in order."""

from __future__ import annotations

import pytest

from harness.fuzz.agreement_fuzz import judge

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


@pytest.mark.parametrize(("text", "expected"), READS)
def test_a_write_is_held_against_the_reads_that_nothing_orders(text: str, expected: list[str]) -> None:
    findings, agreement = judge(text)
    assert [each.hazard for each in findings] == expected
    assert (agreement.disagreements, agreement.explained) == ((), ())

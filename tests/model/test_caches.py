"""Older rules about caches: remarks, not conflicts."""

from __future__ import annotations

from harness.report.conflicts import missing_text
from tests.support.effects import A, B, Effects, access, barrier, ranged
from tests.support.model_streams import FILL, FILL_TO_COPY, READ, Stream

COPY_TO_READ = ("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")


def remarks(*steps: Effects) -> list[str]:
    opinion = Stream().submit(*steps).judge()
    return [each.kind for each in opinion.remarks() if each.prior.command == "vkCmdAccess"]


def test_dirty_memory_must_not_be_invalidated() -> None:
    """It is enough that the invalidate is of the same memory, whatever stage or access it is for."""
    ordered = barrier("CLEAR", "COMPUTE_SHADER", "CLEAR", "COMPUTE_SHADER/SHADER_READ")
    assert remarks(FILL, ordered) == ["dirty-invalidate"]
    assert remarks(FILL, FILL_TO_COPY, READ) == []
    assert remarks(FILL, barrier("CLEAR/TRANSFER_WRITE", "BLIT"), barrier("BLIT", "COPY/TRANSFER_READ")) == []


def test_an_invalidate_must_not_race_with_a_write() -> None:
    assert remarks(FILL, barrier(*COPY_TO_READ)) == ["racing-invalidate"]
    assert remarks(FILL, ranged(*COPY_TO_READ, B)) == []
    assert remarks(FILL, ranged(*COPY_TO_READ, A, 32, 64)) == ["racing-invalidate"]
    assert remarks(barrier("NONE", "CLEAR/TRANSFER_WRITE"), FILL) == []


def test_remarks_are_no_conflicts() -> None:
    opinion = Stream().submit(FILL, barrier(*COPY_TO_READ), access("COPY_TRANSFER_READ", B)).judge()
    assert opinion.clean
    (remark,) = opinion.remarks()
    assert remark.spans == ((0, 64),)
    assert missing_text(remark).startswith("an execution dependency")

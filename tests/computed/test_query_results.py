"""Copies of query results: a reset query is not available, one in which nothing was drawn counts zero."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import vkharness
from vkharness.computed.expected_bytes import compute
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig

BEFORE = b"\x77" * 16


def known(
    flags: Sequence[str], *, by_host: bool = False, again: bool = False, kind: str = "OCCLUSION", wait: bool = False
) -> str:
    """Which of 16 bytes are known behind the copy of a query that was reset, and with `again` used once more: '=' as
    before, '0' zero, '?' not. What is known is what lavapipe leaves."""
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        target, pool = rig.buffer(16, data=BEFORE), rig.queries(kind, 1)
        with rig.submission() as commands:
            if kind == "TIMESTAMP":
                commands.timestamp(pool)
            else:
                commands.query(pool, 0)
            if not by_host:
                commands.reset_queries(pool)
            if again and kind == "TIMESTAMP":
                commands.timestamp(pool)
            elif again:
                commands.query(pool, 0)
        rig.wait()
        if by_host:
            rig.host_reset(pool)
        with rig.submission() as commands:
            commands.copy_results(pool, target, stride=16 if "64" in flags else 8, flags=flags, wait=wait)
        rig.wait()
        buffer = session.id_of("VkBuffer", target.handle)
    blocks = session.blocks or []
    assert buffer is not None
    computed = compute(blocks)
    serial = run_serial(blocks, "lavapipe")
    assert computed.beside(serial).surfaces[buffer, None].data.tolist() == serial.surfaces[buffer, None].data.tolist()
    cells = computed.cells[buffer, None]
    signs = {0x77: "=", 0: "0"}
    pairs = zip(cells.data.tolist(), cells.known.tolist(), strict=True)
    return "".join(signs[byte] if is_known else "?" for byte, is_known in pairs)


@pytest.mark.driver
@pytest.mark.parametrize("by_host", [False, True])
@pytest.mark.parametrize("kind", ["OCCLUSION", "TIMESTAMP"])
def test_a_reset_query_is_not_available(by_host: bool, kind: str) -> None:
    assert known(["WITH_AVAILABILITY"], by_host=by_host, kind=kind) == "????0000========"


@pytest.mark.driver
def test_words_have_the_size_of_the_result() -> None:
    assert known(["64", "WITH_AVAILABILITY"]) == "????????00000000"
    assert known([]) == "????============"


@pytest.mark.driver
def test_a_query_in_which_nothing_was_drawn_counts_zero() -> None:
    assert known([], again=True, wait=True) == "0000============"
    assert known(["64"], again=True, wait=True) == "00000000========"
    assert known(["PARTIAL"], again=True) == "0000============"


@pytest.mark.driver
def test_that_a_query_is_available_is_any_number_but_zero() -> None:
    assert known(["WITH_AVAILABILITY"], again=True, wait=True) == "0000????========"
    assert known(["WITH_AVAILABILITY"], again=True) == "????????========"
    assert known(["WITH_AVAILABILITY", "PARTIAL"]) == "????????========"


@pytest.mark.driver
def test_timestamps_are_not_known() -> None:
    assert known([], again=True, kind="TIMESTAMP", wait=True) == "????============"


@pytest.mark.driver
def test_what_was_drawn_is_counted_by_the_driver_alone() -> None:
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        image, pipeline = rig.target(), rig.graphics("gradient")
        target, pool = rig.buffer(8, data=BEFORE[:8]), rig.queries(count=2)
        with rig.submission() as commands:
            commands.transition(image)
            commands.reset_queries(pool)
            commands.begin_rendering(RenderingAttachment(rig.view(image)))
            commands.bind(pipeline)
            commands.query(pool, 0, inside=commands.draw)
            commands.query(pool, 1)
            commands.end_rendering()
            commands.copy_results(pool, target, first=1)
            commands.copy_results(pool, target, offset=4)
        rig.wait()
        buffer = session.id_of("VkBuffer", target.handle)
    assert buffer is not None
    cells = compute(session.blocks or []).cells[buffer, None]
    assert (cells.known.tolist(), cells.data[:4].tolist()) == ([True] * 4 + [False] * 4, [0] * 4)

"""The model: commands and pipeline barriers, rule by rule."""

from __future__ import annotations

import pytest

from tests.support.effects import ALL_FLAGS, IMAGE, A, B, access, barrier, ranged
from tests.support.model_streams import FILL, FILL_TO_COPY, READ, WRITE, Stream, run
from vkharness.model.stages import BESIDE_STAGES, access_scope, concrete, first_scope, second_scope
from vkharness.report.conflicts import missing_text
from vkharness.spec import scopes
from vkharness.spec._generated import ACCESSES, STAGES
from vkharness.trace.effects import Barrier, Execute

VERTEX_READ, FRAGMENT_READ = (access(f"{stage}_SHADER_SHADER_SAMPLED_READ", IMAGE) for stage in ("VERTEX", "FRAGMENT"))
VERTEX_WRITE, FRAGMENT_WRITE = (
    access(f"{stage}_SHADER_SHADER_STORAGE_WRITE", IMAGE) for stage in ("VERTEX", "FRAGMENT")
)


@pytest.mark.parametrize("queue_flags", [ALL_FLAGS, 0x1, 0x2, 0x4, 0x7])
def test_scopes_are_those_of_the_other_expansion(queue_flags: int) -> None:
    """Two implementations that share only the tables. What no stage performs has a mark of its own in each of them."""
    ends = scopes.TOP | scopes.BOTTOM
    staged = sum(1 << kind.index for kind in scopes.ACCESS_KINDS[1:] if kind.stage < 1 << 64)
    for stage in STAGES.values():
        for mine, other in ((first_scope, scopes.execution_scope_src), (second_scope, scopes.execution_scope_dst)):
            assert mine(stage, queue_flags) & (1 << 64) - 1 == other(stage, queue_flags) & ~ends
            assert bool(mine(stage, queue_flags) & BESIDE_STAGES) == bool(other(stage, queue_flags) & ends)
        assert concrete(stage, queue_flags) == scopes.expand_stages(stage, queue_flags)
        for accesses in ACCESSES.values():
            expected = scopes.access_scope(stage, accesses, queue_flags) & staged
            assert access_scope(stage, accesses, queue_flags) == expected


def test_commands_are_unordered_by_themselves() -> None:
    assert run(FILL, READ) == ["unordered"]
    assert run(READ, FILL) == ["unordered"]
    assert run(FILL, FILL) == ["unordered"]
    assert run(READ, READ) == []


def test_a_write_is_made_available_and_visible() -> None:
    assert run(FILL, FILL_TO_COPY, READ) == []
    assert run(FILL, barrier("CLEAR", "COPY"), READ) == ["unavailable"]
    assert run(FILL, barrier("CLEAR", "COPY/TRANSFER_READ"), READ) == ["unavailable"]
    assert run(FILL, barrier("CLEAR/TRANSFER_WRITE", "COPY"), READ) == ["invisible"]
    assert run(FILL, barrier("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_WRITE"), READ) == ["invisible"]
    assert run(FILL, barrier("COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"), READ) == ["unordered"]


def test_a_write_after_a_read_needs_an_order_alone() -> None:
    assert run(READ, barrier("COPY", "CLEAR"), FILL) == []
    assert run(READ, barrier("CLEAR", "COPY"), FILL) == ["unordered"]


def test_a_write_after_a_write_needs_a_memory_dependency() -> None:
    assert run(FILL, barrier("CLEAR", "CLEAR"), FILL) == ["unavailable"]
    assert run(FILL, barrier("CLEAR/TRANSFER_WRITE", "CLEAR"), FILL) == ["invisible"]
    assert run(FILL, barrier("CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE"), FILL) == []


def test_a_write_after_a_read_that_saw_the_earlier_write() -> None:
    after = barrier("COPY", "CLEAR")
    assert run(FILL, FILL_TO_COPY, READ, after, FILL) == []
    assert run(FILL, FILL_TO_COPY, access("COPY_TRANSFER_READ", A, 0, 32), after, FILL) == ["invisible"]


def test_visible_to_one_read_is_not_visible_to_another_kind() -> None:
    blit = access("BLIT_TRANSFER_READ")
    found = Stream().submit(FILL, FILL_TO_COPY, READ, barrier("COPY", "BLIT"), blit).judge()
    assert [each.kind for each in found.conflicts] == ["invisible"]


def test_dependencies_of_one_command_do_not_chain_and_those_of_two_do() -> None:
    first, second = ("COPY", "COMPUTE_SHADER"), ("COMPUTE_SHADER", "CLEAR")
    assert run(READ, barrier(*first, *second), FILL) == ["unordered"]
    assert run(READ, barrier(*first), barrier(*second), FILL) == []
    assert run(READ, barrier(*second), barrier(*first), FILL) == ["unordered"]


def test_availability_and_visibility_may_be_apart_on_a_chain() -> None:
    away, back = ("CLEAR/TRANSFER_WRITE", "COMPUTE_SHADER"), ("COMPUTE_SHADER", "COPY/TRANSFER_READ")
    assert run(FILL, barrier(*away), barrier(*back), READ) == []
    assert run(FILL, barrier(*away, *back), READ) == ["unordered"]
    assert run(FILL, barrier("CLEAR/TRANSFER_WRITE", "BLIT"), barrier(*back), READ) == ["unordered"]


def test_logically_earlier_and_later_stages_are_ordered_but_their_accesses_are_not_covered() -> None:
    assert run(VERTEX_READ, barrier("FRAGMENT_SHADER", "FRAGMENT_SHADER"), FRAGMENT_WRITE) == []
    assert run(FRAGMENT_READ, barrier("VERTEX_SHADER", "VERTEX_SHADER"), FRAGMENT_WRITE) == ["unordered"]
    to_vertex = barrier("VERTEX_SHADER/SHADER_WRITE", "VERTEX_SHADER/SHADER_READ")
    assert run(VERTEX_WRITE, to_vertex, FRAGMENT_READ) == ["invisible"]


def test_nothing_and_the_ends_of_the_pipe() -> None:
    assert run(READ, barrier("NONE", "CLEAR"), FILL) == ["unordered"]
    assert run(READ, barrier("TOP_OF_PIPE", "CLEAR"), FILL) == ["unordered"]
    assert run(READ, barrier("COPY", "BOTTOM_OF_PIPE"), FILL) == ["unordered"]
    assert run(READ, barrier("COPY", "NONE"), FILL) == ["unordered"]
    assert run(READ, barrier("BOTTOM_OF_PIPE", "TOP_OF_PIPE"), FILL) == []
    assert run(READ, barrier("COPY", "BOTTOM_OF_PIPE"), barrier("BOTTOM_OF_PIPE", "CLEAR"), FILL) == []
    assert run(READ, barrier("COPY", "TOP_OF_PIPE"), barrier("TOP_OF_PIPE", "CLEAR"), FILL) == []


def test_a_range_limits_memory_but_not_execution() -> None:
    write_to_read = ("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
    assert run(FILL, ranged(*write_to_read, A), READ) == []
    assert run(FILL, ranged(*write_to_read, B), READ) == ["unavailable"]
    assert run(READ, ranged("COPY/TRANSFER_READ", "CLEAR/TRANSFER_WRITE", B), FILL) == []
    found = Stream().submit(FILL, ranged(*write_to_read, A, 0, 48), READ).judge()
    assert [each.spans for each in found.conflicts] == [((48, 64),)]


def test_two_ranges_cover_a_write_together() -> None:
    def pending(begin: int, end: int) -> Barrier:
        return ranged("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", A, begin, end)

    assert run(FILL, pending(0, 32), pending(32, 64), READ) == []
    assert run(FILL, pending(0, 32), pending(40, 64), READ) == ["unavailable"]


def test_a_range_makes_available_and_another_command_makes_all_visible() -> None:
    available = ranged("CLEAR/TRANSFER_WRITE", "COPY", A)
    assert run(FILL, available, barrier("COPY", "COPY/TRANSFER_READ"), READ) == []
    assert run(FILL, ranged("CLEAR/TRANSFER_WRITE", "COPY", B), barrier("COPY", "COPY/TRANSFER_READ"), READ) == [
        "unavailable"
    ]


def test_only_the_last_write_must_be_visible() -> None:
    again = barrier("CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE")
    assert run(FILL, again, FILL, FILL_TO_COPY, READ) == []
    assert run(FILL, again, access("CLEAR_TRANSFER_WRITE", A, 0, 32), ranged(*COPIES, A, 0, 32), READ) == ["invisible"]


COPIES = ("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")


def test_atomics_are_unordered_among_themselves_and_write() -> None:
    add = access("COMPUTE_SHADER_SHADER_STORAGE_READ", atomic=True)
    assert run(add, add) == []
    assert run(add, READ) == ["unordered"]
    assert run(add, barrier("COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ"), READ) == []
    assert run(add, barrier("COMPUTE_SHADER/SHADER_STORAGE_READ", "COPY/TRANSFER_READ"), READ) == ["unavailable"]


def test_markers_are_unordered_among_themselves() -> None:
    marker = access("COPY_TRANSFER_WRITE", marker=True)
    assert run(marker, marker) == []
    assert run(marker, WRITE) == ["unordered"]


def test_accesses_of_one_command_do_not_conflict() -> None:
    assert run((READ, WRITE)) == []
    assert run((READ, WRITE), (READ, WRITE)) == ["unordered"] * 2


def test_secondary_command_buffers_take_their_place() -> None:
    stream = Stream()
    inner = stream.commands(FILL_TO_COPY, READ)
    assert stream.submit(FILL, Execute(((7, inner),))).kinds() == []
    stream = Stream()
    found = stream.submit(FILL, Execute(((7, stream.commands(READ)),))).judge()
    assert [(each.kind, each.current.command_buffer) for each in found.conflicts] == [("unordered", 7)]


def test_the_first_figure_of_the_reference() -> None:
    """A barrier from VERTEX_SHADER and transfers to TOP_OF_PIPE between two draws: the first draw's vertex shader is
    complete before any stage of the second; its fragment shader is not."""
    figure = barrier("VERTEX_SHADER|ALL_TRANSFER", "TOP_OF_PIPE")
    copy = access("COPY_TRANSFER_WRITE", IMAGE)
    assert run(VERTEX_READ, figure, copy) == []
    assert run(VERTEX_READ, figure, FRAGMENT_WRITE) == []
    assert run(FRAGMENT_READ, figure, copy) == ["unordered"]


def test_the_second_figure_of_the_reference() -> None:
    """The first draw's vertex shader writes an image that an image barrier makes available and a global one, in the
    same command, visible. They do not chain today: barriers of one command are independent."""
    write = access("VERTEX_SHADER_SHADER_STORAGE_WRITE", IMAGE)
    available = ranged("VERTEX_SHADER/SHADER_WRITE", "FRAGMENT_SHADER", IMAGE)
    visible = barrier("VERTEX_SHADER", "FRAGMENT_SHADER/SHADER_READ")
    together = Barrier((*available.globals, *visible.globals), ranges=available.ranges)
    assert run(write, together, FRAGMENT_READ) == ["invisible"]
    assert run(write, available, barrier("FRAGMENT_SHADER", "FRAGMENT_SHADER/SHADER_READ"), FRAGMENT_READ) == []


def test_what_is_missing_and_how_far_the_chain_goes() -> None:
    found = Stream().submit(FILL, barrier("CLEAR/TRANSFER_WRITE", "BLIT"), READ).judge().conflicts[0]
    nodes = found.order.nodes
    chain = [nodes[at].label for at in found.order.chain(found.prior.node, found.current.node)]
    assert missing_text(found).startswith(
        "a memory dependency from VK_PIPELINE_STAGE_2_CLEAR_BIT/VK_ACCESS_2_TRANSFER_WRITE"
    )
    assert missing_text(found).endswith("nothing orders them")
    assert [each.split(" (")[0] for each in chain] == ["vkCmdAccess", "vkCmdBarrier", "vkCmdBarrier"]
    assert chain[-1].endswith("to VK_PIPELINE_STAGE_2_BLIT_BIT")


def test_what_no_mask_can_name_is_missing_by_its_name_alone() -> None:
    written = access("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", IMAGE)
    found = Stream().submit(written, access("IMAGE_LAYOUT_TRANSITION", IMAGE)).judge().conflicts[0]
    assert " to LAYOUT_TRANSITION: " in missing_text(found)

"""The model: submits, fences, the host, and layout transitions, rule by rule."""

from __future__ import annotations

from tests.support.effects import IMAGE, A, access, barrier, ranged
from tests.support.model_streams import FILL, FILL_TO_COPY, READ, WRITE, Stream, run
from vkharness.trace.effects import Destroyed, FenceReset, HostWaited
from vkharness.trace.host_effects import HostAccess

CLEAR, SAMPLE = access("CLEAR_TRANSFER_WRITE", IMAGE), access("COPY_TRANSFER_READ", IMAGE)


def test_the_order_of_submits_orders_nothing() -> None:
    assert Stream().submit(FILL).submit(READ).kinds() == ["unordered"]


def test_a_barrier_covers_earlier_and_later_submits_of_its_queue() -> None:
    assert Stream().submit(FILL).submit(FILL_TO_COPY).submit(READ).kinds() == []
    assert Stream().submit(FILL).submit(FILL_TO_COPY, queue=2).submit(READ).kinds() == ["unordered"]


def test_a_fence_that_the_host_waited_for_and_the_next_submit() -> None:
    assert Stream().submit(FILL, fence=9).wait(9).submit(READ).kinds() == []
    assert Stream().submit(FILL, fence=9).wait(9).submit(READ, queue=2).kinds() == []
    assert Stream().submit(FILL, fence=9).submit(READ).wait(9).kinds() == ["unordered"]
    assert Stream().submit(FILL).wait().submit(READ).kinds() == []


def test_a_fence_covers_earlier_submits_of_its_queue_alone() -> None:
    assert Stream().submit(FILL).submit(fence=9).wait(9).submit(READ).kinds() == []
    assert Stream().submit(FILL).submit(fence=9, queue=2).wait(9).submit(READ).kinds() == ["unordered"]


def test_a_fence_that_was_reset_says_nothing() -> None:
    assert Stream().submit(FILL, fence=9).add(FenceReset((9,))).wait(9).submit(READ).kinds() == ["unordered"]


def test_host_writes_are_there_for_later_submits() -> None:
    assert Stream().host_write().submit(READ).submit(READ, queue=2).kinds() == []
    assert Stream().submit(READ).host_write().kinds() == ["unordered"]
    assert Stream().submit(FILL).host_write().kinds() == ["unordered"]
    assert Stream().submit(READ, fence=9).wait(9).host_write().submit(READ).kinds() == []


def test_host_writes_are_in_the_host_s_order() -> None:
    assert Stream().host_write().host_write().submit(READ).kinds() == []


def test_a_transition_is_a_write_between_the_two_scopes() -> None:
    move = ranged("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", IMAGE, move=True)
    assert run(CLEAR, move, SAMPLE) == []
    assert run(CLEAR, ranged("CLEAR", "COPY/TRANSFER_READ", IMAGE, move=True), SAMPLE) == ["unavailable"]
    assert run(CLEAR, ranged("NONE", "COPY/TRANSFER_READ", IMAGE, move=True), SAMPLE)[0] == "unordered"
    assert run(CLEAR, ranged("CLEAR/TRANSFER_WRITE", "COPY", IMAGE, move=True), SAMPLE) == ["invisible"]
    assert run(CLEAR, ranged("CLEAR/TRANSFER_WRITE", "NONE", IMAGE, move=True), SAMPLE) == ["unordered"]


def test_a_transition_sees_what_is_available() -> None:
    available = barrier("CLEAR/TRANSFER_WRITE", "BLIT")
    assert run(CLEAR, available, ranged("BLIT", "COPY/TRANSFER_READ", IMAGE, move=True), SAMPLE) == []
    assert run(CLEAR, available, ranged("COPY", "COPY/TRANSFER_READ", IMAGE, move=True), SAMPLE)[0] == "unordered"


def test_a_transition_needs_an_order_after_reads() -> None:
    assert run(SAMPLE, ranged("COPY", "NONE", IMAGE, move=True)) == []
    assert run(SAMPLE, ranged("NONE", "NONE", IMAGE, move=True)) == ["unordered"]


def test_all_commands_has_transitions_too() -> None:
    move = ranged("NONE", "NONE", IMAGE, move=True)
    assert run(CLEAR, barrier("CLEAR/TRANSFER_WRITE", "ALL_COMMANDS"), move) == []
    assert run(CLEAR, barrier("CLEAR/TRANSFER_WRITE", "TOP_OF_PIPE"), move) == []
    assert run(CLEAR, barrier("CLEAR/TRANSFER_WRITE", "CLEAR|COPY"), move) == ["unordered"]
    assert run(move, barrier("ALL_COMMANDS", "COPY/TRANSFER_READ"), SAMPLE) == []
    assert run(move, barrier("COPY", "COPY/TRANSFER_READ"), SAMPLE) == ["unordered"]


def test_transitions_of_one_queue_are_in_order_and_of_two_are_not() -> None:
    move = ranged("NONE", "NONE", IMAGE, move=True)
    assert run(move, move) == []
    assert Stream().submit(move).submit(move, queue=2).kinds() == ["unordered"]


def test_a_destroyed_resource_concerns_nobody() -> None:
    """A buffer is destroyed when its work is complete (VUID-vkDestroyBuffer-buffer-00922). Else the work goes on."""
    done = HostWaited()
    assert Stream().submit(FILL).add(done).add(Destroyed(A, span=(0, 64))).submit(READ).kinds() == []
    assert Stream().submit(FILL).add(Destroyed(A, span=(0, 64))).submit(READ).kinds() == ["unordered"]
    assert Stream().submit(FILL).add(Destroyed(A)).submit(READ).kinds() == []
    assert Stream().submit(CLEAR).add(Destroyed(IMAGE)).submit(SAMPLE).kinds() == []


def test_five_hundred_commands_take_seconds_at_most() -> None:
    """Not a clock: the number of nodes and of edges is what grows, and it stays quadratic."""
    steps = [step for _ in range(125) for step in (FILL, FILL_TO_COPY, READ, barrier("COPY", "CLEAR"))]
    opinion = Stream().submit(*steps).judge()
    assert opinion.clean
    assert len(opinion.order.nodes) < 1000
    assert sum(1 for _ in opinion.order.edges()) < 500 * 500


# -- what the host reads, flushes and invalidates ---------------------------------------------------------------------

TO_HOST = barrier("COPY/TRANSFER_WRITE", "HOST/HOST_READ")


def test_the_host_sees_what_a_dependency_gives_to_its_domain() -> None:
    assert Stream().submit(WRITE, TO_HOST).wait().host_read().kinds() == []
    assert Stream().submit(WRITE, TO_HOST).host_read().kinds() == ["unordered"]
    assert Stream().submit(WRITE).wait().host_read().kinds() == ["invisible"]  # complete, for the device alone
    everything = barrier("COPY/TRANSFER_WRITE", "ALL_COMMANDS/MEMORY_READ")
    assert Stream().submit(WRITE, everything).wait().host_read().kinds() == ["invisible"]


def test_a_later_submit_makes_nothing_visible_to_the_host() -> None:
    assert Stream().submit(WRITE).wait().submit().wait().host_read().kinds() == ["invisible"]
    assert Stream().submit(WRITE).wait().submit(TO_HOST).wait().host_read().kinds() == []


def test_host_memory_that_is_not_coherent_needs_an_invalidate_after_the_wait() -> None:
    assert Stream().submit(WRITE, TO_HOST).wait().invalidate().host_read(coherent=False).kinds() == []
    assert Stream().submit(WRITE, TO_HOST).wait().host_read(coherent=False).kinds() == ["invisible"]
    assert Stream().submit(WRITE, TO_HOST).invalidate().wait().host_read(coherent=False).kinds() == ["invisible"]
    pending = Stream().submit(WRITE, TO_HOST).wait().invalidate(0, 32).host_read(coherent=False).judge()
    assert [each.spans for each in pending.conflicts] == [((32, 64),)]


def test_host_writes_that_are_not_coherent_need_a_flush_before_the_submit() -> None:
    assert Stream().host_write(coherent=False).flush().submit(READ).kinds() == []
    assert Stream().host_write(coherent=False).submit(READ).kinds() == ["unavailable"]
    assert Stream().host_write(coherent=False).flush(0, 32).submit(READ).kinds() == ["unavailable"]


def test_an_invalidate_loses_dirty_memory() -> None:
    assert Stream().host_write(coherent=False).invalidate().kinds() == ["lost-host-write"]
    assert Stream().host_write(coherent=False).flush().invalidate().kinds() == []
    assert Stream().host_write(coherent=False).invalidate().invalidate().kinds() == ["lost-host-write"]


def test_whole_atoms_must_be_left_alone() -> None:
    same_stream = access("COPY_TRANSFER_READ", A, 32, 48)
    assert Stream().submit(same_stream).host_write(end=16, coherent=False, non_coherent_atom_size=64).kinds() == [
        "unordered"
    ]
    assert Stream().submit(same_stream).host_write(end=16, coherent=False, non_coherent_atom_size=32).kinds() == []


def test_host_accesses_of_resources_are_where_the_host_is() -> None:
    copied = HostAccess(99, "vkCopyMemoryToImageEXT", None, IMAGE, ((0, 64),), IMAGE, write=True)
    assert Stream().add(copied).submit(SAMPLE).kinds() == []
    assert Stream().submit(SAMPLE).add(copied).kinds() == ["unordered"]

"""Queue family ownership over plain stream events: who may use the contents of what (specification: "Resource Sharing
Mode", "Queue Family Ownership Transfer"), and how releases and acquires are ordered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.effects import Effects, access, dependency
from tests.support.judged import Device, operation, read, write
from tests.support.model_streams import Stream as ModelStream
from vkharness.layer.silence import reason_for_silence
from vkharness.layer.stream import Stream
from vkharness.report.sentences import explain
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkImageLayout
from vkharness.trace.effects import (
    FAMILIES_OUTSIDE,
    AutomaticTransition,
    Barrier,
    Command,
    Destroyed,
    Execute,
    PassBegin,
    PassEnd,
    QueueObtained,
    RangeBarrier,
    SubpassBegin,
)
from vkharness.trace.host_effects import HostWrote
from vkharness.trace.ownership_effects import SharedResource

BUFFER, IMAGE = 100, 102
G, C = 1, 2
"""Queues: of family 0 and of family 1."""
DST, READ_ONLY = VkImageLayout.TRANSFER_DST_OPTIMAL, VkImageLayout.SHADER_READ_ONLY_OPTIMAL
EXTERNAL, FOREIGN = FAMILIES_OUTSIDE


def device() -> Device:
    return Device({G: 0, C: 1})


def after(*steps: Effects) -> Device:
    """A device on which the host has waited for these steps of family 0."""
    held = device()
    held.finish(G, *steps)
    return held


def transfer(
    src: str = "NONE",
    dst: str = "NONE",
    resource: int = BUFFER,
    families: tuple[int, int] = (0, 1),
    span: tuple[int, int] = (0, 64),
    layouts: tuple[int, int] = (0, 0),
    all_stages: bool = False,
) -> Barrier:
    old, new = layouts
    given = dependency(src, dst)
    part = RangeBarrier(
        given,
        resource,
        (span,),
        resource,
        transition=old != new,
        old_layout=old,
        new_layout=new,
        src_family=families[0],
        dst_family=families[1],
        all_stages=all_stages,
    )
    return Barrier((given._replace(src_accesses=0, dst_accesses=0),) * all_stages, ranges=(part,))


WRITTEN, READ = "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ"
RELEASE, ACQUIRE = transfer(src=WRITTEN), transfer(dst=READ)


def handed_over(release: Barrier, acquire: Barrier, space: int = BUFFER) -> list[str]:
    """Written by family 0, released; acquired by family 1 behind a semaphore, read."""
    held = device()
    before = held.submit(G, write(space), release, signals=[operation(7)])
    return before + held.submit(C, acquire, read(space), waits=[operation(7)])


# -- contents ----------------------------------------------------------------------------------------------------------


def test_a_transfer_hands_contents_over() -> None:
    assert handed_over(RELEASE, ACQUIRE) == []


def test_a_read_by_another_family_needs_a_transfer() -> None:
    held = device()
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(C, read(BUFFER), waits=[operation(7)]) == ["ownership-not-transferred"]
    (finding,) = held.found
    assert reason_for_silence(finding, Stream([])) == "queue family ownership"
    assert finding.vuid == "SYNC-ownership-not-transferred"
    assert finding.prior_access == "SYNC_COPY_TRANSFER_WRITE"
    assert finding.ranges == ((0, 64),)
    assert explain(finding).missing == "a release by queue family 0 and an acquire by 1"
    assert explain(finding).message == (
        "vkCmdAccess needs the contents of VkBuffer 100, which belong to queue family 0 by vkCmdAccess. Missing: "
        "a release by queue family 0 and an acquire by 1."
    )


def test_a_wait_by_the_host_transfers_nothing() -> None:
    held = after(write(BUFFER))
    assert held.submit(C, read(BUFFER)) == ["ownership-not-transferred"]


def test_one_loss_is_told_once() -> None:
    held = device()
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(C, read(BUFFER), read(BUFFER), waits=[operation(7)]) == ["ownership-not-transferred"]


def test_a_read_makes_an_owner_too() -> None:
    held = device()
    held.submit(G, read(BUFFER))
    assert held.submit(C, read(BUFFER)) == ["ownership-without-contents"]
    held = device()
    held.validator.consume(HostWrote(0, None, BUFFER, (0, 4), coherent=True, non_coherent_atom_size=1))
    held.submit(G, read(BUFFER))
    assert held.submit(C, read(BUFFER)) == ["ownership-not-transferred"]


def test_what_overwrites_needs_no_transfer() -> None:
    held = device()
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(C, write(BUFFER), waits=[operation(7)], signals=[operation(8)]) == []
    assert held.submit(G, read(BUFFER), waits=[operation(8)]) == ["ownership-not-transferred"]


def test_only_what_was_overwritten_changes_hands() -> None:
    held = after(write(BUFFER))
    held.finish(C, write(BUFFER, 0, 32))
    assert held.submit(C, read(BUFFER, 0, 32)) == []
    assert held.submit(C, read(BUFFER)) == ["ownership-not-transferred"]
    assert held.found[0].ranges == ((32, 64),)


def test_atomics_need_the_contents() -> None:
    held = after(write(BUFFER))
    add = access("COMPUTE_SHADER_SHADER_STORAGE_READ", BUFFER, atomic=True)
    assert held.submit(C, add) == ["ownership-not-transferred"]


def test_queues_of_one_family_share() -> None:
    held = Device({G: 0, 3: 0, C: 1})
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(3, read(BUFFER), waits=[operation(7)]) == []


def test_a_concurrent_resource_belongs_to_all() -> None:
    held = device()
    held.take(SharedResource(BUFFER))
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(C, read(BUFFER), waits=[operation(7)]) == []


def test_a_new_resource_at_old_addresses_has_no_owner() -> None:
    held = after(write(BUFFER))
    held.take(Destroyed(BUFFER, span=(0, 64)))
    assert held.submit(C, read(BUFFER)) == []


def test_nothing_is_kept_of_what_is_destroyed() -> None:
    held = device()
    for resource in range(200, 300):
        if resource % 2:
            held.take(SharedResource(resource))
        held.finish(G, access("COPY_TRANSFER_WRITE", resource))
        held.take(Destroyed(resource, span=(0, 64), resource=resource))
    assert held.validator._ownership._shared == {}
    assert all(len(spans) == 0 for spans in held.validator._ownership._held.values())


def test_one_family_alone_is_not_followed() -> None:
    held = Device({G: 0, 3: 0})
    held.submit(G, write(BUFFER))
    assert not held.validator._ownership.active
    assert held.validator._ownership._held == {}


@pytest.mark.parametrize(("old", "met"), [(0, []), (DST, ["ownership-not-transferred"])])
def test_a_transition_keeps_contents_unless_from_undefined(old: int, met: list[str]) -> None:
    held = after(write(IMAGE))
    move = RangeBarrier(
        dependency("NONE", READ), IMAGE, ((0, 64),), IMAGE, transition=True, old_layout=old, new_layout=READ_ONLY
    )
    assert held.submit(C, Barrier((), ranges=(move,))) == met


@pytest.mark.parametrize(("old", "met"), [(0, []), (DST, ["ownership-not-transferred"])])
def test_the_same_in_a_render_pass(old: int, met: list[str]) -> None:
    held = after(write(IMAGE))
    move = AutomaticTransition(IMAGE, IMAGE, ((0, 64),), old, READ_ONLY)
    assert held.submit(C, (PassBegin(1, ()), SubpassBegin(0, transitions=(move,))), PassEnd()) == met


def test_secondaries_are_followed() -> None:
    held = after(write(BUFFER))
    inner = Command(900, "vkCmdInner", None, (read(BUFFER),))
    assert held.submit(C, Execute(((55, (inner,)),))) == ["ownership-not-transferred"]
    assert held.found[0].place.command == "vkCmdInner"


def test_presenting_needs_ownership() -> None:
    held = device()
    held.submit(G, write(IMAGE), signals=[operation(7)])
    assert held.present(C, IMAGE, waits=(7,)) == ["ownership-not-transferred"]
    held = device()
    held.submit(G, write(IMAGE), signals=[operation(7)])
    assert held.present(G, IMAGE, waits=(7,)) == []


# -- missing halves ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [G, C])
def test_a_release_without_an_acquire_leaves_the_contents_undefined_to_all(queue: int) -> None:
    held = after(write(BUFFER), RELEASE)
    assert held.submit(queue, read(BUFFER)) == ["ownership-not-acquired"]
    assert explain(held.found[0]).missing == "the acquire by queue family 1"
    assert held.found[0].prior_access == "SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"


@pytest.mark.parametrize("queue", [G, C])
def test_what_was_released_may_be_overwritten_by_all(queue: int) -> None:
    held = after(write(BUFFER), RELEASE)
    assert held.submit(queue, write(BUFFER)) == []


def test_an_acquire_needs_a_release() -> None:
    held = device()
    assert held.submit(C, ACQUIRE) == ["ownership-without-contents"]
    assert "after none" in explain(held.found[0]).message and held.found[0].hazard.is_advice
    held = device()
    held.submit(G, write(BUFFER), signals=[operation(7)])
    assert held.submit(C, ACQUIRE, read(BUFFER), waits=[operation(7)]) == ["ownership-not-released"]
    assert explain(held.found[0]).missing == "the release by queue family 0"


def test_a_release_is_acquired_once() -> None:
    held = after(write(BUFFER), RELEASE)
    assert held.submit(C, ACQUIRE) == []
    held.wait()
    assert held.submit(C, ACQUIRE) == ["ownership-not-released"]


def test_what_was_overwritten_since_cannot_be_acquired() -> None:
    held = after(write(BUFFER), RELEASE)
    held.finish(C, write(BUFFER, 0, 4))
    assert held.submit(C, ACQUIRE) == ["ownership-not-released"]
    assert held.found[0].ranges == ((0, 4),)


def test_two_releases_need_an_acquire_between() -> None:
    held = after(write(BUFFER), RELEASE)
    assert held.submit(G, RELEASE) == ["ownership-not-acquired"]


@pytest.mark.parametrize(
    "acquire",
    [
        transfer(dst=READ, span=(0, 32)),
        transfer(dst=READ, resource=BUFFER, layouts=(DST, READ_ONLY)),
        transfer(dst=READ, families=(2, 1)),
    ],
    ids=["range", "layouts", "families"],
)
def test_both_halves_must_match(acquire: Barrier) -> None:
    held = after(write(BUFFER), RELEASE)
    assert held.submit(C, acquire) == ["ownership-mismatch"]


def test_a_release_to_a_third_family_is_for_that_one() -> None:
    held = Device({G: 0, C: 1, 3: 2})
    held.finish(G, write(BUFFER), transfer(src=WRITTEN, families=(0, 2)))
    assert held.submit(C, ACQUIRE) == ["ownership-mismatch"]


def test_a_family_that_is_in_neither_half_transfers_nothing() -> None:
    held = Device({G: 0, C: 1, 3: 2})
    held.finish(G, write(BUFFER), RELEASE)
    assert held.submit(3, ACQUIRE) == []
    assert held.submit(C, read(BUFFER)) == ["ownership-not-acquired"]


# -- outside -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", [EXTERNAL, FOREIGN])
def test_what_went_outside_comes_back_by_an_acquire(outside: int) -> None:
    away, back = transfer(src=WRITTEN, families=(0, outside)), transfer(dst=READ, families=(outside, 0))
    held = Device({G: 0})
    held.finish(G, write(BUFFER), away)
    assert held.submit(G, read(BUFFER)) == ["ownership-not-acquired"]
    held = Device({G: 0})
    held.finish(G, write(BUFFER), away)
    assert held.submit(G, back, read(BUFFER)) == []


def test_what_comes_from_outside_was_released_there() -> None:
    assert Device({G: 0}).submit(G, transfer(dst=READ, families=(EXTERNAL, 0)), read(BUFFER)) == []


def test_a_concurrent_resource_goes_outside_and_comes_back_to_all() -> None:
    held = device()
    held.take(SharedResource(BUFFER))
    held.finish(G, write(BUFFER), transfer(src=WRITTEN, families=(VK_QUEUE_FAMILY_IGNORED, EXTERNAL)))
    assert held.submit(C, read(BUFFER)) == ["ownership-not-acquired"]
    held.wait()
    held.finish(G, write(BUFFER), transfer(src=WRITTEN, families=(VK_QUEUE_FAMILY_IGNORED, EXTERNAL)))
    held.finish(G, transfer(dst=READ, families=(EXTERNAL, VK_QUEUE_FAMILY_IGNORED)))
    assert held.submit(C, read(BUFFER)) == []


# -- order -------------------------------------------------------------------------------------------------------------


def test_a_release_is_ordered_like_a_write() -> None:
    held = device()
    assert held.submit(G, write(BUFFER), transfer()) == ["WRITE_AFTER_WRITE"]
    assert reason_for_silence(held.found[0], Stream([])) == "queue family ownership"
    assert "vkCmdBarrier transfers the ownership of VkBuffer 100" in explain(held.found[0]).message
    held = device()
    assert held.submit(G, read(BUFFER), transfer()) == ["WRITE_AFTER_READ"]
    held = device()
    assert held.submit(G, read(BUFFER), transfer(src="COPY")) == []


def test_a_release_makes_available_what_its_access_mask_names() -> None:
    held = device()
    assert held.submit(G, write(BUFFER), transfer(src="COPY")) == ["WRITE_AFTER_WRITE"]


def test_the_destination_of_a_release_is_ignored() -> None:
    held = device()
    assert held.submit(G, write(BUFFER), transfer(WRITTEN, READ), read(BUFFER)) == [
        "READ_AFTER_WRITE",
        "ownership-not-acquired",
    ]


def test_an_acquire_makes_visible_what_its_access_mask_names() -> None:
    assert handed_over(RELEASE, transfer(dst="COPY")) == ["READ_AFTER_WRITE"]
    assert handed_over(RELEASE, transfer(src="ALL_COMMANDS/MEMORY_WRITE", dst=READ)) == []


def test_an_acquire_needs_an_order_after_the_release() -> None:
    held = device()
    held.submit(G, write(BUFFER), RELEASE)
    assert held.submit(C, ACQUIRE) == ["WRITE_RACING_WRITE"]
    held = device()
    held.submit(G, write(BUFFER), RELEASE, signals=[operation(7)])
    assert held.submit(C, ACQUIRE, waits=[operation(7, "COMPUTE_SHADER")]) == ["WRITE_AFTER_WRITE"]
    held = device()
    held.submit(G, write(BUFFER), RELEASE, signals=[operation(7)])
    assert held.submit(C, transfer("COPY", READ), read(BUFFER), waits=[operation(7, "COPY")]) == ["WRITE_AFTER_WRITE"]
    held = device()
    held.submit(G, write(BUFFER), RELEASE, signals=[operation(7)])
    counted = transfer("COPY", READ, all_stages=True)
    assert held.submit(C, counted, read(BUFFER), waits=[operation(7, "COPY")]) == []


def test_a_barrier_for_all_commands_covers_an_acquire() -> None:
    held = device()
    held.submit(G, write(BUFFER), RELEASE, signals=[operation(7)])
    later = Barrier((dependency("ALL_COMMANDS", READ),))
    assert held.submit(C, transfer(dst="NONE"), later, read(BUFFER), waits=[operation(7)]) == []


STORED, LOADED = (access(f"FRAGMENT_SHADER_SHADER_STORAGE_{name}", BUFFER) for name in ("WRITE", "READ"))
STORE, LOAD = "FRAGMENT_SHADER/SHADER_STORAGE_WRITE", "FRAGMENT_SHADER/SHADER_STORAGE_READ"


def by_region(barrier: Barrier) -> Barrier:
    return replace(barrier, by_region=True)


def ask_both(*steps: Effects) -> tuple[list[str], list[str]]:
    """What both judges say of one batch of family 0: that of the model in its own words."""
    model = ModelStream().add(QueueObtained(G, 0)).submit(*steps, queue=G, family=0)
    return Device({G: 0}).submit(G, *steps), model.kinds()


def test_an_acquire_by_region_is_from_no_stage_and_holds_everywhere() -> None:
    """It is between no two framebuffer-space stages, whatever its first mask names, unless its stages count."""
    back = transfer(STORE, LOAD, families=(EXTERNAL, 0))
    assert ask_both(by_region(back), LOADED) == ([], [])
    counted = transfer(STORE, LOAD, families=(EXTERNAL, 0), all_stages=True)
    assert ask_both(counted, LOADED) == ([], [])
    assert ask_both(by_region(counted), LOADED) == (["READ_AFTER_WRITE"], ["unordered"])


def test_a_release_by_region_comes_after_its_first_scope() -> None:
    away = transfer(STORE, LOAD, families=(0, EXTERNAL))
    assert ask_both(STORED, by_region(away)) == ([], [])
    assert ask_both(STORED, by_region(transfer("FRAGMENT_SHADER", LOAD, families=(0, EXTERNAL)))) == (
        ["WRITE_AFTER_WRITE"],
        ["unavailable"],
    )
    after = Barrier((dependency("ALL_COMMANDS", READ),))
    assert ask_both(STORED, by_region(away), after, read(BUFFER)) == (["ownership-not-acquired"], ["ownership"])


def test_the_transition_of_a_transfer_is_submitted_twice() -> None:
    layouts = (DST, READ_ONLY)
    release = transfer(src=WRITTEN, resource=IMAGE, layouts=layouts)
    acquire = transfer(dst=READ, resource=IMAGE, layouts=layouts)
    assert handed_over(release, acquire, IMAGE) == []
    other = transfer(dst=READ, resource=IMAGE, layouts=(DST, 1))
    assert handed_over(release, other, IMAGE) == ["ownership-mismatch"]
    assert handed_over(transfer(resource=IMAGE, layouts=layouts), acquire, IMAGE) == ["WRITE_AFTER_WRITE"]
    assert handed_over(Barrier(()), acquire, IMAGE) == ["ownership-not-released"]
    assert handed_over(release, Barrier(()), IMAGE) == ["ownership-not-acquired"]

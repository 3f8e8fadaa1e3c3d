"""Handles to ids: fresh for each creation, gone with what owns them, found again when drivers repeat themselves."""

from __future__ import annotations

import random

import pytest

from vkharness.trace.handles import HandleRegistry


@pytest.fixture
def objects() -> HandleRegistry:
    return HandleRegistry()


def test_a_reused_handle_gets_a_new_id(objects: HandleRegistry) -> None:
    first = objects.create("VkBuffer", 0x10, 0)
    objects.retire(first)
    second = objects.create("VkBuffer", 0x10, 0)
    assert (first, second) == (1, 2)
    assert objects.table("VkBuffer")[0x10] == second


def test_types_have_handles_of_their_own(objects: HandleRegistry) -> None:
    buffer, image = objects.create("VkBuffer", 1, 0), objects.create("VkImage", 1, 0)
    assert objects.table("VkBuffer")[1] == buffer
    assert objects.table("VkImage")[1] == image
    assert buffer != image


def test_null_is_zero_and_never_created(objects: HandleRegistry) -> None:
    assert objects.create("VkFence", 0, 0) == 0
    assert objects.table("VkFence")[0] == 0
    objects.retire(0)
    assert objects.create("VkFence", 5, 0) == 1


def test_a_handle_from_before_gets_an_id_when_met(objects: HandleRegistry) -> None:
    met = objects.table("VkDevice")[0x99]
    assert met == objects.table("VkDevice")[0x99] == objects.see("VkDevice", 0x99, 0)
    objects.retire(met)
    assert objects.table("VkDevice")[0x99] != met


def test_get_like_commands_return_the_same_id(objects: HandleRegistry) -> None:
    device = objects.create("VkDevice", 1, 0)
    queue = objects.see("VkQueue", 2, device)
    assert objects.see("VkQueue", 2, device) == queue
    objects.retire(device)
    assert objects.see("VkQueue", 2, 0) != queue


def test_one_handle_given_twice_is_counted(objects: HandleRegistry) -> None:
    first, second = objects.create("VkSampler", 7, 0), objects.create("VkSampler", 7, 0)
    table = objects.table("VkSampler")
    assert first != second
    assert table[7] == second
    objects.retire(second)
    assert table[7] == first
    objects.retire(first)
    assert 7 not in table


def test_the_older_of_two_may_go_first(objects: HandleRegistry) -> None:
    first, second = objects.create("VkSampler", 7, 0), objects.create("VkSampler", 7, 0)
    objects.retire(first)
    assert objects.table("VkSampler")[7] == second
    objects.retire(second)
    assert 7 not in objects.table("VkSampler")


def test_what_a_parent_frees_goes_with_it(objects: HandleRegistry) -> None:
    device = objects.create("VkDevice", 1, 0)
    pool = objects.create("VkCommandPool", 2, device)
    buffers = [objects.create("VkCommandBuffer", raw, pool) for raw in (3, 4)]
    objects.retire(pool)
    assert not any(identity in objects.live for identity in (pool, *buffers))
    assert device in objects.live
    other = objects.create("VkBuffer", 5, device)
    objects.retire(device)
    assert other not in objects.live
    assert objects.create("VkCommandBuffer", 3, 0) > other


def test_resetting_a_pool_frees_its_sets_and_keeps_the_pool(objects: HandleRegistry) -> None:
    pool = objects.create("VkDescriptorPool", 1, 0)
    sets = [objects.create("VkDescriptorSet", raw, pool) for raw in (2, 3)]
    objects.retire_children(pool)
    assert pool in objects.live
    assert not any(identity in objects.live for identity in sets)
    assert objects.table("VkDescriptorPool")[1] == pool


def test_a_pointer_value_is_found_like_its_integer() -> None:
    class Pointer:
        """Hashes and compares by address, as cffi pointers do, and equals no integer."""

        def __init__(self, address: int) -> None:
            self.address = address

        def __hash__(self) -> int:
            return hash(("pointer", self.address))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Pointer) and other.address == self.address

    objects = HandleRegistry(lambda pointer: pointer.address, Pointer)
    table = objects.table("VkBuffer")
    first = objects.create("VkBuffer", 8, 0)
    assert table[Pointer(8)] == table[Pointer(8)] == table[8] == first
    objects.retire(first)
    second = objects.create("VkBuffer", 8, 0)
    assert table[Pointer(8)] == second
    third = objects.create("VkBuffer", 8, 0)
    assert table[Pointer(8)] == third
    assert table[Pointer(0)] == 0


def test_random_creations_and_destructions_against_a_list() -> None:
    """The model: all live creations in order; a handle means the newest of them."""
    rng = random.Random(3)
    for _ in range(50):
        objects = HandleRegistry()
        living: list[tuple[int, int]] = []
        given: set[int] = set()
        for _ in range(60):
            if living and rng.random() < 0.4:
                raw, identity = living.pop(rng.randrange(len(living)))
                objects.retire(identity)
            else:
                raw = rng.randrange(1, 6)
                identity = objects.create("VkSampler", raw, 0)
                assert identity not in given
                given.add(identity)
                living.append((raw, identity))
            for raw in range(1, 6):
                newest = [identity for each, identity in living if each == raw]
                assert objects.table("VkSampler").get(raw) == (newest[-1] if newest else None)

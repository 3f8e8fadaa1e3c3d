"""Litmus tests of the Vulkan memory model: the judge of races against the relations of the specification.

The expected answers of the named tests follow from "Memory Model"; `memory_model.py` says them from its definitions,
and `vkharness.races` from its vectors of numbers. Random programs are held against each other in the same way.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.races.litmus import LAYOUT, Program, by_the_judge, by_the_model, executed

WG, OTHER = 0, LAYOUT.group_size
"""The first invocations of two work groups; WG + 1 is in the subgroup of WG, WG + 2 in another one."""
SENT, GOT = "atomic write f device release +buffers", "atomic read f device acquire +buffers"
SENT_NEAR, GOT_NEAR = "atomic write f group release +buffers", "atomic read f group acquire +buffers"
BARRIER = "barrier group ordered +buffers"
FULL = f"{BARRIER} make-available make-visible"
FAR_AWAY = "fence device ordered +buffers make-available make-visible"
FLAG, SEEN = "atomic write f device", "atomic read f device"

ORDERED: dict[str, Program] = {
    "message": {WG: ["write x device", SENT], OTHER: [GOT, "read x device"]},
    "message_in_a_group": {WG: ["write x group", SENT_NEAR], WG + 2: [GOT_NEAR, "read x group"]},
    "message_in_a_subgroup": {
        WG: ["write x subgroup", "atomic write f subgroup release +buffers"],
        WG + 1: ["atomic read f subgroup acquire +buffers", "read x subgroup"],
    },
    "message_by_semantics": {WG: ["write x", f"{SENT} make-available"], OTHER: [f"{GOT} make-visible", "read x"]},
    "message_by_fences": {WG: ["write x", FAR_AWAY, FLAG], OTHER: [SEEN, FAR_AWAY, "read x"]},
    "release_by_a_fence": {WG: ["write x device", FAR_AWAY, FLAG], OTHER: [GOT, "read x device"]},
    "acquire_by_a_fence": {WG: ["write x device", SENT], OTHER: [SEEN, FAR_AWAY, "read x device"]},
    "message_in_an_image": {
        WG: ["write X device", "atomic write f device release +images"],
        OTHER: ["atomic read f device acquire +images", "read X device"],
    },
    "over_a_third": {
        WG: ["write x device", SENT], 1: [GOT, "atomic write g device release +buffers"],
        OTHER: ["atomic read g device acquire +buffers", "read x device"],
    },
    "over_an_update": {
        WG: ["write x device", SENT], 1: ["atomic update f device ordered +buffers"], OTHER: [GOT, "read x device"],
    },
    "release_sequence": {WG: ["write x device", SENT], 1: ["atomic update f device"], OTHER: [GOT, "read x device"]},
    "release_sequence_behind_a_fence": {
        WG: ["write x device", FAR_AWAY, FLAG], 1: ["atomic update f device"], OTHER: [GOT, "read x device"],
    },
    "write_after_read": {WG: ["read x private", "read y device", SENT], OTHER: [GOT, "write y"]},
    "write_after_read_by_another_descriptor": {WG: ["read x device", SENT], OTHER: [GOT, "write x' device"]},
    "write_after_write": {WG: ["write x device", SENT], OTHER: [GOT, "write x"]},
    "coherence_of_reads": {WG: [FLAG, FLAG], OTHER: [SEEN, SEEN]},
    "coherence_of_writes": {WG: [FLAG, "atomic write f device"], 2: ["atomic write f device"], OTHER: [SEEN, SEEN]},
    "store_buffering": {WG: [FLAG, "atomic read g device"], OTHER: ["atomic write g device", SEEN]},
    "load_buffering": {WG: [SEEN, "atomic write g device"], OTHER: ["atomic read g device", FLAG]},
    "barrier": {WG: ["write x group", BARRIER, "read y group"], 2: ["write y group", BARRIER, "read x group"]},
    "barrier_of_the_subgroup": {
        WG: ["write x", FULL.replace("group", "subgroup")], 1: [FULL.replace("group", "subgroup"), "read x"],
    },
    "barrier_that_makes_available": {WG: ["write x", FULL], 2: [FULL, "read x"]},
    "fences_around_a_barrier": {
        WG: ["write x", "fence group release +buffers make-available", "barrier group"],
        2: ["barrier group", "fence group acquire +buffers make-visible", "read x"],
    },
    "barrier_then_a_message": {
        WG: ["write x device", BARRIER], 2: [BARRIER, SENT], OTHER: [GOT, "read x device"],
    },
    "availability_chain": {
        WG: ["write x group", SENT_NEAR], 2: [GOT_NEAR, "atomic write g device release +buffers make-available"],
        OTHER: ["atomic read g device acquire +buffers", "read x device"],
    },
    "visibility_chain": {
        WG: ["write x device", SENT], OTHER: [f"{GOT} make-visible", "atomic write g group release +buffers"],
        OTHER + 2: ["atomic read g group acquire +buffers make-visible", "read x"],
    },
    "chain_over_another_class": {
        WG: ["write x", "atomic write F device release +buffers +images make-available"],
        1: ["atomic read F device acquire +images", "atomic write G device release +images"],
        OTHER: ["atomic read G device acquire +buffers +images make-visible", "read x"],
    },
    "second_read": {WG: ["write x device", SENT], OTHER: [GOT, "read x device", "read x"]},
    "second_write": {WG: ["write x", "write x device", SENT], OTHER: [GOT, "read x device"]},
    "atomic_behind_a_plain_write": {WG: ["write f", SENT], OTHER: [GOT, "read f device"]},
    "atomic_is_available": {WG: [SENT], OTHER: [GOT, "read f device"]},
    "private_alone": {WG: ["write x private", "read x private", "write x"]},
}  # fmt: skip

RACES: dict[str, Program] = {
    "nothing": {WG: ["write x device"], OTHER: ["read x device"]},
    "relaxed_write": {WG: ["write x device", FLAG], OTHER: [GOT, "read x device"]},
    "relaxed_read": {WG: ["write x device", SENT], OTHER: [SEEN, "read x device"]},
    "message_not_available": {WG: ["write x", SENT], OTHER: [GOT, "read x device"]},
    "message_not_visible": {WG: ["write x device", SENT], OTHER: [GOT, "read x"]},
    "message_available_to_the_group": {WG: ["write x group", SENT], OTHER: [GOT, "read x device"]},
    "message_visible_from_the_group": {WG: ["write x device", SENT], OTHER: [GOT, "read x group"]},
    "another_location_available": {
        WG: ["write x", "write y device", SENT], OTHER: [GOT, "read x device"],
    },
    "made_available_in_another_class": {
        WG: ["write x", "fence device release +images make-available", SENT], OTHER: [GOT, "read x device"],
    },
    "private_write": {WG: ["write x private", FAR_AWAY, FLAG], OTHER: [SEEN, FAR_AWAY, "read x device"]},
    "private_read": {WG: ["write x device", SENT], OTHER: [f"{GOT} make-visible", "read x private"]},
    "private_read_before": {WG: ["read x private", SENT], OTHER: [GOT, "write x device"]},
    "group_scope_over_groups": {WG: ["write x device", SENT_NEAR], OTHER: [GOT_NEAR, "read x device"]},
    "subgroup_scope_in_a_group": {
        WG: ["write x device", "atomic write f subgroup release +buffers"],
        2: ["atomic read f subgroup acquire +buffers", "read x device"],
    },
    "fences_of_the_group_over_groups": {
        WG: ["write x device", "fence group release +buffers", FLAG],
        OTHER: [SEEN, "fence group acquire +buffers", "read x device"],
    },
    "release_of_another_class": {
        WG: ["write x device", "atomic write f device release +images"], OTHER: [GOT, "read x device"],
    },
    "acquire_of_another_class": {
        WG: ["write x device", SENT], OTHER: ["atomic read f device acquire +images", "read x device"],
    },
    "fence_that_does_not_name_the_flag": {
        WG: ["write x device", "fence device release +buffers", "atomic write F device"],
        OTHER: ["atomic read F device", "fence device acquire +buffers", "read x device"],
    },
    "two_fences_of_two_scopes": {
        WG: [
            "write x device", "fence group release +buffers +images", "fence device release +images",
            "atomic write F device",
        ],
        OTHER: [
            "atomic read F device", "fence device acquire +images", "fence group acquire +buffers +images",
            "read x device",
        ],
    },
    "overwritten_release": {WG: ["write x device", SENT, FLAG], OTHER: [GOT, "read x device"]},
    "overwritten_by_another": {WG: ["write x device", SENT], 1: [FLAG], OTHER: [GOT, "read x device"]},
    "another_descriptor": {WG: ["write x device", SENT], OTHER: [GOT, "read x' device"]},
    "flag_by_another_descriptor": {WG: ["write x device", SENT], OTHER: [GOT.replace("f", "f'", 1), "read x device"]},
    "atomics_of_two_scopes": {WG: ["atomic write f group"], OTHER: ["atomic read f device"]},
    "atomic_and_plain": {WG: [FLAG], OTHER: [SEEN, "read f device"]},
    "barrier_without_semantics": {WG: ["write x group", "barrier group"], 2: ["barrier group", "read x group"]},
    "barrier_of_another_class": {
        WG: ["write x group", "barrier group ordered +images"], 2: ["barrier group ordered +images", "read x group"],
    },
    "barrier_of_the_subgroup": {
        WG: ["write x group", "barrier subgroup ordered +buffers"],
        2: ["barrier subgroup ordered +buffers", "read x group"],
    },
    "barrier_that_makes_nothing_visible": {WG: ["write x group", BARRIER], 2: [BARRIER, "read x"]},
    "chain_without_its_begin": {
        WG: ["write x", SENT_NEAR], 2: [GOT_NEAR, "atomic write g device release +buffers make-available"],
        OTHER: ["atomic read g device acquire +buffers", "read x device"],
    },
    "chain_without_its_end": {
        WG: ["write x device", SENT], OTHER: [f"{GOT} make-visible", "atomic write g group release +buffers"],
        OTHER + 2: ["atomic read g group acquire +buffers", "read x"],
    },
}  # fmt: skip
PLAIN, ATOMIC, SCOPE = "xxxyX", "fffgF", ("device", "device", "group", "subgroup")
NAMED = ("+buffers", "+buffers", "+images", "+buffers +images")


@pytest.mark.parametrize("name", ORDERED)
def test_what_the_memory_model_orders_is_no_race(name: str) -> None:
    operations = executed(ORDERED[name])
    assert (by_the_model(operations), by_the_judge(operations)) == (set(), set())


@pytest.mark.parametrize("name", RACES)
def test_what_it_does_not_order_is_one(name: str) -> None:
    operations = executed(RACES[name])
    assert by_the_judge(operations) == by_the_model(operations) != set()


@pytest.mark.parametrize("first", range(0, 96, 12))
def test_random_programs_are_judged_as_the_relations_say(first: int) -> None:
    for seed in range(first, first + 12):
        program = random_program(Random(seed))
        operations = executed(program)
        assert by_the_judge(operations) == by_the_model(operations), program


def random_program(rng: Random) -> Program:
    """Two to four invocations of two work groups, with control barriers in some."""
    people = sorted(rng.sample(range(2 * LAYOUT.group_size), rng.randint(2, 4)))
    barriers = {
        group: rng.choice((None, None, "barrier group", BARRIER, FULL, FULL.replace("group", "subgroup")))
        for group in (0, 1)
    }
    scope = rng.choice(SCOPE)
    program = {}
    for each in people:
        program[each] = [_line(rng, scope) for _ in range(rng.randint(1, 4))]
        barrier = barriers[LAYOUT.home(each).group]
        if barrier is not None:
            program[each] += [barrier, *(_line(rng, scope) for _ in range(rng.randint(0, 3)))]
    return program


def _line(rng: Random, scope: str) -> str:
    """An operation; all atomics have one scope."""
    kind = rng.random()
    if kind < 0.45:
        said = rng.choice(("", "private", *SCOPE))
        return f"{rng.choice(('write', 'read'))} {rng.choice(PLAIN)}{chr(39) * (rng.random() < 0.05)} {said}"
    if kind < 0.85:
        verb, said = rng.choice((("read", "acquire"), ("write", "release"), ("update", "ordered")))
        line = f"atomic {verb} {rng.choice(ATOMIC)} {scope}"
        return f"{line} {_semantics(rng, said)}" if rng.random() < 0.75 else line
    return f"fence {rng.choice(SCOPE[:3])} {_semantics(rng, rng.choice(('acquire', 'release', 'ordered')))}"


def _semantics(rng: Random, said: str) -> str:
    words = [said, rng.choice(NAMED)]
    words += ["make-available"] * (said != "acquire" and rng.random() < 0.5)
    words += ["make-visible"] * (said != "release" and rng.random() < 0.5)
    return " ".join(words)

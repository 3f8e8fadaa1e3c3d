"""Tokens of sets of events: an access with the first one is covered by each later one, however they are given up."""

from __future__ import annotations

import random

import pytest

from vkharness.syncval.tokens import SetTokens, Tokens, covered


@pytest.mark.parametrize("seed", range(20))
def test_an_access_is_covered_by_the_sets_after_it(seed: int) -> None:
    """Against marks that name every set: accesses come and get the first token after them, sets come and are over."""
    chosen, tokens = random.Random(seed), SetTokens(Tokens(1))
    live: list[tuple[str, int]] = []
    accesses: list[tuple[set[tuple[str, int]], frozenset[int]]] = []
    most = chosen.choice((1, 3, 12, 100))
    for _ in range(400):
        if chosen.random() < 0.5:
            accesses = [*accesses[-20:], (set(), frozenset())]
        if len(live) < most and chosen.random() < 0.6:
            scope = chosen.choice("ab")
            token = tokens.take(scope)
            assert (scope, token) not in live
            live.append((scope, token))
            accesses = [
                ({*marks, (scope, token)}, held if covered(held, token) else held | {token}) for marks, held in accesses
            ]
        elif live:
            gone = live.pop(chosen.choice((0, -1, chosen.randrange(len(live)))))
            later = tokens.give(gone[1])
            accesses = [(marks - {gone}, _without(held, gone[1], later)) for marks, held in accesses]
        for marks, held in accesses:
            assert {each for each in live if covered(held, each[1])} == marks
            assert len(held) <= 10, "an access has the token of each set"


def _without(held: frozenset[int], token: int, later: int) -> frozenset[int]:
    if token not in held:
        return held
    left = held - {token}
    return left | {later} if later and not covered(left, later) else left


def test_the_same_sets_have_the_same_tokens_again() -> None:
    """Of a program whose frames set two events in turn, and reset each after the next is set."""
    tokens, known, last = SetTokens(Tokens(1)), set[int](), 0
    for _ in range(1000):
        made = tokens.take("scope")
        if last:
            tokens.give(last)
        known.add(made)
        last = made
    assert len(known) == 16

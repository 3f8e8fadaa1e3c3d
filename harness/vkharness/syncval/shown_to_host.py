"""Tokens of a write that a dependency shows to the host: what comes after that dependency, and which signals do.

A dependency to the host happens before all of its second scope. So a signal of some stages comes after it if these are
in the second scope, or follow it in a chain ("Execution and Memory Dependencies"), and a host that waits for the signal
knows that the dependency is complete (rules.md#a-value-covers-what-its-signal-covers). The positive tokens are of
dependencies to the host's reads, the negative ones of those that make a write available to the host.
"""

from __future__ import annotations

from collections.abc import Iterator

SEEN = 1 << 60
"""The token of a write that is visible to the host. The tokens of single batches are greater numbers."""
AFTER = 1 << 100
"""From here on: the stages that come after a dependency to the host."""
BY_SIGNAL = 1 << 200
"""From here on: the tokens of signals that come after one."""

Tokens = frozenset[int]


def shown(host: int, dst_stages: int, known: Tokens = frozenset()) -> Tokens:
    """The tokens that a dependency with the token `host` and this second scope gives to a write.

    `known` are those that the queue of the dependency has given to it. The first batch that shows a write stands for
    all later ones of its queue: the host knows that it is complete when it knows that of a later one.
    """
    after = AFTER + dst_stages if host > 0 else -AFTER - dst_stages
    if any(SEEN <= (each if host > 0 else abs(each)) < AFTER for each in known):
        return frozenset((after,))
    return frozenset((host, after))


def chained_on(tokens: Tokens, src_stages: int, dst_stages: int) -> Tokens:
    """Returns the tokens that another dependency adds to a write when it chains with one to the host."""
    return frozenset(sign * (AFTER + dst_stages) for sign in _after(tokens, src_stages))


def signaled(tokens: Tokens, token: int, stages: int, earlier: int = 0) -> Tokens:
    """Returns the tokens that a signal of some stages adds to a write. `earlier`: the token of one before it, or 0.

    Rule: rules.md#a-value-covers-what-its-signal-covers.
    """
    found = {sign * (BY_SIGNAL + token) for sign in _after(tokens, stages)}
    return frozenset(found) | (carried(tokens, earlier, token) if earlier else frozenset())


def carried(tokens: Tokens, source: int, token: int) -> Tokens:
    """Returns the tokens that a write gains by a token that stands for all that the token `source` stands for."""
    return frozenset(sign * (BY_SIGNAL + token) for sign in (1, -1) if sign * (BY_SIGNAL + source) in tokens)


def seen_by(tokens: Tokens, token: int) -> Tokens:
    """Returns the tokens that a write gains when the host waits for a signal."""
    return frozenset(sign * SEEN for sign in (1, -1) if sign * (BY_SIGNAL + token) in tokens)


def marks_of(token: int) -> Tokens:
    """All that is left of a signal."""
    return frozenset((BY_SIGNAL + token, -BY_SIGNAL - token))


def _after(tokens: Tokens, stages: int) -> Iterator[int]:
    """The signs of dependencies to the host before some stages."""
    for each in tokens:
        if AFTER <= abs(each) < BY_SIGNAL and (abs(each) - AFTER) & stages:
            yield 1 if each > 0 else -1

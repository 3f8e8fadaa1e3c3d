"""The meaning of `--vk-native`: how often each stream runs as recorded, under which strategies."""

from __future__ import annotations

from vkharness.findings import UserError
from vkharness.replay.native_strategies.table import PLAIN, STRATEGIES

ALL = "all"
TIMES_OF_ALL = 3
"""Runs of each strategy where the option is `all` alone."""


def native_times(option: int | str, least: int = 0) -> dict[str, int]:
    """Runs by strategy, in the order of the table, for the value of `--vk-native`; at least `least` plain ones.

    The value is `N`, `N:STRATEGY,STRATEGY`, `N:all` or `all`. Raises `UserError` for another.

    >>> native_times(2), native_times("3:spin,plain")
    ({'plain': 2}, {'plain': 3, 'spin': 3})
    """
    count, _, names = str(TIMES_OF_ALL if option == ALL else option).partition(":")
    chosen = names.split(",") if names else [PLAIN]
    if option == ALL or ALL in chosen:
        chosen = list(STRATEGIES)
    unknown = [each for each in chosen if each not in STRATEGIES]
    if not count.isdecimal() or unknown or str(option).endswith(":"):
        known = ", ".join(STRATEGIES)
        raise UserError(f"{option!r} is not a form of N, N:STRATEGY,... or all, with strategies of {known}")
    times = {name: int(count) if name in chosen else 0 for name in STRATEGIES}
    times[PLAIN] = max(times[PLAIN], least)
    return {name: each for name, each in times.items() if each}

"""Other orders of submission: submits to different queues change places as far as semaphores allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

from vkharness.commands.synchronization.semaphore import initial_value
from vkharness.findings import UserError
from vkharness.replay.native_strategies.changed_stream import ChangedStream
from vkharness.replay.native_strategies.phases import phases, submits
from vkharness.replay.schedule.screens import OURS
from vkharness.trace.calls import Block, Call
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.submits import batches

MOST_ORDERS = 120
"""Orders of the queues of a stream that are looked at."""


def with_other_order(blocks: list[Block], number: int) -> ChangedStream:
    """The stream with the submits of each part between two waits of the host at its end, in another order.

    The submits to one queue keep their order, and so do those that use one binary semaphore. The run of a number from 0
    on takes the next of the orders that differ. Raises `UserError` where there is none.
    """
    for block in blocks:
        if isinstance(block, Call) and (block.name == BIND_SPARSE or block.args.get("commandBuffer") == OURS):
            raise UserError("one order of submission: it binds sparse memory or presents")
    timelines = set(_timelines(blocks))
    parts = list(phases(blocks))
    queues = list(dict.fromkeys(each.args["queue"] for each in blocks if isinstance(each, Call) and submits(each)))
    recorded = [each for part in parts for each in part if submits(each)]
    orders: list[list[Block]] = []
    seen = [[id(each) for each in recorded]]
    for ranks in islice(permutations(queues), MOST_ORDERS):
        made = [block for part in parts for block in _ordered(part, ranks[::-1], timelines)]
        told = [id(each) for each in made if submits(each)]
        if told not in seen:
            seen.append(told)
            orders.append(made)
    if not orders:
        raise UserError("one order of submission: no two submits to different queues may change places")
    return ChangedStream(orders[number % len(orders)])


def _timelines(blocks: list[Block]) -> Iterator[int]:
    made = (each for each in blocks if isinstance(each, Call) and each.name == "vkCreateSemaphore" and each.succeeded)
    for call in made:
        if initial_value(call.args["pCreateInfo"]) is not None:
            yield call.args["pSemaphore"]


def _ordered(part: list[Block], queues: Sequence[int], timelines: set[int]) -> Iterator[Block]:
    """The part with its submits at the end: always one to the first of `queues` that has one which may come."""
    left = [each for each in part if isinstance(each, Call) and submits(each)]
    used = {id(each): {each.args["queue"], *_binary(each, timelines)} for each in left}
    yield from (each for each in part if not submits(each))
    while left:
        ready = [
            each
            for at, each in enumerate(left)
            if all(used[id(each)].isdisjoint(used[id(before)]) for before in left[:at])
        ]
        chosen = min(ready, key=lambda each: queues.index(each.args["queue"]))
        left = [each for each in left if each is not chosen]
        yield chosen


def _binary(call: Call, timelines: set[int]) -> Iterator[int]:
    """The binary semaphores that a submit waits for or signals."""
    for batch in batches(call.args):
        for each in (*batch.waits, *batch.signals):
            if each.semaphore not in timelines:
                yield each.semaphore

"""Each kind of work: what a worker does with one chunk. A new kind is one function here, and one entry in `WORK`."""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from vkharness.campaign.plan import CampaignChunk, ChunkResult, Discovery, Plan

Work = Callable[[Plan, CampaignChunk, Counter[str]], list[Discovery]]
"""Does a chunk: adds to the counts and returns what it discovered."""


def do_chunk(plan: dict[str, Any], number: int, first: int, count: int) -> dict[str, Any]:
    """One chunk, on a worker; arguments and result are JSON-able."""
    begin, given = time.monotonic(), Plan.from_dict(plan)
    counts: Counter[str] = Counter()
    discoveries = WORK[given.work](given, CampaignChunk(number, first, count), counts)
    return ChunkResult(number, dict(counts), tuple(discoveries), time.monotonic() - begin).to_dict()


def cause_of(line: str) -> str:
    """A disagreement without what differs from stream to stream: numbers of calls, of resources and of queues."""
    return re.sub(r"\d+", "N", line)


def _agreement(plan: Plan, chunk: CampaignChunk, counts: Counter[str]) -> list[Discovery]:
    """Syncval beside the model on random streams, features in turn by chunk. A hunt ends with its first disagreement;
    then another hunt does the rest of the chunk."""
    from vkharness.fuzz import random_text
    from vkharness.fuzz.agreement_fuzz import Disagreement, hunt

    several = random_text.feature_sets(plan.families)
    features, found, judged = several[chunk.number % len(several)], [], 0
    # Hypothesis takes other threads of a Dask worker that use `random` for strategies that do.
    warnings.filterwarnings("ignore", message="Do not use the `random` module inside strategies")
    while judged < chunk.count:
        seed, before = (plan.seed << 40) + chunk.first + judged, counts["streams"]
        try:
            hunt(chunk.count - judged, seed, features, counts)
        except Disagreement as disagreement:
            told, _, text = str(disagreement).partition("\n\n")
            found.append(Discovery(cause_of(told.partition("\n")[0]), seed, f"{told}\n\n{text}"))
        judged += max(1, counts["streams"] - before)
    return found


def _layer(plan: Plan, chunk: CampaignChunk, counts: Counter[str]) -> list[Discovery]:
    """Syncval beside a Khronos layer on a device; a stream that disagrees is made small."""
    from vkharness.fuzz import layer_fuzz

    families = plan.families or layer_fuzz.known_families(plan.layer)
    first = plan.seed + chunk.first
    tally = layer_fuzz.run(range(first, first + chunk.count), plan.device, plan.layer, families)
    counts.update({"streams": tally.streams, "commands": tally.calls, "hazards agreed": tally.agreed})
    counts["differ as cited"] += sum(tally.expected.values())
    found = []
    for seed, lines in tally.disagreements.items():
        steps, left = layer_fuzz.smallest(seed, plan.device, plan.layer, families)
        found.append(Discovery(cause_of(lines[0]), seed, "\n".join([*(left or lines), *map(str, steps)])))
    return found


def _orders(plan: Plan, chunk: CampaignChunk, counts: Counter[str]) -> list[Discovery]:
    """Clean streams in legal orders."""
    from vkharness.fuzz import order_fuzz

    return _asked(plan, chunk, counts, order_fuzz.ask, order_fuzz.is_bad)


def _mends(plan: Plan, chunk: CampaignChunk, counts: Counter[str]) -> list[Discovery]:
    """Hazardous streams, mended."""
    from vkharness.fuzz import mend_fuzz

    return _asked(plan, chunk, counts, mend_fuzz.ask, mend_fuzz.is_bad)


def _asked(
    plan: Plan,
    chunk: CampaignChunk,
    counts: Counter[str],
    ask: Callable[..., dict[str, Any]],
    is_bad: Callable[[dict[str, Any]], bool],
) -> list[Discovery]:
    """Asks a driver process about the stream of each seed; a driver that dies is replaced and costs its seed."""
    from vkharness.device.drivers import find_driver
    from vkharness.device.process import Worker
    from vkharness.fuzz.random_steps import make

    found = []
    with Worker(find_driver(plan.device)) as worker:
        for seed in range(plan.seed + chunk.first, plan.seed + chunk.first + chunk.count):
            answer = ask(worker, make(seed), seed, plan.device)
            counts["streams"] += 1
            counts[answer["verdict"]] += 1
            if is_bad(answer):
                found.append(Discovery(cause_of(answer["verdict"]), seed, str(answer)))
    return found


def _matrix(plan: Plan, chunk: CampaignChunk, counts: Counter[str]) -> list[Discovery]:
    """Cells of the operation matrix on a device. All are judged by syncval and the model, and one in `plan.every` is
    shown to the layer and executed as well."""
    from vkharness.suite.matrix.judge_cells import judge_cells, judge_together
    from vkharness.verdicts import Status

    found, numbers = [], range(chunk.first, chunk.first + chunk.count)
    whole = [each for each in numbers if each % plan.every == 0]
    rows = [*judge_cells(whole, plan.device, plan.layer, True, 1)]
    rows += judge_together(sorted({*numbers} - {*whole}), plan.device)
    for number, row in rows:
        counts["cells"] += 1
        counts[f"not run: {row.problem}" if row.status is Status.UNAVAILABLE else row.status] += 1
        if row.witness is not None:
            counts["hazards run"] += 1
            counts["hazards shown"] += row.witness.is_complete
        if row.orders is not None:
            counts["clean cells run in other orders"] += 1
        if row.status not in (Status.PASSED, Status.UNAVAILABLE):
            told = "; ".join(row.reasons) or row.problem
            found.append(Discovery(cause_of(told), number, f"{row.scenario} on {row.device}: {told}"))
    return found


WORK: dict[str, Work] = {
    "agreement": _agreement,
    "layer": _layer,
    "orders": _orders,
    "mends": _mends,
    "matrix": _matrix,
}
"""The kinds of work."""
NEEDS_NO_DEVICE = frozenset({"agreement"})

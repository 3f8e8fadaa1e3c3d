"""Chunks on a Dask cluster: one on this machine, or the one behind a scheduler's address.

Only a few chunks for each worker are given to the scheduler at a time, so that its load does not grow with the
campaign. Dask gives the chunk of a worker that died to another one. A chunk that several workers died of is done no
more: it is a discovery of its own, with its seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import vkharness
from vkharness.campaign.kinds import do_chunk
from vkharness.campaign.plan import CampaignChunk, ChunkResult, Discovery, Plan
from vkharness.campaign.record import CampaignFile
from vkharness.findings import UserError

if TYPE_CHECKING:
    from distributed import Client

AHEAD = 3
"""Chunks that a worker has, or has waiting for it."""
DEATHS = 3
"""Workers that may die of one chunk."""


@contextmanager
def connected(scheduler: str | None, workers: int, memory: str) -> Iterator[Client]:
    """A client of the scheduler at an address, or of a cluster on this machine for as long as the context lasts.

    The cluster has processes of one thread each, `memory` (as "2GiB") the most for each of them.
    Raises `UserError` without `distributed`, where a worker dies before it is one, or when nobody answers.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ModuleNotFoundError:
        raise UserError("campaign needs Dask: install vkharness[campaign]") from None
    dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, "distributed.admin.log-format": "%(message)s"})
    if scheduler is None:
        try:
            made = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address=":0",  # with None the port is 8787, which another campaign here may have
                silence_logs="CRITICAL",
            )
        except RuntimeError as error:
            why = f"{error} {error.__cause__ or ''}".strip()
            raise UserError(f"the workers could not be started, run the same command again: {why}") from None
        with made as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise UserError(f"{scheduler}: no scheduler answers: {error}") from None
    with client:
        _same_version(client, scheduler)
        yield client


def _same_version(client: Client, scheduler: str) -> None:
    """A chunk is a function of its plan only where every worker has the same harness."""
    try:
        found = client.run(version)
    except ModuleNotFoundError as error:
        raise UserError(f"{scheduler}: a worker has no vkharness: {error}") from None
    for worker, its in found.items():
        if its != vkharness.__version__:
            raise UserError(f"{scheduler}: worker {worker} has vkharness {its}, this is {vkharness.__version__}")


def version() -> str:
    """The version of this package, where it is called."""
    return vkharness.__version__


def conduct(
    plan: Plan, record: CampaignFile, client: Client, done: Callable[[ChunkResult], object] = lambda result: None
) -> None:
    """Does the chunks of a plan that `record` does not hold, and adds them to it as they come.

    `done` is called after each. Whatever ends this, what was added stays.
    """
    from distributed import as_completed

    left = (chunk for chunk in plan.chunks() if chunk.number not in record.results)
    waiting: dict[str, CampaignChunk] = {}

    def give(number: int) -> list[Any]:
        return [_submitted(client, plan, chunk, waiting) for chunk in islice(left, number)]

    threads = max(1, sum(client.nthreads().values()))
    coming = as_completed(give(AHEAD * threads))
    for future in coming:
        chunk = waiting.pop(str(future.key))
        result = _result(future, chunk, plan)
        future.release()
        record.add(result)
        done(result)
        for more in give(1):
            coming.add(more)


def _submitted(client: Client, plan: Plan, chunk: CampaignChunk, waiting: dict[str, CampaignChunk]) -> Any:
    future = client.submit(
        do_chunk, plan.to_dict(), chunk.number, chunk.first, chunk.count, key=f"chunk-{chunk.number}", pure=False
    )
    waiting[str(future.key)] = chunk
    return future


def _result(future: Any, chunk: CampaignChunk, plan: Plan) -> ChunkResult:
    """The result of a chunk. One that raised, or of which workers died, is a discovery with the seeds to look at."""
    error = future.exception()
    if error is None:
        return ChunkResult.from_dict(future.result())
    if isinstance(error, UserError):
        raise error
    what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    cause = "workers died" if type(error).__name__ == "KilledWorker" else type(error).__name__
    text = f"{what}\nchunk {chunk.number}: {chunk.count} inputs from {plan.seed} + {chunk.first}"
    return ChunkResult(chunk.number, {"lost": chunk.count}, (Discovery(cause, plan.seed + chunk.first, text),), 0.0)

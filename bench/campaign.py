"""How much faster two worker processes are than one, and what a chunk costs that does nothing.

python -m bench.campaign            # 600 streams with one worker and with two
python -m bench.campaign --streams 3000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from vkharness.campaign.cluster import conduct, connected
from vkharness.campaign.plan import Plan
from vkharness.campaign.record import CampaignFile


def seconds(plan: Plan, workers: int) -> float:
    """How long a campaign takes on a cluster that is up."""
    with (
        tempfile.TemporaryDirectory() as folder,
        CampaignFile(Path(folder) / "results.jsonl", plan) as record,
        connected(None, workers, "2GiB") as client,
    ):
        warm = Plan(plan.work, plan.seed + 1, 2 * workers, 1, plan.families)
        with CampaignFile(Path(folder) / "warm.jsonl", warm) as imported:
            conduct(warm, imported, client)
        begin = time.perf_counter()
        conduct(plan, record, client)
        return time.perf_counter() - begin


def main() -> None:
    """Prints both times, their ratio and the cost of a chunk."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=600)
    given = parser.parse_args()
    plan = Plan("agreement", 7, given.streams, 20, ("images",))
    one, two = (seconds(plan, workers) for workers in (1, 2))
    print(f"{given.streams} streams: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f} times as fast")
    small = seconds(Plan("agreement", 7, 200, 1, ("images",)), 1)
    large = seconds(Plan("agreement", 7, 200, 100, ("images",)), 1)
    print(f"a chunk more costs {(small - large) / 198 * 1e3:.1f} ms, its line synced to the disk")


if __name__ == "__main__":
    main()

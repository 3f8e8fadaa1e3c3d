"""What commands do in states that others have set is what they do call by call."""

from __future__ import annotations

from collections import Counter

from harness.device.drivers import find_driver
from harness.device.process import Died, Worker

SEEDS = (11, 48, 56, *range(24))
JOB = "tests.support.said_jobs:judge_program"


def test_random_programs_do_what_they_do_call_by_call() -> None:
    counts = Counter[str]()
    with Worker(find_driver("lavapipe"), packages=("tests",)) as worker:
        for seed in SEEDS:
            told = worker.call(JOB, {"seed": seed})
            assert not isinstance(told, Died)
            assert told["by saying"] == told["by call"], f"seed {seed}"
            counts.update(known=told["known"], heard=told["heard"], findings=len(told["by call"]))
    assert counts["known"] > counts["heard"] / 4 and counts["findings"] > 10 * len(SEEDS)

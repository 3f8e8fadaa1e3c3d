"""Random streams are mended, and each piece of what mends them is needed. `vkharness fuzz mends` tries many."""

from __future__ import annotations

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.fuzz.mend_fuzz import ask, is_bad
from vkharness.fuzz.random_steps import make

COUNT = 4


@pytest.mark.driver
@pytest.mark.slow
def test_random_streams_are_mended(given_seed: int) -> None:
    print(f"seeds {given_seed} to {given_seed + COUNT - 1}")
    with Worker(find_driver("lavapipe")) as worker:
        answers = {seed: ask(worker, make(seed), seed, "lavapipe") for seed in range(given_seed, given_seed + COUNT)}
    assert {seed: answer for seed, answer in answers.items() if is_bad(answer)} == {}
    assert sum(answer["pieces"] for answer in answers.values()) > COUNT

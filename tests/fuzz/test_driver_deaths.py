"""A driver that dies of a random stream as it was recorded is told apart from one that dies of what was made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.fuzz import mend_fuzz, reduce_fuzz
from vkharness.fuzz.driver_deaths import dies_of_the_whole
from vkharness.fuzz.random_steps import make


class Mortal(Worker):
    """Dies of what is made of a stream; of the whole stream only where told so."""

    def __init__(self, of_the_whole: bool) -> None:
        super().__init__()
        self.of_the_whole = of_the_whole

    def call(self, target: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any] | Died:
        lives = target.startswith("vkharness.fuzz.driver_deaths:") and not self.of_the_whole
        return {} if lives else Died(11, None, "")


@pytest.mark.parametrize("of_the_whole", [False, True])
def test_the_tally_says_of_what_the_driver_died(of_the_whole: bool) -> None:
    tally = reduce_fuzz.run([7], Mortal(of_the_whole), "lavapipe")
    assert (list(tally.died), list(tally.bad)) == (([7], []) if of_the_whole else ([], [7]))
    assert ("of the whole stream" in str(tally)) == of_the_whole


@pytest.mark.parametrize("of_the_whole", [False, True])
def test_a_mend_is_bad_only_where_the_whole_stream_runs(of_the_whole: bool) -> None:
    answer = mend_fuzz.ask(Mortal(of_the_whole), make(7), 7, "lavapipe")
    assert mend_fuzz.is_bad(answer) == (not of_the_whole)
    assert answer["pieces"] == 0


@pytest.mark.driver
def test_a_driver_lives_through_most_streams() -> None:
    with Worker(find_driver("lavapipe")) as worker:
        assert not dies_of_the_whole(worker, make(7), "lavapipe")

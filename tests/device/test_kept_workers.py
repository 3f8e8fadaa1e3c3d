"""Driver processes that tests leave to one another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kept_workers import MOST, KeptWorkers
from vkharness.device.process import Worker

JOB = "tests.support.process_jobs:echo"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptWorkers]:
    made = KeptWorkers()
    made.keep_with(monkeypatch)
    yield made
    made.close()


def begun(**variables: str) -> int:
    with Worker(packages=["tests"], variables=variables) as worker:
        worker.call(JOB)
        assert worker.pid is not None
        return worker.pid


def test_an_equal_worker_takes_the_process_that_another_left(kept: KeptWorkers) -> None:
    assert begun() == begun() != begun(OTHER="1")


def test_what_a_process_inherits_makes_it_another(
    kept: KeptWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun()
    monkeypatch.setenv("A_VARIABLE_OF_A_TEST", "1")
    second = begun()
    monkeypatch.delenv("A_VARIABLE_OF_A_TEST")
    monkeypatch.chdir(tmp_path)
    assert len({first, second, begun()}) == 3


def test_a_process_whose_test_failed_is_not_kept(kept: KeptWorkers) -> None:
    first = begun()
    with pytest.raises(ZeroDivisionError), Worker(packages=["tests"]) as worker:
        worker.call(JOB)
        assert worker.pid == first
        raise ZeroDivisionError
    assert begun() != first


def test_the_oldest_ends_when_there_are_many(kept: KeptWorkers) -> None:
    first, *_ = [begun(NUMBER=str(number)) for number in range(MOST + 1)]
    assert begun(NUMBER="1") != first != begun(NUMBER="0")

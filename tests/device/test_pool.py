"""Jobs in several processes side by side."""

from __future__ import annotations

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.pool import run_jobs
from vkharness.device.process import Died, JobError
from vkharness.findings import UserError

JOBS = "tests.support.process_jobs"


def test_every_job_is_answered_by_one_of_the_processes() -> None:
    jobs = [{"number": number} for number in range(6)]
    answers = dict(run_jobs(find_driver("lavapipe"), f"{JOBS}:echo", jobs, 2, ("tests",)))
    found = {position: answer["number"] for position, answer in answers.items() if isinstance(answer, dict)}
    assert found == {number: number for number in range(6)}
    assert 1 <= len({answer["pid"] for answer in answers.values() if isinstance(answer, dict)}) <= 2


def test_a_process_that_dies_takes_one_job_with_it() -> None:
    jobs = [{"code": 3}, {"code": 4}]
    answers = dict(run_jobs(find_driver("lavapipe"), f"{JOBS}:leave", jobs, 1, ("tests",)))
    assert {each.reason for each in answers.values() if isinstance(each, Died)} == {"exited with 3", "exited with 4"}


def test_what_a_job_may_not_do_is_an_answer_and_its_mistakes_are_raised() -> None:
    ((_, refused),) = run_jobs(find_driver("lavapipe"), "os:getpid", [{}], 1)
    assert isinstance(refused, UserError)
    assert "os" in str(refused)
    with pytest.raises(JobError, match="no_such"):
        list(run_jobs(find_driver("lavapipe"), f"{JOBS}:no_such", [{}], 1, ("tests",)))

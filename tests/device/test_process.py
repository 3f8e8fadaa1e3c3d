"""Jobs in a child process: answers, refusals, and what becomes of a child that dies or hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.process import TAIL_BYTES, Died, JobError, Worker
from vkharness.findings import UserError
from vkharness.layer.manifest import find_layers

JOBS = "tests.support.process_jobs"


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker(packages=["tests"]) as worker:
        yield worker


def test_a_job_answers_from_another_process(worker: Worker) -> None:
    reply = worker.call(f"{JOBS}:echo", {"text": "ü\n", "numbers": [1, 2.5, None]})
    assert isinstance(reply, dict)
    assert reply["pid"] != os.getpid()
    assert (reply["text"], reply["numbers"]) == ("ü\n", [1, 2.5, None])


def test_jobs_share_one_child(worker: Worker) -> None:
    first, second = worker.call(f"{JOBS}:echo"), worker.call(f"{JOBS}:echo")
    assert first == second == {"pid": worker.pid}


def test_large_requests_and_replies_pass_whole(worker: Worker) -> None:
    text = "x" * (3 << 20)
    reply = worker.call(f"{JOBS}:echo", {"text": text})
    assert isinstance(reply, dict)
    assert reply["text"] == text


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_killed_child_is_a_result_and_the_next_job_works(worker: Worker, number: signal.Signals) -> None:
    died = worker.call(f"{JOBS}:die", {"number": int(number)})
    assert isinstance(died, Died)
    assert (died.signal, died.exit_code, died.timed_out) == (int(number), None, False)
    assert died.reason == f"killed by {number.name}"
    assert "last words" in died.stderr_tail
    assert isinstance(worker.call(f"{JOBS}:echo"), dict)


def test_an_exit_is_a_result(worker: Worker) -> None:
    died = worker.call(f"{JOBS}:leave", {"code": 7})
    assert isinstance(died, Died)
    assert (died.signal, died.exit_code, died.reason) == (None, 7, "exited with 7")


def test_a_hung_job_is_ended() -> None:
    with Worker(packages=["tests"], timeout=0.0) as worker:
        died = worker.call(f"{JOBS}:hang")
        assert isinstance(died, Died)
        assert died.timed_out
        assert worker.pid is None


def test_a_child_that_died_between_jobs_is_replaced(worker: Worker) -> None:
    worker.call(f"{JOBS}:echo")
    assert worker.pid is not None
    first = worker.pid
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    reply = worker.call(f"{JOBS}:echo")
    assert isinstance(reply, dict)
    assert reply["pid"] != first


def test_what_a_job_prints_does_not_disturb_replies_and_is_bounded(worker: Worker) -> None:
    assert worker.call(f"{JOBS}:shout", {"size": 1 << 20}) == {"size": 1 << 20}
    died = worker.call(f"{JOBS}:die", {"number": int(signal.SIGSEGV)})
    assert isinstance(died, Died)
    assert TAIL_BYTES - 100 <= len(died.stderr_tail) <= TAIL_BYTES


def test_a_user_error_crosses_over(worker: Worker) -> None:
    with pytest.raises(UserError, match=r"^no such format$"):
        worker.call(f"{JOBS}:refuse")


def test_any_other_error_comes_with_the_childs_traceback(worker: Worker) -> None:
    with pytest.raises(JobError, match=r"process_jobs\.py(?s:.*)halved by nothing"):
        worker.call(f"{JOBS}:fail")
    with pytest.raises(JobError, match="returned int, not a dict"):
        worker.call(f"{JOBS}:not_a_dict")


@pytest.mark.parametrize(
    "target",
    [
        "os:getcwd",
        "tests.support.process_jobs",
        "vkharness.device.worker:_private",
        "vkharness.findings:UserError.mro",
        ":echo",
    ],
)
def test_only_public_functions_of_named_packages_may_be_called(worker: Worker, target: str) -> None:
    with pytest.raises(UserError, match="job '"):
        worker.call(target)
    assert worker.pid is None


def test_the_child_is_bound_to_its_driver() -> None:
    driver = find_driver("lavapipe")
    with Worker(driver, packages=["tests"]) as worker:
        for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
            assert worker.call(f"{JOBS}:variable", {"name": name}) == {"value": str(driver.manifest)}


def test_a_closed_worker_leaves_no_child(worker: Worker) -> None:
    worker.call(f"{JOBS}:echo")
    pid = worker.pid
    assert pid is not None
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("driver", ["lavapipe", "swiftshader"])
@pytest.mark.parametrize("layer", [None, *(layer.version_text for layer in find_layers())])
def test_many_instances_use_nothing_up(driver: str, layer: str | None) -> None:
    """SwiftShader and today's layer lose a thread-specific key at each unloading, and die when none is left."""
    with Worker(find_driver(driver), packages=["tests"]) as worker:
        answer = worker.call(f"{JOBS}:instances", {"count": 4, "layer": layer})
    assert isinstance(answer, dict)
    assert answer["left"][1:] == answer["left"][1:2] * 3

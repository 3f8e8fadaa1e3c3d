"""What a driver of this machine says of itself, asked in a process of its own: the parent's side of `survey`."""

from __future__ import annotations

from typing import Any

from harness.device.drivers import Driver
from harness.device.process import Died, JobError, Worker
from harness.findings import UserError

SURVEY_TIMEOUT = 60.0
"""Seconds for a driver to say what it is."""


def survey(driver: Driver) -> dict[str, Any]:
    """`{"status", "loader", "devices"}` of a driver; `status` is `ok` or what went wrong, in one line."""
    with Worker(driver, timeout=SURVEY_TIMEOUT) as worker:
        try:
            answer = worker.call("harness.device.survey:survey_job")
        except UserError as error:
            return {"status": str(error), "loader": None, "devices": []}
        except JobError as error:
            return {"status": str(error).strip().splitlines()[-1], "loader": None, "devices": []}
    if isinstance(answer, Died):
        return {"status": answer.reason, "loader": None, "devices": []}
    return {"status": "ok", "loader": answer["loader"], "devices": answer["devices"]}

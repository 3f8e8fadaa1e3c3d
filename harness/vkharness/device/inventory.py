"""Properties of a driver of this machine, asked in a process of its own: the parent's side of `survey`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vkharness.device.drivers import Driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import UserError

SURVEY_TIMEOUT = 60.0
"""Seconds for a driver to say what it is."""

LOADER_LINE = re.compile(r"^(?:\[Vulkan Loader\] )?(?:ERROR|WARNING)(?: \|[^:]*)?:\s+(.*)$", re.MULTILINE)
"""A line that the loader prints with `VK_LOADER_DEBUG`; newer ones begin with its name."""

LOADER_DEBUG = {"VK_LOADER_DEBUG": "error,warn"}
OURS = "VK_LOADER_LAYERS_DISABLE"
"""The variable by which we keep implicit layers out: the loader warns of each."""

Job = tuple[str, Mapping[str, Any]]
"""A job as `Worker.call` takes it: its target and its arguments."""


def survey(driver: Driver, further: Mapping[str, Job] | None = None) -> dict[str, Any]:
    """`{"status", "loader", "devices", "loader_says", "failed"}` of a driver.

    `status` is `ok` or what went wrong, in one line, and `loader_says` what the loader printed then. `further` are jobs
    for the same process; `failed` has the name of each that went wrong, with the same two: `(status, loader_says)`.
    """
    found: dict[str, Any] = {"status": "ok", "loader": None, "devices": [], "loader_says": [], "failed": {}}
    with Worker(driver, variables=LOADER_DEBUG, timeout=SURVEY_TIMEOUT) as worker:
        answer = _asked(worker, ("vkharness.device.survey:survey_job", {}))
        if not isinstance(answer, dict):
            return found | {"status": answer[0], "loader_says": answer[1]}
        before = len(loader_lines(worker.printed))
        for name, job in (further or {}).items():
            reply = _asked(worker, job)
            if not isinstance(reply, dict):
                found["failed"][name] = (reply[0], reply[1][before:] or reply[1])
    return found | {"loader": answer["loader"], "devices": answer["devices"]}


def _asked(worker: Worker, job: Job) -> dict[str, Any] | tuple[str, list[str]]:
    """The answer to a job, or (what went wrong, what the loader printed)."""
    try:
        answer = worker.call(*job)
    except UserError as error:
        return str(error), loader_lines(worker.printed)
    except JobError as error:
        return str(error).strip().splitlines()[-1], loader_lines(worker.printed)
    return (f"its process {answer.told}", loader_lines(answer.stderr_tail)) if isinstance(answer, Died) else answer


def loader_lines(printed: str) -> list[str]:
    """The errors and warnings of the loader in what a process printed, each once."""
    return list(dict.fromkeys(line for line in LOADER_LINE.findall(printed) if OURS not in line))

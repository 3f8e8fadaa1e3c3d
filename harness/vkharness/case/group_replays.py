"""Shows groups of findings on a driver, which runs in a process of its own, and may crash there."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from vkharness.device.process import Died
from vkharness.findings import FailedCallError, UserError
from vkharness.groups import Group
from vkharness.report.findings_json import occurrences

JOB = "vkharness.judged_replay:replay_job"
MOST_TRIED = 3
"""The most findings of a group that are executed to show one."""
MOST_ASKED = 256
"""The most findings of a group that are looked at for one with an outcome to execute."""


def show_group(worker: Any, arguments: dict[str, Any], artifacts: Path | None, group: Group) -> dict[str, Any]:
    """Shows the effect of the hazard of a group on the bytes.

    The first of its findings that can be shown stands for all; `MOST_TRIED` of them are tried. `failed` says why the
    driver could not execute those before it.
    """
    where = {} if artifacts is None else {"artifacts": str(artifacts / f"finding-{group.number}")}
    left = list(islice(occurrences(group), MOST_ASKED))
    results: list[dict[str, Any]] = []
    while left and len(results) < MOST_TRIED:
        result = outcome(worker, {**arguments, **where, "finding": left}, survive=True)
        at = result.pop("at", 0)
        results.append({"number": group.number, "finding": left[at], **result})
        if result["shown"]:
            failed = [each["reason"] for each in results if each.get("failed")]
            return {**results[-1], **({"failed": failed} if failed else {})}
        if result.get("tried") == []:
            break
        del left[: at + 1]
    return results[0]


def outcome(worker: Any, arguments: dict[str, Any], *, survive: bool, job: str = JOB) -> dict[str, Any]:
    """The answer of the job. A driver that dies or fails is a result when `survive` is set, else a `UserError`."""
    try:
        answer = worker.call(job, arguments)
    except FailedCallError as error:
        if not survive:
            raise
        return _failed(str(error))
    if not isinstance(answer, Died):
        assert isinstance(answer, dict)
        return answer
    last = answer.stderr_tail.splitlines()[-1:] or [""]
    reason = f"{arguments['device']} {answer.reason} while it replayed {arguments['trace']}"
    if not survive:
        raise UserError(f"{reason}: {last[0]}" if last[0] else reason)
    return {**_failed(reason), "stderr": answer.stderr_tail}


def _failed(reason: str) -> dict[str, Any]:
    return {"shown": False, "reason": reason, "outcome": "", "differences": [], "failed": [reason]}

"""The JSON form of a verdict: what `--json FILE` writes. Keys stay stable; new ones may be added."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import Unjudged
from vkharness.groups import Findings, Group
from vkharness.report.printable import escape_json
from vkharness.verdicts import ProgramEnd
from vkharness.whole_file import write_whole

VERSION = 1


def verdict_document(
    verdict: str,
    groups: Sequence[Group],
    unmodelled: Mapping[str, int],
    model: str,
    unjudged: Unjudged,
    end: ProgramEnd | None = None,
) -> dict[str, Any]:
    """`{"version", "verdict", "findings", "groups", "unmodelled", "model", "left_out", "never_visible",
    "nothing_submitted", "outside_waits", "storing_shaders"}`.

    `findings` has each finding once, group by group, as `Finding.to_dict` gives the first of those that are the same:
    `count`, `first_frame` and `last_frame` tell of all of them, and `group` is the number of its group. `groups` has
    the same figures of each group, and `findings`, the places of its findings in that list.
    `unmodelled` maps a command to how often it was met. `model` says whether the second judge `agrees`, `differs`, was
    `not asked`, or is `left out`, since it would take more work than it may. `left_out` counts the draws of which
    something is not judged, by what that is. `never_visible` lists what the device wrote to mapped memory and no
    dependency makes visible to the host. `program_end` says how a program ended that failed, or of which not all was
    judged.
    """
    return {
        "version": VERSION,
        "verdict": verdict,
        "findings": [finding for group in groups for finding in group_findings(group)],
        "groups": list(_groups(groups)),
        "unmodelled": dict(unmodelled),
        "model": model,
        "left_out": dict(unjudged.left_out),
        "never_visible": [each.to_dict() for each in unjudged.never_visible],
        "nothing_submitted": unjudged.nothing_submitted,
        "outside_waits": unjudged.outside_waits,
        "storing_shaders": unjudged.storing_shaders,
        **ended(end),
    }


def ended(end: ProgramEnd | None) -> dict[str, Any]:
    """The member that says how the program ended; none where it ended well, and all of it was judged."""
    return {} if end is None or end.is_whole else {"program_end": end.to_dict()}


def group_findings(group: Group) -> list[dict[str, Any]]:
    """The findings of a group as the document has them; the one that stands for the group is not always the first."""
    return [{**each.first.to_dict(), **_times(each), "group": group.number} for each in group.recurring]


def occurrences(group: Group) -> Iterator[dict[str, Any]]:
    """Every finding of a group, as `group_findings` gives the first of each. Those firsts come first."""
    yield from group_findings(group)
    for each in group.recurring:
        for finding in each.findings:
            if finding is not each.first:
                yield {**finding.to_dict(), **_times(each), "group": group.number}


def _groups(groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    at = 0
    for group in groups:
        upto = at + len(group.recurring)
        yield {
            "number": group.number,
            "hazard": group.first.hazard,
            "findings": list(range(at, upto)),
            **_times(group),
            "counts": group.counts,
            "missing": group.first.missing,
        }
        at = upto


def _times(several: Findings) -> dict[str, Any]:
    return {
        "count": several.count,
        "ignored_count": several.ignored,
        "first_frame": several.first_frame,
        "last_frame": several.last_frame,
    }


def write_json(path: Path, document: Any) -> None:
    """Writes `document` to `path` as JSON, whole or not at all. Bytes are lists of numbers, as in the calls of a trace.

    Raises `UserError` when it cannot be written.
    """
    write_whole(path, escape_json(json.dumps(document, indent=2, ensure_ascii=False, default=_numbers)) + "\n")


def _numbers(value: Any) -> list[int]:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} has no form as JSON")
    return list(value)

"""What the suite prints of the cases that it ran."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CASE = re.compile(r"^Test case '(?P<case>[^']+)'\.\.$")
_RESULT = re.compile(r"^  (?P<status>[A-Z]\w+) \(")
PASS = "Pass"
DIED = "Died"
"""The case during which the process ended, or in which it stayed too long."""
NOT_RUN = "NotRun"
"""A case that the process did not come to."""


def statuses(printed: str, asked: Sequence[str]) -> dict[str, str]:
    """The suite's word for each case that was asked for, such as `Pass` or `NotSupported`; `DIED` for a case that began
    and has no result, `NOT_RUN` for one that did not begin."""
    said: dict[str, str] = {}
    case = ""
    for line in printed.splitlines():
        if begins := _CASE.match(line):
            case = begins["case"]
            said[case] = DIED
        elif case and (result := _RESULT.match(line)):
            said[case] = result["status"]
            case = ""
    return {each: said.get(each, NOT_RUN) for each in asked}

"""Call sites in words. A file below the current folder is relative to it; of a stack, what is shown comes first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from vkharness.call_sites import MODULE, Frame, between, common_frames, frames_of, shown
from vkharness.findings import Finding
from vkharness.report.printable import printable


class StackText(NamedTuple):
    """The stacks of a finding in words; each is empty where there is nothing to say."""

    place: str
    """How the later access came to the line that is shown, and who called that, as far as the two differ."""
    prior: str
    """The same of the earlier access."""
    both: str
    """Who called both."""


def site_text(site: str) -> str:
    """`file:line` of the frame that is shown of one call."""
    return relative(shown(site))


def relative(site: str) -> str:
    """`file:line`, relative to the current folder where the file lies below it."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        return printable(site)
    return printable(site.removeprefix(folder.rstrip(os.sep) + os.sep))


def stack_text(finding: Finding) -> StackText:
    """The stacks of both accesses."""
    stacks = frames_of(finding.place.site), frames_of(finding.prior.site)
    parts = between(finding.place.site, finding.prior.site)
    alike = common_frames(*stacks)
    room = [len(stack) - len(part) for stack, part in zip(stacks, parts, strict=True)]
    taken = max(0, *(count - left for count, left in zip(alike, room, strict=True)))  # by a part that has all
    common = [max(0, count - taken) for count in alike]
    place, prior = (
        _way(part, stack[len(part) : len(stack) - count])
        for count, stack, part in zip(common, stacks, parts, strict=True)
    )
    most = max(0, 1, key=common.__getitem__)  # where the other one is cut, this one says more
    return StackText(place, prior, _from(stacks[most][len(stacks[most]) - common[most] :]))


def _way(part: Sequence[Frame], callers: Sequence[Frame]) -> str:
    """`in shadow_pass, through copy at lib.py:3, from frame at app.py:70`."""
    if len(part) < 2 and not callers:
        return ""
    through = [f"through {_named(each)}" for each in reversed(part[:-1])]
    words = [f"in {printable(part[-1].function)}"] if part[-1].function != MODULE else []
    return ", ".join([*words, *through, *filter(None, [_from(callers)])])


def _from(callers: Sequence[Frame]) -> str:
    """`from frame at app.py:70, main at app.py:90`; the code of a file that calls all of it goes without saying."""
    if callers and callers[-1].function == MODULE:
        callers = callers[:-1]
    return f"from {', '.join(map(_named, callers))}" if callers else ""


def _named(frame: Frame) -> str:
    return f"{printable(frame.function)} at {relative(frame.site)}"

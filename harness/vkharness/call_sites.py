"""Call sites: the line of a program that made a call, and the lines that led there.

A `CallSite` is the text `file:line` of the innermost line, as it always was, with the whole stack behind it. Two stacks
with one innermost line are two sites. A text without a stack, as captures and earlier traces have it, is a site, too.

Helpers that only pass a call on say little: what matters is who called them. A function that is called from several
lines of the program is a *wrapper*. The frame that is *shown* is the innermost one that is not of a wrapper. Of two
accesses, no frame is shown that both have in common: what went wrong between two lines of one function is wrong in that
function, whoever calls it.

>>> stacks = CallStacks()
>>> def site(line, inside):
...     return stacks.site((Frame("lib.py:3", "copy"), Frame(f"app.py:{line}", inside), Frame("app.py:90", "main")))
>>> shadow, bloom = site(20, "shadow_pass"), site(40, "bloom_pass")
>>> str(shadow), shown(shadow), shadow == bloom
('lib.py:3', 'app.py:20', False)
>>> [each.function for each in between(bloom, shadow)[0]]
['copy', 'bloom_pass']
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

DEEPEST = 16
"""The most frames of a stack that are kept, the innermost ones."""
MOST_STACKS = 1 << 16
"""The most stacks of one stream that are told apart. Calls with others have their innermost line alone."""
MODULE = "<module>"
"""Names that Python gives to the code of a file."""


class Frame(NamedTuple):
    """A line of a program that is running."""

    site: str
    """`file:line`"""
    function: str
    """The qualified name of the function, `<module>` for the code of a file."""

    @property
    def called(self) -> tuple[str, str]:
        """The file and the function that were called."""
        return self.site.rpartition(":")[0], self.function


class CallSite(str):
    """`file:line` of the innermost frame of a stack. Equal sites have equal stacks; a plain text is equal to each site
    with its innermost line. So all sites with one innermost line have one hash: the keys of a dictionary of many are
    their identities, or their frames."""

    __slots__ = ("frames", "stacks")

    frames: tuple[Frame, ...]
    """The innermost first."""
    stacks: CallStacks

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CallSite) and self.frames != other.frames:
            return False
        return str.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class CallStacks:
    """The stacks of one stream: each is one object, and they tell which functions are wrappers."""

    def __init__(self) -> None:
        self._sites: dict[tuple[Frame, ...], CallSite] = {}
        self._callers: dict[tuple[str, str], set[str]] = {}
        """By what is called, the lines that call it."""

    def site(self, frames: tuple[Frame, ...]) -> str:
        """The call site with this stack, the innermost frame first; a plain text where there are too many."""
        found = self._sites.get(frames)
        if found is not None:
            return found
        if len(self._sites) >= MOST_STACKS:
            return frames[0].site
        found = self._sites[frames] = CallSite(frames[0].site)
        found.frames, found.stacks = frames, self
        for called, caller in pairwise(frames):
            self._callers.setdefault(called.called, set()).add(caller.site)
        return found

    def is_wrapper(self, frame: Frame) -> bool:
        """Whether the function of a frame was called from several lines so far."""
        return len(self._callers.get(frame.called, ())) > 1


def frames_of(site: str | None) -> tuple[Frame, ...]:
    """The stack of a call site, the innermost frame first; a frame without a function where there is none."""
    if isinstance(site, CallSite):
        return site.frames
    return () if site is None else (Frame(site, ""),)


def between(site: str | None, other: str | None) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
    """Of the stacks of two accesses, the frames up to the one that is shown, which is the last of them."""
    one, two = own_frames(site, other)
    return _up_to_shown(site, one), _up_to_shown(other, two)


def own_frames(site: str | None, other: str | None) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
    """Of the stacks of two accesses, the frames that they do not have in common; all of a stack that is in the other
    one as a whole."""
    one, two = frames_of(site), frames_of(other)
    mine, theirs = common_frames(one, two)
    return one[: len(one) - mine or len(one)], two[: len(two) - theirs or len(two)]


def common_frames(one: Sequence[Frame], two: Sequence[Frame]) -> tuple[int, int]:
    """How many of its outermost frames each of two stacks has in common with the other.

    A stack of `DEEPEST` frames may be cut: the other one may go on behind its outermost frame. So the two are laid side
    by side where the most frames are alike, and what goes on behind is in common, too.
    """
    beyond = [(0, 0)]
    if len(two) >= DEEPEST:
        beyond += [(at, 0) for at in range(1, len(one))]
    if len(one) >= DEEPEST:
        beyond += [(0, at) for at in range(1, len(two))]
    alike = [_alike(one[: len(one) - mine], two[: len(two) - theirs]) for mine, theirs in beyond]
    most = max(alike)
    mine, theirs = beyond[alike.index(most)]
    return mine + most, theirs + most


def _alike(one: Sequence[Frame], two: Sequence[Frame]) -> int:
    """How many frames are the same, from the outermost ones on."""
    count = 0
    for mine, theirs in zip(reversed(one), reversed(two), strict=False):
        if mine.site != theirs.site:
            break
        count += 1
    return count


def shown(site: str) -> str:
    """`file:line` of the frame that is shown of one call."""
    return _up_to_shown(site, frames_of(site))[-1].site


def _up_to_shown(site: str | None, own: tuple[Frame, ...]) -> tuple[Frame, ...]:
    if not isinstance(site, CallSite):
        return own
    telling = (at for at, frame in enumerate(own) if not site.stacks.is_wrapper(frame))
    return own[: next(telling, len(own) - 1) + 1]

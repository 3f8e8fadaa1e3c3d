"""The Python lines that made a call: the first frame outside the `vulkan` package and this package, and its callers.

Frames of `contextlib` do not count: a call at the end of a `with` block belongs to the line of the `with`. Frames of
Python's own library may make a call, but are no callers. A stack ends where what runs the program begins: this package
and pytest.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from functools import lru_cache
from types import CodeType, FrameType

from vkharness.call_sites import DEEPEST, CallStacks, Frame

GENERATED = "<vkharness "
"""How file names of generated functions begin."""
MOST_WALKED = 64
"""The most frames that are looked at for one call; those beyond are no callers."""
MOST_KNOWN = 1 << 16
"""The most stacks, with all of their parts, that are kept. With more, all are forgotten."""
MOST_PATHS = 1 << 12
"""The most files of which is kept whether their frames count. A suite attaches thousands of times, to the same ones."""
RUNNERS = ("_pytest", "pluggy", "pytest", "click")
"""Packages that run programs and are no part of them."""

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_library = os.path.dirname(os.path.abspath(contextlib.__file__)) + os.sep
_installed = tuple({sysconfig.get_path(each) + os.sep for each in ("purelib", "platlib")})
_runners = tuple(folder + each + os.sep for folder in _installed for each in RUNNERS)


class RunningStack:
    """The innermost frames of a stack, as far as somebody walked.

    Code is told apart by identity: code of two files may be equal, and its hash takes time.
    """

    __slots__ = ("_made", "codes", "ends", "frames", "next", "stacks", "walked")

    def __init__(self, stacks: CallStacks, frames: tuple[Frame, ...], walked: int, ends: bool) -> None:
        self.stacks, self.frames, self.walked = stacks, frames, walked
        self.ends = ends
        """Whether no frame behind these counts."""
        self.next: dict[tuple[int, int], RunningStack] = {}
        """By identity of the code and instruction of the next frame."""
        self.codes: list[CodeType] = []
        """Of `next`, so that no other code has the identity of one."""
        self._made: str | None = None

    @property
    def site(self) -> str | None:
        """The call site with these frames; None without one."""
        if self._made is None and self.frames:
            self._made = self.stacks.site(self.frames)
        return self._made


class Sites:
    """Finds call sites; results are kept by code and instruction, since the same lines call again and again."""

    def __init__(self, *packages: str) -> None:
        """`packages` are folders whose frames do not count, besides this package's own."""
        self._packages = tuple(folder.rstrip(os.sep) + os.sep for folder in packages)
        self._stacks = CallStacks()
        self._known = 0
        self.none = RunningStack(self._stacks, (), 0, False)
        """No frame."""

    def caller(self, ours: int = 1) -> str | None:
        """The site of the program's line that is running, the path as Python knows it; None if there is none.

        At least `ours` frames, this one included, are known to be ours: Python makes no objects of those.
        """
        try:
            frame: FrameType | None = sys._getframe(ours)
        except ValueError:  # called by a thread of C code
            return None
        if self._known > MOST_KNOWN:
            self.none, self._known = RunningStack(self._stacks, (), 0, False), 0
        stack = self.none
        while frame is not None and not stack.ends:
            code = frame.f_code
            found = stack.next.get((id(code), frame.f_lasti))
            if found is None:
                found = stack.next[id(code), frame.f_lasti] = self.explain(stack, frame)
                stack.codes.append(code)
                self._known += 1
            stack, frame = found, frame.f_back
        return stack.site

    def explain(self, stack: RunningStack, frame: FrameType) -> RunningStack:
        """The stack with the frame behind it. The native front end keeps it."""
        path, called = frame.f_code.co_filename, bool(stack.frames)
        walked = stack.walked + 1
        if walked > MOST_WALKED or (called and _runs_programs(path)):
            return RunningStack(self._stacks, stack.frames, walked, called)
        if not _counts(path, called, self._packages):
            return RunningStack(self._stacks, stack.frames, walked, False)
        frames = (*stack.frames, Frame(f"{path}:{frame.f_lineno}", frame.f_code.co_qualname))
        return RunningStack(self._stacks, frames, walked, len(frames) == DEEPEST)


@lru_cache(MOST_PATHS)
def _runs_programs(path: str) -> bool:
    """Whether a file is of what runs the program."""
    return os.path.abspath(path).startswith((_here, *_runners))


@lru_cache(MOST_PATHS)
def _counts(path: str, called: bool, packages: tuple[str, ...]) -> bool:
    """Whether a frame of a file counts; behind one that `called`, those of Python's own library do not."""
    if path.startswith((GENERATED, "<frozen ")):
        return False
    path = os.path.abspath(path)
    if called and path.startswith(_library) and not path.startswith(_installed):
        return False
    return path != contextlib.__file__ and not path.startswith((_here, *packages))

"""The Python line that made a call: the first frame outside the `vulkan` package and this package.

Frames of `contextlib` do not count either: a call at the end of a `with` block belongs to the line of the `with`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType, FrameType

GENERATED = "<vkharness "
"""How file names of generated functions begin."""

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Sites:
    """Finds call sites; results are kept by code and instruction, since the same lines call again and again.

    Code is told apart by identity: code of two files may be equal, and its hash takes time.
    """

    def __init__(self, *packages: str) -> None:
        """`packages` are folders whose frames do not count, besides this package's own."""
        self._paths = (_here, contextlib.__file__, *(folder.rstrip(os.sep) + os.sep for folder in packages))
        self._inner: dict[int, tuple[bool, CodeType]] = {}
        """By identity of the code, whether it does not count, and the code, so that no other one has its identity."""
        self._known: dict[tuple[int, int], str] = {}

    def caller(self, ours: int = 1) -> str | None:
        """'path:line' of the program's line that is running, the path as Python knows it; None if there is none.

        At least `ours` frames, this one included, are known to be ours: Python makes no objects of those.
        """
        try:
            frame: FrameType | None = sys._getframe(ours)
        except ValueError:  # called by a thread of C code
            return None
        inner = self._inner
        while frame is not None:
            code = frame.f_code
            held = inner.get(id(code))
            if held is None:
                held = inner[id(code)] = self._is_inner(code.co_filename), code
            if not held[0]:
                key = (id(code), frame.f_lasti)
                site = self._known.get(key)
                if site is None:
                    site = self._known[key] = _place(frame)
                return site
            frame = frame.f_back
        return None

    def explain(self, frame: FrameType) -> str | None:
        """'path:line' of what a frame is at; None for a frame that does not count. The native front end keeps it."""
        return None if self._is_inner(frame.f_code.co_filename) else _place(frame)

    def _is_inner(self, path: str) -> bool:
        if path.startswith((GENERATED, "<frozen ")):
            return True
        return os.path.abspath(path).startswith(self._paths)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"

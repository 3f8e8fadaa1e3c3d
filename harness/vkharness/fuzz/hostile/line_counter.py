"""Which lines of this package a command ran: what keeps an input is a line that none before it reached.

Python 3.12 and newer count at no cost. Before, each function is followed until nothing new has come of it a few times.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parents[2])
_IDLE = 3
"""Calls of one function without a new line after which it is followed no more."""

Line = tuple[str, int]


class LineCounter:
    """Collects the lines that are new to it. `known` are those of earlier inputs."""

    def __init__(self, known: set[Line]) -> None:
        self._known = known
        self._new: set[Line] = set()
        self._idle: dict[CodeType, int] = {}
        self._files: dict[str, str] = {}

    def start(self) -> None:
        """Begins to count in this thread."""
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            sys.settrace(self._called)

    def stop(self) -> set[Line]:
        """Ends counting. The lines that were not known, which are from now on."""
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.COVERAGE_ID, 0)
        else:
            sys.settrace(None)
        new, self._new = self._new, set()
        self._known |= new
        return new

    def _monitor(self) -> None:
        tool: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        if tool.get_tool(tool.COVERAGE_ID) is None:
            tool.use_tool_id(tool.COVERAGE_ID, "vkharness fuzz hostile")

        def reached(code: CodeType, line: int) -> Any:
            self._reach(code, line)
            return tool.DISABLE

        tool.register_callback(tool.COVERAGE_ID, tool.events.LINE, reached)
        tool.set_events(tool.COVERAGE_ID, tool.events.LINE)

    def _reach(self, code: CodeType, line: int) -> bool:
        name = self._files.get(code.co_filename)
        if name is None:
            inside = code.co_filename.startswith(_PACKAGE)
            name = self._files[code.co_filename] = code.co_filename[len(_PACKAGE) + 1 :] if inside else ""
        place = (name, line)
        if not name or place in self._known:
            return False
        self._new.add(place)
        self._known.add(place)
        return True

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) or self._idle.get(code, 0) >= _IDLE:
            return None
        self._idle[code] = self._idle.get(code, 0) + 1
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._reach(frame.f_code, frame.f_lineno):
            self._idle[frame.f_code] = 0
        return self._stepped

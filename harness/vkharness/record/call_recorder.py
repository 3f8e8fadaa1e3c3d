"""Takes the calls of one program as generated code gives them, and keeps and judges them: what sessions have in common,
whether the calls are of this process or of another one."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vkharness.findings import Finding, Unjudged
from vkharness.record.critical import critical, uncritical
from vkharness.record.host import HostMemory
from vkharness.record.session_stream import SessionStream, StreamJudge
from vkharness.record.written_pages import OWN_PAGES, MappedPages
from vkharness.trace.calls import Block, Call, HostWrite, unread_call
from vkharness.trace.effects import StreamEvent

MAX_ERRORS = 100
"""Internal errors kept; more are only counted."""


class Recorder:
    """The stream of one program, and what the judge found in it. A subclass says where the calls come from.

    `blocks` is the stream so far (None unless `keep_trace`), `internal_errors` what went wrong inside the mirror: then
    the verdict is 'unknown' at best.
    """

    def __init__(
        self,
        mirror: StreamJudge | None,
        thread: Callable[[], int],
        *,
        keep_trace: bool = False,
        sink: Callable[[Block], None] | None = None,
        on_finding: Callable[[Finding], None] | None = None,
        pages: MappedPages = OWN_PAGES,
    ) -> None:
        """`sink` gets each block, `on_finding` each finding. `thread` says which thread makes the call that is taken,
        `pages` what is written in mapped memory."""
        self.mirror = mirror
        self._stream = SessionStream(mirror, keep_trace, sink, self._error, self.unseen, thread)
        self._lock = self._stream.lock
        self.blocks = self._stream.blocks
        self.internal_errors: list[str] = []
        self.cut_chains: set[str] = set()
        """Chains that led to no memory or in a circle, and members that led to none: what is behind was not seen."""
        self._on_finding = on_finding
        self._unseen: dict[str, int] = {}
        self._errors = 0
        self._caller: Callable[[int], str | None] = lambda ours: None
        """Names the call site, below so many frames of ours."""
        self.host = HostMemory(self._host_write, self.unseen, self._written, self._may_write, pages)

    @property
    @critical
    def findings(self) -> list[Finding]:
        """Findings so far, those of calls that still wait to be judged included. The list grows as calls are made."""
        with self._lock:
            self._stream.catch_up()
            return [] if self.mirror is None else self.mirror.findings

    @property
    def events(self) -> Sequence[StreamEvent]:
        """The events of the calls, in order (with `keep_trace`): other judges need not interpret the calls again."""
        return () if self.mirror is None else self.mirror.events

    @property
    @critical
    def unmodelled(self) -> dict[str, int]:
        """Commands that the mirror does not model, with how often they were called."""
        with self._lock:
            self._stream.catch_up()
            found = dict(self._unseen)
            for name, times in () if self.mirror is None else self.mirror.unmodelled.items():
                found[name] = found.get(name, 0) + times
            return found

    @property
    @critical
    def unjudged(self) -> Unjudged:
        """Parts of the stream that are not judged. They change neither the verdict nor an exit code."""
        with self._lock:
            self._stream.catch_up()
            return Unjudged() if self.mirror is None else self.mirror.unjudged

    @property
    @critical
    def verdict(self) -> str:
        """'hazards' when there are any, else 'unknown' when anything was not judged, else 'clean'. Advice and what is
        ignored do not count."""
        with self._lock:
            if any(each.counts for each in self.findings):
                return "hazards"
            if self.mirror is None or self.internal_errors or self.unmodelled:
                return "unknown"
            return self.mirror.verdict

    @property
    def saw_calls(self) -> bool:
        """Whether any Vulkan call went through the package while the session was attached."""
        return bool(self._stream)

    @property
    def log(self) -> Any:
        """Where native commands leave calls that nobody needs to hear of at once; None where somebody does."""
        return self._stream.log

    # The functions that generated code calls (`vkharness.record.forward.CallSink`).

    def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
        """Takes one finished call that the line `site` of the program made."""
        if result is None and self._stream.take_alone(name, args, site):
            return
        self._tell(self._stream.take(Call(0, name, args, result, site)))

    def unread(self, name: str, why: str, site: str | None) -> None:
        """Takes a call that cannot be read."""
        self._tell(self._stream.take(unread_call(0, name, why, site=site)))

    def unseen(self, name: str) -> None:
        """Counts a command that the mirror cannot see."""
        with self._lock:
            self._unseen[name] = self._unseen.get(name, 0) + 1

    def before(self, name: str) -> Callable[[dict[str, Any]], None] | None:
        """Gives the function to call before `name` is forwarded; None for most commands."""
        return self.host.before(name)

    def after(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        """Gives the function to call when `name` has returned, before it is recorded; None for most commands."""
        return self.host.after(name)

    def cancelled(self, name: str) -> Callable[[], None] | None:
        """Gives the function to call when `name` raised and never happened; None for most commands."""
        return self.host.cancelled(name)

    def cut_off(self, why: str) -> None:
        """Ends the stream: what follows is neither kept nor judged, and no verdict is clean. `why` names who did it."""
        self._stream.cut_off(why)

    def end(self) -> None:
        """Ends the stream: what was begun is judged, and told."""
        self._tell(self._stream.end())
        self.host.end()

    def _written(self, memory: int, end: int) -> Sequence[tuple[int, int]] | None:
        """Exactly what pending work writes in a memory object, when the mirror has seen and understood all of it."""
        if self.mirror is None or self.internal_errors:
            return None
        with self._lock:
            self._stream.catch_up()
            return None if self.mirror.unmodelled else self.mirror.written(memory, 0, end)

    def _may_write(self, command_buffers: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        with self._lock:
            self._stream.catch_up()
            return {} if self.mirror is None else self.mirror.may_write(command_buffers)

    def _host_write(self, memory: int, offset: int, data: bytes, initial: bool = False) -> None:
        write = HostWrite(0, memory, offset, data, self._caller(1), initial)
        self._stream.take_untold(write)

    def _tell(self, found: list[Finding]) -> None:
        """Called with no lock held, so that the listener may do what it likes."""
        if (listener := self._on_finding) is None:
            return
        for finding in found:
            try:
                uncritical(listener)(finding)
            except Exception:
                self._error(f"on_finding: {traceback.format_exc().strip()}")

    def _error(self, text: str) -> None:
        with self._lock:
            self._errors += 1
            if self._errors <= MAX_ERRORS:
                self.internal_errors.append(text)
            elif self._errors == MAX_ERRORS + 1:
                self.internal_errors.append("more errors of this kind are not listed")

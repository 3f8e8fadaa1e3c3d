"""One process under the mirror layer: its records in order, to one verdict."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vkharness.findings import Finding, UserError
from vkharness.live.control import Control, kept_page
from vkharness.live.native_sites import NativeSites
from vkharness.live.record_session import RecordSession
from vkharness.live.records import Damaged, Kind, Record, RecordStream
from vkharness.live.stops import Stops
from vkharness.record import struct_layout as layout
from vkharness.trace.calls import Block
from vkharness.trace.work_budget import OverBudget

if TYPE_CHECKING:
    from vkharness.record.session_stream import StreamJudge


class ProcessJudge:
    """Follows the folder of one process."""

    def __init__(
        self,
        folder: Path,
        mirror: StreamJudge | None,
        sites: NativeSites,
        *,
        live: bool,
        sink: Callable[[Block], None] | None = None,
        on_finding: Callable[[Finding], None] | None = None,
        last_frame: int = 0,
        stops: Stops | None = None,
    ) -> None:
        """`live`: the process may still write, and what is consumed is removed. Else all stays as it is. What follows
        the present of `last_frame` is not judged; 0: all is. `stops` says where a process stops that waits for its
        verdicts.

        Raises OSError, and ValueError where the folder is that of no process.
        """
        _require_declarations()
        self.folder = folder
        self._stream = RecordStream(folder, keeps=not live)
        self.control = Control(folder) if live else None
        self._sites = sites
        self._on_finding, self._last_frame, self._stops = on_finding, last_frame, stops
        sink = sink if stops is None else stops.keeping(sink)
        self.session = RecordSession(mirror, sites.site, sink=sink, on_finding=self._found)
        self.findings = 0
        """How many were told."""
        self.damage = ""
        """Why the stream cannot be followed to its end."""
        if self.control is not None:
            self.control.judges()

    def advance(self, most: int) -> int:
        """Takes some records, as many as there are and `most` at most. How many."""
        taken = 0
        if self.damage:
            return taken
        try:
            while taken < most and not self.is_enough:
                taken += self.session.take_many(self._stream, most - taken)
                record = self._next()
                if record is None:
                    break
                taken += 1
                self._take(record)
        except OverBudget:
            raise
        except (Damaged, OSError, ValueError) as error:
            self._cut_off(str(error))
        if taken and self.control is not None:
            self.control.consumed(self._stream.consumed)
            self.control.answer(self.session.last)
        return taken

    def finish(self, why: str = "") -> None:
        """Ends the stream. `why` says what cut it off, if anything did."""
        if not self.is_enough:
            why = why or self._cut_at_the_end()
        if why:
            self._cut_off(why)
        self.session.end()
        self._stream.close()
        if self.control is not None:
            self.control.leave()

    def _cut_at_the_end(self) -> str:
        """Why there is no more of the stream than was taken, where that is not its end."""
        try:
            record = self._stream.take()
            if record is not None and record.kind == Kind.ENTER:
                return f"the process ended in {self.session.name_of(record)}"
            if missing := self._stream.missing():
                return missing
        except (Damaged, OSError, OverBudget) as error:
            return str(error)
        if self.control is not None:
            return ""
        if not self.session.calls:
            return "the stream has no call"
        return "" if kept_page(self.folder).ended else "the process did not end by itself, or still runs"

    @property
    def is_enough(self) -> bool:
        """Whether the last frame that was asked for is judged."""
        return 0 < self._last_frame <= self.session.frames

    @property
    def running(self) -> int | None:
        """A pidfd of the process, which the caller closes; None where it ended, or nobody can tell."""
        if self.control is None or self.control.ended:
            return None
        try:
            found = os.pidfd_open(self.control.process)
        except (OSError, OverflowError):
            return None
        ended = select.poll()
        ended.register(found, select.POLLIN)
        if not ended.poll(0):
            return found
        os.close(found)
        return None

    @property
    def executable(self) -> str:
        """The file that the process runs, as the stream says it; empty where it does not."""
        return self._sites.executable

    @property
    def bytes_waiting(self) -> int:
        """How far judging is behind, in bytes."""
        return self._stream.bytes_waiting()

    def _next(self) -> Record | None:
        """The next record that can be taken: a call that began waits for its result, and what follows for that call."""
        record = self._stream.take()
        if record is None or record.kind != Kind.ENTER:
            return record
        self._returned = self._stream.returned(record.serial)
        if self._returned is None:
            self._stream.give_back()
            return None
        return record

    def _take(self, record: Record) -> None:
        if record.kind == Kind.ENTER:
            self.session.take(record, self._returned)
        elif record.kind == Kind.STACK:
            self._sites.stack(record.payload())
        elif record.kind == Kind.MODULE:
            self._sites.module(record.payload())
        else:
            self.session.take(record)
        if self._stops is not None and self.control is not None and self._stops.completes(record):
            self.control.stop_at(record.serial)

    def _cut_off(self, why: str) -> None:
        if not self.damage:
            self.damage = why
            self.session.cut_off(why)

    def _found(self, finding: Finding) -> None:
        self.findings += 1
        if self._stops is not None:
            self._stops.found(finding)
        if self._on_finding is not None:
            self._on_finding(finding)


def _require_declarations() -> None:
    """Raises UserError where nobody knows how C lays out what the records hold."""
    try:
        layout.package_ffi()
    except (ImportError, OSError) as error:
        raise UserError(
            f"the stream of a layer is read with the vulkan package and the Vulkan loader: {error}"
        ) from None


def judge_folder(
    folder: Path, mirror: StreamJudge | None, sites: NativeSites, sink: Callable[[Block], None] | None = None
) -> RecordSession:
    """Judges a stream that was kept, to its end."""
    judge = ProcessJudge(folder, mirror, sites, live=False, sink=sink)
    while judge.advance(1 << 16):
        pass
    judge.finish()
    return judge.session


def process_of(folder: Path) -> int:
    """The number of the process that a folder is of, as the layer wrote it; 0 where it did not."""
    return kept_page(folder).process

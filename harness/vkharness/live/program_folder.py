"""All processes of one program: their folders as they appear, their records as they come."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vkharness.live.process_judge import ProcessJudge
from vkharness.live.records import is_stream

AT_ONCE = 1 << 12
"""Records of one process before others have their turn."""
GATHERED = 5
"""Milliseconds in which records come together that are judged at once."""
LONGEST_WAIT = 100
"""Milliseconds until folders are looked for again, and until who waits is told how far it is."""


class ProgramFolder:
    """The folder that a program's processes write to. `begin` makes the judge of one, whose folder it is given."""

    def __init__(self, folder: Path, begin: Callable[[Path], ProcessJudge]) -> None:
        self.folder = folder
        self._begin = begin
        self._known: set[Path] = set()
        self.judges: list[ProcessJudge] = []

    def follow(self, program: int, told: Callable[[], bool]) -> None:
        """Judges until the program, by its pidfd, has ended and nothing is left, or until `told`, which is asked all
        the time, says that it is enough."""
        is_over = False
        while not told():
            if taken := self._advance():
                if taken < AT_ONCE:
                    self._gather(program)
                continue
            if self._look():
                continue
            if is_over:
                return
            # What is written from here on rings the bell; what came before that is found now.
            self._wait_for(True)
            if not self._advance():
                is_over = self._poll(program)
            self._wait_for(False)
        self._look()  # who is left at once is judged in part, and named
        self._advance()

    def _gather(self, program: int) -> None:
        """Lets records come together for some milliseconds, where nobody waits for an answer: to be rung for each costs
        more than to judge it."""
        if not any(judge.control is not None and judge.control.breaks for judge in self.judges):
            poll = select.poll()
            poll.register(program, select.POLLIN)
            poll.poll(GATHERED)

    def _look(self) -> bool:
        """Begins to judge processes that are new. Whether there is one."""
        before = len(self.judges)
        for path in sorted(self.folder.glob("process-*")):
            if path in self._known or not is_stream(path):
                continue
            with suppress(OSError, ValueError):  # not made to its end; the next look finds it so
                self.judges.append(self._begin(path))
                self._known.add(path)
        return len(self.judges) > before

    def _advance(self) -> int:
        return sum(judge.advance(AT_ONCE) for judge in self.judges)

    def _wait_for(self, on: bool) -> None:
        for judge in self.judges:
            if judge.control is not None:
                judge.control.waits(on)

    def _poll(self, program: int) -> bool:
        """Waits until somebody writes, or for a while; whether the program has ended."""
        poll = select.poll()
        poll.register(program, select.POLLIN)
        bells = {judge.control.bell: judge.control for judge in self.judges if judge.control is not None}
        for bell in bells:
            poll.register(bell, select.POLLIN)
        ended = False
        for descriptor, event in poll.poll(LONGEST_WAIT):
            if descriptor == program:
                ended = True
            elif event & select.POLLIN:
                bells[descriptor].hear()
        return ended

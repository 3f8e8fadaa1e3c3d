"""Ctrl-C after a program has ended: there is a verdict after any number of them.

The first Ctrl-C ends the program. Each that comes later asks for the verdict sooner: what may take long is left out
then, and the verdict says so. Nothing that is written is interrupted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class Patience:
    """Counts what the user asks for with Ctrl-C, once it has begun."""

    def __init__(self) -> None:
        self.pressed = 0
        """How often Ctrl-C was pressed since `begin`."""
        self._begun = self._gives_way = False

    def begin(self) -> None:
        """From here on Ctrl-C interrupts nothing but `ask`. It is left alone where the user has had it ignored."""
        while not self._begun:
            try:
                if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                    signal.signal(signal.SIGINT, self._pressed)
                self._begun = True
            except KeyboardInterrupt:
                self.pressed += 1

    def ask(self, question: Callable[[], T]) -> T | None:
        """The answer to what may take long; None where Ctrl-C is pressed meanwhile, or was pressed before."""
        if self.pressed:
            return None
        try:
            self._gives_way = True
            try:
                return question()
            finally:
                self._gives_way = False
        except KeyboardInterrupt:
            if not self._begun:
                raise
            return None

    def _pressed(self, _: int, frame: FrameType | None) -> None:
        self.pressed += 1
        if self._gives_way:
            self._gives_way = False
            raise KeyboardInterrupt

"""The terminal as this project uses it: one place that decides width, colour and what a closed pipe means."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from vkharness.report.printable import printable_lines

if TYPE_CHECKING:
    from rich.progress import Progress

PIPE_WIDTH = 200
"""Columns of tables that go to a file or another program."""


class Terminal(Console):
    """A rich console that leaves a broken pipe to its caller, where rich would exit with 1, our code for hazards.

    Characters that a terminal would obey come out as escapes, whatever a program or a trace called its things.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed, those with text made fit for a terminal."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable_lines(text), style, control)

    def on_broken_pipe(self) -> None:
        """Called while the BrokenPipeError is handled."""
        raise BrokenPipeError


def terminal(*, stderr: bool = False) -> Terminal:
    """Standard output, or standard error; as wide as it is or as COLUMNS says, `PIPE_WIDTH` where it is no terminal."""
    console = Terminal(stderr=stderr)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return Terminal(stderr=stderr, width=PIPE_WIDTH)


def progress_bars() -> Progress:
    """Bars on standard error while something long goes on; none where standard output is no terminal."""
    from rich.progress import Progress

    return Progress(console=terminal(stderr=True), transient=True, disable=not terminal().is_terminal)

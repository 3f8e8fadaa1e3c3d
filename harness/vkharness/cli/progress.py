"""Tells on a terminal which work is being done; in a pipe, nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], object]]:
    """Says what takes a while; gives what to tell when that changes."""
    from vkharness.report.console import terminal

    console = terminal(stderr=True)
    if not (console.is_terminal and terminal().is_terminal):
        yield lambda what: None
        return
    with console.status(what) as status:
        yield status.update

"""Lets Python look for garbage in cycles less often, while a long trace is followed.

Python looks each time some hundred objects more are there than were, and then at more and more of all that there are. A
trace makes millions of objects, few of which are in cycles, so that the search takes a third of the whole time. Objects
that are in no cycle go at once, as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000
"""Objects more than before, at which Python looks through the young ones: some 10 MB."""
OLDER = (5, 2)
"""After how many such looks it also looks through those that outlived one, and through all."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Within the `with` block, in a process that is ours."""
    held = gc.get_threshold()
    if held[0]:
        gc.set_threshold(max(YOUNG, held[0]), *OLDER)
    try:
        yield
    finally:
        gc.set_threshold(*held)

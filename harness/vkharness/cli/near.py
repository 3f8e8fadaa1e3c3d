"""What somebody may have meant who wrote a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a line about a name that is not known: the names that are nearest, if any is near.

    >>> did_you_mean("chek", ["check", "mend"])
    '; did you mean check?'
    >>> did_you_mean("x", ["check"])
    ''
    """
    names = {each.lower(): each for each in known}
    near = [names[each] for each in get_close_matches(name.lower(), names, MOST)]
    return f"; did you mean {', '.join(near)}?" if near else ""

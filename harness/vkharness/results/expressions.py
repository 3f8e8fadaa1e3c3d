"""Regular expressions of somebody else, which must not take long.

Python's expressions try one way after the other. A repeat in a repeat has so many ways that a name of 40 characters may
take years; those of deqp-runner, for which lists are written, do not. What may take long is refused.
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any
from warnings import catch_warnings, simplefilter

FEW = 4
"""Times up to which a repeat counts as none, and repeats that one expression may have one after the other: the names
of rows have about a hundred characters."""
_MANY_DIGITS = re.compile("[0-9]{100}")
"""Python refuses such numbers with a ValueError, where they have thousands of digits, and reads them slowly before."""
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def compiled(text: str) -> re.Pattern[str]:
    """The expression. Raises re.error, OverflowError or RecursionError where it is none or may take long."""
    if _MANY_DIGITS.search(text):
        raise re.error("a number that no repeat has")
    with catch_warnings():
        simplefilter("ignore")  # what it may mean in a later Python is no line of a result
        if _repeats(parser.parse(text), False) > FEW:
            raise re.error(f"more than {FEW} repeats, which may take long")
        return re.compile(text)


def _repeats(parsed: Any, inside: bool) -> int:
    """How many repeats follow each other. `inside` another one nothing may have two ways to fit."""
    total = 0
    for code, value in parsed:
        if code in _REPEATS:
            low, high, what = value
            many = high > FEW
            if inside and high > low:
                raise re.error("a repeat in a repeat, which may take long")
            total += many + _repeats(what, inside or many)
        elif code is codes.BRANCH:
            if inside:
                raise re.error("alternatives in a repeat, which may take long")
            total += max(_repeats(each, inside) for each in value[1])
        elif code is codes.SUBPATTERN:
            total += _repeats(value[3], inside)
        elif code is codes.ATOMIC_GROUP:
            total += _repeats(value, inside)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            total += _repeats(value[1], inside)
        elif code is codes.GROUPREF_EXISTS:
            total += sum(_repeats(each, inside) for each in value[1:] if each is not None)
    return total

"""What cannot be read of a stream text, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache

from vkharness.findings import UserError
from vkharness.spec import masks
from vkharness.spec._generated import ACCESSES, STAGES

_DIGITS = re.compile(r"[0-9]{1,20}$")
LARGEST = (1 << 64) - 1


class Unreadable(ValueError):
    """A word of a line that cannot be read; `word` is as it stands there."""

    def __init__(self, word: str, why: str) -> None:
        super().__init__(why)
        self.word = word


class TextError(UserError, ValueError):
    """What cannot be read of a text: `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, why: str) -> None:
        super().__init__(f"line {line}, column {column}: {why}")
        self.line, self.column, self.why = line, column, why


def integer(text: str, most: int = LARGEST) -> int:
    """A number from 0 to `most`."""
    if not _DIGITS.match(text) or int(text) > most:
        raise Unreadable(text, f"{text!r} is no number from 0 to {most}")
    return int(text)


def scope(text: str) -> tuple[int, int]:
    """(stage mask, access mask) of `STAGES/ACCESSES`."""
    try:
        return masks.scope(text)
    except UserError:
        pass
    stages, _, accesses = text.partition("/")
    for part, names, what in ((stages, stage_names(), "stage"), (accesses, access_names(), "access")):
        for word in part.split("|"):
            if word not in names and word != "NONE":
                raise Unreadable(word, f"{word!r} is no {what}{nearly(word, names)}")
    raise Unreadable(text, f"{text!r} is no scope: STAGES/ACCESSES")


def stages(text: str) -> int:
    """The mask of stages without accesses."""
    mask, accesses = scope(text)
    if accesses:
        raise Unreadable(text, f"{text!r} has accesses, where stages alone count")
    return mask


def nothing_behind(words: Sequence[str], what: str) -> None:
    """Raises `Unreadable` for the first of words that nothing reads."""
    if words:
        raise Unreadable(words[0], f"{words[0]!r} is not read: here stands {what} and no more")


def nearly(word: str, known: Iterable[str]) -> str:
    """The end of a line about a word that is not known."""
    names = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), names, 1)
    return f": did you mean {names[near[0]]}?" if near else ""


@cache
def stage_names() -> tuple[str, ...]:
    """Stages as stream text has them: without `VK_PIPELINE_STAGE_2_` and `_BIT`."""
    return _short(STAGES, "VK_PIPELINE_STAGE_2_")


@cache
def access_names() -> tuple[str, ...]:
    """Accesses as stream text has them."""
    return _short(ACCESSES, "VK_ACCESS_2_")


def _short(names: Iterable[str], prefix: str) -> tuple[str, ...]:
    return tuple(sorted({re.sub(r"_BIT(_[A-Z]+)?$", "", each.removeprefix(prefix)) for each in names} - {"NONE"}))

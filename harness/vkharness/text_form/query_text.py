"""The part of stream text that is about queries: `y1[0:4]` are the first four of a pool."""

from __future__ import annotations

import re

from vkharness.spec import names
from vkharness.text_form.unreadable import Unreadable, nothing_behind, stages
from vkharness.trace.query_effects import HostQueries, QueryUse, UseQueries

_FIRST = 6000
_QUERIES = re.compile(r"y(?P<pool>[0-9]{1,3})\[(?P<begin>[0-9]{1,5}):(?P<end>[0-9]{1,5})\]$")
_COPIES = {"copy": (False, False), "copy-waiting": (True, False), "copy-telling": (False, True)}
"""Copies of results, with whether they wait, and whether they tell which results are available."""
_OF_HOST = {
    "creates": (QueryUse.CREATE, "vkCreateQueryPool"),
    "resets": (QueryUse.RESET, "vkResetQueryPool"),
    "gets": (QueryUse.GET, "vkGetQueryPoolResults"),
    "destroys": (QueryUse.DESTROY, "vkDestroyQueryPool"),
}


def is_queries(text: str) -> bool:
    """Whether a text names queries."""
    return bool(_QUERIES.match(text))


def parse(text: str) -> UseQueries:
    """`reset y1[0:4]`, `timestamp y1[0:1] COPY`."""
    word, where, *said = text.split()
    nothing_behind(said[word not in _COPIES :], "queries, and their stage where they are not copied,")
    if word in _COPIES:
        waits, tells = _COPIES[word]
        return UseQueries(*_queries(where), QueryUse.COPY, waits=waits, tells=tells)
    return UseQueries(*_queries(where), QueryUse(word), stages=stages(said[0]) if said else 0)


def spell(effect: UseQueries) -> str:
    """The text that `parse` reads."""
    word = effect.use.value
    if effect.use is QueryUse.COPY:
        word = next(word for word, how in _COPIES.items() if how == (effect.waits, effect.tells))
    said = ""
    if effect.stages:
        said = " " + names.stages(effect.stages).replace("VK_PIPELINE_STAGE_2_", "").replace("_BIT", "")
    return f"{word} {_spell_queries(effect.pool, effect.first, effect.count)}{said}"


def parse_host(verb: str, where: str, call: int) -> HostQueries:
    """`host creates y1[0:4]`; the host has the results that it gets."""
    use, name = _OF_HOST[verb]
    return HostQueries(call, name, None, *_queries(where), use, known=use is QueryUse.GET)


def spell_host(stream_event: HostQueries) -> str:
    """The text that `parse_host` reads."""
    verb = next(verb for verb, (use, _) in _OF_HOST.items() if use is stream_event.use)
    return f"host {verb} {_spell_queries(stream_event.pool, stream_event.first, stream_event.count)}"


def _queries(text: str) -> tuple[int, int, int]:
    """Pool, first query, count."""
    found = _QUERIES.match(text)
    if found is None or int(found["end"]) < int(found["begin"]):
        raise Unreadable(text, f"{text!r} are no queries, such as `y1[0:4]`")
    begin, end = int(found["begin"]), int(found["end"])
    return _FIRST + int(found["pool"]), begin, end - begin


def _spell_queries(pool: int, first: int, count: int) -> str:
    return f"y{pool - _FIRST}[{first}:{first + count}]"

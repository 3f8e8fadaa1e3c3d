"""Operations on queries, by commands and by the host, as data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum


class QueryUse(Enum):
    """Operations on queries of a pool."""

    CREATE = "create"
    """The host makes the pool: queries are neither available nor unavailable."""
    RESET = "reset"
    BEGIN = "begin"
    END = "end"
    TIMESTAMP = "timestamp"
    COPY = "copy"
    """Results are copied to a buffer."""
    GET = "get"
    """The host gets results."""
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class UseQueries:
    """A command's operation on queries of a pool."""

    pool: int
    first: int
    count: int
    use: QueryUse
    _: KW_ONLY
    stages: int = 0
    """Of a timestamp: the stage that is complete before."""
    waits: bool = False
    """Of a copy: VK_QUERY_RESULT_WAIT_BIT."""
    tells: bool = False
    """Of a copy: whether the results say which queries were available, or may be partial."""


@dataclass(frozen=True, slots=True)
class HostQueries:
    """An operation of the host on queries of a pool; a pool that is created with all queries reset is created, then
    reset."""

    call: int
    name: str
    site: str | None
    pool: int
    first: int
    count: int
    use: QueryUse
    _: KW_ONLY
    known: bool = False
    """Whether the host has the results that it gets: it waited for them, or the call says so."""

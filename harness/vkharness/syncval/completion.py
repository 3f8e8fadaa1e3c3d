"""Tokens that cover whole views: all that a viewer knows of, that earlier signals cover, or that the host waited for.

A signal of a few stages and a fence after a wait for one cover accesses that no batch number tells: tokens mark them in
the states (rules.md#signals-of-a-queue-are-in-order, rules.md#a-value-covers-what-its-signal-covers).
"""

from __future__ import annotations

from vkharness.syncval.barrier import chained
from vkharness.syncval.shown_to_host import carried, seen_by, signaled
from vkharness.syncval.state import AccessOrdering, Change, State

EVERY_STAGE = (1 << 64) - 1


def marking_everything(token: int, viewer: int) -> Change:
    """Marks in every state what a viewer did or knows of."""
    return Change(("everything", token, viewer), lambda state: after_everything(state, token, viewer))


def after_everything(state: State, token: int, viewer: int) -> State:
    """Marks what a viewer did, and what it knows to come before its work, in whatever stages (memoised).

    Rule: rules.md#a-fence-covers-what-its-queue-had-waited-for.
    """
    return state.after(("everything", token, viewer), lambda state: _everything(state, token, viewer))


def _everything(state: State, token: int, viewer: int) -> State:
    view = state.view(viewer)
    write = view.write
    if state.write is not None and (state.write.viewer == viewer or _is_known(write)):
        write = write._replace(tokens=write.tokens | {chained(token)} | signaled(write.tokens, token, EVERY_STAGE))
    reads = tuple(
        each._replace(tokens=each.tokens | {token}) if read.viewer == viewer or _is_known(each) else each
        for read, each in zip(state.reads, view.reads, strict=True)
    )
    return state.with_view(view._replace(write=write, reads=reads))


def carrying(source: int, token: int, viewer: int) -> Change:
    """Marks every state with a token where it has another one already."""
    key = ("carried", source, token, viewer)
    return Change(key, lambda state: after_carrying(state, source, token, viewer))


def after_carrying(state: State, source: int, token: int, viewer: int) -> State:
    """Marks with a token what has another one already (memoised).

    Rule: rules.md#signals-of-a-queue-are-in-order.
    """
    return state.after(("carried", source, token, viewer), lambda state: _carried(state, source, token, viewer))


def _carried(state: State, source: int, token: int, viewer: int) -> State:
    view = state.view(viewer)
    write = view.write
    if write.tokens & {source, chained(source)}:
        write = write._replace(tokens=write.tokens | {chained(token)} | carried(write.tokens, source, token))
    reads = tuple(each._replace(tokens=each.tokens | {token}) if source in each.tokens else each for each in view.reads)
    return state.with_view(view._replace(write=write, reads=reads))


def completed(state: State, token: int, viewer: int) -> tuple[State, tuple[int, ...]]:
    """A state once the host knows that what has a token is complete, and the positions of the reads that left it."""
    state, reads = _shown(state, token, viewer)
    return (state.without_reads(reads) if reads else state), reads


def after_completion(state: State, token: int, viewer: int) -> State:
    """The same where the places of the reads stay as they are: the reads are `over` (memoised)."""
    return state.after(("complete", token, viewer), lambda state: _completed(state, token, viewer))


def _completed(state: State, token: int, viewer: int) -> State:
    state, reads = _shown(state, token, viewer)
    return state.with_reads_over(reads) if reads else state


def _shown(state: State, token: int, viewer: int) -> tuple[State, tuple[int, ...]]:
    """A state with its write, but for its reads that are complete, which are at these positions."""
    view = state.view(viewer)
    seen = seen_by(view.write.tokens, token)
    if seen:
        view = view._replace(write=view.write._replace(tokens=view.write.tokens | seen))
        state = state.with_view(view)
    reads = tuple(at for at, each in enumerate(view.reads) if token in each.tokens)
    return (state.finished() if view.write.tokens & {token, chained(token)} else state), reads


def _is_known(ordering: AccessOrdering) -> bool:
    """Whether a viewer knows of an access: of a write that is visible to no access, too, and of any read."""
    return bool(ordering.chain or ordering.barriers)

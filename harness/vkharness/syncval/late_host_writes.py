"""Writes that the host makes while a submitted batch waits for it, and how they become visible to that batch.

(rules.md#a-late-host-write-needs-a-dependency-from-the-host.) Such a write is kept as one of the host's own queue. In
the view of that queue it is marked `AVAILABLE` once it is in the host domain: at once in coherent memory, else by a
flush. Only a dependency with HOST and HOST_WRITE in its first scope makes it available to the device.
"""

from __future__ import annotations

from vkharness.spec.enums import VkPipelineStage2
from vkharness.syncval.state import HOST_QUEUE, Change, State

AVAILABLE = 1 << 59
"""The token of a write that is available to the host domain."""
BY_HOST = 1 << 62
"""In the chain of such a write: a wait for a signal of the host came after it. First scopes with HOST and HOST_WRITE
take it on to the device."""


def is_available(state: State) -> bool:
    """Whether the last write is the host's, and available to the host domain."""
    return _has(state, AVAILABLE)


def after_flush(state: State) -> State:
    """A state once the last write is available to the host domain, if the host made it (memoised)."""
    return state.after("flushed", lambda state: _marked(state, HOST_QUEUE, AVAILABLE))


def host_setting(token: int) -> Change:
    """Marks in every state what is available to the host domain when the host sets an event."""
    return Change(("host set", token), lambda state: after_host_set(state, token))


def after_host_set(state: State, token: int) -> State:
    """Marks what is available to the host domain when the host sets an event (memoised)."""
    if not is_available(state):
        return state
    return state.after(("host set", token), lambda state: _marked(state, HOST_QUEUE, token))


def host_marking(token: int, viewer: int) -> Change:
    """Lets a viewer that waits for an event which the host set learn in every state what was marked then."""
    return Change(("host mark", token, viewer), lambda state: after_host_mark(state, token, viewer))


def after_host_mark(state: State, token: int, viewer: int) -> State:
    """A viewer that waits for an event which the host set learns what was marked then (memoised)."""
    if not _has(state, token):
        return state
    return state.after(("host mark", token, viewer), lambda state: _marked(state, viewer, token))


def after_host_signal(state: State, viewer: int) -> State:
    """A viewer that waits for a semaphore which the host signaled comes after what the host did before (memoised):
    first scopes with HOST hold its reads and its available writes.

    Rule: rules.md#a-late-host-write-needs-a-dependency-from-the-host.
    """
    if not (is_available(state) or any(read.queue == HOST_QUEUE for read in state.reads)):
        return state
    return state.after(("host signal", viewer), lambda state: _chained(state, viewer))


def _chained(state: State, viewer: int) -> State:
    view = state.view(viewer)
    chain = view.write.chain | BY_HOST * is_available(state)
    reads = (
        each._replace(barriers=each.barriers | VkPipelineStage2.HOST) if read.queue == HOST_QUEUE else each
        for read, each in zip(state.reads, view.reads, strict=True)
    )
    return state.with_view(view._replace(write=view.write._replace(chain=chain), reads=tuple(reads)))


def _has(state: State, token: int) -> bool:
    if state.write is None or state.write.queue != HOST_QUEUE:
        return False
    return token in state.view(HOST_QUEUE).write.tokens


def _marked(state: State, viewer: int, token: int) -> State:
    if state.write is None or state.write.queue != HOST_QUEUE:
        return state
    view = state.view(viewer)
    return state.with_view(view._replace(write=view.write._replace(tokens=view.write.tokens | {token})))

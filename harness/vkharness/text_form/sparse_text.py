"""The part of stream text that is about sparse memory: `bind q1` with ranges, and accesses through their bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vkharness.trace.effects import Access, Submitted
from vkharness.trace.sparse_effects import BIND_SPARSE, BindingUse, SparseBind

QUEUE_FLAGS = 0x7FFFFFFF
"""Binding operations are in no stage: the semaphores of a batch hold all of it."""


def use_of(access: Access) -> BindingUse:
    """The use of bindings that such an access makes."""
    return BindingUse(access.access_kind, access.resource, access.spans)


def access_of(use: BindingUse) -> Access:
    """An access that makes such a use of bindings."""
    return Access(use.access_kind, use.resource, use.spans, use.resource)


def as_bind(submit: Submitted, ranges: Iterable[tuple[int, tuple[tuple[int, int], ...]]]) -> Submitted:
    """A submit of one batch without commands, as a vkQueueBindSparse that binds these ranges."""
    binds = tuple(SparseBind(resource, spans) for resource, spans in ranges)
    batch = replace(submit.batches[0], buffers=(), binds=binds)
    return replace(submit, name=BIND_SPARSE, queue_flags=QUEUE_FLAGS, batches=(batch,))

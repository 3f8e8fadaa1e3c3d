"""Memory bindings that vkQueueBindSparse changes, and uses of them, as data (specification: "Sparse Resources")."""

from __future__ import annotations

from dataclasses import dataclass

from vkharness.spans import Span

BIND_SPARSE = "vkQueueBindSparse"


@dataclass(frozen=True, slots=True)
class BindingUse:
    """Says that an access goes through memory bindings of a sparse resource, which must not change meanwhile.

    `spans` are addresses of the resource, bound to memory or not. It stands behind the stage of `access_kind`. The
    access of the memory itself is an `Access` beside it. Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
    """

    access_kind: int
    resource: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class SparseBind:
    """One sparse binding operation: the memory of these addresses of a resource changes."""

    resource: int
    spans: tuple[Span, ...]

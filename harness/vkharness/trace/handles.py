"""Handles to ids. A driver reuses handles; an id stands for one creation and is never given twice.

A handle is looked up by type and raw value. `tables[type][handle]` takes the raw integer or the cffi handle itself
(which hashes and compares by address), so a known handle costs one dictionary lookup. A handle that nobody saw being
created, because that happened before the session, gets an id when first met.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vkharness.native import core

CREATORS = ("vkCreate", "vkAllocate", "vkRegister", "vkAcquirePerformanceConfiguration")
"""How the names of commands begin that make objects."""
PARENTS = {
    "vkAllocateCommandBuffers": ("pAllocateInfo", "commandPool"),
    "vkAllocateDescriptorSets": ("pAllocateInfo", "descriptorPool"),
    "vkGetSwapchainImagesKHR": ("swapchain",),
}
"""Where the object that frees a new one implicitly is named, when it is not the first parameter."""


def _nobody_remembers() -> None:
    pass


_changed: Callable[[], None] = core.handles_changed if core is not None else _nobody_remembers
"""Called when a handle means another object, or none: the native core remembers ids."""
ToRaw = Callable[[Any], int]
ToKey = Callable[[int], Any]


@dataclass(slots=True)
class Object:
    """One creation: its type, raw handle, and the ids of what is freed with it."""

    type: str
    raw: int
    parent: int
    children: set[int] = field(default_factory=set)


class HandleTable(dict[Any, int]):
    """Live handles of one type: raw integer and cffi handle to id. `VK_NULL_HANDLE` is 0."""

    def __init__(self, type_name: str, objects: HandleRegistry) -> None:
        super().__init__()
        self.type = type_name
        self.objects = objects
        self[0] = 0
        _changed()

    def __missing__(self, key: Any) -> int:
        if type(key) is int:
            return self.objects.see(self.type, key, 0)
        raw = self.objects.to_raw(key)
        with self.objects.lock:  # or another thread gives the handle to another object between the two
            identity = self[raw]
            self[self.objects.to_key(raw)] = identity
        return identity


class HandleRegistry:
    """All objects of one session, live ones by handle.

    `to_raw` turns a cffi handle into its integer, `to_key` an integer into a cffi pointer that owns nothing.
    """

    def __init__(self, to_raw: ToRaw = int, to_key: ToKey = int) -> None:
        self.to_raw = to_raw
        self.to_key = to_key
        self.live: dict[int, Object] = {}
        self._tables: dict[str, HandleTable] = {}
        self._shadowed: dict[tuple[str, int], list[int]] = {}
        self._next = count(1)
        self.lock = threading.RLock()

    def table(self, type_name: str) -> HandleTable:
        """Lookup for one handle type, the same object for the whole session."""
        with self.lock:
            table = self._tables.get(type_name)
            if table is None:
                table = self._tables[type_name] = HandleTable(type_name, self)
            return table

    def create(self, type_name: str, raw: int, parent: int) -> int:
        """A fresh id for a handle that a creating command returned; 0 for `VK_NULL_HANDLE`.

        Drivers may give one non-dispatchable handle to two creations: the older id comes back when the newer is
        destroyed.
        """
        if not raw:
            return 0
        with self.lock:
            table = self.table(type_name)
            if raw in table:
                self._shadowed.setdefault((type_name, raw), []).append(table[raw])
                table.pop(self.to_key(raw), None)
            identity = next(self._next)
            table[raw] = identity
            _changed()
            self.live[identity] = Object(type_name, raw, parent)
            owner = self.live.get(parent)
            if owner is not None:
                owner.children.add(identity)
            return identity

    def see(self, type_name: str, raw: int, parent: int) -> int:
        """The id of a handle that a get-like command returned or an argument names; new only when first met."""
        with self.lock:
            known = self.table(type_name).get(raw)
            return self.create(type_name, raw, parent) if known is None else known

    def retire(self, identity: int) -> None:
        """Forgets the handle of a destroyed object and of everything that is freed with it. 0 is ignored.

        Called before the destroying call is forwarded: once that returns, another thread may be given the same handle.
        """
        with self.lock:
            gone = self.live.get(identity)
            if gone is None:
                return
            for member in list(self._descendants(identity)):
                self._forget(member)
            owner = self.live.get(gone.parent)
            if owner is not None:
                owner.children.discard(identity)
            self._forget(identity)

    def retire_children(self, identity: int) -> None:
        """Forgets what a pool frees at once when it is reset; the pool itself stays."""
        with self.lock:
            pool = self.live.get(identity)
            for child in list(pool.children) if pool is not None else ():
                self.retire(child)

    def _descendants(self, identity: int) -> Iterator[int]:
        for child in tuple(self.live[identity].children):  # a finalizer may destroy some meanwhile
            if child in self.live:
                yield from self._descendants(child)
                yield child

    def _forget(self, identity: int) -> None:
        gone = self.live.pop(identity)
        key = (gone.type, gone.raw)
        older = self._shadowed.get(key)
        table = self.table(gone.type)
        if table.get(gone.raw) == identity:
            table.pop(self.to_key(gone.raw), None)
            table.pop(gone.raw, None)
            while older:
                candidate = older.pop()
                if candidate in self.live:
                    table[gone.raw] = candidate
                    break
            _changed()
        elif older and identity in older:
            older.remove(identity)
        if older is not None and not older:
            self._shadowed.pop(key, None)

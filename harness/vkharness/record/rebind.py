"""Global names of modules, moved from some objects to others.

To look at every global name of every module takes milliseconds, and a suite attaches thousands of times. So a module is
looked at again only when its number of names has changed since the last look, or a name that was moved is not where it
was left. A look notes all names that are bound to an object of this or an earlier move: those that stand in for each
other in two ways, one inside the other, are found by one look. Where no module has come, gone or grown, only those are
visited that have such names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from operator import is_
from typing import Any, NamedTuple


class _Look(NamedTuple):
    """The state in which a module was last seen: its names, their number, and the objects of those to be rebound."""

    names: dict[str, Any]
    size: int
    bound: dict[str, object]


_looks: dict[str, _Look] = {}
"""By the name of the module."""
_noted: dict[int, object] = {}
"""The objects of which every look has the names, by identity."""


class _Modules:
    """All modules as they were at the last move."""

    def __init__(self) -> None:
        self._items: list[tuple[str, Any]] = []
        self._names: list[Any] = []
        self._sizes: list[int] = []
        self._bound: list[tuple[str, Any]] = []

    def forget(self) -> None:
        """Has the next move visit all."""
        self._items = []

    def to_visit(self) -> list[tuple[str, Any]]:
        """The modules, by name, that may have names to be moved."""
        items = list(sys.modules.items())
        same = len(items) == len(self._items) and all(map(is_, chain(*items), chain(*self._items)))
        if same and [*map(len, self._names)] == self._sizes:
            return self._bound
        self.forget()
        return items

    def visited(self, items: list[tuple[str, Any]]) -> None:
        """Notes the modules that were visited, where these were all."""
        if self._items:
            return
        self._items, self._bound = items, [each for each in items if each[0] not in _looks or _looks[each[0]].bound]
        self._names = [look.names for look in _looks.values()]
        self._sizes = [look.size for look in _looks.values()]


_modules = _Modules()


def rebind(old: object, new: object, others: Iterable[tuple[object, object]] = ()) -> None:
    """Makes every global name of every module that is bound to `old` be bound to `new`, and so with `others`."""
    targets = {id(one): (one, another) for one, another in ((old, new), *others)}
    if not targets.keys() <= _noted.keys():
        _modules.forget()
        _looks.clear()
        _noted.clear()  # of what has no look now, nobody knows where it is
        _noted.update((id(each), each) for both in targets.values() for each in both)
    modules = _modules.to_visit()
    for key in _looks.keys() - sys.modules.keys():
        del _looks[key]
    for key, module in modules:
        names = getattr(module, "__dict__", None)
        look = _looks.get(key)
        if look is not None and look.names is names and look.size == len(names):
            if not look.bound:
                continue
            if all(names.get(name) is value for name, value in look.bound.items()):
                _move(look, targets)
                continue
        if type(names) is dict:
            bound = {name: value for name, value in list(names.items()) if id(value) in _noted}
            if look is not None:  # names that somebody else has changed, who may change them back
                bound = {name: names.get(name) for name in look.bound} | bound
            look = _looks[key] = _Look(names, len(names), bound)
            _move(look, targets)
    _modules.visited(modules)
    for identity in targets:
        del _noted[identity]
    _noted.update((id(another), another) for _, another in targets.values())


def _move(look: _Look, targets: dict[int, tuple[object, object]]) -> None:
    """Moves the names of one module, and notes it."""
    moved = {name: targets[id(value)][1] for name, value in look.bound.items() if id(value) in targets}
    look.names.update(moved)
    look.bound.update(moved)

"""Global names of modules, moved from some objects to others.

To look at every global name of every module takes milliseconds, and a suite attaches thousands of times. So a module is
looked at again only when its number of names has changed since the last look, or a name that was moved is not where it
was left.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple


class _Look(NamedTuple):
    """What was seen in a module: its names, how many there were, and to what those are bound that were moved."""

    names: dict[str, Any]
    size: int
    moved: dict[str, object]


_looks: dict[str, _Look] = {}
"""By the name of the module."""
_moved: dict[int, object] = {}
"""The objects to which names were moved last, by identity."""


def rebind(old: object, new: object, others: Iterable[tuple[object, object]] = ()) -> None:
    """Makes every global name of every module that is bound to `old` be bound to `new`, and so with `others`."""
    targets = {id(one): (one, another) for one, another in ((old, new), *others)}
    known = dict(_looks) if _moved.keys() == targets.keys() else {}
    _looks.clear()
    for key, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict:
            continue
        look = known.get(key)
        if look is not None and _holds(look, names):
            moved = {name: targets[id(value)][1] for name, value in look.moved.items()}
        else:
            moved = {name: targets[id(value)][1] for name, value in list(names.items()) if id(value) in targets}
        names.update(moved)
        _looks[key] = _Look(names, len(names), moved)
    _moved.clear()
    _moved.update((id(another), another) for _, another in targets.values())


def _holds(look: _Look, names: dict[str, Any]) -> bool:
    """Whether a module is as it was at the last look."""
    is_same = look.names is names and look.size == len(names)
    return is_same and all(names.get(name) is value for name, value in look.moved.items())

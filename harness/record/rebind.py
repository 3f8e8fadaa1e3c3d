"""Global names of modules, moved from one object to another.

To look at every global name of every module takes milliseconds, and a suite attaches thousands of times. So a module is
looked at again only when its number of names has changed since the last look, or a name that was moved is not where it
was left.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class _Look(NamedTuple):
    """What was seen in a module: its names, how many there were, and those bound to the object that was moved."""

    names: dict[str, Any]
    size: int
    moved: list[str]


_looks: dict[str, _Look] = {}
"""By the name of the module."""
_moved: list[object] = []
"""The object to which names were moved last."""


def rebind(old: object, new: object) -> None:
    """Makes every global name of every module that is bound to `old` be bound to `new`."""
    known = dict(_looks) if _moved and _moved[0] is old else {}
    _looks.clear()
    for key, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict:
            continue
        look = known.get(key)
        if look is None or not _holds(look, names, old):
            look = _Look(names, len(names), [name for name, value in list(names.items()) if value is old])
        for name in look.moved:
            names[name] = new
        _looks[key] = look
    _moved[:] = [new]


def _holds(look: _Look, names: dict[str, Any], wanted: object) -> bool:
    """Whether a module is as it was at the last look."""
    is_same = look.names is names and look.size == len(names)
    return is_same and all(names.get(name) is wanted for name in look.moved)

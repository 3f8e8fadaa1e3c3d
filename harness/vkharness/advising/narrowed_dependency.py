"""One dependency on its way to less: in all its calls alike, each try on top of what was taken before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice

from vkharness.advising.ranges import UNITS, Range, Sizes, cut, ranges
from vkharness.advising.smaller_forms import Args, mask_paths, narrower, without_structs
from vkharness.advising.views import Edits
from vkharness.advising.written import Written
from vkharness.mending.pieces import masks_in
from vkharness.mending.scope_sites import Path
from vkharness.report.call_code import short, type_of
from vkharness.spec import _generated as tables
from vkharness.trace.calls import Call
from vkharness.trace.edits import value_at

Change = Callable[[Args], Args | None]


class NarrowedDependency:
    """One dependency, and the parts that were removed from it so far."""

    def __init__(self, written: Written, calls: Mapping[int, Call], sizes: Sizes) -> None:
        """`calls`: those of the dependency and the sets of its events, by their index in the trace, as they are now."""
        self.written = written
        self._sizes = sizes
        self._calls = {origin: calls[origin] for origin in written.origins}
        self._sets = {origin: calls[origin] for origin in written.sets}
        self.dropped: list[Path] = []
        """The structs that are left out, by their paths in the call as it was when the narrowing began."""
        self._was = self.args

    @property
    def args(self) -> Args:
        """Of the first call, as it is now."""
        return self._calls[self.written.origins[0]].args

    @property
    def edits(self) -> dict[int, Call]:
        """All calls as they are now."""
        return self._with_sets(self._calls)

    def narrow(self, used: int, allowed: Callable[[Edits], bool]) -> None:
        """Takes piece by piece what can be taken; `used` are the stages that commands of the trace have."""
        self._allowed = allowed
        kind, name = self.written.kind, self.written.call.name
        for path, _ in list(without_structs(kind, self.args)):
            if self._try(partial(_without, kind, path=path)):
                self.dropped.append(path)
        for path in mask_paths(name, kind, self.args, bool(self.written.sets)):
            self._narrow_mask(path, used)
        for each in list(ranges(self.args, self._sizes)):
            for at_end in (False, True):
                self._cut(each, at_end)

    def _narrow_mask(self, path: Path, used: int) -> None:
        """Takes bits from a mask while both judges allow it."""
        kind, name = self.written.kind, self.written.call.name

        def form(args: Args, number: int) -> Args | None:
            return next(islice(narrower(name, kind, args, path, used), number, None), None)

        number = 0
        while form(self.args, number) is not None:
            taken = self._try(partial(form, number=number))
            number = 0 if taken and value_at(self.args, path) else number + 1

    def _cut(self, range: Range, at_end: bool) -> None:
        """Takes as much as it can from one end of a range, in units."""
        unit = UNITS[range.what]
        less = partial(cut, sizes=self._sizes, path=range.path, what=range.what, at_end=at_end)
        left, step = (range.end - range.begin) // unit, 1
        while left and self._try(partial(less, many=step * unit)):
            left -= step
            step = min(2 * step, left)
        while step > 1:  # fewer than that can go
            half = step // 2
            step = step - half if self._try(partial(less, many=half * unit)) else half

    def _try(self, change: Change) -> bool:
        after = _changed(self._calls, change)
        if after is None or not self._allowed(self._with_sets(after)):
            return False
        self._calls = after
        return True

    def _with_sets(self, calls: Mapping[int, Call]) -> dict[int, Call]:
        """Calls, and the sets of events with the dependencies or first stages of their waits."""
        made = dict(calls)
        for origin, (wait, number) in self.written.sets.items():
            args, infos = calls[wait].args, calls[wait].args.get("pDependencyInfos")
            same = {"pDependencyInfo": infos[number]} if infos else {"stageMask": args["srcStageMask"]}
            made[origin] = replace(self._sets[origin], args={**self._sets[origin].args, **same})
        return made

    def lines(self) -> list[str]:
        """Each part that is less now, in words."""
        now = self.args
        found = [f"{path_text(path)} orders nothing" for path in self.dropped]
        for path in masks_in(now, ()):
            old, new = self._as_it_was(path), value_at(now, path)
            before = value_at(self._was, old)
            if before != new:
                type = _mask_type(self.written.call.name, self._was, old)
                found.append(f"{path_text(old)}: {short(type, before)} -> {short(type, new)}")
        was = {(each.path, each.what): each for each in ranges(self._was, self._sizes)}
        for left in ranges(now, self._sizes):
            before = was[self._as_it_was(left.path), left.what]
            if (before.begin, before.end) != (left.begin, left.end):
                words = f"{left.what} [{before.begin}, {before.end}) -> [{left.begin}, {left.end})"
                found.append(f"{path_text(before.path)}: {words}")
        return found

    def _as_it_was(self, path: Path) -> Path:
        """The path that a value had before structs were left out."""
        for dropped in reversed(self.dropped):
            at = len(dropped) - 1
            if path[:at] == dropped[:at] and len(path) > at and int(path[at]) >= int(dropped[at]):
                path = (*path[:at], int(path[at]) + 1, *path[at + 1 :])
        return path


def _changed(calls: Mapping[int, Call], change: Change) -> dict[int, Call] | None:
    """The calls with the same change of each; None where it cannot be made for all, or changes nothing."""
    made: dict[int, Call] = {}
    for origin, call in calls.items():
        args = change(call.args)
        if args is None:
            return None
        made[origin] = replace(call, args=args)
    return made


def _without(kind: str, args: Args, *, path: Path) -> Args | None:
    return dict(without_structs(kind, args)).get(path)


def path_text(path: Path) -> str:
    """`pDependencies[0].srcStageMask`."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")


def _mask_type(name: str, args: Args, path: Path) -> str:
    """The type of the mask to which a path leads in the arguments of a command."""
    holder, value = name, args
    for step in path:
        if isinstance(step, str):
            type = type_of(holder, step)
            holder = type
        value = value[step]  # type: ignore[index]
        if isinstance(value, dict):
            holder = tables.STYPES.get(value.get("sType", -1), holder)
    return type

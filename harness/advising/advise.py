"""Advice on a trace: each dependency is left out, else made narrower, and both judges are asked.

A change is kept when nothing is found that was not there before, and the next one is tried on top of it: all advice
together holds. The same dependency of every frame is one, and changes in all frames at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from harness.advising.host_waits import idle_waits
from harness.advising.merging import merged, neighbours
from harness.advising.overlap import serialized
from harness.advising.smaller_forms import (
    Args,
    cut,
    mask_paths,
    may_be_left_out,
    narrower,
    smaller_ranges,
    without_structs,
)
from harness.advising.written import BARRIER, Written, dependencies
from harness.agreement import MODEL_LIMIT, ask_opinion, key_of, keys_in_conflict, note_opinion
from harness.check import Analysis
from harness.mending.pieces import masks_in
from harness.mending.proof import Pair, is_clean
from harness.mending.scope_sites import Path
from harness.model.order import ACTION, SRC, ExecutionOrder
from harness.report.advice import Advice, AdviceKind
from harness.report.call_code import short, type_of
from harness.spec import _generated as tables
from harness.trace.calls import Block, Call
from harness.trace.edits import EditedTrace, value_at


@dataclass(slots=True)
class Advising:
    """All advice on a trace, what serializes most first, and how far it got."""

    advice: list[Advice] = field(default_factory=list)
    dependencies: int = 0
    """How many different ones the trace has."""
    done: int = 0
    """How many of them were looked at before the time was over."""
    stopped: bool = False
    """Whether the time was over before everything was tried."""
    by_model: bool = True
    unmodelled: tuple[str, ...] = ()
    trace: EditedTrace | None = None
    """The trace with all that is advised."""

    @property
    def notes(self) -> list[str]:
        """What the advice leaves out, and what it is about."""
        notes = [f"{self.done} of {self.dependencies} dependencies looked at, {len(self.advice)} advised"]
        if self.stopped:
            notes.append("the time was over before the rest (--seconds)")
        if not self.by_model:
            notes.append("the trace is too long for the model: syncval alone judged the changes")
        if self.unmodelled:
            notes.append(f"not judged, so a dependency that only these need is not known: {', '.join(self.unmodelled)}")
        return [*notes, "advice is about this trace only: other frames, or other data, may need the dependency"]


@dataclass(frozen=True, slots=True)
class _Judged:
    pairs: set[Pair]
    order: ExecutionOrder | None
    unmodelled: tuple[str, ...]


class _OutOfTimeError(Exception):
    pass


def advise(blocks: Iterable[Block], seconds: float = 60, tell: Callable[[str], object] = lambda _: None) -> Advising:
    """Asks about every dependency of a trace for at most so many seconds, and what is being asked then."""
    return _Adviser(EditedTrace.of(blocks), seconds, tell).run()


class _Adviser:
    """The trace with all that has been advised so far."""

    def __init__(self, trace: EditedTrace, seconds: float, tell: Callable[[str], object]) -> None:
        self._trace = trace
        self._until = time.monotonic() + seconds
        self._tell = tell
        self._read = _judge(trace)
        self._order = self._read.order
        nodes = [] if self._order is None else self._order.nodes
        self._used = 0
        for node in nodes:
            self._used |= node.stages if node.kind == ACTION else 0
        self._used = self._used or -1
        self._found = Advising(by_model=self._order is not None, unmodelled=self._read.unmodelled)

    def run(self) -> Advising:
        """Every dependency, what is after most commands first."""
        found = self._found
        several = sorted(dependencies(self._trace.source), key=self._weight, reverse=True)
        found.dependencies = len(several)
        found.advice += idle_waits(self._trace.source)
        gone: set[int] = set()
        try:
            for each in several:
                self._tell(f"{found.done} of {len(several)} dependencies, {len(found.advice)} advised")
                if self._left_out(each):
                    gone.update(each.origins)
                else:
                    self._narrowed(each)
                found.done += 1
            self._merge([each for each in several if each.kind == BARRIER and not gone.intersection(each.origins)])
        except _OutOfTimeError:
            found.stopped = True
        found.advice.sort(key=lambda each: -(each.serializes.pairs if each.serializes else 0))
        found.trace = self._trace
        return found

    def _weight(self, written: Written) -> int:
        """How many operations are before its first scopes."""
        order = self._order
        if order is None:
            return 0
        origins = set(written.origins)
        sources = [at for at, node in enumerate(order.nodes) if node.kind == SRC and node.place.call in origins]
        return sum(order.before[at].bit_count() for at in sources)

    def _allowed(self, trace: EditedTrace) -> bool:
        """Whether neither judge finds anything that is not there in the trace that was read."""
        if time.monotonic() > self._until:
            raise _OutOfTimeError
        by_model = self._found.by_model
        return is_clean(trace, self._read.pairs, by_model) and _judge(trace, by_model).pairs <= self._read.pairs

    def _keep(self, kind: AdviceKind, written: Written, after: EditedTrace, lines: Iterable[str]) -> None:
        order = _judge(after, self._found.by_model).order
        overlap = None
        if order is not None and self._order is not None:
            overlap = serialized(self._trace, self._order, order)
        held = dict(zip(after.origins, after.blocks, strict=True)).get(written.origins[0])
        narrow = replace(held, index=written.call.index) if isinstance(held, Call) else None
        self._found.advice.append(Advice(kind, written.call, written.origins, tuple(lines), narrow, overlap))
        self._trace, self._order = after, order

    def _left_out(self, written: Written) -> bool:
        if not may_be_left_out(written.kind, written.call.args):
            return False
        after = self._trace.with_calls(dict.fromkeys(written.origins))
        if not self._allowed(after):
            return False
        self._keep(AdviceKind.ORDERS_NOTHING, written, after, ())
        return True

    def _narrowed(self, written: Written) -> None:
        """Takes from a dependency what can be taken, piece by piece."""
        narrowing = _Narrowing(self._trace, written)
        try:
            self._narrow(narrowing)
        finally:
            if lines := narrowing.lines():
                self._keep(AdviceKind.WIDER, written, narrowing.trace, lines)

    def _narrow(self, narrowing: _Narrowing) -> None:
        written = narrowing.written
        for path, _ in list(without_structs(written.kind, narrowing.args)):
            if self._try(narrowing, partial(_without, written.kind, path=path)):
                narrowing.dropped.append(path)
        for path in mask_paths(written.call.name, written.kind, narrowing.args):
            self._narrow_mask(narrowing, path)
        self._narrow_ranges(narrowing)

    def _narrow_mask(self, narrowing: _Narrowing, path: Path) -> None:
        """Takes bits from a mask while both judges allow it."""
        call = narrowing.written.call

        def form(args: Args, number: int) -> Args | None:
            return next(islice(narrower(call.name, narrowing.written.kind, args, path, self._used), number, None), None)

        number = 0
        while form(narrowing.args, number) is not None:
            taken = self._try(narrowing, partial(form, number=number))
            number = 0 if taken and value_at(narrowing.args, path) else number + 1

    def _narrow_ranges(self, narrowing: _Narrowing) -> None:
        for path, _ in list(_buffer_parts(narrowing.args)):
            for end, unit, most in smaller_ranges(narrowing.args, path):
                self._cut(narrowing, path, end, unit, most)

    def _cut(self, narrowing: _Narrowing, path: Path, end: str, unit: int, most: int) -> None:
        """Takes as many bytes as it can from one end of a range, in units."""
        low, high = 0, most // unit
        middle = 1
        while low < high and self._try(narrowing, partial(cut, path=path, end=end, many=middle * unit)):
            low, high = 0, high - middle
            middle *= 2
            middle = min(middle, max(high, 1))
        while middle > 1:
            middle //= 2
            if middle <= high and self._try(narrowing, partial(cut, path=path, end=end, many=middle * unit)):
                high -= middle

    def _try(self, narrowing: _Narrowing, change: Callable[[Args], Args | None]) -> bool:
        after = narrowing.with_args(change)
        if after is narrowing.trace or not self._allowed(after):
            return False
        narrowing.trace = after
        return True

    def _merge(self, barriers: list[Written]) -> None:
        """Makes two adjacent barriers one where that orders no less and no more."""
        for first, second in neighbours(self._trace, barriers):
            after = merged(self._trace, first, second)
            if after is not None and self._allowed(after):
                self._keep(AdviceKind.COULD_BE_ONE, second, after, (f"the other is call {first.call.index}",))


class _Narrowing:
    """One dependency on its way to less."""

    def __init__(self, trace: EditedTrace, written: Written) -> None:
        self.trace = trace
        self.written = written
        self.dropped: list[Path] = []
        """The structs that are left out, by their paths in the call as it was when the narrowing began."""
        self._was = self.args

    @property
    def args(self) -> Args:
        """Of the first call, as it is now."""
        return self.trace.call(self.trace.origins.index(self.written.origins[0])).args

    def lines(self) -> list[str]:
        """Each part that is less now, in words."""
        call, now = self.written.call, self.args
        found = [f"{_text(path)} orders nothing" for path in self.dropped]
        for path in masks_in(now, ()):
            old, new = self._as_it_was(path), value_at(now, path)
            before = value_at(self._was, old)
            if before != new:
                type = _mask_type(call, old)
                found.append(f"{_text(old)}: {short(type, before)} -> {short(type, new)}")
        for path, part in _buffer_parts(now):
            old = self._as_it_was(path)
            was, left = ((each["offset"], each["offset"] + each["size"]) for each in (value_at(self._was, old), part))
            if was != left:
                found.append(f"{_text(old)}: bytes [{was[0]}, {was[1]}) -> [{left[0]}, {left[1]})")
        return found

    def _as_it_was(self, path: Path) -> Path:
        """The path that a value had before structs were left out."""
        for dropped in reversed(self.dropped):
            at = len(dropped) - 1
            if path[:at] == dropped[:at] and len(path) > at and int(path[at]) >= int(dropped[at]):
                path = (*path[:at], int(path[at]) + 1, *path[at + 1 :])
        return path

    def with_args(self, change: Callable[[Args], Args | None]) -> EditedTrace:
        """The trace with the same change of each call; as it is where it cannot be made for all."""
        calls: dict[int, Call | None] = {}
        wanted = set(self.written.origins)
        for origin, block in zip(self.trace.origins, self.trace.blocks, strict=True):
            if origin in wanted and isinstance(block, Call):
                args = change(block.args)
                if args is None:
                    return self.trace
                calls[origin] = replace(block, args=args)
        return self.trace.with_calls(calls)


def _judge(trace: EditedTrace, by_model: bool = True) -> _Judged:
    analysis = Analysis(keep_events=by_model, keep_at_most=MODEL_LIMIT if by_model else sys.maxsize)
    analysis.follow(trace.blocks)
    opinion = ask_opinion(analysis) if by_model else None
    keys = {key_of(each) for each in analysis.findings}
    if opinion is not None:
        note_opinion(analysis, opinion)
        keys |= keys_in_conflict(opinion)
    size = len(trace.origins)
    pairs = {
        tuple(trace.origin(each) if 0 < each <= size else each for each in key[:2]) + tuple(key[2:]) for key in keys
    }
    unmodelled = {*analysis.unmodelled, *analysis.unjudged.left_out}
    return _Judged(pairs, None if opinion is None else opinion.order, tuple(sorted(unmodelled)))  # type: ignore[arg-type]


def _without(kind: str, args: Args, *, path: Path) -> Args | None:
    return dict(without_structs(kind, args)).get(path)


def _buffer_parts(value: object, path: Path = ()) -> Iterable[tuple[Path, Args]]:
    if isinstance(value, dict):
        if {"buffer", "offset", "size"} <= value.keys():
            yield path, value
        for name, each in value.items():
            yield from _buffer_parts(each, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _buffer_parts(each, (*path, at))


def _text(path: Path) -> str:
    """`pDependencies[0].srcStageMask`."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")


def _mask_type(call: Call, path: Path) -> str:
    """The type of the mask to which a path leads."""
    holder, value = call.name, call.args
    for step in path:
        if isinstance(step, str):
            type = type_of(holder, step)
            holder = type
        value = value[step]  # type: ignore[index]
        if isinstance(value, dict):
            holder = tables.STYPES.get(value.get("sType", -1), holder)
    return type

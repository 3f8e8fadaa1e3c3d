"""Taking away what a mended trace does not need, until dropping any piece of it brings a hazard back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from vkharness.mending.in_windows import TraceWindows
from vkharness.mending.pieces import masks_in, pieces, pieces_of
from vkharness.mending.proof import Pair, is_clean, judge
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit, EditedTrace, value_at


def minimal(trace: EditedTrace, left: set[Pair], by_model: bool) -> EditedTrace:
    """The trace without each piece that is not needed; `left` are pairs that are not mended.

    A piece that is needed stays so when another one is dropped, since less is ordered then: each is tried once. In a
    long trace the calls that were changed alike, as in every frame, lose the same pieces.
    """
    windows = TraceWindows(trace)
    if windows.is_long:
        return _minimal_in_windows(trace, windows, left, by_model)
    needed: set[tuple[int, str]] = set()
    while True:
        for piece in pieces(trace):
            key = (piece.origin, piece.what)
            if key not in needed:
                rest = piece.without(trace)
                if is_clean(rest, left, by_model):
                    trace = rest
                    break
                needed.add(key)
        else:
            return trace


def _minimal_in_windows(trace: EditedTrace, windows: TraceWindows, left: set[Pair], by_model: bool) -> EditedTrace:
    """The same for a long trace: the first of the calls that are alike is asked about in a window around it, and what
    all of them lose is proved in the whole trace. What that refutes is not taken."""
    alike: dict[Hashable, list[Edit]] = {}
    for edit in trace.edits():
        alike.setdefault(_shape(edit), []).append(edit)
    best = trace
    for several in alike.values():
        window = windows.of_call(several[0].position)
        taken = [] if window is None else _taken(window, trace.origins[several[0].position], several[0], left)
        calls = {trace.origins[each.position]: _after(trace, each, taken) for each in several}
        changed = best.with_calls(calls)
        if taken and is_clean(changed, left, by_model):
            best = changed
    return best


def _taken(window: EditedTrace, origin: int, whole: Edit, left: Iterable[Pair]) -> list[int]:
    """The numbers of the pieces that a call loses one after the other, each among the pieces that it has then."""
    judged = judge(window)
    excused = judged.pairs | set(left)
    taken: list[int] = []
    needed: set[str] = set()
    held = _edit_of(window, origin)
    if held is None or held.after.args != whole.after.args:  # the window has not all of it
        return taken
    while True:
        edit = _edit_of(window, origin)
        for number, piece in enumerate(pieces_of(window, edit) if edit is not None else ()):
            if piece.what not in needed:
                rest = piece.without(window)
                if is_clean(rest, excused, judged.by_model):
                    taken.append(number)
                    window = rest
                    break
                needed.add(piece.what)
        else:
            return taken


def _edit_of(trace: EditedTrace, origin: int) -> Edit | None:
    return next((each for each in trace.edits() if trace.origins[each.position] == origin), None)


def _after(trace: EditedTrace, edit: Edit, taken: Sequence[int]) -> Call | None:
    """A call without these pieces."""
    for number in taken:
        several = list(pieces_of(trace, edit))
        if number < len(several):
            left = several[number].left
            if left is None:
                return None
            edit = edit._replace(after=left)
    return edit.after


def _shape(edit: Edit) -> Hashable:
    """Returns a key that is equal for calls that were changed alike."""
    masks = [tuple((path, value_at(call.args, path)) for path in masks_in(call.args, ())) for call in edit[1:] if call]
    return (edit.before is None, edit.after.name, *masks)

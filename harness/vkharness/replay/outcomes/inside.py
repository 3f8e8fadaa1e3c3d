"""Shows hazards inside one render pass instance, which cannot be cut.

The outcome that a missing dependency allows is brought about by leaving draws and clears out of the instance, or by
exchanging two of them. This is done only where the result is that outcome and nothing else: the omitted command writes
the range of the finding alone, and no later command of the instance touches that resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vkharness.commands.interpret import Interpreter
from vkharness.findings import Finding
from vkharness.replay.schedule.steps import Step, StepKind, reading
from vkharness.spans import Span, merge
from vkharness.spec.command_classes import DRAWS, NEXT_SUBPASS
from vkharness.spec.scopes import ACCESS_KINDS, IMAGE_LAYOUT_TRANSITION
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Recorded


@dataclass(frozen=True, slots=True)
class InsideOutcome:
    """The change to an instance. With `restored`, the range of the finding holds what the serial
    run left, afterwards."""

    left_out: frozenset[int] = frozenset()
    """The indices of the steps that are left out."""
    exchanged: bool = False
    """Whether the second command runs just before the first."""
    restored: bool = False


class _Instance:
    """The draws and clears of one render pass instance, by what they access of one resource."""

    def __init__(self, steps: list[Step], begin: int, end: int, resource: int) -> None:
        self._steps, self.resource = steps, resource
        self._accesses: dict[int, tuple[Access, ...]] = {}
        interpreter = Interpreter()
        for index, step in enumerate(steps[:end]):
            if not isinstance(step.block, Call) or step.kind is StepKind.BEGIN:
                continue
            with reading(step.block):
                for each in interpreter.step(step.block):
                    if isinstance(each, Recorded) and index >= begin:
                        self._accesses[index] = tuple(e for e in each.command.effects if isinstance(e, Access))

    def touches(self, index: int) -> bool:
        """Whether a draw or clear accesses the resource."""
        accesses = self._accesses.get(index, ())
        return self._draws(index) and any(each.resource == self.resource for each in accesses)

    def written(self, index: int) -> list[Span]:
        """The addresses of the resource that a command writes."""
        accesses = self._accesses.get(index, ())
        written = (each for each in accesses if ACCESS_KINDS[each.access_kind].write)
        return list(merge([span for each in written if each.resource == self.resource for span in each.spans]))

    def writes_it_alone(self, index: int) -> bool:
        """Whether a draw or clear writes the resource and nothing else."""
        written = {each.resource for each in self._accesses.get(index, ()) if ACCESS_KINDS[each.access_kind].write}
        return self._draws(index) and written == {self.resource}

    def _draws(self, index: int) -> bool:
        return self._steps[index].name.startswith(DRAWS)


def inside(
    steps: list[Step], prior: int, current: int, cuts: tuple[int, int], finding: Finding
) -> InsideOutcome | None:
    """The change that shows a hazard between two steps of one instance; None when there is no such change.

    `cuts` are the indices of the instance's first step and of the step after it.
    """
    held = _Instance(steps, *cuts, finding.resource)
    moved, moves = (each == IMAGE_LAYOUT_TRANSITION.name for each in (finding.prior_access, finding.access))
    others = [index for index in range(prior + 1, cuts[1]) if index != current and held.touches(index)]
    if prior == current or (others and not moves):
        return None
    if finding.hazard.reads:
        before = [index for index in range(cuts[0], prior) if held.touches(index)] if moved else [prior]
        return _unseen(held, before, current)
    if finding.hazard.prior_reads:
        return _exchange(steps, prior, current)
    if moves and held.writes_it_alone(prior):
        return InsideOutcome(frozenset({prior}))
    if not (held.writes_it_alone(prior) and held.writes_it_alone(current)):
        return None
    return InsideOutcome(frozenset({current})) if _covers(held.written(prior), held.written(current)) else None


def _unseen(held: _Instance, writers: list[int], current: int) -> InsideOutcome | None:
    """Lets the reader miss the writes: they are left out, and put there afterwards unless the reader
    wrote over them."""
    if not writers or not all(held.writes_it_alone(each) for each in writers):
        return None
    over = held.written(current)
    if over and not all(_covers(over, held.written(each)) for each in writers):
        return None
    return InsideOutcome(frozenset(writers), restored=not over)


def _exchange(steps: list[Step], prior: int, current: int) -> InsideOutcome | None:
    """Lets the reader see the later write. A clear depends on no state, so that it can run before the reader."""
    between = steps[prior + 1 : current]
    if steps[current].name != "vkCmdClearAttachments" or any(s.name.startswith(NEXT_SUBPASS) for s in between):
        return None
    return InsideOutcome(exchanged=True)


def _covers(whole: Iterable[Span], part: Iterable[Span]) -> bool:
    held = list(whole)
    return all(any(begin <= first and last <= end for begin, end in held) for first, last in part)

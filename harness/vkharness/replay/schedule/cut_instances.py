"""One render pass instance as several, so that a hazard inside it is between instances.

Nothing can stand inside an instance but its own commands: no copy that shows contents to one command alone. An instance
that is ended and begun anew keeps its meaning when what one part leaves is stored and the next part loads it. So the
instance that holds both accesses of a finding is cut before and after each of the two, and at each vkCmdNextSubpass:

    begin, draw A, next subpass, draw B, end
    [begin, end] [begin, draw A, end] [begin, end] [begin, draw B, end]

The first part that uses an attachment has its load operation, the last one its store operation; all others load and
store. Each part of a render pass object is an instance of a render pass of its own, of the one subpass of that part,
with the layouts that attachments have there: the transition between two subpasses is the initial transition of a part.
Where the object has several subpasses, its parts need framebuffers and pipelines that are compatible with them
(specification: "Render Pass Compatibility"): these are made where the stream makes those that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from vkharness.findings import Finding
from vkharness.replay.schedule.part_objects import PartObjects, part_objects
from vkharness.replay.schedule.render_pass_effects import RenderPassEffects
from vkharness.replay.schedule.steps import ADDED, Identity, Step, StepKind
from vkharness.spec.command_classes import (
    BEGINS_RENDERING,
    ENDS_RENDERING,
    LEFT_OPEN,
    NEXT_SUBPASS,
    OF_AN_INSTANCE,
    nesting,
)
from vkharness.spec.enums import VkPipelineBindPoint, VkRendering
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call, reading

OF_THE_SUBPASS_BEFORE = (AttachmentOperation.STORE, AttachmentOperation.RESOLVE_READ, AttachmentOperation.RESOLVE_WRITE)
"""The operations of a vkCmdNextSubpass that end the subpass before it. All others begin the next one."""
SECOND = -1
"""The block index of the begin of a part where the same vkCmdNextSubpass has both accesses, and its own index stands
for the end of the part before."""
BIND = "vkCmdBindPipeline"


class CutSteps(NamedTuple):
    """The steps of a stream with one instance cut, and the finding in them."""

    steps: list[Step]
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Part:
    """The steps [begin, end) of an instance inside one subpass."""

    subpass: int
    begin: int
    end: int
    entered: int | None
    """The index of the vkCmdNextSubpass that begins it; None where the instance is cut elsewhere."""


def cut_instance(steps: list[Step], finding: Finding, prior: int, current: int) -> CutSteps | None:
    """Cuts the instance that holds the accesses of a finding, two steps; None where it cannot be cut between them."""
    begin = next((at for at in range(prior, -1, -1) if _starts(steps[at], BEGINS_RENDERING)), None)
    end = next((at for at in range(current, len(steps)) if _starts(steps[at], ENDS_RENDERING)), None)
    if begin is None or end is None or not _can_be_cut(steps, begin, end):
        return None
    with reading(steps[begin].block):
        cut = _Cut(steps, finding, (begin, end), (prior, current))
        return cut.made() if cut.is_between else None


def _starts(step: Step, names: str) -> bool:
    return step.kind is StepKind.ACTION and step.name.startswith(names)


def _can_be_cut(steps: list[Step], begin: int, end: int) -> bool:
    """Whether an instance is one whole, with nothing open around it or in it."""
    first, inner = steps[begin], steps[begin + 1 : end]
    info = _call(first).args.get("pRenderingInfo") or {}
    if first.inside or info.get("flags", 0) & (VkRendering.SUSPENDING | VkRendering.RESUMING):
        return False
    opens = any(nesting(each.name) or each.name.startswith(LEFT_OPEN) for each in inner)
    return not opens and all(each.identity.execution == first.identity.execution for each in inner)


def _call(step: Step) -> Call:
    assert isinstance(step.block, Call)
    return step.block


class _Cut:
    """Cuts one instance, given by the indices of its begin and its end, around two accesses."""

    def __init__(self, steps: list[Step], finding: Finding, bounds: tuple[int, int], accesses: tuple[int, int]) -> None:
        self.steps, self.finding = steps, finding
        self.begin, self.end = bounds
        self.prior, self.current = accesses
        effects = RenderPassEffects(steps)
        self._prior_is_late = self._ends_a_subpass(effects, self.prior, finding.prior_access)
        self._current_is_late = self._ends_a_subpass(effects, self.current, finding.access)
        self.parts = list(self._parts())

    def _ends_a_subpass(self, effects: RenderPassEffects, at: int, access: str) -> bool:
        """Whether an access of a vkCmdNextSubpass belongs to the subpass that it ends."""
        is_next = self.steps[at].name.startswith(NEXT_SUBPASS)
        found = effects.operations(at, self.finding.resource, access) if is_next else ()
        return any(each in OF_THE_SUBPASS_BEFORE for each in found)

    @property
    def is_between(self) -> bool:
        """Whether a cut lies between the two accesses."""
        return self.prior != self.current or (self._prior_is_late and not self._current_is_late)

    def _parts(self) -> Iterator[_Part]:
        cuts = {*self._cuts(self.prior, self._prior_is_late), *self._cuts(self.current, self._current_is_late)}
        subpass, begin, entered = 0, self.begin + 1, None
        for at in range(self.begin + 1, self.end + 1):
            if at in cuts:
                yield _Part(subpass, begin, at, entered)
                begin, entered = at, None
            if at == self.end:
                yield _Part(subpass, begin, at, entered)
            elif self.steps[at].name.startswith(NEXT_SUBPASS):
                yield _Part(subpass, begin, at, entered)
                subpass, begin, entered = subpass + 1, at + 1, at

    def _cuts(self, at: int, is_late: bool) -> tuple[int, ...]:
        """The steps before which the instance is cut, to have an access alone."""
        if at == self.end:
            return (at,)
        if at == self.begin:
            return (at + 1,)
        if self.steps[at].name.startswith(NEXT_SUBPASS):
            return (at if is_late else at + 1,)
        return (at, at + 1)

    def made(self) -> CutSteps | None:
        """All steps with the instance in parts."""
        first = self.steps[self.begin]
        before = [at for at in range(self.begin) if self.steps[at].identity.execution == first.identity.execution]
        bound = next((at for at in reversed(before) if _binds(self.steps[at])), None)
        objects = part_objects(self.steps, self.begin, [each.subpass for each in self.parts], self._drawn_with(bound))
        if objects is None:
            return None
        made: list[Step] = []
        for at, step in enumerate(self.steps[: self.begin]):
            made.append(step)
            for call in objects.created.get(at, ()):
                made.append(Step(StepKind.HOST, Identity(0, 0, 0, call.index), call))
        made += self._in_parts(objects, bound)
        made += self.steps[self.end + 1 :]
        finding = self.finding
        if self.prior == self.current:
            finding = replace(finding, place=replace(finding.place, call=SECOND))
        return CutSteps(made, finding)

    def _drawn_with(self, bound: int | None) -> list[int]:
        """The graphics pipelines of the draws of the instance. `bound` is the step that binds the one that it finds."""
        pipeline = 0 if bound is None else _call(self.steps[bound]).args["pipeline"]
        found: dict[int, None] = {}
        for step in self.steps[self.begin : self.end]:
            if _binds(step):
                pipeline = _call(step).args["pipeline"]
            elif step.name.startswith("vkCmdDraw") and pipeline:
                found[pipeline] = None
        return list(found)

    def _in_parts(self, objects: PartObjects, bound: int | None) -> Iterator[Step]:
        """The parts. `bound` is the step that binds the graphics pipeline that the instance finds. Inside of the parts
        stand the pipelines that are compatible with them, and outside of them those of the stream."""
        if bound is not None:
            yield from self._bound_again(bound, self.begin, objects)
        set_inside: list[Step] = []
        for number, part in enumerate(self.parts):
            yield self._begun(number, objects.begin(number))
            yield from set_inside
            for at in range(part.begin, part.end):
                step = self.steps[at]
                set_inside += [step] if step.name.startswith(OF_AN_INSTANCE) else []
                bound = at if _binds(step) else bound
                yield _bound(step, objects)
            yield self._ended(number)
        if bound is not None and _bound(self.steps[bound], objects) is not self.steps[bound]:
            yield from self._bound_again(bound, self.end, None)

    def _bound_again(self, bound: int, until: int, objects: PartObjects | None) -> Iterator[Step]:
        """A pipeline anew, its stand-in if there are `objects`, and after it the state that was set since then: what a
        pipeline has of that would stand in its place."""
        own = self.steps[bound]
        stand_in = own if objects is None else _bound(own, objects)
        if objects is not None and stand_in is own:
            return
        yield replace(stand_in, inside=False, in_pass=False)
        for step in self.steps[bound + 1 : until]:
            is_state = step.kind is StepKind.STATE and not step.name.startswith(OF_AN_INSTANCE)
            if is_state and step.identity.execution == own.identity.execution:
                yield replace(step, inside=False, in_pass=False)

    def _begun(self, number: int, call: Call) -> Step:
        """The begin of a part."""
        if number == 0:
            return replace(self.steps[self.begin], block=call)
        part = self.parts[number]
        index = ADDED if part.entered is None else self._index(part.entered, False)
        where = self.steps[part.begin if part.entered is None else part.entered].identity
        return Step(StepKind.ACTION, where, replace(call, index=index))

    def _ended(self, number: int) -> Step:
        """The end of a part."""
        last = self.steps[self.end]
        if number == len(self.parts) - 1:
            return replace(last, inside=True, in_pass=True)
        entered = self.parts[number + 1].entered
        index = ADDED if entered is None else self._index(entered, True)
        where = self.steps[self.parts[number].end].identity
        return replace(last, identity=where, block=replace(_call(last), index=index), inside=True, in_pass=True)

    def _index(self, at: int, is_late: bool) -> int:
        """The block index of the end, if `is_late`, or of the begin of a part, for a vkCmdNextSubpass between the
        two."""
        if at == self.prior == self.current:
            return self.steps[at].block.index if is_late else SECOND
        named = (at, is_late) in ((self.prior, self._prior_is_late), (self.current, self._current_is_late))
        return self.steps[at].block.index if named else ADDED


def _binds(step: Step) -> bool:
    """Whether a step binds a graphics pipeline."""
    return step.name == BIND and _call(step).args["pipelineBindPoint"] == VkPipelineBindPoint.GRAPHICS


def _bound(step: Step, objects: PartObjects) -> Step:
    """A step that binds what stands for its pipeline inside parts; any other step as it is."""
    if not _binds(step):
        return step
    call = _call(step)
    pipeline = objects.pipeline(call.args["pipeline"])
    if pipeline == call.args["pipeline"]:
        return step
    return replace(step, block=replace(call, args={**call.args, "pipeline": pipeline}))

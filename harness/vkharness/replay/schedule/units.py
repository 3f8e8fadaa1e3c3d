"""The steps of a recorded stream in units, which can change their places in a run.

A *unit* is one of

* a command that acts (a copy, a dispatch, a draw outside of what cannot be cut),
* a synchronization command that transitions layouts,
* a call of the host,
* everything from the begin to the end of a render pass instance or of a query: these cannot be cut.

A command depends on what its command buffer has set before it: pipelines, descriptor sets, push constants, viewports. A
unit carries these steps along (`Unit.before`), so that it can run anywhere. A later call that sets the same thing
replaces the earlier call (`OVERWRITTEN_BY`).

Barriers without layout transitions are in no unit. A replay explores the *order* of units, and puts a full barrier
between all of them. `outcomes/witness` shows what a missing barrier does *inside* a legal order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vkharness.replay.schedule.layouts import transitions
from vkharness.replay.schedule.screens import OURS
from vkharness.replay.schedule.steps import Identity, Step, StepKind
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call, reading

OVERWRITTEN_BY = {
    "vkCmdBindPipeline": ("pipelineBindPoint",),
    "vkCmdBindDescriptorSets": ("pipelineBindPoint", "firstSet", "descriptorSetCount"),
    "vkCmdPushConstants": ("stageFlags", "offset", "size"),
    "vkCmdBindVertexBuffers": ("firstBinding", "bindingCount"),
    "vkCmdBindIndexBuffer": (),
    "vkCmdSetViewport": ("firstViewport", "viewportCount"),
    "vkCmdSetScissor": ("firstScissor", "scissorCount"),
}
"""State commands, each with some of its arguments.

A later call with the same values of these arguments fully replaces the earlier one. Calls of other state commands are
all kept.
"""


@dataclass(slots=True)
class Unit:
    """Steps that run together."""

    steps: list[Step]
    before: tuple[Step, ...] = ()
    """The begin of the command buffer and the state set since. These steps run just before the unit,
    wherever it runs."""

    @property
    def host(self) -> bool:
        """Whether the unit is a call or an access of the host."""
        return self.steps[0].kind is StepKind.HOST

    @property
    def identities(self) -> Iterator[Identity]:
        """The executions that the unit holds. A command that `screens` added counts as the host's call that it stands
        for."""
        for step in self.steps:
            if step.kind is not StepKind.BEGIN:
                ours = isinstance(step.block, Call) and step.block.args.get("commandBuffer") == OURS
                yield Identity(0, 0, 0, step.block.index) if ours else step.identity

    def __str__(self) -> str:
        return f"{self.steps[0].name} {self.steps[0].identity}"


@dataclass(slots=True)
class _State:
    """The state of a command buffer at some point, in the order in which it was set."""

    begin: tuple[Step, ...] = ()
    _held: dict[object, Step] = field(default_factory=dict)

    def restart(self, begin: Step) -> None:
        self.begin = (begin,)
        self._held.clear()

    def set(self, step: Step) -> None:
        assert isinstance(step.block, Call)
        name = main_name(step.block.name)
        key: object = step.identity
        if name in OVERWRITTEN_BY:
            key = (name, *(step.block.args.get(argument) for argument in OVERWRITTEN_BY[name]))
        self._held.pop(key, None)
        self._held[key] = step

    def steps(self) -> tuple[Step, ...]:
        return (*self.begin, *self._held.values())


def units_of(steps: list[Step]) -> list[Unit]:
    """The units of a trace in submission order.

    Barriers without transitions are in no unit, since full barriers stand between all units anyway.
    """
    units: list[Unit] = []
    state = _State()
    for step in steps:
        if step.kind is StepKind.BEGIN:
            state.restart(step)
        elif step.kind is StepKind.STATE:
            state.set(step)
        if step.inside and units:
            units[-1].steps.append(step)
        elif step.kind is StepKind.HOST:
            units.append(Unit([step]))
        elif step.kind is StepKind.ACTION:
            units.append(Unit([step], state.steps()))
        elif step.kind is StepKind.SYNC and _moves(step):
            units.append(Unit([step]))
    return units


def _moves(step: Step) -> bool:
    """Whether a synchronization command transitions layouts."""
    assert isinstance(step.block, Call)
    with reading(step.block):
        return any(each.old != each.new for each in transitions(step.block))

"""Layout transitions and stores that render pass instances in a step list make by themselves.

An instance is one unit that cannot be cut, so that a witness must know which addresses it certainly writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from vkharness.commands.interpret import Interpreter
from vkharness.findings import Box
from vkharness.replay.schedule.steps import ADDED, Step, StepKind
from vkharness.spans import Span
from vkharness.spec.command_classes import RENDERING, RENDERING_OBJECTS
from vkharness.spec.enums import VkImageLayout
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import Call, reading
from vkharness.trace.effects import Access, AutomaticTransition, Effect, PassEnd, Recorded, SubpassBegin

COVERING = (AttachmentOperation.STORE, AttachmentOperation.RESOLVE_WRITE)
"""Operations that write every address that they touch."""


class RenderPassEffects:
    """Effects of the commands that begin, advance and end render pass instances, by index in the step list."""

    def __init__(self, steps: list[Step]) -> None:
        self._interpreter = Interpreter()
        self._effects: dict[int, tuple[Effect, ...]] = {}
        self._added = {index for index, step in enumerate(steps) if step.block.index == ADDED}
        for index, step in enumerate(steps):
            call = step.block
            if not isinstance(call, Call):
                continue
            made = step.kind is StepKind.HOST and call.name.startswith(RENDERING_OBJECTS)
            if made or (step.kind is not StepKind.BEGIN and call.name.startswith(RENDERING)):
                with reading(call):
                    for each in self._interpreter.step(call):
                        if isinstance(each, Recorded):
                            self._effects[index] = each.command.effects

    def stored(self, image: int, begin: int, end: int) -> list[Box]:
        """The boxes of an image that store operations and resolves of steps [begin, end) write completely. What ends a
        part of an instance stores what the stream leaves in place (`cut_instances`), which is no write."""
        held = self._interpreter.objects.image(image)
        if held is None:
            return []
        spans: list[Span] = []
        for effect in self._between(begin, end):
            if isinstance(effect, Access) and effect.resource == image and effect.operation in COVERING:
                spans += effect.spans
        return [box for span in spans for box in held.boxes(span)]

    def discards(self, index: int, image: int) -> bool:
        """Whether the command at an index transitions an image from UNDEFINED."""
        return any(
            each.resource == image and each.old_layout == VkImageLayout.UNDEFINED
            for effect in self._effects.get(index, ())
            for each in transitions_of(effect)
        )

    def operations(self, index: int, resource: int, access: str) -> list[AttachmentOperation]:
        """The attachment operations by which the command at an index makes an access of a resource."""
        return [
            each.operation
            for each in self._effects.get(index, ())
            if isinstance(each, Access) and (each.resource, ACCESS_KINDS[each.access_kind].name) == (resource, access)
        ]

    def _between(self, begin: int, end: int) -> Iterator[Effect]:
        for index in range(begin, end):
            if index not in self._added:
                yield from self._effects.get(index, ())


def transitions_of(effect: Effect) -> tuple[AutomaticTransition, ...]:
    """The automatic layout transitions of an effect."""
    return effect.transitions if isinstance(effect, SubpassBegin | PassEnd) else ()

"""Queue family ownership in the barriers of a trace, and which families its resources belong to first and last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.commands.interpret import Interpreter
from vkharness.replay.objects.queue_mapping import OF_NO_DEVICE, QueueMapping
from vkharness.replay.schedule.screens import OURS
from vkharness.spec.command_classes import is_recorded
from vkharness.spec.enums import VK_QUEUE_FAMILY_FOREIGN_EXT, VK_QUEUE_FAMILY_IGNORED
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.effects import Command, Execute, Submitted

SOURCE, TARGET = "srcQueueFamilyIndex", "dstQueueFamilyIndex"
NEITHER = {SOURCE: VK_QUEUE_FAMILY_IGNORED, TARGET: VK_QUEUE_FAMILY_IGNORED}


def without_transfers(value: Any) -> Any:
    """The arguments of a barrier command without queue family ownership transfers, since everything runs
    on one queue."""
    if isinstance(value, list):
        return [without_transfers(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: without_transfers(item) for key, item in value.items()}
    return {**changed, **NEITHER} if SOURCE in changed else changed


def on_device(value: Any, mapping: QueueMapping, here: int, lacks_foreign: bool) -> Any:
    """The arguments of a barrier command with the families of the device, for a command buffer of the trace's family
    `here`.

    A transfer between two families for which one stands is none any more: the release keeps its layout transition, and
    the acquire, which would make it again, loses it. `lacks_foreign`: the device has no VK_QUEUE_FAMILY_FOREIGN_EXT.
    """
    if isinstance(value, list):
        return [on_device(item, mapping, here, lacks_foreign) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: on_device(item, mapping, here, lacks_foreign) for key, item in value.items()}
    if SOURCE not in changed:
        return changed
    source, target = changed[SOURCE], changed[TARGET]
    if source == target or (lacks_foreign and VK_QUEUE_FAMILY_FOREIGN_EXT in (source, target)):
        return {**changed, **NEITHER}
    changed[SOURCE], changed[TARGET] = mapping.family(source), mapping.family(target)
    if changed[SOURCE] == changed[TARGET] and source not in OF_NO_DEVICE:
        changed.update(NEITHER)
        if target == here and "oldLayout" in changed:
            changed["oldLayout"] = changed["newLayout"]
    return changed


@dataclass(slots=True)
class Owners:
    """The queue family of the device that uses each resource first, and the one that uses it last, in the order of
    submission."""

    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def use(self, resource: int, family: int) -> None:
        """Takes note of a use."""
        self.first.setdefault(resource, family)
        self.last[resource] = family


def owners(blocks: Iterable[Block], mapping: QueueMapping) -> Owners:
    """The owners of the buffers and images of a trace, by id."""
    found, interpreter = Owners(), Interpreter()
    shown = (mapping.first or mapping.own)[0]
    for block in blocks:
        if isinstance(block, Call) and is_recorded(block.name) and block.args.get("commandBuffer") == OURS:
            with reading(block):
                for image in (block.args[name] for name in ("srcImage", "dstImage", "image") if name in block.args):
                    found.use(image, shown)
            continue
        with reading(block):
            for event in interpreter.step(block):
                if isinstance(event, Submitted) and event.family not in OF_NO_DEVICE:
                    family = mapping.family(event.family)
                    for batch in event.batches:
                        for _, commands in batch.buffers:
                            for resource in _used(commands):
                                found.use(resource, family)
    return found


def _used(commands: Sequence[Command]) -> Iterator[int]:
    """The resources that commands access, and those of their barriers and transitions."""
    for command in commands:
        for effect in command.effects:
            if isinstance(effect, Execute):
                for _, inner in effect.buffers:
                    yield from _used(inner)
                continue
            parts: list[Any] = [effect]
            for name in ("barrier", "barriers", "ranges", "transitions"):
                more = (each for part in tuple(parts) for each in _listed(getattr(part, name, ())))
                parts.extend(more)
            yield from (part.resource for part in parts if hasattr(part, "resource"))


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)

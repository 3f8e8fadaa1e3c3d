"""Which queue of a device runs what a trace gives to one of its queues.

A family of the trace goes to a family of the device that does the same kinds of work and the fewest others, and two
families of the trace go to two of the device wherever there are two. Everything else goes to the replay's own family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index as whole_number
from typing import Any, NamedTuple

from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_EXTERNAL,
    VK_QUEUE_FAMILY_FOREIGN_EXT,
    VK_QUEUE_FAMILY_IGNORED,
    VkQueueFlag,
)
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.sparse_effects import BIND_SPARSE

OF_NO_DEVICE = frozenset({VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT})
"""Queue family indices that name no family of the device."""
WORKS = VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE | VkQueueFlag.TRANSFER
"""VkQueueFlags without which the commands of a queue cannot be recorded for another one."""

QueuePlace = tuple[int, int]
"""(queue family index, queue index) of a VkQueue."""


class QueueFamily(NamedTuple):
    """One VkQueueFamilyProperties: VkQueueFlags and the number of queues."""

    flags: int
    queues: int


@dataclass(slots=True)
class TraceQueues:
    """The queues that a trace obtains, and what it says of their families."""

    places: set[QueuePlace] = field(default_factory=set)
    first: QueuePlace | None = None
    """The place of the queue that the trace obtains first."""
    flags: dict[int, int] = field(default_factory=dict)
    """VkQueueFlags by queue family index, of the physical device of the first VkDevice."""
    sparse: set[int] = field(default_factory=set)
    """Families with a queue that binds sparse memory."""
    of_queue: dict[int, QueuePlace] = field(default_factory=dict)
    """The place of each VkQueue, by its id."""


@dataclass(frozen=True, slots=True)
class QueueMapping:
    """The device's families and queues for those of a trace. A family or queue without an entry goes to `own`."""

    own: QueuePlace
    """The queue that the replay itself uses."""
    families: Mapping[int, int] = field(default_factory=dict)
    queues: Mapping[QueuePlace, QueuePlace] = field(default_factory=dict)
    first: QueuePlace | None = None
    """The device's queue for the one that the trace obtains first."""

    @property
    def keeps_queues_apart(self) -> bool:
        """Whether no two queues of the trace share a queue of the device."""
        return len(self.queues) == len(set(self.queues.values()))

    @property
    def leaves_family(self) -> bool:
        """Whether work goes to another family than the replay's own."""
        return any(family != self.own[0] for family, _ in self.queues.values())

    @property
    def counts(self) -> dict[int, int]:
        """How many queues the device needs, by family. The replay's own is among them."""
        found: dict[int, int] = {}
        for family, index in (self.own, *self.queues.values()):
            found[family] = max(found.get(family, 0), index + 1)
        return found

    def family(self, family: int) -> int:
        """The device's family for one of the trace. VK_QUEUE_FAMILY_IGNORED and its like stay as they are."""
        return family if family in OF_NO_DEVICE else self.families.get(family, self.own[0])

    def queue(self, place: QueuePlace) -> QueuePlace:
        """The device's queue for one of the trace."""
        return self.queues.get(place, self.own)


def place_of(call: Call) -> QueuePlace:
    """The place that a vkGetDeviceQueue or vkGetDeviceQueue2 asks for. Raises TypeError for one that is no number."""
    info = call.args.get("pQueueInfo") or call.args
    return whole_number(info["queueFamilyIndex"]), whole_number(info["queueIndex"])


def trace_queues(blocks: Iterable[Block]) -> TraceQueues:
    """Collects the queues that a trace obtains, and its families. Raises `UserError` for a malformed call."""
    found = TraceQueues()
    told: dict[int, list[int]] = {}
    physical: int | None = None
    for block in blocks:
        if not isinstance(block, Call) or not block.succeeded:
            continue
        name = main_name(block.name)
        with reading(block):
            if name == "vkCreateDevice" and physical is None:
                physical = block.args["physicalDevice"]
            elif name in ("vkGetDeviceQueue", "vkGetDeviceQueue2"):
                found.of_queue[block.args["pQueue"]] = place = place_of(block)
                found.places.add(place)
                found.first = found.first or place
            elif name.startswith("vkGetPhysicalDeviceQueueFamilyProperties"):
                told[block.args["physicalDevice"]] = _flags(block) or told.get(block.args["physicalDevice"], [])
            elif name == BIND_SPARSE and block.args["queue"] in found.of_queue:
                found.sparse.add(found.of_queue[block.args["queue"]][0])
    found.flags.update(enumerate(told.get(physical, []) if physical is not None else []))
    return found


def _flags(call: Call) -> list[int]:
    """The VkQueueFlags of each family, from either form of vkGetPhysicalDeviceQueueFamilyProperties."""
    answers: list[dict[str, Any]] = call.args["pQueueFamilyProperties"] or []
    return [whole_number((each.get("queueFamilyProperties") or each)["queueFlags"]) for each in answers]


def map_queues(wanted: TraceQueues, families: Sequence[QueueFamily], own: int) -> QueueMapping:
    """The mapping to a device with these families, of which `own` is the replay's.

    Families of which the trace does not tell the flags, or that the device cannot stand for, go to `own`.
    """
    mapped: dict[int, int] = {}
    there = sorted({family for family, _ in wanted.places})
    for family in sorted(there, key=lambda each: -_needed(wanted, each).bit_count()):
        mapped[family] = _family_for(wanted, family, families, own, set(mapped.values()))
    queues: dict[QueuePlace, QueuePlace] = {}
    taken: dict[int, int] = {}
    for place in sorted(wanted.places):
        target = mapped[place[0]]
        queues[place] = target, taken.get(target, 0) % families[target].queues
        taken[target] = taken.get(target, 0) + 1
    return QueueMapping((own, 0), mapped, queues, queues[wanted.first] if wanted.first else None)


def _needed(wanted: TraceQueues, family: int) -> int:
    """The VkQueueFlags without which the device cannot stand for a family; 0 when the trace does not tell."""
    needed = _with_transfer(wanted.flags.get(family, 0)) & WORKS
    return needed | VkQueueFlag.SPARSE_BINDING if needed and family in wanted.sparse else needed


def _with_transfer(flags: int) -> int:
    """Graphics and compute include transfers, whether a driver says so or not."""
    return flags | VkQueueFlag.TRANSFER if flags & (VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE) else flags


def _family_for(wanted: TraceQueues, family: int, families: Sequence[QueueFamily], own: int, used: set[int]) -> int:
    needed = _needed(wanted, family)
    flags = _with_transfer(wanted.flags.get(family, 0))
    fitting = [at for at, each in enumerate(families) if needed and each.queues and _has(each, needed)]

    def cost(at: int) -> tuple[bool, int, int, int]:
        have = _with_transfer(families[at].flags)
        return at in used, (have & ~flags & WORKS).bit_count(), (have ^ flags).bit_count(), at

    return min(fitting, key=cost, default=own)


def _has(family: QueueFamily, needed: int) -> bool:
    return _with_transfer(family.flags) & needed == needed

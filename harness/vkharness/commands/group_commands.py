"""Which physical device executes which commands of a submit, on which memory (`vkharness.commands.device_groups`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.commands.device_groups import DeviceGroups
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.spec.enums import VkStructureType
from vkharness.trace.chain import chained
from vkharness.trace.effects import (
    Access,
    Alias,
    AutomaticTransition,
    Barrier,
    Command,
    Dependency,
    Effect,
    Execute,
    PassBegin,
    PassEnd,
    RangeBarrier,
    SemaphoreOperation,
    SetEvent,
    StreamEvent,
    Submission,
    Submitted,
    SubpassBegin,
    Unmodelled,
    UnmodelledCall,
    WaitEvents,
)
from vkharness.trace.group_effects import DependencyEnd, DeviceMask
from vkharness.trace.sparse_effects import BindingUse
from vkharness.trace.submits import SubmitBatch
from vkharness.trace.work_budget import A_COMMAND, spend

BEGINS = ("vkCmdBeginRenderPass", "vkCmdBeginRendering")
CONTINUES = ("vkCmdNextSubpass", "vkCmdEndRender")
"""Commands that the physical devices of the render pass instance execute, whatever the current device mask."""
ENDS = "vkCmdEndRender"
INSIDE = "a dependency between physical devices inside of a render pass instance or of a secondary command buffer"
SHARED_TRANSITION = "a layout transition of an instance of memory by several physical devices"
AREAS = "render areas that differ between physical devices"


class MaskedCommand(NamedTuple):
    """A command, and the mask of the physical devices that execute it."""

    command: Command
    mask: int
    inside: bool
    """Whether it is inside of a render pass instance."""


def executed(commands: Iterable[Command], begun_with: int) -> Iterator[MaskedCommand]:
    """The commands of a command buffer with their device masks. It was begun with a mask.

    Specification: "Command Buffer Device Mask", "VkDeviceGroupRenderPassBeginInfo". Rule:
    rules.md#each-physical-device-executes-its-own-commands.
    """
    mask, instance = begun_with, None
    for command in commands:
        told = next((each for each in command.effects if isinstance(each, DeviceMask)), None)
        if told is not None:
            mask = begun_with if told.mask is None else told.mask & begun_with
        if command.name.startswith(BEGINS):
            instance = mask
        if command.name.startswith(CONTINUES) and instance is not None:
            yield MaskedCommand(command, instance, True)
            instance = None if command.name.startswith(ENDS) else instance
        else:
            yield MaskedCommand(command, mask, instance is not None)


def masked_begin(name: str, args: dict[str, Any], made: Iterable[Effect]) -> Iterable[Effect]:
    """Gives the effects of the begin of a render pass instance, with the device mask that it sets."""
    told = _told(name, args)
    if told is None:
        return made
    mask = DeviceMask(told["deviceMask"] if told else None)
    areas: list[Any] = told.get("pDeviceRenderAreas") or []
    differ = any(each != areas[0] for each in areas)
    return (mask, *made, *((Unmodelled(AREAS),) if differ else ()))


def with_area(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the begin of a render pass instance, with what the render areas of all physical devices have in
    common as render area."""
    areas: list[Any] = (_told(name, args) or {}).get("pDeviceRenderAreas") or []
    if not areas:
        return args
    left, top = (max(each["offset"][at] for each in areas) for at in ("x", "y"))
    right = min(each["offset"]["x"] + each["extent"]["width"] for each in areas)
    bottom = min(each["offset"]["y"] + each["extent"]["height"] for each in areas)
    extent = {"width": max(0, right - left), "height": max(0, bottom - top)}
    key = _info(name)
    return {**args, key: {**args[key], "renderArea": {"offset": {"x": left, "y": top}, "extent": extent}}}


def _info(name: str) -> str:
    return "pRenderingInfo" if name.startswith(BEGINS[1]) else "pRenderPassBegin"


def _told(name: str, args: dict[str, Any]) -> dict[str, Any] | None:
    """The VkDeviceGroupRenderPassBeginInfo of a command, empty where there is none; None for other commands."""
    if not name.startswith(BEGINS):
        return None
    return chained(args.get(_info(name)), VkStructureType.DEVICE_GROUP_RENDER_PASS_BEGIN_INFO) or {}


class _Part:
    """Work of physical devices between two barriers among them: by device, command buffers with their commands."""

    def __init__(self, size: int) -> None:
        self.buffers: list[list[tuple[int, list[Command]]]] = [[] for _ in range(size)]

    def add(self, device: int, buffer: int, command: Command) -> None:
        """The next command of a physical device."""
        held = self.buffers[device]
        if not held or held[-1][0] != buffer:
            held.append((buffer, []))
        held[-1][1].append(command)

    def of(self, device: int) -> tuple[tuple[int, Sequence[Command]], ...]:
        """The command buffers of a physical device."""
        return tuple(self.buffers[device])


class _Between(NamedTuple):
    """A barrier between the physical devices of a mask, and what each of them executes of it by itself."""

    barriers: tuple[Barrier, ...]
    mask: int
    alone: _Part


class GroupSubmit:
    """One submit to a queue of several physical devices, as a submit to a queue of each of them."""

    def __init__(self, objects: ObjectState, groups: DeviceGroups, made: Submitted) -> None:
        self._objects, self._groups, self._made = objects, groups, made
        self._size = groups.size_of_queue(made.queue)
        self._whole = (1 << self._size) - 1
        self._named: dict[str, None] = {}
        self._number = -1

    def events(self, taken: Sequence[SubmitBatch]) -> Iterator[StreamEvent]:
        """The events. The fence is signaled when all physical devices are done.

        Specification: "Synchronization and Multiple Physical Devices". Rule:
        rules.md#a-semaphore-belongs-to-the-physical-device-of-its-index.
        """
        parts = [self._parts(batch, each.masks) for batch, each in zip(self._made.batches, taken, strict=True)]
        yield from map(UnmodelledCall, self._named)
        for batch, several in zip(self._made.batches, parts, strict=True):
            yield from self._batch(batch, several)
        if self._made.fence or not self._made.batches:
            self._number += 1
            for device in range(self._size):
                fence = self._groups.own(self._made.fence, device) if self._made.fence else 0
                yield self._submit(device, Submission(self._number, ()), fence)

    def _submit(self, device: int, batch: Submission, fence: int = 0) -> Submitted:
        queue = self._groups.own(self._made.queue, device)
        return replace(self._made, queue=queue, batches=(batch,), fence=fence)

    # -- what is executed ----------------------------------------------------------------------------------------------

    def _parts(self, batch: Submission, masks: Sequence[int]) -> list[_Part | _Between]:
        """The commands of a batch by physical device, cut at barriers between physical devices."""
        parts: list[_Part | _Between] = [part := _Part(self._size)]
        for (id, commands), mask in zip(batch.buffers, masks, strict=True):
            begun_with = self._begun_with(id) & (mask or self._whole)
            for each in executed(commands, begun_with):
                between = self._barriers_between(each)
                alone = _Part(self._size) if between else part
                for device in self._devices(each.mask):
                    made = self._on(each.command, device, each.mask)
                    if made is not None:
                        alone.add(device, id, made)
                if between:
                    parts += [_Between(between, each.mask, alone), part := _Part(self._size)]
        return parts

    def _begun_with(self, id: int) -> int:
        buffer = self._objects.get(CommandBuffer, id)
        return self._whole if buffer is None else buffer.device_mask & self._whole

    def _devices(self, mask: int) -> Iterator[int]:
        return (each for each in range(self._size) if mask >> each & 1)

    def _barriers_between(self, each: MaskedCommand) -> tuple[Barrier, ...]:
        """The barriers of a command that are between physical devices, if they are outside of render pass instances.

        Specification: "Device-Local Dependencies". Rule: rules.md#a-barrier-is-local-to-its-physical-device.
        """
        if each.mask & (each.mask - 1) == 0:
            return ()
        found = tuple(effect for effect in each.command.effects if isinstance(effect, Barrier) and effect.device_group)
        is_unfollowed = any(
            isinstance(effect, PassBegin) and any(between.device_group for between in effect.dependencies)
            for effect in each.command.effects
        )
        if is_unfollowed or (found and each.inside):
            self._named[INSIDE] = None
        return () if each.inside else found

    def _on(self, command: Command, device: int, mask: int) -> Command | None:
        """Gives a command as a physical device of a mask executes it; None if it does nothing there."""
        spend(A_COMMAND, "commands of several physical devices")
        effects = tuple(made for each in command.effects if (made := self._effect(each, device, mask)) is not None)
        return Command(command.call, command.name, command.site, effects) if effects else None

    def _effect(self, effect: Effect, device: int, mask: int) -> Effect | None:
        match effect:
            case DeviceMask() | BindingUse():
                return None
            case Unmodelled():
                if not effect.open:
                    self._named[effect.what] = None
                return None
            case Access():
                return None if effect.resource in self._objects.sparse.resources else self._moved(effect, device)
            case Barrier():
                return self._barrier(effect, device, mask)
            case SetEvent():
                return replace(effect, barrier=self._barrier(effect.barrier, device, mask))
            case WaitEvents():
                return replace(effect, barriers=tuple(self._barrier(each, device, mask) for each in effect.barriers))
            case SubpassBegin() | PassEnd():
                return replace(effect, transitions=tuple(self._transitions(effect.transitions, device, mask)))
            case Execute():
                return Execute(tuple((id, self._secondary(id, inner, device, mask)) for id, inner in effect.buffers))
        return effect

    def _secondary(self, id: int, commands: Sequence[Command], device: int, mask: int) -> list[Command]:
        made = []
        for each in executed(commands, self._begun_with(id) & mask):
            if self._barriers_between(each):
                self._named[INSIDE] = None
            if each.mask >> device & 1:
                made.append(self._on(each.command, device, each.mask))
        return [each for each in made if each is not None]

    def _moved(self, each: Any, device: int) -> Any:
        """An access, a barrier of a range or a transition, at the memory that a physical device reaches."""
        aliases = tuple(self._alias(alias, each.resource, device) for alias in each.aliases)
        return replace(each, space=self._groups.place(each.space, each.resource, device), aliases=aliases)

    def _alias(self, alias: Alias, resource: int, device: int) -> Alias:
        return replace(alias, space=self._groups.place(alias.space, resource, device))

    def _barrier(self, barrier: Barrier, device: int, mask: int) -> Barrier:
        ranges = tuple(self._range(each, device, mask) for each in barrier.ranges)
        return replace(barrier, ranges=ranges, device_group=False)

    def _range(self, each: RangeBarrier, device: int, mask: int) -> RangeBarrier:
        """A barrier of a range. Where several physical devices transition one instance, that is named."""
        made: RangeBarrier = self._moved(each, device)
        if each.transition and self._groups.shares(each.resource, each.space, device, mask):
            self._named[SHARED_TRANSITION] = None
            return replace(made, transition=False)
        return made

    def _transitions(
        self, several: Iterable[AutomaticTransition], device: int, mask: int
    ) -> Iterator[AutomaticTransition]:
        for each in several:
            if self._groups.shares(each.resource, each.space, device, mask):
                self._named[SHARED_TRANSITION] = None
            else:
                yield self._moved(each, device)

    # -- batches -------------------------------------------------------------------------------------------------------

    def _batch(self, batch: Submission, parts: Sequence[_Part | _Between]) -> Iterator[StreamEvent]:
        """A batch: each physical device performs the semaphore operations that have its device index.

        Rule: rules.md#a-semaphore-belongs-to-the-physical-device-of-its-index.
        """
        self._number = max(self._number + 1, batch.batch)
        received: list[tuple[SemaphoreOperation, ...]] = [()] * self._size
        for at, part in enumerate(parts):
            is_first, is_last = at == 0, at == len(parts) - 1
            if isinstance(part, _Between):
                yield from self._alone(part, received)
                continue
            following = parts[at + 1] if not is_last else None
            sent, got = self._ends(following) if isinstance(following, _Between) else ([()] * self._size, received)
            for device in range(self._size):
                waits = _of(batch.waits, device) if is_first else received[device]
                signals = _of(batch.signals, device) if is_last else sent[device]
                buffers = part.of(device)
                if waits or signals or buffers:
                    yield self._submit(device, Submission(self._number, buffers, waits=waits, signals=signals))
            self._number += not is_last
            received = got

    def _alone(self, part: _Between, received: list[tuple[SemaphoreOperation, ...]]) -> Iterator[StreamEvent]:
        """Yields submits of what each physical device does alone of a barrier: before it waits for the others, since
        dependencies of one command do not chain; after that where it makes transitions, which come after all."""
        for device in self._devices(part.mask):
            waits: tuple[SemaphoreOperation, ...] = ()
            if any(each.end is not None and each.end.moves for each in received[device]):
                waits, received[device] = received[device], ()
            buffers = part.alone.of(device)
            if waits or buffers:
                yield self._submit(device, Submission(self._number, buffers, waits=waits))
        self._number += 1

    def _ends(
        self, part: _Between
    ) -> tuple[list[tuple[SemaphoreOperation, ...]], list[tuple[SemaphoreOperation, ...]]]:
        """The ends of the dependencies of a barrier by physical device: those before it, and those behind it."""
        before: list[tuple[SemaphoreOperation, ...]] = [()] * self._size
        behind: list[tuple[SemaphoreOperation, ...]] = [()] * self._size
        devices = tuple(self._devices(part.mask))
        parts = tuple(each for barrier in part.barriers for each in self._dependencies(barrier, devices))
        spend(A_COMMAND * len(parts) * len(devices) ** 2, "dependencies between physical devices")
        for source in devices:
            for target in devices:
                for number, (given, ranges, moves) in enumerate(parts if source != target else ()):
                    id = self._groups.other(-self._made.queue, source, target, number)
                    first, second = (DependencyEnd(each, ranges=ranges, moves=moves) for each in given[1::2])
                    before[source] += (SemaphoreOperation(id, given.src_stages, device=source, end=first),)
                    behind[target] += (SemaphoreOperation(id, given.dst_stages, device=target, end=second),)
        return before, behind

    def _dependencies(self, barrier: Barrier, devices: Sequence[int]) -> Iterator[_Dependency]:
        moves = any(each.transition or each.src_family != each.dst_family for each in barrier.ranges)
        for given in barrier.globals:
            yield _Dependency(given, None, moves)
        for each in barrier.ranges:
            held = [self._moved(each, device) for device in devices]
            places = {(one.space, one.spans): None for made in held for one in (made, *made.aliases)}
            yield _Dependency(each.dependency, tuple(places), moves)


class _Dependency(NamedTuple):
    """A dependency of a barrier between physical devices, and what its ends say beside its masks."""

    dependency: Dependency
    ranges: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] | None
    moves: bool


def _of(operations: Iterable[SemaphoreOperation], device: int) -> tuple[SemaphoreOperation, ...]:
    """The operations that a physical device performs."""
    return tuple([each for each in operations if each.device == device])

"""Payloads that several objects share: exported by a handle of the operating system and imported again.

Specification: "Importing Semaphore Payloads", "Importing Fence Payloads", "External Resource Sharing". Two objects with
one payload behave as one object. So a call that names one of them is read as if it named the other one: `resolved` does
that. Everybody behind it sees one object, whose id is that of the payload.

Which import belongs to which export is known by the file descriptor, and in a trace of ours by the identity of the file
behind it (`PAYLOAD`). What is exported and not imported in the trace is shared with somebody outside of it, and so is
what is imported and not exported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

from vkharness.spec.command_classes import EXPORTS, IMPORTS, is_submit
from vkharness.spec.enums import (
    VkExternalFenceHandleType,
    VkExternalSemaphoreHandleType,
    VkFenceImport,
    VkSemaphoreImport,
    VkStructureType,
)
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import PAYLOAD, Block, Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Destroyed, FenceReset, PayloadShared, SemaphoreCreated, StreamEvent
from vkharness.trace.host_effects import SignalMoved
from vkharness.trace.rewriting import struct_with_handles, with_handles

_DESTROYED = {
    "vkDestroySemaphore": "semaphore",
    "vkDestroyFence": "fence",
    "vkFreeMemory": "memory",
    "vkDestroyImage": "image",
    "vkDestroyBuffer": "buffer",
}
_WAITS = ("pWaitSemaphores", "pWaitSemaphoreInfos")
_SUBMITTED = {
    "vkQueueSubmit": ("pSubmits", "VkSubmitInfo"),
    "vkQueueSubmit2": ("pSubmits", "VkSubmitInfo2"),
    "vkQueueBindSparse": ("pBindInfo", "VkBindSparseInfo"),
}
FIRST_PAYLOAD = 1 << 57
"""Payloads that are nobody's own have ids from here on. No trace has such ids."""
ALREADY_SIGNALED = -1
"""In place of a sync file: an object that has already signaled."""


@dataclass(slots=True)
class Export:
    """A handle of the operating system that stands for a payload and was not imported yet."""

    payload: int
    kind: str
    """VkDeviceMemory, VkSemaphore or VkFence."""
    identity: str | None


class Transfer(NamedTuple):
    """An export or import of a payload; one form for all types of objects."""

    kind: str
    object: int
    copies: bool
    """Whether the handle's type has copy transference."""
    temporary: bool
    fd: int | None
    identity: str | None


class SharedPayloads:
    """Which payload each object has now, and who shares it. It follows the calls of one trace in order."""

    def __init__(self) -> None:
        self.standing_for: dict[int, int] = {}
        """Object to the payload that it has now, where that is not its own."""
        self.timelines: set[int] = set()
        """Timeline semaphores."""
        self.seen_semaphores: set[int] = set()
        """Payloads of semaphores that were made or used so far, and not destroyed."""
        self.outside_waits = 0
        """Waits of queues for payloads that somebody outside may have."""
        self._before: dict[int, int] = {}
        """Object with a temporary payload to the one that it goes back to."""
        self._holders: dict[int, set[int]] = {}
        """The objects that have a payload for good, for payloads that were imported here."""
        self._handles: dict[tuple[str, int], Export] = {}
        """By kind and file descriptor."""
        self._identities: dict[tuple[str, str], int] = {}
        self._open: dict[int, int] = {}
        """Handles of each payload that were exported and not imported here."""
        self._from_outside: set[int] = set()
        self._resources: dict[tuple[int, int], list[tuple[int, dict[str, Any]]]] = {}
        """Images and buffers with their create infos, by memory and offset."""
        self._numbers = count(FIRST_PAYLOAD)

    def payload(self, object: int) -> int:
        """The payload that an object has now."""
        return self.standing_for.get(object, object)

    def is_outside(self, payload: int) -> bool:
        """Whether somebody outside of the trace may have a payload."""
        return payload in self._from_outside or bool(self._open.get(payload))

    def waited(self, payloads: Iterable[int]) -> None:
        """A batch waits for payloads."""
        if self._open or self._from_outside:
            self.outside_waits += sum(map(self.is_outside, payloads))

    def is_shared_here(self, payload: int) -> bool:
        """Whether several objects of the trace have a payload."""
        return len(self._holders.get(payload, ())) > 1

    def bound(self, resource: int, memory: int, offset: int, info: dict[str, Any]) -> bool:
        """Takes note of where an image or a buffer is bound. Whether it is one with another that was created and bound
        alike through another object with this memory: what happens to one then happens to the other ("External Resource
        Sharing")."""
        there = self._resources.setdefault((memory, offset), [])
        other = next((each for each, made in there if each != resource and made == info), None)
        if other is not None and self.is_shared_here(memory):
            self._share(resource, other)
            return True
        there.append((resource, info))
        return False

    def resource_destroyed(self, resource: int, memory: int, offset: int) -> None:
        """Nothing is one with this image or buffer from now on."""
        left = [each for each in self._resources.pop((memory, offset), ()) if each[0] != resource]
        if left:
            self._resources[memory, offset] = left

    def _share(self, object: int, payload: int) -> None:
        """An object has another one's payload from now on."""
        self.standing_for[object] = payload
        self._holders.setdefault(payload, {payload}).add(object)

    # -- what calls mean -----------------------------------------------------------------------------------------------

    def resolved(self, block: Block) -> Block:
        """The block with payloads in place of the objects that have them.

        A wait takes a temporary payload off its semaphore again, and a reset off its fence. Destroying one of several
        objects with one payload is read as destroying VK_NULL_HANDLE.
        """
        if not isinstance(block, Call):
            memory = self.standing_for.get(block.memory)
            return block if memory is None else replace(block, memory=memory)
        name = main_name(block.name)
        if name in EXPORTS or name in IMPORTS:
            return block
        if name in _DESTROYED:
            return self._without(block, _DESTROYED[name])
        if is_submit(block.name) or name in _SUBMITTED:
            return self._submitted(block, name)
        if name == "vkResetFences":
            for fence in block.args["pFences"] or ():
                self._restore(fence)
        made = with_handles(block, self._new)
        if name == "vkQueuePresentKHR":
            self._waited(block.args["pPresentInfo"])
        return made

    def _new(self, object: int, made: bool) -> int:
        return object if made else self.payload(object)

    def _without(self, call: Call, key: str) -> Call:
        object = call.args[key]
        self._restore(object)
        payload = self.standing_for.pop(object, object)
        holders = self._holders.get(payload)
        if holders is None:
            return call if payload == object else replace(call, args={**call.args, key: payload})
        holders.discard(object)
        return replace(call, args={**call.args, key: 0 if holders else payload})

    def _submitted(self, call: Call, name: str) -> Call:
        key, struct = _SUBMITTED.get(name, ("", ""))
        infos = []
        for info in call.args.get(key) or ():
            waits = {each: info[each] for each in _WAITS if each in info}
            first = struct_with_handles(struct, waits, self._new)
            self._waited(info)
            rest = {each: value for each, value in info.items() if each not in waits}
            infos.append({**info, **struct_with_handles(struct, rest, self._new), **first})
        if key not in call.args or call.args[key] is None:
            return with_handles(call, self._new)
        made = with_handles(replace(call, args={**call.args, key: None}), self._new)
        return replace(call, args={**made.args, key: infos})

    def _waited(self, info: dict[str, Any]) -> None:
        if self._before:
            waited = [*(info.get("pWaitSemaphores") or ())]
            waited += [each["semaphore"] for each in info.get("pWaitSemaphoreInfos") or ()]
            for each in waited:
                self._restore(each)

    def _restore(self, object: int) -> None:
        """Gives an object its permanent payload back."""
        before = self._before.pop(object, None)
        if before is not None:
            self._stand(object, before)

    def _stand(self, object: int, payload: int) -> None:
        if payload == object:
            self.standing_for.pop(object, None)
        else:
            self.standing_for[object] = payload

    # -- exports -------------------------------------------------------------------------------------------------------

    def exported(self, call: Call) -> Iterator[StreamEvent]:
        """Follows an export. A copy takes the pending signal with it, as a wait or a reset does."""
        given = transfer_of(call)
        payload = self.payload(given.object)
        if given.copies:
            copy = next(self._numbers)
            if given.kind == "VkSemaphore":
                yield SemaphoreCreated(copy, None)
            yield SignalMoved(payload, copy)
            if self.is_outside(payload):
                self._from_outside.add(copy)
            self._restore(given.object)
            payload = copy
        if given.fd != ALREADY_SIGNALED:
            self._open[payload] = self._open.get(payload, 0) + 1
            if given.fd is not None:
                self._handles[given.kind, given.fd] = Export(payload, given.kind, given.identity)
            if given.identity is not None and not given.copies:
                self._identities[given.kind, given.identity] = payload
        yield PayloadShared(payload, outside=True)

    # -- imports -------------------------------------------------------------------------------------------------------

    def imported(self, call: Call) -> Iterator[StreamEvent]:
        """Follows an import to a semaphore or a fence."""
        given = transfer_of(call)
        payload = self._found(given)
        if payload is None:
            yield from self._from_elsewhere(given)
            return
        if not given.temporary:
            yield from self._detached(given, payload)
            self._holders.setdefault(payload, {payload}).add(given.object)
            self._before.pop(given.object, None)
        else:
            self._before.setdefault(given.object, self.payload(given.object))
        self._stand(given.object, payload)
        yield PayloadShared(payload, outside=self.is_outside(payload))

    def memory_imported(self, call: Call) -> Iterator[StreamEvent]:
        """Follows vkAllocateMemory: memory that is imported has the payload that it is imported from."""
        given = memory_import(call)
        payload = None if given is None else self._found(given)
        if payload is not None:
            self._share(call.args["pMemory"], payload)
            yield PayloadShared(payload, outside=self.is_outside(payload))
        elif given is not None:
            self._from_outside.add(call.args["pMemory"])
            if given.identity is not None:
                self._identities[given.kind, given.identity] = call.args["pMemory"]
            yield PayloadShared(call.args["pMemory"], outside=True)

    def _found(self, given: Transfer) -> int | None:
        """The payload of this trace that a handle stands for; None for one from outside. An import uses the handle
        up."""
        export = self._handles.get((given.kind, given.fd)) if given.fd is not None else None
        if export is not None and (None in (given.identity, export.identity) or given.identity == export.identity):
            del self._handles[given.kind, given.fd or 0]
            payload: int | None = export.payload
        elif given.identity is not None:
            payload = self._identities.get((given.kind, given.identity))
        else:
            payload = None
        if payload is not None:
            self._open[payload] = max(0, self._open.get(payload, 0) - 1)
        return payload

    def _from_elsewhere(self, given: Transfer) -> Iterator[StreamEvent]:
        """An import of what was not exported here. Its payload is a new one."""
        own = given.object
        timeline = own in self.timelines
        if given.temporary or self.is_shared_here(own) or self.payload(own) != own:
            payload = next(self._numbers)
        else:
            payload = own
        if given.temporary:
            self._before.setdefault(own, self.payload(own))
        else:
            yield from self._detached(given, payload)
            self._before.pop(own, None)
        self._stand(own, payload)
        if given.kind == "VkSemaphore":
            yield SemaphoreCreated(payload, 0 if timeline else None)
        if given.fd != ALREADY_SIGNALED:
            self._from_outside.add(payload)
            if given.identity is not None and not given.copies:
                self._identities[given.kind, given.identity] = payload
            yield PayloadShared(payload, outside=True)

    def _detached(self, given: Transfer, payload: int) -> Iterator[StreamEvent]:
        """The payload that an object had for good is gone, unless another object has it, too."""
        object = given.object
        old = self._before.get(object, self.payload(object))
        holders = self._holders.get(old, {object})
        holders.discard(object)
        if not holders and (old != payload or payload not in self._holders):
            self._open.pop(old, None)
            yield Destroyed(old) if given.kind == "VkSemaphore" else FenceReset((old,))


def transfer_of(call: Call) -> Transfer:
    """Reads the export or import of the payload of a semaphore, fence or memory object from its call."""
    name = main_name(call.name)
    info = call.args[EXPORTS.get(name) or IMPORTS[name]]
    kind, key = next(
        (kind, key)
        for key, kind in (("semaphore", "VkSemaphore"), ("fence", "VkFence"), ("memory", "VkDeviceMemory"))
        if key in info
    )
    sync_file = {
        "VkSemaphore": VkExternalSemaphoreHandleType.SYNC_FD,
        "VkFence": VkExternalFenceHandleType.SYNC_FD,
    }.get(kind, 0)
    temporary = bool(info.get("flags", 0) & (VkSemaphoreImport.TEMPORARY | VkFenceImport.TEMPORARY))
    fd = call.args.get("pFd") if name in EXPORTS else info.get("fd")
    return Transfer(kind, info[key], info["handleType"] == sync_file, temporary, fd, call.args.get(PAYLOAD))


def memory_import(call: Call) -> Transfer | None:
    """Returns the import of a vkAllocateMemory; None where it imports nothing by a file descriptor."""
    info = chained(call.args["pAllocateInfo"], VkStructureType.IMPORT_MEMORY_FD_INFO_KHR)
    if info is None:
        return None
    return Transfer("VkDeviceMemory", 0, False, False, info["fd"], call.args.get(PAYLOAD))

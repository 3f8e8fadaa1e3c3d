"""Host writes to mapped memory, found by comparison and put into the stream where they count.

Theory of operation
===================

A program writes mapped memory through a plain pointer. No call says so. What the device reads is nevertheless decided
by these writes, so the stream must hold them: the validator needs to know that the host wrote, and a replay needs the
bytes.

Each mapped range has a *shadow*, a copy of what it held when it was last looked at. Before a call that makes host
writes count (a submit, an unmap, a flush, a host wait) what was written in the range is compared with its shadow, and
every difference becomes a host write in front of that call. The kernel says which pages were written, where it can
(`written_pages`): mappings in which nothing was written cost next to nothing.

The device writes mapped memory, too
------------------------------------
A difference may come from a command that is still running. It cannot be told from a host write by looking, and a host
write that nobody made would be a false hazard. So:

1. Bytes that pending work may write are left out of the comparison.
2. When the host learns that the work is complete, these bytes are taken over into the shadow as they are.

The bytes that pending work may write are known from the recorded commands' effects (`commands.device_writes`).

Fresh memory
------------
Memory that is mapped for the first time since it was allocated, before any device work could have written it, holds
arbitrary bytes, and the host's own writes may happen to equal them. Such memory goes into the stream whole
(`mapped_memory`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.record.mapped_memory import Mapping, Range
from vkharness.record.mappings import Mappings
from vkharness.record.unmapped_memory import UnmappedMemory
from vkharness.record.work import DeviceWork, Ranges, UnfinishedSubmit
from vkharness.record.written_pages import OWN_PAGES, MappedPages
from vkharness.spans import ENDLESS
from vkharness.spec._generated import STYPES
from vkharness.spec.command_classes import HOST_POLLS, HOST_PUBLISHES, HOST_WAITS, QUEUE_WORK
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.shapes import main_name
from vkharness.trace.chain import links
from vkharness.trace.non_coherent import NonCoherent

Before = Callable[[dict[str, Any]], None]
After = Callable[[dict[str, Any], int | None], None]


@dataclass(slots=True)
class AllocatedMemory:
    """One memory object: its device and its bytes. `bound` is the last submission that came before something was bound
    to it, None while nothing is: no earlier work can read it. `shared` memory may be mapped elsewhere, too."""

    device: int
    size: int
    shared: bool
    bound: int | None = None


class HostMemory:
    """Shadows of all mapped memory of one session. `emit(memory, offset, data)` puts a host write into the stream;
    with True behind, what memory held when the host first saw it."""

    def __init__(
        self,
        emit: Callable[..., None],
        unknown: Callable[[str], None],
        written: Callable[[int, int], Sequence[Range] | None],
        may_write: Callable[[Iterable[int]], Ranges],
        source: MappedPages = OWN_PAGES,
    ) -> None:
        """`unknown(command)` is told of a mapping whose size nobody knows.

        `written(memory, end)` gives the ranges of buffers on a memory object, up to `end`, that pending work writes;
        None when that is not known exactly. `may_write(command_buffers)` gives the ranges that executing them may
        write, by memory object; a range of an image ends at `ENDLESS`. `source` reads what is mapped: of this process,
        or of another one.
        """
        self._source = source
        self.work = DeviceWork()
        self._emit = emit
        self._written = written
        self._may_write = may_write
        self._unknown = unknown
        self._mappings = Mappings(source)
        self._unmapped = UnmappedMemory(source)
        self._loose = NonCoherent()
        self._allocations: dict[int, AllocatedMemory] = {}
        """By memory id."""
        self._unseen: dict[int, list[Range]] = {}
        """Memory id to what is fresh in it: bytes that neither the host has mapped nor device work may have written."""
        self._submitted = threading.local()
        self._lock = threading.RLock()

    def before(self, name: str) -> Before | None:
        """Gives the function to call with the arguments of `name` before it is forwarded; None for most commands."""
        command = main_name(name)
        if command in QUEUE_WORK:
            return self._locked(self._before_submit)
        if command in HOST_WAITS or command in HOST_PUBLISHES:
            return self._locked(lambda _: self._compare())
        single: dict[str, Before] = {
            "vkUnmapMemory": lambda args: self._unmap(args["memory"]),
            "vkUnmapMemory2KHR": lambda args: self._unmap(args["pMemoryUnmapInfo"]["memory"]),
            "vkFreeMemory": self._free,
            "vkDestroyDevice": self._destroy_device,
            "vkInvalidateMappedMemoryRanges": lambda _: self._compare(),
        }
        action = single.get(command)
        return None if action is None else self._locked(action)

    def after(self, name: str) -> After | None:
        """Gives the function to call when `name` has returned, before it is recorded; None for most commands."""
        command = main_name(name)
        if command in QUEUE_WORK:
            return self._locked_after(self._after_submit)
        if command in HOST_WAITS or command in HOST_POLLS:
            return self._locked_after(lambda args, result: self._after_wait(command, args, result))
        actions: dict[str, Before] = {
            "vkAllocateMemory": self._allocate,
            "vkMapMemory": self._map,
            "vkMapMemory2KHR": lambda args: self._map(args["pMemoryMapInfo"] | {"ppData": args["ppData"]}),
            "vkInvalidateMappedMemoryRanges": self._invalidate,
            "vkBindBufferMemory": lambda args: self._bind((args,)),
            "vkBindImageMemory": lambda args: self._bind((args,)),
            "vkBindBufferMemory2": lambda args: self._bind(args["pBindInfos"] or ()),
            "vkBindImageMemory2": lambda args: self._bind(args["pBindInfos"] or ()),
            "vkGetPhysicalDeviceMemoryProperties": self._loose.types_told,
            "vkGetPhysicalDeviceMemoryProperties2": self._loose.types_told,
            "vkCreateDevice": self._loose.device_made,
        }
        action = actions.get(command)
        return None if action is None else self._locked_after(lambda args, result: None if result else action(args))

    def cancelled(self, name: str) -> Callable[[], None] | None:
        """Gives the function that undoes `before` when the call raised and never happened; None for most commands."""
        return self._cancel if main_name(name) in QUEUE_WORK else None

    def end(self) -> None:
        """Follows no memory any more: what becomes of it, nobody tells."""
        with self._lock:
            self._mappings, self._unmapped = Mappings(self._source), UnmappedMemory(self._source)

    def look(self, memory: int) -> None:
        """Puts the host writes to one memory object into the stream that are not there yet."""
        with self._lock:
            self._compare(memory)

    def size_of(self, memory: int) -> int | None:
        """Bytes of a memory object; None when it was allocated before the session."""
        known = self._allocations.get(memory)
        return None if known is None else known.size

    def find(self, address: int) -> tuple[int, int] | None:
        """(memory object, offset in it) of an address that is mapped; None of any other."""
        with self._lock:
            for memory, mapping in self._mappings.by_memory.items():
                inside = address - mapping.view.ctypes.data
                if 0 <= inside < mapping.size:
                    return memory, mapping.offset + inside
        return None

    def _locked(self, action: Before) -> Before:
        def run(args: dict[str, Any]) -> None:
            with self._lock:
                action(args)

        return run

    def _locked_after(self, action: Callable[[dict[str, Any], int | None], object]) -> After:
        def run(args: dict[str, Any], result: int | None) -> None:
            with self._lock:
                action(args, result)

        return run

    def _compare(self, only: int | None = None) -> None:
        mappings = self._mappings.to_look_at(only)
        pending = self.work.pending_writes({mapping.memory for mapping in mappings}) if mappings else {}
        for mapping in mappings:
            ignored = self._device_writes(mapping, pending.get(mapping.memory, []))
            for offset, data in mapping.initial():
                self._emit(mapping.memory, offset, data, True)
            for offset, data in mapping.changes(ignored):
                self._emit(mapping.memory, offset, data)
            self._mappings.looked_at(mapping)

    def _device_writes(self, mapping: Mapping, possible: list[Range]) -> Sequence[Range]:
        """The ranges that pending work writes in a mapping, where that is known exactly; else `possible`, those that it
        may write."""
        if not possible or any(end >= ENDLESS for _, end in possible):
            return possible
        exact = self._written(mapping.memory, mapping.offset + mapping.size)
        return possible if exact is None else exact

    def _refresh(self, ranges: Ranges) -> None:
        for memory, spans in ranges.items():
            mapping = self._mappings.by_memory.get(memory)
            if mapping is not None:
                mapping.refresh(spans)

    def _before_submit(self, args: dict[str, Any]) -> None:
        self._compare()
        made = self._submitted.last = self.work.submit(args, self._may_write)
        changed = (*made.writes, *sparse_memories(args))
        self._unmapped.let_go(changed)
        for memory in changed:
            self._unseen.pop(memory, None)

    def _after_submit(self, args: dict[str, Any], result: int | None) -> None:
        if result:
            self._cancel()

    def _cancel(self) -> None:
        with self._lock:
            submission: UnfinishedSubmit | None = getattr(self._submitted, "last", None)
            if submission is not None:
                self.work.cancel(submission)

    def _after_wait(self, command: str, args: dict[str, Any], result: int | None) -> None:
        if result:
            return
        if command in HOST_POLLS:
            self._compare()
        possible = self.work.pending_writes(self._mappings.by_memory)
        if command == "vkDeviceWaitIdle":
            self.work.finish(lambda one: True)
        elif command == "vkQueueWaitIdle":
            self.work.finish(lambda one: one.queue == args["queue"])
        elif command == "vkWaitForFences":
            fences = args["pFences"] or ()
            known = args["waitAll"] or len(fences) == 1
            self.work.finish(lambda one: bool(known and one.fence and one.fence in fences))
        elif command == "vkGetFenceStatus":
            self.work.finish(lambda one: one.fence == args["fence"])
        elif command == "vkGetSemaphoreCounterValue":
            self._semaphores_done({args["semaphore"]: args["pValue"]})
        else:
            self._semaphores_waited(args["pWaitInfo"])
        self._refresh(possible)

    def _semaphores_waited(self, info: dict[str, Any]) -> None:
        reached = dict(zip(info["pSemaphores"] or (), info["pValues"] or (), strict=False))
        any_of_several = info["flags"] & 1 and len(reached) > 1
        if not any_of_several:
            self._semaphores_done(reached)

    def _semaphores_done(self, reached: dict[int, int]) -> None:
        self.work.finish(
            lambda one: any(value and value <= reached.get(semaphore, 0) for semaphore, value in one.signals)
        )

    def _allocate(self, args: dict[str, Any]) -> None:
        info = args["pAllocateInfo"]
        imports, exports = _chains(info, "Import"), _chains(info, "Export")
        self._allocations[args["pMemory"]] = AllocatedMemory(args["device"], info["allocationSize"], imports or exports)
        self._loose.allocated(args)
        if not imports:
            self._unseen[args["pMemory"]] = [(0, info["allocationSize"])]

    def _bind(self, binds: Iterable[dict[str, Any]]) -> None:
        for bind in binds:
            allocation = self._allocations.get(bind["memory"])
            if allocation is not None and allocation.bound is None:
                allocation.bound = self.work.serial

    def _map(self, args: dict[str, Any]) -> None:
        memory, offset, size = args["memory"], args["offset"], args["size"]
        if size == VK_WHOLE_SIZE:
            if memory not in self._allocations:
                self._unknown("vkMapMemory")
                return
            size = self._allocations[memory].size - offset
        view = self._source.view(memory, offset, args["ppData"], size)
        address = view.ctypes.data
        fresh = self._first_seen(memory, offset, offset + size)
        is_small = False
        made = None if fresh else self._unmapped.again(memory, offset, address, size)
        self._unmapped.let_go_of(address, size)
        if made is None:
            known = self._allocations.get(memory)
            trusted = known is not None and not known.shared
            is_small = trusted and size < self._source.small
            exact, followed = memory in self._loose.memories, trusted and not is_small
            made = Mapping(memory, offset, view, fresh, exact, followed, self._source)
        self._mappings.add(made, is_small)

    def _first_seen(self, memory: int, start: int, end: int) -> list[Range]:
        """The fresh parts of a range that the host is about to see.

        While work is pending that may read the memory, nothing counts as fresh: the host may not write it then.
        """
        unseen = self._unseen.pop(memory, [])
        left = [part for low, high in unseen for part in ((low, min(high, start)), (max(low, end), high))]
        self._unseen[memory] = [(low, high) for low, high in left if low < high]
        seen = [(max(low, start), min(high, end)) for low, high in unseen]
        bound = self._allocations[memory].bound if unseen else None
        may_be_read = bound is not None and any(one.serial > bound for one in self.work.pending)
        return [] if may_be_read else [(low, high) for low, high in seen if low < high]

    def _unmap(self, memory: int) -> None:
        self._compare(memory)
        mapping = self._mappings.remove(memory)
        if mapping is not None and not self.work.pending_writes([memory]):
            self._unmapped.keep(mapping)

    def _free(self, args: dict[str, Any]) -> None:
        self._mappings.remove(args["memory"])
        self._unmapped.let_go([args["memory"]])
        self._source.freed(args["memory"])
        self._allocations.pop(args["memory"], None)
        self._loose.memories.discard(args["memory"])
        self._unseen.pop(args["memory"], None)

    def _destroy_device(self, args: dict[str, Any]) -> None:
        for memory, allocation in list(self._allocations.items()):
            if allocation.device == args["device"]:
                self._free({"memory": memory})

    def _invalidate(self, args: dict[str, Any]) -> None:
        for span in args["pMemoryRanges"] or ():
            end = ENDLESS if span["size"] == VK_WHOLE_SIZE else span["offset"] + span["size"]
            self._refresh({span["memory"]: [(span["offset"], end)]})


def _chains(info: dict[str, Any], kind: str) -> bool:
    """Whether memory is allocated over a payload that others may have written ("Import"), or that they may get
    ("Export"): external memory of any kind."""
    return any(kind in STYPES.get(link["sType"], "") for link in links(info))


def sparse_memories(args: dict[str, Any]) -> Iterator[int]:
    """Memory objects that a vkQueueBindSparse binds: what is written in them is not followed."""
    for batch in args.get("pBindInfo") or ():
        for kind in ("pBufferBinds", "pImageOpaqueBinds", "pImageBinds"):
            for resource in batch.get(kind) or ():
                yield from (bind["memory"] for bind in resource["pBinds"] or ())

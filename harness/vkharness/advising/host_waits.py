"""Waits of the host that need not be: for work that it knows to be complete, or does not touch before a later wait.

The host's knowledge follows from waits and polls that succeeded: a fence and a timeline value stand for their submit
and all before it on that queue ("Signal Operation Order"). A wait is needed where the host does something before the
next wait for the same work that may rely on it (`_relies`). Recording, submits of other command buffers and making
objects do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vkharness.advising.written import HOST_WAIT, Written
from vkharness.call_sites import between
from vkharness.check import Analysis
from vkharness.reduction.structure import command_buffers, semaphore_operations
from vkharness.report.advice import Advice, AdviceKind
from vkharness.spec.command_classes import ACQUIRES, HOST_POLLS, HOST_WAITS, PRESENT, QUEUE_WORK, is_debug, is_recorded
from vkharness.spec.enums import VK_WHOLE_SIZE, VkSemaphoreWait
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

_HARMLESS = (
    "vkCreate",
    "vkAllocate",
    "vkBind",
    "vkEnumerate",
    "vkGetPhysicalDevice",
    "vkGetDevice",
    "vkGetBuffer",
    "vkGetImage",
)
_EVERY = -1
"""A queue that stands for what no queue does: acquires, and work that a signal of the host lets go on."""
Known = dict[int, int]
"""Queue to how many of its submits and presents."""


@dataclass(slots=True)
class _Work:
    """One submit or present: what the host must not touch before it is complete."""

    buffers: frozenset[int] = frozenset()
    fence: int = 0
    semaphores: frozenset[int] = frozenset()


@dataclass(slots=True)
class HostWaits:
    """The waits of a trace that need not be."""

    certain: list[Advice] = field(default_factory=list)
    """Those for what is known to be complete."""
    likely: list[Written] = field(default_factory=list)
    """Those after which the host touches nothing before it waits again. The judges are to be asked about memory."""
    until: dict[int, int] = field(default_factory=dict)
    """Each of them to the wait for the same work."""


def host_waits(blocks: Sequence[Block]) -> HostWaits:
    """Every vkDeviceWaitIdle, vkQueueWaitIdle, vkWaitForFences and vkWaitSemaphores that need not be. Waits are one
    when their source lines are the same; without source lines, when the calls around them are."""
    follower = _Follower(blocks)
    groups: dict[tuple[str, object], list[Call]] = defaultdict(list)
    for number, call in enumerate(follower.calls):
        if main_name(call.name) in HOST_WAITS:
            near = follower.calls[max(number - 1, 0) : number + 2]
            around = tuple(each.name for each in near)
            groups[call.name, between(call.site, None)[0] or around].append(call)
    found = HostWaits(until=follower.until)
    for several in groups.values():
        for reason in dict.fromkeys(follower.needless.values()):
            some = [call for call in several if follower.needless.get(call.index) == reason]
            if some:
                origins = tuple(call.index for call in some)
                found.certain.append(Advice(AdviceKind.WAITS_FOR_NOTHING, some[0], origins, (reason,)))
        free = [call for call in several if call.index in follower.until and call.index not in follower.needless]
        if free and free in (several, several[:-1]):  # the last one is for what comes after all of them
            found.likely.append(Written(HOST_WAIT, free[0], tuple(call.index for call in free)))
    return found


class _Follower:
    """One pass over a trace."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.calls = [block for block in blocks if isinstance(block, Call) and not is_debug(block.name)]
        self.needless: dict[int, str] = {}
        self.until: dict[int, int] = {}
        self._device: dict[int, int] = {}
        """Queue to its device."""
        self._count: Known = defaultdict(int)
        self._known: Known = defaultdict(int)
        self._fences: dict[int, tuple[int, int]] = {}
        self._values: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self._reached: dict[int, int] = defaultdict(int)
        self._work: dict[tuple[int, int], _Work] = {}
        self._open: dict[int, tuple[Known, list[_Work]]] = {}
        """Each wait on which nothing relies so far: what it waits for, and the work of that."""
        self._last: tuple[int, Known] | None = None
        """The wait that is the latest call, with what it waits for."""
        for block in blocks:
            if isinstance(block, Call) and not is_debug(block.name):
                self._follow(block)
            elif not isinstance(block, Call):
                self._open.clear()

    def _follow(self, call: Call) -> None:
        name = main_name(call.name)
        last, self._last = self._last, None
        if name in HOST_WAITS | HOST_POLLS:
            self._wait(call, name, last)
            return
        self._open = {
            wait: held for wait, held in self._open.items() if not any(_relies(call, name, work) for work in held[1])
        }
        if name in QUEUE_WORK or name == PRESENT:
            self._submit(call, name)
        elif name in ACQUIRES:
            self._count[_EVERY] += 1
            self._fences.pop((call.args.get("pAcquireInfo") or call.args)["fence"], None)
        elif name == "vkSignalSemaphore":
            self._count[_EVERY] += 1
        elif name in ("vkGetDeviceQueue", "vkGetDeviceQueue2"):
            self._device[call.args["pQueue"]] = call.args["device"]
        elif name == "vkResetFences":
            for fence in call.args["pFences"] or ():
                self._fences.pop(fence, None)

    def _submit(self, call: Call, name: str) -> None:
        queue = call.args["queue"]
        self._count[queue] += 1
        at = self._count[queue]
        waits, signals = semaphore_operations(call) if name in QUEUE_WORK else ([], [])
        fence = call.args.get("fence") or 0
        used = frozenset(each for _, each, value in (*waits, *signals) if not value)
        self._work[queue, at] = _Work(frozenset(buffer for _, buffer in command_buffers(call)), fence, used)
        if fence:
            self._fences[fence] = (queue, at)
        for _, semaphore, value in signals:
            self._values[semaphore].append((value, queue, at))

    def _wait(self, call: Call, name: str, last: tuple[int, Known] | None) -> None:
        wanted = self._wanted(call, name)
        if wanted is None or not call.succeeded or call.result in (1, 2):
            return
        if name in HOST_WAITS:
            if all(self._known[queue] >= at for queue, at in wanted.items()):
                self.needless[call.index] = "nothing was submitted since the last wait for the same queues"
                if name in ("vkWaitForFences", "vkWaitSemaphores"):
                    self.needless[call.index] = "the host has waited for that work before"
            elif last is not None and _covers(wanted, last[1]) and last[0] not in self.needless:
                self.needless[last[0]] = "the next call waits for the same work"
            self._last = (call.index, wanted)
            if call.index not in self.needless:
                self._close(call.index, wanted)
        for queue, at in wanted.items():
            self._known[queue] = max(self._known[queue], at)

    def _close(self, index: int, wanted: Known) -> None:
        """Takes in a wait: those for no more than it are over, and what they were for is for this one to wait for."""
        work = self._pending(wanted)
        for wait, (known, held) in list(self._open.items()):
            if _covers(wanted, known):
                self.until[wait] = index
                work += held
                del self._open[wait]
        self._open[index] = (wanted, work)

    def _pending(self, wanted: Known) -> list[_Work]:
        """The work of which the host learns by a wait that it is complete."""
        numbers = ((queue, at) for queue, last in wanted.items() for at in range(self._known[queue] + 1, last + 1))
        return [self._work[each] for each in numbers if each in self._work]

    def _wanted(self, call: Call, name: str) -> Known | None:
        """Returns the submits and presents that are complete after a wait; None where that is not known."""
        if name == "vkDeviceWaitIdle":
            device = call.args["device"]
            return {queue: at for queue, at in self._count.items() if self._device.get(queue, device) == device}
        if name == "vkQueueWaitIdle":
            return {call.args["queue"]: self._count[call.args["queue"]]}
        if name in ("vkWaitForFences", "vkGetFenceStatus"):
            fences = call.args["pFences"] or () if name == "vkWaitForFences" else (call.args["fence"],)
            if len(fences) > 1 and not call.args["waitAll"]:
                return None
            places: list[tuple[int, int] | None] = [self._fences.get(fence) for fence in fences]
        else:
            info = call.args.get("pWaitInfo") or {}
            if len(info.get("pSemaphores") or ()) > 1 and info["flags"] & VkSemaphoreWait.ANY:
                return None
            values = zip(info.get("pSemaphores") or (), info.get("pValues") or (), strict=False)
            if name == "vkGetSemaphoreCounterValue":
                values = zip((call.args["semaphore"],), (call.args.get("pValue") or 0,), strict=True)
            places = [self._signal(semaphore, value) for semaphore, value in values]
        if None in places:
            return None
        found: Known = {}
        for queue, at in (each for each in places if each is not None):
            found[queue] = max(found.get(queue, 0), at)
        return found

    def _signal(self, semaphore: int, value: int) -> tuple[int, int] | None:
        """The submit that signals a value of a timeline."""
        return next(((queue, at) for reached, queue, at in self._values[semaphore] if reached >= value), None)


def _covers(wanted: Known, other: Known) -> bool:
    return all(wanted.get(queue, 0) >= at for queue, at in other.items())


def _relies(call: Call, name: str, work: _Work) -> bool:
    """Whether a call may be legal only because work is complete."""
    args = call.args
    if is_recorded(name) or name == "vkEndCommandBuffer" or name == PRESENT:
        return name == "vkCmdExecuteCommands"
    if name == "vkBeginCommandBuffer":
        return args["commandBuffer"] in work.buffers or bool((args.get("pBeginInfo") or {}).get("pInheritanceInfo"))
    if name in QUEUE_WORK:
        _, signals = semaphore_operations(call)
        again = any(semaphore in work.semaphores for _, semaphore, value in signals if not value)
        return again or bool(args["fence"] and args["fence"] == work.fence) or _runs(call, work)
    if name in ACQUIRES:
        info = args.get("pAcquireInfo") or args
        return info["semaphore"] in work.semaphores or bool(info["fence"] and info["fence"] == work.fence)
    return not name.startswith(_HARMLESS)


def _runs(call: Call, work: _Work) -> bool:
    return any(buffer in work.buffers for _, buffer in command_buffers(call))


def host_may_read(blocks: Iterable[Block], waits: Iterable[int]) -> set[int]:
    """Those of some waits at which memory is mapped that submitted work writes: the host may read it without a call."""
    wanted = set(waits)
    mapped: dict[int, None] = {}
    found: set[int] = set()
    analysis = Analysis()
    for block in blocks:
        if block.index in wanted:
            if any(analysis.written(memory, 0, VK_WHOLE_SIZE) for memory in mapped):
                found.add(block.index)
        elif isinstance(block, Call):
            mapped |= dict.fromkeys(_mapped(block))
        analysis.step(block)
    return found


def _mapped(call: Call) -> Iterator[int]:
    if main_name(call.name).startswith("vkMapMemory"):
        info: Mapping[str, int] = call.args.get("pMemoryMapInfo") or call.args
        yield info["memory"]

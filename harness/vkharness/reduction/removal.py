"""A stream without some of its pieces, and without everything that only served them.

The rest can be executed: command buffers are recorded before they run, what is begun is ended, waits have their
signals, events are set before a wait, objects exist, and acquired images are presented once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vkharness.reduction.fences import needless_fences
from vkharness.reduction.paths import DESCRIPTORS, Path, element, without_elements
from vkharness.reduction.serving import serving
from vkharness.reduction.shader_state import ShaderStates
from vkharness.reduction.structure import BRACKETS, Structure, command_buffers, semaphore_operations
from vkharness.reduction.unserved_commands import unwritten_descriptors, unwritten_queries
from vkharness.reduction.visible_state import unseen
from vkharness.spec.command_classes import ACQUIRES, BEGINS_RENDERING, PRESENT, QUEUE_WORK, is_recorded, is_submit
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

RESETS_QUERIES = "vkCmdResetQueryPool"
DEEPEST = 64
"""Command buffers that execute one inside the other. Vulkan has two without an extension."""
_NEVER_EMPTY = ("pRegions", "pRanges", "pRects", "pAttachments", "pCommandBuffers", "pEvents")
"""Arrays of commands that may not be empty: the command goes with the last element."""


def remove(structure: Structure, dropped: Iterable[Path], objects: frozenset[int] = frozenset()) -> list[Block] | None:
    """The stream without what is dropped; `objects` stay although nothing else may name them.

    None where the rest cannot be executed.
    """
    return _Removal(structure, dropped, objects).result()


class _Removal:
    """One removal. `gone` grows until nothing else follows from it."""

    def __init__(self, structure: Structure, dropped: Iterable[Path], objects: frozenset[int]) -> None:
        self.structure = structure
        self.objects = objects
        self.gone: set[Path] = set(dropped)
        self._states = ShaderStates(structure)
        self._signals_of: dict[Path, list[Path]] = defaultdict(list)
        for wait, signal in structure.partners.items():
            self._signals_of[signal].append(wait)
        self._runs: dict[int, list[Path]] = defaultdict(list)
        for path, begin in structure.executed.items():
            self._runs[begin].append(path)
        self._resumed = {each.begin: structure.resumed(each) for each in structure.recordings.values()}

    def is_gone(self, path: Path) -> bool:
        """Whether a piece is left out, or something that it is a part of."""
        return any(path[:length] in self.gone for length in range(1, len(path) + 1))

    def is_there(self, index: int) -> bool:
        """Whether a block stays."""
        return (index,) not in self.gone

    def result(self) -> list[Block] | None:
        """The stream that is left."""
        known = -1
        while known != len(self.gone):
            known = len(self.gone)
            self._drop_with_recordings()
            self._drop_with_partners()
            self._drop_empty()
        fences = needless_fences((self.structure.blocks[each] for each in self._there()), self.is_gone)
        if fences is None:
            return None
        self.gone |= fences
        self._drop_empty()
        edited = self._edited()
        return edited if self._can_run(edited) else None

    def _there(self) -> list[int]:
        return [index for index in self.structure.order if (index,) not in self.gone]

    # -- what follows from what is gone --------------------------------------------------------------------------------

    def _drop_with_recordings(self) -> None:
        """A recording goes with its begin, and when nothing executes it any more. What was begun goes with its end,
        what was suspended with what resumes it."""
        for recording in self.structure.recordings.values():
            runs = self._runs[recording.begin]
            if runs and all(map(self.is_gone, runs)):
                self.gone.add((recording.begin,))
            if not self.is_there(recording.begin):
                self.gone.update((each,) for each in recording.commands)
                self.gone.update(runs)
                if recording.end is not None:
                    self.gone.add((recording.end,))
                continue
            for pair in self._resumed[recording.begin].items():
                if any(not self.is_there(each) for each in pair):
                    self.gone.update((each,) for each in pair)
            for begin, end in recording.closes.items():
                if self.is_there(begin) != self.is_there(end):
                    self.gone |= {(begin,), (end,)}
                if not self.is_there(begin) and self._is_pass(begin):
                    self.gone.update((each,) for each in recording.commands if begin < each < end)

    def _is_pass(self, begin: int) -> bool:
        return main_name(self.structure.call(begin).name).startswith(BEGINS_RENDERING)

    def _drop_with_partners(self) -> None:
        """Waits go with their signals, binary signals with their waits, presents with their acquires."""
        for wait, signal in self.structure.partners.items():
            if self.is_gone(signal):
                self.gone.add(wait)
        for signal, wait in self.structure.binary.items():
            if self.is_gone(wait) and not self._is_acquire(signal):
                self.gone.add(signal)
        for acquire, present in self.structure.presented.items():
            if not self.is_there(acquire):
                self.gone.add(present)
            elif self.is_gone(present) and self._acquired_again(acquire):
                self.gone.add((acquire,))

    def _is_acquire(self, path: Path) -> bool:
        return main_name(self.structure.call(int(path[0])).name) in ACQUIRES

    def _acquired_again(self, acquire: int) -> bool:
        """Whether a later acquire that stays gives the same image."""
        call = self.structure.call(acquire)
        wanted = _image(call)
        return any(
            _image(self.structure.call(other)) == wanted
            for other in self.structure.presented
            if other > acquire and self.is_there(other)
        )

    def _drop_empty(self) -> None:
        """Drops batches that do nothing, submits without batches, presents and commands of nothing."""
        for index in self._there():
            block = self.structure.blocks[index]
            if not isinstance(block, Call):
                continue
            name = main_name(block.name)
            if name in QUEUE_WORK:
                self._drop_empty_batches(block)
            elif name == PRESENT:
                self._drop_emptied(block, (index, "pPresentInfo", "pSwapchains"))
            elif name == "vkUpdateDescriptorSets":
                paths = [(index, array, at) for array in DESCRIPTORS for at in range(len(block.args[array] or ()))]
                if all(map(self.is_gone, paths)):
                    self.gone.add((index,))
            elif name == "vkWaitSemaphores":
                self._drop_emptied(block, (index, "pWaitInfo", "pSemaphores"))
            elif name in ("vkWaitForFences", "vkResetFences"):
                self._drop_emptied(block, (index, "pFences"))
            elif is_recorded(name):
                for array in _NEVER_EMPTY:
                    if isinstance(block.args.get(array), list):
                        self._drop_emptied(block, (index, array))

    def _drop_emptied(self, call: Call, path: Path) -> None:
        held = element(call, path)
        if held and all(self.is_gone((*path, at)) for at in range(len(held))):
            self.gone.add((call.index,))

    def _drop_empty_batches(self, call: Call) -> None:
        key = "pBindInfo" if "pBindInfo" in call.args else "pSubmits"
        left: set[int | str] = set()
        waits, signals = semaphore_operations(call)
        for path in [path for path, _ in command_buffers(call)] + [path for path, _, _ in waits + signals]:
            if not self.is_gone(path):
                left.add(path[2])
        batches = range(len(call.args[key] or ()))
        if is_submit(call.name):
            self.gone.update((call.index, key, at) for at in batches if at not in left)
        fence = call.args["fence"] and not self.is_gone((call.index, "fence"))
        if not fence and all(self.is_gone((call.index, key, at)) for at in batches):
            self.gone.add((call.index,))

    # -- what serves what is left --------------------------------------------------------------------------------------

    def _edited(self) -> list[Block]:
        """The blocks that stay, with their arrays shortened."""
        self._drop_unseen_state()
        edits: dict[int, list[Path]] = defaultdict(list)
        for path in self.gone:
            if len(path) > 1 and self.is_there(int(path[0])):
                edits[int(path[0])].append(path)
        edited: dict[int, Block] = {}
        for index in self._there():
            block = self.structure.blocks[index]
            kept = [path for path in edits[index] if not self.is_gone(path[:-1])]
            edited[index] = without_elements(block, kept) if isinstance(block, Call) else block
        return serving(self.structure, edited, self.objects)

    def _drop_unseen_state(self) -> None:
        self._drop_useless_resets()
        for recording in self.structure.recordings.values():
            if self.is_there(recording.begin):
                commands = [self.structure.call(each) for each in recording.commands if self.is_there(each)]
                self.gone.update((each,) for each in unseen(commands, self._states))

    def _drop_useless_resets(self) -> None:
        """Resets of queries go with the last other command of their pool."""
        calls = [block for each in self._there() if isinstance(block := self.structure.blocks[each], Call)]
        used = {
            call.args["queryPool"]
            for call in calls
            if is_recorded(call.name) and call.name != RESETS_QUERIES and call.args.get("queryPool")
        }
        self.gone.update(
            (call.index,) for call in calls if call.name == RESETS_QUERIES and call.args["queryPool"] not in used
        )

    # -- whether it can run --------------------------------------------------------------------------------------------

    def _can_run(self, blocks: list[Block]) -> bool:
        """Whether no event is waited for that nothing sets, no command buffer runs that is not recorded, and no
        command lacks descriptors or queries that it has in the whole stream."""
        recorded: dict[int, list[Call]] = {}
        if self._lacks_more(blocks):
            return False
        signaled: set[int] = set()
        pending: dict[int, Path] = {}
        host_sets = {block.args["event"] for block in blocks if isinstance(block, Call) and block.name == "vkSetEvent"}
        for block in blocks:
            if not isinstance(block, Call):
                continue
            if block.name in BRACKETS or is_recorded(block.name):
                held = recorded.setdefault(block.args["commandBuffer"], [])
                if block.name == "vkBeginCommandBuffer":
                    held.clear()
                held.append(block)
            elif is_submit(block.name):
                for _, buffer in command_buffers(block):
                    if buffer not in recorded or not _events_come(recorded, buffer, signaled, host_sets):
                        return False
                waits, signals = semaphore_operations(block)
                for _, semaphore, value in waits:
                    pending.pop(semaphore, None) if not value else None
                for path, semaphore, value in signals:
                    if not value and semaphore in pending:
                        return False
                    pending |= {} if value else {semaphore: path}
            elif main_name(block.name) == PRESENT:
                for semaphore in block.args["pPresentInfo"]["pWaitSemaphores"] or ():
                    pending.pop(semaphore, None)
        return True

    def _lacks_more(self, blocks: list[Block]) -> bool:
        descriptors, queries = unwritten_descriptors(blocks, self._states), unwritten_queries(blocks)
        whole = self.structure.blocks.values() if descriptors or queries else ()
        return bool(descriptors - unwritten_descriptors(whole, self._states) or queries - unwritten_queries(whole))


def _events_come(
    recorded: dict[int, list[Call]], buffer: int, signaled: set[int], host_sets: set[int], around: tuple[int, ...] = ()
) -> bool:
    """Whether the waits of a command buffer end; takes in what it does to events. It is executed by those `around`."""
    if buffer in around or len(around) > DEEPEST:
        return False  # only a broken trace has command buffers that execute each other
    for call in recorded[buffer]:
        name = main_name(call.name)
        if name.startswith("vkCmdSetEvent"):
            signaled.add(call.args["event"])
        elif name.startswith("vkCmdResetEvent"):
            signaled.discard(call.args["event"])
        elif name.startswith("vkCmdWaitEvents") and set(call.args["pEvents"] or ()) - signaled - host_sets:
            return False
        elif name == "vkCmdExecuteCommands":
            for secondary in call.args["pCommandBuffers"] or ():
                inside = (*around, buffer)
                if secondary not in recorded or not _events_come(recorded, secondary, signaled, host_sets, inside):
                    return False
    return True


def _image(acquire: Call) -> tuple[int, int]:
    info = acquire.args.get("pAcquireInfo") or acquire.args
    return info["swapchain"], acquire.args["pImageIndex"]

"""Native: every call as recorded, on the queues that stand for those of the trace.

Whatever prepares work (objects, recordings, descriptors) happens as early as it can, and the arguments of submits and
waits are in C memory before the first of them is made. So submits follow one another without work of Python's between
them, as they do in a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from vkharness.commands.synchronization.semaphore import initial_value
from vkharness.replay.contents.fill import filled_by_device
from vkharness.replay.objects.ownership_transfers import Owners, owners
from vkharness.replay.objects.recorder import ImageTransition, ReplayRecorder
from vkharness.replay.objects.recreation import CARRIES, FLUSH, WITHOUT_EFFECT, PreparedCall, as_wait
from vkharness.replay.outcomes.executor import Scene
from vkharness.replay.schedule.batch_scheduler import all_run, runnable
from vkharness.replay.schedule.layouts import TRANSFER_DST, transitions
from vkharness.replay.schedule.render_pass_layouts import Passes
from vkharness.replay.schedule.screens import OURS
from vkharness.replay.schedule.steps import Step, StepKind, flatten
from vkharness.spec.command_classes import is_debug, is_recorded, is_submit
from vkharness.spec.enums import VkResult
from vkharness.spec.shapes import main_name, new_struct
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.submits import batches
from vkharness.trace.templates import plain

IN_ORDER = frozenset(
    {
        "vkDeviceWaitIdle",
        "vkQueueSubmit",
        "vkQueueSubmit2",
        "vkQueueWaitIdle",
        "vkResetEvent",
        "vkResetFences",
        "vkResetQueryPool",
        "vkSetEvent",
        "vkSignalSemaphore",
        "vkWaitForFences",
        "vkWaitSemaphores",
    }
)
"""Calls that keep their places among one another, and whose arguments are made ahead."""
AHEAD = ("vkCreate", "vkAllocate", "vkGet", "vkCmd", "vkBeginCommandBuffer", "vkEndCommandBuffer", "vkUpdateDescriptor")
"""Beginnings of the names of calls that may come before submits and waits which stand before them in the trace, since
what they make or change is not in use yet."""


Hears = Callable[[Block], object]


def _nothing(_: Block) -> None:
    pass


def execute_native(scene: Scene, before: Hears = _nothing, made: Hears = _nothing) -> None:
    """Makes every call as recorded, with the trace's own command buffers, queues, submits and waits. `before` and
    `made` hear of each block before and after it is made. Raises `UserError` when the target cannot make a call."""
    steps = flatten(scene.blocks)  # refuses what is malformed before anything runs
    mapping, handover = scene.contents.resources.mapping, _Handover(scene)
    held = owners(scene.blocks, mapping) if mapping.leaves_family else Owners()
    handover.to_first_users(held)
    run = NativeRun(scene, before, made)
    as_recorded = mapping.keeps_queues_apart and all_run(scene.blocks)
    try:
        run.all(scene.blocks if as_recorded else runnable(scene.blocks))
    except BaseException:
        run.let_go()
        raise
    finally:
        idle = scene.device.wait()
        run.close()
    scene.device.check(idle, "vkDeviceWaitIdle")
    scene.contents.resources.memories.carry_all(FLUSH)  # what the host wrote last is observed, too
    _follow_layouts(scene, steps)
    handover.from_last_users(held)


def _follow_layouts(scene: Scene, steps: list[Step]) -> None:
    """Takes note of the layouts that the run left its images in."""
    passes = Passes(scene.layouts)
    for step in steps:
        if step.kind is StepKind.HOST:
            with reading(step.block):
                passes.note(step.block)
                for transition in transitions(step.block) if isinstance(step.block, Call) else ():
                    scene.layouts.apply(transition)
        elif isinstance(step.block, Call) and step.kind is StepKind.SYNC:
            for transition in transitions(step.block):
                scene.layouts.apply(transition)
        elif isinstance(step.block, Call):
            passes.after(step.block)


class NativeRun:
    """The calls of one native replay, of which those that must keep their places wait until something needs them."""

    def __init__(self, scene: Scene, before: Hears, made: Hears) -> None:
        self._scene, self._objects, self._before, self._made = scene, scene.objects, before, made
        self._waiting: list[Callable[[], object]] = []
        self._begun: set[int] = set()
        """Command buffers that were begun so far. To begin one again ends what was recorded."""
        self._bound: set[int] = set()
        """Descriptor sets that a command names so far."""
        self._awaited: dict[int, int] = {}
        """By timeline, the greatest value that a submit waits for."""
        self._screens: ReplayRecorder | None = None

    def all(self, blocks: Iterable[Block]) -> None:
        """Makes the calls of a trace."""
        for block in blocks:
            if isinstance(block, Call) and is_recorded(block.name) and block.args.get("commandBuffer") == OURS:
                self._show(block)
            elif not isinstance(block, Call):
                self._later(block, partial(self._objects.perform, block))
            elif block.succeeded:
                self._call(plain(block))
        self._make_waiting()

    def let_go(self) -> None:
        """Signals every timeline for what the trace waits for, after a failure: a batch may wait for a signal that the
        trace would have made later, and then the device would never be idle."""
        device, handles, ffi = self._scene.device, self._scene.handles, self._scene.device.target.ffi
        for semaphore, value in self._awaited.items():
            if semaphore not in handles or not device.has("vkGetSemaphoreCounterValue"):
                continue
            raw, now = ffi.cast("VkSemaphore", handles.raw(semaphore)), ffi.new("uint64_t *")
            result = device.function("vkGetSemaphoreCounterValue")(device.handle, raw, now)
            if result == VkResult.SUCCESS and now[0] < value:
                info = new_struct(ffi, "VkSemaphoreSignalInfo", semaphore=raw, value=value)
                device.function("vkSignalSemaphore")(device.handle, info)

    def close(self) -> None:
        """Destroys what the run made beside the objects of the trace; nothing of it may be pending."""
        if self._screens is not None:
            self._screens.close()

    def _later(self, block: Block, make: Callable[[], object]) -> None:
        self._waiting.append(partial(self._make, block, make))

    def _make(self, block: Block, make: Callable[[], object]) -> None:
        self._before(block)
        make()
        self._made(block)

    def _make_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for make in waiting:
            make()

    def _call(self, call: Call) -> None:
        """Makes a call. A query that the program acted on is made until the answer is the one that it got; between two
        of them the host waits for the same."""
        wait = as_wait(call)
        if wait is call:
            self._one(call)
            return
        with reading(call):
            self._later(call, partial(self._ask_until, self._query(call), self._objects.prepare(wait)))

    def _ask_until(self, is_so: Callable[[], bool], wait: PreparedCall) -> None:
        while not is_so():
            self._objects.make(wait)

    def _query(self, call: Call) -> Callable[[], bool]:
        """Asks whether the fence of a vkGetFenceStatus is signaled, or the value of a vkGetSemaphoreCounterValue is
        reached."""
        device, ffi, name = self._scene.device, self._scene.device.target.ffi, main_name(call.name)
        function, reached = device.function(name), ffi.new("uint64_t *")

        def is_signaled() -> bool:
            fence = ffi.cast("VkFence", self._scene.handles.raw(call.args["fence"]))
            return bool(function(device.handle, fence) == VkResult.SUCCESS)

        def is_reached() -> bool:
            semaphore = ffi.cast("VkSemaphore", self._scene.handles.raw(call.args["semaphore"]))
            result = function(device.handle, semaphore, reached)
            return bool(result == VkResult.SUCCESS and reached[0] >= call.args["pValue"])

        return is_signaled if name == "vkGetFenceStatus" else is_reached

    def _one(self, call: Call) -> None:
        name = main_name(call.name)
        if is_submit(call.name):
            with reading(call):
                self._note_waits(call)
        if name in IN_ORDER:
            self._later(call, partial(self._objects.make, self._objects.prepare(call)))
            return
        if name in (*CARRIES, BIND_SPARSE):
            self._later(call, partial(self._objects.perform, call))
            return
        with reading(call):
            ahead = name.startswith((*AHEAD, *WITHOUT_EFFECT)) or is_debug(name)
            if self._waiting and (not ahead or self._changes_what_is_used(name, call)):
                self._make_waiting()
            self._note(name, call)
        self._make(call, partial(self._objects.perform, call))

    def _changes_what_is_used(self, name: str, call: Call) -> bool:
        """Whether a call changes what an earlier submit may use."""
        if name == "vkBeginCommandBuffer":
            return call.args["commandBuffer"] in self._begun
        if name != "vkUpdateDescriptorSets":
            return name.startswith("vkUpdateDescriptor")
        changes = (*(call.args["pDescriptorWrites"] or ()), *(call.args["pDescriptorCopies"] or ()))
        return not self._bound.isdisjoint(each["dstSet"] for each in changes)

    def _note_waits(self, call: Call) -> None:
        for wait in (wait for batch in batches(call.args) for wait in batch.waits):
            if wait.semaphore in self._awaited:
                self._awaited[wait.semaphore] = max(self._awaited[wait.semaphore], wait.value)

    def _note(self, name: str, call: Call) -> None:
        if name == "vkCreateSemaphore" and initial_value(call.args["pCreateInfo"]) is not None:
            self._awaited[call.args["pSemaphore"]] = 0
        elif name == "vkBeginCommandBuffer":
            self._begun.add(call.args["commandBuffer"])
        elif name.startswith("vkCmdBindDescriptorSets"):
            args = call.args.get("pBindDescriptorSetsInfo") or call.args
            self._bound.update(args["pDescriptorSets"] or ())

    def _show(self, call: Call) -> None:
        """Gives a command that `screens` added to the queue that presents there, in its place among the submits."""
        if self._screens is None:
            self._screens = ReplayRecorder(self._scene.device, self._scene.handles, self._objects.mapping.first)
        recorder, ffi = self._screens, self._scene.device.target.ffi
        recorder.full_barrier()
        recorder.issue(call.name, call.args, f"block {call.index}")
        commands = ffi.new("VkCommandBuffer[1]", [recorder.take()])
        info = new_struct(ffi, "VkSubmitInfo", commandBufferCount=1, pCommandBuffers=commands)
        self._waiting.append(partial(self._submit, recorder, info, commands, call.index))

    def _submit(self, recorder: ReplayRecorder, info: object, kept: object, index: int) -> None:
        """Submits a command buffer; `kept` holds the memory that `info` points to."""
        null = self._scene.device.target.ffi.NULL
        result = self._scene.device.function("vkQueueSubmit")(recorder.queue, 1, info, null)
        self._scene.device.check(result, f"block {index}: vkQueueSubmit of a copy to the screen")


class _Handover:
    """Gives exclusive resources that the replay filled to the families that use them, and takes them back.

    Memory that the host writes and reads itself belongs to no family.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene, self._resources = scene, scene.contents.resources
        self._own = self._resources.mapping.own[0]

    def to_first_users(self, held: Owners) -> None:
        """Passes the first contents on."""
        images = {}
        for image in self._resources.images.values():
            whole = filled_by_device(image) if image.bound else None
            if whole is not None:
                images[image.id] = [ImageTransition(image.raw, whole, TRANSFER_DST, TRANSFER_DST)]
        for family, buffers, changes in self._parts(held.first, images):
            self._pass_on(self._own, family, buffers, changes)

    def from_last_users(self, held: Owners) -> None:
        """Takes back what the run left, to be observed."""
        images = {image.id: self._scene.contents.held_in_layouts(image.id) for image in self._resources.images.values()}
        for family, buffers, changes in self._parts(held.last, images):
            self._pass_on(family, self._own, buffers, changes)

    def _parts(
        self, families: dict[int, int], images: dict[int, list[ImageTransition]]
    ) -> Iterable[tuple[int, list[int], list[ImageTransition]]]:
        """For each other family the raw buffers and the images of which it is the owner."""
        for family in sorted(set(families.values()) - {self._own}):
            mine = [resource for resource, owner in families.items() if owner == family]
            found = [self._resources.buffers[each] for each in mine if each in self._resources.buffers]
            buffers = [each.raw for each in found if each.bound and each.exclusive and each.view is None]
            exclusive = [each for each in mine if each in images and self._resources.images[each].exclusive]
            yield family, buffers, [change for each in exclusive for change in images[each]]

    def _pass_on(self, source: int, target: int, buffers: list[int], images: list[ImageTransition]) -> None:
        """The release on a queue of one family, then the acquire on one of the other."""
        if not buffers and not images:
            return
        for family in (source, target):
            recorder = self._recorder(family)
            recorder.pass_on(buffers, images, (source, target))
            recorder.finish()
            if family != self._own:
                recorder.close()

    def _recorder(self, family: int) -> ReplayRecorder:
        if family == self._own:
            return self._scene.recorder
        return ReplayRecorder(self._scene.device, self._scene.handles, (family, 0))

"""Runs a list of steps on a device, with a full barrier between actions and probes between steps.

The executor decides nothing. The plan says which steps run, in which order, and where a probe reads or changes the
contents of a resource. When a probe needs the host in the middle of a command buffer, the stream is cut there, and the
state that was set since the begin is set again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from vkharness.replay.contents.contents import Contents
from vkharness.replay.contents.fill import fill_all
from vkharness.replay.objects.creation import create_resources
from vkharness.replay.objects.device_features import remark
from vkharness.replay.objects.encode import Handles
from vkharness.replay.objects.ownership_transfers import without_transfers
from vkharness.replay.objects.queue_mapping import QueueMapping, map_queues, trace_queues
from vkharness.replay.objects.recorder import ImageTransition, ReplayRecorder
from vkharness.replay.objects.recreation import INVALIDATE, ReplayObjects, open_device, refuse
from vkharness.replay.objects.stored_addresses import stored_addresses
from vkharness.replay.objects.target import ReplayDevice, open_target
from vkharness.replay.schedule.layouts import HOST_TRANSITION, Layouts, RecordedTransition, transitions
from vkharness.replay.schedule.render_pass_layouts import Passes
from vkharness.replay.schedule.steps import Step, StepKind
from vkharness.spec.command_classes import OF_AN_INSTANCE, is_debug
from vkharness.spec.enums import VkImageLayout
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading


@dataclass(frozen=True, slots=True)
class Probe:
    """Work of the host between two steps, with the device idle. `label` describes it in reports."""

    label: str
    run: Callable[[Contents], None]


Plan = list[Step | Probe]
"""The steps and probes that an executor runs, in order."""


@dataclass(slots=True)
class Scene:
    """A trace on a device: its steps, its objects and their contents. Use it as a context manager."""

    blocks: list[Block]
    device: ReplayDevice
    handles: Handles
    contents: Contents
    recorder: ReplayRecorder
    layouts: Layouts
    objects: ReplayObjects
    notes: list[str] = field(default_factory=list)
    """Sentences about what could not be done. They are part of the result."""

    def __enter__(self) -> Scene:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        result = self.device.wait()
        self.objects.close()
        self.contents.close()
        self.objects.resources.close()
        self.recorder.close()
        if kind is None:
            self.device.check(result, "vkDeviceWaitIdle")


def open_scene(blocks: list[Block], device_name: str, native: bool = False) -> Scene:
    """Makes the resources of a trace on a driver and fills them with known contents. Nothing of the trace has run yet.

    `native`: the queues of the trace stand for themselves, and so does memory that is not coherent, wherever the driver
    has them. Raises `UserError` when the
    driver cannot make a resource.
    """
    target = open_target(device_name)
    mapping = QueueMapping((target.family, 0))
    if native:
        mapping = map_queues(trace_queues(blocks), target.queue_families, target.family)
    device = open_device(target, blocks, mapping)
    handles = Handles()
    resources = create_resources(device, handles, blocks, mapping, coherent=not native)
    recorder = ReplayRecorder(device, handles)
    layouts = Layouts()
    for image in resources.images.values():
        layouts.add(image.image, image.initial)
    contents = Contents(resources, recorder, layouts)
    scene = Scene(blocks, device, handles, contents, recorder, layouts, ReplayObjects(device, resources, native))
    scene.notes.extend(remark(target, device.lacking))
    try:
        scene.notes.extend(fill_all(contents))
        resources.memories.carry_all(INVALIDATE)  # the host sees what the device filled
        handles.addresses.stored = stored_addresses(blocks)
        scene.objects.foresee(blocks)
    except BaseException as error:
        scene.__exit__(type(error), error, error.__traceback__)
        raise
    return scene


def execute(scene: Scene, plan: Plan, in_steps: bool = False) -> None:
    """Runs a plan to its end; the device is idle afterwards. Raises `UserError` when the target cannot run a step.

    `in_steps`: each command that nothing keeps together with the one before has a submit of its own, and the host waits
    for it. So no barrier of the driver takes part in the order."""
    run = PlanRun(scene, in_steps)
    for item in plan:
        run.one(item)
    scene.recorder.finish()


Buffer = tuple[int, int, int]
"""One execution of a command buffer: submit, batch, position."""


class PlanRun:
    """The state of one execution: the state commands to repeat after a cut, and whether the next action needs a
    barrier."""

    def __init__(self, scene: Scene, in_steps: bool = False) -> None:
        self.scene = scene
        self._in_steps = in_steps
        self.recorder = scene.recorder
        self.passes = Passes(scene.layouts)
        self._buffer: Buffer = (0, 0, 0)
        self._states: dict[Buffer, list[Step]] = {}
        """The state commands of each execution of a command buffer, which may stop while others run."""
        self._cut = False

    def one(self, item: Step | Probe) -> None:
        """Records one step, or runs one probe."""
        if isinstance(item, Probe):
            self.recorder.finish()
            item.run(self.scene.contents)
            self.recorder.finish()
            self._cut = True
            return
        if item.kind is StepKind.HOST:
            self.recorder.finish()
            self._cut = True
            with reading(item.block):
                self.passes.note(item.block)
                if isinstance(item.block, Call) and main_name(item.block.name) == HOST_TRANSITION:
                    self._move(item.block)
                    return
            self.scene.objects.perform(item.block)
            return
        if item.kind is StepKind.BEGIN:
            self._buffer, self._cut = item.identity.execution, False
            self._states[self._buffer] = []
            return
        self._command(item)

    def _command(self, step: Step) -> None:
        call = step.block
        assert isinstance(call, Call)
        if step.identity.execution != self._buffer:
            self._buffer, self._cut = step.identity.execution, True
        if is_debug(call.name):
            return
        refuse(call)
        if self._in_steps and step.kind is not StepKind.STATE and not step.inside:
            self.recorder.finish()
            self._cut = True
        with reading(call):
            self._set_again()
            if step.kind is StepKind.SYNC:
                self._synchronize(step, call)
            elif step.kind is StepKind.STATE:
                if not call.name.startswith(OF_AN_INSTANCE):
                    self._states.setdefault(self._buffer, []).append(step)
                self._issue(call)
            else:
                if not step.in_pass:
                    self.recorder.full_barrier()
                self._issue(call)
                self.passes.after(call)

    def _set_again(self) -> None:
        """Sets the state again after a cut, in a new command buffer, which inherits none."""
        if self._cut:
            self._cut = False
            for step in self._states.get(self._buffer, ()):
                if isinstance(step.block, Call):
                    self._issue(step.block)

    def _issue(self, call: Call) -> None:
        self.recorder.issue(call.name, call.args, f"block {call.index}")

    def _synchronize(self, step: Step, call: Call) -> None:
        """Runs a barrier: only its layout transitions remain, since full barriers stand between actions anyway."""
        if step.in_pass:
            if main_name(call.name).startswith("vkCmdPipelineBarrier"):
                # Inside a render pass instance only the trace's own barrier fits (a subpass self-dependency).
                self.recorder.issue(call.name, without_transfers(call.args), f"block {call.index}")
            return
        self._move(call)

    def _move(self, call: Call) -> None:
        """Records the layout transitions of a call, with a full barrier."""
        layouts, changes = self.scene.layouts, []
        for transition in transitions(call):
            if transition.image not in layouts.images:
                continue
            resource = self.scene.contents.resources.images[transition.image]
            span = transition.span
            # A trimmed capture may say only by a barrier in which layout an image is.
            held = {layouts.of(transition.image, where) for where in layouts.covered(transition)}
            untold = transition.old != VkImageLayout.UNDEFINED and held == {VkImageLayout.UNDEFINED}
            if untold or (transition.old != transition.new and not self._is_acquire(transition)):
                old = VkImageLayout.UNDEFINED if untold else transition.old
                changes.append(ImageTransition(resource.raw, span, old, transition.new))
                layouts.apply(transition)
        if changes:
            self.recorder.full_barrier()
            self.recorder.change_layouts(changes)

    def _is_acquire(self, transition: RecordedTransition) -> bool:
        """Whether a transition is the acquire half of an ownership transfer. The release half has made the transition
        already."""
        source, target = transition.families
        layouts = self.scene.layouts
        return source != target and all(
            layouts.of(transition.image, where) == transition.new for where in layouts.covered(transition)
        )

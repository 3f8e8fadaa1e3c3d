"""How the second operation of a pair is ordered after the first, and what can be wrong with each way.

A primitive gets the two scopes that it is to relate and, for barriers, what it is about. Adding one is adding one
decorated function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.queues import SemaphoreUse as SemaphoreOperation
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite.matrix.operation_table import DEVICE, ENGINE, HOST, Record

CHAIN = "COLOR_ATTACHMENT_OUTPUT"
"""The stage through which a render pass hands on what came before it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A dependency: two scopes as text; `about` limits a barrier to a resource (empty: everything)."""

    src: str
    dst: str
    about: dict[str, Any] = field(default_factory=dict)
    awaited: bool = True
    """Whether a present waits for the semaphore behind it, and the host for the fence."""

    @property
    def stages(self) -> tuple[str, str]:
        """The stages of both scopes."""
        return self.src.partition("/")[0], self.dst.partition("/")[0]


WIDE = {
    **dict.fromkeys(("COPY", "CLEAR", "BLIT", "RESOLVE"), "ALL_TRANSFER"),
    **dict.fromkeys(("INDEX_INPUT", "VERTEX_ATTRIBUTE_INPUT"), "VERTEX_INPUT"),
    **dict.fromkeys(("SHADER_STORAGE_READ", "SHADER_SAMPLED_READ"), "SHADER_READ"),
    "SHADER_STORAGE_WRITE": "SHADER_WRITE",
}
"""Stages and accesses that 32-bit masks do not have, by the ones that contain them."""

Relate = Callable[[Rig, Record, Record, Link | None], None]
"""Records and submits both operations with that dependency between them, None for none at all."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A way to order two operations. `accesses`: it has access masks; `ranges`: it can be limited to a resource;
    `stages`: it has stage masks."""

    name: str
    relate: Relate
    stages: bool = True
    accesses: bool = True
    ranges: bool = False
    wide: bool = False
    """It has the 32-bit masks of the first form of commands."""
    waits: bool = False
    """The host waits for the first operation, whatever the scopes say."""
    places: tuple[str, str] = (DEVICE, DEVICE)
    """Who makes the first access, and who the second."""

    def spell(self, text: str) -> str:
        """A scope as this primitive can say it: with 32-bit masks several stages, or accesses, become one."""
        if not self.wide:
            return text
        return "/".join(
            "|".join(dict.fromkeys(WIDE.get(name, name) for name in side.split("|"))) for side in text.split("/")
        )


PRIMITIVES: dict[str, Primitive] = {}


def primitive(**able: Any) -> Callable[[Relate], Relate]:
    """Registers a primitive under its function's name, underscores as spaces."""

    def register(function: Relate) -> Relate:
        name = function.__name__.replace("_", " ")
        PRIMITIVES[name] = Primitive(name, function, **able)
        return function

    return register


def _together(rig: Rig, first: Record, between: Record, second: Record) -> None:
    with rig.submission() as commands:
        first(commands)
        between(commands)
        second(commands)


def _apart(rig: Rig, first: Record, second: Record) -> tuple[Commands, Commands]:
    with rig.commands() as one:
        first(one)
    with rig.commands() as two:
        second(two)
    return one, two


@primitive(stages=False, accesses=False)
def nothing(rig: Rig, first: Record, second: Record, _: Link | None) -> None:
    """One after the other in one command buffer."""
    _together(rig, first, lambda _: None, second)


@primitive(ranges=True, wide=True)
def barrier(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdPipelineBarrier over the resource."""
    _together(rig, first, lambda commands: _barrier(commands, link, sync2=False), second)


@primitive(ranges=True)
def barrier2(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdPipelineBarrier2 over the resource."""
    _together(rig, first, lambda commands: _barrier(commands, link), second)


@primitive()
def global_barrier(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdPipelineBarrier2 with a VkMemoryBarrier2."""
    _together(rig, first, lambda commands: _barrier(commands, link), second)


@primitive(ranges=True)
def event(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdSetEvent2 and vkCmdWaitEvents2."""
    if link is None:
        return _together(rig, first, lambda _: None, second)
    made = rig.event("", link.src, link.dst, **link.about)

    def both(commands: Commands) -> None:
        commands.set_event(made)
        commands.wait_events(made)

    return _together(rig, first, both, second)


@primitive()
def subpass_dependency(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """A render pass between the two, with a dependency from what is before it and one to what is after it."""
    needed = []
    if link is not None:
        needed = [
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, link.src, f"{CHAIN}/COLOR_ATTACHMENT_WRITE"),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, f"{CHAIN}/COLOR_ATTACHMENT_WRITE", link.dst),
        ]
    target = rig.target()
    attachment = RigAttachment(load="DONT_CARE", store="NONE", initial="UNDEFINED", final="GENERAL")
    made = rig.render_pass([attachment], [RigSubpass([(0, "GENERAL")])], needed)
    frame = rig.framebuffer(made, [rig.view(target)])

    def instance(commands: Commands) -> None:
        commands.begin_pass(made, frame)
        commands.end_pass()

    _together(rig, first, instance, second)


@primitive(ranges=True)
def barrier_and_dynamic_rendering(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdPipelineBarrier2 over the resource, then dynamic rendering to something else."""
    target = rig.target()
    view = rig.view(target)
    with rig.submission() as commands:
        commands.transition(target)
    rig.wait()

    def between(commands: Commands) -> None:
        _barrier(commands, link)
        commands.begin_rendering(RenderingAttachment(view))
        commands.end_rendering()

    _together(rig, first, between, second)


@primitive(accesses=False)
def binary_semaphore(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """Two submits, the first signals a binary semaphore, the second waits for it."""
    _semaphore(rig, first, second, link, rig.semaphore(), 0)


@primitive(accesses=False)
def timeline_semaphore(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """Two submits, the first signals a value of a timeline semaphore, the second waits for it."""
    _semaphore(rig, first, second, link, rig.timeline(), 1)


@primitive(stages=False, accesses=False)
def fence(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """Two submits; the host waits for the first one's fence before the second."""
    one, two = _apart(rig, first, second)
    signaled = rig.fence()
    rig.submit(one, fence=signaled)
    if link is not None:
        rig.wait(signaled)
    rig.submit(two)


@primitive(stages=False, accesses=False)
def idle(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """Two submits; the host waits for the device to be idle between them."""
    one, two = _apart(rig, first, second)
    rig.submit(one)
    if link is not None:
        rig.wait()
    rig.submit(two)


@primitive(ranges=True, waits=True, places=(DEVICE, HOST))
def wait_of_the_host(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """vkCmdPipelineBarrier2 over the resource to the host, then the host waits for a fence."""
    assert link is not None
    with rig.commands() as commands:
        first(commands)
        _barrier(commands, link)
    signaled = rig.fence()
    rig.submit(commands, fence=signaled)
    if link.awaited:
        rig.wait(signaled)
    second(None)


@primitive(stages=False, accesses=False, places=(HOST, DEVICE))
def submit(rig: Rig, first: Record, second: Record, _: Link | None) -> None:
    """The host is first, then the submit. (The other way round the host has to wait: `wait_of_the_host`.)"""
    first(None)
    with rig.submission() as commands:
        second(commands)


@primitive(places=(DEVICE, ENGINE))
def presentation(rig: Rig, first: Record, second: Record, link: Link | None) -> None:
    """The transition to the layout for presentation, and a semaphore for which vkQueuePresentKHR waits."""
    assert link is not None
    done = rig.semaphore()
    with rig.commands() as commands:
        first(commands)
        commands.transition(link.about["image"], src=link.src, dst="NONE", old="GENERAL", new=SHOWN)
    rig.submit(commands, signals=[SemaphoreOperation(done)], sync2=True)
    second([done] if link.awaited else [])


def _barrier(commands: Commands, link: Link | None, sync2: bool = True) -> None:
    if link is not None:
        commands.barrier("", link.src, link.dst, sync2=sync2, **link.about)


def _semaphore(rig: Rig, first: Record, second: Record, link: Link | None, semaphore: Any, value: int) -> None:
    one, two = _apart(rig, first, second)
    if link is None:
        rig.submit(one, sync2=True)
        rig.submit(two, sync2=True)
        return
    before, after = link.stages
    rig.submit(one, sync2=True, signals=[SemaphoreOperation(semaphore, before, value=value)])
    rig.submit(two, sync2=True, waits=[SemaphoreOperation(semaphore, after, value=value)])

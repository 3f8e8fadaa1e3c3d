"""The base of all parts of the rig: the device of one scenario, and the objects made on it.

`RigDevice` owns the device and destroys, at the end, whatever was made on it. `RigCommandBuffer` is a command buffer
while it is recorded. The families (`buffers_images`, `barriers`, ...) are classes over these two. `Rig` and `Commands`
put them together.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

from vkharness.device.headless import DeviceQueue, Headless, import_vulkan
from vkharness.findings import LacksError
from vkharness.rig.requirements import buffer_usage, queue_masks, split_extensions
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.spec.names import enum_value

COLOR_FORMAT = "VK_FORMAT_R8G8B8A8_UNORM"
Amend = Callable[[str, Mapping[str, Any], Mapping[str, Mapping[str, Any]]], Mapping[str, Any] | None]
"""(name, the dependency as written, its weaker forms) -> the dependency to record instead, None for none."""


def unamended(
    name: str, written: Mapping[str, Any], weaker: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Returns every dependency as it is written."""
    return written


def layout(name: str) -> int:
    """A VkImageLayout, named without VK_IMAGE_LAYOUT_."""
    return enum_value("VkImageLayout", f"VK_IMAGE_LAYOUT_{name}")


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where in memory a resource begins. `mapped` are the bytes of the whole memory object where it stays mapped."""

    memory: Any
    offset: int = 0
    mapped: Any = None


Placer = Callable[[Any], MemoryPlace]
"""Finds the place of a resource, given its handle."""


@dataclass(slots=True)
class RigBuffer:
    """A buffer that is bound to memory. `size` and `offset` are bytes; `mapped` is as in `MemoryPlace`."""

    handle: Any
    size: int
    memory: Any
    offset: int = 0
    mapped: Any = None


@dataclass(slots=True)
class RigImage:
    """An image with a memory object of its own."""

    handle: Any
    format: int
    extent: tuple[int, int, int]
    mips: int
    layers: int
    type: int
    aspects: int
    memory: Any
    usage: int = 0


@dataclass(slots=True)
class RigSetLayout:
    """A VkDescriptorSetLayout, with the (VkDescriptorType, count) of each binding."""

    handle: Any
    types: dict[int, tuple[int, int]]


@dataclass(slots=True)
class RigPipelineLayout:
    """A VkPipelineLayout with its set layouts by number. `push_stages` are the stages that see its push constants, and
    `pushed` is its VkPushConstantRange, if it has any."""

    handle: Any
    sets: tuple[RigSetLayout, ...]
    push_stages: int
    pushed: Sequence[Any] = ()


@dataclass(slots=True)
class RigPipeline:
    """A pipeline with its layout, or shader objects by VkShaderStageFlagBits (then `handle` is None). `point` is its
    VkPipelineBindPoint."""

    handle: Any
    shape: RigPipelineLayout
    point: int = VkPipelineBindPoint.COMPUTE
    objects: Mapping[int, Any] = field(default_factory=dict)

    @property
    def layout(self) -> Any:
        """The handle of its VkPipelineLayout."""
        return self.shape.handle


@dataclass(slots=True)
class RigDescriptorSet:
    """A descriptor set with its layout, and the number of the set in the pipeline layout."""

    handle: Any
    layout: RigSetLayout
    number: int = 0


@dataclass(slots=True, eq=False)
class RigEvent:
    """A VkEvent with the dependency that it carries: barriers as `Commands.barrier` takes them, None in the twin
    without them.

    With `sync2` it is used by vkCmdSetEvent2 and vkCmdWaitEvents2.
    """

    handle: Any
    sync2: bool
    written: Sequence[Mapping[str, Any]]
    dependency: Sequence[Mapping[str, Any]] | None
    signaled: bool = False
    """Whether the event is set after all calls of the host and all submits so far."""


class RigDevice:
    """The device of one scenario, as a context manager: leaving it waits, and destroys everything that was made.

    `layer` is a `LayerListener`, which has set up the environment. `amend` may replace each named dependency. `queues`
    asks for further queues, by kind (`requirements.QUEUE_KINDS`). Raises `UserError` when the device lacks a required
    extension or queue.
    """

    def __init__(
        self, extensions: Sequence[str] = (), layer: Any = None, amend: Amend = unamended, queues: Sequence[str] = ()
    ) -> None:
        instance, device = split_extensions(import_vulkan(), extensions)
        self.gpu = Headless(
            layers=[] if layer is None else [layer.layer.name],
            instance_extensions=[*instance, *([] if layer is None else ["VK_EXT_debug_utils"])],
            device_extensions=device,
            queues=queue_masks(queues),
        )
        self.vk = self.gpu.vk
        self.device = self.gpu.device
        self.queue = self.gpu.queue.handle
        self.queues = self.gpu.queues
        """The queue for everything, then those asked for, in order."""
        self.amend = amend
        self.extension_usage = buffer_usage(self.gpu.device_extensions)
        """The uses that extensions add to every buffer, as VkBufferUsageFlags."""
        self._undo: dict[Any, list[tuple[str, Any]]] = {}
        """The kind and handle by which each object made here is destroyed, by handle; empty once it is destroyed."""
        if layer is not None:
            layer.install(self.gpu.instance)
            self.gpu.cleanup.callback(layer.uninstall)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.gpu.close()

    @contextmanager
    def apart(self, queue: DeviceQueue, functions: Any) -> Iterator[Self]:
        """The same device for another thread, with one of its queues. What is made on it is destroyed at the end.

        `functions` stands for the `vulkan` package. The thread waits for its work before the end.
        """
        part = copy(self)
        part.gpu, part.vk = self.gpu.apart(queue), functions
        part.queue, part.queues, part._undo = queue.handle, [queue], {}
        with part.gpu.cleanup:
            yield part

    def function(self, name: str) -> Any:
        """An extension's device function."""
        return self.vk.vkGetDeviceProcAddr(self.device, name)

    def c_function(self, name: str) -> Any:
        """An extension's device function as C has it, where the package's own one does not fit."""
        ffi, found = self.vk.ffi, self.vk.lib.vkGetDeviceProcAddr(self.device, name.encode())
        return ffi.cast(f"PFN_{name}", found)

    def require(self, *features: str) -> None:
        """Raises `LacksError` for a feature that the device lacks, out of those that are on where a device has them."""
        lacking = sorted(set(features) - self.gpu.features)
        if lacking:
            raise LacksError(f"cannot run here: {self.gpu.device_name} has no feature {', '.join(lacking)}")

    def choose(self, name: str, written: Any, weaker: Mapping[str, Any]) -> Any:
        """A value (a size, an offset, an order) that a twin may replace by a weaker one. None in the twin that leaves
        it out."""
        amended = self.amend(name, {"value": written}, {key: {"value": value} for key, value in weaker.items()})
        return None if amended is None else amended["value"]

    def own(self, kind: str, handle: Any) -> Any:
        """Takes over an object that was just made, to destroy it (vkDestroy<kind>) at the end of the scenario."""
        self._undo[handle] = once = [(kind, handle)]
        self.gpu.cleanup.callback(self._destroy_once, once)
        return handle

    def _destroy_once(self, once: list[tuple[str, Any]]) -> None:
        while once:
            kind, handle = once.pop()
            destroy = getattr(self.vk, f"vkDestroy{kind}", None) or self.function(f"vkDestroy{kind}")
            destroy(self.device, handle, None)

    def destroy(self, handle: Any) -> None:
        """Destroys an object before the end of the scenario."""
        self._destroy_once(self._undo[handle])

    def sharing(self, exclusive: bool) -> dict[str, Any]:
        """Create info members for the sharing mode: all families of the device share the resource, unless it is
        `exclusive`."""
        families = sorted({queue.family for queue in self.queues})
        shared = len(families) > 1 and not exclusive
        return {"sharingMode": int(shared), "pQueueFamilyIndices": families} if shared else {"sharingMode": 0}


class RigCommandBuffer:
    """A command buffer while it is recorded. Offsets and sizes are bytes; image offsets and extents are texels."""

    def __init__(self, rig: RigDevice, handle: Any, queue: DeviceQueue) -> None:
        self.rig, self.vk, self.handle = rig, rig.vk, handle
        self.event_operations: list[tuple[str, RigEvent]] = []
        """The sets, resets and waits of events by the commands recorded so far, in order."""
        self.queue = queue
        """The queue that it is recorded for."""

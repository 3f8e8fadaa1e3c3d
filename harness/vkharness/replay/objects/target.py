"""A driver opened at the C boundary: instance, physical device and devices, kept for the life of the process.

Replays make every call through the C functions of a `ReplayTarget` or `ReplayDevice`. These come from a separate handle
on the loader. A mirror attached to the `vulkan` package in the same process neither sees nor slows them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from vkharness.device.drivers import environment, find_driver
from vkharness.findings import DeviceLostError, FailedCallError, UserError
from vkharness.replay.objects.queue_mapping import QueueFamily, QueuePlace
from vkharness.spec._generated import COMMAND_ALIASES
from vkharness.spec.declared_types import declared_types
from vkharness.spec.enums import VkPipelineCreate, VkQueueFlag, VkResult, VkStructureType
from vkharness.spec.shapes import new_struct
from vkharness.trace.chain import chained

API_VERSION = (1 << 22) | (4 << 12)
"""Vulkan 1.4. Drivers of an earlier version take it, too."""

KEPT_DEVICES = 4
"""The number of devices that a target keeps, one for each set of extensions, features and queues."""


def alternatives(name: str) -> list[str]:
    """The names under which a driver may know a command: the name itself, its core name, and its aliases."""
    core = COMMAND_ALIASES.get(name, name)
    aliases = [alias for alias, target in COMMAND_ALIASES.items() if target == core]
    return list(dict.fromkeys([name, core, *aliases]))


@dataclass(frozen=True, slots=True)
class MemoryType:
    """One entry of VkPhysicalDeviceMemoryProperties: property flags and the size of its heap in bytes."""

    flags: int
    heap_size: int


@dataclass(slots=True)
class ReplayDevice:
    """A VkDevice, and the queue on which all work of a replay runs that is not run as recorded."""

    target: ReplayTarget
    handle: Any
    queue: Any
    family: int
    pipeline_cache: Any = None
    lacking: list[str] = field(default_factory=list)
    """Extensions and features that the trace enables and the target does not have."""
    counts: dict[int, int] = field(default_factory=dict)
    """How many queues the device was made with, by family."""
    _functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the device offers a command, under any of its names."""
        return self._find(name) is not None

    def function(self, name: str, where: str = "") -> Callable[..., Any]:
        """The C function for a device command; UserError, begun by `where`, when the device does not offer it."""
        function = self._find(name)
        if function is None:
            start = f"{where}: " if where else ""
            raise UserError(f"{start}{self.target.name} has no {name} with the extensions that the trace enables")
        return function

    def _find(self, name: str) -> Callable[..., Any] | None:
        if name in self._functions:
            return self._functions[name]
        ffi, get = self.target.ffi, self.target.lib.vkGetDeviceProcAddr
        for spelling in alternatives(name):
            address = get(self.handle, spelling.encode())
            if address != ffi.NULL:
                function: Callable[..., Any] = ffi.cast("PFN_" + spelling, address)
                self._functions[name] = function
                return function
        return None

    def queue_at(self, place: QueuePlace) -> Any:
        """The VkQueue at (family, index), with which the device must have been made."""
        if self.queue and place == (self.family, 0):
            return self.queue
        out = self.target.ffi.new("VkQueue *")
        self.function("vkGetDeviceQueue")(self.handle, *place, out)
        return out[0]

    def cache_of(self, args: dict[str, Any]) -> Any:
        """The VkPipelineCache for a call that makes pipelines; none for dispatches with a base.

        NVIDIA's driver takes a pipeline from the cache without regard to VK_PIPELINE_CREATE_DISPATCH_BASE_BIT
        (docs/limits.md), and a device is kept for replays of other traces.
        """
        infos = args.get("pCreateInfos") or ()
        return self.target.ffi.NULL if any(map(_has_base, infos)) else self.pipeline_cache

    def wait(self) -> int:
        """Waits until the device is idle; the VkResult. After one that failed, what the device uses must not be
        destroyed: it is made once more. A lost device uses nothing."""
        wait = self.function("vkDeviceWaitIdle")
        result = int(wait(self.handle))
        if result not in (VkResult.SUCCESS, VkResult.ERROR_DEVICE_LOST):
            wait(self.handle)
        return result

    def check(self, result: int, what: str) -> None:
        """Raises UserError when a VkResult is an error."""
        if result < 0:
            raise _error_of(result)(f"{what} failed on {self.target.name}: {self.target.result_name(result)}")


def _has_base(info: dict[str, Any]) -> bool:
    """Whether the pipeline is made for vkCmdDispatchBase."""
    more = chained(info, VkStructureType.PIPELINE_CREATE_FLAGS_2_CREATE_INFO) or {}
    return bool((info.get("flags", 0) | more.get("flags", 0)) & VkPipelineCreate.DISPATCH_BASE)


def _error_of(result: int) -> type[FailedCallError]:
    return DeviceLostError if result == VkResult.ERROR_DEVICE_LOST else FailedCallError


@dataclass(slots=True)
class ReplayTarget:
    """One driver, its instance and its first physical device."""

    name: str
    ffi: Any
    lib: Any
    instance: Any
    physical: Any
    device_name: str
    memory_types: tuple[MemoryType, ...]
    family: int
    """The queue family for graphics, compute and transfers; compute and transfers if there is no such family."""
    binds_sparse: bool
    """Whether that family has VK_QUEUE_SPARSE_BINDING_BIT."""
    reads_zeros: bool
    """residencyNonResidentStrict: whether zeros are read where sparse resources have no memory."""
    granularity: int
    """bufferImageGranularity: bytes that keep linear and optimal resources of one memory apart."""
    atom_size: int
    """nonCoherentAtomSize in bytes."""
    queue_families: tuple[QueueFamily, ...]
    devices: dict[tuple[str, tuple[QueuePlace, ...]], ReplayDevice] = field(default_factory=dict)
    """By the name of a set of extensions and features, and (family, number of queues) of each family."""

    def result_name(self, result: int) -> str:
        """'VK_ERROR_…' for a VkResult."""
        names = self.ffi.typeof("VkResult").elements
        return str(names.get(result, result))

    def function(self, name: str) -> Callable[..., Any]:
        """The C function for an instance command; UserError when there is none."""
        for spelling in alternatives(name):
            address = self.lib.vkGetInstanceProcAddr(self.instance, spelling.encode())
            if address != self.ffi.NULL:
                function: Callable[..., Any] = self.ffi.cast("PFN_" + spelling, address)
                return function
        raise UserError(f"{self.name} has no {name}")

    def extensions(self) -> frozenset[str]:
        """Names of the device extensions that the driver offers."""
        return frozenset(self._extensions())

    def _extensions(self) -> Iterator[str]:
        count = self.ffi.new("uint32_t *")
        self.lib.vkEnumerateDeviceExtensionProperties(self.physical, self.ffi.NULL, count, self.ffi.NULL)
        found = self.ffi.new("VkExtensionProperties[]", count[0])
        self.lib.vkEnumerateDeviceExtensionProperties(self.physical, self.ffi.NULL, count, found)
        for index in range(count[0]):
            yield self.ffi.string(found[index].extensionName).decode()

    def device(
        self, key: str, extensions: list[str], chain: Any, features: Any, queues: Mapping[int, int]
    ) -> ReplayDevice:
        """The device for one set of extensions and features; `key` names the set.

        Equal sets share a device that has at least these `queues`: how many, by family. `chain` is the pNext pointer of
        VkDeviceCreateInfo and `features` its pEnabledFeatures (cffi, may be NULL). Raises UserError when the driver
        refuses.
        """
        counts = {self.family: 1, **queues}
        alike = [device for (name, _), device in self.devices.items() if name == key]
        for device in alike:
            if all(device.counts.get(family, 0) >= count for family, count in counts.items()):
                return device
        for device in alike:  # the new one suffices for what they do
            counts |= {family: max(count, counts.get(family, 0)) for family, count in device.counts.items()}
        while len(self.devices) >= KEPT_DEVICES:
            self._destroy(self.devices.pop(next(iter(self.devices))))
        device = self._create_device(extensions, chain, features, counts)
        self.devices[key, tuple(sorted(counts.items()))] = device
        return device

    def close(self, before_instance: Callable[[], None]) -> None:
        """Destroys the devices, and the instance after `before_instance`. Nothing may use the target any more."""
        while self.devices:
            self._destroy(self.devices.popitem()[1])
        before_instance()
        self.function("vkDestroyInstance")(self.instance, self.ffi.NULL)

    def _create_device(self, extensions: list[str], chain: Any, features: Any, counts: dict[int, int]) -> ReplayDevice:
        ffi, lib = self.ffi, self.lib
        priorities = ffi.new("float[]", [1.0] * max(counts.values()))
        queue_infos = ffi.new("VkDeviceQueueCreateInfo[]", len(counts))
        for queue_info, (family, count) in zip(queue_infos, sorted(counts.items()), strict=True):
            queue_info.sType = VkStructureType.DEVICE_QUEUE_CREATE_INFO
            queue_info.queueFamilyIndex, queue_info.queueCount = family, count
            queue_info.pQueuePriorities = priorities
        names = [ffi.new("char[]", name.encode()) for name in extensions]
        name_pointers = ffi.new("char *[]", names)  # a C struct keeps nothing alive that it points to
        info = new_struct(
            ffi,
            "VkDeviceCreateInfo",
            pNext=chain,
            queueCreateInfoCount=len(counts),
            pQueueCreateInfos=queue_infos,
            enabledExtensionCount=len(names),
            ppEnabledExtensionNames=name_pointers,
            pEnabledFeatures=features,
        )
        out = ffi.new("VkDevice *")
        result = lib.vkCreateDevice(self.physical, info, ffi.NULL, out)
        if result < 0:
            raise _error_of(result)(f"vkCreateDevice failed on {self.name}: {self.result_name(result)}")
        device = ReplayDevice(self, out[0], ffi.NULL, self.family, counts=counts)
        device.queue = device.queue_at((self.family, 0))
        cache = ffi.new("VkPipelineCache *")
        cache_info = new_struct(ffi, "VkPipelineCacheCreateInfo")
        device.check(
            device.function("vkCreatePipelineCache")(out[0], cache_info, ffi.NULL, cache), "vkCreatePipelineCache"
        )
        device.pipeline_cache = cache[0]
        return device

    def _destroy(self, device: ReplayDevice) -> None:
        device.wait()
        device.function("vkDestroyPipelineCache")(device.handle, device.pipeline_cache, self.ffi.NULL)
        device.function("vkDestroyDevice")(device.handle, self.ffi.NULL)


_targets: dict[str, ReplayTarget] = {}


def open_target(name: str) -> ReplayTarget:
    """The driver called `name` (see `vkharness.device.drivers`), opened once a process.

    Raises UserError when the loader or the driver is missing or refuses.
    """
    if name not in _targets:
        _targets[name] = _open(name)
    return _targets[name]


@contextmanager
def layered_target(name: str, witness: Any) -> Iterator[ReplayTarget]:
    """The driver called `name` below the layer of a witness, which hears of every call; replays in the context run
    there. At the end its devices and its instance are destroyed.

    `witness` is a `LayerListener`, which has set up the environment. Raises `UserError` as `open_target`.
    """
    before = _targets.pop(name, None)
    target = _open(name, (witness.layer.name,), ("VK_EXT_debug_utils",))
    try:
        witness.install(target.instance)
        _targets[name] = target
        yield target
    finally:
        _targets.pop(name, None)
        if before is not None:
            _targets[name] = before
        target.close(witness.uninstall)


def load() -> tuple[Any, Any]:
    """(ffi, lib): the registry's C declarations and our own handle on the Vulkan loader."""
    try:
        ffi = declared_types()
        return ffi, ffi.dlopen("libvulkan.so.1")
    except OSError:
        raise UserError("no Vulkan loader (libvulkan.so.1) on this machine; ci/setup installs it") from None


@contextmanager
def _only(driver_environment: dict[str, str]) -> Iterator[None]:
    """Sets the loader's variables for a block, and restores them afterwards."""
    before = {key: os.environ.get(key) for key in driver_environment}
    os.environ.update(driver_environment)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _open(name: str, layers: Sequence[str] = (), extensions: Sequence[str] = ()) -> ReplayTarget:
    driver = find_driver(name)
    ffi, lib = load()
    with _only(environment(driver)):
        application = new_struct(ffi, "VkApplicationInfo", apiVersion=API_VERSION)
        texts = [[ffi.new("char[]", text.encode()) for text in several] for several in (layers, extensions)]
        names = [ffi.new("char *[]", several) for several in texts]
        info = new_struct(
            ffi,
            "VkInstanceCreateInfo",
            pApplicationInfo=application,
            enabledLayerCount=len(layers),
            ppEnabledLayerNames=names[0],
            enabledExtensionCount=len(extensions),
            ppEnabledExtensionNames=names[1],
        )
        out = ffi.new("VkInstance *")
        result = lib.vkCreateInstance(info, ffi.NULL, out)
        if result < 0:
            code = ffi.typeof("VkResult").elements.get(result, result)
            raise FailedCallError(f"vkCreateInstance failed on {name}: {code}")
        physical = _first_physical_device(name, ffi, lib, out[0])
    properties = ffi.new("VkPhysicalDeviceProperties *")
    lib.vkGetPhysicalDeviceProperties(physical, properties)
    families = _queue_families(ffi, lib, physical)
    family = _own_family(name, families)
    return ReplayTarget(
        name=name,
        ffi=ffi,
        lib=lib,
        instance=out[0],
        physical=physical,
        device_name=ffi.string(properties.deviceName).decode(),
        memory_types=_memory_types(ffi, lib, physical),
        family=family,
        binds_sparse=bool(families[family].flags & VkQueueFlag.SPARSE_BINDING),
        reads_zeros=bool(properties.sparseProperties.residencyNonResidentStrict),
        granularity=int(properties.limits.bufferImageGranularity),
        atom_size=int(properties.limits.nonCoherentAtomSize),
        queue_families=families,
    )


def _first_physical_device(name: str, ffi: Any, lib: Any, instance: Any) -> Any:
    count = ffi.new("uint32_t *")
    result = lib.vkEnumeratePhysicalDevices(instance, count, ffi.NULL)
    if result < 0 or count[0] == 0:
        raise UserError(f"driver {name} offers no physical device")
    devices = ffi.new("VkPhysicalDevice[]", count[0])
    lib.vkEnumeratePhysicalDevices(instance, count, devices)
    return devices[0]


def _memory_types(ffi: Any, lib: Any, physical: Any) -> tuple[MemoryType, ...]:
    found = ffi.new("VkPhysicalDeviceMemoryProperties *")
    lib.vkGetPhysicalDeviceMemoryProperties(physical, found)
    types = [found.memoryTypes[index] for index in range(found.memoryTypeCount)]
    return tuple(MemoryType(int(kind.propertyFlags), int(found.memoryHeaps[kind.heapIndex].size)) for kind in types)


def _queue_families(ffi: Any, lib: Any, physical: Any) -> tuple[QueueFamily, ...]:
    count = ffi.new("uint32_t *")
    lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, ffi.NULL)
    families = ffi.new("VkQueueFamilyProperties[]", count[0])
    lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, families)
    found = (families[index] for index in range(count[0]))
    return tuple(QueueFamily(int(each.queueFlags), int(each.queueCount)) for each in found)


def _own_family(name: str, families: tuple[QueueFamily, ...]) -> int:
    """The first family with graphics and compute, else the first with compute."""
    for wanted in (VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE, VkQueueFlag.COMPUTE):
        for index, family in enumerate(families):
            if family.flags & wanted == wanted:
                return index
    raise UserError(f"driver {name} has no queue family with compute")

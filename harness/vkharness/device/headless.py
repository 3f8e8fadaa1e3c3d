"""A Vulkan device with no window: instance, physical device, device, queues and a command pool, as one context.

Everything goes through the functions of the `vulkan` package, so an attached mirror sees it all. What it makes it
destroys in reverse order, also when making it fails half way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Self

from vkharness.device.failed_calls import DEVICE_LOST, refusal, result_name
from vkharness.findings import FailedCallError, LacksError, UserError
from vkharness.spec import _generated as spec
from vkharness.spec.enums import VkQueueFlag

API_1_1 = (1 << 22) | (1 << 12)
API_1_2 = (1 << 22) | (2 << 12)
API_1_3 = (1 << 22) | (3 << 12)


USUAL_FEATURES = (
    "accelerationStructure",
    "bufferDeviceAddress",
    "conditionalRendering",
    "descriptorBindingPartiallyBound",
    "descriptorBuffer",
    "drawIndirectCount",
    "dynamicRendering",
    "fragmentStoresAndAtomics",
    "geometryShader",
    "hostImageCopy",
    "hostQueryReset",
    "imageCubeArray",
    "imagelessFramebuffer",
    "independentBlend",
    "maintenance4",
    "multiDraw",
    "multiDrawIndirect",
    "multiview",
    "rayQuery",
    "runtimeDescriptorArray",
    "sampleRateShading",
    "separateDepthStencilLayouts",
    "shaderObject",
    "shaderImageGatherExtended",
    "shaderStorageBufferArrayDynamicIndexing",
    "shaderStorageImageExtendedFormats",
    "shaderStorageImageMultisample",
    "shaderStorageImageReadWithoutFormat",
    "shaderStorageImageWriteWithoutFormat",
    "sparseBinding",
    "sparseResidencyAliased",
    "sparseResidencyBuffer",
    "sparseResidencyImage2D",
    "swapchainMaintenance1",
    "synchronization2",
    "tessellationShader",
    "timelineSemaphore",
    "transformFeedback",
    "vertexPipelineStoresAndAtomics",
)
"""Features switched on where the device has them: what synchronization streams use, and no more, so that a stream
recorded on one driver can be made again on another."""

FEATURE_STRUCTS = (
    ("VkPhysicalDeviceVulkan11Features", "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES", API_1_2),
    ("VkPhysicalDeviceVulkan12Features", "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES", API_1_2),
    ("VkPhysicalDeviceVulkan13Features", "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES", API_1_3),
)
"""(struct, its sType, the API version from which a device takes it)."""
EXTENSION_STRUCTS = {
    "VK_EXT_conditional_rendering": (
        "VkPhysicalDeviceConditionalRenderingFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT",
    ),
    "VK_EXT_descriptor_buffer": (
        "VkPhysicalDeviceDescriptorBufferFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_FEATURES_EXT",
    ),
    "VK_EXT_host_image_copy": (
        "VkPhysicalDeviceHostImageCopyFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_IMAGE_COPY_FEATURES_EXT",
    ),
    "VK_EXT_multi_draw": (
        "VkPhysicalDeviceMultiDrawFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MULTI_DRAW_FEATURES_EXT",
    ),
    "VK_EXT_shader_object": (
        "VkPhysicalDeviceShaderObjectFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_OBJECT_FEATURES_EXT",
    ),
    "VK_EXT_swapchain_maintenance1": (
        "VkPhysicalDeviceSwapchainMaintenance1FeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SWAPCHAIN_MAINTENANCE_1_FEATURES_EXT",
    ),
    "VK_EXT_transform_feedback": (
        "VkPhysicalDeviceTransformFeedbackFeaturesEXT",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TRANSFORM_FEEDBACK_FEATURES_EXT",
    ),
    "VK_KHR_acceleration_structure": (
        "VkPhysicalDeviceAccelerationStructureFeaturesKHR",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR",
    ),
    "VK_KHR_ray_query": (
        "VkPhysicalDeviceRayQueryFeaturesKHR",
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_QUERY_FEATURES_KHR",
    ),
}
"""(struct, its sType) of features that come with an extension."""


@dataclass(frozen=True, slots=True)
class DeviceQueue:
    """One VkQueue with where it comes from; `flags` are its family's VkQueueFlags."""

    handle: Any
    family: int
    index: int
    flags: int


WITHOUT = "no "
"""Before the name of a device extension that a device must not have."""


class Headless:
    """See the module's docstring. Use it as a context manager, or call `close`.

    `layers` and `instance_extensions` are names. `queues` asks for one queue each: a mask of
    VkQueueFlagBits that its family must have. `device_extensions` and `features` are required, the optional ones
    taken where offered; one after "no " must be missing. Raises `LacksError` when the device lacks something required,
    `UserError` when there is no device to ask, and when no device extension has a required name.
    """

    def __init__(
        self,
        *,
        layers: Sequence[str] = (),
        instance_extensions: Sequence[str] = (),
        physical_device: int = 0,
        queues: Sequence[int] = (VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE,),
        device_extensions: Sequence[str] = (),
        optional_device_extensions: Sequence[str] = (),
        features: Sequence[str] = (),
        optional_features: Sequence[str] = USUAL_FEATURES,
    ) -> None:
        self.vk = import_vulkan()
        self.cleanup = ExitStack()
        """Callbacks pushed here run on closing, the last first, when the device is idle and before it is destroyed."""
        self.device: Any = None
        try:
            self.instance = self._create_instance(layers, instance_extensions)
            self.physical_device = self._pick(physical_device)
            self.properties = self.vk.vkGetPhysicalDeviceProperties(self.physical_device)
            self.device_name: str = self.properties.deviceName
            self.memory_types = self._memory_types()
            self.device_extensions = self._choose_extensions(device_extensions, optional_device_extensions)
            self.features: frozenset[str] = frozenset()
            """Names of the features that are on."""
            places = self._place_queues(queues)
            self.device = self._create_device(places, features, optional_features)
            self.queues = [
                DeviceQueue(self.vk.vkGetDeviceQueue(self.device, family, index), family, index, flags)
                for family, index, flags in places
            ]
            self._pools: dict[int, Any] = {}
            self.command_pool = self.pool(self.queues[0].family)
        except BaseException:
            self.close()
            raise

    @property
    def queue(self) -> DeviceQueue:
        """The first of the queues asked for."""
        return self.queues[0]

    def pool(self, family: int) -> Any:
        """The VkCommandPool for queues of a family, made when first asked for."""
        if family not in self._pools:
            self._pools[family] = self._create_command_pool(family)
        return self._pools[family]

    def apart(self, queue: DeviceQueue) -> Self:
        """The same device for another thread, with one of the queues: its command pools and its `cleanup` are its own.

        It is closed by closing its `cleanup`, when the device is done with what was made on it.
        """
        part = copy(self)
        part.cleanup, part._pools, part.queues = ExitStack(), {}, [queue]
        part.command_pool = part.pool(queue.family)
        return part

    def memory_type(self, type_bits: int, required: int, preferred: int = 0) -> int:
        """Index of the memory type within `type_bits` that has all `required` property flags and most `preferred`."""
        fitting = [
            (-(flags & preferred).bit_count(), index)
            for index, flags in enumerate(self.memory_types)
            if type_bits >> index & 1 and flags & required == required
        ]
        if not fitting:
            raise LacksError(f"{self.device_name} has no memory type with properties {required:#x} in {type_bits:#x}")
        return min(fitting)[1]

    def close(self) -> None:
        """Waits for the device to be idle and destroys everything. May be called again."""
        device, self.device = self.device, None
        try:
            if device is not None and not is_null_hardware():
                self._wait(device)
        finally:
            self.cleanup.close()

    def _wait(self, device: Any) -> None:
        """Waits for the device. A wait that fails has waited for nothing, and what the device uses must not be
        destroyed: it is made once more before the error goes on. A lost device uses nothing."""
        try:
            self.vk.vkDeviceWaitIdle(device)
        except self.vk.VkError as error:
            if result_name(error) != DEVICE_LOST:
                with suppress(self.vk.VkError):
                    self.vk.vkDeviceWaitIdle(device)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _create_instance(self, layers: Sequence[str], extensions: Sequence[str]) -> Any:
        vk = self.vk
        have = {layer.layerName for layer in vk.vkEnumerateInstanceLayerProperties()} if layers else set()
        if absent := sorted(set(layers) - have):
            raise UserError(f"this machine has no layer {', '.join(absent)}")
        application = vk.VkApplicationInfo(pApplicationName="vkharness", apiVersion=API_1_3)
        info = vk.VkInstanceCreateInfo(
            pApplicationInfo=application, ppEnabledLayerNames=list(layers), ppEnabledExtensionNames=list(extensions)
        )
        try:
            instance = vk.vkCreateInstance(info, None)
        except vk.VkError as error:
            raise FailedCallError(f"vkCreateInstance failed: {result_name(error)}; no usable Vulkan driver?") from None
        self.cleanup.callback(vk.vkDestroyInstance, instance, None)
        return instance

    def _pick(self, index: int) -> Any:
        try:
            devices = self.vk.vkEnumeratePhysicalDevices(self.instance)
        except self.vk.VkError as error:
            raise UserError(f"the driver finds no device that it can drive here ({result_name(error)})") from None
        if index >= len(devices):
            raise UserError(f"no physical device {index}: the driver offers {len(devices)}")
        return devices[index]

    def _memory_types(self) -> tuple[int, ...]:
        """VkMemoryPropertyFlags of each memory type."""
        found = self.vk.vkGetPhysicalDeviceMemoryProperties(self.physical_device)
        return tuple(int(found.memoryTypes[index].propertyFlags) for index in range(found.memoryTypeCount))

    def _choose_extensions(self, required: Sequence[str], optional: Sequence[str]) -> tuple[str, ...]:
        found = self.vk.vkEnumerateDeviceExtensionProperties(self.physical_device, None)
        have = {extension.extensionName for extension in found}
        absent = {name.removeprefix(WITHOUT) for name in required if name.startswith(WITHOUT)}
        required = [name for name in required if not name.startswith(WITHOUT)]
        _require_known({*required, *absent} - have)
        if absent & have:
            raise LacksError(f"{self.device_name} has {', '.join(sorted(absent & have))}")
        _require("device extension", required, have, self.device_name)
        return tuple(dict.fromkeys([*required, *(name for name in optional if name in have)]))

    def _place_queues(self, wanted: Sequence[int]) -> list[tuple[int, int, int]]:
        """(family, index in it, the family's flags) for each wanted mask, in families with the fewest other uses."""
        found = self.vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical_device)
        families = [(int(family.queueFlags), int(family.queueCount)) for family in found]
        places = place_queues(families, wanted)
        if places is None:
            asked = ", ".join(f"{mask:#x}" for mask in wanted)
            raise LacksError(f"{self.device_name} has no further queue: it lacks one of those with flags {asked}")
        return places

    def _create_device(
        self, places: list[tuple[int, int, int]], required: Sequence[str], optional: Sequence[str]
    ) -> Any:
        vk = self.vk
        counts: dict[int, int] = {}
        for family, _, _ in places:
            counts[family] = counts.get(family, 0) + 1
        queue_infos = [
            vk.VkDeviceQueueCreateInfo(queueFamilyIndex=family, queueCount=count, pQueuePriorities=[1.0] * count)
            for family, count in counts.items()
        ]
        chain, structs = self._feature_chain()
        vk.vkGetPhysicalDeviceFeatures2(self.physical_device, chain)
        self.features = self._switch(structs, required, optional)
        info = vk.VkDeviceCreateInfo(
            pNext=chain, pQueueCreateInfos=queue_infos, ppEnabledExtensionNames=list(self.device_extensions)
        )
        try:
            device = vk.vkCreateDevice(self.physical_device, info, None)
        except vk.VkError as error:
            raise refusal(f"vkCreateDevice failed on {self.device_name}", result_name(error)) from None
        self.cleanup.callback(vk.vkDestroyDevice, device, None)
        return device

    def _feature_chain(self) -> tuple[Any, list[Any]]:
        """VkPhysicalDeviceFeatures2, those of core versions and extensions behind it, and the structs with features."""
        ffi = self.vk.ffi
        chain = ffi.new("VkPhysicalDeviceFeatures2 *")
        chain.sType = self.vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2
        structs = [chain.features]
        last = chain
        wanted = [(name, kind) for name, kind, since in FEATURE_STRUCTS if self.properties.apiVersion >= since]
        wanted += [EXTENSION_STRUCTS[each] for each in self.device_extensions if each in EXTENSION_STRUCTS]
        for name, structure_type in wanted:
            struct = ffi.new(name + " *")
            struct.sType = getattr(self.vk, structure_type)
            last.pNext = struct
            last = struct
            structs.append(struct)
        # C memory does not keep what it points at: the list does.
        return chain, [chain, *structs]

    def _switch(self, structs: list[Any], required: Sequence[str], optional: Sequence[str]) -> frozenset[str]:
        """Leaves on, in the structs that the driver filled, only what is asked for; returns the names that are on."""
        asked = {*required, *optional}
        offered = set()
        for struct in structs:
            for name in _feature_names(self.vk.ffi, struct):
                if getattr(struct, name):
                    offered.add(name)
                    setattr(struct, name, int(name in asked))
        _require("feature", required, offered, self.device_name)
        return frozenset(offered & asked)

    def _create_command_pool(self, family: int) -> Any:
        vk = self.vk
        info = vk.VkCommandPoolCreateInfo(
            flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queueFamilyIndex=family
        )
        pool = vk.vkCreateCommandPool(self.device, info, None)
        self.cleanup.callback(vk.vkDestroyCommandPool, self.device, pool, None)
        return pool


def place_queues(families: Sequence[tuple[int, int]], wanted: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """(family, index in it, the family's flags) for each wanted mask of VkQueueFlagBits; None when there are too few.

    `families` gives (VkQueueFlags, number of queues) each.
    """
    taken = [0] * len(families)
    places = []
    for mask in wanted:
        # Graphics and compute queues can transfer whether or not they say so.
        fitting = [
            (have.bit_count(), family)
            for family, (have, count) in enumerate(families)
            if taken[family] < count and (have | (VkQueueFlag.TRANSFER if have & 3 else 0)) & mask == mask
        ]
        if not fitting:
            return None
        family = min(fitting)[1]
        places.append((family, taken[family], families[family][0]))
        taken[family] += 1
    return places


def is_null_hardware() -> bool:
    """Whether this process drives RADV without hardware, which executes nothing and crashes in vkDeviceWaitIdle."""
    return "RADV_FORCE_FAMILY" in os.environ


def import_vulkan() -> Any:
    """The `vulkan` package. Raises `UserError` when the machine has no Vulkan loader, which it opens on import."""
    try:
        import vulkan
    except OSError:
        raise UserError("no Vulkan loader (libvulkan.so.1) on this machine; ci/setup installs it") from None
    return vulkan


def _feature_names(ffi: Any, struct: Any) -> list[str]:
    kind = ffi.typeof(struct)
    fields = (kind.item if kind.kind == "pointer" else kind).fields
    return [name for name, field in fields if field.type.kind == "primitive"]


def _require_known(extensions: Iterable[str]) -> None:
    """Raises `UserError` for a name that no device extension has: no device can be said to lack it."""
    for name in sorted(extensions):
        if spec.EXTENSIONS.get(name) != "device":
            near = [each for each in get_close_matches(name, spec.EXTENSIONS, 1) if each != name]
            raise UserError(f"no device extension is called {name}" + (f"; did you mean {near[0]}?" if near else ""))


def _require(what: str, wanted: Iterable[str], have: Iterable[str], where: str) -> None:
    missing = sorted(set(wanted) - set(have))
    if missing:
        raise LacksError(f"{where} has no {what} {', '.join(missing)}")

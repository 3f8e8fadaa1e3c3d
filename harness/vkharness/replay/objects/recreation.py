"""Makes the host calls of a trace again on the target.

A call is made as it was, with the target's handles, unless it is listed here. Buffers, images and their memory exist
before anything runs (`creation`). Destroys wait for the end, so that everything can be observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vkharness.findings import UserError
from vkharness.replay.objects.creation import Resources, refuse_unread
from vkharness.replay.objects.device_features import reduced, refuse_without_stages
from vkharness.replay.objects.encode import Encoded, Encoder, Handles, parameters
from vkharness.replay.objects.ownership_transfers import on_device
from vkharness.replay.objects.queue_mapping import QueueMapping, place_of
from vkharness.replay.objects.sparse_binds import in_submission_order, sparse_binds
from vkharness.replay.objects.target import ReplayDevice, ReplayTarget
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec._generated import COMMANDS, HANDLES
from vkharness.spec.command_classes import is_debug
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import CUT_OFF, Block, Call, HostRead, HostWrite, reading
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.templates import plain

WITH_POOLS = frozenset({"VkCommandBuffer", "VkDescriptorSet"})
"""Handle types that are freed with the pool that they came from."""

QUEUE_WORK = frozenset({"VkCommandPool", "VkCommandBuffer", "VkFence", "VkSemaphore", "VkEvent"})
"""Handle types that only a native run needs, since all other runs submit and wait by themselves."""

INVALIDATE, FLUSH = CARRIES = ("vkInvalidateMappedMemoryRanges", "vkFlushMappedMemoryRanges")
"""Calls that move bytes between the host and memory that is not coherent. Only a native run executes them."""

DONE_BEFORE = frozenset({"vkCreateBuffer", "vkCreateImage", "vkAllocateMemory"})

WITHOUT_EFFECT = (
    "vkGet",
    "vkEnumerate",
    "vkBind",
    "vkCopyImageToMemoryEXT",
    "vkDestroy",
    "vkFreeMemory",
    "vkFreeCommandBuffers",
    "vkMapMemory",
    "vkUnmapMemory",
    *CARRIES,
    "vkMergePipelineCaches",
    "vkTrimCommandPool",
    "vkSetPrivateData",
)
"""Beginnings of the names of calls that a replay leaves out, since it maps, binds and destroys by itself."""

DESCRIPTOR, PLACE = "vkGetDescriptorEXT", "vkGetDescriptorSetLayoutBindingOffsetEXT"
SAYS = frozenset({"vkGetBufferDeviceAddress", DESCRIPTOR, PLACE})
"""Calls of which the replay needs what they say on the target."""

NATIVE_ONLY = frozenset(
    {
        "vkSetEvent",
        "vkResetEvent",
        "vkResetFences",
        "vkWaitForFences",
        "vkWaitSemaphores",
        "vkSignalSemaphore",
        "vkQueueWaitIdle",
        "vkDeviceWaitIdle",
        "vkBeginCommandBuffer",
        "vkEndCommandBuffer",
        "vkResetCommandBuffer",
        "vkResetCommandPool",
        "vkQueueSubmit",
        "vkQueueSubmit2",
    }
)

REFUSED = {
    "vkCreateSwapchainKHR": "it needs a window",
    "vkCopyMemoryToImageEXT": "the memory that it reads is not in the trace",
    "vkCmdBuildAccelerationStructuresKHR": "structures have other addresses in a replay than in their instances",
}
"""Calls that cannot be replayed, with the reason."""


FOREIGN = "VK_EXT_queue_family_foreign"
"""The extension of VK_QUEUE_FAMILY_FOREIGN_EXT."""


def as_wait(call: Call) -> Call:
    """A query that the program acted on, as the wait that it amounts to; any other call is returned unchanged.

    A query of a signaled fence or of a timeline's value becomes a wait for it.
    """
    name, args = main_name(call.name), call.args
    if name == "vkGetFenceStatus" and call.result == 0:
        waited: dict[str, Any] = {"fenceCount": 1, "pFences": [args["fence"]], "waitAll": 1}
        return _wait(call, "vkWaitForFences", waited)
    if name == "vkGetSemaphoreCounterValue" and call.result == 0 and args["pValue"]:
        info: dict[str, Any] = {
            "sType": VkStructureType.SEMAPHORE_WAIT_INFO,
            "pNext": None,
            "flags": 0,
            "semaphoreCount": 1,
        }
        info |= {"pSemaphores": [args["semaphore"]], "pValues": [args["pValue"]]}
        return _wait(call, "vkWaitSemaphores", {"pWaitInfo": info})
    return call


def _wait(call: Call, name: str, args: dict[str, Any]) -> Call:
    return replace(call, name=name, args={"device": call.args["device"], **args, "timeout": FOREVER})


FOREVER = 0xFFFFFFFFFFFFFFFF
"""The timeout of a wait in nanoseconds. A wait that ended in the trace must end in the replay, too."""


def open_device(target: ReplayTarget, blocks: Iterable[Block], mapping: QueueMapping) -> ReplayDevice:
    """A device with the extensions and features that the trace's first vkCreateDevice asked for, and the queues of
    `mapping`.

    Those that the target lacks are left out (`ReplayDevice.lacking`); a call that needs one raises its own error.
    Raises `UserError` when the driver refuses.
    """
    handles = Handles()
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateDevice" and block.succeeded:
            with reading(block):
                return _device_for(target, handles, block, mapping)
    return target.device("", [], target.ffi.NULL, target.ffi.NULL, mapping.counts)


def _device_for(target: ReplayTarget, handles: Handles, call: Call, mapping: QueueMapping) -> ReplayDevice:
    extensions, info, lacking = reduced(target, call.args["pCreateInfo"])
    where = f"block {call.index}: vkCreateDevice pCreateInfo"
    key = repr((extensions, info["pNext"], info["pEnabledFeatures"]))
    encoder = Encoder(target.ffi, handles)
    chain = encoder.chain(info["pNext"], f"{where}.pNext")
    features = target.ffi.NULL
    if info["pEnabledFeatures"] is not None:
        features = encoder.struct("VkPhysicalDeviceFeatures", info["pEnabledFeatures"], f"{where}.pEnabledFeatures")
    try:
        device = target.device(key, extensions, chain, features, mapping.counts)
    except UserError as error:
        raise type(error)(f"block {call.index}: {error}") from None
    device.lacking = lacking
    return device


def _buffer_address(call: Call) -> int:
    """The device address of which a vkGetDescriptorEXT makes a descriptor; 0 where it names an object, or nothing."""
    data = call.args["pDescriptorInfo"]["data"]
    held = next(iter(data.values()), None)
    return int((held or {}).get("address", 0)) if not isinstance(held, int) else data.get("accelerationStructure", 0)


def refuse_without_data(call: Call) -> None:
    """Raises `UserError` when bytes that a call reads are not in the trace, or the call itself could not be read.

    A capture may leave bytes out. The data of a descriptor update template cannot be read if its creation was not seen.
    """
    refuse_unread(call)
    templated = "UpdateTemplate" in call.name or "WithTemplate" in call.name
    if (templated and call.args.get("pData", b"") is None) or _lacks_data(call.args):
        raise UserError(f"block {call.index}: {call.name} cannot be replayed: its data is not in the trace")


def refuse(call: Call) -> None:
    """Raises `UserError` for a call that cannot be replayed."""
    refuse_without_data(call)
    if reason := REFUSED.get(main_name(call.name)) or REFUSED.get(call.name):
        raise UserError(f"block {call.index}: {call.name} cannot be replayed: {reason}")


def _lacks_data(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_lacks_data, value))
    if not isinstance(value, dict):
        return False
    for name, size in (("pData", "dataSize"), ("pValues", "size"), ("pCode", "codeSize")):
        if name in value and value[name] is None and value.get(size):
            return True
    return any(map(_lacks_data, value.values()))


@dataclass(slots=True)
class PreparedCall:
    """A call whose arguments are in C memory already: making it takes no work of Python's beside the call."""

    call: Call
    function: Callable[..., Any]
    encoded: Encoded
    encoder: Encoder
    """Owns the memory of the arguments."""


class ReplayObjects:
    """The objects of one replay other than buffers and images: made, updated and, at the end, destroyed."""

    def __init__(self, device: ReplayDevice, resources: Resources, native: bool) -> None:
        """The queues of the trace are those that the resources' mapping says."""
        self.device = device
        self.resources = resources
        self.handles = resources.handles
        self.native = native
        self.mapping = resources.mapping
        self._families: dict[int, int] = {}
        """The trace's queue family of each command pool and command buffer."""
        self.skipped: set[int] = set()
        """sType values that the tables lack; their structs were left out."""
        self._sizes = resources.sizes()
        self._ends = resources.memories.ends()
        self._destroys: list[tuple[str, int]] = []

    def perform(self, block: Block) -> None:
        """Re-issues one host block. UserError names the block when the target cannot."""
        if isinstance(block, HostWrite):
            data = self.handles.addresses.written(block.data)
            self.resources.memories.write(block.memory, block.offset, data, self._sizes)
            return
        if isinstance(block, HostRead):
            self._see(block.index, block.memory, block.offset, block.size)
            return
        block = as_wait(plain(block))
        name = main_name(block.name)
        refuse(block)
        with reading(block):
            if self._is_ours(name, block) or name in DONE_BEFORE:
                return
            if name in CARRIES and self.native:
                self.resources.memories.carry(name, block.args["pMemoryRanges"] or [])
            if name == INVALIDATE:
                for each in block.args["pMemoryRanges"] or ():
                    self._see(block.index, each["memory"], each["offset"], each["size"])
            without_effect = name.startswith(WITHOUT_EFFECT) and name not in SAYS
            if without_effect or is_debug(name) or name == CUT_OFF or (name in NATIVE_ONLY and not self.native):
                return
            if name == BIND_SPARSE:
                self._bind_sparse(block)
            elif name == DESCRIPTOR and self._means_nothing(block):
                return
            elif self.native or not self._makes_queue_work(block.name):
                self._issue(block)

    def foresee(self, blocks: Iterable[Block]) -> None:
        """Asks for the addresses that a trace with descriptors in memory asks for, and for descriptors of buffers,
        since these are there: what the host writes earlier may be a part of such a descriptor."""
        several = [each for each in blocks if isinstance(each, Call) and each.succeeded]
        if not any(each.name == DESCRIPTOR for each in several):
            return
        for call in several:
            if main_name(call.name) == "vkGetBufferDeviceAddress" and call.result:
                with reading(call):
                    buffer = self.resources.buffers.get(call.args["pInfo"]["buffer"])
                    if buffer is not None and buffer.bound:
                        prepared = self._prepared(call)
                        here = int(prepared.function(*prepared.encoded.arguments))
                        self.handles.addresses.foresee(call.result, buffer.size, here)
        for call in several:
            with reading(call):
                if call.name == DESCRIPTOR and _buffer_address(call) and not self._means_nothing(call):
                    self._issue(call)

    def _means_nothing(self, call: Call) -> bool:
        """Whether a descriptor is of memory that is not in the trace, as of one that was made smaller."""
        address = _buffer_address(call)
        return address != 0 and not self.handles.addresses.leads(address)

    def prepare(self, call: Call) -> PreparedCall:
        """A call of a native replay, ready for `make`. UserError names the block when the target cannot make it."""
        refuse(call)
        with reading(call):
            return self._prepared(call)

    def _bind_sparse(self, call: Call) -> None:
        """Binds memory; in a replay that is not native, with the device idle before and after."""
        self._issue(call if self.native else replace(call, args=in_submission_order(call)))
        if not self.native:
            self.device.check(
                self.device.function("vkQueueWaitIdle")(self.device.queue), f"block {call.index}: the bind"
            )
        for resource, _ in sparse_binds(call):
            held = self.resources.buffers.get(resource) or self.resources.images.get(resource)
            if held is not None:
                held.bound = True

    def _see(self, index: int, memory: int, offset: int, size: int) -> None:
        """Keeps the bytes that the host sees here, since a program may act on what it reads."""
        size = min(size, self._ends.get(memory, 0) - offset)
        if size > 0:
            seen = self.resources.memories.read(memory, offset, size, self._sizes)
            seen = self.handles.addresses.of_trace(np.frombuffer(seen, np.uint8), offset).tobytes()
            held = self.resources.host_reads
            held[index] = held.get(index, b"") + seen

    def _is_ours(self, name: str, call: Call) -> bool:
        """Whether a call makes an object that the target stands for: instance, physical device, device or queue."""
        args, cast = call.args, self._address
        if name == "vkCreateInstance":
            self.handles.add(args["pInstance"], "VkInstance", cast(self.device.target.instance))
        elif name == "vkEnumeratePhysicalDevices":
            for identity in args.get("pPhysicalDevices") or []:
                self.handles.add(identity, "VkPhysicalDevice", cast(self.device.target.physical))
        elif name == "vkCreateDevice":
            self.handles.add(args["pDevice"], "VkDevice", cast(self.device.handle))
        elif name in ("vkGetDeviceQueue", "vkGetDeviceQueue2"):
            queue = self.device.queue_at(self.mapping.queue(place_of(call)))
            self.handles.add(args["pQueue"], "VkQueue", cast(queue))
        elif name == "vkCreatePipelineCache":
            # Data of another driver is of no use, and all pipelines share one cache of ours.
            self.handles.add(args["pPipelineCache"], "VkPipelineCache", cast(self.device.pipeline_cache))
        else:
            return False
        return True

    def _address(self, handle: Any) -> int:
        return int(self.device.target.ffi.cast("uintptr_t", handle))

    def _issue(self, call: Call) -> None:
        self.make(self._prepared(call))

    def _prepared(self, call: Call) -> PreparedCall:
        if call.name not in COMMANDS:
            raise UserError(f"block {call.index}: unknown call {call.name}")
        given: dict[str, Any] = {"device": self.device.handle}
        args = call.args
        if "pipelineCache" in args:
            given["pipelineCache"] = self.device.cache_of(args)
        if main_name(call.name) == "vkWaitForFences" and call.result == 0:
            args = {**args, "timeout": FOREVER}
        args = self._in_families(call, args)
        for write in args.get("pDescriptorWrites") or [] if call.name == "vkUpdateDescriptorSets" else []:
            if write.get("dstSet") not in self.handles:
                raise UserError(f"block {call.index}: vkUpdateDescriptorSets of a set that does not exist")
        refuse_without_stages(call, self.device.target, self.device.lacking)
        if call.name == DESCRIPTOR:
            given["pDescriptor"] = self.device.target.ffi.new("uint8_t[]", args["dataSize"])
        if call.name.startswith("vkCmd") or call.name == DESCRIPTOR:
            args = dict(self.handles.addresses.translated(args))
        encoder = Encoder(self.device.target.ffi, self.handles)
        encoded = encoder.call(call.name, args, f"block {call.index}", given)
        return PreparedCall(call, self.device.function(call.name, f"block {call.index}"), encoded, encoder)

    def _in_families(self, call: Call, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call with the queue families of the device."""
        name = main_name(call.name)
        if name == "vkCreateCommandPool":
            info = args["pCreateInfo"]
            self._families[args["pCommandPool"]] = family = info["queueFamilyIndex"]
            return {**args, "pCreateInfo": {**info, "queueFamilyIndex": self.mapping.family(family)}}
        if name == "vkAllocateCommandBuffers":
            family = self._families.get(args["pAllocateInfo"]["commandPool"], VK_QUEUE_FAMILY_IGNORED)
            self._families.update(dict.fromkeys(args["pCommandBuffers"] or (), family))
        elif kind_of(call.name) is StepKind.SYNC:
            here = self._families.get(args.get("commandBuffer", 0), VK_QUEUE_FAMILY_IGNORED)
            changed: dict[str, Any] = on_device(args, self.mapping, here, FOREIGN in self.device.lacking)
            return changed
        return args

    def make(self, prepared: PreparedCall) -> None:
        """Makes a call, and keeps the handles that it returns. UserError names the block when it fails."""
        call, encoded = prepared.call, prepared.encoded
        result = prepared.function(*encoded.arguments)
        if call.name == DESCRIPTOR:
            self.handles.addresses.add_descriptor(call.args["pDescriptor"], bytes(encoded.arguments[-1]))
        elif call.name == PLACE and encoded.outputs["pOffset"][0] != call.args["pOffset"]:
            raise UserError(f"block {call.index}: {self.device.target.name} has descriptors at other places in memory")
        elif main_name(call.name) == "vkGetBufferDeviceAddress":
            buffer = self.resources.buffers.get(call.args["pInfo"]["buffer"])
            if buffer is not None and call.result:
                self.handles.addresses.add(call.result, buffer.size, int(result))
        elif isinstance(result, int) and result < 0:
            self.device.check(result, f"block {call.index}: {call.name}")
        self.skipped |= prepared.encoder.skipped
        if encoded.outputs:
            self._keep(call, encoded.outputs)

    def _makes_queue_work(self, name: str) -> bool:
        """Whether all that a call makes is of `QUEUE_WORK`."""
        made = self._makes(name) if name in COMMANDS else set()
        return bool(made) and made <= QUEUE_WORK

    def _makes(self, name: str) -> set[str]:
        """The handle types that a call returns."""
        return {
            parameter.type
            for parameter in parameters(name)
            if parameter.kind == "handle" and parameter.pointer and not parameter.const
        }

    def _keep(self, call: Call, outputs: dict[str, Any]) -> None:
        """Takes note of the handles that a call made."""
        for parameter in parameters(call.name):
            if parameter.kind != "handle" or parameter.name not in outputs:
                continue
            value = call.args.get(parameter.name)
            for index, identity in enumerate(value if isinstance(value, list) else [value]):
                if not identity:
                    continue
                raw = self._address(outputs[parameter.name][index])
                self.handles.add(identity, parameter.type, raw)
                if parameter.type not in WITH_POOLS and "vkDestroy" + parameter.type[2:] in COMMANDS:
                    self._destroys.append((parameter.type, raw))

    def close(self) -> None:
        """Destroys everything that was made, last first; nothing may be pending."""
        ffi = self.device.target.ffi
        for kind, raw in reversed(self._destroys):
            assert kind in HANDLES
            self.device.function("vkDestroy" + kind[2:])(self.device.handle, ffi.cast(kind, raw), ffi.NULL)
        self._destroys.clear()

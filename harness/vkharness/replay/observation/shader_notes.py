"""The notes that instrumented shaders make on a device: the buffer for them, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.findings import UserError
from vkharness.replay.objects.allocations import DIRECT, choose_type
from vkharness.replay.objects.target import ReplayDevice, ReplayTarget
from vkharness.replay.observation.shader_bindings import Bound, Target
from vkharness.shader.accesses import READ, READ_MODIFY_WRITE, WRITE
from vkharness.shader.instrument import ANYWHERE, BYTES, HEADER, WORDS, AccessSite, Instrumented, instrument
from vkharness.shader.spirv import SpirvError
from vkharness.spans import Span, merge
from vkharness.spec.enums import VkBufferUsage, VkMemoryAllocate, VkStructureType
from vkharness.spec.shapes import new_struct
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import links, rebuilt
from vkharness.trace.observations import Spans

CAPACITY = 1 << 22
"""The number of words of notes of one command."""
STORES = ("vertexPipelineStoresAndAtomics", "fragmentStoresAndAtomics")
"""Features of VkPhysicalDeviceFeatures without which graphics stages cannot make notes."""
ADDRESS_SETTERS = (
    VkStructureType.PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
    VkStructureType.PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
)
MOST_TEXELS = 1 << 16
"""The most texels of one descriptor that are told apart."""


def with_features(blocks: list[Block]) -> list[Block]:
    """The trace with a device that can run instrumented shaders."""
    return [_device(each) if isinstance(each, Call) and each.name == "vkCreateDevice" else each for each in blocks]


def _device(call: Call) -> Call:
    if call.unread:
        return call
    info = dict(call.args["pCreateInfo"])
    if not any(each.get("sType") in ADDRESS_SETTERS for each in links(info)):
        added = {"bufferDeviceAddressCaptureReplay": 0, "bufferDeviceAddressMultiDevice": 0}
        info["pNext"] = {"sType": ADDRESS_SETTERS[1], "pNext": info.get("pNext"), "bufferDeviceAddress": 1, **added}

    def change(link: dict[str, Any]) -> dict[str, Any]:
        if link.get("sType") in ADDRESS_SETTERS:
            return {**link, "bufferDeviceAddress": 1}
        if isinstance(link.get("features"), dict):
            return {**link, "features": {**link["features"], **dict.fromkeys(STORES, 1)}}
        return link

    info["pNext"] = rebuilt(info, change)
    if info.get("pEnabledFeatures") is not None:
        info["pEnabledFeatures"] = {**info["pEnabledFeatures"], **dict.fromkeys(STORES, 1)}
    return replace(call, args={**call.args, "pCreateInfo": info})


def why_not(target: ReplayTarget) -> str:
    """Why shaders cannot be instrumented on a driver; empty when they can."""
    ffi = target.ffi
    address = new_struct(ffi, "VkPhysicalDeviceBufferDeviceAddressFeatures")
    features = new_struct(ffi, "VkPhysicalDeviceFeatures2", pNext=ffi.cast("void *", address))
    target.function("vkGetPhysicalDeviceFeatures2")(target.physical, features)
    missing = [name for name in STORES if not getattr(features.features, name)]
    missing += ["bufferDeviceAddress"] if not address.bufferDeviceAddress else []
    return f"{target.name} lacks {', '.join(missing)}" if missing else ""


@dataclass(slots=True)
class Noted:
    """Accesses that the shaders of one piece noted. `reason` says why these are not all; it is empty when they are."""

    reads: Spans = field(default_factory=dict)
    writes: Spans = field(default_factory=dict)
    reason: str = ""


class ShaderNotes:
    """The buffer of the notes, and the modules that make them."""

    def __init__(self, device: ReplayDevice) -> None:
        """Raises `UserError` when the device cannot have such a buffer."""
        self._device = device
        self._ffi = device.target.ffi
        self._modules: dict[bytes, Instrumented | str] = {}
        """By the code of the trace: what it became, or why it stays as it is."""
        self._sites: list[tuple[bytes, AccessSite]] = []
        self._buffer, self._memory, self._words = self._create()
        info = new_struct(self._ffi, "VkBufferDeviceAddressInfo", buffer=self._buffer)
        self._address = int(device.function("vkGetBufferDeviceAddress")(device.handle, info))

    def _create(self) -> tuple[Any, Any, npt.NDArray[np.uint32]]:
        ffi, device, size = self._ffi, self._device, HEADER + 4 * CAPACITY
        usage = VkBufferUsage.STORAGE_BUFFER | VkBufferUsage.SHADER_DEVICE_ADDRESS
        info, out = new_struct(ffi, "VkBufferCreateInfo", size=size, usage=usage), ffi.new("VkBuffer *")
        device.check(device.function("vkCreateBuffer")(device.handle, info, ffi.NULL, out), "vkCreateBuffer (notes)")
        needs = ffi.new("VkMemoryRequirements *")
        device.function("vkGetBufferMemoryRequirements")(device.handle, out[0], needs)
        index = choose_type(device.target.memory_types, int(needs.memoryTypeBits), True)
        if device.target.memory_types[index].flags & DIRECT != DIRECT:
            raise UserError(f"{device.target.name} has no host-visible coherent memory")
        flags = new_struct(ffi, "VkMemoryAllocateFlagsInfo", flags=VkMemoryAllocate.DEVICE_ADDRESS)
        made = new_struct(ffi, "VkMemoryAllocateInfo", pNext=flags, allocationSize=needs.size, memoryTypeIndex=index)
        memory, place = ffi.new("VkDeviceMemory *"), ffi.new("void **")
        result = device.function("vkAllocateMemory")(device.handle, made, ffi.NULL, memory)
        device.check(result, "vkAllocateMemory (notes)")
        device.check(device.function("vkBindBufferMemory")(device.handle, out[0], memory[0], 0), "vkBindBufferMemory")
        result = device.function("vkMapMemory")(device.handle, memory[0], 0, needs.size, 0, place)
        device.check(result, "vkMapMemory (notes)")
        return out[0], memory[0], np.frombuffer(ffi.buffer(place[0], size), np.uint32)

    def close(self) -> None:
        """Destroys the buffer."""
        self._words = np.zeros(0, np.uint32)
        self._device.function("vkDestroyBuffer")(self._device.handle, self._buffer, self._ffi.NULL)
        self._device.function("vkFreeMemory")(self._device.handle, self._memory, self._ffi.NULL)

    def instrumented(self, call: Call) -> Call:
        """A vkCreateShaderModule, with a module that makes notes where it can be followed."""
        if call.unread:
            return call  # whoever executes it says why it cannot be replayed
        info = call.args["pCreateInfo"]
        code = info["pCode"]
        if code not in self._modules:
            try:
                made = instrument(code, self._address, CAPACITY, len(self._sites))
                self._modules[code] = made
                self._sites += [(code, site) for site in made.sites]
            except SpirvError as error:
                self._modules[code] = str(error)
        held = self._modules[code]
        if isinstance(held, str):
            return call
        changed = {**info, "pCode": held.code, "codeSize": len(held.code)}
        return replace(call, args={**call.args, "pCreateInfo": changed})

    def clear(self) -> None:
        """Forgets all notes. The device must be idle."""
        self._words[0] = 0

    def read(self, commands: Iterable[Bound]) -> Noted:
        """Reads the accesses that the shaders of these commands noted since `clear`. The device must be idle."""
        found, several = Noted(), list(commands)
        reasons = [each.reason for each in several if each.reason]
        for each in several:
            for stage in each.stages:
                held = self._modules.get(stage.code, "a module that is not made by vkCreateShaderModule")
                reasons += [held] if isinstance(held, str) else []
        count = int(self._words[0])
        if count > CAPACITY - WORDS:
            reasons.append("there are more notes than the buffer has room for")
        found.reason = "; ".join(dict.fromkeys(reasons))
        first = HEADER // 4
        rows = self._words[first : first + min(count, CAPACITY) // WORDS * WORDS].reshape(-1, WORDS)
        reads: dict[int, list[Span]] = {}
        writes: dict[int, list[Span]] = {}
        for number in np.unique(rows[:, 0]):
            if number < len(self._sites):
                code, site = self._sites[int(number)]
                held_rows = np.unique(rows[rows[:, 0] == number][:, 1:], axis=0)
                targets = [each.targets for each in several if any(code == stage.code for stage in each.stages)]
                for resource, spans in _meaning(site, held_rows, targets):
                    for wanted, kept in ((READ, reads), (WRITE, writes)):
                        if site.flags & (wanted | READ_MODIFY_WRITE):
                            kept.setdefault(resource, []).extend(spans)
        found.reads = {resource: tuple(merge(spans)) for resource, spans in reads.items()}
        found.writes = {resource: tuple(merge(spans)) for resource, spans in writes.items()}
        return found


def _meaning(
    site: AccessSite, rows: npt.NDArray[np.uint32], commands: list[dict[tuple[int, int, int], Target]]
) -> Iterable[tuple[int, list[Span]]]:
    """The addresses of the notes of one instruction, through each command that may have made them."""
    for element in np.unique(rows[:, 0]):
        words = rows[rows[:, 0] == element][:, 1:].astype(np.int64)
        place = (site.set, site.binding, int(element))
        for target in {id(each[place]): each[place] for each in commands if place in each}.values():
            if site.form == ANYWHERE or (site.form == BYTES) != target.is_block or len(words) > MOST_TEXELS:
                yield target.resource, list(target.spans)
            elif site.form == BYTES:
                begin, end = target.spans[0]
                places = np.unique(words[:, 0]) + begin
                yield target.resource, [(int(at), min(int(at) + site.size, end)) for at in places if at < end]
            else:
                texels = (target.texel((int(x), int(y), int(z))) for x, y, z in words)
                yield target.resource, merge([span for each in texels for span in each])

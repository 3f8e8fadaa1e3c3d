"""Buffers, images and everything else that is made before it is used, as calls of the rig."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from vkharness.findings import UserError
from vkharness.generated_text import python_string
from vkharness.reproduction.c_structs import OF_UNIONS, c_call
from vkharness.reproduction.rig_pipelines import SimplePipelines
from vkharness.reproduction.rig_sparse import SparseWriter, is_sparse
from vkharness.reproduction.rig_swapchains import SwapchainWriter
from vkharness.reproduction.script import DeviceAddress, Script, function, named, word
from vkharness.shader.library import load, names
from vkharness.spec.enums import VkDescriptorType
from vkharness.spec.shapes import main_name, signature
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.first_bytes import first_byte
from vkharness.trace.templates import plain

OF_THE_RIG = frozenset(
    {
        "vkCreateInstance",
        "vkEnumeratePhysicalDevices",
        "vkCreateDescriptorUpdateTemplate",
        "vkCreateDevice",
        "vkCreateCommandPool",
        "vkCreatePipelineCache",
    }
    | {"vkGetDeviceQueue", "vkGetDeviceQueue2", "vkAllocateMemory", "vkAllocateCommandBuffers", "vkMapMemory"}
    | {"vkUnmapMemory", "vkBindBufferMemory", "vkBindBufferMemory2", "vkBindImageMemory", "vkBindImageMemory2"}
    | {"vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges"}
)
"""Calls that the rig makes by itself."""
STORED = (VkDescriptorType.STORAGE_BUFFER, VkDescriptorType.STORAGE_BUFFER_DYNAMIC)
_PREFIX = "vkCreate"
MOST_FILLED = 1 << 16
"""Bytes of a buffer up to which it gets contents of its own."""
MOST_DRAWS = 256
"""The most draws of one indirect command that get parameters."""
_ONES = {"vkCmdDispatchIndirect": 3, "vkCmdDrawIndirect": 2, "vkCmdDrawIndexedIndirect": 2}
"""How many words of the parameters of an indirect command are one: its workgroups, or its vertices and instances."""


class ObjectWriter:
    """Writes what makes the objects of a stream, in its order."""

    def __init__(self, script: Script, blocks: Sequence[Block], shaders: dict[str, bytes], stem: str) -> None:
        self.script = script
        self.shaders, self.stem = shaders, stem
        self.pipelines = SimplePipelines(script, blocks)
        self.swapchains = SwapchainWriter(script, blocks)
        self._bound: dict[int, tuple[int, int]] = {}
        """Buffers and images to their memory and offset."""
        self._buffers: dict[int, int] = {}
        """Buffers to their sizes."""
        self._sizes: dict[int, int] = {}
        self.sparse = SparseWriter(script, self._sizes)
        self._read: set[int] = set()
        """Buffers that copies and shaders read: other bytes in each make a wrong read visible."""
        self._parameters: dict[int, dict[int, int]] = defaultdict(dict)
        """Buffers to the words at offsets in them with which an indirect command runs."""
        self._written: set[int] = set()
        """Buffers that the stream writes, or may write."""
        for block in blocks:
            if isinstance(block, Call):
                self._note(block)
        by_host = {block.memory for block in blocks if isinstance(block, HostWrite)}
        self._written |= {each for each, (memory, _) in self._bound.items() if memory in by_host}
        self._shared = {memory for memory, count in Counter(m for m, _ in self._bound.values()).items() if count > 1}

    def _note(self, call: Call) -> None:
        args = call.args
        self._note_parameters(call)
        if call.name.startswith("vkCmd"):
            several = [args, *(each for each in args.values() if isinstance(each, dict))]
            self._read.update(each["srcBuffer"] for each in several if "srcBuffer" in each)
            self._written.update(each["dstBuffer"] for each in several if "dstBuffer" in each)
        for write in args.get("pDescriptorWrites") or () if call.name.startswith("vkUpdateDescriptorSets") else ():
            held = [each["buffer"] for each in write["pBufferInfo"] or ()]
            self._read.update(held)
            self._written.update(held if write["descriptorType"] in STORED else ())
        if call.name.startswith(("vkBindBufferMemory", "vkBindImageMemory")):
            for each in (args["pBindInfos"] or ()) if "pBindInfos" in args else [args]:
                self._bound[each.get("buffer") or each.get("image", 0)] = (each["memory"], each["memoryOffset"])
        elif call.name == "vkAllocateMemory":
            self._sizes[args["pMemory"]] = args["pAllocateInfo"]["allocationSize"]
        elif call.name == "vkCreateBuffer":
            self._buffers[args["pBuffer"]] = args["pCreateInfo"]["size"]
        elif main_name(call.name) == "vkGetBufferDeviceAddress" and call.result:
            buffer = args["pInfo"]["buffer"]
            self.script.addresses.append(DeviceAddress(call.result, self._buffers.get(buffer, 0), buffer))
        elif call.name == "vkGetAccelerationStructureDeviceAddressKHR" and call.result:
            structure = args["pInfo"]["accelerationStructure"]
            self.script.addresses.append(DeviceAddress(call.result, 1, structure, of_structure=True))

    def _note_parameters(self, call: Call) -> None:
        """Notes where an indirect command reads its parameters: it runs once where nothing writes them."""
        name, args = main_name(call.name), call.args
        ones = next((count for start, count in _ONES.items() if name.startswith(start)), 0)
        count = args.get("drawCount", args.get("maxDrawCount", 1))
        for draw in range(min(count, MOST_DRAWS) if ones and "offset" in args else 0):
            at = args["offset"] + draw * args.get("stride", 0)
            self._parameters[args["buffer"]].update(dict.fromkeys(range(at, at + 4 * ones, 4), 1))
        if "countBuffer" in args:
            self._parameters[args["countBuffer"]][args["countBufferOffset"]] = 1

    def write(self, block: Block) -> bool:
        """Writes one block if it makes an object or speaks of one; whether it did, or the rig does it by itself."""
        if isinstance(block, HostWrite | HostRead):
            return self._host(block)
        block = plain(block)
        made = self._object(block)
        self.pipelines.write_sets(block)
        return made

    def _object(self, block: Call) -> bool:
        name = main_name(block.name)
        if self.swapchains.write(block):
            return True
        if self.pipelines.is_part(block):
            return True
        if name == "vkCreateBuffer":
            self._buffer(block.args)
        elif name == "vkCreateImage":
            self._image(block.args)
        elif name == "vkCreateComputePipelines" and self.pipelines.by_pipeline:
            self.pipelines.write(block.args["pPipelines"][0])
        elif name == "vkAllocateDescriptorSets":
            self._descriptor_sets(block)
        elif name == "vkUpdateDescriptorSets":
            self.script.line(f"{function(block.name)}({', '.join(self.script.arguments(block))})")
        elif block.name in OF_UNIONS:
            self.script.line(c_call(self.script, block, ["rig.device"]))
        elif name.startswith(_PREFIX) and name not in OF_THE_RIG:
            self._create(block)
        else:
            return name in OF_THE_RIG or name.startswith(("vkGet", "vkDestroy", "vkFree", "vkSetDebug", "vkEnumerate"))
        return True

    def _memory(self, resource: int) -> tuple[str, int]:
        """The variable of a memory object that several resources share, and the offset; '' for one of its own."""
        memory, offset = self._bound.get(resource, (0, 0))
        if memory not in self._shared:
            return "", 0
        if memory not in self.script.names:
            variable = self.script.name(memory, "VkDeviceMemory")
            self.script.line(f"{variable} = rig.memory({self._sizes.get(memory, 1 << 16)})")
        return self.script.names[memory], offset

    def _buffer(self, args: dict[str, Any]) -> None:
        memory, offset = self._memory(args["pBuffer"])
        more = f", {memory}, {offset}" if memory else ""
        variable, size = self.script.name(args["pBuffer"], "VkBuffer"), args["pCreateInfo"]["size"]
        first = first_byte(args["pBuffer"], args["pCreateInfo"]["usage"])
        held = self._parameters.get(args["pBuffer"])
        if is_sparse(args["pCreateInfo"]):
            more += f", flags={named('VkBufferCreateFlags', args['pCreateInfo']['flags'])}"
        elif held and args["pBuffer"] not in self._written:
            last = max(held)
            filled = b"".join(held.get(at, 0).to_bytes(4, "little") for at in range(0, last + 4, 4))
            more += f", data={filled!r}" if last < min(size, MOST_FILLED) else ""
        elif args["pBuffer"] in self._read and first and size <= MOST_FILLED:
            more += f", data=bytes([{first}]) * {size}"
        more += self._exclusive(args["pCreateInfo"])
        self.script.line(f"{variable} = rig.buffer({size}{more})")

    def _exclusive(self, info: dict[str, Any]) -> str:
        """The argument of what one queue family owns at a time, where there are several."""
        return ", exclusive=True" if not info["sharingMode"] and len(self.script.families) > 1 else ""

    def _image(self, args: dict[str, Any]) -> None:
        info, script = args["pCreateInfo"], self.script
        memory, offset = self._memory(args["pImage"])
        if offset:
            raise UserError("no scenario can be written: an image is not at the beginning of memory that it shares")
        extent = tuple(info["extent"][name] for name in ("width", "height", "depth"))
        given = [python_string(word("VkFormat", info["format"], "")), repr(extent)]
        for name, member, usual in (("mips", "mipLevels", 1), ("layers", "arrayLayers", 1), ("samples", "samples", 1)):
            given += [f"{name}={info[member]}"] if info[member] != usual else []
        given.append(f"usage={named('VkImageUsageFlags', info['usage'])}")
        given += [f"flags={named('VkImageCreateFlags', info['flags'])}"] if info["flags"] else []
        given += [f"memory={memory}"] if memory else []
        script.line(f"{script.name(args['pImage'], 'VkImage')} = rig.image({', '.join(given)}{self._exclusive(info)})")

    def _descriptor_sets(self, call: Call) -> None:
        script = self.script
        info = script.struct("VkDescriptorSetAllocateInfo", call.args["pAllocateInfo"])
        several = [script.name(each, "VkDescriptorSet") for each in call.args["pDescriptorSets"]]
        script.line(f"{', '.join(several)}, = vk.vkAllocateDescriptorSets(rig.device, {info})")

    def _create(self, call: Call) -> None:
        """Any other vkCreate*, with the structs as they are."""
        script, listed = self.script, signature(call.name)
        assert listed is not None
        output = listed.params[-1]
        made = call.args[output.name]
        made = made if isinstance(made, list) else [made]
        kind = output.type
        if kind == "VkShaderModule":
            self._shader(call)
            return
        given = [script.value(row, call.args[row.name]) for row in listed.params[:-1]]
        for identity in made:
            script.name(identity, kind)
        target = ", ".join(script.names[each] for each in made)
        name = main_name(call.name)
        several = isinstance(call.args[output.name], list)
        script.line(f"{target}{',' if several else ''} = {function(name)}({', '.join(given)})")
        for identity in made:
            script.line(f'rig.own("{kind[2:]}", {script.names[identity]})')

    def _shader(self, call: Call) -> None:
        """A shader of the library by its name; any other from a file beside the scenario."""
        code = call.args["pCreateInfo"]["pCode"]
        code = code if isinstance(code, bytes) else b"".join(each.to_bytes(4, "little") for each in code or ())
        if not code:
            raise UserError(
                f"no scenario can be written: the trace has no code of shader module {call.args['pShaderModule']}"
            )
        variable = self.script.name(call.args["pShaderModule"], "VkShaderModule")
        known = next((name for name in names() if load(name) == code), None)
        if known is not None:
            self.script.line(f"{variable} = rig.shader_module({python_string(known)})")
            return
        file = f"{self.stem}.{variable}.spv"
        self.shaders[file] = code
        read = self.script.variable(f"Path(__file__).with_name({python_string(file)}).read_bytes()", "code")
        info = self.script.variable(f"vk.VkShaderModuleCreateInfo(codeSize=len({read}), pCode={read})", "module_info")
        self.script.line(f'{variable} = rig.own("ShaderModule", vk.vkCreateShaderModule(rig.device, {info}, None))')

    def _host(self, block: HostWrite | HostRead) -> bool:
        """A write or read of mapped memory through a buffer there. Contents of images are left out."""
        size = len(block.data) if isinstance(block, HostWrite) else block.size
        for buffer, (memory, offset) in self._bound.items():
            if memory == block.memory and buffer in self._buffers and buffer in self.script.names:
                begin = block.offset - offset
                held = min(size, self._buffers[buffer] - begin)
                if begin >= 0 and held > 0:
                    name = self.script.names[buffer]
                    if isinstance(block, HostWrite):
                        self.script.line(f"rig.host_write({name}, {self.script.data(block.data[:held])}, {begin})")
                    else:
                        self.script.line(f"rig.host_read({name}, {begin}, {held})")
        return True

"""Writes the stream of a process as the mirror layer does, from calls in normal form."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from vkharness.live.records import GOES_ON, HEAD, MAGIC, VERSION, Kind
from vkharness.record import struct_layout as layout
from vkharness.record.decode import left_out
from vkharness.spec._generated import HANDLES, STRUCTS, STYPES, UNIONS
from vkharness.spec.command_classes import DESTROYERS, HOST_PUBLISHES, IMPORTS, QUEUE_WORK
from vkharness.spec.shapes import Member, main_name, members, resolve, signature
from vkharness.trace.calls import PAYLOAD, SEPARATE_ASPECTS, Block, Call, HostWrite
from vkharness.trace.named_objects import OBJECT_TYPES
from vkharness.trace.shared_payloads import memory_import

ENTERS = QUEUE_WORK | HOST_PUBLISHES | {"vkResetDescriptorPool"}
NO_MEMORY = 1


def raw_handle(id: int) -> int:
    """The handle of an object, by its id."""
    return id << 8


def fd_of(name: str, args: dict[str, Any]) -> int:
    """The descriptor that a call imports or exports."""
    if "pFd" in args:
        return int(args["pFd"])
    given = memory_import(Call(0, name, args)) if name == "vkAllocateMemory" else None
    fd = given.fd if given is not None else args[IMPORTS[main_name(name)]]["fd"]
    assert fd is not None
    return int(fd)


class CallRecord:
    """The payload of a call's record: arguments, and behind them what pointers lead to."""

    def __init__(self, name: str, args: dict[str, Any], result: int | None) -> None:
        shape = signature(name)
        assert shape is not None, name
        self.data = bytearray(struct.pack("<QII", (result or 0) & (1 << 64) - 1, len(shape.params), 0))
        self.data += bytes(8 * len(shape.params))
        for at, param in enumerate(shape.params):
            value = args.get(param.name)
            is_pointer = bool(param.pointer or param.dims)
            bits = self._pointer(param, value) if is_pointer else self._scalar(param, value)
            self.data[16 + 8 * at : 24 + 8 * at] = bits[:8].ljust(8, b"\0")

    def _add(self, data: bytes) -> int:
        """Puts bytes behind the others; their place in the record, whose head has 24 bytes."""
        self.data += bytes(-len(self.data) % 8)
        at = 24 + len(self.data)
        self.data += data
        return at

    def _scalar(self, member: Member, value: Any) -> bytes:
        name = resolve(member.type)
        if name in HANDLES:
            return struct.pack("<Q", raw_handle(value or 0))
        code = layout.scalar_code(name)
        return bytes(8) if code is None else struct.pack("<" + code, value or 0)

    def _pointer(self, member: Member, value: Any) -> bytes:
        return struct.pack("<Q", self._place(member, value))

    def _place(self, member: Member, value: Any, *, inner: bool = False) -> int:
        name = resolve(member.type)
        if value is None:
            return 0
        if isinstance(value, (bytes, str)):
            return self._add(value.encode() + b"\0" if isinstance(value, str) else value)
        if member.name == "pNext":
            return self._chain(value)
        if isinstance(value, dict):
            return self._add(self._struct(name, value))
        if not isinstance(value, list):
            return self._add(struct.pack("<Q", value) if name == "void" else self._scalar(member, value))
        if member.pointer == 2 and not inner:
            places = [self._place(member, each, inner=isinstance(each, list)) for each in value]
            return self._add(struct.pack(f"<{len(places)}Q", *places))
        if name in STRUCTS:
            return self._add(b"".join([self._struct(name, each) for each in value]))
        return self._add(b"".join(self._scalar(member, each) for each in value))

    def _chain(self, value: dict[str, Any]) -> int:
        name = STYPES.get(value["sType"])
        if name is not None:
            return self._add(self._struct(name, value))
        following = 0 if value["pNext"] is None else self._chain(value["pNext"])
        return self._add(struct.pack("<i4xQ", value["sType"], following))

    def _struct(self, name: str, value: dict[str, Any]) -> bytes:
        made = bytearray(layout.size_of(name))
        fields = layout.fields_of(name)
        for member in members(name) or ():
            field, given = fields[member.name], value.get(member.name)
            if given is None or (left_out(name, member) and name not in UNIONS):
                continue
            if (name, member.name) in OBJECT_TYPES:
                data = struct.pack("<Q", raw_handle(given))
            elif member.pointer:
                data = self._pointer(member, given)
            else:
                data = self._value(member, given)
            if field.bits:
                (whole,) = struct.unpack_from("<I", made, field.offset)
                data = struct.pack("<I", whole | given << field.shift)
            made[field.offset : field.offset + len(data)] = data
        return bytes(made)

    def _value(self, member: Member, given: Any) -> bytes:
        name = resolve(member.type)
        if isinstance(given, list):
            return b"".join(self._value(member, each) for each in given)
        if isinstance(given, str):
            return given.encode()
        return self._struct(name, given) if name in STRUCTS else self._scalar(member, given)


class MirrorStream:
    """The folder of a process. Small segments, so that a short stream has several. From the start the process says that
    it ended, unless it is killed later: what is judged afterwards is whole."""

    def __init__(self, folder: Path, process: int = 0, segment: int = 1 << 11, *, killed: bool = False) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._process, self._size = process or os.getpid(), segment
        self._numbers: dict[str, int] = {}
        self._serial = 0
        self.segments = 0
        self._at = 0
        self._open(segment)
        page = struct.pack("<IIII", 0x4D484B56, 1, self._process, 0)
        page = page.ljust(44, b"\0") + struct.pack("<I", not killed)
        (folder / "control").write_bytes(page.ljust(4096, b"\0"))
        if not (folder / "bell").exists():
            os.mkfifo(folder / "bell")

    def record(self, kind: int, payload: bytes, command: int = 0, thread: int = 0, stack: int = 0) -> int:
        """Writes a record; its serial number."""
        payload += bytes(-len(payload) % 8)
        size = 24 + len(payload)
        if self._at + size + 8 > self._length:
            self._write(self._at, struct.pack("<I", GOES_ON))
            self._open(max(self._size, HEAD.size + size + 64))
        self._serial += 1
        self._write(self._at + 4, struct.pack("<HHIIQ", kind, command, thread, stack, self._serial) + payload)
        self._write(self._at, struct.pack("<I", size))
        self._at += size
        return self._serial

    def call(self, name: str, args: dict[str, Any], result: int | None = None, thread: int = 0, stack: int = 0) -> None:
        """Writes a call that was made; where its beginning counts, with a record for that."""
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers) + 1
            self.record(Kind.COMMAND, name.encode() + b"\0", self._numbers[name])
        if SEPARATE_ASPECTS in args:
            told = raw_handle(args["physicalDevice"]), args[SEPARATE_ASPECTS]
            self.record(Kind.PROPERTY, struct.pack("<QQ", *told), thread=thread)
        if PAYLOAD in args:
            self.record(
                Kind.FILE, struct.pack("<QQQ", fd_of(name, args), *map(int, args[PAYLOAD].split(":"))), thread=thread
            )
        shape = signature(name)
        assert shape is not None
        enters = name.startswith(DESTROYERS) or main_name(name) in ENTERS
        if not enters or shape.returns == "void":
            self.record(Kind.CALL, bytes(CallRecord(name, args, result).data), self._numbers[name], thread, stack)
            return
        begun = self.enter(name, args, thread, stack)
        self.returned(begun, result or 0, thread)

    def enter(self, name: str, args: dict[str, Any], thread: int = 0, stack: int = 0) -> int:
        """Writes that a call begins; its serial number."""
        return self.record(Kind.ENTER, bytes(CallRecord(name, args, 0).data), self._numbers[name], thread, stack)

    def returned(self, begun: int, result: int, thread: int = 0) -> None:
        """Writes that it returned."""
        self.record(Kind.RETURN, struct.pack("<QQ", begun, result & (1 << 64) - 1), 0, thread)

    def data(self, memory: int, offset: int, data: bytes) -> None:
        """Writes what memory holds now."""
        self.record(Kind.DATA, struct.pack("<QQQQ", 0, raw_handle(memory), offset, len(data)) + data)

    def block(self, block: Block) -> None:
        """Writes a block of a trace."""
        if isinstance(block, Call):
            self.call(block.name, block.args, block.result, block.thread)
        elif isinstance(block, HostWrite):
            self.data(block.memory, block.offset, block.data)

    def _open(self, size: int) -> None:
        self._path = self.folder / f"segment-{self.segments:08d}"
        self._path.write_bytes(HEAD.pack(MAGIC, VERSION, self.segments, size, self._process).ljust(size, b"\0"))
        self._length, self._at = size, HEAD.size
        self.segments += 1

    def _write(self, at: int, data: bytes) -> None:
        with self._path.open("r+b") as file:
            file.seek(at)
            file.write(data)


def buffer_calls(stream: MirrorStream, size: int = 4096) -> None:
    """A device, a queue (3), memory (4) that is mapped, two buffers (5, 6) on it, a pool (7), a command buffer (8)."""
    types = {
        "memoryTypeCount": 1,
        "memoryTypes": [{"propertyFlags": 6, "heapIndex": 0}] + 31 * [{"propertyFlags": 0, "heapIndex": 0}],
    }
    stream.call("vkGetPhysicalDeviceMemoryProperties", {"physicalDevice": 1, "pMemoryProperties": types})
    info = {"sType": 3, "pNext": None, "flags": 0, "queueCreateInfoCount": 0, "pQueueCreateInfos": None}
    stream.call("vkCreateDevice", {"physicalDevice": 1, "pCreateInfo": info, "pDevice": 2}, 0)
    stream.call("vkGetDeviceQueue", {"device": 2, "queueFamilyIndex": 0, "queueIndex": 0, "pQueue": 3})
    info = {"sType": 5, "pNext": None, "allocationSize": 2 * size, "memoryTypeIndex": 0}
    stream.call("vkAllocateMemory", {"device": 2, "pAllocateInfo": info, "pMemory": 4}, 0)
    for at, buffer in enumerate((5, 6)):
        info = {"sType": 12, "pNext": None, "flags": 0, "size": size, "usage": 3, "sharingMode": 0}
        stream.call("vkCreateBuffer", {"device": 2, "pCreateInfo": info, "pBuffer": buffer}, 0)
        stream.call("vkBindBufferMemory", {"device": 2, "buffer": buffer, "memory": 4, "memoryOffset": at * size}, 0)
    mapped = {"device": 2, "memory": 4, "offset": 0, "size": (1 << 64) - 1, "flags": 0, "ppData": 0x7000}
    stream.call("vkMapMemory", mapped, 0)
    info = {"sType": 39, "pNext": None, "flags": 0, "queueFamilyIndex": 0}
    stream.call("vkCreateCommandPool", {"device": 2, "pCreateInfo": info, "pCommandPool": 7}, 0)
    info = {"sType": 40, "pNext": None, "commandPool": 7, "level": 0, "commandBufferCount": 1}
    stream.call("vkAllocateCommandBuffers", {"device": 2, "pAllocateInfo": info, "pCommandBuffers": [8]}, 0)


def copy_calls(stream: MirrorStream, size: int = 4096) -> None:
    """Records a copy from the first buffer to the second one."""
    info = {"sType": 42, "pNext": None, "flags": 0, "pInheritanceInfo": None}
    stream.call("vkBeginCommandBuffer", {"commandBuffer": 8, "pBeginInfo": info}, 0)
    region = {"srcOffset": 0, "dstOffset": 0, "size": size}
    copy = {"commandBuffer": 8, "srcBuffer": 5, "dstBuffer": 6, "regionCount": 1, "pRegions": [region]}
    stream.call("vkCmdCopyBuffer", copy)
    stream.call("vkEndCommandBuffer", {"commandBuffer": 8}, 0)


def submit_args(fence: int = 0) -> dict[str, Any]:
    batch = {"sType": 4, "pNext": None, "waitSemaphoreCount": 0, "commandBufferCount": 1, "pCommandBuffers": [8]}
    return {"queue": 3, "submitCount": 1, "pSubmits": [batch], "fence": fence}

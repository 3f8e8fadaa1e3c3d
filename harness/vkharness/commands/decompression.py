"""Decompression of memory (VK_EXT_memory_decompression; specification: "Memory Decompression")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Effect

READ = ACCESS_KIND["SYNC_MEMORY_DECOMPRESSION_EXT_MEMORY_DECOMPRESSION_READ_EXT"].index
WRITE = ACCESS_KIND["SYNC_MEMORY_DECOMPRESSION_EXT_MEMORY_DECOMPRESSION_WRITE_EXT"].index


@command("vkCmdDecompressMemoryEXT", "vkCmdDecompressMemoryNV")
def decompress(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads compressed bytes and writes the decompressed ones, in a stage of its own."""
    info = args.get("pDecompressMemoryInfoEXT")
    for each in (args["pDecompressMemoryRegions"] if info is None else info["pRegions"]) or ():
        if each["compressedSize"]:
            yield from addressed(objects, READ, each["srcAddress"], each["compressedSize"])
        if each["decompressedSize"]:
            yield from addressed(objects, WRITE, each["dstAddress"], each["decompressedSize"])

"""Sparse bindings as the stream has them, and the memory that they bind.

The rig makes a sparse resource by its flags and binds nothing to it (`rig.buffer`, `rig.image`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.reproduction.script import Script, function
from vkharness.spec.enums import VkImageCreate
from vkharness.trace.calls import Call

BLOCK = 1 << 16
"""Bytes of a sparse block as the rig counts them."""


def is_sparse(info: dict[str, Any]) -> bool:
    """Whether a VkBufferCreateInfo or VkImageCreateInfo is of a sparse resource."""
    return bool(info["flags"] & VkImageCreate.SPARSE_BINDING)  # VkBufferCreateFlags have the same value


class SparseWriter:
    """Writes the vkQueueBindSparse of a stream. `sizes` are the bytes of memory objects, by their numbers."""

    def __init__(self, script: Script, sizes: dict[int, int]) -> None:
        self.script = script
        self._sizes = sizes

    def write(self, call: Call, queue: int) -> None:
        """One call; `queue` is the place of its queue among the rig's. Raises `UserError` for a resource that the
        scenario has not."""
        for resource, memory in _bound(call.args["pBindInfo"] or ()):
            if memory and memory not in self.script.names:
                owner, blocks = self.script.names[resource], -(-self._sizes.get(memory, BLOCK) // BLOCK)
                variable = self.script.name(memory, "VkDeviceMemory")
                self.script.line(f"{variable} = rig.sparse_memory({owner}, {blocks})")
        arguments = self.script.arguments(call, [f"rig.queues[{queue}].handle"])
        self.script.line(f"{function(call.name)}({', '.join(arguments)})")


def _bound(infos: Iterable[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """(resource, memory) of each binding."""
    for info in infos:
        for member, key in (("pBufferBinds", "buffer"), ("pImageOpaqueBinds", "image"), ("pImageBinds", "image")):
            for each in info[member] or ():
                yield from ((each[key], bind["memory"]) for bind in each["pBinds"] or ())

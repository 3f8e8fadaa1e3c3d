"""Memory objects that are imported by what is not a file descriptor: two of them may be the same memory.

Which of them are is not followed (`SharedPayloads` follows file descriptors). So a second one whose handle is that of
another one makes the verdict unknown. Recordings and captures leave most handles out; those count as apart.
Specification: "Device Memory", VkImportMemoryHostPointerInfoEXT and kin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.spans import SpanMap
from vkharness.spec.enums import VkStructureType
from vkharness.trace.chain import links
from vkharness.trace.effects import UnmodelledCall
from vkharness.trace.work_budget import spend

HANDLES = {
    VkStructureType.IMPORT_MEMORY_HOST_POINTER_INFO_EXT: "pHostPointer",
    VkStructureType.IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR: "handle",
    VkStructureType.IMPORT_MEMORY_WIN32_HANDLE_INFO_NV: "handle",
    VkStructureType.IMPORT_MEMORY_ZIRCON_HANDLE_INFO_FUCHSIA: "handle",
    VkStructureType.IMPORT_MEMORY_METAL_HANDLE_INFO_EXT: "handle",
    VkStructureType.IMPORT_METAL_BUFFER_INFO_EXT: "mtlBuffer",
    VkStructureType.IMPORT_ANDROID_HARDWARE_BUFFER_INFO_ANDROID: "buffer",
    VkStructureType.IMPORT_NATIVE_BUFFER_INFO_OHOS: "buffer",
    VkStructureType.IMPORT_SCREEN_BUFFER_INFO_QNX: "buffer",
    VkStructureType.IMPORT_MEMORY_BUFFER_COLLECTION_FUCHSIA: "collection",
}
"""The member of each struct that says what is imported."""
SHARED = UnmodelledCall("memory objects that may be the same memory, imported by what is not a file descriptor")


class Imported(NamedTuple):
    """The source of an imported memory object: a handle, or a range of host memory that begins there."""

    kind: int
    handle: int
    size: int


class ImportedMemory:
    """The memory objects of a trace that were imported so, and that were not freed."""

    def __init__(self) -> None:
        self._live: dict[int, list[Imported]] = {}
        """By memory object."""
        self._handles: Counter[Imported] = Counter()
        """How often each handle is imported."""
        self._host: SpanMap[int] = SpanMap()
        """How often each byte of the host is imported."""

    def allocated(self, memory: int, info: dict[str, Any]) -> Iterator[UnmodelledCall]:
        """Takes note of a VkMemoryAllocateInfo."""
        for link in links(info):
            handle = link.get(HANDLES.get(link["sType"], ""))
            if not isinstance(handle, int) or not handle:
                continue
            is_range = link["sType"] == VkStructureType.IMPORT_MEMORY_HOST_POINTER_INFO_EXT
            made = Imported(link["sType"], handle, info["allocationSize"] if is_range else 1)
            if self._count(made, 1):
                yield SHARED
            self._live.setdefault(memory, []).append(made)

    def freed(self, memory: int) -> None:
        """Forgets a memory object."""
        for each in self._live.pop(memory, ()):
            self._count(each, -1)

    def _count(self, made: Imported, change: int) -> bool:
        """Counts an import, or one less. Whether there were others of the same memory."""
        if made.kind != VkStructureType.IMPORT_MEMORY_HOST_POINTER_INFO_EXT:
            others = self._handles.pop(made, 0)
            if others + change:
                self._handles[made] = others + change
            return others > 0
        met = 0

        def counted(_begin: int, _end: int, times: int | None) -> int | None:
            nonlocal met
            met += times is not None
            return (times or 0) + change or None

        spend(len(self._host.pieces(made.handle, made.handle + made.size)), "imports of the same memory")
        self._host.update(made.handle, made.handle + made.size, counted)
        return met > 0

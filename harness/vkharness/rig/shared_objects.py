"""Objects with one payload: exported by a file descriptor and imported again, as two programs would.

A scenario is one program. It plays both sides, each with objects of its own.
"""

from __future__ import annotations

import os
from typing import Any

from vkharness.rig.buffers_images import TRANSFER_USAGE, BuffersImages
from vkharness.rig.core import COLOR_FORMAT, MemoryPlace, Placer, RigImage
from vkharness.spec.enums import VkExternalMemoryHandleType, VkExternalSemaphoreHandleType, VkImageUsage

SHARES = ("VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd")
"""The extensions that a scenario with shared objects needs."""
SEMAPHORE_FILE = VkExternalSemaphoreHandleType.OPAQUE_FD


class SharedObjects(BuffersImages):
    """Pairs of objects with one payload: the one that is exported, and the one that it is imported to."""

    def shared_semaphore(self) -> tuple[Any, Any]:
        """Two binary semaphores with one payload, which was imported for good."""
        vk = self.vk
        exported = self._exportable_semaphore()
        imported = self.own("Semaphore", vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(), None))
        info = vk.VkImportSemaphoreFdInfoKHR(
            semaphore=imported, flags=0, handleType=SEMAPHORE_FILE, fd=self._semaphore_file(exported)
        )
        self.function("vkImportSemaphoreFdKHR")(self.device, info)
        return exported, imported

    def given_semaphore(self) -> Any:
        """A binary semaphore that was exported. Its file descriptor stays open: nobody imports it."""
        exported = self._exportable_semaphore()
        self.gpu.cleanup.callback(os.close, self._semaphore_file(exported))
        return exported

    def _exportable_semaphore(self) -> Any:
        vk = self.vk
        export = vk.VkExportSemaphoreCreateInfo(handleTypes=SEMAPHORE_FILE)
        return self.own("Semaphore", vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(pNext=export), None))

    def _semaphore_file(self, semaphore: Any) -> int:
        info = self.vk.VkSemaphoreGetFdInfoKHR(semaphore=semaphore, handleType=SEMAPHORE_FILE)
        return int(self.function("vkGetSemaphoreFdKHR")(self.device, info))

    def _alone(self, chain: Any) -> Placer:
        """Gives an image memory of its own with a pNext chain. Some drivers share images in no other way."""

        def placed(image: Any) -> MemoryPlace:
            needs = self.vk.vkGetImageMemoryRequirements(self.device, image)
            dedicated = {"image": image}
            return MemoryPlace(self.memory(needs.size, needs.memoryTypeBits, 0, dedicated=dedicated, chain=chain))

        return placed

    def shared_image(
        self, extent: tuple[int, int, int] = (16, 16, 1), usage: int = TRANSFER_USAGE | VkImageUsage.COLOR_ATTACHMENT
    ) -> tuple[RigImage, RigImage]:
        """Two images that are created alike on one memory, each through a memory object of its own."""
        vk, kind = self.vk, VkExternalMemoryHandleType.OPAQUE_FD
        export = vk.VkExportMemoryAllocateInfo(handleTypes=kind)
        external = vk.VkExternalMemoryImageCreateInfo(handleTypes=kind)
        exported = self.image(
            COLOR_FORMAT, extent, usage=usage, chain=external, placed=self._alone(export), exclusive=True
        )
        info = vk.VkMemoryGetFdInfoKHR(memory=exported.memory, handleType=kind)
        fd = self.function("vkGetMemoryFdKHR")(self.device, info)
        there = vk.VkImportMemoryFdInfoKHR(handleType=kind, fd=fd)
        imported = self.image(
            COLOR_FORMAT, extent, usage=usage, chain=external, placed=self._alone(there), exclusive=True
        )
        return exported, imported

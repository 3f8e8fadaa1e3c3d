"""A device with its queues and memory, through the `vulkan` package alone."""

import vulkan as vk
from short_names import *


class Buffer:
    """A buffer with its memory."""

    def __init__(self, handle, memory, size):
        self.handle, self.memory, self.size, self.mapped = handle, memory, size, None


class Image:
    """An image with its memory and its views."""

    def __init__(self, engine, handle, memory, info):
        self.engine, self.handle, self.memory, self.info = engine, handle, memory, info
        self.aspect = COLOR if info["format"] not in DEEP else DEPTH
        if info["format"] in DEEP[2:]:
            self.aspect |= vk.VK_IMAGE_ASPECT_STENCIL_BIT
        self.width, self.height = info["extent"]
        self.views = {}

    def range(self, mip=0, mips=None, layer=0, layers=None, aspect=None):
        return vk.VkImageSubresourceRange(
            aspect or self.aspect, mip, mips or self.info["mips"] - mip, layer, layers or self.info["layers"] - layer
        )

    def layers(self, mip=0, layer=0, aspect=None):
        return vk.VkImageSubresourceLayers(aspect or (self.aspect & ~vk.VK_IMAGE_ASPECT_STENCIL_BIT), mip, layer, 1)

    def view(self, mip=0, mips=1, layer=0, layers=1, aspect=None, array=False):
        key = (mip, mips, layer, layers, aspect, array)
        if key not in self.views:
            kind = vk.VK_IMAGE_VIEW_TYPE_2D_ARRAY if array else vk.VK_IMAGE_VIEW_TYPE_2D
            info = vk.VkImageViewCreateInfo(
                image=self.handle,
                viewType=kind,
                format=self.info["format"],
                subresourceRange=self.range(mip, mips, layer, layers, aspect),
            )
            self.views[key] = vk.vkCreateImageView(self.engine.device, info, None)
        return self.views[key]


class SmallDevice:
    """Device, queues, memory, pipelines, commands."""

    def __init__(self, sync2=True, families=1, surface=False, coherent=True, count=False):
        self.sync2, self.coherent = sync2, coherent
        names = ["VK_KHR_surface", "VK_EXT_headless_surface"] if surface else []
        app = vk.VkApplicationInfo(pApplicationName="report", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(
            vk.VkInstanceCreateInfo(pApplicationInfo=app, ppEnabledExtensionNames=names), None
        )
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        vk.vkGetPhysicalDeviceQueueFamilyProperties(self.physical)
        has = vk.vkGetPhysicalDeviceFeatures(self.physical)
        queues = [vk.VkDeviceQueueCreateInfo(queueFamilyIndex=f, pQueuePriorities=[1.0]) for f in range(families)]
        f13 = vk.VkPhysicalDeviceVulkan13Features(synchronization2=1, dynamicRendering=1, maintenance4=1)
        f12 = vk.VkPhysicalDeviceVulkan12Features(
            pNext=f13, timelineSemaphore=1, bufferDeviceAddress=1, drawIndirectCount=int(count)
        )
        names = (
            "shaderStorageBufferArrayDynamicIndexing",
            "vertexPipelineStoresAndAtomics",
            "fragmentStoresAndAtomics",
            "multiDrawIndirect",
            "drawIndirectFirstInstance",
        )
        core = vk.VkPhysicalDeviceFeatures(**{n: getattr(has, n) for n in names})
        wanted = vk.VkPhysicalDeviceFeatures2(pNext=f12, features=core)
        extensions = ["VK_KHR_swapchain"] if surface else []
        self.device = vk.vkCreateDevice(
            self.physical,
            vk.VkDeviceCreateInfo(pNext=wanted, pQueueCreateInfos=queues, ppEnabledExtensionNames=extensions),
            None,
        )
        self.queues = [vk.vkGetDeviceQueue(self.device, f, 0) for f in range(families)]
        flags = vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        self.pools = [
            vk.vkCreateCommandPool(self.device, vk.VkCommandPoolCreateInfo(flags=flags, queueFamilyIndex=f), None)
            for f in range(families)
        ]
        kinds = (STORAGE, UNIFORM, SAMPLED, STORED, vk.VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT)
        info = vk.VkDescriptorPoolCreateInfo(maxSets=256, pPoolSizes=[vk.VkDescriptorPoolSize(k, 512) for k in kinds])
        self.descriptors = vk.vkCreateDescriptorPool(self.device, info, None)
        self.sampler = vk.vkCreateSampler(self.device, vk.VkSamplerCreateInfo(maxLod=16.0), None)
        self.kept = []

    # Memory

    def memory(self, need, host, flags=0):
        properties = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        wanted = (6 if self.coherent else 2) if host else 0
        kind = next(
            i
            for i in range(properties.memoryTypeCount)
            if need.memoryTypeBits >> i & 1 and properties.memoryTypes[i].propertyFlags & wanted == wanted
        )
        chain = vk.VkMemoryAllocateFlagsInfo(flags=flags) if flags else None
        return vk.vkAllocateMemory(
            self.device, vk.VkMemoryAllocateInfo(pNext=chain, allocationSize=need.size, memoryTypeIndex=kind), None
        )

    def buffer(self, size=1024, host=False, data=None, address=False):
        usage = 0x1 | 0x2 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100 | (0x20000 if address else 0)
        handle = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
        memory = self.memory(
            vk.vkGetBufferMemoryRequirements(self.device, handle), host or data is not None, 2 if address else 0
        )
        vk.vkBindBufferMemory(self.device, handle, memory, 0)
        made = Buffer(handle, memory, size)
        if host or data is not None:
            made.mapped = vk.vkMapMemory(self.device, memory, 0, size, 0)
        if data is not None:
            made.mapped[0 : len(data)] = data
        if address:
            info = vk.VkBufferDeviceAddressInfo(buffer=handle)
            made.address = int(vk.lib.vkGetBufferDeviceAddress(self.device, vk.ffi.addressof(info)))
        return made

    def image(self, width=16, height=16, format=RGBA, mips=1, layers=1, samples=1, usage=None, flags=0, memory=None):
        if usage is None:
            usage = 0x1 | 0x2 | 0x4 | (0x20 if format in DEEP else 0x10 | (0x8 if samples == 1 else 0))
        info = vk.VkImageCreateInfo(
            flags=flags,
            imageType=vk.VK_IMAGE_TYPE_2D,
            format=format,
            extent=vk.VkExtent3D(width, height, 1),
            mipLevels=mips,
            arrayLayers=layers,
            samples=samples,
            usage=usage,
        )
        handle = vk.vkCreateImage(self.device, info, None)
        need = vk.vkGetImageMemoryRequirements(self.device, handle)
        memory = memory or self.memory(need, False)
        vk.vkBindImageMemory(self.device, handle, memory, 0)
        made = Image(
            self,
            handle,
            memory,
            {"format": format, "extent": (width, height), "mips": mips, "layers": layers, "samples": samples},
        )
        self.kept.append(made)
        return made

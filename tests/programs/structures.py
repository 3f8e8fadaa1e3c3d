"""Builds an acceleration structure of one triangle and clones it, on a device that has VK_KHR_acceleration_structure.

    python structures.py [wrong]

`wrong` leaves out the barrier between the build and the copy.
"""

import sys

import vulkan as vk

ffi, lib = vk.ffi, vk.lib
EXTENSIONS = ["VK_KHR_acceleration_structure", "VK_KHR_deferred_host_operations"]
INPUT, STORAGE, SCRATCH, ADDRESS = 0x80000, 0x100000, 0x20, 0x20000
BUILD, READ, WRITE = 0x2000000, 0x200000, 0x400000
DEVICE_BUILD, BOTTOM_LEVEL = 1, 1


def make_device():
    """(physical device, device) of the first that has the extensions."""
    app = vk.VkApplicationInfo(pApplicationName="structures", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
    instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
    for physical in vk.vkEnumeratePhysicalDevices(instance):
        have = {each.extensionName for each in vk.vkEnumerateDeviceExtensionProperties(physical, None)}
        if have.issuperset(EXTENSIONS):
            addresses = vk.VkPhysicalDeviceVulkan12Features(bufferDeviceAddress=1)
            structures = vk.VkPhysicalDeviceAccelerationStructureFeaturesKHR(pNext=addresses, accelerationStructure=1)
            queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
            info = vk.VkDeviceCreateInfo(
                pNext=structures, pQueueCreateInfos=[queue], ppEnabledExtensionNames=EXTENSIONS
            )
            return instance, physical, vk.vkCreateDevice(physical, info, None)
    raise SystemExit("no device with acceleration structures")


class Structures:
    """A device and what is made on it."""

    def __init__(self):
        self.instance, self.physical, self.device = make_device()
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        found = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        self.types = [found.memoryTypes[at].propertyFlags for at in range(found.memoryTypeCount)]
        self.buffers, self.made = [], []

    def function(self, name):
        """A C function of the device."""
        return ffi.cast(f"PFN_{name}", lib.vkGetDeviceProcAddr(self.device, ffi.new("char[]", name.encode())))

    def buffer(self, size, usage, data=None):
        """(VkBuffer, device address) of new memory, host-visible when there are data to put in."""
        handle = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=usage | ADDRESS), None)
        needs = vk.vkGetBufferMemoryRequirements(self.device, handle)
        wanted = 0x6 if data else 0x1
        fitting = [i for i, f in enumerate(self.types) if needs.memoryTypeBits >> i & 1 and f & wanted == wanted]
        if not fitting:
            raise SystemExit(f"no memory with properties {wanted:#x}: the device has {len(self.types)} types")
        flags = vk.VkMemoryAllocateFlagsInfo(flags=0x2)
        info = vk.VkMemoryAllocateInfo(pNext=flags, allocationSize=needs.size, memoryTypeIndex=fitting[0])
        memory = vk.vkAllocateMemory(self.device, info, None)
        vk.vkBindBufferMemory(self.device, handle, memory, 0)
        if data:
            vk.vkMapMemory(self.device, memory, 0, size, 0)[: len(data)] = data
            vk.vkUnmapMemory(self.device, memory)
        self.buffers.append((handle, memory))
        info = ffi.new("VkBufferDeviceAddressInfo *", {"sType": 1000244001, "buffer": handle})
        return handle, lib.vkGetBufferDeviceAddress(self.device, info)

    def structure(self, size, level=BOTTOM_LEVEL):
        """A structure in a buffer of its own."""
        storage, _ = self.buffer(size, STORAGE)
        info = ffi.new(
            "VkAccelerationStructureCreateInfoKHR *",
            {"sType": 1000150017, "buffer": storage, "size": size, "type": level},
        )
        out = ffi.new("VkAccelerationStructureKHR *")
        assert self.function("vkCreateAccelerationStructureKHR")(self.device, info, ffi.NULL, out) == 0
        self.made.append(out[0])
        return out[0]

    def close(self):
        """Destroys everything."""
        for each in self.made:
            self.function("vkDestroyAccelerationStructureKHR")(self.device, each, ffi.NULL)
        for handle, memory in self.buffers:
            vk.vkDestroyBuffer(self.device, handle, None)
            vk.vkFreeMemory(self.device, memory, None)
        vk.vkDestroyDevice(self.device, None)
        vk.vkDestroyInstance(self.instance, None)


def describe(vertices):
    """(VkAccelerationStructureBuildGeometryInfoKHR, what it points at) of one triangle."""
    geometry = ffi.new("VkAccelerationStructureGeometryKHR *", {"sType": 1000150006})
    triangles = geometry.geometry.triangles
    triangles.sType, triangles.vertexFormat, triangles.indexType = 1000150005, 106, 1000165000
    triangles.vertexStride, triangles.maxVertex = 12, 2
    triangles.vertexData.deviceAddress = vertices
    info = ffi.new("VkAccelerationStructureBuildGeometryInfoKHR *", {"sType": 1000150000, "type": BOTTOM_LEVEL})
    info.geometryCount, info.pGeometries = 1, geometry
    return info, geometry


def record(made, commands, info, copy, mend):
    """The build, the barrier unless it is left out, and the copy."""
    ranges = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *", {"primitiveCount": 1})
    several = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *[1]", [ranges])
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    made.function("vkCmdBuildAccelerationStructuresKHR")(commands, 1, info, several)
    if mend:
        barrier = vk.VkMemoryBarrier(srcAccessMask=WRITE, dstAccessMask=READ)
        vk.vkCmdPipelineBarrier(commands, BUILD, BUILD, 0, 1, [barrier], 0, None, 0, None)
    made.function("vkCmdCopyAccelerationStructureKHR")(commands, copy)
    vk.vkEndCommandBuffer(commands)


def main(words):
    """Builds, copies, waits."""
    made = Structures()
    _, vertices = made.buffer(64, INPUT, bytes(36))
    info, geometry = describe(vertices)
    sizes = ffi.new("VkAccelerationStructureBuildSizesInfoKHR *", {"sType": 1000150020})
    counts = ffi.new("uint32_t[]", [1])
    made.function("vkGetAccelerationStructureBuildSizesKHR")(made.device, DEVICE_BUILD, info, counts, sizes)
    info.dstAccelerationStructure = made.structure(sizes.accelerationStructureSize)
    _, scratch = made.buffer(sizes.buildScratchSize + 256, SCRATCH)
    info.scratchData.deviceAddress = -(-scratch // 256) * 256
    clone = made.structure(sizes.accelerationStructureSize)
    copy = ffi.new("VkCopyAccelerationStructureInfoKHR *", {"sType": 1000150010})
    copy.src, copy.dst = info.dstAccelerationStructure, clone
    pool = vk.vkCreateCommandPool(made.device, vk.VkCommandPoolCreateInfo(), None)
    allocate = vk.VkCommandBufferAllocateInfo(commandPool=pool, commandBufferCount=1)
    (commands,) = vk.vkAllocateCommandBuffers(made.device, allocate)[0:1]
    record(made, commands, info, copy, "wrong" not in words)
    submit = vk.VkSubmitInfo(commandBufferCount=1, pCommandBuffers=[commands])
    vk.vkQueueSubmit(made.queue, 1, [submit], vk.VK_NULL_HANDLE)
    vk.vkQueueWaitIdle(made.queue)
    vk.vkDestroyCommandPool(made.device, pool, None)
    made.close()
    print(f"built and cloned {geometry.geometryType} of {sizes.accelerationStructureSize} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

// A program with a planted race: a copy reads what a fill wrote, and nothing orders the two.
#include <vulkan/vulkan.h>

#include <cstdlib>

namespace app {

inline void require(VkResult result) {
    if (result) std::exit(1);
}

struct Commands {
    VkCommandBuffer buffer;

    __attribute__((always_inline)) void fill(VkBuffer target) const {
        vkCmdFillBuffer(buffer, target, 0, 4096, 7);  // the fill
    }

    template <class Source>
    __attribute__((noinline)) void copy(Source source, VkBuffer target) const {
        const VkBufferCopy region{0, 0, 4096};
        vkCmdCopyBuffer(buffer, source, target, 1, &region);  // the copy
    }
};

struct Device {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;

    Device() {
        const VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, nullptr, 0, nullptr, 0, nullptr};
        require(vkCreateInstance(&info, nullptr, &instance));
        uint32_t count = 1;
        if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || !count) std::exit(1);
        const float priority = 1;
        VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, 0, 1, &priority};
        VkDeviceCreateInfo made{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, nullptr, 0, 1, &queues, 0, nullptr, 0, nullptr, nullptr};
        require(vkCreateDevice(physical, &made, nullptr, &device));
        vkGetDeviceQueue(device, 0, 0, &queue);
    }

    VkBuffer make_buffer() const {
        VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        info.size = 4096;
        info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        VkBuffer buffer;
        require(vkCreateBuffer(device, &info, nullptr, &buffer));
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device, buffer, &needs);
        VkMemoryAllocateInfo of_memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, 0};
        VkDeviceMemory memory;
        require(vkAllocateMemory(device, &of_memory, nullptr, &memory));
        require(vkBindBufferMemory(device, buffer, memory, 0));
        return buffer;
    }
};

void record(const Commands &commands, VkBuffer first, VkBuffer second) {
    commands.fill(first);
    commands.copy(first, second);
}

}  // namespace app

int main() {
    const app::Device made;
    VkCommandPoolCreateInfo of_pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, 0};
    VkCommandPool pool;
    app::require(vkCreateCommandPool(made.device, &of_pool, nullptr, &pool));
    VkCommandBufferAllocateInfo of_commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    app::Commands commands;
    app::require(vkAllocateCommandBuffers(made.device, &of_commands, &commands.buffer));
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
    app::require(vkBeginCommandBuffer(commands.buffer, &begin));
    app::record(commands, made.make_buffer(), made.make_buffer());
    app::require(vkEndCommandBuffer(commands.buffer));
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands.buffer;
    app::require(vkQueueSubmit(made.queue, 1, &submit, VK_NULL_HANDLE));
    return vkQueueWaitIdle(made.queue);
}

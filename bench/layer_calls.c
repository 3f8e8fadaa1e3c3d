// Times Vulkan calls as a program makes them: CPU time of the calling thread, the least of several rounds, as one line of
// JSON. bench/layer_cost.py builds and runs it.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vulkan/vulkan.h>

#define OK(call) do { VkResult result = (call); if (result) { printf("%s: %d\n", #call, result); exit(1); } } while (0)
enum { CALLS = 20000, SUBMITS = 100, ROUNDS = 7, DEPTH = 20 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e6 * time.tv_sec + 1e-3 * time.tv_nsec;
}

static void keep(double *least, double time) {
    if (time < *least) *least = time;
}

static int measured(void) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo of_instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    VkInstance instance;
    OK(vkCreateInstance(&of_instance, NULL, &instance));
    uint32_t count = 1;
    VkPhysicalDevice physical;
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || !count) return 1;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo of_device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
    VkDevice device;
    OK(vkCreateDevice(physical, &of_device, NULL, &device));
    VkQueue queue;
    vkGetDeviceQueue(device, 0, 0, &queue);
    const VkBufferCreateInfo of_buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 1 << 20, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkBuffer buffer;
    OK(vkCreateBuffer(device, &of_buffer, NULL, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    const VkMemoryAllocateInfo of_memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size};
    VkDeviceMemory memory;
    OK(vkAllocateMemory(device, &of_memory, NULL, &memory));
    OK(vkBindBufferMemory(device, buffer, memory, 0));
    void *mapped;
    OK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    const VkCommandPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    VkCommandPool pool;
    OK(vkCreateCommandPool(device, &of_pool, NULL, &pool));
    const VkCommandBufferAllocateInfo of_commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
    VkCommandBuffer commands;
    OK(vkAllocateCommandBuffers(device, &of_commands, &commands));
    const VkCommandBufferBeginInfo begins = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkBufferMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT, .buffer = buffer, .size = VK_WHOLE_SIZE};
    const VkBufferCopy region = {4096, 8192, 4096};
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    double state = 1e9, copy = 1e9, barriers = 1e9, submits = 1e9;
    for (int round = 0; round < ROUNDS; ++round) {
        OK(vkBeginCommandBuffer(commands, &begins));
        double start = now();
        for (int at = 0; at < CALLS; ++at) vkCmdSetLineWidth(commands, 1);
        keep(&state, (now() - start) / CALLS);
        start = now();
        for (int at = 0; at < CALLS; ++at) {
            vkCmdCopyBuffer(commands, buffer, buffer, 1, &region);
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 1, &barrier, 0, NULL);
        }
        keep(&barriers, (now() - start) / CALLS);
        OK(vkEndCommandBuffer(commands));
        OK(vkResetCommandBuffer(commands, 0));
        OK(vkBeginCommandBuffer(commands, &begins));
        start = now();
        for (int at = 0; at < CALLS; ++at) vkCmdCopyBuffer(commands, buffer, buffer, 1, &region);
        keep(&copy, (now() - start) / CALLS);
        OK(vkEndCommandBuffer(commands));
        OK(vkResetCommandBuffer(commands, 0));
        OK(vkBeginCommandBuffer(commands, &begins));
        vkCmdFillBuffer(commands, buffer, 0, 4, 1);
        OK(vkEndCommandBuffer(commands));
        start = now();
        for (int at = 0; at < SUBMITS; ++at) {
            ((char *)mapped)[at] = (char)round;
            OK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
            OK(vkQueueWaitIdle(queue));
        }
        keep(&submits, (now() - start) / SUBMITS);
        OK(vkResetCommandBuffer(commands, 0));
    }
    printf("{\"state\": %.4f, \"copy\": %.4f, \"barrier\": %.4f, \"submit\": %.4f}\n", state, copy, barriers - copy, submits);
    return 0;
}

// A program has frames below its calls.
__attribute__((noinline)) static int deep(volatile int depth) {
    return depth ? deep(depth - 1) + depth - depth : measured();
}

int main(void) {
    return deep(DEPTH);
}

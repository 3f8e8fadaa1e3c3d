// Small Vulkan programs for tests of the mirror layer, by the first argument.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define OK(call) do { VkResult result = (call); if (result) { printf("%s: %d\n", #call, result); exit(1); } } while (0)

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkBuffer buffer;
static VkDeviceMemory memory;
static char *mapped;

static void begin(void) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "mirrored", .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    OK(vkCreateInstance(&info, NULL, &instance));
    uint32_t count = 1;
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || !count) exit(1);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo made = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
    OK(vkCreateDevice(physical, &made, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    const VkBufferCreateInfo of_buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 1 << 20, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    OK(vkCreateBuffer(device, &of_buffer, NULL, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    const VkMemoryAllocateInfo of_memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size};
    OK(vkAllocateMemory(device, &of_memory, NULL, &memory));
    OK(vkBindBufferMemory(device, buffer, memory, 0));
    OK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&mapped));
}

static VkCommandPool make_pool(void) {
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandPool pool;
    OK(vkCreateCommandPool(device, &info, NULL, &pool));
    return pool;
}

static VkCommandBuffer begin_commands(VkCommandPool pool) {
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
    VkCommandBuffer commands;
    OK(vkAllocateCommandBuffers(device, &info, &commands));
    const VkCommandBufferBeginInfo begins = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    OK(vkBeginCommandBuffer(commands, &begins));
    return commands;
}

static void submit(VkCommandBuffer commands) {
    OK(vkEndCommandBuffer(commands));
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    OK(vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE));
    OK(vkQueueWaitIdle(queue));
}

static void copy(void) {
    const VkCommandPool pool = make_pool();
    const VkCommandBuffer commands = begin_commands(pool);
    vkCmdFillBuffer(commands, buffer, 4096, 4096, 42);
    const VkBufferMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT, .buffer = buffer, .size = VK_WHOLE_SIZE};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 1, &barrier, 0, NULL);
    const VkBufferCopy region = {4096, 8192, 4096};
    vkCmdCopyBuffer(commands, buffer, buffer, 1, &region);
    memset(mapped, 7, 1000);
    submit(commands);
    printf("%d\n", ((int *)mapped)[2048]);
    fflush(stdout);
}

static void end(void) {
    vkFreeMemory(device, memory, NULL);
    vkDestroyBuffer(device, buffer, NULL);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
}

static void *record_many(void *number) {
    const VkCommandPool pool = make_pool();
    const VkCommandBuffer commands = begin_commands(pool);
    for (uint32_t at = 0; at < 2000; ++at) vkCmdFillBuffer(commands, buffer, 0, 4, (uint32_t)(uintptr_t)number << 16 | at);
    OK(vkEndCommandBuffer(commands));
    vkDestroyCommandPool(device, pool, NULL);
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    for (uintptr_t at = 0; at < 8; ++at) pthread_create(&all[at], NULL, record_many, (void *)at);
    for (int at = 0; at < 8; ++at) pthread_join(all[at], NULL);
}

// A job of one thread: it makes, maps, records, submits, waits for and destroys what is its own; every second copy of it
// needs a barrier that is not there.
static pthread_mutex_t of_queue = PTHREAD_MUTEX_INITIALIZER;

static void *race(void *unused) {
    for (int round = 0; round < 6; ++round) {
        const VkBufferCreateInfo of_buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 4096, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
        VkBuffer own;
        OK(vkCreateBuffer(device, &of_buffer, NULL, &own));
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device, own, &needs);
        const VkMemoryAllocateInfo of_memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size};
        VkDeviceMemory held;
        OK(vkAllocateMemory(device, &of_memory, NULL, &held));
        OK(vkBindBufferMemory(device, own, held, 0));
        void *bytes;
        OK(vkMapMemory(device, held, 0, VK_WHOLE_SIZE, 0, &bytes));
        memset(bytes, round, 4096);
        const VkFenceCreateInfo of_fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        VkFence fence;
        OK(vkCreateFence(device, &of_fence, NULL, &fence));
        const VkCommandPool pool = make_pool();
        const VkCommandBuffer commands = begin_commands(pool);
        vkCmdFillBuffer(commands, own, 0, 1024, 42);
        const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
        if (round % 2) vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
        const VkBufferCopy region = {0, 2048, 1024};
        vkCmdCopyBuffer(commands, own, own, 1, &region);
        OK(vkEndCommandBuffer(commands));
        const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
        pthread_mutex_lock(&of_queue);
        OK(vkQueueSubmit(queue, 1, &info, fence));
        pthread_mutex_unlock(&of_queue);
        OK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
        vkDestroyFence(device, fence, NULL);
        vkDestroyCommandPool(device, pool, NULL);
        vkDestroyBuffer(device, own, NULL);
        vkFreeMemory(device, held, NULL);
    }
    return unused;
}

// 16 jobs, each in a thread or one after the other.
static void races(int at_once) {
    pthread_t all[16];
    for (int at = 0; at < 16; ++at) {
        if (!at_once) race(NULL);
        else if (pthread_create(&all[at], NULL, race, NULL)) exit(1);
    }
    for (int at = 0; at_once && at < 16; ++at) pthread_join(all[at], NULL);
}

// A chain with a struct that nobody knows, one that leads nowhere, and pointers that Vulkan ignores.
static void chained(void) {
    struct { uint32_t type; const void *next; uint64_t more; } unknown = {0x70000000, NULL, 1};
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .pNext = &unknown};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &external, .size = 64, .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT, .pQueueFamilyIndices = (const uint32_t *)0x1234};
    VkBuffer other;
    OK(vkCreateBuffer(device, &info, NULL, &other));
    vkDestroyBuffer(device, other, NULL);
}

// What Vulkan ignores leads to memory that was there when it was looked at last.
static void stale(void) {
    const VkCommandPool pool = make_pool();
    const VkCommandBuffer commands = begin_commands(pool);
    OK(vkEndCommandBuffer(commands));
    VkCommandBufferInheritanceInfo *const ignored = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ignored->sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
    const VkCommandBufferBeginInfo begins = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .pInheritanceInfo = ignored};
    for (int at = 0; at < 2; ++at) {
        OK(vkResetCommandPool(device, pool, 0));
        OK(vkBeginCommandBuffer(commands, &begins));
        OK(vkEndCommandBuffer(commands));
        munmap(ignored, 4096);
    }
}

// Calls from a frame of any size, in front of what deeper calls have left on the stack.
static VkCommandBuffer filled;

__attribute__((noinline)) static void fill_from(int size, uint32_t value) {
    volatile char held[size];
    held[0] = 1;
    vkCmdFillBuffer(filled, buffer, 0, 4, value);
    held[0] = 2;
}

__attribute__((noinline)) static void deeper(int depth) {
    volatile int left = depth;
    if (depth) deeper(depth - 1);
    else fill_from(16, 1);
    left = 0;
}

__attribute__((noinline)) static void directly(int size) {
    volatile int left = size;
    fill_from(size, 2);
    left = 0;
}

static void varied(int size) {
    filled = begin_commands(make_pool());
    deeper(80), directly(size), directly(16);
    OK(vkEndCommandBuffer(filled));
}

static void limit(int resource, rlim_t most) {
    const struct rlimit limits = {most, most};
    setrlimit(resource, &limits);
}

// Enough calls for three segments.
static void many(void) {
    const VkCommandBuffer commands = begin_commands(make_pool());
    for (uint32_t at = 0; at < 700000; ++at) vkCmdSetLineWidth(commands, (float)at);
    OK(vkEndCommandBuffer(commands));
}

// What an update template reads, with elements apart.
static void templated(void) {
    const VkDescriptorSetLayoutBinding binding = {3, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2, VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo of_layout = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding};
    VkDescriptorSetLayout layout;
    OK(vkCreateDescriptorSetLayout(device, &of_layout, NULL, &layout));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    const VkDescriptorPoolCreateInfo of_pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size};
    VkDescriptorPool pool;
    OK(vkCreateDescriptorPool(device, &of_pool, NULL, &pool));
    const VkDescriptorSetAllocateInfo of_set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = pool, .descriptorSetCount = 1, .pSetLayouts = &layout};
    VkDescriptorSet set;
    OK(vkAllocateDescriptorSets(device, &of_set, &set));
    const VkDescriptorUpdateTemplateEntry entry = {3, 0, 2, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 8, 40};
    const VkDescriptorUpdateTemplateCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, .descriptorUpdateEntryCount = 1, .pDescriptorUpdateEntries = &entry, .templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET, .descriptorSetLayout = layout};
    VkDescriptorUpdateTemplate made;
    OK(vkCreateDescriptorUpdateTemplate(device, &info, NULL, &made));
    char data[72];
    const VkDescriptorBufferInfo first = {buffer, 0, 64}, second = {buffer, 256, 128};
    memcpy(data + 8, &first, sizeof first);
    memcpy(data + 48, &second, sizeof second);
    vkUpdateDescriptorSetWithTemplate(device, set, made, data);
    vkDestroyDescriptorUpdateTemplate(device, made, NULL);
}

int main(int count, char **arguments) {
    const char *const mode = count > 1 ? arguments[1] : "copy";
    begin();
    if (!strcmp(mode, "threads")) threads();
    else if (!strcmp(mode, "races-at-once")) races(1);
    else if (!strcmp(mode, "races-in-turn")) races(0);
    else if (!strcmp(mode, "chained")) chained();
    else if (!strcmp(mode, "many")) many();
    else if (!strcmp(mode, "stale")) stale();
    else if (!strncmp(mode, "varied-", 7)) varied(atoi(mode + 7));
    else if (!strcmp(mode, "few-files")) limit(RLIMIT_NOFILE, 0), many();
    else if (!strcmp(mode, "short-files")) limit(RLIMIT_FSIZE, 4 << 20), many();
    else if (!strcmp(mode, "templated")) templated();
    else copy();
    if (!strcmp(mode, "killed")) kill(getpid(), 9);
    if (!strcmp(mode, "exited")) _exit(3);
    if (!strcmp(mode, "forked")) {
        const pid_t child = fork();
        if (!child) {
            begin();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    end();
    if (!strcmp(mode, "twice")) begin(), copy(), end();
    return 0;
}

// Reads that find what was there before: the memory half of a dependency is lost, while commands run in their order.
// Before a write, the bytes go to a copy of the buffer, the old bytes; what reads later gets those.

struct old { // the copy of one buffer
    struct old *older;
    struct device *device;
    uint64_t buffer, copy, memory, size;
};
static struct old *olds;
enum { BUFFER_CREATE_INFO = 12, ALLOCATE_INFO = 5, TRANSFERS = 3, GRANTED = 46, ALL_COMMANDS = 1 << 16,
       MEMORY_READ_WRITE = 1 << 15 | 1 << 16, POOL_CREATE_INFO = 39, BUFFERS_ALLOCATE_INFO = 40, BUFFER_BEGIN_INFO = 42 };

static void all_commands(const void *buffer) { // a full barrier
    struct VkMemoryBarrier everything = {GRANTED, NULL, MEMORY_READ_WRITE, MEMORY_READ_WRITE};
    wrapped_vkCmdPipelineBarrier(buffer, ALL_COMMANDS, ALL_COMMANDS, 0, 1, &everything, 0, NULL, 0, NULL);
}
static void copy_bytes(const void *commands, uint64_t source, uint64_t target, uint64_t offset, uint64_t size) {
    struct VkBufferCopy region = {offset, offset, size};
    all_commands(commands);
    wrapped_vkCmdCopyBuffer(commands, source, target, 1, &region);
    all_commands(commands);
}

// The old bytes of a buffer, in a buffer of the same size; NULL where there can be none.
static struct old *old_of(const void *commands, uint64_t buffer) {
    struct device *device = known_device(commands);
    pthread_mutex_lock(&state);
    struct old *each = olds;
    while (each && (each->device != device || each->buffer != buffer)) each = each->older;
    pthread_mutex_unlock(&state);
    uint64_t size = known(BUFFER, buffer);
    if (each || !size) return each;
    struct VkBufferCreateInfo info = {BUFFER_CREATE_INFO, NULL, 0, size, TRANSFERS};
    struct VkMemoryRequirements needs;
    struct old made = {NULL, device, buffer, 0, 0, size};
    if (wrapped_vkCreateBuffer(device->handle, &info, NULL, &made.copy)) return NULL;
    wrapped_vkGetBufferMemoryRequirements(device->handle, made.copy, &needs);
    struct VkMemoryAllocateInfo wanted = {ALLOCATE_INFO, NULL, needs.size, __builtin_ctz(needs.memoryTypeBits)};
    if (wrapped_vkAllocateMemory(device->handle, &wanted, NULL, &made.memory)) return NULL;
    if (wrapped_vkBindBufferMemory(device->handle, made.copy, made.memory, 0)) return NULL;
    each = copied(&made, sizeof made);
    pthread_mutex_lock(&state);
    each->older = olds;
    olds = each;
    pthread_mutex_unlock(&state);
    return each;
}
// Forgets the old bytes of one buffer (0: of all) of a device.
static void forget_old(const struct device *device, uint64_t buffer) {
    for (struct old **place = &olds; *place;) {
        struct old *each = *place;
        if (each->device != device || (buffer && each->buffer != buffer)) {
            place = &each->older;
            continue;
        }
        *place = each->older;
        wrapped_vkDestroyBuffer(device->handle, each->copy, NULL);
        wrapped_vkFreeMemory(device->handle, each->memory, NULL);
        free(each);
    }
}
static void destroy_with_old(const void *device, uint64_t buffer, const void *allocator) {
    forget_old(known_device(device), buffer);
    wrapped_vkDestroyBuffer(device, buffer, allocator);
}
#define KEEPS_OLD KEEPS_SIZES, HOOK(vkDestroyBuffer, destroy_with_old)

// A copy finds what a fill or an update of the same command buffer has overwritten.
static struct written *written_in(const void *commands, uint64_t buffer) {
    struct recording *recording = recording_of(commands);
    for (uint32_t each = 0; each < recording->writes; each++)
        if (recording->written[each].buffer == buffer) return &recording->written[each];
    return NULL;
}
static void before_write(const void *commands, uint64_t buffer) {
    struct recording *recording = recording_of(commands);
    struct old *old = recording->inside || recording->writes == WRITES ? NULL : old_of(commands, buffer);
    if (!old || written_in(commands, buffer)) return;
    copy_bytes(commands, buffer, old->copy, 0, old->size);
    recording->written[recording->writes++] = (struct written){buffer, old->copy};
}
static void fill_and_keep(const void *commands, uint64_t target, uint64_t offset, uint64_t size, uint32_t value) {
    before_write(commands, target);
    wrapped_vkCmdFillBuffer(commands, target, offset, size, value);
}
static void update_and_keep(const void *commands, uint64_t target, uint64_t offset, uint64_t size, const void *data) {
    before_write(commands, target);
    wrapped_vkCmdUpdateBuffer(commands, target, offset, size, data);
}
static void copy_old(const void *commands, uint64_t source, uint64_t target, uint32_t count, const void *regions) {
    struct written *written = source == target ? NULL : written_in(commands, source);
    wrapped_vkCmdCopyBuffer(commands, written ? written->copy : source, target, count, regions);
}
COPY_2(copy_old)
static const struct breaking breaks_copy_sees_old_bytes = {
    {KEEPS_OLD, HOOK(vkCmdFillBuffer, fill_and_keep), HOOK(vkCmdUpdateBuffer, update_and_keep), HOOKS_COPY(copy_old)}};

// Ownership transfers. A half is a release or an acquire by the family for which the command buffer is recorded.
enum half { NO_HALF, RELEASE, ACQUIRE };
static int32_t keep_families(const void *device, const void *given, void *const *made) {
    const struct VkCommandBufferAllocateInfo *info = given;
    int32_t result = wrapped_vkAllocateCommandBuffers(device, given, made);
    for (uint32_t each = 0; !result && each < info->commandBufferCount; each++)
        keep(FAMILY, (uintptr_t)made[each], known(POOL, info->commandPool));
    return result;
}
static enum half half_of(const void *commands, uint32_t source, uint32_t target) {
    uint64_t family = known(FAMILY, (uintptr_t)commands);
    if (source == target || !family) return NO_HALF;
    return source + 1 == family ? RELEASE : target + 1 == family ? ACQUIRE : NO_HALF;
}
typedef void on_buffer(const void *, enum half, uint64_t buffer, uint64_t offset, uint64_t size);
static void each_buffer(const void *commands, const void *given, uint32_t count, int second, on_buffer *then) {
    const struct VkBufferMemoryBarrier *first_form = given;
    const struct VkBufferMemoryBarrier2 *second_form = given;
#define HALF(all)                                                                                      \
    then(commands, half_of(commands, all[each].srcQueueFamilyIndex, all[each].dstQueueFamilyIndex),    \
         all[each].buffer, all[each].offset, all[each].size)
    for (uint32_t each = 0; each < count && !recording_of(commands)->inside; each++)
        if (second) HALF(second_form);
        else HALF(first_form);
}
typedef void on_image(const void *, enum half, uint64_t image, int32_t layout, const void *range);
static void each_image(const void *commands, const void *given, uint32_t count, int second, on_image *then) {
    const struct VkImageMemoryBarrier *first_form = given;
    const struct VkImageMemoryBarrier2 *second_form = given;
#define HALF_OF_IMAGE(all)                                                                             \
    then(commands, half_of(commands, all[each].srcQueueFamilyIndex, all[each].dstQueueFamilyIndex),    \
         all[each].image, all[each].newLayout, &all[each].subresourceRange)
    for (uint32_t each = 0; each < count && !recording_of(commands)->inside; each++)
        if (second) HALF_OF_IMAGE(second_form);
        else HALF_OF_IMAGE(first_form);
}
#define TRANSFERS_OF_RESOURCES(name, then, then_image)                                                                              \
    static void name(const void *commands, uint32_t source, uint32_t target, uint32_t flags, uint32_t memory,         \
                     const void *memories, uint32_t buffers, const void *of_buffers, uint32_t images,                 \
                     const void *of_images) {                                                                         \
        wrapped_vkCmdPipelineBarrier(commands, source, target, flags, memory, memories, buffers, of_buffers, images,  \
                                     of_images);                                                                      \
        each_buffer(commands, of_buffers, buffers, 0, then);                                                          \
        each_image(commands, of_images, images, 0, then_image);                                                       \
    }                                                                                                                 \
    static void name##_2(const void *commands, const void *given) {                                                   \
        const struct VkDependencyInfo *info = given;                                                                  \
        wrapped_vkCmdPipelineBarrier2(commands, given);                                                               \
        each_buffer(commands, info->pBufferMemoryBarriers, info->bufferMemoryBarrierCount, 1, then);                  \
        each_image(commands, info->pImageMemoryBarriers, info->imageMemoryBarrierCount, 1, then_image);               \
    }
#define HOOKS_TRANSFERS(name) HOOK(vkCmdPipelineBarrier, name), HOOK(vkCmdPipelineBarrier2, name##_2), \
                              HOOK(vkAllocateCommandBuffers, keep_families)

static void lose_at_acquire(const void *commands, enum half half, uint64_t buffer, uint64_t offset, uint64_t size) {
    if (half != ACQUIRE) return;
    all_commands(commands);
    wrapped_vkCmdFillBuffer(commands, buffer, offset, size, GARBAGE[0]);
    all_commands(commands);
}
static void lose_image_at_acquire(const void *commands, enum half half, uint64_t image, int32_t layout, const void *range) {
    if (half == ACQUIRE) lose_contents(commands, image, -1, layout, range);
}
TRANSFERS_OF_RESOURCES(lose_contents_at, lose_at_acquire, lose_image_at_acquire)
static const struct breaking breaks_acquire_loses_contents = {
    {HOOKS_TRANSFERS(lose_contents_at), HOOK(vkCreateImage, keep_format)}};

// The release makes nothing available: the family that acquires finds what was there before the command buffer with it.
static void stale_at_acquire(const void *commands, enum half half, uint64_t buffer, uint64_t offset, uint64_t size) {
    struct recording *recording = recording_of(commands);
    struct old *old = half == NO_HALF ? NULL : old_of(commands, buffer);
    if (!old) return;
    if (size == WHOLE_SIZE) size = old->size - offset;
    if (half == ACQUIRE) copy_bytes(commands, old->copy, buffer, offset, size);
    else if (recording->writes < WRITES) recording->written[recording->writes++] = (struct written){buffer, old->copy, old->size};
}
static void leave_image(const void *commands, enum half half, uint64_t image, int32_t layout, const void *range) {}
TRANSFERS_OF_RESOURCES(stale_contents_at, stale_at_acquire, leave_image)
static const struct breaking breaks_release_makes_nothing_available = {
    {KEEPS_OLD, HOOKS_TRANSFERS(stale_contents_at)}, .keeps_old = 1};

// Before a command buffer with releases runs on the queue of the driver: keeps what it is about to overwrite.
static uint64_t pool_of_old;
static void keep_before(const struct queue *queue, const void *commands) {
    struct recording *recording = recording_of(commands);
    void *handle = queue->device->handle, *mine;
    if (!breaking || !breaking->keeps_old || !recording->writes) return;
    struct VkCommandPoolCreateInfo made = {POOL_CREATE_INFO};
    if (!pool_of_old && wrapped_vkCreateCommandPool(handle, &made, NULL, &pool_of_old)) abort();
    struct VkCommandBufferAllocateInfo info = {BUFFERS_ALLOCATE_INFO, NULL, pool_of_old, 0, 1};
    struct VkCommandBufferBeginInfo begins = {BUFFER_BEGIN_INFO};
    if (wrapped_vkAllocateCommandBuffers(handle, &info, &mine)) abort();
    *(void **)mine = *(void **)handle; // as the loader would
    wrapped_vkBeginCommandBuffer(mine, &begins);
    for (uint32_t each = 0; each < recording->writes; each++)
        copy_bytes(mine, recording->written[each].buffer, recording->written[each].copy, 0, recording->written[each].size);
    wrapped_vkEndCommandBuffer(mine);
    const void *several[] = {mine};
    struct VkSubmitInfo submit = {SUBMIT_INFO, NULL, 0, NULL, NULL, 1, several};
    anything next = NEXT(queue->device, vkQueueSubmit);
    ((int32_t(*)(const void *, uint32_t, const void *, uint64_t))next)(queue->next, 1, &submit, 0);
}

// Before a device is destroyed.
static void forget_all_old(void *handle) {
    struct device *device = known_device(handle);
    if (olds) wrapped_vkDeviceWaitIdle(handle);
    forget_old(device, 0);
    if (pool_of_old) wrapped_vkDestroyCommandPool(handle, pool_of_old, NULL);
    pool_of_old = 0;
}

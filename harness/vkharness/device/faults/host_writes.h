// Host writes that a submit does not show to the device: it finds what was there before the submit, and the host's bytes
// arrive when the work is over. A software driver's memory stays where it was mapped, whether it is mapped or not.

static struct seen {
    struct seen *older;
    uint64_t memory, size;
    unsigned char *real, *before, *host; // now, at the end of the last submit, and what the host wrote since
} *seen_memories;
static int unfinished; // a submit that nobody waited for

static int32_t see_memory(const void *device, const void *given, const void *allocator, const void *made) {
    const struct VkMemoryAllocateInfo *info = given;
    int32_t result = wrapped_vkAllocateMemory(device, given, allocator, made);
    uint64_t memory = result ? 0 : *(const uint64_t *)made;
    void *real;
    if (result || wrapped_vkMapMemory(device, memory, 0, WHOLE_SIZE, 0, &real)) return result;
    wrapped_vkUnmapMemory(device, memory);
    struct seen each = {NULL, memory, info->allocationSize, real, copied(real, info->allocationSize), copied(real, info->allocationSize)};
    pthread_mutex_lock(&state);
    each.older = seen_memories;
    seen_memories = copied(&each, sizeof each);
    pthread_mutex_unlock(&state);
    return result;
}
static void forget_memory(const void *device, uint64_t memory, const void *allocator) {
    pthread_mutex_lock(&state);
    struct seen **place = &seen_memories;
    while (*place && (*place)->memory != memory) place = &(*place)->older;
    struct seen *gone = *place;
    if (gone) *place = gone->older;
    pthread_mutex_unlock(&state);
    if (gone) {
        free(gone->before);
        free(gone->host);
        free(gone);
    }
    wrapped_vkFreeMemory(device, memory, allocator);
}

static void hide_host_writes(void) {
    for (struct seen *each = seen_memories; each; each = each->older) {
        if (!memcmp(each->real, each->before, each->size)) continue;
        memcpy(each->host, each->real, each->size);
        memcpy(each->real, each->before, each->size);
    }
}
static void show_host_writes(int hidden) {
    for (struct seen *each = seen_memories; each; each = each->older) {
        for (uint64_t at = 0; hidden && at < each->size; at++)
            if (each->host[at] != each->before[at] && each->real[at] == each->before[at]) each->real[at] = each->host[at];
        memcpy(each->before, each->real, each->size);
        memcpy(each->host, each->real, each->size);
    }
}

// A batch that waits for a semaphore may wait for something that comes later: it runs as it should.
#define LATE_SUBMIT(form, type, waits)                                                                        \
    static int32_t late_writes##form(const void *queue, uint32_t count, const void *given, uint64_t fence) {   \
        const struct type *all = given;                                                                        \
        anything idle = NEXT(known_device(queue), vkQueueWaitIdle);                                            \
        int waiting = 0;                                                                                       \
        for (uint32_t each = 0; each < count; each++) waiting |= all[each].waits > 0;                          \
        pthread_mutex_lock(&state);                                                                            \
        int hides = !waiting && !unfinished;                                                                   \
        unfinished = waiting;                                                                                  \
        if (hides) hide_host_writes();                                                                         \
        pthread_mutex_unlock(&state);                                                                          \
        int32_t result = wrapped_vkQueueSubmit##form(queue, count, given, fence);                              \
        if (waiting) return result;                                                                            \
        ((int32_t(*)(const void *))idle)(queue);                                                               \
        pthread_mutex_lock(&state);                                                                            \
        show_host_writes(hides);                                                                               \
        pthread_mutex_unlock(&state);                                                                          \
        return result;                                                                                         \
    }
LATE_SUBMIT(, VkSubmitInfo, waitSemaphoreCount)
LATE_SUBMIT(2, VkSubmitInfo2, waitSemaphoreInfoCount)
static const struct breaking breaks_host_writes_late = {
    {HOOK(vkAllocateMemory, see_memory), HOOK(vkFreeMemory, forget_memory), HOOK(vkQueueSubmit, late_writes),
     HOOK(vkQueueSubmit2, late_writes2)}};

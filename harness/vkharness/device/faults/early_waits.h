// Waits that end before the work does. Before a submit, its queue is made to wait for a timeline semaphore of our own,
// the gate, so that the submit stays where it is until the gate is opened: by the next call that is neither a wait that
// lies nor harmless meanwhile. What a caller was told of is then really waited for before the call goes on, since the
// call may destroy or record again what the work uses.

enum { SUBMIT_INFO = 4, SEMAPHORE_CREATE_INFO = 9, SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
       TIMELINE_SUBMIT_INFO = 1000207003, SEMAPHORE_WAIT_INFO = 1000207004, SEMAPHORE_SIGNAL_INFO = 1000207005, TIMELINE = 1 };
#define NO_TIMEOUT UINT64_MAX
#define GATES 64
#define FENCES 1024

static struct gate {
    void *device;
    const void *queue;
    uint64_t semaphore, asked, open;
} gates[GATES];
static struct submitted {
    void *device;
    uint64_t fence;
    int told; // that it is signaled
} submitted[FENCES];
static const void *told_queue;
static void *told_device;
static struct told_semaphores { // the last vkWaitSemaphores that lied
    void *device;
    uint32_t flags, count;
    uint64_t timeout, *semaphores, *values;
} told_semaphores;
static __thread int goes_on; // a call of our own

static anything next_of(struct device *device, int command) { return device->next[command]; }
#define NEXT(device, name) next_of(device, index_##name)

static struct device *known_device(const void *handle) {
    pthread_mutex_lock(&lock);
    struct device *found = device_of(handle);
    pthread_mutex_unlock(&lock);
    return found;
}

static struct gate *gate_of(const void *queue) { // NULL where there are too many queues
    for (struct gate *each = gates; each < gates + GATES; each++)
        if (!each->device || each->queue == queue) return each;
    return NULL;
}

static int close_gate(const void *queue) {
    struct gate *gate = gate_of(queue);
    struct device *device = known_device(queue);
    if (!gate) return 0;
    if (!gate->device) {
        struct VkSemaphoreTypeCreateInfo type = {SEMAPHORE_TYPE_CREATE_INFO, NULL, TIMELINE, 0};
        struct VkSemaphoreCreateInfo info = {SEMAPHORE_CREATE_INFO, &type};
        anything create = NEXT(device, vkCreateSemaphore);
        int32_t result = ((int32_t(*)(void *, const void *, const void *, void *))create)(device->handle, &info, NULL,
                                                                                        &gate->semaphore);
        if (result) return 0;
        gate->device = device->handle;
        gate->queue = queue;
        gate->asked = gate->open = 0;
    }
    uint64_t value = ++gate->asked;
    uint32_t everything = 1 << 16;
    struct VkTimelineSemaphoreSubmitInfo values = {TIMELINE_SUBMIT_INFO, NULL, 1, &value};
    struct VkSubmitInfo wait = {SUBMIT_INFO, &values, 1, &gate->semaphore, &everything};
    anything submit = NEXT(device, vkQueueSubmit);
    return !((int32_t(*)(const void *, uint32_t, const void *, uint64_t))submit)(queue, 1, &wait, 0);
}

static void open_gates(void) {
    for (struct gate *each = gates; each < gates + GATES && each->device; each++)
        if (each->open < each->asked) {
            struct VkSemaphoreSignalInfo info = {SEMAPHORE_SIGNAL_INFO, NULL, each->semaphore, each->asked};
            anything signal = NEXT(known_device(each->device), vkSignalSemaphore);
            ((int32_t(*)(void *, const void *))signal)(each->device, &info);
            each->open = each->asked;
        }
    for (struct submitted *each = submitted; each < submitted + FENCES; each++)
        if (!each->told) each->device = NULL;
}

// Waits for all that a caller was told of.
static void catch_up(void) {
    for (struct submitted *each = submitted; each < submitted + FENCES; each++)
        if (each->device) {
            anything wait = NEXT(known_device(each->device), vkWaitForFences);
            ((int32_t(*)(void *, uint32_t, const void *, uint32_t, uint64_t))wait)(each->device, 1, &each->fence, 1, NO_TIMEOUT);
            memset(each, 0, sizeof *each);
        }
    if (told_queue) ((int32_t(*)(const void *))NEXT(known_device(told_queue), vkQueueWaitIdle))(told_queue);
    if (told_device) ((int32_t(*)(void *))NEXT(known_device(told_device), vkDeviceWaitIdle))(told_device);
    struct told_semaphores *told = &told_semaphores;
    if (told->device) {
        struct VkSemaphoreWaitInfo info = {SEMAPHORE_WAIT_INFO, NULL, told->flags, told->count, told->semaphores, told->values};
        ((int32_t(*)(void *, const void *, uint64_t))NEXT(known_device(told->device), vkWaitSemaphores))(told->device, &info, told->timeout);
        free(told->semaphores);
        free(told->values);
    }
    told_queue = told_device = NULL;
    memset(told, 0, sizeof *told);
}

// Calls during which submits may stay held back.
static void before_other_calls(const char *core) {
    static const char *const harmless[] = {"vkCmd", "vkMap", "vkUnmap", "vkInvalidate", "vkFlush", "vkCreate",
                                           "vkAllocate", "vkGetBuffer", "vkGetImage", "vkGetDevice"};
    for (size_t each = 0; each < sizeof harmless / sizeof *harmless; each++)
        if (begins_with(core, harmless[each])) return;
    if (goes_on) return;
    pthread_mutex_lock(&state);
    open_gates();
    // Work that was told to be over may need these: they use nothing of it.
    if (!begins_with(core, "vkQueueSubmit") && strcmp(core, "vkSignalSemaphore") && strcmp(core, "vkQueueBindSparse"))
        catch_up();
    pthread_mutex_unlock(&state);
}

// Before a device is destroyed.
static void forget_gates(void *device) {
    if (!breaking || !breaking->holds_queue) return;
    before_other_calls("vkDestroyDevice");
    pthread_mutex_lock(&state);
    struct gate *left = gates;
    for (struct gate *each = gates; each < gates + GATES && each->device; each++)
        if (each->device == device) {
            struct device *of = known_device(device);
            ((int32_t(*)(void *))NEXT(of, vkDeviceWaitIdle))(device);
            ((void (*)(void *, uint64_t, const void *))NEXT(of, vkDestroySemaphore))(device, each->semaphore, NULL);
        } else *left++ = *each;
    while (left < gates + GATES && left->device) memset(left++, 0, sizeof *left);
    pthread_mutex_unlock(&state);
}

// Holds a submit back; `fences` are those that lie, so that only submits with one are held back.
static void hold_queue(const void *queue, uint64_t fence, int fences) {
    before_other_calls("vkQueueSubmit");
    if (fences && !fence) return;
    pthread_mutex_lock(&state);
    int closed = close_gate(queue);
    for (struct submitted *each = submitted; fences && closed && each < submitted + FENCES; each++)
        if (!each->device) {
            *each = (struct submitted){known_device(queue)->handle, fence, 0};
            break;
        }
    pthread_mutex_unlock(&state);
}
#define HELD_SUBMITS(fences)                                                                                         \
    static int32_t hold_##fences##_1(const void *queue, uint32_t count, const void *batches, uint64_t fence) {       \
        hold_queue(queue, fence, fences);                                                                            \
        goes_on = 1;                                                                                                 \
        int32_t result = wrapped_vkQueueSubmit(queue, count, batches, fence);                                        \
        goes_on = 0;                                                                                                 \
        return result;                                                                                               \
    }                                                                                                                \
    static int32_t hold_##fences##_2(const void *queue, uint32_t count, const void *batches, uint64_t fence) {       \
        hold_queue(queue, fence, fences);                                                                            \
        goes_on = 1;                                                                                                 \
        int32_t result = wrapped_vkQueueSubmit2(queue, count, batches, fence);                                       \
        goes_on = 0;                                                                                                 \
        return result;                                                                                               \
    }
enum { any_submit = 0, with_fence = 1 };
HELD_SUBMITS(any_submit)
HELD_SUBMITS(with_fence)
#define HOLDS_SUBMITS(which) HOOK(vkQueueSubmit, hold_##which##_1), HOOK(vkQueueSubmit2, hold_##which##_2)

// Whether these fences, all or one of them, belong to submits that are held back: then the caller is told so.
static int tell(const void *device, uint32_t count, const uint64_t *fences, uint32_t all) {
    pthread_mutex_lock(&state);
    uint32_t found = 0;
    for (int telling = 0; telling < 2; telling++)
        for (struct submitted *each = submitted; each < submitted + FENCES; each++)
            for (uint32_t at = 0; at < count && each->device == device; at++)
                if (each->fence == fences[at]) {
                    if (telling && found >= (all ? count : 1)) each->told = 1;
                    found += !telling;
                }
    pthread_mutex_unlock(&state);
    return found >= (all ? count : 1);
}
static int32_t fences_early(const void *device, uint32_t count, const void *fences, uint32_t all, uint64_t timeout) {
    return tell(device, count, fences, all) ? SUCCESS : wrapped_vkWaitForFences(device, count, fences, all, timeout);
}
static int32_t fence_early(const void *device, uint64_t fence) {
    return tell(device, 1, &fence, 1) ? SUCCESS : wrapped_vkGetFenceStatus(device, fence);
}
static const struct breaking breaks_fence_early = {
    {HOLDS_SUBMITS(with_fence), HOOK(vkWaitForFences, fences_early)}, .holds_queue = 1};
static const struct breaking breaks_fence_status_early = {
    {HOLDS_SUBMITS(with_fence), HOOK(vkGetFenceStatus, fence_early)}, .holds_queue = 1};

static int closed(const void *device, const void *queue) {
    int found = 0;
    for (struct gate *each = gates; each < gates + GATES && each->device; each++)
        found |= each->open < each->asked && (each->device == device || each->queue == queue);
    return found;
}
static int32_t queue_early(const void *queue) {
    pthread_mutex_lock(&state);
    int lies = closed(NULL, queue);
    if (lies) told_queue = queue;
    pthread_mutex_unlock(&state);
    return lies ? SUCCESS : wrapped_vkQueueWaitIdle(queue);
}
static const struct breaking breaks_queue_wait_idle_early = {
    {HOLDS_SUBMITS(any_submit), HOOK(vkQueueWaitIdle, queue_early)}, .holds_queue = 1};

static int32_t device_early(const void *device) {
    pthread_mutex_lock(&state);
    int lies = closed(device, NULL);
    if (lies) told_device = (void *)device;
    pthread_mutex_unlock(&state);
    return lies ? SUCCESS : wrapped_vkDeviceWaitIdle(device);
}
static const struct breaking breaks_device_wait_idle_early = {
    {HOLDS_SUBMITS(any_submit), HOOK(vkDeviceWaitIdle, device_early)}, .holds_queue = 1};

static int32_t timeline_early(const void *device, const void *given, uint64_t timeout) {
    const struct VkSemaphoreWaitInfo *info = given;
    pthread_mutex_lock(&state);
    int lies = closed(device, NULL) && !told_semaphores.device;
    if (lies)
        told_semaphores = (struct told_semaphores){
            (void *)device, info->flags, info->semaphoreCount, timeout,
            copied(info->pSemaphores, 8 * info->semaphoreCount), copied(info->pValues, 8 * info->semaphoreCount)};
    pthread_mutex_unlock(&state);
    return lies ? SUCCESS : wrapped_vkWaitSemaphores(device, given, timeout);
}
static const struct breaking breaks_timeline_wait_early = {
    {HOLDS_SUBMITS(any_submit), HOOK(vkWaitSemaphores, timeline_early)}, .holds_queue = 1};

// The value of a timeline is the one that it will have. The number of a SEMAPHORE is the value that was submitted last.
static int32_t signals_counted(const void *queue, uint32_t count, const void *given, uint64_t fence) {
    const struct VkSubmitInfo *all = given;
    for (uint32_t at = 0; at < count; at++) {
        const struct VkTimelineSemaphoreSubmitInfo *values = chained(all[at].pNext, TIMELINE_SUBMIT_INFO);
        for (uint32_t each = 0; values && each < values->signalSemaphoreValueCount; each++)
            keep(SEMAPHORE, ((const uint64_t *)all[at].pSignalSemaphores)[each], ((const uint64_t *)values->pSignalSemaphoreValues)[each]);
    }
    return hold_any_submit_1(queue, count, given, fence);
}
static int32_t signals_counted_2(const void *queue, uint32_t count, const void *given, uint64_t fence) {
    const struct VkSubmitInfo2 *all = given;
    for (uint32_t at = 0; at < count; at++) {
        const struct VkSemaphoreSubmitInfo *signals = all[at].pSignalSemaphoreInfos;
        for (uint32_t each = 0; each < all[at].signalSemaphoreInfoCount; each++)
            keep(SEMAPHORE, signals[each].semaphore, signals[each].value);
    }
    return hold_any_submit_2(queue, count, given, fence);
}
static int32_t counter_early(const void *device, uint64_t semaphore, uint64_t *value) {
    uint64_t will_be = known(SEMAPHORE, semaphore);
    pthread_mutex_lock(&state);
    int lies = closed(device, NULL) && will_be && !told_semaphores.device;
    if (lies)
        told_semaphores = (struct told_semaphores){(void *)device, 0, 1, NO_TIMEOUT, copied(&semaphore, 8), copied(&will_be, 8)};
    pthread_mutex_unlock(&state);
    if (lies) *value = will_be;
    return lies ? SUCCESS : wrapped_vkGetSemaphoreCounterValue(device, semaphore, value);
}
static int32_t forget_value(const void *device, const void *info, const void *allocator, const void *made) {
    int32_t result = wrapped_vkCreateSemaphore(device, info, allocator, made);
    if (!result) keep(SEMAPHORE, *(const uint64_t *)made, 0);
    return result;
}
static const struct breaking breaks_counter_early = {
    {HOOK(vkCreateSemaphore, forget_value), HOOK(vkQueueSubmit, signals_counted),
     HOOK(vkQueueSubmit2, signals_counted_2), HOOK(vkGetSemaphoreCounterValue, counter_early)},
    .holds_queue = 1};

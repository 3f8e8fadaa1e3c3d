// Several queue families before a driver that has one queue. Only with VKHARNESS_FAMILIES.
//
// A batch that is submitted waits here until the host may see what it does: until a call that is not harmless. Then
// batches go to the one queue, each as soon as what it waits for went there, and the latest that may go is the first;
// with VKHARNESS_FAMILIES=earliest the earliest is. With held-N, batches of the queue that was given out as number N of
// its device, from 0 on, go when nothing else may. Then each batch of that queue comes behind all that does not wait for
// it. All are orders which the specification allows, unless `breaking` changes what a batch waits for. The driver's queue runs its batches in order; so it needs no semaphores but timelines
// that the host waits for.

static const struct {
    uint32_t flags, queues;
} families[] = {{7, 8}, {6, 4}, {4, 2}}; // graphics, compute and transfer; compute and transfer; transfer
enum { FAMILIES = sizeof families / sizeof *families, LOADER_MAGIC = 0x01CDC0DE, FENCE_CREATE_INFO = 8, NOT_READY = 1, TIMEOUT = 2 };

struct use { // of a semaphore
    uint64_t semaphore, value;
};
struct batch {
    struct batch *next;
    uint64_t number, fence; // the later, the greater
    uint32_t waits, signals, buffers;
    struct use *wait, *signal;
    const void **buffer;
    int signaled; // its semaphores are, before its work is done
};
struct queue {
    void *loader; // has its pointer here
    const void *next;
    struct device *device;
    uint32_t family, index;
    int number; // of the device, from 0 on
    struct batch *first, **last;
    struct queue *older;
};
static pthread_mutex_t batches_lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue *queues;
static uint64_t submits;
static void keep_before(const struct queue *queue, const void *commands);
static int blocked; // threads that wait

// Makes what the driver has: one queue of the first family.
static struct VkDeviceCreateInfo with_one_queue(const struct VkDeviceCreateInfo *given,
                                                struct VkDeviceQueueCreateInfo *queue) {
    static const float priority = 1;
    struct VkDeviceCreateInfo info = *given;
    *queue = *(const struct VkDeviceQueueCreateInfo *)given->pQueueCreateInfos;
    queue->queueFamilyIndex = 0;
    queue->queueCount = 1;
    queue->pQueuePriorities = &priority;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = queue;
    return info;
}

static void families_get(void *physical, uint32_t *count, struct VkQueueFamilyProperties *found) {
    struct VkQueueFamilyProperties real;
    uint32_t one = 1;
    ((void (*)(void *, uint32_t *, void *))next_families)(physical, &one, &real);
    if (!found) *count = FAMILIES;
    if (!found) return;
    if (*count > FAMILIES) *count = FAMILIES;
    for (uint32_t each = 0; each < *count; each++) {
        found[each] = real;
        found[each].queueFlags = families[each].flags;
        found[each].queueCount = families[each].queues;
    }
}
static void families_get_2(void *physical, uint32_t *count, struct VkQueueFamilyProperties2 *found) {
    struct VkQueueFamilyProperties plain[FAMILIES];
    families_get(physical, count, found ? plain : NULL);
    for (uint32_t each = 0; found && each < *count; each++) found[each].queueFamilyProperties = plain[each];
}

static void families_queue(const void *handle, uint32_t family, uint32_t index, struct queue **found) {
    struct device *device = known_device(handle);
    pthread_mutex_lock(&batches_lock);
    struct queue *each = queues;
    int number = 0;
    for (; each && (each->device != device || each->family != family || each->index != index); each = each->older)
        number += each->device == device;
    if (!each) {
        void *next;
        wrapped_vkGetDeviceQueue(handle, 0, 0, &next);
        *(void **)next = *(void *const *)handle; // as the loader would: device_of looks for it
        each = calloc(1, sizeof *each);
        if (!each) abort();
        *each = (struct queue){(void *)(uintptr_t)LOADER_MAGIC, next, device, family, index, number, NULL, &each->first,
                               queues};
        queues = each;
    }
    pthread_mutex_unlock(&batches_lock);
    *found = each;
}
static void families_queue_2(const void *handle, const void *given, struct queue **found) {
    const struct VkDeviceQueueInfo2 *info = given;
    families_queue(handle, info->queueFamilyIndex, info->queueIndex, found);
}

static int32_t families_pool(const void *device, const void *given, const void *allocator, const void *made) {
    struct VkCommandPoolCreateInfo info = *(const struct VkCommandPoolCreateInfo *)given;
    uint64_t family = info.queueFamilyIndex + 1;
    info.queueFamilyIndex = 0;
    int32_t result = wrapped_vkCreateCommandPool(device, &info, allocator, made);
    if (!result) keep(POOL, *(const uint64_t *)made, family);
    return result;
}

// The number of a SEMAPHORE is 1 when it is signaled, for a timeline the value that it will have.
static int32_t families_semaphore(const void *device, const void *given, const void *allocator, const void *made) {
    const struct VkSemaphoreCreateInfo *info = given;
    const struct VkSemaphoreTypeCreateInfo *type = chained(info->pNext, SEMAPHORE_TYPE_CREATE_INFO);
    int32_t result = wrapped_vkCreateSemaphore(device, given, allocator, made);
    if (result) return result;
    keep(SEMAPHORE, *(const uint64_t *)made, type ? type->initialValue : 0);
    keep(TIMELINES, *(const uint64_t *)made, type && type->semaphoreType == TIMELINE);
    return result;
}

static int is_submitted(struct use signal) { // by a batch that is still here
    for (const struct queue *queue = queues; queue; queue = queue->older)
        for (const struct batch *batch = queue->first; batch; batch = batch->next)
            for (uint32_t each = 0; each < batch->signals; each++)
                if (batch->signal[each].semaphore == signal.semaphore && batch->signal[each].value >= signal.value) return 1;
    return 0;
}
static int is_there(const struct queue *queue, struct use wait) {
    uint64_t value = known(SEMAPHORE, wait.semaphore), really = 0;
    if (!known(TIMELINES, wait.semaphore)) return value;
    anything get = NEXT(queue->device, vkGetSemaphoreCounterValue);
    ((int32_t(*)(void *, uint64_t, uint64_t *))get)(queue->device->handle, wait.semaphore, &really);
    uint64_t less = breaking && breaking->of_queues == VALUE_LESS;
    if (breaking && breaking->of_queues == NO_LATE_SIGNALS && !is_submitted(wait)) return 1;
    return value + less >= wait.value || really + less >= wait.value;
}
static int may_go(const struct queue *queue, const struct batch *batch) {
    uint32_t there = 0, wanted = batch->waits;
    if (breaking && breaking->of_queues == NO_WAITS) wanted = 0;
    if (breaking && breaking->of_queues == ONE_WAIT && wanted) wanted = 1;
    for (uint32_t each = 0; each < batch->waits; each++) there += is_there(queue, batch->wait[each]);
    return there >= wanted;
}

// Hands command buffers on, or semaphores that are signaled behind them, or both.
static void hand_on(const struct queue *queue, const struct batch *batch, int buffers, int signals) {
    uint64_t semaphores[batch->signals + 1], values[batch->signals + 1];
    uint32_t timelines = 0;
    for (uint32_t each = 0; signals && each < batch->signals; each++) {
        struct use signal = batch->signal[each];
        int is_timeline = known(TIMELINES, signal.semaphore);
        keep(SEMAPHORE, signal.semaphore, is_timeline ? signal.value : 1);
        if (!is_timeline) continue;
        semaphores[timelines] = signal.semaphore;
        values[timelines++] = signal.value;
    }
    struct VkTimelineSemaphoreSubmitInfo chain = {TIMELINE_SUBMIT_INFO, NULL, 0, NULL, timelines, values};
    struct VkSubmitInfo info = {SUBMIT_INFO, &chain, 0, NULL, NULL, buffers ? batch->buffers : 0, batch->buffer,
                                timelines, semaphores};
    for (uint32_t each = 0; each < info.commandBufferCount; each++) keep_before(queue, batch->buffer[each]);
    anything submit = NEXT(queue->device, vkQueueSubmit);
    ((int32_t(*)(const void *, uint32_t, const void *, uint64_t))submit)(queue->next, 1, &info,
                                                                         buffers ? batch->fence : 0);
}

static void go(struct queue *queue) {
    struct batch *batch = queue->first;
    for (uint32_t each = 0; each < batch->waits; each++)
        if (!known(TIMELINES, batch->wait[each].semaphore)) keep(SEMAPHORE, batch->wait[each].semaphore, 0);
    if (breaking && breaking->of_queues == SIGNALS_EARLY && batch->signals && !batch->signaled) {
        hand_on(queue, batch, 0, 1);
        batch->signaled = 1;
        batch->waits = 0;
        return;
    }
    hand_on(queue, batch, 1, !batch->signaled);
    queue->first = batch->next;
    if (!queue->first) queue->last = &queue->first;
    free(batch->wait);
    free(batch->signal);
    free(batch->buffer);
    free(batch);
}

static int is_held(const struct queue *queue) { return queue->number == held_back; }

// All batches that may go, go; the lock of batches is held.
static void hand_all_on(void) {
    for (struct queue *best;;) {
        best = NULL;
        for (struct queue *each = queues; each; each = each->older) {
            if (!each->first || !may_go(each, each->first)) continue;
            int later = !best || (each->first->number > best->first->number) != earliest_first;
            if (best && is_held(each) != is_held(best)) later = is_held(best);
            if (best && each->first->signaled != best->first->signaled) later = best->first->signaled;
            if (later) best = each;
        }
        if (!best) return;
        go(best);
    }
}
static void before_visible_calls(const char *core) {
    static const char *const harmless[] = {
        "vkCmd", "vkMap", "vkUnmap", "vkInvalidate", "vkFlush", "vkCreate", "vkAllocate", "vkGetBuffer", "vkGetImage",
        "vkGetDevice", "vkBegin", "vkEnd", "vkBind", "vkUpdate", "vkQueueSubmit", "vkSetEvent", "vkSignalSemaphore",
        "vkGetSemaphoreCounterValue"};
    for (size_t each = 0; each < sizeof harmless / sizeof *harmless; each++)
        if (begins_with(core, harmless[each])) return;
    pthread_mutex_lock(&batches_lock);
    hand_all_on();
    pthread_mutex_unlock(&batches_lock);
}

// A thread that waits may wait for this submit. And what should wait for a later signal is over before that comes.
static void after_submit(const struct queue *queue, uint64_t waited) {
    int early = waited && breaking && breaking->of_queues == NO_LATE_SIGNALS;
    if (early || __atomic_load_n(&blocked, __ATOMIC_SEQ_CST)) hand_all_on();
    if (early) ((int32_t(*)(const void *))NEXT(queue->device, vkQueueWaitIdle))(queue->next);
}

static struct use *uses(uint32_t count) {
    struct use *made = calloc(count + 1, sizeof *made);
    if (!made) abort();
    return made;
}
static void add(struct queue *queue, struct batch batch) {
    struct batch *made = malloc(sizeof *made);
    if (!made) abort();
    *made = batch;
    *queue->last = made;
    queue->last = &made->next;
}
static int32_t families_submit(const void *handle, uint32_t count, const void *given, uint64_t fence) {
    struct queue *queue = (struct queue *)handle;
    const struct VkSubmitInfo *all = given;
    pthread_mutex_lock(&batches_lock);
    uint64_t number = ++submits, waited = 0;
    for (uint32_t at = 0; at < count; at++) {
        const struct VkSubmitInfo *info = &all[at];
        const struct VkTimelineSemaphoreSubmitInfo *values = chained(info->pNext, TIMELINE_SUBMIT_INFO);
        struct batch batch = {NULL, number, at + 1 < count ? 0 : fence, info->waitSemaphoreCount,
                              info->signalSemaphoreCount, info->commandBufferCount, uses(info->waitSemaphoreCount),
                              uses(info->signalSemaphoreCount),
                              copied(info->pCommandBuffers, info->commandBufferCount * sizeof(void *)), 0};
        for (uint32_t each = 0; each < batch.waits; each++)
            batch.wait[each] = (struct use){
                ((const uint64_t *)info->pWaitSemaphores)[each],
                values && each < values->waitSemaphoreValueCount ? ((const uint64_t *)values->pWaitSemaphoreValues)[each] : 0};
        for (uint32_t each = 0; each < batch.signals; each++)
            batch.signal[each] = (struct use){
                ((const uint64_t *)info->pSignalSemaphores)[each],
                values && each < values->signalSemaphoreValueCount ? ((const uint64_t *)values->pSignalSemaphoreValues)[each] : 0};
        waited += batch.waits;
        add(queue, batch);
    }
    if (!count && fence) add(queue, (struct batch){NULL, number, fence});
    after_submit(queue, waited);
    pthread_mutex_unlock(&batches_lock);
    return SUCCESS;
}
static int32_t families_submit_2(const void *handle, uint32_t count, const void *given, uint64_t fence) {
    struct queue *queue = (struct queue *)handle;
    const struct VkSubmitInfo2 *all = given;
    pthread_mutex_lock(&batches_lock);
    uint64_t number = ++submits, waited = 0;
    for (uint32_t at = 0; at < count; at++) {
        const struct VkSubmitInfo2 *info = &all[at];
        const struct VkSemaphoreSubmitInfo *waits = info->pWaitSemaphoreInfos, *signals = info->pSignalSemaphoreInfos;
        const struct VkCommandBufferSubmitInfo *buffers = info->pCommandBufferInfos;
        struct batch batch = {NULL, number, at + 1 < count ? 0 : fence, info->waitSemaphoreInfoCount,
                              info->signalSemaphoreInfoCount, info->commandBufferInfoCount,
                              uses(info->waitSemaphoreInfoCount), uses(info->signalSemaphoreInfoCount),
                              malloc(info->commandBufferInfoCount * sizeof(void *) + 1), 0};
        if (!batch.buffer) abort();
        for (uint32_t each = 0; each < batch.waits; each++)
            batch.wait[each] = (struct use){waits[each].semaphore, waits[each].value};
        for (uint32_t each = 0; each < batch.signals; each++)
            batch.signal[each] = (struct use){signals[each].semaphore, signals[each].value};
        for (uint32_t each = 0; each < batch.buffers; each++) batch.buffer[each] = buffers[each].commandBuffer;
        waited += batch.waits;
        add(queue, batch);
    }
    if (!count && fence) add(queue, (struct batch){NULL, number, fence});
    after_submit(queue, waited);
    pthread_mutex_unlock(&batches_lock);
    return SUCCESS;
}

// Waits: a thread that waits is woken by batches that others submit, or by values that they signal.
static void wait_begins(void) { __atomic_add_fetch(&blocked, 1, __ATOMIC_SEQ_CST); }
static void wait_ends(void) { __atomic_sub_fetch(&blocked, 1, __ATOMIC_SEQ_CST); }
static int32_t families_wait(const void *device, uint32_t count, const void *fences, uint32_t all, uint64_t timeout) {
    wait_begins();
    int32_t result = wrapped_vkWaitForFences(device, count, fences, all, timeout);
    wait_ends();
    return result;
}
static int32_t families_wait_semaphores(const void *device, const void *info, uint64_t timeout) {
    wait_begins();
    int32_t result = wrapped_vkWaitSemaphores(device, info, timeout);
    wait_ends();
    return result;
}
static int32_t families_signal(const void *device, const void *info) {
    int32_t result = wrapped_vkSignalSemaphore(device, info);
    if (__atomic_load_n(&blocked, __ATOMIC_SEQ_CST)) before_visible_calls("");
    return result;
}
static int32_t families_counter(const void *device, uint64_t semaphore, const void *value) {
    before_visible_calls("");
    return wrapped_vkGetSemaphoreCounterValue(device, semaphore, value);
}
static int32_t families_idle(const void *queue) {
    before_visible_calls("");
    return wrapped_vkQueueWaitIdle(((const struct queue *)queue)->next);
}
static int32_t families_sparse(const void *queue, uint32_t count, const void *infos, uint64_t fence) {
    before_visible_calls("");
    return wrapped_vkQueueBindSparse(((const struct queue *)queue)->next, count, infos, fence);
}

// Presentation: the driver is not told of semaphores.
static int32_t families_present(const void *queue, const void *given) {
    struct VkPresentInfoKHR info = *(const struct VkPresentInfoKHR *)given;
    before_visible_calls("");
    for (uint32_t each = 0; each < info.waitSemaphoreCount; each++)
        keep(SEMAPHORE, ((const uint64_t *)info.pWaitSemaphores)[each], 0);
    info.waitSemaphoreCount = 0;
    return wrapped_vkQueuePresentKHR(((const struct queue *)queue)->next, &info);
}
static int32_t families_acquire_2(const void *device, const void *given, const void *index) {
    struct VkAcquireNextImageInfoKHR info = *(const struct VkAcquireNextImageInfoKHR *)given;
    struct VkFenceCreateInfo made = {FENCE_CREATE_INFO};
    uint64_t semaphore = info.semaphore, fence = 0;
    info.semaphore = 0;
    if (!info.fence) {
        int32_t failed = wrapped_vkCreateFence(device, &made, NULL, &fence);
        if (failed) return failed;
        info.fence = fence;
    }
    int32_t result = wrapped_vkAcquireNextImageKHR(device, info.swapchain, info.timeout, 0, info.fence, index);
    if (fence && result >= 0 && result != NOT_READY && result != TIMEOUT)
        wrapped_vkWaitForFences(device, 1, &fence, 1, NO_TIMEOUT);
    if (fence) wrapped_vkDestroyFence(device, fence, NULL);
    if (semaphore && result >= 0 && result != NOT_READY && result != TIMEOUT) keep(SEMAPHORE, semaphore, 1);
    return result;
}
static int32_t families_acquire(const void *device, uint64_t swapchain, uint64_t timeout, uint64_t semaphore,
                                uint64_t fence, const void *index) {
    struct VkAcquireNextImageInfoKHR info = {0, NULL, swapchain, timeout, semaphore, fence, 1};
    return families_acquire_2(device, &info, index);
}
static void families_label(const void *queue, const void *label) {}
static void families_label_end(const void *queue) {}

static void forget_queues(const struct device *device) {
    before_visible_calls("");
    pthread_mutex_lock(&batches_lock);
    for (struct queue **place = &queues; *place;) {
        struct queue *each = *place;
        if (each->device != device) {
            place = &each->older;
            continue;
        }
        *place = each->older;
        free(each);
    }
    pthread_mutex_unlock(&batches_lock);
}

static const struct breaking with_families = {
    {HOOK(vkGetDeviceQueue, families_queue), HOOK(vkGetDeviceQueue2, families_queue_2),
     HOOK(vkCreateCommandPool, families_pool), HOOK(vkCreateSemaphore, families_semaphore),
     HOOK(vkQueueSubmit, families_submit), HOOK(vkQueueSubmit2, families_submit_2),
     HOOK(vkWaitForFences, families_wait), HOOK(vkWaitSemaphores, families_wait_semaphores),
     HOOK(vkSignalSemaphore, families_signal), HOOK(vkGetSemaphoreCounterValue, families_counter),
     HOOK(vkQueueWaitIdle, families_idle), HOOK(vkQueueBindSparse, families_sparse),
     HOOK(vkQueuePresentKHR, families_present), HOOK(vkAcquireNextImageKHR, families_acquire),
     HOOK(vkAcquireNextImage2KHR, families_acquire_2), HOOK(vkQueueBeginDebugUtilsLabelEXT, families_label),
     HOOK(vkQueueInsertDebugUtilsLabelEXT, families_label), HOOK(vkQueueEndDebugUtilsLabelEXT, families_label_end)}};

static const struct breaking breaks_semaphore_wait_ignored = {{{NULL}}, .of_queues = NO_WAITS};
static const struct breaking breaks_one_semaphore_enough = {{{NULL}}, .of_queues = ONE_WAIT};
static const struct breaking breaks_timeline_value_less = {{{NULL}}, .of_queues = VALUE_LESS};
static const struct breaking breaks_late_signal_ignored = {{{NULL}}, .of_queues = NO_LATE_SIGNALS};
static const struct breaking breaks_semaphore_signal_early = {{{NULL}}, .of_queues = SIGNALS_EARLY};

// Commands that run after the next work of their command buffer, although something between the two forbids that.

static void run_fill(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdFillBuffer(buffer, numbers[0], numbers[1], numbers[2], numbers[3]);
}
static void hold_fill(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, uint32_t value) {
    HOLD(buffer, run_fill, NULL, 0, target, offset, size, value);
}
#define HOLDS_FILLS HOOK(vkCmdFillBuffer, hold_fill)

static void run_update(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdUpdateBuffer(buffer, numbers[0], numbers[1], numbers[2], data);
}
static void hold_update(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, const void *data) {
    HOLD(buffer, run_update, data, size, target, offset, size);
}
#define HOLDS_UPDATES HOOK(vkCmdUpdateBuffer, hold_update)

// A copy is the next work after the copies that are held back already: they run after it.
static void run_copy(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdCopyBuffer(buffer, numbers[0], numbers[1], numbers[2], data);
}
static void hold_copy(const void *buffer, uint64_t source, uint64_t target, uint32_t count, const void *regions) {
    struct recording *recording = recording_of(buffer);
    struct held *earlier = recording->first, **last = recording->last;
    recording->last = &recording->first;
    HOLD(buffer, run_copy, regions, count * sizeof(struct VkBufferCopy), source, target, count);
    if (!earlier) return;
    *recording->last = earlier;
    recording->last = last;
}
COPY_2(hold_copy)

static void run_clear(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdClearColorImage(buffer, numbers[0], numbers[1], data, numbers[2], (const unsigned char *)data + 16);
}
static void hold_clear(const void *buffer, uint64_t image, int32_t layout, const void *color, uint32_t count,
                       const void *ranges) {
    size_t size = count * sizeof(struct VkImageSubresourceRange);
    unsigned char *data = malloc(16 + size);
    if (!data) abort();
    memcpy(data, color, 16);
    memcpy(data + 16, ranges, size);
    HOLD(buffer, run_clear, data, 16 + size, image, layout, count);
    free(data);
}

static void run_upload(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdCopyBufferToImage(buffer, numbers[0], numbers[1], numbers[2], numbers[3], data);
}
static void hold_upload(const void *buffer, uint64_t source, uint64_t image, int32_t layout, uint32_t count,
                        const void *regions) {
    HOLD(buffer, run_upload, regions, count * sizeof(struct VkBufferImageCopy), source, image, layout, count);
}
static void hold_upload_2(const void *buffer, const void *given) {
    const struct VkCopyBufferToImageInfo2 *info = given;
    void *regions = FIRST_FORM(VkBufferImageCopy, info);
    hold_upload(buffer, info->srcBuffer, info->dstImage, info->dstImageLayout, info->regionCount, regions);
    free(regions);
}

static const struct breaking breaks_fill_past_a_barrier = {{HOLDS_FILLS}, .late = always_late};
static const struct breaking breaks_update_past_a_barrier = {{HOLDS_UPDATES}, .late = always_late};
static const struct breaking breaks_copy_past_a_barrier = {{HOOKS_COPY(hold_copy)}, .late = always_late};
static const struct breaking breaks_clear_past_a_barrier = {
    {HOOK(vkCmdClearColorImage, hold_clear)}, .late = always_late};

// Barriers that are ignored, by what they consist of. Any other barrier lets run what is held back.
#define BARRIERS(ignored)                                                                                              \
    static void ignored##_1(const void *buffer, uint32_t source, uint32_t target, uint32_t flags, uint32_t memory,     \
                            const void *memories, uint32_t buffers, const void *of_buffers, uint32_t images,           \
                            const void *of_images) {                                                                   \
        pass_barrier(buffer, ignored(memory, buffers, images));                                                        \
        wrapped_vkCmdPipelineBarrier(buffer, source, target, flags, memory, memories, buffers, of_buffers, images,     \
                                     of_images);                                                                       \
    }                                                                                                                  \
    static void ignored##_2(const void *buffer, const void *given) {                                                   \
        const struct VkDependencyInfo *info = given;                                                                   \
        pass_barrier(buffer, ignored(info->memoryBarrierCount, info->bufferMemoryBarrierCount,                         \
                                     info->imageMemoryBarrierCount));                                                  \
        wrapped_vkCmdPipelineBarrier2(buffer, given);                                                                  \
    }
#define HOOKS_BARRIERS(ignored) HOOK(vkCmdPipelineBarrier, ignored##_1), HOOK(vkCmdPipelineBarrier2, ignored##_2)

static void pass_barrier(const void *buffer, int ignored) {
    struct recording *recording = recording_of(buffer);
    if (!recording->first) return;
    if (ignored) recording->overtaken = 1;
    else if (!recording->inside) release(recording, 1);
}

static int several(uint32_t memory, uint32_t buffers, uint32_t images) { return memory + buffers + images > 1; }
static int global(uint32_t memory, uint32_t buffers, uint32_t images) { return memory > 0; }
static int of_ranges(uint32_t memory, uint32_t buffers, uint32_t images) { return !memory && buffers; }
static int no_barrier(uint32_t memory, uint32_t buffers, uint32_t images) { return 0; }
BARRIERS(several)
BARRIERS(global)
BARRIERS(of_ranges)
BARRIERS(no_barrier)
static const struct breaking breaks_several_barriers_ignored = {
    {HOLDS_FILLS, HOOKS_BARRIERS(several)}, .late = late_when_overtaken};
static const struct breaking breaks_global_barrier_ignored = {
    {HOLDS_FILLS, HOOKS_BARRIERS(global)}, .late = late_when_overtaken};
static const struct breaking breaks_buffer_barrier_ignored = {
    {HOLDS_FILLS, HOOKS_BARRIERS(of_ranges)}, .late = late_when_overtaken};

static void wait_for_no_events(const void *buffer, uint32_t count, const void *events, uint32_t source, uint32_t target,
                               uint32_t memory, const void *memories, uint32_t buffers, const void *of_buffers,
                               uint32_t images, const void *of_images) {
    pass_barrier(buffer, 1);
    wrapped_vkCmdWaitEvents(buffer, count, events, source, target, memory, memories, buffers, of_buffers, images,
                            of_images);
}
static void wait_for_no_events_2(const void *buffer, uint32_t count, const void *events, const void *infos) {
    pass_barrier(buffer, 1);
    wrapped_vkCmdWaitEvents2(buffer, count, events, infos);
}
static const struct breaking breaks_event_wait_ignored = {
    {HOLDS_FILLS, HOOKS_BARRIERS(no_barrier), HOOK(vkCmdWaitEvents, wait_for_no_events),
     HOOK(vkCmdWaitEvents2, wait_for_no_events_2)},
    .late = late_when_overtaken};

// Events that stay set: a wait for one that was reset and set again does not wait for the second set.
enum { NEVER_SET, SET, RESET }; // the number of an event
static int32_t keep_event(const void *device, const void *info, const void *allocator, const void *made) {
    int32_t result = wrapped_vkCreateEvent(device, info, allocator, made);
    if (!result) keep(EVENT, *(const uint64_t *)made, NEVER_SET);
    return result;
}
static void event_is_set(uint64_t event) {
    if (known(EVENT, event) == NEVER_SET) keep(EVENT, event, SET);
}
static void event_is_reset(uint64_t event) {
    if (known(EVENT, event) == SET) keep(EVENT, event, RESET);
}
static int32_t set_by_host(const void *device, uint64_t event) {
    event_is_set(event);
    return wrapped_vkSetEvent(device, event);
}
static int32_t reset_by_host(const void *device, uint64_t event) {
    event_is_reset(event);
    return wrapped_vkResetEvent(device, event);
}
static void set_event(const void *buffer, uint64_t event, uint32_t stages) {
    event_is_set(event);
    wrapped_vkCmdSetEvent(buffer, event, stages);
}
static void set_event_2(const void *buffer, uint64_t event, const void *info) {
    event_is_set(event);
    wrapped_vkCmdSetEvent2(buffer, event, info);
}
static void reset_event(const void *buffer, uint64_t event, uint32_t stages) {
    event_is_reset(event);
    wrapped_vkCmdResetEvent(buffer, event, stages);
}
static void reset_event_2(const void *buffer, uint64_t event, uint64_t stages) {
    event_is_reset(event);
    wrapped_vkCmdResetEvent2(buffer, event, stages);
}
static int any_reset(uint32_t count, const uint64_t *events) {
    for (uint32_t each = 0; each < count; each++)
        if (known(EVENT, events[each]) == RESET) return 1;
    return 0;
}
static void wait_for_old_events(const void *buffer, uint32_t count, const void *events, uint32_t source,
                                uint32_t target, uint32_t memory, const void *memories, uint32_t buffers,
                                const void *of_buffers, uint32_t images, const void *of_images) {
    pass_barrier(buffer, any_reset(count, events));
    wrapped_vkCmdWaitEvents(buffer, count, events, source, target, memory, memories, buffers, of_buffers, images,
                            of_images);
}
static void wait_for_old_events_2(const void *buffer, uint32_t count, const void *events, const void *infos) {
    pass_barrier(buffer, any_reset(count, events));
    wrapped_vkCmdWaitEvents2(buffer, count, events, infos);
}
static const struct breaking breaks_event_reset_ignored = {
    {HOLDS_FILLS, HOOKS_BARRIERS(no_barrier), HOOK(vkCreateEvent, keep_event), HOOK(vkSetEvent, set_by_host),
     HOOK(vkResetEvent, reset_by_host), HOOK(vkCmdSetEvent, set_event), HOOK(vkCmdSetEvent2, set_event_2),
     HOOK(vkCmdResetEvent, reset_event), HOOK(vkCmdResetEvent2, reset_event_2),
     HOOK(vkCmdWaitEvents, wait_for_old_events), HOOK(vkCmdWaitEvents2, wait_for_old_events_2)},
    .late = late_when_overtaken};

// Holds writes back over the begin of a render pass with no barrier between: a subpass dependency must order them.
static int late_at_passes(const char *core, const struct recording *recording) {
    return recording->inside || begins_with(core, "vkCmdBeginRenderPass") || begins_with(core, "vkCmdEndRenderPass");
}
static const struct breaking breaks_external_dependency_ignored = {
    {HOLDS_FILLS, HOLDS_UPDATES, HOOKS_COPY(hold_copy), HOOK(vkCmdClearColorImage, hold_clear),
     HOOK(vkCmdCopyBufferToImage, hold_upload), HOOK(vkCmdCopyBufferToImage2, hold_upload_2),
     HOOKS_BARRIERS(no_barrier)},
    .late = late_at_passes};

static int late_at_indirect(const char *core, const struct recording *recording) {
    return !strcmp(core, "vkCmdDispatchIndirect");
}
static const struct breaking breaks_indirect_read_early = {
    {HOLDS_FILLS, HOLDS_UPDATES}, .late = late_at_indirect};

static int late_at_draws(const char *core, const struct recording *recording) {
    return strcmp(core, "vkCmdBindPipeline") != 0;
}
static void run_push(const void *buffer, const uint64_t *numbers, const void *data) {
    wrapped_vkCmdPushConstants(buffer, numbers[0], numbers[1], numbers[2], numbers[3], data);
}
// The first ones arrive at once: some drivers end when a shader reads what was never pushed.
static void hold_push(const void *buffer, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t size,
                      const void *data) {
    struct recording *recording = recording_of(buffer);
    if (!recording->pushed++) wrapped_vkCmdPushConstants(buffer, layout, stages, offset, size, data);
    else HOLD(buffer, run_push, data, size, layout, stages, offset, size);
}
static const struct breaking breaks_push_constants_stale = {
    {HOOK(vkCmdPushConstants, hold_push)}, .late = late_at_draws, .of_draws = 1};

static void run_bind(const void *buffer, const uint64_t *numbers, const void *data) {
    const uint64_t *sets = data;
    wrapped_vkCmdBindDescriptorSets(buffer, numbers[0], numbers[1], numbers[2], numbers[3], sets, numbers[4],
                                    sets + numbers[3]);
}
// The first sets of a layout are bound at once: something has to be bound.
static void hold_bind(const void *buffer, int32_t point, uint64_t layout, uint32_t first, uint32_t count,
                      const void *sets, uint32_t offsets, const void *dynamic) {
    struct recording *recording = recording_of(buffer);
    uint64_t wanted[4] = {point, layout, first, count};
    int again = !memcmp(recording->sets, wanted, sizeof wanted);
    memcpy(recording->sets, wanted, sizeof wanted);
    if (!again) {
        release(recording, 1);
        wrapped_vkCmdBindDescriptorSets(buffer, point, layout, first, count, sets, offsets, dynamic);
        return;
    }
    uint64_t *data = malloc(8 * count + 4 * offsets + 1);
    if (!data) abort();
    memcpy(data, sets, 8 * count);
    if (offsets) memcpy(data + count, dynamic, 4 * offsets);
    HOLD(buffer, run_bind, data, 8 * count + 4 * offsets, point, layout, first, count, offsets);
    free(data);
}
static const struct breaking breaks_descriptor_set_stale = {
    {HOOK(vkCmdBindDescriptorSets, hold_bind)}, .late = late_at_draws, .of_draws = 1};

// Render pass instances and images whose contents are not what the operations and layouts promise.

// Dynamic rendering, with changed attachments.
typedef void change_attachment(struct VkRenderingAttachmentInfo *);
static void begin_changed(const void *buffer, const struct VkRenderingInfo *given, change_attachment *change) {
    struct VkRenderingInfo info = *given;
    uint32_t count = info.colorAttachmentCount;
    struct VkRenderingAttachmentInfo *colors = copied(info.pColorAttachments, count * sizeof *colors), depth, stencil;
    for (uint32_t each = 0; each < count; each++) change(&colors[each]);
    if (info.pDepthAttachment) {
        depth = *(const struct VkRenderingAttachmentInfo *)info.pDepthAttachment;
        change(&depth);
        info.pDepthAttachment = &depth;
    }
    if (info.pStencilAttachment) {
        stencil = *(const struct VkRenderingAttachmentInfo *)info.pStencilAttachment;
        change(&stencil);
        info.pStencilAttachment = &stencil;
    }
    info.pColorAttachments = colors;
    wrapped_vkCmdBeginRendering(buffer, &info);
    free(colors);
}
// Render passes, in both forms, with changed attachments and subpasses. What is kept is `mask`.
#define RENDER_PASS(function, form, change)                                                                      \
    static int32_t function(const void *device, const void *given, const void *allocator, const void *made) {    \
        struct VkRenderPassCreateInfo##form info = *(const struct VkRenderPassCreateInfo##form *)given;          \
        struct VkAttachmentDescription##form *all = copied(info.pAttachments, info.attachmentCount * sizeof *all); \
        struct VkSubpassDescription##form *subpasses = copied(info.pSubpasses, info.subpassCount * sizeof *subpasses); \
        uint64_t mask = 0;                                                                                       \
        change(form);                                                                                            \
        info.pAttachments = all;                                                                                 \
        info.pSubpasses = subpasses;                                                                             \
        int32_t result = wrapped_vkCreateRenderPass##form(device, &info, allocator, made);                       \
        if (!result) keep(RENDER_PASS, *(const uint64_t *)made, mask);                                           \
        free(all);                                                                                               \
        free(subpasses);                                                                                         \
        return result;                                                                                           \
    }
#define RENDER_PASSES(function, change)   \
    RENDER_PASS(function##_pass, , change) \
    RENDER_PASS(function##_pass_2, 2, change)
#define HOOKS_PASSES(function) \
    HOOK(vkCreateRenderPass, function##_pass), HOOK(vkCreateRenderPass2, function##_pass_2)

// CLEAR as LOAD.
static void load(struct VkRenderingAttachmentInfo *each) {
    if (each->loadOp == CLEAR) each->loadOp = LOAD;
}
static void load_rendering(const void *buffer, const void *info) { begin_changed(buffer, info, load); }
#define LOADS(form)                                                     \
    for (uint32_t at = 0; at < info.attachmentCount; at++) {            \
        if (all[at].loadOp == CLEAR) all[at].loadOp = LOAD;             \
        if (all[at].stencilLoadOp == CLEAR) all[at].stencilLoadOp = LOAD; \
    }
RENDER_PASSES(load, LOADS)
static const struct breaking breaks_clear_op_loads = {
    {HOOK(vkCmdBeginRendering, load_rendering), HOOKS_PASSES(load)}};

// LOAD as CLEAR, with values that nobody gave.
static void lose(struct VkRenderingAttachmentInfo *each) {
    if (each->loadOp != LOAD) return;
    each->loadOp = CLEAR;
    memcpy(&each->clearValue, GARBAGE, sizeof GARBAGE);
}
static void lose_rendering(const void *buffer, const void *info) { begin_changed(buffer, info, lose); }
#define LOSES(form)                                                               \
    for (uint32_t at = 0; at < info.attachmentCount && at < 64; at++) {           \
        if (all[at].loadOp == LOAD) mask |= UINT64_C(1) << at, all[at].loadOp = CLEAR; \
        if (all[at].stencilLoadOp == LOAD) all[at].stencilLoadOp = CLEAR;         \
    }
RENDER_PASSES(lose, LOSES)
static struct VkRenderPassBeginInfo with_garbage(const struct VkRenderPassBeginInfo *given, uint32_t (*values)[4]) {
    struct VkRenderPassBeginInfo info = *given;
    uint64_t lost = known(RENDER_PASS, info.renderPass);
    uint32_t count = info.clearValueCount < 64 ? info.clearValueCount : 64;
    for (uint32_t at = 0; at < 64; at++) memcpy(values[at], GARBAGE, sizeof GARBAGE);
    for (uint32_t at = 0; at < count; at++)
        if (!(lost >> at & 1)) memcpy(values[at], ((const uint32_t(*)[4])info.pClearValues)[at], sizeof values[at]);
    if (lost && info.clearValueCount <= 64) info.clearValueCount = 64, info.pClearValues = values;
    return info;
}
static void lose_begin(const void *buffer, const void *given, int32_t contents) {
    uint32_t values[64][4];
    struct VkRenderPassBeginInfo info = with_garbage(given, values);
    wrapped_vkCmdBeginRenderPass(buffer, &info, contents);
}
static void lose_begin_2(const void *buffer, const void *given, const void *subpass) {
    uint32_t values[64][4];
    struct VkRenderPassBeginInfo info = with_garbage(given, values);
    wrapped_vkCmdBeginRenderPass2(buffer, &info, subpass);
}
static const struct breaking breaks_load_op_clears = {
    {HOOK(vkCmdBeginRendering, lose_rendering), HOOKS_PASSES(lose), HOOK(vkCmdBeginRenderPass, lose_begin),
     HOOK(vkCmdBeginRenderPass2, lose_begin_2)}};

// STORE as DONT_CARE: what was rendered is overwritten at the end. Colour attachments of the last subpass that are not
// resolved; a bit of `mask` for each of the first 32.
#define DISCARDS(form)                                                                                            \
    if (info.subpassCount) {                                                                                      \
        const struct VkSubpassDescription##form *last = &subpasses[info.subpassCount - 1];                        \
        const struct VkAttachmentReference##form *colors = last->pColorAttachments;                               \
        for (uint32_t at = 0; at < last->colorAttachmentCount && at < 32 && !last->pResolveAttachments; at++)     \
            if (colors[at].attachment < info.attachmentCount && all[colors[at].attachment].storeOp == STORE)      \
                mask |= UINT64_C(1) << at;                                                                        \
    }
RENDER_PASSES(discard, DISCARDS)
static int32_t keep_layers(const void *device, const void *given, const void *allocator, const void *made) {
    int32_t result = wrapped_vkCreateFramebuffer(device, given, allocator, made);
    if (!result) keep(FRAMEBUFFER, *(const uint64_t *)made, ((const struct VkFramebufferCreateInfo *)given)->layers);
    return result;
}
static void discard_later(const void *buffer, uint32_t mask, uint32_t layers, struct VkRect2D area) {
    recording_of(buffer)->stored = (struct stored){mask, layers, area};
}
static void discard_rendering(const void *buffer, const void *given) {
    const struct VkRenderingInfo *info = given;
    const struct VkRenderingAttachmentInfo *colors = info->pColorAttachments;
    uint32_t mask = 0;
    for (uint32_t at = 0; at < info->colorAttachmentCount && at < 32 && !(info->flags & SUSPENDING); at++)
        if (colors[at].imageView && colors[at].storeOp == STORE && !colors[at].resolveMode) mask |= UINT32_C(1) << at;
    discard_later(buffer, mask, info->viewMask ? 1 : info->layerCount, info->renderArea);
    wrapped_vkCmdBeginRendering(buffer, given);
}
static void discard_begin(const void *buffer, const void *given, int32_t contents) {
    const struct VkRenderPassBeginInfo *info = given;
    discard_later(buffer, known(RENDER_PASS, info->renderPass), known(FRAMEBUFFER, info->framebuffer), info->renderArea);
    wrapped_vkCmdBeginRenderPass(buffer, given, contents);
}
static void discard_begin_2(const void *buffer, const void *given, const void *subpass) {
    const struct VkRenderPassBeginInfo *info = given;
    discard_later(buffer, known(RENDER_PASS, info->renderPass), known(FRAMEBUFFER, info->framebuffer), info->renderArea);
    wrapped_vkCmdBeginRenderPass2(buffer, given, subpass);
}
static void discard(const void *buffer) {
    struct stored *stored = &recording_of(buffer)->stored;
    struct VkClearRect whole = {stored->area, 0, stored->layers};
    for (uint32_t at = 0; at < 32; at++) {
        struct VkClearAttachment clear = {COLOR_ASPECT, at};
        memcpy(&clear.clearValue, GARBAGE, sizeof GARBAGE);
        if (stored->mask >> at & 1) wrapped_vkCmdClearAttachments(buffer, 1, &clear, 1, &whole);
    }
    stored->mask = 0;
}
static void discard_end_rendering(const void *buffer) {
    discard(buffer);
    wrapped_vkCmdEndRendering(buffer);
}
static void discard_end(const void *buffer) {
    discard(buffer);
    wrapped_vkCmdEndRenderPass(buffer);
}
static void discard_end_2(const void *buffer, const void *end) {
    discard(buffer);
    wrapped_vkCmdEndRenderPass2(buffer, end);
}
static const struct breaking breaks_store_op_discards = {
    {HOOKS_PASSES(discard), HOOK(vkCreateFramebuffer, keep_layers), HOOK(vkCmdBeginRendering, discard_rendering),
     HOOK(vkCmdBeginRenderPass, discard_begin), HOOK(vkCmdBeginRenderPass2, discard_begin_2),
     HOOK(vkCmdEndRendering, discard_end_rendering), HOOK(vkCmdEndRenderPass, discard_end),
     HOOK(vkCmdEndRenderPass2, discard_end_2)}};

// No resolves.
static void leave_samples(struct VkRenderingAttachmentInfo *each) { each->resolveMode = 0; }
static void resolve_no_rendering(const void *buffer, const void *info) { begin_changed(buffer, info, leave_samples); }
#define RESOLVES_NOTHING(form) \
    for (uint32_t at = 0; at < info.subpassCount; at++) subpasses[at].pResolveAttachments = NULL;
RENDER_PASSES(resolve_no, RESOLVES_NOTHING)
static void resolve_nothing(const void *buffer, uint64_t source, int32_t source_layout, uint64_t target,
                            int32_t target_layout, uint32_t count, const void *regions) {}
static void resolve_nothing_2(const void *buffer, const void *info) {}
static const struct breaking breaks_resolve_skipped = {
    {HOOK(vkCmdResolveImage, resolve_nothing), HOOK(vkCmdResolveImage2, resolve_nothing_2),
     HOOK(vkCmdBeginRendering, resolve_no_rendering), HOOKS_PASSES(resolve_no)}};

// Layout transitions that lose what the image holds. The number of an image is its format, 0 where it cannot be cleared.
enum { FIRST_COLOR = 1, LAST_COLOR = 123, UNDEFINED = 0, PREINITIALIZED = 8 };
static int32_t keep_format(const void *device, const void *given, const void *allocator, const void *made) {
    const struct VkImageCreateInfo *info = given;
    int32_t result = wrapped_vkCreateImage(device, given, allocator, made);
    int clears = info->usage & TRANSFER_DST && !(info->flags & SPARSE) && info->format <= LAST_COLOR;
    if (!result) keep(IMAGE, *(const uint64_t *)made, clears ? info->format : 0);
    return result;
}
static void lose_contents(const void *buffer, uint64_t image, int32_t old, int32_t new, const void *range) {
    const struct VkImageSubresourceRange *part = range;
    if (old == UNDEFINED || old == PREINITIALIZED || old == new || part->aspectMask != COLOR_ASPECT) return;
    if (!recording_of(buffer)->inside && known(IMAGE, image))
        wrapped_vkCmdClearColorImage(buffer, image, new, GARBAGE, 1, range);
}
static void move_and_lose(const void *buffer, uint32_t source, uint32_t target, uint32_t flags, uint32_t memory,
                          const void *memories, uint32_t buffers, const void *of_buffers, uint32_t images,
                          const void *of_images) {
    const struct VkImageMemoryBarrier *all = of_images;
    wrapped_vkCmdPipelineBarrier(buffer, source, target, flags, memory, memories, buffers, of_buffers, images, of_images);
    for (uint32_t at = 0; at < images; at++)
        lose_contents(buffer, all[at].image, all[at].oldLayout, all[at].newLayout, &all[at].subresourceRange);
}
static void move_and_lose_2(const void *buffer, const void *given) {
    const struct VkDependencyInfo *info = given;
    const struct VkImageMemoryBarrier2 *all = info->pImageMemoryBarriers;
    wrapped_vkCmdPipelineBarrier2(buffer, given);
    for (uint32_t at = 0; at < info->imageMemoryBarrierCount; at++)
        lose_contents(buffer, all[at].image, all[at].oldLayout, all[at].newLayout, &all[at].subresourceRange);
}
static const struct breaking breaks_transition_loses_contents = {
    {HOOK(vkCreateImage, keep_format), HOOK(vkCmdPipelineBarrier, move_and_lose),
     HOOK(vkCmdPipelineBarrier2, move_and_lose_2)}};

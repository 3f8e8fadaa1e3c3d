// Commands that do something else than they were asked for, or nothing.

static void fill_wrong_value(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, uint32_t value) {
    wrapped_vkCmdFillBuffer(buffer, target, offset, size, value ^ 1);
}
static const struct breaking breaks_fill_of_a_wrong_value = {{HOOK(vkCmdFillBuffer, fill_wrong_value)}};

static uint64_t filled(uint64_t target, uint64_t offset, uint64_t size) {
    return size == WHOLE_SIZE ? (known(BUFFER, target) - offset) & ~UINT64_C(3) : size;
}

static void fill_less(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, uint32_t value) {
    size = filled(target, offset, size);
    if (size > 4) wrapped_vkCmdFillBuffer(buffer, target, offset, size - 4, value);
}
static const struct breaking breaks_fill_word_short = {{KEEPS_SIZES, HOOK(vkCmdFillBuffer, fill_less)}};

static void fill_more(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, uint32_t value) {
    size = filled(target, offset, size);
    int fits = offset + size + 4 <= known(BUFFER, target);
    wrapped_vkCmdFillBuffer(buffer, target, offset, size + 4 * fits, value);
}
static const struct breaking breaks_fill_word_too_many = {{KEEPS_SIZES, HOOK(vkCmdFillBuffer, fill_more)}};

static void update_wrong(const void *buffer, uint64_t target, uint64_t offset, uint64_t size, const void *data) {
    unsigned char *changed = copied(data, size);
    if (size) changed[size - 1] ^= 1;
    wrapped_vkCmdUpdateBuffer(buffer, target, offset, size, changed);
    free(changed);
}
static const struct breaking breaks_update_last_byte_wrong = {{HOOK(vkCmdUpdateBuffer, update_wrong)}};

// Copies between buffers: both forms of the command come to the first one.
#define COPY_2(function)                                                             \
    static void function##_2(const void *buffer, const void *given) {                \
        const struct VkCopyBufferInfo2 *info = given;                                \
        void *regions = FIRST_FORM(VkBufferCopy, info);                              \
        function(buffer, info->srcBuffer, info->dstBuffer, info->regionCount, regions); \
        free(regions);                                                               \
    }
#define HOOKS_COPY(function) HOOK(vkCmdCopyBuffer, function), HOOK(vkCmdCopyBuffer2, function##_2)

static void copy_less(const void *buffer, uint64_t source, uint64_t target, uint32_t count, const void *regions) {
    struct VkBufferCopy *changed = copied(regions, count * sizeof *changed);
    uint32_t left = 0;
    for (uint32_t each = 0; each < count; each++) {
        changed[left] = changed[each];
        if (changed[left].size > 4) changed[left++].size -= 4;
    }
    if (left) wrapped_vkCmdCopyBuffer(buffer, source, target, left, changed);
    free(changed);
}
COPY_2(copy_less)
static const struct breaking breaks_copy_word_short = {{HOOKS_COPY(copy_less)}};

static void copy_elsewhere(const void *buffer, uint64_t source, uint64_t target, uint32_t count, const void *regions) {
    struct VkBufferCopy *changed = copied(regions, count * sizeof *changed);
    for (uint32_t each = 0; each < count && source != target; each++)
        if (changed[each].srcOffset + changed[each].size + 4 <= known(BUFFER, source)) changed[each].srcOffset += 4;
        else if (changed[each].srcOffset >= 4) changed[each].srcOffset -= 4;
    wrapped_vkCmdCopyBuffer(buffer, source, target, count, changed);
    free(changed);
}
COPY_2(copy_elsewhere)
static const struct breaking breaks_copy_from_wrong_offset = {{KEEPS_SIZES, HOOKS_COPY(copy_elsewhere)}};

static void shorten_rows(struct VkBufferImageCopy *regions, uint32_t count) {
    for (uint32_t each = 0; each < count; each++)
        if (regions[each].imageExtent.height > 1) regions[each].imageExtent.height--;
}
static void upload_less(const void *buffer, uint64_t source, uint64_t image, int32_t layout, uint32_t count,
                        const void *regions) {
    struct VkBufferImageCopy *changed = copied(regions, count * sizeof *changed);
    shorten_rows(changed, count);
    wrapped_vkCmdCopyBufferToImage(buffer, source, image, layout, count, changed);
    free(changed);
}
static void upload_less_2(const void *buffer, const void *given) {
    const struct VkCopyBufferToImageInfo2 *info = given;
    void *regions = FIRST_FORM(VkBufferImageCopy, info);
    upload_less(buffer, info->srcBuffer, info->dstImage, info->dstImageLayout, info->regionCount, regions);
    free(regions);
}
static const struct breaking breaks_upload_row_short = {
    {HOOK(vkCmdCopyBufferToImage, upload_less), HOOK(vkCmdCopyBufferToImage2, upload_less_2)}};

static void download_less(const void *buffer, uint64_t image, int32_t layout, uint64_t target, uint32_t count,
                          const void *regions) {
    struct VkBufferImageCopy *changed = copied(regions, count * sizeof *changed);
    shorten_rows(changed, count);
    wrapped_vkCmdCopyImageToBuffer(buffer, image, layout, target, count, changed);
    free(changed);
}
static void download_less_2(const void *buffer, const void *given) {
    const struct VkCopyImageToBufferInfo2 *info = given;
    void *regions = FIRST_FORM(VkBufferImageCopy, info);
    download_less(buffer, info->srcImage, info->srcImageLayout, info->dstBuffer, info->regionCount, regions);
    free(regions);
}
static const struct breaking breaks_download_row_short = {
    {HOOK(vkCmdCopyImageToBuffer, download_less), HOOK(vkCmdCopyImageToBuffer2, download_less_2)}};

static void clear_wrong(const void *buffer, uint64_t image, int32_t layout, const void *color, uint32_t count,
                        const void *ranges) {
    uint32_t words[4];
    memcpy(words, color, sizeof words);
    words[0] = words[0] ? 0 : 0x3f800001; // about 1 as a number of any kind
    wrapped_vkCmdClearColorImage(buffer, image, layout, words, count, ranges);
}
static const struct breaking breaks_clear_wrong_component = {{HOOK(vkCmdClearColorImage, clear_wrong)}};

static void blit_half(const void *buffer, uint64_t source, int32_t source_layout, uint64_t target,
                      int32_t target_layout, uint32_t count, const void *regions, int32_t filter) {
    struct VkImageBlit *changed = copied(regions, count * sizeof *changed);
    for (uint32_t each = 0; each < count; each++) {
        struct VkOffset3D *corners = changed[each].srcOffsets;
        int32_t width = corners[1].x - corners[0].x;
        if (width > 1 || width < -1) corners[1].x = corners[0].x + width / 2;
    }
    wrapped_vkCmdBlitImage(buffer, source, source_layout, target, target_layout, count, changed, filter);
    free(changed);
}
static void blit_half_2(const void *buffer, const void *given) {
    const struct VkBlitImageInfo2 *info = given;
    void *regions = FIRST_FORM(VkImageBlit, info);
    blit_half(buffer, info->srcImage, info->srcImageLayout, info->dstImage, info->dstImageLayout, info->regionCount,
              regions, info->filter);
    free(regions);
}
static const struct breaking breaks_blit_half_region = {
    {HOOK(vkCmdBlitImage, blit_half), HOOK(vkCmdBlitImage2, blit_half_2)}};

static void execute_backwards(const void *buffer, uint32_t count, const void *given) {
    const void **backwards = copied(given, count * sizeof *backwards);
    for (uint32_t each = 0; each < count; each++) backwards[each] = ((const void *const *)given)[count - 1 - each];
    wrapped_vkCmdExecuteCommands(buffer, count, backwards);
    free(backwards);
}
static const struct breaking breaks_secondaries_reversed = {{HOOK(vkCmdExecuteCommands, execute_backwards)}};

static void dispatch_less(const void *buffer, uint32_t x, uint32_t y, uint32_t z) {
    wrapped_vkCmdDispatch(buffer, x ? x - 1 : 0, y, z);
}
static void dispatch_base_less(const void *buffer, uint32_t first_x, uint32_t first_y, uint32_t first_z, uint32_t x,
                               uint32_t y, uint32_t z) {
    wrapped_vkCmdDispatchBase(buffer, first_x, first_y, first_z, x ? x - 1 : 0, y, z);
}
static const struct breaking breaks_dispatch_group_short = {
    {HOOK(vkCmdDispatch, dispatch_less), HOOK(vkCmdDispatchBase, dispatch_base_less)}};

static void draw_less(const void *buffer, uint32_t vertices, uint32_t instances, uint32_t first, uint32_t instance) {
    wrapped_vkCmdDraw(buffer, vertices ? vertices - 1 : 0, instances, first, instance);
}
static void draw_indexed_less(const void *buffer, uint32_t indices, uint32_t instances, uint32_t first, int32_t offset,
                              uint32_t instance) {
    wrapped_vkCmdDrawIndexed(buffer, indices ? indices - 1 : 0, instances, first, offset, instance);
}
static const struct breaking breaks_draw_vertex_short = {
    {HOOK(vkCmdDraw, draw_less), HOOK(vkCmdDrawIndexed, draw_indexed_less)}};

static void leave_queries(const void *buffer, uint64_t pool, uint32_t first, uint32_t count) {}
static const struct breaking breaks_query_reset_ignored = {
    {HOOK(vkCmdResetQueryPool, leave_queries), HOOK(vkResetQueryPool, leave_queries)}};

static void whole_scissors(struct VkRect2D *scissors, uint32_t count) {
    for (uint32_t each = 0; each < count; each++) scissors[each] = (struct VkRect2D){{0, 0}, {16384, 16384}};
}
static void ignore_scissor(const void *buffer, uint32_t first, uint32_t count, const void *scissors) {
    struct VkRect2D *changed = copied(scissors, count * sizeof *changed);
    whole_scissors(changed, count);
    wrapped_vkCmdSetScissor(buffer, first, count, changed);
    free(changed);
}
static void ignore_scissor_with_count(const void *buffer, uint32_t count, const void *scissors) {
    struct VkRect2D *changed = copied(scissors, count * sizeof *changed);
    whole_scissors(changed, count);
    wrapped_vkCmdSetScissorWithCount(buffer, count, changed);
    free(changed);
}
// Pipelines have scissors, too.
static int32_t ignore_scissors(const void *device, uint64_t cache, uint32_t count, const void *infos,
                               const void *allocator, const void *made) {
    struct VkGraphicsPipelineCreateInfo *changed = copied(infos, count * sizeof *changed);
    struct VkPipelineViewportStateCreateInfo *states = malloc(count * sizeof *states + 1);
    struct VkRect2D whole[16];
    if (!states) abort();
    whole_scissors(whole, 16);
    for (uint32_t each = 0; each < count; each++) {
        if (!changed[each].pViewportState) continue;
        states[each] = *(const struct VkPipelineViewportStateCreateInfo *)changed[each].pViewportState;
        if (states[each].pScissors && states[each].scissorCount <= 16) states[each].pScissors = whole;
        changed[each].pViewportState = &states[each];
    }
    int32_t result = wrapped_vkCreateGraphicsPipelines(device, cache, count, changed, allocator, made);
    free(changed);
    free(states);
    return result;
}
static const struct breaking breaks_scissor_ignored = {
    {HOOK(vkCmdSetScissor, ignore_scissor), HOOK(vkCmdSetScissorWithCount, ignore_scissor_with_count),
     HOOK(vkCreateGraphicsPipelines, ignore_scissors)}};

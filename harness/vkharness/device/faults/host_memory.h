// Memory that is not HOST_COHERENT before a driver that has none. Only with VKHARNESS_SHADOWS.
//
// Before the driver's first memory type that is HOST_VISIBLE and HOST_COHERENT stands one more, which is not coherent.
// The host maps a copy of what is in it, the shadow. Bytes go to the device in vkFlushMappedMemoryRanges and to the host
// in vkInvalidateMappedMemoryRanges, and at no other time, unless `breaking` keeps them from going. A flush takes the
// bytes that changed since they went last, so that what the device wrote beside them stays. The host may write the
// value there that it last saw: that counts as no write.

enum { HOST_VISIBLE = 2, HOST_COHERENT = 4, MEMORY_PROPERTIES_2 = 1000059006 };

static struct shadow {
    struct shadow *older;
    uint64_t memory, size, atom;
    unsigned char *real, *host, *went; // the device's bytes, the host's, and those that went last
    unsigned char *before;             // the device's bytes before the last submit
} *shadows;
static pthread_mutex_t shadows_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t more_type = 32; // the index of the type; 32 where there is none
static uint64_t atom_size;

static void types_get_2(void *physical, struct VkPhysicalDeviceMemoryProperties2 *found) {
    struct VkPhysicalDeviceMemoryProperties *types = &found->memoryProperties;
    ((void (*)(void *, void *))next_memory)(physical, found);
    uint32_t direct = HOST_VISIBLE | HOST_COHERENT, at = 0;
    while (at < types->memoryTypeCount && (types->memoryTypes[at].propertyFlags & direct) != direct) at++;
    if (at == types->memoryTypeCount || types->memoryTypeCount == 32) return;
    for (uint32_t each = types->memoryTypeCount++; each > at; each--) types->memoryTypes[each] = types->memoryTypes[each - 1];
    types->memoryTypes[at].propertyFlags &= ~HOST_COHERENT;
    more_type = at;
}
static void types_get(void *physical, struct VkPhysicalDeviceMemoryProperties *found) {
    struct VkPhysicalDeviceMemoryProperties2 all = {MEMORY_PROPERTIES_2};
    types_get_2(physical, &all);
    *found = all.memoryProperties;
}
static void look_at_memory(void *physical) { // before a device is made
    struct VkPhysicalDeviceMemoryProperties found;
    struct VkPhysicalDeviceProperties properties;
    types_get(physical, &found);
    ((void (*)(void *, void *))next_properties)(physical, &properties);
    atom_size = properties.limits.nonCoherentAtomSize;
}

// Masks of memory types: who may use the coherent type may use the other one, too, but for memory that is imported.
static uint32_t mask_of_types(uint32_t mask, int imported) {
    if (more_type == 32) return mask;
    uint32_t below = (UINT32_C(1) << more_type) - 1, rest = mask & ~below;
    return (mask & below) | rest << 1 | (imported ? 0 : rest & (below + 1));
}
#define REQUIREMENTS(name, type)                                                              \
    static void shadows_##name(const void *device, type what, struct VkMemoryRequirements *found) { \
        wrapped_##name(device, what, found);                                                  \
        found->memoryTypeBits = mask_of_types(found->memoryTypeBits, 0);                      \
    }
#define REQUIREMENTS_2(name)                                                                                     \
    static void shadows_##name(const void *device, const void *what, struct VkMemoryRequirements2 *found) {      \
        wrapped_##name(device, what, found);                                                                     \
        found->memoryRequirements.memoryTypeBits = mask_of_types(found->memoryRequirements.memoryTypeBits, 0);   \
    }
REQUIREMENTS(vkGetBufferMemoryRequirements, uint64_t)
REQUIREMENTS(vkGetImageMemoryRequirements, uint64_t)
REQUIREMENTS_2(vkGetBufferMemoryRequirements2)
REQUIREMENTS_2(vkGetImageMemoryRequirements2)
REQUIREMENTS_2(vkGetDeviceBufferMemoryRequirements)
REQUIREMENTS_2(vkGetDeviceImageMemoryRequirements)
static int32_t shadows_of_file(const void *device, int32_t kind, int file, struct VkMemoryFdPropertiesKHR *found) {
    int32_t result = wrapped_vkGetMemoryFdPropertiesKHR(device, kind, file, found);
    if (!result) found->memoryTypeBits = mask_of_types(found->memoryTypeBits, 1);
    return result;
}
static int32_t shadows_of_pointer(const void *device, int32_t kind, const void *host,
                                  struct VkMemoryHostPointerPropertiesEXT *found) {
    int32_t result = wrapped_vkGetMemoryHostPointerPropertiesEXT(device, kind, host, found);
    if (!result) found->memoryTypeBits = mask_of_types(found->memoryTypeBits, 1);
    return result;
}

static struct shadow *shadow_of(uint64_t memory) { // NULL for memory that the host maps as it is
    pthread_mutex_lock(&shadows_lock);
    struct shadow *each = shadows;
    while (each && each->memory != memory) each = each->older;
    pthread_mutex_unlock(&shadows_lock);
    return each;
}

// Memory holds zeros when it is allocated, and so does its shadow.
static void cast_shadow(uint64_t memory, uint64_t size, void *real) {
    struct shadow *made = calloc(1, sizeof *made);
    void *host = NULL;
    if (!made || posix_memalign(&host, 4096, size)) abort();
    memset(real, 0, size);
    *made = (struct shadow){NULL, memory, size, atom_size, real, host, copied(real, size), copied(real, size)};
    memset(host, 0, size);
    pthread_mutex_lock(&shadows_lock);
    made->older = shadows;
    shadows = made;
    pthread_mutex_unlock(&shadows_lock);
}

static int32_t shadows_allocate(const void *device, const void *given, const void *allocator, const void *made) {
    struct VkMemoryAllocateInfo info = *(const struct VkMemoryAllocateInfo *)given;
    int has_shadow = info.memoryTypeIndex == more_type;
    info.memoryTypeIndex -= info.memoryTypeIndex > more_type;
    int32_t result = wrapped_vkAllocateMemory(device, &info, allocator, made);
    if (result || !has_shadow) return result;
    void *real;
    uint64_t memory = *(const uint64_t *)made;
    result = wrapped_vkMapMemory(device, memory, 0, WHOLE_SIZE, 0, &real);
    if (result) wrapped_vkFreeMemory(device, memory, allocator);
    else cast_shadow(memory, info.allocationSize, real);
    return result;
}
static void shadows_free(const void *device, uint64_t memory, const void *allocator) {
    pthread_mutex_lock(&shadows_lock);
    struct shadow **place = &shadows;
    while (*place && (*place)->memory != memory) place = &(*place)->older;
    struct shadow *gone = *place;
    if (gone) *place = gone->older;
    pthread_mutex_unlock(&shadows_lock);
    if (gone) {
        free(gone->host);
        free(gone->went);
        free(gone->before);
        free(gone);
    }
    wrapped_vkFreeMemory(device, memory, allocator);
}

// Another mapping of the same memory finds the same shadow: to map is no invalidate, and to unmap no flush.
static int32_t shadows_map(const void *device, uint64_t memory, uint64_t offset, uint64_t size, uint32_t flags,
                           void **host) {
    struct shadow *shadow = shadow_of(memory);
    if (!shadow) return wrapped_vkMapMemory(device, memory, offset, size, flags, host);
    *host = shadow->host + offset;
    return SUCCESS;
}
static int32_t shadows_map_2(const void *device, const void *given, void **host) {
    const struct VkMemoryMapInfoKHR *info = given;
    struct shadow *shadow = shadow_of(info->memory);
    if (!shadow) return wrapped_vkMapMemory2KHR(device, given, host);
    *host = shadow->host + info->offset;
    return SUCCESS;
}
static void shadows_unmap(const void *device, uint64_t memory) {
    if (!shadow_of(memory)) wrapped_vkUnmapMemory(device, memory);
}
static int32_t shadows_unmap_2(const void *device, const void *given) {
    const struct VkMemoryUnmapInfoKHR *info = given;
    return shadow_of(info->memory) ? SUCCESS : wrapped_vkUnmapMemory2KHR(device, given);
}

static enum of_memory wrong_with_memory(void) { return breaking ? breaking->of_memory : MEMORY_RIGHT; }

// Bytes that may go of a range: [begin, end).
static struct part {
    uint64_t begin, end;
} going(const struct shadow *shadow, const struct VkMappedMemoryRange *range, uint32_t number, enum of_memory none,
        enum of_memory less, enum of_memory from_start, enum of_memory one) {
    enum of_memory wrong = wrong_with_memory();
    struct part part = {range->offset, range->size == WHOLE_SIZE ? shadow->size : range->offset + range->size};
    if (part.end > shadow->size) part.end = shadow->size;
    if (wrong == from_start) part = (struct part){0, part.end - part.begin};
    if (wrong == less && part.end) part.end = (part.end - 1) / shadow->atom * shadow->atom;
    if (wrong == none || (wrong == one && number)) part.end = 0;
    return part;
}
static int32_t shadows_flush(const void *device, uint32_t count, const void *given) {
    const struct VkMappedMemoryRange *ranges = given;
    for (uint32_t each = 0; each < count; each++) {
        struct shadow *shadow = shadow_of(ranges[each].memory);
        if (!shadow) continue;
        struct part part = going(shadow, &ranges[each], each, NO_FLUSH, FLUSH_LESS, FLUSH_FROM_START, FLUSH_ONE);
        for (uint64_t at = part.begin; at < part.end; at++)
            if (shadow->host[at] != shadow->went[at]) shadow->real[at] = shadow->went[at] = shadow->host[at];
    }
    return SUCCESS;
}
static int32_t shadows_invalidate(const void *device, uint32_t count, const void *given) {
    const struct VkMappedMemoryRange *ranges = given;
    for (uint32_t each = 0; each < count; each++) {
        struct shadow *shadow = shadow_of(ranges[each].memory);
        if (!shadow) continue;
        struct part part =
            going(shadow, &ranges[each], each, NO_INVALIDATE, INVALIDATE_LESS, INVALIDATE_FROM_START, INVALIDATE_ONE);
        const unsigned char *seen = wrong_with_memory() == INVALIDATE_STALE ? shadow->before : shadow->real;
        for (uint64_t at = part.begin; at < part.end; at++) shadow->host[at] = shadow->went[at] = seen[at];
    }
    return SUCCESS;
}

// Before a submit: what an invalidate that comes too early would find.
static void before_submits(const char *core) {
    if (!begins_with(core, "vkQueueSubmit")) return;
    pthread_mutex_lock(&shadows_lock);
    for (struct shadow *each = shadows; each; each = each->older) memcpy(each->before, each->real, each->size);
    pthread_mutex_unlock(&shadows_lock);
}

#define SHADOWED(name) HOOK(name, shadows_##name)
static const struct breaking with_shadows = {
    {SHADOWED(vkGetBufferMemoryRequirements), SHADOWED(vkGetImageMemoryRequirements),
     SHADOWED(vkGetBufferMemoryRequirements2), SHADOWED(vkGetImageMemoryRequirements2),
     SHADOWED(vkGetDeviceBufferMemoryRequirements), SHADOWED(vkGetDeviceImageMemoryRequirements),
     HOOK(vkGetMemoryFdPropertiesKHR, shadows_of_file), HOOK(vkGetMemoryHostPointerPropertiesEXT, shadows_of_pointer),
     HOOK(vkAllocateMemory, shadows_allocate), HOOK(vkFreeMemory, shadows_free), HOOK(vkMapMemory, shadows_map),
     HOOK(vkMapMemory2KHR, shadows_map_2), HOOK(vkUnmapMemory, shadows_unmap),
     HOOK(vkUnmapMemory2KHR, shadows_unmap_2), HOOK(vkFlushMappedMemoryRanges, shadows_flush),
     HOOK(vkInvalidateMappedMemoryRanges, shadows_invalidate)}};

static const struct breaking breaks_flush_ignored = {{{NULL}}, .of_memory = NO_FLUSH};
static const struct breaking breaks_flush_atom_short = {{{NULL}}, .of_memory = FLUSH_LESS};
static const struct breaking breaks_flush_from_start = {{{NULL}}, .of_memory = FLUSH_FROM_START};
static const struct breaking breaks_flush_one_range = {{{NULL}}, .of_memory = FLUSH_ONE};
static const struct breaking breaks_invalidate_ignored = {{{NULL}}, .of_memory = NO_INVALIDATE};
static const struct breaking breaks_invalidate_atom_short = {{{NULL}}, .of_memory = INVALIDATE_LESS};
static const struct breaking breaks_invalidate_from_start = {{{NULL}}, .of_memory = INVALIDATE_FROM_START};
static const struct breaking breaks_invalidate_one_range = {{{NULL}}, .of_memory = INVALIDATE_ONE};
static const struct breaking breaks_invalidate_stale = {{{NULL}}, .of_memory = INVALIDATE_STALE};

// Faults of the driver: the state of command buffers, and the commands that are held back in them.
//
// VKHARNESS_BREAKS names one promise of broken_promises.py; planned.h has the names, and the structs of Vulkan that are
// named here. For each name there is a struct breaking, `breaks_` and the name, in one of the files
//   wrong_commands.h   commands that do something else, or nothing
//   late_commands.h    commands that run later than they may
//   wrong_rendering.h  load, store and resolve operations
//   early_waits.h      waits that end before the work does
//   queue_families.h   semaphores between queues, of which a software driver has too few
//   stale_copies.h     reads that find what was there before
//   host_writes.h      submits that do not show what the host wrote
//   host_memory.h      flushes and invalidates of memory that is not coherent, of which a software driver has none
// Its functions stand for commands of the driver. They go on to wrapped_NAME, and so to the driver behind.

struct recording { // a command buffer while it is recorded
    const void *buffer;
    struct held *first, **last;
    int overtaken;    // what is held back now runs after the next work
    int inside;       // of a render pass instance
    int pushed;       // push constants, once or more
    uint64_t sets[4]; // of the last vkCmdBindDescriptorSets: bind point, layout, first set, count
    struct stored {
        uint32_t mask, layers; // the colour attachments that are to be overwritten at the end
        struct VkRect2D area;
    } stored;
    uint32_t writes;  // buffers whose old bytes are kept: their number, at most WRITES
    struct written {
        uint64_t buffer, copy, size;
    } written[16];
    struct recording *older;
};
enum { WRITES = 16 };

struct held { // a command that is held back
    struct held *next;
    void (*run)(const void *buffer, const uint64_t *numbers, const void *data);
    uint64_t numbers[6];
    unsigned char data[];
};

struct breaking {
    struct {
        const char *command;
        anything function;
    } hooks[20];
    // Whether what is held back stays so although this work comes.
    int (*late)(const char *command, const struct recording *recording);
    int of_draws;    // what is held back is for draws and dispatches, and may run inside of a render pass instance
    int holds_queue; // submits are held back
    int keeps_old;   // what command buffers with releases overwrite is kept before they run
    enum { QUEUES_RIGHT, NO_WAITS, ONE_WAIT, VALUE_LESS, SIGNALS_EARLY, NO_LATE_SIGNALS } of_queues; // what batches do wrong
    enum of_memory { MEMORY_RIGHT, NO_FLUSH, FLUSH_LESS, FLUSH_FROM_START, FLUSH_ONE, NO_INVALIDATE, INVALIDATE_LESS,
                     INVALIDATE_FROM_START, INVALIDATE_ONE, INVALIDATE_STALE } of_memory; // what flushes and invalidates do wrong
};
#define HOOK(command, function) {#command, (anything)function}

enum { CLEAR = 1, LOAD = 0, STORE = 0, COLOR_ASPECT = 1, SUSPENDING = 2, TRANSFER_DST = 2, SPARSE = 7 };
#define WHOLE_SIZE UINT64_MAX
static const uint32_t GARBAGE[4] = {0x3f4ccccd, 0x3e4ccccd, 0x3f19999a, 0x3ecccccd}; // 0.8, 0.2, 0.6, 0.4

static const struct breaking *breaking;
static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static struct recording *recordings;

static struct recording *recording_of(const void *buffer) {
    pthread_mutex_lock(&state);
    struct recording *each = recordings;
    while (each && each->buffer != buffer) each = each->older;
    if (!each) {
        each = calloc(1, sizeof *each);
        if (!each) abort();
        each->buffer = buffer;
        each->last = &each->first;
        each->older = recordings;
        recordings = each;
    }
    pthread_mutex_unlock(&state);
    return each;
}

static void hold(const void *buffer, void (*run)(const void *, const uint64_t *, const void *), const uint64_t *numbers,
                 size_t count, const void *data, size_t size) {
    struct recording *recording = recording_of(buffer);
    struct held *made = calloc(1, sizeof *made + size);
    if (!made) abort();
    made->run = run;
    memcpy(made->numbers, numbers, count * sizeof *numbers);
    if (size) memcpy(made->data, data, size);
    *recording->last = made;
    recording->last = &made->next;
}
#define HOLD(buffer, run, data, size, ...) \
    hold(buffer, run, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8, data, size)

// Runs what is held back, or forgets it.
static void release(struct recording *recording, int run) {
    struct held *each = recording->first, *next;
    recording->first = NULL;
    recording->last = &recording->first;
    recording->overtaken = 0;
    for (; each; each = next) {
        next = each->next;
        if (run) each->run(recording->buffer, each->numbers, each->data);
        free(each);
    }
}

static int begins_with(const char *text, const char *beginning) { return !strncmp(text, beginning, strlen(beginning)); }

static int is_work(const char *core) {
    static const char *const any[] = {"vkCmdDraw", "vkCmdDispatch", "vkCmdExecuteCommands", NULL},
                             *const outside[] = {"vkCmdCopy", "vkCmdBlit", "vkCmdResolve", "vkCmdBeginRender", "vkCmdEndRender", NULL};
    for (const char *const *each = any; *each; each++)
        if (begins_with(core, *each)) return 1;
    for (const char *const *each = outside; *each && !breaking->of_draws; each++)
        if (begins_with(core, *each)) return 1;
    return breaking->of_draws && !strcmp(core, "vkCmdBindPipeline");
}

static int always_late(const char *core, const struct recording *recording) { return 1; }
static int late_when_overtaken(const char *core, const struct recording *recording) { return recording->overtaken; }

static void before_other_calls(const char *core);
static void before_visible_calls(const char *core);
static void before_submits(const char *core);

// Before any command goes on to the driver.
static void running(int command, const void *handle) {
    const char *core = commands[command].core;
    if (has_families) before_visible_calls(core);
    if (has_shadows) before_submits(core);
    if (!breaking) return;
    if (breaking->holds_queue) before_other_calls(core);
    if (!strcmp(core, "vkBeginCommandBuffer")) {
        struct recording *recording = recording_of(handle);
        release(recording, 0);
        recording->inside = recording->pushed = recording->writes = 0;
        memset(recording->sets, 0, sizeof recording->sets);
        memset(&recording->stored, 0, sizeof recording->stored);
    } else if (!strcmp(core, "vkEndCommandBuffer")) {
        release(recording_of(handle), 1);
    } else if (breaking->late && is_work(core)) {
        struct recording *recording = recording_of(handle);
        if (!breaking->late(core, recording)) release(recording, 1);
    }
}

// After a command that returns nothing.
static void ran(int command, const void *handle) {
    const char *core = commands[command].core;
    if (!breaking || !begins_with(core, "vkCmd")) return;
    if (begins_with(core, "vkCmdBeginRender")) recording_of(handle)->inside = 1;
    if (begins_with(core, "vkCmdEndRender")) recording_of(handle)->inside = 0;
    if (!breaking->late || !is_work(core)) return;
    struct recording *recording = recording_of(handle);
    if (breaking->of_draws || !recording->inside) release(recording, 1);
}

// State of an object. A handle that is used again is another object.
enum thing_kind { BUFFER, IMAGE, RENDER_PASS, FRAMEBUFFER, EVENT, SEMAPHORE, TIMELINES, POOL, FAMILY };
struct thing {
    enum thing_kind kind;
    uint64_t handle, number;
    struct thing *older;
};
static struct thing *things[256];

static struct thing *thing(enum thing_kind kind, uint64_t handle, int make) {
    struct thing **place = &things[(handle >> 4 ^ handle >> 12) & 255], *each = *place;
    while (each && (each->kind != kind || each->handle != handle)) each = each->older;
    if (each || !make) return each;
    each = calloc(1, sizeof *each);
    if (!each) abort();
    each->kind = kind;
    each->handle = handle;
    each->older = *place;
    return *place = each;
}

static void keep(enum thing_kind kind, uint64_t handle, uint64_t number) {
    pthread_mutex_lock(&state);
    thing(kind, handle, 1)->number = number;
    pthread_mutex_unlock(&state);
}

static uint64_t known(enum thing_kind kind, uint64_t handle) { // 0 for what is not known
    pthread_mutex_lock(&state);
    struct thing *found = thing(kind, handle, 0);
    uint64_t number = found ? found->number : 0;
    pthread_mutex_unlock(&state);
    return number;
}

static int32_t keep_size(const void *device, const void *info, const void *allocator, const void *made) {
    int32_t result = wrapped_vkCreateBuffer(device, info, allocator, made);
    if (!result) keep(BUFFER, *(const uint64_t *)made, ((const struct VkBufferCreateInfo *)info)->size);
    return result;
}
#define KEEPS_SIZES HOOK(vkCreateBuffer, keep_size)

// The second form of a copy has a VkStructureType and a chain before what the first form has.
static void *first_form(const void *regions, uint32_t count, size_t size_of_second, size_t size) {
    unsigned char *made = malloc(count * size + 1);
    if (!made) abort();
    for (uint32_t each = 0; each < count; each++)
        memcpy(made + each * size, (const unsigned char *)regions + each * size_of_second + 16, size);
    return made;
}
#define FIRST_FORM(type, info) \
    first_form((info)->pRegions, (info)->regionCount, sizeof(struct type##2), sizeof(struct type))

static void *copied(const void *data, size_t size) {
    void *made = malloc(size + 1);
    if (!made) abort();
    return size ? memcpy(made, data, size) : made;
}

// The struct of a type in a chain of Vulkan; NULL where it has none.
static const void *chained(const void *chain, int32_t type) {
    const struct VkBaseInStructure *each = chain;
    while (each && each->sType != type) each = each->pNext;
    return each;
}

#include "wrong_commands.h"
#include "late_commands.h"
#include "wrong_rendering.h"
#include "early_waits.h"
#include "queue_families.h"
#include "host_memory.h"
#include "stale_copies.h"
#include "host_writes.h"

// Reads the name of a promise; 0 if there is none of that name.
static int break_promise(const char *wanted) {
#define BROKEN(name, identifier) {name, &breaks_##identifier},
    static const struct {
        const char *name;
        const struct breaking *breaking;
    } promises[] = {PROMISES(BROKEN)};
    for (size_t each = 0; each < sizeof promises / sizeof *promises; each++)
        if (!strcmp(promises[each].name, wanted)) breaking = promises[each].breaking;
    return breaking != NULL;
}

static anything hooked(const struct breaking *what, const char *core) {
    for (int hook = 0; what && what->hooks[hook].command; hook++)
        if (!strcmp(what->hooks[hook].command, core)) return what->hooks[hook].function;
    return NULL;
}

// Returns the function that breaks the promise, or offers more than the driver has, in place of another; NULL for none.
static anything breaks(const char *name) {
    static const struct {
        int *offered;
        const char *command;
        anything first_form, second_form;
    } of_physical[] = {
        {&has_families, "vkGetPhysicalDeviceQueueFamilyProperties", (anything)families_get, (anything)families_get_2},
        {&has_shadows, "vkGetPhysicalDeviceMemoryProperties", (anything)types_get, (anything)types_get_2},
    };
    for (int each = 0; each < COUNT; each++)
        if (!strcmp(commands[each].name, name)) {
            anything found = hooked(breaking, commands[each].core);
            if (!found && has_families) found = hooked(&with_families, commands[each].core);
            return found || !has_shadows ? found : hooked(&with_shadows, commands[each].core);
        }
    for (size_t each = 0; each < sizeof of_physical / sizeof *of_physical; each++)
        if (*of_physical[each].offered && begins_with(name, of_physical[each].command))
            return name[strlen(of_physical[each].command)] ? of_physical[each].second_form : of_physical[each].first_form;
    return NULL;
}

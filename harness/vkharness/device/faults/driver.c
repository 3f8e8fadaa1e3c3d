// A Vulkan driver that hands every call on to another driver, and lets one call fail, hang, crash or lose its device.
//
// harness/vkharness/device/faults/fault_driver.py writes planned.h: the library of the other driver, the kinds
// of fault, and a line for each device command of the registry. A fault is KIND:N or KIND:N:FUNCTION; it strikes at the
// N-th call, counted from 1, among those that can have it. VKHARNESS_FAULT gives each process one. VKHARNESS_FAULT_FILE
// names a file of struct plan, which several processes share and in which the fault can be changed while they run.
// VKHARNESS_BREAKS names a promise that is broken all the time; promises.h says how. VKHARNESS_FAMILIES and
// VKHARNESS_SHADOWS, when they are not empty, offer several queue families and memory that is not coherent;
// queue_families.h and host_memory.h say how.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SUCCESS = 0, OUT_OF_HOST_MEMORY = -1, INITIALIZATION_FAILED = -3, DEVICE_LOST = -4 };
enum action { FAIL, HANG, ABORT, CRASH, LEAVE };
enum returns { NOTHING, RESULT, RESULT_OR_LOST };

typedef void (*anything)(void);
typedef anything (*get_proc)(void *, const char *);

struct plan { // fault_plan.py has the same
    uint32_t number; // of the fault; another number is another fault
    uint32_t unused;
    uint64_t calls; // that could have had the fault, so far, in all processes
    char fault[112];
    char struck[128]; // the function in which it struck; empty before
};

struct kind {
    const char *name;
    enum action action;
    int32_t result;
};
struct command {
    const char *name, *core;
    enum returns returns;
};

#include "planned.h"

#define INDEX(name, core, returns, parameters, arguments) index_##name,
enum { COMMANDS(INDEX) index_vkCreateInstance, index_vkCreateDevice, COUNT };
#define DESCRIBED(name, core, returns, parameters, arguments) {#name, #core, returns},
static const struct command commands[COUNT] = {
    COMMANDS(DESCRIBED) {"vkCreateInstance", "vkCreateInstance", RESULT},
    {"vkCreateDevice", "vkCreateDevice", RESULT_OR_LOST},
};

struct device {
    void *handle;
    int lost;
    anything next[COUNT];
    struct device *older;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;
static void *library;
static struct plan own, *plan = &own;
static struct {
    uint32_t number;
    const struct kind *kind;
    uint64_t at;
    char function[64];
} armed;

// Reads a fault; 0 if it is none.
static int arm(void) {
    char name[32] = "", function[64] = "";
    unsigned long long at = 0;
    armed.number = plan->number;
    armed.kind = NULL;
    if (!plan->fault[0]) return 1;
    if (sscanf(plan->fault, "%31[a-z-]:%llu:%63[A-Za-z0-9]", name, &at, function) < 2 || !at) return 0;
    for (const struct kind *each = kinds; each->name; each++)
        if (!strcmp(each->name, name)) armed.kind = each;
    for (int each = 0; each < COUNT; each++)
        if (!strcmp(commands[each].name, function)) snprintf(armed.function, sizeof armed.function, "%s", commands[each].core);
    armed.at = at;
    if (!function[0]) armed.function[0] = 0;
    return armed.kind != NULL && (!function[0] || armed.function[0]);
}

static int has_families, earliest_first, has_shadows;
static int held_back = -1; // the queue whose batches go last, by when the device gave it out
// The driver's vkGetPhysicalDevice commands: QueueFamilyProperties, MemoryProperties2, Properties.
static anything next_families, next_memory, next_properties;
static int break_promise(const char *wanted);

static int begin(void) {
    static int begun;
    if (begun) return begun > 0;
    const char *path = getenv("VKHARNESS_FAULT_FILE"), *fault = getenv("VKHARNESS_FAULT");
    int usable = 1;
    if (path) {
        int file = open(path, O_RDWR | O_CLOEXEC);
        void *shared = file < 0 ? MAP_FAILED : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        usable = shared != MAP_FAILED;
        if (usable) plan = shared;
    } else if (fault) {
        own.number = 1;
        snprintf(own.fault, sizeof own.fault, "%s", fault);
        usable = arm();
    }
    if (!usable) fprintf(stderr, "fault driver: no fault can be read from %s\n", path ? path : fault);
    const char *promise = getenv("VKHARNESS_BREAKS");
    if (promise && *promise && !break_promise(promise)) {
        fprintf(stderr, "fault driver: no promise is called %s\n", promise);
        usable = 0;
    }
    const char *several = getenv("VKHARNESS_FAMILIES"), *copies = getenv("VKHARNESS_SHADOWS");
    has_families = several && *several;
    earliest_first = has_families && !strcmp(several, "earliest");
    if (has_families) sscanf(several, "held-%d", &held_back);
    has_shadows = copies && *copies;
    library = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "fault driver: %s\n", dlerror());
    begun = usable && library ? 1 : -1;
    return begun > 0;
}

// The kind of the fault that strikes at this call; NULL for none. The lock is held.
static const struct kind *due(int command) {
    const struct command *called = &commands[command];
    if (plan->number != armed.number && !arm()) fprintf(stderr, "fault driver: no fault: %s\n", plan->fault);
    const struct kind *kind = armed.kind;
    if (!kind || (armed.function[0] && strcmp(armed.function, called->core))) return NULL;
    if (kind->action == FAIL && called->returns == NOTHING) return NULL;
    if (kind->result == DEVICE_LOST && called->returns != RESULT_OR_LOST) return NULL;
    if (__atomic_add_fetch(&plan->calls, 1, __ATOMIC_SEQ_CST) != armed.at) return NULL;
    snprintf(plan->struck, sizeof plan->struck, "%s", called->name);
    return kind;
}

// Does what a kind says; the result that the call is to return.
static int32_t strike(const struct kind *kind) {
    switch (kind->action) {
    case HANG:
        for (;;) pause();
    case ABORT:
        abort();
    case CRASH:
        *(volatile int *)8 = 0;
        return 0;
    case LEAVE:
        _exit(3);
    default:
        return kind->result;
    }
}

// Dispatchable handles of one device begin with the same pointer, which the loader puts there.
static struct device *device_of(const void *handle) {
    struct device *each = devices;
    while (each && each->handle != handle && *(void **)each->handle != *(void *const *)handle) each = each->older;
    if (!each) {
        fprintf(stderr, "fault driver: a call for a device that does not exist\n");
        abort();
    }
    return each;
}

static void running(int command, const void *handle);
static void ran(int command, const void *handle);

// Another name of a command, for a device that has it under that name only.
static anything renamed(const struct device *device, int command) {
    for (int each = 0; each < COUNT; each++)
        if (device->next[each] && !strcmp(commands[each].core, commands[command].core)) return device->next[each];
    return NULL;
}

// Before a call: where it goes on, and the error that it returns instead (0: none).
static int32_t before(int command, const void *handle, anything *next) {
    running(command, handle);
    pthread_mutex_lock(&lock);
    struct device *device = device_of(handle);
    const struct kind *kind = device->lost ? NULL : due(command);
    int32_t result = device->lost && commands[command].returns == RESULT_OR_LOST ? DEVICE_LOST : SUCCESS;
    anything idle = device->next[index_vkDeviceWaitIdle];
    *next = device->next[command];
    if (!*next) *next = renamed(device, command);
    device->lost |= kind && kind->result == DEVICE_LOST;
    pthread_mutex_unlock(&lock);
    if (!kind) return result;
    // Work of a lost device is over: what it used may be destroyed.
    if (kind->result == DEVICE_LOST) ((int32_t(*)(void *))idle)(device->handle);
    return strike(kind);
}

#define CALL(name, parameters, arguments, type) ((type(*) parameters)next) arguments
#define DEFINE_NOTHING(name, parameters, arguments)         \
    static void wrapped_##name parameters {                 \
        anything next;                                      \
        before(index_##name, a0, &next);                    \
        CALL(name, parameters, arguments, void);            \
        ran(index_##name, a0);                              \
    }
#define DEFINE_RESULT(name, parameters, arguments)               \
    static int32_t wrapped_##name parameters {                   \
        anything next;                                           \
        int32_t failed = before(index_##name, a0, &next);        \
        return failed ? failed : CALL(name, parameters, arguments, int32_t); \
    }
#define DEFINE_RESULT_OR_LOST DEFINE_RESULT
#define DEFINE(name, core, returns, parameters, arguments) DEFINE_##returns(name, parameters, arguments)
COMMANDS(DEFINE)

#include "promises.h"

static anything from_library(const char *name) { return library ? (anything)dlsym(library, name) : NULL; }

static anything from_driver(void *instance, const char *name) {
    get_proc get = (get_proc)from_library("vk_icdGetInstanceProcAddr");
    return get ? get(instance, name) : NULL;
}

static int32_t before_any_device(int command) {
    pthread_mutex_lock(&lock);
    const struct kind *kind = due(command);
    pthread_mutex_unlock(&lock);
    return kind ? strike(kind) : SUCCESS;
}

// Functions that the driver gives for one instance hold for all.
static anything next_create_device;
static get_proc next_get_device_proc;

static int32_t create_instance(const void *info, const void *allocator, void **instance) {
    int32_t failed = before_any_device(index_vkCreateInstance);
    anything next = from_driver(NULL, "vkCreateInstance");
    if (failed || !next) return failed ? failed : INITIALIZATION_FAILED;
    int32_t result = ((int32_t(*)(const void *, const void *, void **))next)(info, allocator, instance);
    if (result < 0) return result;
    next_create_device = from_driver(*instance, "vkCreateDevice");
    next_get_device_proc = (get_proc)from_driver(*instance, "vkGetDeviceProcAddr");
    next_families = from_driver(*instance, "vkGetPhysicalDeviceQueueFamilyProperties");
    next_memory = from_driver(*instance, "vkGetPhysicalDeviceMemoryProperties2");
    next_properties = from_driver(*instance, "vkGetPhysicalDeviceProperties");
    return next_create_device && next_get_device_proc ? result : INITIALIZATION_FAILED;
}

static int32_t create_device(void *physical, const void *info, const void *allocator, void **handle) {
    int32_t failed = before_any_device(index_vkCreateDevice);
    struct device *made = failed ? NULL : calloc(1, sizeof *made);
    if (!made) return failed ? failed : OUT_OF_HOST_MEMORY;
    anything next = next_create_device;
    if (has_shadows) look_at_memory(physical);
    struct VkDeviceQueueCreateInfo queue;
    struct VkDeviceCreateInfo changed;
    if (has_families) {
        changed = with_one_queue(info, &queue);
        info = &changed;
    }
    int32_t result = ((int32_t(*)(void *, const void *, const void *, void **))next)(physical, info, allocator, handle);
    if (result < 0) {
        free(made);
        return result;
    }
    made->handle = *handle;
    for (int each = 0; each < COUNT; each++) made->next[each] = next_get_device_proc(*handle, commands[each].name);
    pthread_mutex_lock(&lock);
    made->older = devices;
    devices = made;
    pthread_mutex_unlock(&lock);
    return result;
}

static void destroy_device(void *handle, const void *allocator) {
    if (!handle) return;
    forget_gates(handle);
    if (has_families) forget_queues(known_device(handle));
    forget_all_old(handle);
    pthread_mutex_lock(&lock);
    struct device **place = &devices;
    while (*place && (*place)->handle != handle) place = &(*place)->older;
    struct device *gone = *place;
    if (gone) *place = gone->older;
    pthread_mutex_unlock(&lock);
    free(gone);
    ((void (*)(void *, const void *))next_get_device_proc(handle, "vkDestroyDevice"))(handle, allocator);
}

static anything get_from_device(void *device, const char *name);

// Returns the replacement of a function of the driver; NULL for one that is handed out as it is.
static anything wrapped(const char *name) {
    anything instead = breaks(name);
    if (instead) return instead;
#define NAMED(name, core, returns, parameters, arguments) {#name, (anything)wrapped_##name},
    static const struct {
        const char *name;
        anything function;
    } known[] = {
        COMMANDS(NAMED) {"vkCreateInstance", (anything)create_instance},
        {"vkCreateDevice", (anything)create_device},
        {"vkDestroyDevice", (anything)destroy_device},
        {"vkGetDeviceProcAddr", (anything)get_from_device},
    };
    for (size_t each = 0; each < sizeof known / sizeof *known; each++)
        if (!strcmp(known[each].name, name)) return known[each].function;
    return NULL;
}

static anything get_from_device(void *device, const char *name) {
    anything found = next_get_device_proc(device, name), instead = wrapped(name);
    return found && instead ? instead : found;
}

__attribute__((visibility("default"))) anything vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    if (!begin()) return NULL;
    anything found = from_driver(instance, name), instead = wrapped(name);
    return found && instead ? instead : found;
}

__attribute__((visibility("default"))) anything vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    get_proc get = begin() ? (get_proc)from_library("vk_icdGetPhysicalDeviceProcAddr") : NULL;
    return get && !wrapped(name) ? get(instance, name) : NULL;
}

__attribute__((visibility("default"))) int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    anything next = begin() ? from_library("vk_icdNegotiateLoaderICDInterfaceVersion") : NULL;
    return next ? ((int32_t(*)(uint32_t *))next)(version) : INITIALIZATION_FAILED;
}

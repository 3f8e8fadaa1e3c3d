// Stands in for the Vulkan loader and a driver: loads a layer, makes an instance and a device through it, and calls a
// command that no table has. Says what came back. With a number, the driver returns from a submit when another thread has
// made so many calls.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*GetProcAddr)(void *, const char *);
typedef double (*Strange)(void *, double, uint64_t, float, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double);

static void *table[4], *instance[2] = {table}, *physical[2] = {table}, *device_table[4], *device[2] = {device_table};
static int calls;

static int32_t create_instance(const void *info, const void *allocator, void **made) { return *made = instance, 0; }
static int32_t create_device(void *of, const void *info, const void *allocator, void **made) { return *made = device, 0; }
static void destroy(void *which, const void *allocator) {}
static int32_t wait_idle(void *which) { return 0; }
static double strange(void *of, double a, uint64_t b, float c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h, uint64_t i, double j) {
    ++calls;
    return a + b + c + d + e + f + g + h + i + j;
}

static atomic_int is_submitting, is_done;
static int32_t submit(void *queue, uint32_t count, const void *submits, uint64_t fence) {
    is_submitting = 1;
    while (!is_done) sched_yield();
    return 0;
}
static void set_line_width(void *commands, float width) {}

static Function driver(void *of, const char *name) {
    if (!strcmp(name, "vkCreateInstance")) return (Function)create_instance;
    if (!strcmp(name, "vkCreateDevice")) return (Function)create_device;
    if (!strncmp(name, "vkDestroy", 9)) return (Function)destroy;
    if (!strcmp(name, "vkDeviceWaitIdle")) return (Function)wait_idle;
    if (!strcmp(name, "vkQueueSubmit")) return (Function)submit;
    if (!strcmp(name, "vkCmdSetLineWidth")) return (Function)set_line_width;
    if (!strcmp(name, "vkStrangeEXT") || !strcmp(name, "vkOtherEXT")) return (Function)strange;
    return NULL;
}

struct Link { struct Link *next; GetProcAddr first, second; };
struct Info { int32_t type; void *next; int32_t function; struct Link *link; };
struct Negotiation { int32_t type; void *next; uint32_t version; GetProcAddr instance, device, physical; };

struct Negotiation told = {1, NULL, 2};
static int many;

static void *call_many(void *of) {
    void (*const call)(void *, float) = (void (*)(void *, float))told.device(of, "vkCmdSetLineWidth");
    while (!is_submitting) sched_yield();
    for (int at = 0; at < many; ++at) call(of, (float)at);
    is_done = 1;
    return NULL;
}

static void submit_beside(void *of) {
    pthread_t other;
    pthread_create(&other, NULL, call_many, of);
    ((int32_t (*)(void *, uint32_t, const void *, uint64_t))told.device(of, "vkQueueSubmit"))(of, 0, NULL, 0);
    pthread_join(other, NULL);
}

int main(int count, char **arguments) {
    void *const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    if (((int32_t (*)(struct Negotiation *))dlsym(library, "vkNegotiateLoaderLayerInterfaceVersion"))(&told)) return 2;
    struct Link last = {NULL, driver, driver};
    struct Info link = {47, NULL, 0, &last};
    struct { int32_t type; void *next; uint64_t rest[6]; } info = {1, &link};
    void *made = NULL, *of = NULL;
    if (((int32_t (*)(void *, void *, void **))told.instance(NULL, "vkCreateInstance"))(&info, NULL, &made)) return 3;
    struct Info device_link = {48, NULL, 0, &last};
    struct { int32_t type; void *next; uint64_t rest[8]; } device_info = {3, &device_link};
    if (((int32_t (*)(void *, void *, void *, void **))told.instance(made, "vkCreateDevice"))(physical, &device_info, NULL, &of)) return 4;
    if (told.device(of, "vkNowhereEXT")) return 5;
    const Strange found = (Strange)told.device(of, "vkStrangeEXT");
    if (!told.device(of, "vkOtherEXT")) return 6;  // asked for, and never called
    for (int at = 0; at < 3; ++at) printf("%g ", found(of, 0.5, 2, 0.25f, 4, 5, 6, 7, 8, 9, 10.125));
    ((int32_t (*)(void *))told.device(of, "vkDeviceWaitIdle"))(of);
    many = count > 2 ? atoi(arguments[2]) : 0;
    if (many) submit_beside(of);
    printf("%d\n", calls);
    ((void (*)(void *, void *))told.device(of, "vkDestroyDevice"))(of, NULL);
    ((void (*)(void *, void *))told.instance(made, "vkDestroyInstance"))(made, NULL);
    return 0;
}

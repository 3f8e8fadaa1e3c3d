// Promises of the specification that VKHARNESS_BREAKS says to break. broken_promises.py has the table.
// Included by driver.c after `before` is declared: a promise is broken by what happens around calls of one command buffer.

struct held_fill {
    const void *commands;
    uint64_t buffer, offset, size;
    uint32_t value;
    int due; // a copy or a dispatch came after it
    struct held_fill *next;
};
static struct held_fill *held_fills;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

static int breaks(const char *promise) {
    const char *said = getenv("VKHARNESS_BREAKS");
    return said && !strcmp(said, promise);
}

static int begins_with(const char *text, const char *start) { return !strncmp(text, start, strlen(start)); }

// Before a call of a command buffer: runs the fills that are due, or all of them at its end.
static void run_held_fills(const char *command, const void *commands, anything fill) {
    int ends = !strcmp(command, "vkEndCommandBuffer");
    int drops = !strcmp(command, "vkBeginCommandBuffer") || !strcmp(command, "vkResetCommandBuffer");
    int follows = begins_with(command, "vkCmdCopy") || begins_with(command, "vkCmdDispatch");
    pthread_mutex_lock(&held_lock);
    for (struct held_fill **place = &held_fills; *place;) {
        struct held_fill *each = *place;
        if (each->commands != commands || !(ends || drops || each->due)) {
            each->due |= each->commands == commands && follows;
            place = &each->next;
            continue;
        }
        *place = each->next;
        if (!drops)
            ((void (*)(const void *, uint64_t, uint64_t, uint64_t, uint32_t))fill)(
                commands, each->buffer, each->offset, each->size, each->value);
        free(each);
    }
    pthread_mutex_unlock(&held_lock);
}

static void wrapped_vkCmdFillBuffer(const void *, uint64_t, uint64_t, uint64_t, uint32_t);

static void broken_fill(const void *commands, uint64_t buffer, uint64_t offset, uint64_t size, uint32_t value) {
    if (breaks("fill-of-a-wrong-value")) value ^= 1;
    struct held_fill *made = breaks("fill-past-a-barrier") ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        wrapped_vkCmdFillBuffer(commands, buffer, offset, size, value);
        return;
    }
    *made = (struct held_fill){commands, buffer, offset, size, value, 0, NULL};
    pthread_mutex_lock(&held_lock);
    struct held_fill **place = &held_fills;
    while (*place) place = &(*place)->next;
    *place = made;
    pthread_mutex_unlock(&held_lock);
}

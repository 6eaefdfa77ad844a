/* profiler.c -- creates, starts and stops profilers, and records events. */
#include "base/from_nn.h"
#include "base/os.h"
#include "base/option.h"
#include "profile/nvtx.h"
#include "profile/profile.h"
#include "tensor/op.h"
#include "device/command.h"
#include <stdio.h>
#include <string.h>

static tern_mutex lock = TERN_MUTEX_INIT;
static tern_profiler *running; /* NULL: no profiler runs */
static int64_t runs;
static atomic_int threads;

static int64_t now(const tern_profiler *p)
{
    return tern_os_now() - p->zero;
}

/* ---- events ------------------------------------------------------------------------------ */

const char *tern_profile_text(tern_profiler *p, const char *text)
{
    if (2 * (p->n_texts + 1) > p->text_capacity) {
        size_t capacity = p->text_capacity ? 2 * p->text_capacity : 256;
        char **grown = tern_alloc(capacity * sizeof *grown);
        if (!grown)
            return "";
        for (size_t i = 0; i < p->text_capacity; i++)
            if (p->texts[i]) {
                size_t k = tern_hash(TERN_HASH_SEED, p->texts[i], strlen(p->texts[i])) % capacity;
                while (grown[k])
                    k = (k + 1) % capacity;
                grown[k] = p->texts[i];
            }
        tern_free(p->texts);
        p->texts = grown;
        p->text_capacity = capacity;
    }
    size_t length = strlen(text), k = tern_hash(TERN_HASH_SEED, text, length) % p->text_capacity;
    for (; p->texts[k]; k = (k + 1) % p->text_capacity)
        if (strcmp(p->texts[k], text) == 0)
            return p->texts[k];
    char *copy = tern_alloc(length + 1);
    if (!copy)
        return "";
    p->texts[k] = memcpy(copy, text, length + 1);
    p->n_texts++;
    return copy;
}

/* Returns a new event of this thread, or NULL if the profiler is full. The lock is held. */
static tern_event *add(tern_profiler *p, int kind, const char *name)
{
    if (p->n == p->capacity && p->n < p->options.most) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 1024;
        tern_event *grown = tern_grow(p->events, sizeof *grown * (size_t)capacity);
        p->events = grown ? grown : p->events;
        p->capacity = grown ? capacity : p->capacity;
    }
    if (p->n == p->capacity || p->n >= p->options.most) {
        p->lost++;
        return NULL;
    }
    if (!tern_thread.profile_number)
        tern_thread.profile_number = atomic_fetch_add(&threads, 1) + 1;
    tern_event *e = &p->events[p->n++];
    *e = (tern_event){.kind = (uint8_t)kind,
                      .name = tern_profile_text(p, name),
                      .path = "",
                      .thread = tern_thread.profile_number,
                      .outer = tern_thread.profile_run == p->run ? tern_thread.range : 0,
                      .begin = now(p)};
    e->end = e->begin;
    return e;
}

/* Converts "cross_entropy" to "CrossEntropyBackward". */
static const char *name_gradient(char text[128], const char *name)
{
    size_t n = 0;
    for (bool first = true; *name && n < 100; name++) {
        if (*name != '_')
            text[n++] = (char)(first && *name >= 'a' && *name <= 'z' ? *name - 32 : *name);
        first = *name == '_';
    }
    memcpy(text + n, "Backward", sizeof "Backward");
    return text;
}

static int64_t begin_range(tern_range_kind kind, const char *name, int64_t bytes)
{
    char path[256], type[256], text[128];
    if (kind == TERN_RANGE_BACKWARD)
        name = name_gradient(text, name);
    if (kind == TERN_RANGE_OPERATION && tern_thread.running.backward) {
        snprintf(text, sizeof text, "%s (backward)", name);
        name = text;
    }
    tern_module_path(&tern_thread.running.modules, path, type, sizeof path);
    int64_t number = 0;
    tern_mutex_lock(&lock);
    tern_event *e = running ? add(running, kind, name) : NULL;
    if (e) {
        e->path = tern_profile_text(running, path);
        e->bytes = bytes;
        number = tern_thread.range = running->n;
        tern_thread.profile_run = running->run;
    }
    tern_mutex_unlock(&lock);
    if (number)
        tern_nvtx_push(name);
    return number;
}

static void end_range(int64_t range)
{
    if (range)
        tern_nvtx_pop();
    tern_mutex_lock(&lock);
    if (running && tern_thread.profile_run == running->run && range <= running->n) {
        tern_event *e = &running->events[range - 1];
        e->end = now(running);
        e->done = true;
        tern_thread.range = e->outer;
    }
    tern_mutex_unlock(&lock);
}

static void note_call(int64_t range, const tern_call *call)
{
    tern_text shapes = {0};
    double flops = tern_profile_flops(call);
    tern_mutex_lock(&lock);
    bool there = range && running && tern_thread.profile_run == running->run && range <= running->n;
    if (there)
        running->events[range - 1].flops = flops;
    for (int i = 0; there && running->options.shapes && i < call->n_in; i++)
        tern_text_add(&shapes, "%s%s", i ? ", " : "",
                      call->in[i] ? TERN_TENSOR_TEXT(call->in[i]) : "[]");
    if (shapes.data)
        running->events[range - 1].shapes = tern_profile_text(running, shapes.data);
    tern_mutex_unlock(&lock);
    tern_text_free(&shapes);
}

/* Records a memory event. Its path is that of the module that allocated the block, or "" if the
 * block is older than the profile. */
static void note_memory(const char *device, uint64_t allocated, int64_t bytes, int64_t *maker)
{
    char path[256] = "", type[256];
    if (bytes > 0)
        tern_module_path(&tern_thread.running.modules, path, type, sizeof path);
    tern_mutex_lock(&lock);
    tern_event *e =
        running && running->options.memory ? add(running, TERN_EVENT_MEMORY, device) : NULL;
    const int64_t before = *maker;
    *maker = 0;
    if (e) {
        const int64_t run = running->run << TERN_MAKER_BITS;
        e->allocated = (int64_t)allocated;
        e->bytes = bytes;
        if (bytes > 0)
            e->path = tern_profile_text(running, path);
        else if (before > run && before - run < running->n)
            e->path = running->events[before - run - 1].path;
        *maker = bytes > 0 ? run + running->n : 0;
    }
    tern_mutex_unlock(&lock);
}

/* ---- commands of devices ----------------------------------------------------------------- */

/* Returns a backend event after all commands of the place, or NULL for a synchronous place. */
static void *mark(tern_place *place)
{
    void *event = NULL;
    return place->synchronous || place->backend->event(place, &event) != TERN_OK ? NULL : event;
}

/* The caller holds the lock. */
static tern_event_clock *clock_of(tern_profiler *p, tern_place *place)
{
    for (int i = 0; i < p->n_clocks; i++)
        if (p->clocks[i].place == place)
            return &p->clocks[i];
    return NULL;
}

static void begin_command(tern_command_range *command, tern_place *place, const char *name)
{
    *command = (tern_command_range){.place = place, .from = mark(place)};
    command->range = begin_range(TERN_RANGE_COMMAND, name, 0);
    tern_mutex_lock(&lock);
    if (command->range && running && !clock_of(running, place) &&
        running->n_clocks < TERN_MOST_CLOCKS) {
        tern_event_clock *c = &running->clocks[running->n_clocks++];
        *c = (tern_event_clock){.place = place, .at = now(running)};
    }
    tern_mutex_unlock(&lock);
}

static void end_command(tern_command_range *command, bool done)
{
    void *to = done && command->range ? mark(command->place) : NULL;
    end_range(command->range);
    tern_mutex_lock(&lock);
    bool there = command->range && running && tern_thread.profile_run == running->run;
    if (there) {
        tern_event *e = &running->events[command->range - 1];
        e->place = command->place;
        e->done = done;
        e->from = command->from;
        e->to = to;
        command->from = to = NULL;
    }
    tern_mutex_unlock(&lock);
    if (command->from)
        command->place->backend->event_free(command->place, command->from);
    if (to)
        command->place->backend->event_free(command->place, to);
}

static const tern_profiler_functions functions = {.begin = begin_range,
                                                  .end = end_range,
                                                  .call = note_call,
                                                  .memory = note_memory,
                                                  .command_begin = begin_command,
                                                  .command_end = end_command};

/* Frees the backend events of a command, except the device's first event. */
static void forget_events(tern_event *e, const tern_event_clock *c)
{
    const tern_backend *b = e->place->backend;
    if (e->from && (!c || c->first != e->from))
        b->event_free(e->place, e->from);
    if (e->to)
        b->event_free(e->place, e->to);
    e->from = e->to = NULL;
}

/* Sets the device's times of all commands whose events have times, and frees these events. The
 * first event of a device counts as the moment of its launch. If a command would then have begun
 * before its own launch, all times of the device are later by the difference, because a driver may
 * hold launches back. */
static void settle(tern_profiler *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        tern_event *e = &p->events[i];
        if (e->kind != TERN_RANGE_COMMAND || !e->place)
            continue;
        const tern_backend *b = e->place->backend;
        tern_event_clock *c = clock_of(p, e->place);
        double ns = (double)(e->end - e->begin), since = 0;
        if (e->from && e->to && c) {
            b->elapsed(e->place, e->from, e->to, &ns);
            if (!c->first) {
                c->first = e->from;
                c->at = e->begin;
            } else {
                b->elapsed(e->place, c->first, e->from, &since);
            }
        }
        bool timed = e->from && c && c->first;
        e->device_begin = timed ? c->at + (int64_t)since : e->begin;
        if (timed && e->begin - e->device_begin > c->late)
            c->late = e->begin - e->device_begin;
        e->device_ns = ns > 0 && e->done ? (int64_t)ns : 0;
    }
    for (int64_t i = 0; i < p->n; i++) {
        tern_event *e = &p->events[i];
        const tern_event_clock *c = e->kind == TERN_RANGE_COMMAND ? clock_of(p, e->place) : NULL;
        if (c && c->first && e->from)
            e->device_begin += c->late;
        if (e->kind == TERN_RANGE_COMMAND && e->place)
            forget_events(e, c);
    }
    for (int i = 0; i < p->n_clocks; i++)
        if (p->clocks[i].first)
            p->clocks[i].place->backend->event_free(p->clocks[i].place, p->clocks[i].first);
    p->n_clocks = 0;
}

/* ---- profilers --------------------------------------------------------------------------- */

tern_profiler *tern_profiler_new(const tern_profiler_options *options)
{
    tern_profiler *p = tern_alloc(sizeof *p);
    if (!p)
        return NULL;
    tern_from_profiler = &functions;
    p->options = tern_read_profiler(options);
    p->zero = tern_os_now();
    return p;
}

static tern_status each_device(bool on)
{
    const char *device;
    tern_status status = TERN_OK;
    for (int i = 0; (device = tern_opened_device_at(i)); i++) {
        tern_place *place = tern_place_find(device, "tern_profiler_start");
        tern_status s = place ? tern_place_sync(place) : tern_last_status();
        if (s == TERN_OK && place->backend->profile)
            s = place->backend->profile(place, on);
        status = status == TERN_OK ? s : status;
    }
    return status;
}

tern_status tern_profiler_start(tern_profiler *p)
{
    if (!p)
        return tern_fail_argument_null("tern_profiler_start", "profiler");
    tern_nvtx_open();
    tern_mutex_lock(&lock);
    bool other = running;
    if (!other) {
        running = p;
        p->run = ++runs;
    }
    tern_mutex_unlock(&lock);
    if (other)
        return tern_fail(TERN_ERR_STATE, "tern_profiler_start: a profiler runs already");
    tern_status status = each_device(true);
    tern_profiling = true;
    return status;
}

tern_status tern_profiler_stop(tern_profiler *p)
{
    if (!p)
        return tern_fail_argument_null("tern_profiler_stop", "profiler");
    tern_mutex_lock(&lock);
    bool mine = running == p;
    if (mine) {
        tern_profiling = false;
        running = NULL;
    }
    tern_mutex_unlock(&lock);
    if (!mine)
        return tern_fail(TERN_ERR_STATE, "tern_profiler_stop: the profiler does not run");
    int64_t open = now(p);
    for (int64_t i = 0; i < p->n; i++) /* an event that has not ended ends here */
        if (!p->events[i].done && p->events[i].kind != TERN_EVENT_MEMORY &&
            p->events[i].kind != TERN_RANGE_COMMAND)
            p->events[i].end = open;
    tern_status status = TERN_OK;
    const char *device;
    for (int i = 0; (device = tern_opened_device_at(i)) && status == TERN_OK; i++)
        status = tern_synchronize(device);
    settle(p);
    tern_status off = each_device(false);
    return status == TERN_OK ? off : status;
}

void tern_profiler_free(tern_profiler *p)
{
    if (!p)
        return;
    tern_mutex_lock(&lock);
    bool mine = running == p;
    tern_mutex_unlock(&lock);
    if (mine)
        tern_profiler_stop(p);
    for (size_t i = 0; i < p->text_capacity; i++)
        tern_free(p->texts[i]);
    tern_free(p->texts);
    tern_free(p->events);
    tern_free(p);
}

/* ---- blocks ------------------------------------------------------------------------------ */

tern_profile_block tern_profile_block_enter(const char *path)
{
    tern_profile_block block = {
        tern_profiler_new(&(tern_profiler_options){.memory = true, .shapes = true}), path};
    if (block.profiler && tern_profiler_start(block.profiler) != TERN_OK) {
        tern_profiler_free(block.profiler);
        block.profiler = NULL;
    }
    return block;
}

void tern_profile_block_leave(tern_profile_block *block)
{
    if (!block->profiler)
        return;
    if (tern_profiler_stop(block->profiler) == TERN_OK)
        tern_profiler_write_trace(block->profiler, block->path);
    tern_profiler_free(block->profiler);
}

tern_profiler_label_block tern_profiler_label_enter(const char *label)
{
    return (tern_profiler_label_block){tern_range_begin(TERN_RANGE_LABEL, label ? label : "", 0)};
}

void tern_profiler_label_leave(tern_profiler_label_block *block)
{
    tern_range_end(block->range);
}

/* registry.c -- the list of places, which are enumerated once per backend and opened at their first
 * use. */
#include "device/registry.h"
#include "base/lock.h"
#include "base/ending.h"
#include "base/parallel.h"
#include "device/builds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(NAME) extern const tern_backend tern_##NAME##_backend;
#include "device/backends.def"
#undef X

static const tern_backend *const backends[] = {
#define X(NAME) &tern_##NAME##_backend,
#include "device/backends.def"
#undef X
};
enum { BACKENDS = sizeof backends / sizeof *backends };

static struct {
    tern_mutex lock;
    bool found[BACKENDS];
    int forks[BACKENDS]; /* tern_forks() at the enumeration: drivers do not work after a fork */
    tern_place **places[BACKENDS];
    int count[BACKENDS];
    char *notes[BACKENDS];
} registry = {.lock = TERN_MUTEX_INIT};

static void check_slots(const tern_backend *backend)
{
    /* All fields from kind to vendor are functions, and none may be NULL. */
    typedef void (*slot)(void);
    slot slots[(offsetof(tern_backend, vendor) - sizeof backend->kind) / sizeof(slot)];
    memcpy(slots, (const char *)backend + sizeof backend->kind, sizeof slots);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i])
            abort(); /* a bug of the backend, which its first test finds */
}

void tern_uuid_text(const void *bytes, char text[40])
{
    const unsigned char *b = bytes;
    int n = 0;
    for (int i = 0; i < 16; i++)
        n += snprintf(text + n, (size_t)(40 - n),
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
}

static tern_place *make_place(const tern_backend *backend, int index, const tern_found *found)
{
    tern_place *place = tern_alloc(sizeof *place);
    if (!place)
        return NULL;
    place->backend = backend;
    place->index = index;
    place->state = found->state;
    place->synchronous = found->synchronous;
    place->grouped = found->grouped;
    place->lazy = found->lazy;
    place->has_index32 = found->has_index32;
    place->part_step = found->part_step ? found->part_step : TERN_PART_STEP;
    place->info = found->info;
    if (strcmp(backend->kind, "cpu") == 0)
        snprintf(place->text, sizeof place->text, "cpu");
    else
        snprintf(place->text, sizeof place->text, "%s:%d", backend->kind, index);
    place->info.device = place->text;
    tern_mutex_init(&place->lock);
    tern_mutex_init_short(&place->memory_lock);
    return place;
}

static bool is_of_parent(int b)
{
    return registry.forks[b] != tern_forks();
}

/* Closes all open devices, which waits for all launches: a driver's thread may still be compiling
 * one. No other thread is inside a driver at this time, and none enters one. */
static void wait_for_all(void)
{
    for (int b = 0; b < BACKENDS; b++)
        for (int i = 0; i < registry.count[b] && !is_of_parent(b); i++)
            if (atomic_load(&registry.places[b][i]->is_open))
                registry.places[b][i]->backend->close(registry.places[b][i]);
}

static tern_ending at_ending = {.run = tern_builds_stop},
                   after_threads = {.run = wait_for_all, .after = true};

static bool is_cpu(int b)
{
    return strcmp(backends[b]->kind, "cpu") == 0;
}

/* Called before and after drivers are asked for devices, and before the registry's lock is taken
 * (base/ending.h). */
static void enter(bool driver)
{
    if (driver)
        tern_foreign_enter();
}

static void leave(bool driver)
{
    if (driver)
        tern_foreign_leave();
}

/* Enumerates a backend's devices, which loads its driver and the driver's compiler. */
static tern_status enumerate(int b, tern_found **found, int *n, tern_text *notes)
{
    tern_foreign_compile_begin();
    tern_status status = backends[b]->enumerate(found, n, notes);
    tern_foreign_compile_end();
    return status;
}

/* Enumerates a backend's devices, unless that was done before. The caller holds the registry's
 * lock, and has called enter unless the backend is the cpu's. */
static tern_status find(int b)
{
    if (registry.found[b])
        return TERN_OK;
    tern_found *found = NULL;
    int n = 0;
    tern_text notes = {0};
    check_slots(backends[b]);
    tern_status status =
        is_cpu(b) ? backends[b]->enumerate(&found, &n, &notes) : enumerate(b, &found, &n, &notes);
    tern_place **places = status == TERN_OK ? tern_alloc(sizeof *places * (size_t)(n + 1)) : NULL;
    int made = 0;
    while (places && made < n && (places[made] = make_place(backends[b], made, &found[made])))
        made++;
    tern_free(found);
    if (!places || made < n) {
        while (places && made > 0)
            tern_free(places[--made]);
        tern_free(places);
        tern_text_free(&notes);
        return status == TERN_OK ? TERN_ERR_MEMORY : status;
    }
    registry.places[b] = places;
    registry.count[b] = n;
    registry.notes[b] = notes.data;
    registry.forks[b] = tern_forks();
    registry.found[b] = true;
    if (n > 0 && !is_cpu(b)) {
        tern_at_ending(&at_ending);
        tern_at_ending(&after_threads);
    }
    return TERN_OK;
}

int tern_registry_kind(const char *kind, size_t length)
{
    for (int b = 0; b < BACKENDS; b++)
        if (strlen(backends[b]->kind) == length && memcmp(backends[b]->kind, kind, length) == 0)
            return b;
    return -1;
}

int tern_registry_kinds(void)
{
    return BACKENDS;
}

const char *tern_registry_kind_name(int kind)
{
    return backends[kind]->kind;
}

int tern_registry_count(int kind)
{
    enter(!is_cpu(kind));
    tern_mutex_lock(&registry.lock);
    int n = find(kind) == TERN_OK ? registry.count[kind] : 0;
    tern_mutex_unlock(&registry.lock);
    leave(!is_cpu(kind));
    return n;
}

int tern_registry_found(int kind)
{
    tern_mutex_lock(&registry.lock);
    int n = registry.found[kind] ? registry.count[kind] : 0;
    tern_mutex_unlock(&registry.lock);
    return n;
}

const char *tern_registry_notes(int kind)
{
    tern_registry_count(kind);
    return registry.notes[kind] ? registry.notes[kind] : "";
}

tern_status tern_registry_pinning(tern_place **place)
{
    tern_status status = TERN_OK;
    *place = NULL;
    enter(true);
    tern_mutex_lock(&registry.lock);
    for (int b = 0; b < BACKENDS && status == TERN_OK && !*place; b++) {
        if (!backends[b]->vendor || !backends[b]->vendor->host_alloc)
            continue;
        status = find(b);
        *place = status == TERN_OK && registry.count[b] > 0 ? registry.places[b][0] : NULL;
    }
    tern_mutex_unlock(&registry.lock);
    leave(true);
    return status;
}

tern_place *tern_registry_place(int kind, int64_t index)
{
    return index >= 0 && index < tern_registry_count(kind) ? registry.places[kind][index] : NULL;
}

tern_place *tern_place_at(int i)
{
    for (int kind = 0; kind < tern_registry_kinds(); kind++) {
        int n = tern_registry_found(kind);
        if (i < n)
            return tern_registry_place(kind, i);
        i -= n;
    }
    return NULL;
}

tern_status tern_registry_open(tern_place *place)
{
    if (tern_is_forked_child() && strcmp(place->backend->kind, "cpu") != 0 &&
        is_of_parent(tern_registry_kind(place->backend->kind, strlen(place->backend->kind))))
        return tern_fail(TERN_ERR_DEVICE,
                         "%s cannot be used in a forked child process: its driver does not survive "
                         "fork(), and this process's parent has looked for devices. Do so after "
                         "forking only, or start workers with posix_spawn() or exec(); cpu keeps "
                         "working",
                         place->text);
    if (atomic_load_explicit(&place->is_open, memory_order_acquire))
        return TERN_OK;
    tern_place_enter(place);
    tern_foreign_lock(&place->lock);
    tern_status status = TERN_OK;
    if (!atomic_load(&place->is_open)) {
        status = place->backend->open(place);
        if (status == TERN_OK)
            atomic_store_explicit(&place->is_open, true, memory_order_release);
    }
    tern_mutex_unlock(&place->lock);
    tern_place_leave(place);
    return status;
}

void tern_registry_forget(void)
{
    for (int b = 0; b < BACKENDS; b++) {
        registry.count[b] = 0;
        tern_free(registry.places[b]);
        tern_free(registry.notes[b]);
    }
}

/* faults.c -- user errors that only a kernel can detect: the kernel writes three words on the
 * device, and the host makes an error of them. */
#include "device/capture.h"
#include "base/lock.h"
#include "device/registry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tern_status make_words(tern_place *place)
{
    const uint64_t none[3] = {0};
    tern_status status = TERN_OK;
    tern_mutex_lock(&place->lock);
    tern_block *block = atomic_load(&place->fault.block);
    if (!block) {
        status = tern_block_set_words(place, &block, none);
        atomic_store(&place->fault.block, block);
    }
    tern_mutex_unlock(&place->lock);
    return status;
}

tern_status tern_fault_arg(tern_place *place, tern_arg *arg)
{
    TERN_TRY(tern_registry_open(place));
    if (!atomic_load_explicit(&place->fault.block, memory_order_acquire))
        TERN_TRY(make_words(place));
    tern_block *block = atomic_load_explicit(&place->fault.block, memory_order_acquire);
    *arg = tern_arg_buffer(TERN_ROLE_OUT, TERN_I64, &block->buffer, 0);
    if (tern_capture_of(place))
        tern_record_faults(tern_thread.graph);
    else
        atomic_store_explicit(&place->fault.used, true, memory_order_relaxed);
    return TERN_OK;
}

/* ---- launchers ---------------------------------------------------------------------------- */

enum { LISTS = 64, NAME_SHIFT = 13, MOST_NAMES = 1 << 18 };
/* A function ("tern_mm") or operation ("gather") that launched a kernel with fault words. The name
 * is a copy, because the original text may be freed before an error needs it. */
typedef struct launcher {
    struct launcher *next;
    int number; /* from 1 */
    char name[];
} launcher;
static _Atomic(launcher *) launchers[LISTS];
static atomic_int n_launchers;

static launcher *launcher_named(const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    _Atomic(launcher *) *list = &launchers[hash % LISTS];
    launcher *first = atomic_load_explicit(list, memory_order_acquire);
    for (launcher *l = first; l; l = l->next)
        if (strcmp(l->name, name) == 0)
            return l;
    const size_t bytes = strlen(name) + 1;
    launcher *made = malloc(sizeof *made + bytes); /* never freed */
    if (!made)
        return NULL;
    memcpy(made->name, name, bytes);
    made->number = atomic_fetch_add(&n_launchers, 1) + 1;
    do /* another thread may have added the same name: then both numbers stand for it */
        made->next = first;
    while (!atomic_compare_exchange_weak(list, &first, made));
    return made;
}

int tern_fault_named(int fault)
{
    const char *name = tern_thread.called ? tern_thread.called : tern_thread.mode.op;
    const launcher *by = name && fault ? launcher_named(name) : NULL;
    return by && by->number < MOST_NAMES ? fault | by->number << NAME_SHIFT : fault;
}

/* Writes the name of the function that launched the kernel, "tern_gather_: ", or an empty string if
 * it is not known. */
static void launcher_of(int64_t word, char text[TERN_NAME_BYTES])
{
    const launcher *by = NULL;
    for (int i = 0; !by && word >> NAME_SHIFT > 0 && i < LISTS; i++)
        for (by = atomic_load(&launchers[i]); by && by->number != word >> NAME_SHIFT;)
            by = by->next;
    const bool whole = by && strncmp(by->name, "tern_", 5) == 0;
    text[0] = '\0';
    if (by)
        snprintf(text, TERN_NAME_BYTES, "%s%s%s: ", whole ? "" : "tern_", by->name,
                 !whole && word & TERN_FAULT_IN_PLACE ? "_" : "");
}

static tern_status fail(const tern_place *place, const int64_t words[3])
{
    char by[TERN_NAME_BYTES];
    launcher_of(words[0], by);
    switch (words[0] & 255) {
    case TERN_FAULT_DIMENSION:
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%sindex %lld is out of bounds for dimension %lld with size %lld", by,
                         (long long)words[1], (long long)(words[0] >> 8 & 15), (long long)words[2]);
#define X(NAME, CODE, FORMAT)                                                                      \
    case CODE:                                                                                     \
        return tern_fail(TERN_ERR_ARGUMENT, "%s" FORMAT, by, (long long)words[1],                  \
                         (long long)words[2]);
#include "device/faults.def"
#undef X
    }
    return tern_fail(TERN_ERR_DEVICE, "%s: a kernel reported the unknown fault %lld", place->text,
                     (long long)words[0]);
}

tern_status tern_fault_report(tern_place *place)
{
    if (!atomic_load_explicit(&place->fault.used, memory_order_relaxed) ||
        !atomic_exchange(&place->fault.used, false))
        return TERN_OK;
    int64_t words[3] = {0};
    const uint64_t none[3] = {0};
    tern_block *block = atomic_load(&place->fault.block);
    tern_status status = place->backend->read(place, &block->buffer, 0, words, sizeof words);
    if (status == TERN_OK && words[0] == 0)
        return TERN_OK;
    if (status == TERN_OK)
        status = tern_block_set_words(place, &block, none);
    if (status != TERN_OK) { /* the next call reports the fault */
        atomic_store(&place->fault.used, true);
        return status;
    }
    if (place->synchronous)
        return fail(place, words);
    TERN_UNNAMED_IN_ERRORS; /* the function that waits may not be the one that made the error */
    return fail(place, words);
}

tern_status tern_fault_check(tern_place *place)
{
    return place->synchronous && !tern_capture_of(place) ? tern_fault_report(place) : TERN_OK;
}

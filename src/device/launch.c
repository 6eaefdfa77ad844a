/* launch.c -- from a kernel's name to a launch; faults and random state, which kernels share. */
#include "device/capture.h"
#include "device/registry.h"
#include <stdio.h>
#include <string.h>
#include <tern/backends.h>

/* ---- kernels ----------------------------------------------------------------------------- */

static size_t slot_of(const tern_kernel_ref *ref, tern_dtype dtype)
{
    uint64_t key = (uint64_t)(uintptr_t)ref / 8 * 16 + (uint64_t)dtype;
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % KERNEL_SLOTS;
}

static tern_resolved *look_up(tern_place *place, const tern_kernel_ref *ref, tern_dtype dtype,
                              size_t *slot)
{
    for (size_t i = slot_of(ref, dtype);; i = (i + 1) % KERNEL_SLOTS) {
        tern_resolved *r = atomic_load_explicit(&place->kernels[i], memory_order_acquire);
        *slot = i;
        if (!r || (r->ref == ref && r->dtype == dtype))
            return r;
    }
}

static tern_resolved *resolve(tern_place *place, const tern_kernel_ref *ref, tern_dtype dtype)
{
    size_t slot;
    pthread_mutex_lock(&place->lock);
    tern_resolved *r = look_up(place, ref, dtype, &slot);
    if (!r && (r = tern_alloc(sizeof *r))) {
        *r = (tern_resolved){ref, dtype, NULL};
        if (place->backend->resolve(place, ref->file, ref->name, dtype, &r->kernel) == TERN_OK) {
            atomic_store_explicit(&place->kernels[slot], r, memory_order_release);
        } else {
            tern_free(r);
            r = NULL;
        }
    }
    pthread_mutex_unlock(&place->lock);
    return r;
}

tern_status tern_launch_grid(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                             const tern_grid *grid, const tern_arg *args, int n)
{
    if (grid->count == 0)
        return TERN_OK;
    TERN_TRY(tern_registry_open(place));
    size_t slot;
    tern_resolved *r = look_up(place, kernel, dtype, &slot);
    if (!r && !(r = resolve(place, kernel, dtype)))
        return tern_last_status();
    tern_graph *graph = tern_capture_of(place);
    if (graph)
        return tern_record_launch(graph, r->kernel, grid, args, n);
    atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
    return place->backend->launch(place, r->kernel, grid, args, n);
}

tern_status tern_launch_gemm(tern_place *place, const tern_gemm *gemm)
{
    tern_gemm g = *gemm;
    TERN_TRY(tern_registry_open(place));
    tern_graph *graph = tern_capture_of(place);
    g.tf32 = g.dtype == TERN_F32 && tern_allows_tf32();
    if (graph)
        return tern_record_gemm(graph, &g);
    atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
    return place->backend->gemm(place, &g);
}

bool tern_place_leaves_bias(const tern_place *place)
{
    const tern_vendor *vendor = place->backend->vendor;
    return vendor && vendor->leaves_bias;
}

/* Without a plan the answer is learnt by running, in a capture on what is there. */
static tern_status convolve(tern_place *place, const tern_convolution *c, bool *taken)
{
    const tern_vendor *vendor = place->backend->vendor;
    tern_graph *graph = tern_capture_of(place);
    *taken = true;
    if (!graph || !vendor->convolution_plan)
        TERN_TRY(vendor->convolution(place, c, taken));
    if (graph)
        return *taken ? tern_record_convolution(graph, c) : TERN_OK;
    if (*taken)
        atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
    return TERN_OK;
}

tern_status tern_launch_convolution(tern_place *place, const tern_convolution *c, bool *taken)
{
    const tern_vendor *vendor = place->backend->vendor;
    tern_convolution call = *c;
    tern_block *scratch = NULL;
    size_t bytes = 0;
    *taken = false;
    if (!vendor || !vendor->convolution)
        return TERN_OK;
    TERN_TRY(tern_registry_open(place));
    call.tf32 = c->dtype == TERN_F32 && tern_backends_cudnn_allows_tf32();
    if (vendor->convolution_plan) {
        TERN_TRY(vendor->convolution_plan(place, &call, &bytes, taken));
        if (!*taken)
            return TERN_OK;
    }
    if (bytes) { /* a recorded call's is from the graph's pool */
        scratch = tern_block_alloc(place, bytes, "tern_convolution");
        if (!scratch)
            return tern_last_status();
        call.scratch = &scratch->buffer;
    }
    tern_status status = convolve(place, &call, taken);
    tern_block_free(scratch);
    return status;
}

tern_status tern_launch_all_reduce(tern_place *const *places, const tern_arg *x, int n,
                                   int64_t count, tern_dtype dtype, bool *taken)
{
    const tern_backend *backend = places[0]->backend;
    *taken = false;
    if (n > TERN_MOST_TOGETHER || !backend->vendor || !backend->vendor->all_reduce)
        return TERN_OK;
    for (int i = 0; i < n; i++) {
        if (places[i]->backend != backend || tern_capture_of(places[i]))
            return TERN_OK;
        for (int j = 0; j < i; j++)
            if (places[j] == places[i])
                return TERN_OK;
        TERN_TRY(tern_registry_open(places[i]));
    }
    TERN_TRY(backend->vendor->all_reduce(places, x, n, count, dtype, taken));
    for (int i = 0; *taken && i < n; i++)
        atomic_fetch_add_explicit(&places[i]->launches, 1, memory_order_relaxed);
    return TERN_OK;
}

tern_status tern_launch_user(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n)
{
    TERN_TRY(tern_registry_open(place));
    tern_graph *graph = tern_capture_of(place);
    if (graph)
        return tern_record_user(graph, kernel, grid, args, n);
    TERN_TRY(place->backend->user_launch(place, kernel, grid, args, n));
    atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
    return TERN_OK;
}

tern_status tern_place_sync(tern_place *place)
{
    TERN_TRY(tern_registry_open(place));
    if (tern_capture_of(place))
        return tern_capture_refuse(place, "waiting for the device");
    TERN_TRY(place->backend->sync(place));
    tern_pinned_collect();
    return tern_fault_report(place);
}

/* ---- faults ------------------------------------------------------------------------------ */

static tern_status three_words(tern_place *place, tern_block **block, const uint64_t *words)
{
    tern_graph *graph = tern_capture_suspend();
    if (!*block)
        *block = tern_block_alloc(place, 3 * sizeof *words, "tern");
    tern_capture_resume(graph);
    if (!*block)
        return tern_last_status();
    return place->backend->write(place, &(*block)->buffer, 0, words, 3 * sizeof *words);
}

tern_status tern_fault_arg(tern_place *place, tern_arg *arg)
{
    TERN_TRY(tern_registry_open(place));
    if (!place->fault.block) {
        const uint64_t none[3] = {0};
        pthread_mutex_lock(&place->lock);
        tern_status status =
            place->fault.block ? TERN_OK : three_words(place, &place->fault.block, none);
        pthread_mutex_unlock(&place->lock);
        TERN_TRY(status);
    }
    *arg = tern_arg_block(place->fault.block, 0, sizeof(int64_t));
    if (tern_capture_of(place))
        tern_record_faults(tern_capturing);
    else
        atomic_store_explicit(&place->fault.used, true, memory_order_relaxed);
    return TERN_OK;
}

tern_status tern_fault_report(tern_place *place)
{
    if (!atomic_load_explicit(&place->fault.used, memory_order_relaxed) ||
        !atomic_exchange(&place->fault.used, false))
        return TERN_OK;
    int64_t words[3] = {0};
    const uint64_t none[3] = {0};
    TERN_TRY(place->backend->read(place, &place->fault.block->buffer, 0, words, sizeof words));
    if (words[0] == 0)
        return TERN_OK;
    TERN_TRY(three_words(place, &place->fault.block, none));
    if ((words[0] & 255) == TERN_FAULT_DIMENSION)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "index %lld is out of bounds for dimension %lld with size %lld",
                         (long long)words[1], (long long)(words[0] >> 8), (long long)words[2]);
    switch (words[0]) {
#define X(NAME, CODE, FORMAT)                                                                      \
    case CODE:                                                                                     \
        return tern_fail(TERN_ERR_ARGUMENT, FORMAT, (long long)words[1], (long long)words[2]);
#include "device/faults.def"
#undef X
    }
    return tern_fail(TERN_ERR_DEVICE, "%s: a kernel reported the unknown fault %lld", place->text,
                     (long long)words[0]);
}

tern_status tern_fault_check(tern_place *place)
{
    return place->synchronous && !tern_capture_of(place) ? tern_fault_report(place) : TERN_OK;
}

/* ---- random numbers ---------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    uint64_t seed, generation;
} seeds = {.lock = PTHREAD_MUTEX_INITIALIZER, .seed = 5489};

static void seed_once(tern_place *place)
{
    if (place->rng.seeded)
        return;
    pthread_mutex_lock(&seeds.lock);
    place->rng.seed = seeds.seed;
    pthread_mutex_unlock(&seeds.lock);
    place->rng.base = place->rng.taken = 0;
    place->rng.written = false;
    place->rng.seeded = true;
}

static tern_status write_state(tern_place *place)
{
    if (place->rng.written)
        return TERN_OK;
    place->rng.base += place->rng.taken;
    place->rng.taken = 0;
    uint64_t words[3] = {place->rng.seed, place->rng.base, 0};
    TERN_TRY(three_words(place, &place->rng.block, words));
    place->rng.written = true;
    return TERN_OK;
}

tern_status tern_rng_take(tern_place *place, int64_t n, tern_arg *state, int64_t *at)
{
    TERN_TRY(tern_registry_open(place));
    pthread_mutex_lock(&place->lock);
    seed_once(place);
    tern_status status = write_state(place);
    if (status == TERN_OK) {
        *state = tern_arg_block(place->rng.block, 0, sizeof(uint64_t));
        tern_graph *graph = tern_capture_of(place);
        *at = graph ? tern_record_random(graph, n) : (int64_t)place->rng.taken;
        place->rng.taken += graph ? 0 : (uint64_t)n;
    }
    pthread_mutex_unlock(&place->lock);
    return status;
}

tern_status tern_rng_settle(tern_place *place)
{
    pthread_mutex_lock(&place->lock);
    seed_once(place);
    if (place->rng.taken)
        place->rng.written = false;
    tern_status status = write_state(place);
    pthread_mutex_unlock(&place->lock);
    return status;
}

void tern_rng_advance(tern_place *place, int64_t n)
{
    pthread_mutex_lock(&place->lock);
    place->rng.base += (uint64_t)n;
    pthread_mutex_unlock(&place->lock);
}

uint64_t tern_initial_seed(void)
{
    pthread_mutex_lock(&seeds.lock);
    uint64_t seed = seeds.seed;
    pthread_mutex_unlock(&seeds.lock);
    return seed;
}

void tern_manual_seed(uint64_t seed)
{
    pthread_mutex_lock(&seeds.lock);
    seeds.seed = seed;
    pthread_mutex_unlock(&seeds.lock);
    tern_place *place;
    for (int i = 0; (place = tern_place_at(i)); i++) {
        pthread_mutex_lock(&place->lock);
        place->rng.seeded = false;
        pthread_mutex_unlock(&place->lock);
    }
}

static tern_rng_state rng_state_of(tern_place *place)
{
    pthread_mutex_lock(&place->lock);
    seed_once(place);
    tern_rng_state state = {place->rng.seed, place->rng.base + place->rng.taken};
    pthread_mutex_unlock(&place->lock);
    return state;
}

static void set_rng_state_of(tern_place *place, const tern_rng_state *state)
{
    pthread_mutex_lock(&place->lock);
    bool same = place->rng.seeded && place->rng.seed == state->seed &&
                place->rng.base + place->rng.taken == state->offset;
    if (!same) {
        place->rng.seed = state->seed;
        place->rng.base = state->offset;
        place->rng.taken = 0;
        place->rng.seeded = true;
        place->rng.written = false;
    }
    pthread_mutex_unlock(&place->lock);
}

tern_status tern_get_rng_state(const char *device, tern_rng_state *state)
{
    if (!state)
        return tern_fail_argument_null("tern_get_rng_state", "state");
    tern_place *place = tern_place_find(device, "tern_get_rng_state");
    if (!place)
        return tern_last_status();
    *state = rng_state_of(place);
    return TERN_OK;
}

tern_status tern_set_rng_state(const char *device, const tern_rng_state *state)
{
    if (!state)
        return tern_fail_argument_null("tern_set_rng_state", "state");
    tern_place *place = tern_place_find(device, "tern_set_rng_state");
    if (!place)
        return tern_last_status();
    set_rng_state_of(place, state);
    return TERN_OK;
}

int tern_rng_note_all(tern_rng_note *notes, int room)
{
    tern_place *place;
    int n = 0;
    for (int i = 0; n < room && (place = tern_place_at(i)); i++)
        if (atomic_load_explicit(&place->is_open, memory_order_acquire))
            notes[n++] = (tern_rng_note){place, rng_state_of(place)};
    return n;
}

void tern_rng_put_back(const tern_rng_note *notes, int n)
{
    for (int i = 0; i < n; i++)
        set_rng_state_of(notes[i].place, &notes[i].state);
}

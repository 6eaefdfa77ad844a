/* random.c -- the random number generators: each device has a seed and a count, which all kernels
 * use. */
#include "device/capture.h"
#include "base/lock.h"
#include "device/item.h"
#include "device/registry.h"

static struct {
    tern_mutex lock;
    uint64_t seed, generation;
} seeds = {.lock = TERN_MUTEX_INIT, .seed = 5489};

static void seed_once(tern_place *place)
{
    if (place->rng.seeded)
        return;
    tern_mutex_lock(&seeds.lock);
    place->rng.seed = seeds.seed;
    tern_mutex_unlock(&seeds.lock);
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
    TERN_TRY(tern_block_set_words(place, &place->rng.block, words));
    place->rng.written = true;
    return TERN_OK;
}

/* ---- streams of a thread ----------------------------------------------------------------- */

void tern_random_stream_end(tern_random_stream *stream)
{
    tern_block_free(stream->block);
    stream->block = NULL;
}

static void set_stream(tern_random_stream *stream, uint64_t seed, uint64_t taken)
{
    if (stream->seed != seed)
        tern_random_stream_end(stream);
    stream->seed = seed;
    stream->taken = taken;
}

static tern_status take_from_stream(tern_random_stream *stream, tern_place *place, int64_t n,
                                    tern_arg *state, int64_t *at)
{
    const tern_buffer *buffer = &stream->host;
    if (tern_capture_of(place))
        return tern_capture_refuse(place, "random numbers of a data set's item");
    stream->words[0] = stream->seed;
    if (place->synchronous) {
        stream->host = (tern_buffer){stream->words, (uint64_t)(uintptr_t)stream->words,
                                     stream->words, sizeof stream->words};
    } else {
        if (stream->block && stream->block->place != place)
            tern_random_stream_end(stream);
        if (!stream->block)
            TERN_TRY(tern_block_set_words(place, &stream->block, stream->words));
        buffer = &stream->block->buffer;
    }
    *state = tern_arg_elements(TERN_ROLE_IN, TERN_TYPE_u64, buffer, 0, sizeof(uint64_t));
    *at = (int64_t)stream->taken;
    stream->taken += (uint64_t)n;
    return TERN_OK;
}

/* ---- generators -------------------------------------------------------------------------- */

tern_status tern_rng_take(tern_place *place, int64_t n, tern_arg *state, int64_t *at)
{
    TERN_TRY(tern_registry_open(place));
    if (tern_thread.random)
        return take_from_stream(tern_thread.random, place, n, state, at);
    tern_mutex_lock(&place->lock);
    seed_once(place);
    tern_status status = write_state(place);
    if (status == TERN_OK) {
        *state = tern_arg_elements(TERN_ROLE_IN, TERN_TYPE_u64, &place->rng.block->buffer, 0,
                                   sizeof(uint64_t));
        tern_graph *graph = tern_capture_of(place);
        *at = graph ? tern_record_random(graph, n) : (int64_t)place->rng.taken;
        place->rng.taken += graph ? 0 : (uint64_t)n;
    }
    tern_mutex_unlock(&place->lock);
    return status;
}

tern_status tern_rng_settle(tern_place *place)
{
    tern_mutex_lock(&place->lock);
    seed_once(place);
    if (place->rng.taken)
        place->rng.written = false;
    tern_status status = write_state(place);
    tern_mutex_unlock(&place->lock);
    return status;
}

void tern_rng_advance(tern_place *place, int64_t n)
{
    tern_mutex_lock(&place->lock);
    place->rng.base += (uint64_t)n;
    tern_mutex_unlock(&place->lock);
}

uint64_t tern_initial_seed(void)
{
    if (tern_thread.random)
        return tern_thread.random->seed;
    tern_mutex_lock(&seeds.lock);
    uint64_t seed = seeds.seed;
    tern_mutex_unlock(&seeds.lock);
    return seed;
}

void tern_manual_seed(uint64_t seed)
{
    if (tern_thread.random) {
        set_stream(tern_thread.random, seed, 0);
        return;
    }
    tern_mutex_lock(&seeds.lock);
    seeds.seed = seed;
    tern_mutex_unlock(&seeds.lock);
    tern_place *place;
    for (int i = 0; (place = tern_place_at(i)); i++) {
        tern_mutex_lock(&place->lock);
        place->rng.seeded = false;
        tern_mutex_unlock(&place->lock);
    }
}

static tern_rng_state rng_state_of(tern_place *place)
{
    if (tern_thread.random)
        return (tern_rng_state){tern_thread.random->seed, tern_thread.random->taken};
    tern_mutex_lock(&place->lock);
    seed_once(place);
    tern_rng_state state = {place->rng.seed, place->rng.base + place->rng.taken};
    tern_mutex_unlock(&place->lock);
    return state;
}

static void set_rng_state_of(tern_place *place, const tern_rng_state *state)
{
    if (tern_thread.random) {
        set_stream(tern_thread.random, state->seed, state->offset);
        return;
    }
    tern_mutex_lock(&place->lock);
    bool same = place->rng.seeded && place->rng.seed == state->seed &&
                place->rng.base + place->rng.taken == state->offset;
    if (!same) {
        place->rng.seed = state->seed;
        place->rng.base = state->offset;
        place->rng.taken = 0;
        place->rng.seeded = true;
        place->rng.written = false;
    }
    tern_mutex_unlock(&place->lock);
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

int tern_rng_note_all(tern_rng_note *notes, int capacity)
{
    tern_place *place;
    int n = 0;
    for (int i = 0; n < capacity && (place = tern_place_at(i)); i++)
        if (atomic_load_explicit(&place->is_open, memory_order_acquire)) {
            tern_graph *graph = tern_thread.random ? NULL : tern_capture_of(place);
            notes[n] = (tern_rng_note){place, graph, rng_state_of(place)};
            if (graph)
                notes[n].state.offset = (uint64_t)*tern_recorded_random(graph);
            n++;
        }
    return n;
}

bool tern_rng_put_back(const tern_rng_note *notes, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++) {
        tern_graph *graph = tern_thread.random ? NULL : tern_capture_of(notes[i].place);
        if (graph != notes[i].graph)
            all = false;
        else if (graph)
            *tern_recorded_random(graph) = (int64_t)notes[i].state.offset;
        else
            set_rng_state_of(notes[i].place, &notes[i].state);
    }
    return all;
}

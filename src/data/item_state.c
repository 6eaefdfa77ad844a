/* item_state.c -- the thread's state while it makes items, and random numbers of items. */
#include "base/parallel.h"
#include "data/data.h"

void tern_item_state_enter(tern_item_state *state)
{
    state->callback = tern_callback_begin();
    state->device = tern_device_block_enter("cpu");
    state->mode = tern_thread_enter();
    state->random = tern_thread.random;
    state->alone = tern_parallel_alone(true);
    tern_thread.mode = (tern_thread_mode){.no_grad = true};
}

void tern_item_state_leave(tern_item_state *state)
{
    tern_thread_leave(&state->mode);
    tern_thread.random = state->random;
    tern_parallel_alone(state->alone);
    tern_device_block_leave(&state->device);
    tern_running_copy(&tern_thread.running, &state->callback.running);
}

/* ---- random numbers ---------------------------------------------------------------------- */

typedef uint32_t u32;
typedef uint64_t u64;
#define INLINE static inline
#include "philox.h"

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t tern_data_seed(uint64_t seed, uint64_t epoch, uint64_t index)
{
    return mixed(mixed(mixed(seed) ^ epoch) ^ index);
}

void tern_data_words(uint64_t seed, uint64_t at, uint32_t words[4])
{
    tern_words w = tern_philox(at, seed);
    words[0] = w.a;
    words[1] = w.b;
    words[2] = w.c;
    words[3] = w.d;
}

double tern_data_real(const uint32_t words[2])
{
    return (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
}

int64_t tern_data_below(const uint32_t words[4], int64_t n)
{
    /* The high half of a 64 by 64 bit product: probabilities differ by n / 2^64 at most. */
    uint64_t x = (uint64_t)words[0] << 32 | words[1];
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)((wide)x * (uint64_t)n >> 64);
}

tern_status tern_data_draw(uint32_t words[4])
{
    tern_random_stream *stream = tern_thread.random;
    if (stream) {
        tern_data_words(stream->seed, stream->taken++, words);
        return TERN_OK;
    }
    TERN_SCOPE_HERE;
    tern_tensor *drawn = tern_randint(0, INT64_C(1) << 32, TERN_SHAPE(4), TERN_I64, "cpu");
    if (!drawn)
        return TERN_ERR_MEMORY;
    const int64_t *numbers = tern_data(drawn);
    for (int i = 0; i < 4; i++)
        words[i] = (uint32_t)numbers[i];
    return TERN_OK;
}

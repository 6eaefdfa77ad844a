/* block.h -- CUDA's words for a host's compiler: a block of threads, each a context of its own that
 * runs until it waits for the others, as __syncthreads and the shuffles of a warp do. What one
 * thread does between two of these is done before the next one begins, in every other block the
 * last thread first: a kernel that leaves out a barrier reads what is not there yet. */
#ifndef TERN_TESTS_BLOCK_H
#define TERN_TESTS_BLOCK_H
#include "base/os_context.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_THREADS = 256, BLOCK_STACK = 64 * 1024, WARP = 32 };
typedef struct block_index {
    int x;
} block_index;
static block_index blockIdx, gridDim;
static struct {
    tern_context own[BLOCK_THREADS], scheduler;
    char *stacks;
    int current, turn;
    enum { READY, AT_BARRIER, AT_SHUFFLE, DONE } state[BLOCK_THREADS];
    uint64_t handed[BLOCK_THREADS];
    void (*kernel)(void);
    bool lost; /* threads that waited for others which never came */
} the_block;
#define threadIdx ((block_index){the_block.current})

static void block_wait(int state)
{
    int own = the_block.current;
    the_block.state[own] = state;
    tern_context_swap(&the_block.own[own], &the_block.scheduler);
}

/* The value of another lane of the warp, which all of it gave. */
static uint64_t block_shuffle(uint64_t bits, int from)
{
    int own = the_block.current, warp = own / WARP * WARP;
    the_block.handed[own] = bits;
    block_wait(AT_SHUFFLE);
    bits = the_block.handed[warp + from];
    block_wait(AT_SHUFFLE);
    return bits;
}

static void block_thread(void *unused)
{
    (void)unused;
    the_block.kernel();
    block_wait(DONE);
}

/* Let go on, in [from, to), who all wait for the same. */
static bool block_release(int from, int to, int state)
{
    for (int i = from; i < to; i++)
        if (the_block.state[i] != state)
            return false;
    for (int i = from; i < to; i++)
        the_block.state[i] = READY;
    return true;
}

/* Run a kernel's blocks, the last one first. */
static void block_run(int blocks, void (*kernel)(void))
{
    the_block.kernel = kernel;
    the_block.stacks =
        the_block.stacks ? the_block.stacks : malloc((size_t)BLOCK_THREADS * BLOCK_STACK);
    gridDim.x = blocks;
    for (blockIdx.x = blocks - 1; blockIdx.x >= 0; blockIdx.x--) {
        for (int i = 0; i < BLOCK_THREADS; i++) {
            tern_context_make(&the_block.own[i], the_block.stacks + (size_t)i * BLOCK_STACK,
                              BLOCK_STACK, block_thread, NULL);
            the_block.state[i] = READY;
        }
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (int k = 0; k < BLOCK_THREADS; k++) {
                int i = the_block.turn ? k : BLOCK_THREADS - 1 - k;
                if (the_block.state[i] == READY) {
                    goes_on = true;
                    the_block.current = i;
                    tern_context_swap(&the_block.scheduler, &the_block.own[i]);
                }
            }
            for (int i = 0; i < BLOCK_THREADS; i += WARP)
                goes_on = block_release(i, i + WARP, AT_SHUFFLE) || goes_on;
            goes_on = block_release(0, BLOCK_THREADS, AT_BARRIER) || goes_on;
        }
        the_block.turn ^= 1;
        for (int i = 0; i < BLOCK_THREADS; i++)
            the_block.lost = the_block.lost || the_block.state[i] != DONE;
    }
}

/* ---- CUDA's words ------------------------------------------------------------------------ */
#define __device__
#define __forceinline__ inline __attribute__((unused))
#define __shared__      static
#define __align__(n)    __attribute__((aligned(n)))
#define __syncthreads() block_wait(AT_BARRIER)
#define BLOCK_SHUFFLE(v, from)                                                                     \
    __extension__({                                                                                \
        uint64_t bits_ = 0;                                                                        \
        __typeof__(v) mine_ = (v);                                                                 \
        memcpy(&bits_, &mine_, sizeof mine_);                                                      \
        bits_ = block_shuffle(bits_, from);                                                        \
        memcpy(&mine_, &bits_, sizeof mine_);                                                      \
        mine_;                                                                                     \
    })
#define BLOCK_LANE (the_block.current % WARP)
#define __shfl_down_sync(mask, v, by)                                                              \
    BLOCK_SHUFFLE(v, BLOCK_LANE + (by) < WARP ? BLOCK_LANE + (by) : BLOCK_LANE)
#define __shfl_sync(mask, v, first, width)                                                         \
    BLOCK_SHUFFLE(v, BLOCK_LANE / (width) * (width) + (first))
#define BLOCK_BITS(NAME, TO, FROM)                                                                 \
    static inline TO NAME(FROM from)                                                               \
    {                                                                                              \
        TO to;                                                                                     \
        memcpy(&to, &from, sizeof to);                                                             \
        return to;                                                                                 \
    }
BLOCK_BITS(__uint_as_float, float, uint32_t)
BLOCK_BITS(__float_as_uint, uint32_t, float)
BLOCK_BITS(__longlong_as_double, double, int64_t)
BLOCK_BITS(__double_as_longlong, int64_t, double)
#define atomicAdd(p, v) ((void)(*(p) += (v)))

#endif

/* order.c -- random orders of 0..n-1. */
#include "data/data.h"

uint64_t tern_data_hash(uint64_t so_far, const void *bytes, size_t n)
{
    const unsigned char *at = bytes; /* FNV-1a */
    uint64_t h = so_far ? so_far : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The shuffle of Fisher and Yates. */
void tern_data_shuffle(int64_t *order, int64_t n, uint64_t seed)
{
    uint32_t words[4];
    for (int64_t i = n - 1; i > 0; i--) {
        tern_data_words(seed, (uint64_t)i, words);
        int64_t j = tern_data_below(words, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* A Feistel network over the next even power of two is applied until the result is in 0..n-1: four
 * times at most on average. Eight rounds of Philox make every bit depend on all others (Luby and
 * Rackoff 1988: four rounds of random functions can't be distinguished from a random
 * permutation). */
int64_t tern_data_permuted(int64_t position, int64_t n, uint64_t seed)
{
    int half = 1;
    uint32_t words[4];
    while (half < 31 && INT64_C(1) << (2 * half) < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1, x = (uint64_t)position;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < 8; round++) {
            tern_data_words(seed, round << 32 | right, words);
            uint64_t next = left ^ (words[0] & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

/* common.h -- what several examples need and none is about: the command line, random numbers. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An option "--name VALUE"; one of the pointers says where the value goes. */
typedef struct option_row {
    const char *name;
    const char **text;
    int *number;
    uint64_t *seed;
} option_row;

/* Read options of the list, which ends with {NULL}, and at most n words that are none. False where
 * the command line holds anything else. */
bool read_options(int argc, char **argv, const option_row *list, const char **words, int n);

/* xorshift64* (Vigna 2016): a number below n. The state is never 0. */
size_t number_below(uint64_t *state, size_t n);

#endif

/* catch.h -- programs that run in children, so that a fault is counted and not the end. */
#ifndef TERN_TESTS_FUZZ_CATCH_H
#define TERN_TESTS_FUZZ_CATCH_H
#include <stdint.h>

typedef struct fuzz_plan {
    uint64_t seed, first, runs, seconds;
    const char *folder; /* for programs that fail */
} fuzz_plan;

/* How much was run: programs, calls, and those of them that were not refused. */
void fuzz_print_counts(const fuzz_plan *plan, uint64_t runs, uint64_t calls, uint64_t good_calls);
/* Run program `run` of the seed in this process. */
void fuzz_run_seeded(uint64_t seed, uint64_t run);
/* 0 if no program failed, else 1. */
int fuzz_catch(const fuzz_plan *plan);

#endif

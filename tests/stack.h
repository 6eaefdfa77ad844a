/* stack.h -- how small a thread's stack can be. */
#ifndef TERN_TESTS_STACK_H
#define TERN_TESTS_STACK_H
#include <stddef.h>
#include <unistd.h>

/* The bytes of a small stack: as many, or the fewest that a thread has here. */
static inline size_t test_stack(size_t bytes)
{
#ifdef _SC_THREAD_STACK_MIN
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    return least > (long)bytes ? (size_t)least : bytes;
#else
    return bytes;
#endif
}

#endif

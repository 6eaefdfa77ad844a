/* os_fiber.h -- coroutines: several stacks that run by turns on one thread. */
#ifndef TERN_BASE_OS_FIBER_H
#define TERN_BASE_OS_FIBER_H
#include <stdbool.h>
#include <stddef.h>

/* n stacks, each with a guard page below it. NULL: out of memory. */
typedef struct tern_fibers tern_fibers;
tern_fibers *tern_fibers_new(size_t n);
void tern_fibers_free(tern_fibers *fibers);
/* Prepares stack i: the next resume calls run(user) on it. */
bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user);
/* Runs stack i until it pauses. run must pause at its end too, and must never return. */
void tern_fibers_resume(tern_fibers *fibers, size_t i);
/* Called on stack i: returns to the caller of resume. */
void tern_fibers_pause(tern_fibers *fibers, size_t i);

#endif

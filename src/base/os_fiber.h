/* os_fiber.h -- stacks that take turns on one thread. */
#ifndef TERN_BASE_OS_FIBER_H
#define TERN_BASE_OS_FIBER_H
#include <stdbool.h>
#include <stddef.h>

/* n stacks, with a page in front of each that nothing may touch. NULL: no memory. */
typedef struct tern_fibers tern_fibers;
tern_fibers *tern_fibers_new(size_t n);
void tern_fibers_free(tern_fibers *fibers);
/* Stack i begins with run(user), when it is next resumed. */
bool tern_fibers_begin(tern_fibers *fibers, size_t i, void (*run)(void *user), void *user);
/* Goes on with stack i until it pauses. What it runs pauses at its end, too, and never returns. */
void tern_fibers_resume(tern_fibers *fibers, size_t i);
/* From stack i: back to who resumed it. */
void tern_fibers_pause(tern_fibers *fibers, size_t i);

#endif

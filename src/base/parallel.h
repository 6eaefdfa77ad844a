/* parallel.h -- the one thread pool of the process. */
#ifndef TERN_BASE_PARALLEL_H
#define TERN_BASE_PARALLEL_H
#include "base/error.h"
#include "base/lock.h"
#include "base/forks.h"

/* Run body(user, part, parts) for part 0..parts-1 on the threads of the pool and the caller's, and
 * wait. The parts run one after the other on the caller's thread when nested in another call, while
 * another thread has the pool, and in a forked child (threads do not survive the fork). */
void tern_parallel(int parts, void (*body)(void *user, int part, int parts), void *user);

/* How many parts are worth using for `work` element-operations; at least 1. Small work stays on the
 * caller: waking the pool costs about as much as 20,000 additions. */
int tern_parallel_parts(int64_t work);

/* The most parts that tern_parallel_parts gives: at first the pool's size. n > 0. */
void tern_parallel_limit(int n);
int tern_parallel_limit_get(void);

/* Whether this thread runs all parts itself from now on; returns how it was. */
bool tern_parallel_alone(bool alone);

#endif

/* parallel.h -- the thread pool of the process. */
#ifndef TERN_BASE_PARALLEL_H
#define TERN_BASE_PARALLEL_H
#include "base/error.h"
#include "base/lock.h"
#include "base/forks.h"

/* Runs body(user, part, parts) for all parts on the threads of the pool and the caller's, and
 * waits. The caller's thread runs all parts if the call is nested in another one, if another thread
 * is using the pool, and in a forked child (threads do not survive fork). */
void tern_parallel(int parts, void (*body)(void *user, int part, int parts), void *user);

/* Returns into how many parts `work` element-operations should be divided; at least 1. Small work
 * stays on the caller's thread: waking the pool takes as long as about 20,000 additions. */
int tern_parallel_parts(int64_t work);

/* The most parts that tern_parallel_parts returns, at first the size of the pool; n > 0. */
void tern_parallel_limit(int n);
int tern_parallel_limit_get(void);

/* Sets whether this thread runs all parts itself from now on; returns the previous setting. */
bool tern_parallel_alone(bool alone);

#endif

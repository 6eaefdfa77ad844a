/* forks.c -- whether the process was forked after the library was loaded. */
#include "base/forks.h"
#include "base/os.h"
#include <stdatomic.h>

static atomic_int forks;

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
}

__attribute__((constructor)) static void start(void)
{
    tern_os_at_fork(in_child);
}

int tern_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool tern_is_forked_child(void)
{
    return tern_forks() > 0;
}

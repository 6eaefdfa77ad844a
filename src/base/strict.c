/* strict.c -- TERN_STRICT: hidden waits, copies and fallbacks are errors. */
#include "base/strict.h"
#include <stdatomic.h>
#include <tern/profiler.h>

static atomic_ullong fallbacks;

tern_strict_block tern_strict_block_enter(bool strict)
{
    tern_strict_block block = {tern_thread.strict};
    tern_thread.strict = strict;
    return block;
}

void tern_strict_block_leave(tern_strict_block *block)
{
    tern_thread.strict = block->outer;
}

bool tern_is_strict(void)
{
    return tern_thread.strict;
}

tern_status tern_strict_refuse(const char *function, const char *what)
{
    return tern_fail(TERN_ERR_STATE,
                     "%s: %s, which nothing in TERN_STRICT may do unasked (tern_copy_to_host, "
                     "tern_to and tern_synchronize may)",
                     function, what);
}

void tern_count_fallback(const char *function)
{
    atomic_fetch_add_explicit(&fallbacks, 1, memory_order_relaxed);
    tern_strict_check(function, "falls back to a slow way");
}

uint64_t tern_fallbacks(void)
{
    return atomic_load_explicit(&fallbacks, memory_order_relaxed);
}

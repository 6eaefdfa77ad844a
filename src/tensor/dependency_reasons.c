/* dependency_reasons.c -- whether backward passes count their edges (dependencies.c), which takes a
 * visit of each node. */
#include "tensor/history.h"

static atomic_int hooks;
static atomic_bool crossed;

void tern_passes_count(int n)
{
    if (n)
        atomic_fetch_add_explicit(&hooks, n, memory_order_relaxed);
}

void tern_passes_cross(void)
{
    atomic_store_explicit(&crossed, true, memory_order_relaxed);
}

bool tern_passes_do_count(void)
{
    return atomic_load_explicit(&hooks, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&crossed, memory_order_relaxed);
}

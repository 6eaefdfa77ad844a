/* determinism.c -- whether operations must return the same bits in every run. */
#include <stdatomic.h>
#include <tern/tensor.h>

static atomic_bool deterministic;

void tern_use_deterministic(bool on)
{
    atomic_store_explicit(&deterministic, on, memory_order_relaxed);
}

bool tern_are_deterministic_algorithms_enabled(void)
{
    return atomic_load_explicit(&deterministic, memory_order_relaxed);
}

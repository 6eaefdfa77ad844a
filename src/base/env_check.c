/* env_check.c -- warns of mistakes in the environment. */
#include "base/env.h"
#include "base/warning.h"
#include <stdatomic.h>

void tern_env_check(void)
{
    enum { UNKNOWN, WRONG, DONE };
    static atomic_int state;
    int now = atomic_load_explicit(&state, memory_order_relaxed);
    tern_env_info info;
    if (now == DONE)
        return;
    if (now == UNKNOWN) {
        for (int i = 0; now == UNKNOWN && tern_env_at(i, &info); i++)
            now = *info.problem ? WRONG : UNKNOWN;
        now = now == WRONG ? WRONG : DONE;
        atomic_store(&state, now);
    }
    if (now == DONE || !tern_warns() || atomic_exchange(&state, DONE) == DONE)
        return;
    for (int i = 0; tern_env_at(i, &info); i++)
        if (*info.problem)
            tern_warn("environment", info.name, "%s", info.problem);
}

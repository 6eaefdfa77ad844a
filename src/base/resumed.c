/* resumed.c -- whether the snapshot from which a training was resumed has the state of a loader. */
#include "base/resumed.h"
#include <stdatomic.h>

static atomic_bool without;

void tern_resumed_note(bool without_loader)
{
    atomic_store(&without, without_loader);
}

bool tern_resumed_without_loader(void)
{
    return atomic_load(&without);
}

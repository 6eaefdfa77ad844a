/* device.c -- questions about a place, and the kernels of the user's own. */
#include "base/parallel.h"
#include "device/registry.h"

const char *tern_place_text(const tern_place *place)
{
    return place->text;
}

const char *tern_place_kind(const tern_place *place)
{
    return place->backend->kind;
}

bool tern_place_has_f64(const tern_place *place)
{
    return place->info.has_f64;
}

void *tern_place_state(const tern_place *place)
{
    return place->state;
}

const tern_device_info *tern_place_info(const tern_place *place)
{
    return &place->info;
}

void tern_place_count_program(tern_place *place, bool built)
{
    atomic_fetch_add(built ? &place->built : &place->loaded, 1);
}

tern_place *tern_place_at(int i)
{
    for (int kind = 0; kind < tern_registry_kinds(); kind++) {
        int n = tern_registry_found(kind);
        if (i < n)
            return tern_registry_place(kind, i);
        i -= n;
    }
    return NULL;
}

tern_status tern_synchronize(const char *device)
{
    tern_place *place = tern_place_find(device, "tern_synchronize");
    return place ? tern_place_sync(place) : tern_last_status();
}

tern_status tern_device_get_info(const char *device, tern_device_info *info)
{
    if (!info)
        return tern_fail_argument_null("tern_device_get_info", "info");
    tern_place *place = tern_place_find(device, "tern_device_get_info");
    if (!place)
        return tern_last_status();
    uint64_t free_bytes, total;
    TERN_TRY(place->backend->memory(place, &free_bytes, &total));
    *info = place->info;
    info->memory_free = free_bytes;
    info->memory_total = total;
    return TERN_OK;
}

tern_status tern_set_num_threads(int n)
{
    if (n < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_set_num_threads: expects a positive integer, not %d", n);
    tern_parallel_limit(n);
    return TERN_OK;
}

int tern_get_num_threads(void)
{
    return tern_parallel_limit_get();
}

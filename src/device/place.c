/* place.c -- functions that return a property of a place. */
#include "device/place.h"

const char *tern_place_text(const tern_place *place)
{
    return place->text;
}

const char *tern_place_kind(const tern_place *place)
{
    return place->backend->kind;
}

bool tern_place_is_synchronous(const tern_place *place)
{
    return place->synchronous;
}

bool tern_writes_by_copy(const tern_place *place, int64_t n)
{
    return place->lazy && n <= TERN_SMALL;
}

bool tern_place_is_grouped(const tern_place *place)
{
    return place->grouped;
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

/* matrix_tile.c -- tiles of products on matrix units. */
#include "device/opencl/gemm.h"
#include <stdlib.h>
#include <string.h>

const char *tern_cl_matrix_tile_read(const char *text, tern_cl_tile *tile)
{
    unsigned long sizes[3];
    for (int i = 0; i < 3; i++) {
        char *end;
        sizes[i] = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
        if (sizes[i] == 0 || sizes[i] > 256 || *end != (i < 2 ? 'x' : '\0'))
            return "is not ROWSxCOLUMNSxDEPTH";
        text = end + 1;
    }
    if (sizes[0] % 64 || sizes[1] % 64 || sizes[2] % 16 || (sizes[2] > 32 && sizes[2] % 64))
        return "has rows or columns that are no multiples of 64, or a depth that is not 16, 32, 64";
    *tile =
        (tern_cl_tile){.m = (uint16_t)sizes[0], .n = (uint16_t)sizes[1], .k = (uint16_t)sizes[2]};
    return NULL;
}

const char *tern_cl_matrix_tile_check(const tern_cl_tile *t, uint64_t local_memory,
                                      size_t group_limit)
{
    uint64_t operands = (uint64_t)(t->m + t->n) * t->k * 2, sums = (uint64_t)t->m * (t->n + 4);
    if ((size_t)t->m * t->n / 64 > group_limit)
        return "wants larger work-groups than the device has";
    if (operands > local_memory || sums > local_memory)
        return "wants more local memory than the device has";
    return NULL;
}

tern_cl_tile tern_cl_matrix_tile(tern_place *place, int way, const tern_gemm *g)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_tile large = {.m = 128, .n = 128, .k = (uint16_t)tern_matrix_depth(way)};
    const tern_cl_tile small = {.m = 64, .n = 64, .k = 32};
    int64_t tiles = (g->m + 127) / 128 * ((g->n + 127) / 128) * g->count[0] * g->count[1];
    bool enough = g->m >= 128 && g->n >= 128 && tiles >= tern_place_info(place)->compute_units;
    bool fits = !tern_cl_matrix_tile_check(&large, s->local_memory, s->group_limit);
    return enough && fits && way != TERN_MATRIX_PLAIN ? large : small;
}

/* matrix_way.c -- the properties of the kinds of matrix units of cl_kernels/matrix.h. */
#include "device/matrix_way.h"
#include "base/dtype.h"
#include "base/env.h"
#include <string.h>

static const struct {
    const char *name;
    int lanes, depth;
} ways[TERN_MATRIX_WAYS] = {
    {"plain", 16, 32}, {"mma", 32, 64}, {"rdna3", 32, 32}, {"rdna4", 32, 64},
    {"cdna", 64, 64},  {"xe8", 8, 64},  {"xe16", 16, 64},
};

const char *tern_matrix_name(int way)
{
    return ways[way].name;
}
int tern_matrix_lanes(int way)
{
    return ways[way].lanes;
}
int tern_matrix_depth(int way)
{
    return ways[way].depth;
}

int tern_matrix_wanted(int claimed, tern_dtype dtype)
{
    const char *forced = tern_env(TERN_ENV_MATRIX);
    if (!tern_dtype_is_half(dtype) || (forced && strcmp(forced, "off") == 0))
        return TERN_MATRIX_NONE;
    if (forced && strcmp(forced, "plain") == 0)
        return TERN_MATRIX_PLAIN;
    return claimed == TERN_MATRIX_PLAIN ? TERN_MATRIX_NONE : claimed;
}

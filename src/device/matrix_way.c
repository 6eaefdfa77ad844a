/* matrix_way.c -- what the ways of cl_kernels/matrix.h are. */
#include "device/matrix_way.h"

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

/* matrix_kernels.c -- kernels of products and convolutions on matrix units: each is built when it
 * is first wanted, and tried before it is used. */
#include "device/opencl/gemm.h"
#include <stdio.h>
#include <string.h>

const char tern_cl_gemm_file[] = "gemm_matrix.cl", tern_cl_conv_file[] = "convolution_matrix.cl",
           tern_cl_parts_file[] = "convolution_parts.h";

enum { PARTS_GROUP = 64 };

static bool is_same(const tern_cl_matrix_kernel *x, const tern_cl_matrix_kernel *y)
{
    return x->file == y->file && memcmp(&x->tile, &y->tile, sizeof x->tile) == 0 &&
           x->dtype == y->dtype && x->way == y->way && x->layout == y->layout && x->odd == y->odd &&
           x->pass == y->pass && x->unit == y->unit && x->narrow == y->narrow;
}

static void describe(const tern_cl_matrix_kernel *u, size_t group, char *defines, size_t bytes)
{
    int n = snprintf(defines, bytes,
                     "#define TERN_WG %zu\n#define TERN_IDX32 %d\n#define TERN_T %s\n"
                     "#define MATRIX_WAY %d\n#define MATRIX_ROWS %d\n#define MATRIX_COLS %d\n"
                     "#define MATRIX_DEPTH %d\n",
                     group, u->narrow, tern_dtype_rows[u->dtype].suffix, u->way, u->tile.m,
                     u->tile.n, u->tile.k);
    const bool convolves = u->file != tern_cl_gemm_file;
    snprintf(defines + n, bytes - (size_t)n,
             convolves ? "#define MATRIX_ODD 0\n#define CONV_LAST %d\n#define CONV_IMAGE_ODD %d\n"
                         "#define CONV_OTHER_ODD %d\n#define CONV_PASS %d\n#define CONV_UNIT %d\n"
                       : "#define MATRIX_TA %d\n#define MATRIX_TB %d\n#define MATRIX_ODD %d\n",
             convolves ? u->layout : u->layout & 1, convolves ? u->odd & 1 : u->layout >> 1,
             convolves ? u->odd >> 1 : u->odd, u->pass, u->unit);
}

/* Trials take memory of the device's driver, which says that there is none without a record. */
static tern_status try(tern_place *place, const tern_cl_matrix_kernel *u, const char *title)
{
    const char *device = tern_place_info(place)->device;
    bool right;
    tern_status status = tern_cl_matrix_try(place, u, &right);
    if (status == TERN_ERR_MEMORY)
        return tern_fail(status, "%s: no memory to try %s", device, title);
    if (status == TERN_OK && !right)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s was tried, and its result was wrong", device,
                         title);
    return status;
}

static tern_status build(tern_place *place, void *kernel)
{
    tern_cl_matrix_kernel *u = kernel;
    const tern_cl_state *s = tern_cl_state_of(place);
    const bool parts = u->file == tern_cl_parts_file;
    const size_t group = parts ? PARTS_GROUP : tern_cl_matrix_group(&u->tile);
    char title[96], name[32], defines[512];
    const char *why = parts ? NULL
                      : u->tile.m
                          ? tern_cl_matrix_tile_check(&u->tile, s->local_memory, s->group_limit)
                          : tern_cl_matrix_tile_read("0", &(tern_cl_tile){0});
    snprintf(title, sizeof title, "tile %dx%dx%d by %s of %s", u->tile.m, u->tile.n, u->tile.k,
             tern_matrix_name(u->way), u->file);
    if (why)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s %s", tern_place_info(place)->device, title,
                         why);
    snprintf(name, sizeof name, "%s_%s",
             parts                          ? "conv_parts"
             : u->file == tern_cl_conv_file ? "conv_matrix"
                                            : "gemm_matrix",
             tern_dtype_rows[u->dtype].suffix);
    describe(u, group, defines, sizeof defines);
    TERN_TRY(tern_cl_matrix_build(place, u->way, group, defines, u->file, name, title, &u->kernel));
    tern_status status = u->way != TERN_MATRIX_PLAIN && !parts ? try(place, u, title) : TERN_OK;
    if (status != TERN_OK) {
        tern_cl_kernel_free(u->kernel);
        u->kernel = NULL;
    }
    return status;
}

tern_status tern_cl_matrix_find(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_matrix_kernel *wanted, tern_cl_kernel **kernel)
{
    tern_cl_matrix_kernel *k = state->matrix;
    while (k && !is_same(k, wanted))
        k = k->next;
    if (!k) {
        tern_cl_matrix_kernel u = *wanted;
        const tern_cl_attempt attempt = {
            "matrix:", u.file == tern_cl_gemm_file ? "tern_matmul" : "tern_conv2d", u.dtype, build,
            "products of %s leave the matrix unit alone: %s"};
        u.kernel = NULL;
        TERN_TRY(tern_cl_build_or_not(place, &attempt, &u));
        k = tern_alloc(sizeof *k);
        if (!k) {
            tern_cl_kernel_free(u.kernel);
            return TERN_ERR_MEMORY;
        }
        *k = u;
        k->next = state->matrix;
        state->matrix = k;
    }
    *kernel = k->kernel;
    return TERN_OK;
}

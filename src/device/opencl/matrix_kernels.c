/* matrix_kernels.c -- kernels of products and convolutions on matrix units: each is built when it
 * is first wanted, and tried before it is used. */
#include "base/env.h"
#include "base/warning.h"
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

static tern_status build(tern_place *place, tern_cl_matrix_kernel *u)
{
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
    bool right = true;
    tern_status status =
        u->way != TERN_MATRIX_PLAIN && !parts ? tern_cl_matrix_try(place, u, &right) : TERN_OK;
    if (status == TERN_OK && right)
        return TERN_OK;
    tern_cl_kernel_free(u->kernel);
    u->kernel = NULL;
    return status != TERN_OK ? status
                             : tern_fail(TERN_ERR_ARGUMENT,
                                         "%s: %s was tried, and its result was "
                                         "wrong",
                                         tern_place_info(place)->device, title);
}

/* What a driver does not build, or builds wrong, is done by another kernel, unless it was asked for
 * by name. */
static tern_status build_or_not(tern_place *place, tern_cl_matrix_kernel *u)
{
    char message[800];
    tern_error_hold hold;
    if (tern_env(TERN_ENV_OPENCL_GEMM))
        return build(place, u);
    TERN_TRY(tern_error_hold_begin(&hold));
    build(place, u);
    tern_status status = tern_error_hold_end(&hold, message, sizeof message);
    if (status != TERN_OK && status != TERN_ERR_ARGUMENT)
        return tern_fail(status, "%s", message);
    if (status != TERN_OK)
        tern_warn("slow", u->file == tern_cl_gemm_file ? "tern_matmul" : "tern_conv2d",
                  "products of %s leave the matrix unit alone: %s", tern_dtype_name(u->dtype),
                  message);
    return TERN_OK;
}

tern_status tern_cl_matrix_find(tern_place *place, tern_cl_gemm_state *state,
                                const tern_cl_matrix_kernel *wanted, tern_cl_kernel **kernel)
{
    tern_cl_matrix_kernel *k = state->matrix;
    while (k && !is_same(k, wanted))
        k = k->next;
    if (!k) {
        tern_cl_matrix_kernel u = *wanted;
        u.kernel = NULL;
        TERN_TRY(build_or_not(place, &u));
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

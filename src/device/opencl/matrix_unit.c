/* matrix_unit.c -- which way of cl_kernels/matrix.h a device multiplies matrices of halves by:
 * whether a product on the matrix unit that it speaks of comes out right. */
#include "base/env.h"
#include "base/lock.h"
#include "base/warning.h"
#include "device/opencl/gemm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_TRIED, RIGHT, WRONG };
enum { TRIED = 64 }; /* rows, columns and depth of the product that is tried */

/* -2 to 2, as nothing that is moved elsewhere would be equal: their sums are numbers of both types
 * of halves. */
static int number(int i, int k, uint32_t seed)
{
    uint32_t h = ((uint32_t)i * 64u + (uint32_t)k + seed) * 2654435761u;
    return (int)((h >> 20) % 5) - 2;
}
typedef struct trial {
    uint16_t a[TRIED * TRIED], b[TRIED * TRIED], c[TRIED * TRIED], expected[TRIED * TRIED];
} trial;

static void fill(trial *t, tern_dtype dtype)
{
    for (int i = 0; i < TRIED * TRIED; i++) {
        int row = i / TRIED, column = i % TRIED, sum = 0;
        for (int k = 0; k < TRIED; k++)
            sum += number(row, k, 1) * number(column, k, 4097);
        t->a[i] = tern_half_of_quarters(4 * number(row, column, 1), dtype);
        t->b[i] = tern_half_of_quarters(4 * number(row, column, 4097), dtype);
        t->c[i] = 0xffff;
        t->expected[i] = tern_half_of_quarters(4 * sum, dtype);
    }
}

static tern_status multiply(tern_place *place, tern_cl_gemm_state *state, int way, tern_dtype dtype,
                            tern_buffer *buffers, trial *t)
{
    const void *from[] = {t->a, t->b, t->c};
    for (int i = 0; i < 3; i++)
        TERN_TRY(tern_cl_write(place, &buffers[i], 0, from[i], sizeof t->a));
    tern_gemm g = {.dtype = dtype, .m = TRIED, .n = TRIED, .k = TRIED, .count = {1, 1}, .alpha = 1};
    g.a = (tern_matrix){.buffer = &buffers[0], .row = TRIED, .col = 1};
    g.b = (tern_matrix){.buffer = &buffers[1], .row = 1, .col = TRIED};
    g.c = (tern_matrix){.buffer = &buffers[2], .row = TRIED, .col = 1};
    const tern_cl_tile tile = {.m = TRIED, .n = TRIED, .k = 32};
    TERN_TRY(tern_cl_matrix_run(place, state, &g, way, &tile));
    return tern_cl_read(place, &buffers[2], 0, t->c, sizeof t->c);
}

/* The product in memory of its own. */
static tern_status run_trial(tern_place *place, tern_cl_gemm_state *state, int way,
                             tern_dtype dtype, trial *t)
{
    tern_buffer buffers[3] = {{0}};
    tern_status status = TERN_OK;
    fill(t, dtype);
    for (int i = 0; i < 3 && status == TERN_OK; i++) {
        buffers[i].bytes = sizeof t->a;
        status = tern_cl_alloc(place, &buffers[i]);
    }
    if (status == TERN_OK)
        status = multiply(place, state, way, dtype, buffers, t);
    for (int i = 0; i < 3; i++)
        if (buffers[i].handle)
            tern_cl_free(place, &buffers[i]);
    return status;
}

static int try(tern_place *place, tern_cl_gemm_state *state, int way, tern_dtype dtype)
{
    char why[400] = "its result was wrong";
    tern_error_hold hold;
    trial *t = tern_alloc(sizeof *t);
    if (!t || tern_error_hold_begin(&hold) != TERN_OK) {
        tern_free(t);
        return NOT_TRIED;
    }
    tern_status status = run_trial(place, state, way, dtype, t);
    tern_error_hold_end(&hold, why, status == TERN_OK ? 0 : sizeof why);
    bool right = status == TERN_OK && memcmp(t->c, t->expected, sizeof t->c) == 0;
    tern_free(t);
    if (status == TERN_ERR_MEMORY)
        return NOT_TRIED; /* another time */
    if (!right)
        tern_warn("slow", "tern_matmul",
                  "products of %s on %s leave its matrix unit alone: a product tried on it (%s) "
                  "did not come out: %s",
                  tern_dtype_name(dtype), tern_place_info(place)->device, tern_matrix_name(way),
                  why);
    return right ? RIGHT : WRONG;
}

int tern_cl_matrix_wanted(tern_place *place, tern_dtype dtype)
{
    const char *forced = tern_env(TERN_ENV_MATRIX);
    int way = tern_cl_state_of(place)->matrix_way;
    if (!tern_dtype_is_half(dtype) || (forced && strcmp(forced, "off") == 0))
        return TERN_MATRIX_NONE;
    if (forced && strcmp(forced, "plain") == 0)
        return TERN_MATRIX_PLAIN;
    return way == TERN_MATRIX_PLAIN ? TERN_MATRIX_NONE : way;
}

int tern_cl_matrix_way(tern_place *place, tern_dtype dtype)
{
    const int way = tern_cl_matrix_wanted(place, dtype);
    if (way == TERN_MATRIX_NONE || way == TERN_MATRIX_PLAIN)
        return way;
    atomic_int *tried = &tern_cl_state_of(place)->matrix_tried[dtype == TERN_BF16];
    if (atomic_load(tried) == NOT_TRIED) {
        tern_cl_gemm_state *state = tern_cl_gemm_state_of(place);
        if (!state)
            return TERN_MATRIX_NONE;
        tern_mutex_lock(&state->lock);
        if (atomic_load(tried) == NOT_TRIED)
            atomic_store(tried, try(place, state, way, dtype));
        tern_mutex_unlock(&state->lock);
    }
    return atomic_load(tried) == RIGHT ? way : TERN_MATRIX_NONE;
}

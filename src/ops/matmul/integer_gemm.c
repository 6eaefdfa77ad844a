/* integer_gemm.c -- matrix products of integers, which the gemm of the backends does not
 * support. */
#include "ops/matmul/matrix_product.h"
#include "types_host.h"
#include "shapes.h"

/* Returns the strides of x in the kernel's struct. */
static tern_gemm_matrix strides_of(const tern_matrix *x)
{
    return (tern_gemm_matrix){x->row, x->col, {x->batch[0], x->batch[1]}};
}

/* Computes c = alpha a b (+ bias), one work-item for each element. Sums wrap around on overflow, as
 * integers do. */
tern_status tern_integer_gemm(tern_place *place, const tern_gemm *g)
{
    static const tern_kernel_ref kernel = {"matmul", "integer_gemm"};
    tern_gemm_shape shape = {.m = g->m,
                             .n = g->n,
                             .k = g->k,
                             .count = {g->count[0], g->count[1]},
                             .a = strides_of(&g->a),
                             .b = strides_of(&g->b),
                             .c = strides_of(&g->c),
                             .has_bias = g->bias != NULL};
    int64_t items = g->count[0] * g->count[1] * g->m * g->n;
    return TERN_LAUNCH(place, &kernel, g->dtype, tern_items_of(items, g->k),
                       tern_arg_buffer(TERN_ROLE_OUT, g->dtype, g->c.buffer, g->c.at),
                       tern_arg_buffer(TERN_ROLE_IN, g->dtype, g->a.buffer, g->a.at),
                       tern_arg_buffer(TERN_ROLE_IN, g->dtype, g->b.buffer, g->b.at),
                       g->bias ? tern_arg_buffer(TERN_ROLE_IN, g->dtype, g->bias, g->bias_at)
                               : tern_arg_buffer(TERN_ROLE_UNUSED, g->dtype, g->c.buffer, 0),
                       TERN_ARG_STRUCT(tern_gemm_shape, &shape), tern_arg_i64((int64_t)g->alpha));
}

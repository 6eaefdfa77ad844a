/* integer_gemm.c -- matrix products of integers, which no backend's gemm takes. */
#include "ops/matmul/matrix_product.h"
#include "types_host.h"
#include "shapes.h"

static tern_gemm_matrix strides_of(const tern_matrix *x)
{
    return (tern_gemm_matrix){x->row, x->col, {x->batch[0], x->batch[1]}};
}

tern_status tern_integer_gemm(tern_place *place, const tern_gemm *g)
{
    static const tern_kernel_ref kernel = {"matmul", "integer_gemm"};
    size_t size = tern_dtype_size(g->dtype);
    tern_gemm_shape shape = {.m = g->m,
                             .n = g->n,
                             .k = g->k,
                             .count = {g->count[0], g->count[1]},
                             .a = strides_of(&g->a),
                             .b = strides_of(&g->b),
                             .c = strides_of(&g->c),
                             .has_bias = g->bias != NULL};
    tern_arg c = tern_arg_buffer(g->c.buffer, g->c.at, size);
    tern_arg args[] = {c,
                       tern_arg_buffer(g->a.buffer, g->a.at, size),
                       tern_arg_buffer(g->b.buffer, g->b.at, size),
                       g->bias ? tern_arg_buffer(g->bias, g->bias_at, size) : c,
                       tern_arg_struct(&shape, sizeof shape),
                       tern_arg_i64((int64_t)g->alpha)};
    int64_t items = g->count[0] * g->count[1] * g->m * g->n;
    return tern_launch(place, &kernel, g->dtype, tern_items_of(items, g->k), args, 6);
}

/* packed.c -- products with quantized weights of 8 or 4 bits, and conversion of such weights to
 * float32. */
#include "base/checked.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* The sizes of a quantized weight. The inputs of a call from `first` on are its codes, scales and
 * zeros. */
typedef struct packed {
    int64_t outs, ins, groups;
    int32_t nibbles, flip;
} packed;

static tern_status check(const tern_call *call, int first, int64_t ins, packed *p)
{
    const tern_tensor *codes = call->in[first], *scales = call->in[first + 1],
                      *zeros = call->in[first + 2];
    const char *name = call->op->name;
    if ((codes->dtype != TERN_U8 && codes->dtype != TERN_I8) || scales->dtype != TERN_F32 ||
        (zeros && zeros->dtype != TERN_F32))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: codes are int8 or uint8, scales and zeros float32, not %s, %s "
                         "and %s",
                         name, tern_dtype_name(codes->dtype), tern_dtype_name(scales->dtype),
                         zeros ? tern_dtype_name(zeros->dtype) : "none");
    bool shaped = codes->ndim == 2 && scales->ndim == 2 && (!zeros || zeros->ndim == 2) && ins > 0;
    int64_t columns = shaped ? codes->shape[1] : 0, groups = shaped ? scales->shape[1] : 0;
    bool nibbles = columns != ins;
    *p = (packed){shaped ? codes->shape[0] : 0, ins, groups, nibbles,
                  codes->dtype == TERN_I8 ? 128 : 0};
    if (shaped && scales->shape[0] == p->outs &&
        (!zeros || (zeros->shape[0] == p->outs && zeros->shape[1] == groups)) && groups > 0 &&
        ins % groups == 0 &&
        (!nibbles || (columns * 2 == ins && ins / groups % 2 == 0 && codes->dtype == TERN_U8)))
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_%s: a weight of %lld inputs has codes (out, %lld), or of 4 bits half as "
                     "many, and scales and zeros (out, groups), not %s, %s and %s",
                     name, (long long)ins, (long long)ins, TERN_TENSOR_TEXT(codes),
                     TERN_TENSOR_TEXT(scales), zeros ? TERN_TENSOR_TEXT(zeros) : "none");
}

static tern_arg codes_of(const tern_tensor *codes)
{
    return tern_arg_as(TERN_ROLE_IN, TERN_U8, codes);
}

/* ---- products: x (rows, in), codes, scales, zeros -> (rows, out) ----------------------------- */

static tern_status linear_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    packed p;
    TERN_TRY(check(call, 1, x->shape[1], &p));
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_F32, .shape = {2, {x->shape[0], p.outs}}};
    return TERN_OK;
}

static tern_status linear_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"packed", "packed_linear"};
    const tern_tensor *x = call->in[0], *const *in = (const tern_tensor *const *)call->in;
    packed p;
    TERN_TRY(check(call, 1, x->shape[1], &p));
    if (call->out[0]->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, TERN_F32, tern_groups(x->shape[0] * p.outs, 2 * p.ins),
                       tern_arg_out(call->out[0]), tern_arg_in(x), codes_of(in[1]),
                       tern_arg_in(in[2]), tern_arg_optional(in[3], in[2]),
                       tern_arg_i64(x->shape[0]), tern_arg_i64(p.outs), tern_arg_i64(p.ins),
                       tern_arg_i64(p.groups), tern_arg_i32(p.nibbles), tern_arg_i32(p.flip),
                       tern_arg_i32(in[3] != NULL));
}

static const tern_op linear_op = {.name = "linear_packed",
                                  .optional = 1u << 3,
                                  .stored = TERN_STORED_MOVED,
                                  .not_differentiable = true,
                                  .infer = linear_infer,
                                  .forward = linear_forward};

/* ---- weights: codes, scales, zeros -> (out, in) ---------------------------------------------- */

static tern_status unpack_infer(tern_call *call)
{
    const int64_t *ins = call->attributes;
    packed p;
    TERN_TRY(check(call, 0, *ins, &p));
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_F32, .shape = {2, {p.outs, p.ins}}};
    return TERN_OK;
}

static tern_status unpack_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"packed", "unpack"};
    const tern_tensor *const *in = (const tern_tensor *const *)call->in;
    packed p;
    TERN_TRY(check(call, 0, *(const int64_t *)call->attributes, &p));
    if (call->out[0]->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, TERN_F32,
                       tern_groups(p.outs * p.groups, 2 * p.ins / p.groups),
                       tern_arg_out(call->out[0]), codes_of(in[0]), tern_arg_in(in[1]),
                       tern_arg_optional(in[2], in[1]), tern_arg_i64(p.outs), tern_arg_i64(p.ins),
                       tern_arg_i64(p.groups), tern_arg_i32(p.nibbles), tern_arg_i32(p.flip),
                       tern_arg_i32(in[2] != NULL));
}

static const tern_op unpack_op = {.name = "unpack_weight",
                                  .optional = 1u << 2,
                                  .stored = TERN_STORED_MOVED,
                                  .not_differentiable = true,
                                  .infer = unpack_infer,
                                  .forward = unpack_forward};

/* ---- public functions ------------------------------------------------------------------------ */

tern_tensor *tern_linear_packed(tern_tensor *x, tern_tensor *codes, tern_tensor *scales,
                                tern_tensor *zeros)
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !codes || !scales)
        return NULL;
    if (x->ndim < 1 || !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_linear_packed: x is (..., in) of a floating point type, not %s "
                              "of %d dims",
                              tern_dtype_name(x->dtype), x->ndim);
    tern_shape shape = tern_shape_of(x);
    int64_t ins = shape.dims[shape.ndim - 1];
    tern_tensor *rows = tern_to_dtype(tern_reshape(x, TERN_SHAPE(-1, ins)), TERN_F32);
    tern_tensor *in[] = {tern_contiguous(rows), tern_contiguous(codes), tern_contiguous(scales),
                         zeros ? tern_contiguous(zeros) : NULL};
    for (int i = 0; i < 4; i++)
        if (!in[i] && (i < 3 || zeros))
            return NULL;
    tern_tensor *y = tern_apply(&linear_op, in, 4, NULL, 0);
    if (!y)
        return NULL;
    shape.dims[shape.ndim - 1] = y->shape[1];
    return tern_to_dtype(tern_view(y, shape), x->dtype);
}

tern_tensor *tern_unpack_weight(tern_tensor *codes, tern_tensor *scales, tern_tensor *zeros,
                                int64_t in_features)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *in[] = {tern_contiguous(codes), tern_contiguous(scales),
                         zeros ? tern_contiguous(zeros) : NULL};
    for (int i = 0; i < 3; i++)
        if (!in[i] && (i < 2 || zeros))
            return NULL;
    return tern_apply(&unpack_op, in, 3, &in_features, sizeof in_features);
}

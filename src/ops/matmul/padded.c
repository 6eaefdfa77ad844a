/* padded.c -- matrices in memory that is padded to multiples of rows and columns, with zeros in the
 * padding. */
#include "ops/matmul/padded.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"

tern_extents tern_multiples_of(tern_extents e, bool a_straight, bool b_straight)
{
    return (tern_extents){.m = a_straight ? e.m : tern_up(e.m),
                          .n = tern_up(e.n),
                          .k = a_straight || !b_straight ? tern_up(e.k) : e.k};
}

tern_tensor *tern_padded_empty(const tern_tensor *x)
{
    const tern_shape shape = tern_shape_of(x);
    return tern_tensor_padded(&shape, x->dtype, x->storage->place, "tern_matmul");
}

tern_tensor *tern_padded_copy(const tern_tensor *x)
{
    const int64_t n = x->shape[x->ndim - 1], rows = x->numel / n;
    const int64_t first = n == tern_up(n) ? x->numel : 0, all = tern_up(rows) * tern_up(n);
    const size_t size = tern_dtype_size(x->dtype);
    tern_tensor *y = tern_padded_empty(x);
    tern_status status = !y || first == all
                             ? TERN_OK
                             : tern_block_zero(y->storage->block, (size_t)first * size,
                                               (size_t)(all - first) * size);
    if (y && (status != TERN_OK || tern_copy_elements(y, x) != TERN_OK)) {
        tern_release(y);
        return NULL;
    }
    if (y)
        tern_zero_padded(y);
    return y;
}

void tern_zero_padded(tern_tensor *x)
{
    x->storage->zero_padded = true;
}

bool tern_is_zero_padded(const tern_tensor *x)
{
    return x->storage->zero_padded && tern_lies_padded(x);
}

bool tern_has_odd_rows(const tern_tensor *x)
{
    const int last = x->ndim - 1;
    bool odd = x->offset % TERN_ROW_MULTIPLE != 0;
    if (last < 1 || x->stride[last] != 1)
        return false;
    for (int d = 0; d < last; d++) {
        if (x->shape[d] > 1 && x->stride[d] == 0)
            return false;
        odd |= x->shape[d] > 1 && x->stride[d] % TERN_ROW_MULTIPLE != 0;
    }
    return odd;
}

tern_tensor *tern_product_padded(tern_tensor *x, int64_t other)
{
    const int64_t row = x->ndim > 1 ? x->shape[x->ndim - 1] : 0;
    const tern_gemm g = {.dtype = x->dtype, .m = row ? x->numel / row : 0, .n = other, .k = row};
    return tern_has_odd_rows(x) && tern_place_wants_multiples(x->storage->place, &g)
               ? tern_scoped(tern_padded_copy(x))
               : x;
}

/* collate.c -- a batch of items: corresponding tensors are stacked. */
#include "data/data.h"
#include <stdio.h>
#include <string.h>

static tern_shape batched(const tern_tensor *x, int64_t n)
{
    tern_shape shape = tern_shape_of(x), rows = {shape.ndim + 1, {n}};
    for (int i = 0; i < shape.ndim && i + 1 < TERN_MAX_DIMS; i++)
        rows.dims[i + 1] = shape.dims[i];
    return rows;
}

static tern_status unequal(const tern_tensor *rows, const tern_tensor *x, int64_t at)
{
    char text[2][256];
    for (int i = 0; i < 2; i++) {
        tern_shape shape = tern_shape_of(i ? x : rows);
        int length = snprintf(text[i], sizeof text[i], "[");
        for (int k = !i; k < shape.ndim; k++)
            length += snprintf(text[i] + length, sizeof text[i] - (size_t)length, "%s%lld",
                               k > !i ? ", " : "", (long long)shape.dims[k]);
        snprintf(text[i] + length, sizeof text[i] - (size_t)length, "]");
    }
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_data_default_collate: stack expects each tensor to be equal size, but "
                     "got %s at entry 0 and %s at entry %lld",
                     text[0], text[1], (long long)at);
}

static bool same_row(const tern_tensor *rows, const tern_tensor *x)
{
    const int ndim = tern_dim(x);
    bool same = tern_dim(rows) == ndim + 1;
    for (int i = 0; same && i < ndim; i++) /* faster than tern_shape, which is copied */
        same = tern_size(rows, i + 1) == tern_size(x, i);
    return same;
}

/* Converts *x to the dtype of the rows, or both to their common dtype. */
static tern_status agree(tern_stack_up *s, int k, tern_tensor **x)
{
    tern_dtype have = tern_dtype_of(s->rows[k]), dtype = tern_dtype_of(*x);
    if (have == dtype)
        return TERN_OK;
    uint64_t failures = tern_failures();
    tern_dtype common = tern_promote_types(have, dtype);
    tern_tensor *rows = tern_to_dtype(s->rows[k], common);
    *x = tern_to_dtype(*x, common);
    if (!rows || !*x)
        return tern_failed_since(failures);
    if (rows != s->rows[k]) {
        tern_release(s->rows[k]);
        s->rows[k] = tern_keep(rows);
    }
    return TERN_OK;
}

static bool is_host(const tern_tensor *x)
{
    return strcmp(tern_device(x), "cpu") == 0;
}

/* Copies x to the next row if it has the rows' shape and dtype, as most items do; else returns
 * false. */
static bool put_alike(tern_stack_up *s, int k, tern_tensor *x)
{
    tern_tensor *rows = s->rows[k];
    if (!rows || tern_dtype_of(rows) != tern_dtype_of(x) || !same_row(rows, x) ||
        !tern_is_contiguous(x))
        return false;
    const size_t bytes = (size_t)tern_stride(rows, 0) * tern_dtype_size(tern_dtype_of(x));
    if (bytes && tern_numel(x))
        memcpy((char *)tern_data(rows) + bytes * (size_t)s->filled, tern_data(x), bytes);
    return true;
}

static tern_status put_row(tern_stack_up *s, int k, tern_tensor *x)
{
    if (put_alike(s, k, x))
        return TERN_OK;
    uint64_t failures = tern_failures();
    if (!s->rows[k]) {
        TERN_SCOPE_HERE;
        s->rows[k] = tern_keep(tern_empty(batched(x, s->n), tern_dtype_of(x), "cpu"));
    }
    if (!s->rows[k])
        return tern_failed_since(failures);
    if (!same_row(s->rows[k], x))
        return unequal(s->rows[k], x, s->filled);
    TERN_TRY(agree(s, k, &x));
    x = tern_contiguous(x);
    if (!x)
        return tern_failed_since(failures);
    size_t bytes = (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
    if (bytes)
        memcpy((char *)tern_data(s->rows[k]) + bytes * (size_t)s->filled, tern_data(x), bytes);
    return TERN_OK;
}

tern_status tern_stack_up_add(tern_stack_up *s, tern_tensor *const *item)
{
    for (int k = 0; k < s->count; k++) {
        bool kept = s->filled ? !s->rows[k] : !is_host(item[k]);
        if (!kept && is_host(item[k])) {
            TERN_TRY(put_row(s, k, item[k]));
            continue;
        }
        if (!kept)
            return tern_fail(TERN_ERR_DEVICE,
                             "tern_data_default_collate: items are on cpu and on %s",
                             tern_device(item[k]));
        if (!s->kept)
            s->kept = tern_alloc(tern_size_bytes(s->n * s->count, sizeof(tern_tensor *)));
        if (!s->kept)
            return TERN_ERR_MEMORY;
        tern_tensor **at = &s->kept[k * s->n + s->filled];
        tern_release(*at); /* left by an item that failed later */
        *at = tern_keep(item[k]);
    }
    s->filled++;
    return TERN_OK;
}

static tern_status end_one(tern_stack_up *s, int k, tern_tensor **batch)
{
    uint64_t failures = tern_failures();
    TERN_SCOPE_HERE;
    tern_tensor *x = s->rows[k];
    if (!x)
        x = tern_stack(s->kept + k * s->n, (int)s->filled, 0);
    else if (s->filled < s->n)
        x = tern_narrow(x, 0, 0, s->filled);
    *batch = tern_keep(x);
    return x ? TERN_OK : tern_failed_since(failures);
}

tern_status tern_stack_up_end(tern_stack_up *s, tern_tensor **batch)
{
    tern_status status = TERN_OK;
    for (int k = 0; k < s->count && status == TERN_OK; k++)
        status = end_one(s, k, &batch[k]);
    tern_stack_up_drop(s);
    return status;
}

void tern_stack_up_drop(tern_stack_up *s)
{
    for (int k = 0; k < s->count; k++)
        tern_release(s->rows[k]);
    for (int64_t i = 0; s->kept && i < s->n * s->count; i++)
        tern_release(s->kept[i]);
    tern_free(s->kept);
    *s = (tern_stack_up){.count = 0};
}

tern_status tern_data_default_collate(tern_tensor *const *items, int64_t n, int count,
                                      tern_tensor **batch, void *user)
{
    TERN_NAMED_IN_ERRORS;
    (void)user;
    const char *function = __func__;
    if (!items || !batch)
        return tern_fail_argument_null(function, items ? "batch" : "items");
    if (n < 1 || count < 1 || count > TERN_MAX_ITEM)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %lld items of %d tensors", function, (long long)n,
                         count);
    tern_stack_up s = {.count = count, .n = n};
    tern_status status = TERN_OK;
    for (int64_t i = 0; i < n && status == TERN_OK; i++) {
        for (int k = 0; k < count && status == TERN_OK; k++)
            if (!items[i * count + k])
                status = tern_fail_argument_null(function, "an item");
        if (status == TERN_OK)
            status = tern_stack_up_add(&s, items + i * count);
    }
    if (status != TERN_OK) {
        tern_stack_up_drop(&s);
        return status;
    }
    tern_tensor *made[TERN_MAX_ITEM] = {NULL};
    status = tern_stack_up_end(&s, made);
    for (int k = 0; k < count; k++) { /* the scope takes over the caller's reference */
        batch[k] = status == TERN_OK ? tern_view(made[k], tern_shape_of(made[k])) : NULL;
        if (status == TERN_OK && !batch[k])
            status = TERN_ERR_MEMORY;
        tern_release(made[k]);
    }
    return status;
}

/* attention_rows.h -- attentions and their gradients on a device, held to those on the cpu: rows of tests say which. */
#ifndef TERN_TESTS_ATTENTION_ROWS_H
#define TERN_TESTS_ATTENTION_ROWS_H
#include "support.h"

enum { BATCH = 2, HEADS = 3 };

/* How q, k and v lie: (N, heads, T, width); heads beside each other, as a layer leaves them, with a gap; parts of
 * (N, T, 3, heads, width). */
typedef enum layout { DENSE, BESIDE, PACKED } layout;

typedef struct row {
    const char *what;
    int64_t queries, keys, width, value_width;
    tern_scaled_dot_product_attention_options o;
    layout layout;
    tern_dtype mask; /* TERN_DTYPE_DEFAULT: none */
} row;

typedef struct result {
    tern_tensor *y, *gradient[3];
} result;

static inline tern_tensor *leaf_of(tern_tensor *x)
{
    return tern_requires_grad_(tern_detach(x), true);
}

static inline tern_tensor *dense(const char *device, tern_dtype dtype, int64_t length,
                                 int64_t width, uint64_t seed)
{
    return leaf_of(
        test_uniform(device, dtype, TERN_SHAPE(BATCH, HEADS, length, width), -1, 1, seed));
}

static inline tern_tensor *beside(const char *device, tern_dtype dtype, int64_t length,
                                  int64_t width, uint64_t seed)
{
    tern_tensor *x =
        test_uniform(device, dtype, TERN_SHAPE(BATCH, length, HEADS, width + 3), -1, 1, seed);
    return leaf_of(tern_transpose(tern_narrow(x, 3, 2, width), 1, 2));
}

static inline tern_tensor *mask_of(const row *r, const char *device, tern_dtype dtype)
{
    if (r->mask == TERN_DTYPE_DEFAULT)
        return NULL;
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(HEADS, 1, r->keys), -2, 2, 9);
    return r->mask == TERN_BOOL ? tern_lt_scalar(x, tern_scalar_real(1.2))
                                : tern_to_dtype(x, dtype);
}

/* A row's attention, and the gradients of q, k and v by numbers that lie as they do. */
static inline result attend(const row *r, const char *device, tern_dtype dtype)
{
    tern_tensor *in[3], *packed = NULL;
    const int64_t lengths[] = {r->queries, r->keys, r->keys},
                  widths[] = {r->width, r->width, r->value_width};
    if (r->layout == PACKED)
        packed = leaf_of(test_uniform(device, dtype,
                                      TERN_SHAPE(BATCH, r->queries, 3, HEADS, r->width), -1, 1, 4));
    for (int i = 0; i < 3; i++)
        in[i] = packed ? tern_transpose(tern_select(packed, 2, i), 1, 2)
                       : (r->layout == DENSE ? dense : beside)(device, dtype, lengths[i], widths[i],
                                                               (unsigned)i + 1);
    tern_scaled_dot_product_attention_options o = r->o;
    o.attn_mask = mask_of(r, device, dtype);
    tern_manual_seed(7);
    result made = {.y = tern_scaled_dot_product_attention(in[0], in[1], in[2], &o)};
    int64_t shape[] = {r->queries, HEADS};
    bool inner = r->layout == BESIDE;
    tern_tensor *slope = test_uniform(
        device, dtype, TERN_SHAPE(BATCH, shape[!inner], shape[inner], r->value_width), -1, 1, 5);
    slope = inner ? tern_transpose(slope, 1, 2) : slope;
    tern_backward_with(made.y, &(tern_backward_options){.gradient = slope});
    for (int i = 0; i < 3; i++)
        made.gradient[i] = packed ? tern_select(tern_grad(packed), 2, i) : tern_grad(in[i]);
    return made;
}

/* Half precision is rounded in other places: once in float32 on the cpu. */
static inline void compare(const row *r, const char *device, tern_dtype dtype)
{
    double error = dtype == TERN_F32 ? 2e-5 : dtype == TERN_F16 ? 4e-3 : 3e-2;
    test_tolerance t = {.abs = error, .rel = error};
    result here = attend(r, device, dtype), there = attend(r, "cpu", dtype);
    assert_ok(tern_synchronize(device));
    assert_int_equal(tern_last_status(), TERN_OK);
    test_close(tern_to(here.y, "cpu"), there.y, t, r->what, __FILE__, __LINE__);
    for (int i = 0; i < 3; i++)
        test_close(tern_to(here.gradient[i], "cpu"), there.gradient[i], t, r->what, __FILE__,
                   __LINE__);
}

#endif

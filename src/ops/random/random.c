/* random.c -- random tensors, from the device's Philox generator.
 *
 * Philox is counter-based: a group of four 32-bit words is a function of the seed and the number of
 * the group, so that any number of work-items can compute the elements in any order. A call takes
 * as many groups as it needs from the generator's state. */
#include "base/memory.h"
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/ops.h>

/* ---- filling ----------------------------------------------------------------------------- */

/* The distributions of the kernels that fill a dense tensor. */
enum { UNIFORM, NORMAL };
static const tern_kernel_ref kernels[] = {{"random", "uniform"}, {"random", "normal"}};
static const tern_kernel_ref integers_kernel = {"random", "integers"};

/* Returns the number of groups for n elements: a group makes two elements of 64 bits, or four
 * smaller ones. */
static int64_t groups_of(int64_t n, bool wide)
{
    return wide ? n / 2 + n % 2 : n / 4 + (n % 4 != 0);
}

/* Computes x = shift + scale v for a dense x, with v uniform in [0, 1) or standard normal (Box,
 * Muller 1958). */
static tern_status fill(tern_tensor *x, const tern_kernel_ref *kernel, double shift, double scale)
{
    tern_place *place = x->storage->place;
    tern_arg state;
    int64_t at;
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_rng_take(place, groups_of(x->numel, x->dtype == TERN_F64), &state, &at));
    return TERN_LAUNCH(place, kernel, x->dtype, tern_items_of((x->numel + 3) / 4, 16),
                       tern_arg_out(x), state, tern_arg_i64(at), tern_arg_i64(x->numel),
                       tern_arg_real(x->dtype, shift), tern_arg_real(x->dtype, scale));
}

/* Fills x with low + uniform integers below span. A span of 0 stands for 2^64; a span above 2^32
 * takes 64 random bits for each element. */
static tern_status fill_integers(tern_tensor *x, int64_t low, uint64_t span)
{
    tern_place *place = x->storage->place;
    tern_arg state;
    int64_t at;
    bool wide = span == 0 || span > UINT64_C(1) << 32;
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_rng_take(place, groups_of(x->numel, wide), &state, &at));
    return TERN_LAUNCH(place, &integers_kernel, x->dtype, tern_items_of(x->numel, 8),
                       tern_arg_out(x), state, tern_arg_i64(at), tern_arg_i64(x->numel),
                       tern_arg_i64(low), tern_arg_u64(span));
}

/* Returns a new tensor in the open scope, or NULL; `floating` requires a floating point dtype. */
static tern_tensor *make(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                         bool floating, const char *function)
{
    if (tern_dtype_size(dtype) == 0)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: %d is not a dtype", function, (int)dtype);
    if (floating && tern_check_floating(function, dtype) != TERN_OK)
        return NULL;
    if (!place || tern_shape_numel(shape, function) < 0)
        return NULL;
    return tern_scoped_from(tern_tensor_new(shape, dtype, place, function), function);
}

/* Returns x filled with u or z, without shift and scale, or NULL. */
static tern_tensor *filled(tern_tensor *x, const tern_kernel_ref *kernel)
{
    return x && fill(x, kernel, 0, 1) == TERN_OK ? x : NULL;
}

tern_tensor *tern_rand(tern_shape shape, tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    dtype = dtype == TERN_DTYPE_DEFAULT ? tern_default_real() : dtype;
    tern_place *place = tern_place_find(device, __func__);
    return filled(make(&shape, dtype, place, true, __func__), &kernels[UNIFORM]);
}

tern_tensor *tern_randn(tern_shape shape, tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    dtype = dtype == TERN_DTYPE_DEFAULT ? tern_default_real() : dtype;
    tern_place *place = tern_place_find(device, __func__);
    return filled(make(&shape, dtype, place, true, __func__), &kernels[NORMAL]);
}

/* Returns new random numbers with the shape, dtype and device of x. */
static tern_tensor *like(const tern_tensor *x, const tern_kernel_ref *kernel, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    tern_shape shape = tern_shape_of(x);
    return filled(make(&shape, x->dtype, x->storage->place, true, function), kernel);
}

tern_tensor *tern_rand_like(const tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return like(x, &kernels[UNIFORM], __func__);
}

tern_tensor *tern_randn_like(const tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return like(x, &kernels[NORMAL], __func__);
}

/* ---- in place ---------------------------------------------------------------------------- */

typedef struct fill_attributes {
    double shift, scale;
} fill_attributes;

static tern_status fill_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* Fills a dense tensor by the kernel; a view that is not dense is copied from a dense tensor. */
static tern_status fill_forward(tern_call *call)
{
    const fill_attributes *at = call->attributes;
    const tern_kernel_ref *kernel = &kernels[call->op->variant];
    tern_tensor *x = call->out[0];
    if (x->contiguous)
        return fill(x, kernel, at->shift, at->scale);
    tern_tensor *dense = tern_tensor_new(&call->result[0].shape, x->dtype, call->place, "tern");
    tern_status status = dense ? fill(dense, kernel, at->shift, at->scale) : tern_last_status();
    if (status == TERN_OK)
        status = tern_copy_elements(x, dense);
    tern_release(dense);
    return status;
}

static const tern_op uniform_op = {.name = "uniform",
                                   .takes = TERN_TAKES_FLOATS,
                                   .variant = UNIFORM,
                                   .infer = fill_infer,
                                   .forward = fill_forward,
                                   .backward = tern_no_gradient};
static const tern_op normal_op = {.name = "normal",
                                  .takes = TERN_TAKES_FLOATS,
                                  .variant = NORMAL,
                                  .infer = fill_infer,
                                  .forward = fill_forward,
                                  .backward = tern_no_gradient};

static tern_tensor *fill_in_place(const tern_op *op, tern_tensor *x, double shift, double scale)
{
    fill_attributes at = {shift, scale};
    return tern_apply_in_place(op, &x, 1, &at, sizeof at);
}

/* x = low + (high - low) u */
tern_tensor *tern_uniform_(tern_tensor *x, double low, double high)
{
    if (!(low <= high) || isinf(low) || isinf(high))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_uniform_: uniform_ expects to return a [from, to) range, but "
                              "found from=%g > to=%g",
                              low, high);
    return fill_in_place(&uniform_op, x, low, high - low);
}

/* x = mean + std z */
tern_tensor *tern_normal_(tern_tensor *x, double mean, double std)
{
    if (!(std >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_normal_: normal expects std >= 0.0, but found std %g", std);
    return fill_in_place(&normal_op, x, mean, std);
}

/* ---- integers ---------------------------------------------------------------------------- */

/* Sets the range of the integers that a dtype holds without gaps: up to 2^digits for floats, up to
 * 2^digits - 1 for integers. */
static void integer_range(tern_dtype dtype, int64_t *least, int64_t *most)
{
    int digits = tern_dtype_rows[dtype].digits; /* 64 for uint64: its upper half exceeds int64 */
    int64_t power = digits < 63 ? (INT64_C(1) << digits) - 1 : INT64_MAX;
    bool has_sign = !tern_dtype_in(dtype, TERN_SET_UNSIGNED | TERN_SET_BOOLS);
    *most = tern_dtype_in(dtype, TERN_SET_FLOATS) ? power + 1 : power;
    *least = has_sign ? -power - 1 : 0;
}

/* Returns uniform integers in [low, high); the dtype must hold both bounds. */
tern_tensor *tern_randint(int64_t low, int64_t high, tern_shape shape, tern_dtype dtype,
                          const char *device)
{
    TERN_NAMED_IN_ERRORS;
    dtype = dtype == TERN_DTYPE_DEFAULT ? TERN_I64 : dtype;
    if (low >= high)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_randint: random_ expects 'from' to be less than 'to', but got "
                              "from=%lld >= to=%lld",
                              (long long)low, (long long)high);
    tern_place *place = tern_place_find(device, __func__);
    tern_tensor *x = make(&shape, dtype, place, false, __func__);
    if (!x)
        return NULL;
    int64_t least, most;
    integer_range(dtype, &least, &most);
    if (low < least || low > most)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_randint: from (%lld) is out of bounds for %s", (long long)low,
                              tern_dtype_name(dtype));
    if (high - 1 < least || high - 1 > most)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_randint: to - 1 (%lld) is out of bounds for %s",
                              (long long)(high - 1), tern_dtype_name(dtype));
    return fill_integers(x, low, (uint64_t)high - (uint64_t)low) == TERN_OK ? x : NULL;
}

/* Fisher and Yates's shuffle: swaps element i with a random one of i..n-1. It runs on the host with
 * a key of 64 bits for each step from the device's generator: the order depends on the seed alone,
 * and the bias of the modulo is negligible. */
static void shuffle(int64_t *keys, int64_t *order, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t j = i + (int64_t)((uint64_t)keys[i] % (uint64_t)(n - i));
        int64_t other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}

/* The device draws the keys into the int64 tensor, which then holds the permutation. */
tern_tensor *tern_randperm(int64_t n, tern_dtype dtype, const char *device)
{
    tern_shape shape = {1, {n}};
    dtype = dtype == TERN_DTYPE_DEFAULT ? TERN_I64 : dtype;
    tern_place *place = tern_place_find(device, "tern_randperm");
    tern_tensor *x = make(&shape, dtype, place, false, "tern_randperm");
    if (!x || n == 0)
        return x;
    int64_t least, most;
    integer_range(dtype, &least, &most);
    if (n - 1 > most)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_randperm: %s cannot distinguish %lld elements",
                              tern_dtype_name(dtype), (long long)n);
    size_t bytes = (size_t)n * sizeof(int64_t);
    tern_tensor *whole =
        dtype == TERN_I64 ? x : make(&shape, TERN_I64, place, false, "tern_randperm");
    int64_t *keys = tern_alloc(2 * bytes);
    tern_status status = whole && keys ? fill_integers(whole, 0, 0) : tern_last_status();
    if (status == TERN_OK)
        status = tern_hidden_read(whole, keys, bytes, "tern_randperm");
    if (status == TERN_OK) {
        shuffle(keys, keys + n, n);
        status = tern_block_write(whole->storage->block, 0, keys + n, bytes);
    }
    tern_free(keys);
    if (status == TERN_OK && whole != x)
        status = tern_copy_elements(x, whole);
    return status == TERN_OK ? x : NULL;
}

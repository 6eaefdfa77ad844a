/* test_index.c -- embedding, index_select, index, gather: values, gradients,
 * indices out of range. */
#include "support.h"

static tern_tensor *whole(const char *device, tern_dtype dtype, tern_shape shape, const double *v)
{
    return test_tensor(device, dtype, shape, v);
}
#define WHOLE(device, shape, ...) whole(device, TERN_I64, shape, (const double[]){__VA_ARGS__})

static void picking_along_a_dim(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_I32, TERN_U8};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 5; i++) {
        tern_tensor *x = TENSOR(device, dtypes[i], TERN_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
        tern_tensor *index = WHOLE(device, TERN_SHAPE(4), 2, 0, 0, 1);
        assert_values(tern_index_select(x, 1, index), 2, 0, 0, 1, 5, 3, 3, 4);
        assert_values(tern_index_select(x, 0, WHOLE(device, TERN_SHAPE(1), 1)), 3, 4, 5);
        assert_values(tern_index(x, WHOLE(device, TERN_SHAPE(1, 2), -1, 0)), 3, 4, 5, 0, 1, 2);
        assert_shape(tern_index(x, WHOLE(device, TERN_SHAPE(1, 2), -1, 0)), 1, 2, 3);
        tern_tensor *each = WHOLE(device, TERN_SHAPE(2, 2), 0, 2, 1, 1);
        assert_values(tern_gather(x, 1, each), 0, 2, 4, 4);
        assert_values(tern_gather(x, 0, WHOLE(device, TERN_SHAPE(1, 3), 1, 0, 1)), 3, 1, 5);
        tern_tensor *short_index = whole(device, TERN_I32, TERN_SHAPE(2), (const double[]){1, 1});
        assert_values(tern_embedding(short_index, x, NULL), 3, 4, 5, 3, 4, 5);
    }
}

/* x (3, 2) picked with repeats; dy is 1, 2, 3, ... */
static void repeats_add_up(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++) {
        if (!test_has(device, dtypes[i]))
            continue;
        tern_tensor *index = WHOLE(device, TERN_SHAPE(2, 2), 2, 0, 2, 2);
        tern_tensor *dy = tern_arange(1, 9, 1, dtypes[i], device);
        dy = tern_view(dy, TERN_SHAPE(2, 2, 2));
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 2), dtypes[i], device);
        tern_requires_grad_(x, true);
        assert_ok(tern_backward(tern_sum(tern_mul(tern_embedding(index, x, NULL), dy))));
        assert_values(tern_grad(x), 3, 4, 0, 0, 13, 16);
        tern_tensor *padded = tern_ones(TERN_SHAPE(3, 2), dtypes[i], device);
        tern_requires_grad_(padded, true);
        tern_embedding_function_options options = {.padding_idx = TERN_SOME(-1)};
        assert_ok(tern_backward(tern_sum(tern_mul(tern_embedding(index, padded, &options), dy))));
        assert_values(tern_grad(padded), 3, 4, 0, 0, 0, 0);
    }
}

/* What every index out of range says, at once or when the device is waited for. */
static void out_of_range(tern_tensor *result, const char *device, const char *words)
{
    if (result)
        assert_int_not_equal(tern_synchronize(device), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, words);
}

static void an_index_out_of_range_is_found(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *two = WHOLE(device, TERN_SHAPE(1), 2),
                    *below = WHOLE(device, TERN_SHAPE(1), -1);
        tern_tensor *far_below = WHOLE(device, TERN_SHAPE(1), -3);
        out_of_range(tern_embedding(two, x, NULL), device,
                     "tern_embedding: index out of range in self");
        out_of_range(tern_embedding(below, x, NULL), device,
                     "tern_embedding: index out of range in self");
        out_of_range(tern_index_select(x, 0, below), device,
                     "index out of range in self (index -1");
        out_of_range(tern_index(x, two), device,
                     "index 2 is out of bounds for dimension 0 with size 2");
        out_of_range(tern_index(x, far_below), device, "index -3 is out of bounds");
        out_of_range(tern_gather(x, 1, WHOLE(device, TERN_SHAPE(1, 1), 3)), device,
                     "index 3 is out of bounds for dimension 1 with size 3");
        assert_values(tern_sum(x), 0);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    tern_tensor *one = WHOLE("cpu", TERN_SHAPE(1), 0),
                *flat = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    tern_embedding_function_options options = {.padding_idx = TERN_SOME(2)};
    assert_null(tern_embedding(flat, x, NULL));
    assert_error(TERN_ERR_DTYPE, "Expected tensor for argument #1 'indices'");
    assert_null(tern_embedding(one, flat, NULL));
    assert_error(TERN_ERR_SHAPE, "'weight' must be 2-D");
    assert_null(tern_embedding(one, x, &options));
    assert_error(TERN_ERR_ARGUMENT, "Padding_idx must be within num_embeddings");
    assert_null(tern_index_select(x, 0, WHOLE("cpu", TERN_SHAPE(1, 1), 0)));
    assert_error(TERN_ERR_SHAPE, "Index is supposed to be a vector");
    assert_null(tern_index_select(x, 0, flat));
    assert_error(TERN_ERR_DTYPE, "Expected dtype int32 or int64 for index");
    assert_null(tern_gather(x, 1, one));
    assert_error(TERN_ERR_SHAPE,
                 "Index tensor must have the same number of dimensions as input tensor");
    assert_null(tern_gather(x, 1, WHOLE("cpu", TERN_SHAPE(3, 1), 0, 0, 0)));
    assert_error(TERN_ERR_SHAPE,
                 "Size does not match at dimension 0 expected index [3, 1] to be smaller "
                 "than self [2, 3] apart from dimension 1");
    assert_null(tern_index(tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, "cpu"), one));
    assert_error(TERN_ERR_SHAPE, "too many indices for tensor of dimension 0");
    assert_null(tern_index(NULL, one));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
}

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        tern_tensor *x = in[0], *index = user;                                                     \
        return CALL;                                                                               \
    }
CHECKED(embed,
        tern_embedding(index, x, &(tern_embedding_function_options){.padding_idx = TERN_SOME(1)}))
CHECKED(select_last, tern_index_select(x, 1, index))
CHECKED(pick, tern_index(x, index))
CHECKED(gather_last, tern_gather(x, 1, index))

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(3, 4), -2, 2, 5);
        tern_requires_grad_(x, true);
        tern_tensor *rows = WHOLE(device, TERN_SHAPE(5), 2, 1, 2, 0, 2);
        tern_tensor *each = WHOLE(device, TERN_SHAPE(2, 3), 3, 0, 3, 1, 1, 1);
        tern_tensor *not_padding = WHOLE(device, TERN_SHAPE(3), 2, 0, 2);
        gradcheck(embed, &x, 1, .user = not_padding, .second = true);
        gradcheck(select_last, &x, 1, .user = rows, .second = true);
        gradcheck(pick, &x, 1, .user = rows, .second = true);
        gradcheck(gather_last, &x, 1, .user = each, .second = true);
    }
}

static void what_comes_to_one_place_is_reduced(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 2, 5, 7);
        tern_tensor *index = TENSOR(device, TERN_I64, TERN_SHAPE(4), 0, 1, 0, 0);
        tern_tensor *src = TENSOR(device, TERN_F32, TERN_SHAPE(4), 3, 4, -1, 6);
        assert_values(tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_SUM, true), 10, 9, 7);
        assert_values(tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_PROD, true), -36, 20, 7);
        assert_values(tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_PROD, false), -18, 4, 7);
        assert_values(tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_AMAX, true), 6, 5, 7);
        assert_values(tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_AMIN, true), -1, 4, 7);
        assert_values(tern_scatter(x, 0, index, src, TERN_REDUCE_PROD), -36, 20, 7);
    }
}

/* An index of 12 dims among the dims of x. */
/* A tensor without dims stands for one of one dim, and takes rows of one number. */
static void rows_are_not_written_to_a_number(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, device);
        tern_tensor *index = tern_zeros(TERN_SHAPE(3), TERN_I64, device);
        tern_tensor *rows = tern_ones(TERN_SHAPE(3, 2, 5), TERN_F32, device);
        assert_null(tern_index_add(x, 0, index, rows, TERN_SCALAR(1)));
        assert_error(TERN_ERR_SHAPE, "same slice shapes");
        assert_null(tern_index_copy_(x, 0, index, rows));
        assert_error(TERN_ERR_SHAPE, "same slice shapes");
        rows = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        assert_close(tern_index_add(x, 0, index, rows, TERN_SCALAR(2)),
                     TENSOR(device, TERN_F32, TERN_SHAPE_SCALAR, 6), .abs = 0);
    }
}

static void results_of_too_many_dims_are_refused(void **state)
{
    (void)state;
    tern_shape ones = {.ndim = TERN_MAX_DIMS};
    for (int d = 0; d < TERN_MAX_DIMS; d++)
        ones.dims[d] = 1;
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(ones, TERN_F32, "cpu"), *one = tern_ones_like(x);
        tern_tensor *index = tern_zeros(ones, TERN_I64, "cpu");
        assert_null(tern_index_list(x, &index, 1));
        assert_error(TERN_ERR_SHAPE, "too many indices for tensor of dimension 12");
        assert_null(tern_index_put(x, &index, 1, one, false));
        assert_error(TERN_ERR_SHAPE, "too many indices for tensor of dimension 12");
        tern_tensor *flat = tern_flatten(x, 0, -1);
        assert_int_equal(tern_dim(tern_index_list(flat, &index, 1)), TERN_MAX_DIMS);
    }
}

static void places_become_coordinates(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *places = TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 0, 7, 23, 24), *out[3];
        assert_ok(tern_unravel_index(places, TERN_SHAPE(2, 3, 4), out));
        assert_same(out[0], TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 0, 0, 1, 0));
        assert_same(out[1], TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 0, 1, 2, 0));
        assert_same(out[2], TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 0, 3, 3, 0));
        tern_tensor *real = tern_to_dtype(places, TERN_F32);
        assert_int_equal(tern_unravel_index(real, TERN_SHAPE(2), out), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "integer dtype, but got float32");
        assert_int_equal(tern_unravel_index(places, TERN_SHAPE(-2), out), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "cannot have negative values");
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 0, 3, 4, 5);
        assert_same(tern_nonzero_static(x, 2, -1),
                    TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 0, 1, 1, 0));
        assert_same(tern_nonzero_static(x, 4, -1),
                    TENSOR(device, TERN_I64, TERN_SHAPE(4, 2), 0, 1, 1, 0, 1, 1, -1, -1));
        assert_null(tern_nonzero_static(x, -1, 0));
        assert_error(TERN_ERR_ARGUMENT, "non-negative");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(picking_along_a_dim),
    TEST(repeats_add_up),
    TEST(an_index_out_of_range_is_found),
    TEST(what_does_not_fit_is_refused),
    TEST(rows_are_not_written_to_a_number),
    TEST(results_of_too_many_dims_are_refused),
    TEST(places_become_coordinates),
    TEST(gradients_are_the_differences),
    TEST(what_comes_to_one_place_is_reduced),
};
TEST_MAIN(tests)

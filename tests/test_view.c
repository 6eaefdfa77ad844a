/* test_view.c -- views: where they look, what they refuse, their gradients. */
#include "support.h"
#include <stdio.h>
#include <stdlib.h>

typedef tern_tensor *(*function)(tern_tensor *x);

/* ---- where they look: x = arange(24).view(2, 3, 4), against golden/view.txt -------------- */

#define SHAPE TERN_SHAPE
#define FUNCTION(NAME, EXPRESSION)                                                                 \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return EXPRESSION;                                                                         \
    }
FUNCTION(view, tern_view(x, SHAPE(4, -1)))
FUNCTION(view_of_permuted, tern_view(tern_permute(x, TERN_DIMS(1, 0, 2)), SHAPE(3, 2, 2, 2)))
FUNCTION(reshape_copies, tern_reshape(tern_transpose(x, 1, 2), SHAPE(4, 6)))
FUNCTION(reshape_looks, tern_reshape(tern_slice(x, 1, 1, TERN_SLICE_END, 1), SHAPE(2, -1)))
FUNCTION(flatten, tern_flatten(x, 1, -1))
FUNCTION(flatten_all, tern_flatten(x, 0, -1))
FUNCTION(unflatten, tern_unflatten(x, -1, SHAPE(2, -1)))
FUNCTION(permute, tern_permute(x, TERN_DIMS(2, 0, -2)))
FUNCTION(transpose, tern_transpose(x, 0, -1))
FUNCTION(t, tern_t(tern_select(x, 0, 0)))
FUNCTION(thin, tern_slice(tern_slice(x, 0, 0, 1, 1), 2, 2, 3, 1))
FUNCTION(squeeze, tern_squeeze(thin(x)))
FUNCTION(squeeze_dim, tern_squeeze_dim(thin(x), -1))
FUNCTION(squeeze_dim_kept, tern_squeeze_dim(x, 1))
FUNCTION(unsqueeze, tern_unsqueeze(x, -2))
FUNCTION(unsqueeze_front, tern_unsqueeze(tern_transpose(x, 0, 1), 0))
FUNCTION(expand, tern_expand(tern_select(tern_narrow(x, 1, 0, 1), 2, 0), SHAPE(3, -1, 5)))
FUNCTION(narrow, tern_narrow(x, 2, -3, 2))
FUNCTION(narrow_empty, tern_narrow(x, 0, 2, 0))
FUNCTION(slice, tern_slice(x, 2, 1, 100, 2))
FUNCTION(slice_negative, tern_slice(x, 1, -2, -1, 1))
FUNCTION(slice_empty, tern_slice(x, 1, 2, 1, 1))
FUNCTION(select_last, tern_select(x, 1, -1))
FUNCTION(as_strided, tern_as_strided(tern_select(x, 0, 1), SHAPE(2, 3), SHAPE(1, 2), 1))

static const struct {
    const char *name;
    function call;
} looks[] = {
    {"view", view},
    {"view_of_permuted", view_of_permuted},
    {"reshape_copies", reshape_copies},
    {"reshape_looks", reshape_looks},
    {"flatten", flatten},
    {"flatten_all", flatten_all},
    {"unflatten", unflatten},
    {"permute", permute},
    {"transpose", transpose},
    {"t", t},
    {"squeeze", squeeze},
    {"squeeze_dim", squeeze_dim},
    {"squeeze_dim_kept", squeeze_dim_kept},
    {"unsqueeze", unsqueeze},
    {"unsqueeze_front", unsqueeze_front},
    {"expand", expand},
    {"narrow", narrow},
    {"narrow_empty", narrow_empty},
    {"slice", slice},
    {"slice_negative", slice_negative},
    {"slice_empty", slice_empty},
    {"select", select_last},
    {"as_strided", as_strided},
};
enum { LOOKS = sizeof looks / sizeof *looks };

static tern_tensor *counted(const char *device, tern_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    return tern_view(tern_arange(0, (double)n, 1, TERN_F32, device), shape);
}

/* Strides of dims that are walked along; those of empty tensors mean nothing. */
static void check_strides(const tern_tensor *y, const tern_tensor *wanted, const char *name)
{
    double *stride = test_read(wanted);
    for (int d = 0; d < tern_dim(y) && tern_numel(y) > 0; d++)
        if (tern_size(y, d) > 1 && (double)tern_stride(y, d) != stride[d])
            fail_msg("%s: stride %d is %lld, not %g", name, d, (long long)tern_stride(y, d),
                     stride[d]);
    free(stride);
}

static void every_view_looks_where_pytorch_does(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("view");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < LOOKS; i++)
        TERN_SCOPE {
            char stride[64];
            snprintf(stride, sizeof stride, "%s.stride", looks[i].name);
            tern_tensor *x = counted(device, SHAPE(2, 3, 4));
            tern_tensor *y = looks[i].call(x);
            assert_same(y, test_golden_tensor(golden, looks[i].name, device));
            check_strides(y, test_golden_tensor(golden, stride, "cpu"), looks[i].name);
            tern_zero_(x); /* a view shows what is written to x */
            double *now = test_read(y), sum = 0;
            for (int64_t k = 0; k < tern_numel(y); k++)
                sum += now[k];
            free(now);
            assert_true(tern_numel(y) == 0 || (sum != 0) == (looks[i].call == reshape_copies));
        }
    test_golden_close(golden);
}

static void twelve_dims_are_enough_and_thirteen_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = counted(device, SHAPE(2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1));
        tern_tensor *back = tern_permute(x, TERN_DIMS(11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
        tern_tensor *y = tern_flatten(tern_contiguous(back), 0, -1);
        assert_shape(y, 64);
        assert_values(tern_narrow(y, 0, 0, 4), 0, 32, 16, 48);
        assert_null(tern_unsqueeze(x, 0));
        assert_error(TERN_ERR_SHAPE, "tern_unsqueeze: a tensor has at most 12 dims, not 13");
        assert_null(tern_unflatten(x, 0, SHAPE(1, 2)));
        assert_error(TERN_ERR_SHAPE, "tern_unflatten: a tensor has at most 12 dims, not 13");
        tern_shape wild = {.ndim = 13};
        assert_null(tern_view(x, wild));
        assert_error(TERN_ERR_SHAPE, "tern_view: a tensor has at most 12 dims, not 13");
        wild.ndim = -1;
        assert_null(tern_expand(x, wild));
        assert_error(TERN_ERR_SHAPE, "tern_expand");
        assert_null(tern_permute(x, wild));
        assert_error(TERN_ERR_SHAPE, "tern_permute");
        assert_null(tern_as_strided(x, wild, wild, 0));
        assert_error(TERN_ERR_SHAPE, "tern_as_strided");
    }
}

static void scalars_have_views_too(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_tensor_scalar(TERN_SCALAR(7.0), TERN_F32, device);
        assert_shape(tern_flatten(x, 0, -1), 1);
        assert_shape(tern_view(x, SHAPE(1, -1)), 1, 1);
        assert_shape(tern_unsqueeze(x, -1), 1);
        assert_shape(tern_expand(x, SHAPE(2, 0, 3)), 2, 0, 3);
        assert_values(tern_expand(x, SHAPE(3)), 7, 7, 7);
        assert_int_equal(tern_dim(tern_squeeze(x)), 0);
        assert_int_equal(tern_dim(tern_squeeze_dim(x, -1)), 0);
        assert_int_equal(tern_dim(tern_permute(x, TERN_SHAPE_SCALAR)), 0);
        assert_int_equal(tern_dim(tern_transpose(x, 0, -1)), 0);
        assert_ptr_equal(tern_t(x), x);
        assert_values(tern_as_strided(x, SHAPE(2, 2), SHAPE(0, 0), 0), 7, 7, 7, 7);
        assert_int_equal(
            tern_dim(tern_view(tern_ones(SHAPE(1, 1), TERN_F32, device), TERN_SHAPE_SCALAR)), 0);
    }
}

static void empty_tensors_have_views_too(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(SHAPE(0, 2, 3), TERN_F32, device);
        assert_shape(tern_view(x, SHAPE(-1, 6)), 0, 6);
        assert_shape(tern_unflatten(x, 0, SHAPE(-1, 2)), 0, 2, 2, 3);
        assert_shape(tern_flatten(tern_transpose(x, 0, 2), 0, -1), 0);
        assert_shape(tern_expand(x, SHAPE(4, -1, -1, 3)), 4, 0, 2, 3);
        assert_shape(tern_slice(x, 0, 1, 5, 2), 0, 2, 3);
        assert_shape(tern_as_strided(x, SHAPE(0, 3), SHAPE(3, 1), 5), 0, 3);
        assert_shape(tern_expand(tern_ones(SHAPE(1, 3), TERN_F32, device), SHAPE(0, 3)), 0, 3);
        tern_tensor *a = tern_requires_grad_(tern_zeros(SHAPE(0, 3), TERN_F32, device), true);
        assert_ok(tern_backward(tern_sum(tern_narrow(tern_t(a), 0, 1, 2))));
        assert_shape(tern_grad(a), 0, 3);
    }
}

/* ---- what they refuse -------------------------------------------------------------------- */

#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(status, words);                                                               \
    } while (0)

static void shapes_that_do_not_fit_are_refused_in_pytorchs_words(void **state)
{
    (void)state;
    tern_tensor *x = counted("cpu", SHAPE(2, 3)), *e = tern_zeros(SHAPE(0, 3), TERN_F32, "cpu");
    REFUSED(tern_view(x, SHAPE(4, 2)), TERN_ERR_SHAPE,
            "tern_view: shape '[4, 2]' is invalid for input of size 6");
    REFUSED(tern_view(x, SHAPE(-1, 4)), TERN_ERR_SHAPE, "shape '[-1, 4]' is invalid for input of");
    REFUSED(tern_view(x, SHAPE(INT64_MAX, 4)), TERN_ERR_SHAPE, "is invalid for input of size 6");
    REFUSED(tern_view(x, SHAPE(INT64_MAX, INT64_MAX, -1)), TERN_ERR_SHAPE, "is invalid for");
    REFUSED(tern_view(x, SHAPE(-1, -1)), TERN_ERR_SHAPE, "only one dimension can be inferred");
    REFUSED(tern_view(x, SHAPE(-2, 3)), TERN_ERR_SHAPE, "invalid shape dimension -2");
    REFUSED(tern_view(e, SHAPE(-1, 0)), TERN_ERR_SHAPE,
            "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified "
            "dimension size -1 can be any value and is ambiguous");
    REFUSED(tern_view(tern_t(x), SHAPE(6)), TERN_ERR_SHAPE,
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use tern_reshape");
    REFUSED(tern_reshape(x, SHAPE(5)), TERN_ERR_SHAPE,
            "tern_reshape: shape '[5]' is invalid for input of size 6");
    REFUSED(tern_flatten(x, 1, 0), TERN_ERR_ARGUMENT, "start_dim cannot come after end_dim");
    REFUSED(tern_unflatten(x, 1, SHAPE(2, 2)), TERN_ERR_SHAPE,
            "Provided sizes [2, 2] don't multiply up to the size of dim 1 (3) in the input tensor");
    REFUSED(tern_unflatten(x, 1, SHAPE(-1, -1)), TERN_ERR_SHAPE, "only one dimension");
    REFUSED(tern_unflatten(x, 1, SHAPE(0, -1)), TERN_ERR_SHAPE, "don't multiply up");
    REFUSED(tern_unflatten(x, 1, TERN_SHAPE_SCALAR), TERN_ERR_SHAPE, "sizes must be non-empty");
    REFUSED(tern_expand(x, SHAPE(4, 3)), TERN_ERR_SHAPE,
            "The expanded size of the tensor (4) must match the existing size (2) at non-singleton "
            "dimension 0.  Target sizes: [4, 3].  Tensor sizes: [2, 3]");
    REFUSED(tern_expand(x, SHAPE(-1, 2, 3)), TERN_ERR_SHAPE,
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
            "dimension 0");
    REFUSED(tern_expand(x, SHAPE(2, -2)), TERN_ERR_SHAPE, "expanded size of the tensor (-2)");
    REFUSED(tern_broadcast_to(x, SHAPE(3)), TERN_ERR_SHAPE,
            "the number of sizes provided (1) must be greater or equal to the number of dimensions "
            "in the tensor (2)");
    REFUSED(tern_expand_as(x, e), TERN_ERR_SHAPE, "The expanded size of the tensor (0)");
    REFUSED(tern_expand(tern_ones(SHAPE(1), TERN_F32, "cpu"), SHAPE(1LL << 40, 1LL << 40, 1)),
            TERN_ERR_SHAPE, "overflowed");
    REFUSED(tern_t(counted("cpu", SHAPE(1, 2, 3))), TERN_ERR_SHAPE,
            "expects a tensor with <= 2 dimensions, but self is 3D");
}

static void dims_and_bounds_are_checked(void **state)
{
    (void)state;
    tern_tensor *x = counted("cpu", SHAPE(2, 3)), *pieces[8];
    tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(1.0), TERN_F32, "cpu");
    const char *range = "Dimension out of range (expected to be in range of [-2, 1], but got 2)";
    REFUSED(tern_transpose(x, 0, 2), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_permute(x, TERN_DIMS(0, 2)), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_permute(x, TERN_DIMS(1, -1)), TERN_ERR_ARGUMENT, "duplicate dims are not allowed");
    REFUSED(tern_permute(x, TERN_DIMS(0)), TERN_ERR_ARGUMENT,
            "input.dim() = 2 is not equal to len(dims) = 1");
    REFUSED(tern_squeeze_dim(x, 2), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_unsqueeze(x, -4), TERN_ERR_ARGUMENT,
            "Dimension out of range (expected to be in range of [-3, 2], but got -4)");
    REFUSED(tern_flatten(x, 0, 2), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_unflatten(x, 2, SHAPE(1, 3)), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_narrow(x, 2, 0, 1), TERN_ERR_ARGUMENT, range);
    REFUSED(tern_narrow(x, 0, 1, 2), TERN_ERR_ARGUMENT,
            "start (1) + length (2) exceeds dimension size (2).");
    REFUSED(tern_narrow(x, 0, 1, INT64_MAX), TERN_ERR_ARGUMENT, "exceeds dimension size (2).");
    REFUSED(tern_narrow(x, 0, 0, -1), TERN_ERR_ARGUMENT, "start (0) + length (-1) exceeds");
    REFUSED(tern_narrow(x, 0, -3, 1), TERN_ERR_ARGUMENT, "in range of [-2, 2], but got -3)");
    REFUSED(tern_narrow(scalar, 0, 0, 0), TERN_ERR_SHAPE, "cannot be applied to a 0-dim tensor");
    REFUSED(tern_slice(x, 0, 0, 2, 0), TERN_ERR_ARGUMENT, "slice step must be positive");
    REFUSED(tern_slice(scalar, 0, 0, 1, 1), TERN_ERR_SHAPE, "cannot be applied to a 0-dim tensor");
    REFUSED(tern_select(x, 0, 2), TERN_ERR_ARGUMENT,
            "index 2 out of range for tensor of size [2, 3] at dimension 0");
    REFUSED(tern_select(x, 1, -4), TERN_ERR_ARGUMENT,
            "index -4 out of range for tensor of size [2, 3] at dimension 1");
    REFUSED(tern_select(scalar, 0, 0), TERN_ERR_SHAPE, "cannot be applied to a 0-dim tensor");
    REFUSED(tern_as_strided(x, SHAPE(3), SHAPE(2), 2), TERN_ERR_ARGUMENT,
            "sizes [3], strides [2], storage offset 2 are out of bounds for storage of 6 elements");
    REFUSED(tern_as_strided(x, SHAPE(2), SHAPE(INT64_MAX), 2), TERN_ERR_ARGUMENT, "out of bounds");
    REFUSED(tern_as_strided(x, SHAPE(3), SHAPE(2, 2), 0), TERN_ERR_SHAPE,
            "mismatch in length of strides and shape");
    REFUSED(tern_as_strided(x, SHAPE(3), SHAPE(-1), 0), TERN_ERR_ARGUMENT,
            "Negative strides are not supported at the moment, got strides: [-1]");
    REFUSED(tern_as_strided(x, SHAPE(3), SHAPE(1), -1), TERN_ERR_ARGUMENT,
            "invalid storage offset -1");
    assert_int_equal(tern_split(x, 0, 0, pieces, 8), -1);
    assert_error(TERN_ERR_ARGUMENT, "split_size can only be 0 if dimension size is 0, but got "
                                    "dimension size of 2");
    assert_int_equal(tern_split(x, -1, 0, pieces, 8), -1);
    assert_error(TERN_ERR_ARGUMENT, "split_size be non-negative, but got split_size=-1");
    assert_int_equal(tern_split(scalar, 1, 0, pieces, 8), -1);
    assert_error(TERN_ERR_SHAPE, "expects at least a 1-dimensional tensor");
    assert_int_equal(tern_split(x, 1, 1, pieces, 2), -1);
    assert_error(TERN_ERR_ARGUMENT, "3 pieces do not fit into 2 places");
    assert_int_equal(tern_chunk(x, 0, 0, pieces, 8), -1);
    assert_error(TERN_ERR_ARGUMENT, "chunk expects `chunks` to be greater than 0, got: 0");
    assert_int_equal(tern_chunk(x, 2, 2, pieces, 8), -1);
    assert_error(TERN_ERR_ARGUMENT, range);
}

static void null_is_refused_by_every_view(void **state)
{
    (void)state;
    tern_tensor *pieces[2];
    for (int i = 0; i < LOOKS; i++) {
        assert_null(looks[i].call(NULL));
        assert_error(TERN_ERR_ARGUMENT, "NULL");
    }
    assert_null(tern_expand_as(counted("cpu", SHAPE(2)), NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_expand_as: other");
    assert_int_equal(tern_split(NULL, 1, 0, pieces, 2), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_split: x");
    assert_int_equal(tern_chunk(NULL, 1, 0, pieces, 2), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_chunk: x");
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *squared(tern_tensor *const *in, void *user)
{
    function call;
    memcpy(&call, user, sizeof call);
    tern_tensor *y = call(in[0]);
    return tern_mul(y, y);
}

static tern_dtype real_type(const char *device)
{
    tern_device_info info = {0};
    assert_ok(tern_device_get_info(device, &info));
    return info.has_f64 ? TERN_F64 : TERN_F32;
}

static void every_view_has_first_and_second_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < LOOKS; i++)
        TERN_SCOPE {
            tern_tensor *x =
                test_uniform(device, real_type(device), SHAPE(2, 3, 4), -2, 2, (uint64_t)i);
            function call = looks[i].call;
            tern_requires_grad_(x, true);
            if (tern_numel(call(x)) > 0)
                test_gradcheck(squared, &x, 1,
                               (test_gradcheck_options){.user = &call, .second = true},
                               looks[i].name, __FILE__, __LINE__);
        }
}

static tern_tensor *windows(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *even = tern_slice(in[0], 0, 0, TERN_SLICE_END, 2);
    tern_tensor *y = tern_as_strided(even, SHAPE(2, 3, 2), SHAPE(2, 2, 0), 0);
    return tern_mul(y, y);
}

static void overlapping_looks_add_their_gradients_up(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, real_type(device), SHAPE(8), -2, 2, 1);
        tern_requires_grad_(x, true);
        gradcheck(windows, &x, 1, .second = true);
    }
}

static void nodes_carry_pytorchs_names(void **state)
{
    (void)state;
    static const struct {
        function call;
        const char *name;
    } named[] = {{view, "view"},
                 {flatten, "flatten"},
                 {permute, "permute"},
                 {transpose, "transpose"},
                 {t, "t"},
                 {squeeze, "squeeze"},
                 {unsqueeze, "unsqueeze"},
                 {expand, "expand"},
                 {slice, "slice"},
                 {select_last, "select"},
                 {as_strided, "as_strided"},
                 {unflatten, "unflatten"}};
    tern_tensor *x = tern_requires_grad_(counted("cpu", SHAPE(2, 3, 4)), true);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        assert_string_equal(tern_grad_fn(named[i].call(x)), named[i].name);
}

/* ---- split and chunk --------------------------------------------------------------------- */

static void pieces_are_views_of_every_count(void **state)
{
    (void)state;
    enum { MOST = 23 };
    FOR_EACH_DEVICE(device)
    for (int64_t size = 1; size <= MOST + 1; size++)
        TERN_SCOPE {
            tern_tensor *pieces[MOST];
            tern_tensor *x = counted(device, SHAPE(2, MOST));
            int64_t n = (MOST + size - 1) / size;
            assert_int_equal(tern_split(x, size, -1, NULL, 0), n);
            assert_int_equal(tern_split(x, size, -1, pieces, MOST), n);
            assert_int_equal(tern_size(pieces[n - 1], 1), MOST - size * (n - 1));
            assert_same(tern_cat(pieces, (int)n, 1), x);
            tern_zero_(x);
            assert_true(tern_item(tern_sum(pieces[n - 1])) == 0);
        }
}

static void chunks_are_as_many_as_pytorch_makes(void **state)
{
    (void)state;
    tern_tensor *pieces[8];
    static const int wanted[][3] = {{10, 3, 3}, {10, 4, 4}, {10, 6, 5},
                                    {3, 8, 3},  {0, 3, 3},  {5, 1, 1}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        tern_tensor *x = counted("cpu", SHAPE(wanted[i][0], 2));
        assert_int_equal(tern_chunk(x, wanted[i][1], 0, pieces, 8), wanted[i][2]);
        assert_same(tern_cat(pieces, wanted[i][2], 0), x);
    }
    tern_tensor *empty = tern_zeros(SHAPE(0, 3), TERN_F32, "cpu");
    assert_int_equal(tern_split(empty, 0, 0, pieces, 8), 1);
    assert_shape(pieces[0], 0, 3);
}

static void the_gradient_of_unused_pieces_is_zero(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *pieces[6], *a = tern_requires_grad_(counted(device, SHAPE(6)), true);
        assert_int_equal(tern_split(a, 1, 0, pieces, 6), 6);
        assert_ok(tern_backward(tern_sum(tern_mul(pieces[1], pieces[4]))));
        assert_values(tern_grad(a), 0, 4, 0, 0, 1, 0);
    }
}

static tern_tensor *product_of_pieces(tern_tensor *const *in, void *user)
{
    tern_tensor *pieces[7];
    (void)user;
    int n = tern_split(in[0], 1, 0, pieces, 7);
    for (int i = 1; i < n - 1; i++)
        pieces[0] = tern_mul(pieces[0], pieces[i]);
    return pieces[0];
}

static void pieces_have_second_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, real_type(device), SHAPE(7, 2), 0.5, 2, 1);
        tern_requires_grad_(x, true);
        gradcheck(product_of_pieces, &x, 1, .second = true);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_view_looks_where_pytorch_does),
    TEST(twelve_dims_are_enough_and_thirteen_refused),
    TEST(scalars_have_views_too),
    TEST(empty_tensors_have_views_too),
    TEST(shapes_that_do_not_fit_are_refused_in_pytorchs_words),
    TEST(dims_and_bounds_are_checked),
    TEST(null_is_refused_by_every_view),
    TEST(every_view_has_first_and_second_gradients),
    TEST(overlapping_looks_add_their_gradients_up),
    TEST(nodes_carry_pytorchs_names),
    TEST(pieces_are_views_of_every_count),
    TEST(chunks_are_as_many_as_pytorch_makes),
    TEST(the_gradient_of_unused_pieces_is_zero),
    TEST(pieces_have_second_gradients),
};

TEST_MAIN(tests)

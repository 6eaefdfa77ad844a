/* test_layout.c -- dims moved, cut, joined, repeated and padded, with their gradients, against
 * PyTorch; what they refuse. */
#include "support.h"
#include <stdio.h>

#define SHAPE TERN_SHAPE
#define DIMS  TERN_DIMS

static tern_tensor *piece(int n, tern_tensor **pieces, int wanted, int i)
{
    assert_int_equal(n, wanted);
    return pieces[i];
}

#define CASE(NAME, CALL)                                                                           \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return CALL;                                                                               \
    }
#define PIECE(NAME, N, I, CALL)                                                                    \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        tern_tensor *p[8];                                                                         \
        return piece(CALL, p, N, I);                                                               \
    }
#define LIST(NAME, CALL, ...)                                                                      \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        tern_tensor *list[] = {__VA_ARGS__};                                                       \
        return CALL(list, 2);                                                                      \
    }
#define AT(i)        tern_select(x, 0, i)
#define ROW(i, j)    tern_select(AT(i), 0, j)
#define FIRST_COLUMN tern_select(AT(0), 1, 0)
#define PAD(NAME, MODE, VALUE, ...)                                                                \
    CASE(NAME, tern_pad(x, DIMS(__VA_ARGS__),                                                      \
                        &(tern_pad_options){.mode = TERN_PAD_##MODE, .value = VALUE}))

CASE(movedim, tern_movedim(x, DIMS(0, -1), DIMS(1, 0)))
CASE(swapdims, tern_swapdims(x, 0, -1))
CASE(atleast_3d, tern_atleast_3d(AT(0)))
CASE(diagonal, tern_diagonal(x, 1, 1, 2))
CASE(diagonal_below, tern_diagonal(x, -1, 2, 0))
CASE(diagonal_empty, tern_diagonal(x, 7, 1, 2))
CASE(unfold_dim, tern_unfold_dim(x, 2, 2, 1))
CASE(unfold_dim_apart, tern_unfold_dim(x, 1, 2, 3))
CASE(unfold_dim_whole, tern_unfold_dim(x, 0, 2, 1))
PIECE(unbind, 3, 1, tern_unbind(x, 1, p, 8))
PIECE(split_sizes, 3, 2, tern_split_with_sizes(x, (int64_t[]){1, 0, 3}, 3, -1, p, 8))
PIECE(tensor_split, 3, 0, tern_tensor_split(x, 3, -1, p, 8))
PIECE(tensor_split_at, 3, 1, tern_tensor_split_at(x, (int64_t[]){1, -1}, 2, 2, p, 8))
PIECE(hsplit, 3, 2, tern_hsplit(x, 3, p, 8))
PIECE(vsplit, 2, 1, tern_vsplit_at(x, (int64_t[]){1}, 1, p, 8))
PIECE(dsplit, 2, 1, tern_dsplit(x, 2, p, 8))
LIST(hstack, tern_hstack, AT(0), AT(1))
LIST(hstack_vectors, tern_hstack, ROW(0, 0), ROW(1, 2))
LIST(vstack, tern_vstack, ROW(0, 0), AT(1))
LIST(dstack, tern_dstack, AT(0), AT(1))
LIST(column_stack, tern_column_stack, FIRST_COLUMN, AT(1))
CASE(flip, tern_flip(x, DIMS(0, -1)))
CASE(flip_transposed, tern_flip(tern_transpose(x, 0, 2), DIMS(1)))
CASE(flip_nothing, tern_flip(x, TERN_SHAPE_SCALAR))
CASE(fliplr, tern_fliplr(x))
CASE(flipud, tern_flipud(x))
CASE(roll, tern_roll(x, DIMS(1, -6), DIMS(0, 2)))
CASE(roll_flat, tern_roll(x, DIMS(7), TERN_SHAPE_SCALAR))
CASE(roll_twice, tern_roll(x, DIMS(1, 2), DIMS(1, 1)))
CASE(rot90, tern_rot90(x, 1, DIMS(0, 2)))
CASE(rot90_twice, tern_rot90(x, -2, DIMS(1, 2)))
CASE(rot90_back, tern_rot90(x, 3, DIMS(1, 2)))
CASE(repeat, tern_repeat(x, DIMS(2, 1, 3, 2)))
CASE(repeat_none, tern_repeat(x, DIMS(1, 0, 2)))
CASE(tile, tern_tile(x, DIMS(2, 2)))
CASE(repeat_interleave, tern_repeat_interleave(x, 3, TERN_SOME(1)))
CASE(repeat_interleave_flat, tern_repeat_interleave(x, 2, (tern_optional_int){0}))
CASE(repeat_interleave_each,
     tern_repeat_interleave_tensor(x, TENSOR(tern_device(x), TERN_I64, SHAPE(3), 2, 0, 3),
                                   TERN_SOME(1)))
CASE(repeat_interleave_one,
     tern_repeat_interleave_tensor(x, TENSOR(tern_device(x), TERN_I64, SHAPE(1), 2), TERN_SOME(0)))
CASE(diag_embed, tern_diag_embed(AT(0), -1, 0, 2))
CASE(diag, tern_diag(ROW(0, 0), 1))
CASE(diag_of, tern_diag(AT(1), -1))
CASE(diagflat, tern_diagflat(tern_narrow(AT(1), 0, 0, 2), 1))
CASE(trace, tern_trace(AT(1)))
PAD(pad, CONSTANT, 0, 1, 2, 0, 1)
PAD(pad_cut, CONSTANT, 0.5, -1, 2, 3, -2, 0, 1)
PAD(pad_reflect, REFLECT, 0, 3, 1)
PAD(pad_reflect_2, REFLECT, 0, 2, 1, 0, 2)
PAD(pad_reflect_cut, REFLECT, 0, -2, 3)
PAD(pad_replicate, REPLICATE, 0, 3, 1)
PAD(pad_replicate_2, REPLICATE, 0, 1, 0, 2, 2)
CASE(pad_replicate_3, tern_pad(tern_unsqueeze(x, 0), DIMS(1, 0, 2, 2, 0, 1),
                               &(tern_pad_options){.mode = TERN_PAD_REPLICATE}))
PAD(pad_circular, CIRCULAR, 0, 3, 4)
PAD(pad_circular_cut, CIRCULAR, 0, -1, 1)
CASE(pad_circular_2, tern_pad(tern_unsqueeze(x, 0), DIMS(1, 2, 3, 0),
                              &(tern_pad_options){.mode = TERN_PAD_CIRCULAR}))

static tern_tensor *meshgrid(tern_tensor *x)
{
    tern_tensor *list[] = {ROW(0, 0), FIRST_COLUMN}, *out[2];
    assert_ok(tern_meshgrid(list, 2, TERN_INDEXING_IJ, out));
    return out[1];
}

static tern_tensor *meshgrid_xy(tern_tensor *x)
{
    tern_tensor *list[] = {ROW(0, 0), FIRST_COLUMN}, *out[2];
    assert_ok(tern_meshgrid(list, 2, TERN_INDEXING_XY, out));
    return out[0];
}

#define ROW_OF(NAME)                                                                               \
    {                                                                                              \
#NAME, NAME                                                                                \
    }
static const struct {
    const char *name;
    tern_tensor *(*call)(tern_tensor *x);
} cases[] = {
    ROW_OF(movedim),
    ROW_OF(swapdims),
    ROW_OF(atleast_3d),
    ROW_OF(diagonal),
    ROW_OF(diagonal_below),
    ROW_OF(diagonal_empty),
    ROW_OF(unfold_dim),
    ROW_OF(unfold_dim_apart),
    ROW_OF(unfold_dim_whole),
    ROW_OF(unbind),
    ROW_OF(split_sizes),
    ROW_OF(tensor_split),
    ROW_OF(tensor_split_at),
    ROW_OF(hsplit),
    ROW_OF(vsplit),
    ROW_OF(dsplit),
    ROW_OF(hstack),
    ROW_OF(hstack_vectors),
    ROW_OF(vstack),
    ROW_OF(dstack),
    ROW_OF(column_stack),
    ROW_OF(flip),
    ROW_OF(flip_transposed),
    ROW_OF(flip_nothing),
    ROW_OF(fliplr),
    ROW_OF(flipud),
    ROW_OF(roll),
    ROW_OF(roll_flat),
    ROW_OF(roll_twice),
    ROW_OF(rot90),
    ROW_OF(rot90_twice),
    ROW_OF(rot90_back),
    ROW_OF(repeat),
    ROW_OF(repeat_none),
    ROW_OF(tile),
    ROW_OF(repeat_interleave),
    ROW_OF(repeat_interleave_flat),
    ROW_OF(repeat_interleave_each),
    ROW_OF(repeat_interleave_one),
    ROW_OF(diag_embed),
    ROW_OF(diag),
    ROW_OF(diag_of),
    ROW_OF(diagflat),
    ROW_OF(trace),
    ROW_OF(meshgrid),
    ROW_OF(meshgrid_xy),
    ROW_OF(pad),
    ROW_OF(pad_cut),
    ROW_OF(pad_reflect),
    ROW_OF(pad_reflect_2),
    ROW_OF(pad_reflect_cut),
    ROW_OF(pad_replicate),
    ROW_OF(pad_replicate_2),
    ROW_OF(pad_replicate_3),
    ROW_OF(pad_circular),
    ROW_OF(pad_circular_cut),
    ROW_OF(pad_circular_2),
};
enum { CASES = sizeof cases / sizeof *cases };

static tern_tensor *counted(const char *device, tern_dtype dtype)
{
    return tern_view(tern_arange(0, 24, 1, dtype, device), SHAPE(2, 3, 4));
}

static void values_and_gradients_are_pytorchs(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("layout");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            char name[64];
            snprintf(name, sizeof name, "%s.grad", cases[i].name);
            tern_tensor *x = tern_requires_grad_(counted(device, TERN_F32), true);
            tern_tensor *y = cases[i].call(x);
            if (!y)
                print_error("%s: %s\n", cases[i].name, tern_last_error());
            test_same(y, test_golden_tensor(golden, cases[i].name, device), cases[i].name, __FILE__,
                      __LINE__);
            tern_tensor *w = tern_arange(1, 1 + 0.5 * (double)tern_numel(y), 0.5, TERN_F32, device);
            w = tern_view(w, tern_shape_of(y));
            assert_ok(tern_backward(tern_sum(tern_mul(y, w))));
            test_same(tern_grad(x), test_golden_tensor(golden, name, device), name, __FILE__,
                      __LINE__);
        }
    test_golden_close(golden);
}

/* Where elements only move, every type does. */
static void other_types_move_the_same(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F64, TERN_F16, TERN_BF16, TERN_I32, TERN_I64, TERN_U8};
    tern_device_info info;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES && tern_device_get_info(device, &info) == TERN_OK; i++)
        TERN_SCOPE {
            size_t first = info.has_f64 ? 0 : 1;
            for (size_t k = first; k < (test_thorough(device) ? 6u : first + 1); k++) {
                tern_tensor *x = counted(device, TERN_F32), *y = cases[i].call(x);
                if (cases[i].call == pad_cut || cases[i].call == trace)
                    continue;
                tern_tensor *same = cases[i].call(tern_to_dtype(x, dtypes[k]));
                test_same(same, tern_to_dtype(y, dtypes[k]), cases[i].name, __FILE__, __LINE__);
            }
        }
}

static tern_tensor *all_of_it(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *x = in[0], *y = unfold_dim(flip(roll(x))), *z = pad_reflect_2(tern_square(x));
    return tern_add(tern_sum(tern_square(y)), tern_sum(tern_square(z)));
}

static void gradients_of_gradients_exist(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, TERN_F64, SHAPE(2, 3, 4), -1, 1, 3);
        tern_requires_grad_(x, true);
        gradcheck(all_of_it, &x, 1, .second = true);
    }
}

static void views_are_views_and_copies_are_copies(void **state)
{
    (void)state;
    tern_tensor *x = counted("cpu", TERN_F32);
    tern_zero_(diagonal(x));
    assert_values(tern_sum(diagonal(x)), 0);
    tern_zero_(unfold_dim_apart(x));
    assert_values(tern_sum(x), 8 + 9 + 10 + 20 + 21 + 22);
    x = counted("cpu", TERN_F32);
    tern_tensor *one = tern_repeat(x, DIMS(1, 1, 1)), *rolled = tern_roll(x, DIMS(0), DIMS(0));
    tern_zero_(one);
    tern_zero_(rolled);
    tern_zero_(tern_pad(x, DIMS(0, 0), NULL));
    tern_zero_(tern_rot90(x, 4, DIMS(0, 1)));
    assert_values(tern_sum(x), 276);
}

static void triangles_have_pytorchs_indices(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("layout");
    assert_same(tern_tril_indices(3, 4, 1, "cpu"),
                test_golden_tensor(golden, "tril_indices", "cpu"));
    assert_same(tern_triu_indices(4, 3, -1, "cpu"),
                test_golden_tensor(golden, "triu_indices", "cpu"));
    assert_shape(tern_tril_indices(0, 4, 1, "cpu"), 2, 0);
    test_golden_close(golden);
}

#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(status, words);                                                               \
    } while (0)
#define NO_PIECES(call, status, words)                                                             \
    do {                                                                                           \
        assert_int_equal(call, -1);                                                                \
        assert_error(status, words);                                                               \
    } while (0)

static void what_pytorch_refuses_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = counted("cpu", TERN_F32), *p[8], *one = AT(0);
    const tern_pad_options reflect = {.mode = TERN_PAD_REFLECT};
    const tern_pad_options circular = {.mode = TERN_PAD_CIRCULAR};
    REFUSED(tern_movedim(x, DIMS(0, 1), DIMS(0)), TERN_ERR_ARGUMENT,
            "should contain the same number of dims as destination");
    REFUSED(tern_movedim(x, DIMS(0, -3), DIMS(0, 1)), TERN_ERR_ARGUMENT,
            "repeated dim in `source`");
    REFUSED(tern_diagonal(x, 0, 1, -2), TERN_ERR_ARGUMENT,
            "diagonal dimensions cannot be identical 1, -2");
    REFUSED(tern_diag(x, 0), TERN_ERR_SHAPE, "matrix or a vector expected");
    REFUSED(tern_trace(x), TERN_ERR_SHAPE, "expected a matrix, but got tensor with dim 3");
    REFUSED(tern_unfold_dim(x, 1, 4, 1), TERN_ERR_ARGUMENT,
            "maximum size for tensor at dimension 1 is 3 but size is 4");
    REFUSED(tern_unfold_dim(x, 1, 1, 0), TERN_ERR_ARGUMENT, "step is 0 but must be > 0");
    NO_PIECES(tern_split_with_sizes(x, (int64_t[]){1, 1}, 2, 1, p, 8), TERN_ERR_ARGUMENT,
              "split_with_sizes expects split_sizes to sum exactly to 3");
    NO_PIECES(tern_hsplit(x, 2, p, 8), TERN_ERR_ARGUMENT, "is not divisible by the split_size 2!");
    NO_PIECES(tern_dsplit(one, 2, p, 8), TERN_ERR_SHAPE,
              "torch.dsplit requires a tensor with at least 3 dimensions, but got a tensor with 2");
    NO_PIECES(tern_tensor_split(x, 0, 0, p, 8), TERN_ERR_ARGUMENT,
              "number of sections must be larger than 0, got 0");
    NO_PIECES(tern_unbind(x, 1, p, 2), TERN_ERR_ARGUMENT, "3 pieces do not fit into 2 places");
    REFUSED(tern_hstack(NULL, 0), TERN_ERR_ARGUMENT, "expects a non-empty TensorList");
    REFUSED(tern_flip(x, DIMS(0, -3)), TERN_ERR_ARGUMENT, "dim 0 appears multiple times");
    REFUSED(tern_roll(x, DIMS(1, 2), DIMS(0)), TERN_ERR_ARGUMENT,
            "shifts and dimensions must align. shifts: 2, dims:1");
    REFUSED(tern_rot90(x, 1, DIMS(1, 1)), TERN_ERR_ARGUMENT,
            "expected rotation dims to be different, but got dim0 = 1 and dim1 = 1");
    REFUSED(tern_repeat(x, DIMS(2, 2)), TERN_ERR_SHAPE, "Number of dimensions of repeat dims");
    REFUSED(tern_repeat(x, DIMS(1, 1, -1)), TERN_ERR_ARGUMENT,
            "Trying to create tensor with negative dimension -4");
    REFUSED(tern_repeat_interleave(x, -1, TERN_SOME(0)), TERN_ERR_ARGUMENT, "non-negative");
    REFUSED(tern_repeat_interleave_tensor(x, TENSOR("cpu", TERN_I64, SHAPE(2), 1, 2), TERN_SOME(1)),
            TERN_ERR_SHAPE, "repeats must have the same size as input along dim");
    REFUSED(
        tern_repeat_interleave_tensor(x, TENSOR("cpu", TERN_I64, SHAPE(2), 1, -2), TERN_SOME(0)),
        TERN_ERR_ARGUMENT, "repeats can not be negative");
    REFUSED(tern_pad(x, DIMS(1), NULL), TERN_ERR_ARGUMENT, "Padding length must be divisible by 2");
    REFUSED(tern_pad(one, DIMS(1, 1, 1, 1, 1, 1), NULL), TERN_ERR_ARGUMENT,
            "Length of pad should be no more than twice the number of dimensions of the input");
    REFUSED(tern_pad(x, DIMS(-3, -2), NULL), TERN_ERR_SHAPE, "negative output size");
    REFUSED(tern_pad(x, DIMS(4, 0), &reflect), TERN_ERR_ARGUMENT,
            "Padding size should be less than the corresponding input dimension, but got: padding "
            "(4, 0) at dimension 2 of input [2, 3, 4]");
    REFUSED(tern_pad(x, DIMS(5, 0), &circular), TERN_ERR_ARGUMENT,
            "wrapping around more than once");
    REFUSED(tern_pad(x, DIMS(1, 1, 1, 1, 1, 1), &reflect), TERN_ERR_UNSUPPORTED,
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
    REFUSED(tern_flip(NULL, DIMS(0)), TERN_ERR_ARGUMENT, "NULL");
}

/* Planes of n rows and m columns, `from` elements behind the storage's beginning, turned and made dense, and written turned. */
static tern_tensor *planes_turned(const char *device, tern_dtype dtype, const int64_t size[2],
                                  int64_t from, bool written)
{
    const int64_t n = size[0], m = size[1], all = 3 * n * m;
    tern_tensor *x = tern_arange(0.0, (double)(all + from), 1.0, TERN_F32, "cpu");
    x = tern_to(tern_to_dtype(tern_remainder(x, 251.0), dtype), device);
    x = tern_view(tern_narrow(x, 0, from, all), SHAPE(3, n, m));
    if (!written)
        return tern_contiguous(tern_transpose(x, 1, 2));
    tern_tensor *y = tern_zeros(SHAPE(3, m, n), dtype, device);
    tern_copy_(tern_transpose(y, 1, 2), x);
    return y;
}

static void planes_of_any_size_are_turned(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{64, 64}, {128, 72}, {24, 200},
                                       {68, 36}, {33, 65},  {20, 17}};
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_U8, TERN_I64};
    FOR_EACH_DEVICE(device)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
            for (int64_t from = 0; from <= 4; from += 2) /* at and beside multiples of 16 bytes */
                TERN_SCOPE
                    for (int written = 0; written < 2; written++)
                        assert_close(planes_turned(device, dtypes[t], sizes[s], from, written),
                                     planes_turned("cpu", dtypes[t], sizes[s], from, written),
                                     .abs = 0, .rel = 0);
}

static const struct CMUnitTest tests[] = {
    TEST(planes_of_any_size_are_turned),
    TEST(values_and_gradients_are_pytorchs),
    TEST(other_types_move_the_same),
    TEST(gradients_of_gradients_exist),
    TEST(views_are_views_and_copies_are_copies),
    TEST(triangles_have_pytorchs_indices),
    TEST(what_pytorch_refuses_is_refused),
};
TEST_MAIN(tests)

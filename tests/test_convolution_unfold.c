/* test_convolution_unfold.c -- unfold and fold against PyTorch, their gradients, what they refuse. */
#include "support.h"

#define ALL_OPTIONS                                                                                \
    &(tern_unfold_options)                                                                         \
    {                                                                                              \
        .dilation = TERN_SHAPE(2, 1), .padding = TERN_SHAPE(1, 2), .stride = TERN_SHAPE(1, 2)      \
    }

static tern_tensor *counted(const char *device, tern_dtype dtype, int64_t n, int64_t modulo,
                            tern_shape shape)
{
    double values[512];
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)((i + 1) % modulo);
    return test_tensor(device, dtype, shape, values);
}

static void windows_are_pytorchs(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("convolution_unfold");
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = counted(device, TERN_F32, 60, 100, TERN_SHAPE(2, 2, 3, 5));
        assert_same(tern_unfold(x, TERN_SHAPE(2), NULL),
                    test_golden_tensor(golden, "plain", device));
        assert_same(tern_unfold(x, TERN_SHAPE(2, 3), ALL_OPTIONS),
                    test_golden_tensor(golden, "all_options", device));
        assert_same(tern_unfold(tern_select(x, 0, 0), TERN_SHAPE(3, 1),
                                &(tern_unfold_options){.padding = TERN_SHAPE(0, 1),
                                                       .stride = TERN_SHAPE(2)}),
                    test_golden_tensor(golden, "one_image", device));
        assert_shape(tern_unfold(tern_narrow(x, 0, 0, 0), TERN_SHAPE(2), NULL), 0, 8, 8);
    }
    test_golden_close(golden);
}

static void windows_add_up_as_pytorchs(void **state)
{
    (void)state;
    test_golden *golden = test_golden_open("convolution_unfold");
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *y = counted(device, TERN_F32, 192, 17, TERN_SHAPE(2, 12, 8));
        tern_tensor *z = counted(device, TERN_F32, 288, 13, TERN_SHAPE(2, 12, 12));
        assert_same(tern_fold(y, TERN_SHAPE(3, 5), TERN_SHAPE(2, 2), NULL),
                    test_golden_tensor(golden, "fold_plain", device));
        assert_same(tern_fold(z, TERN_SHAPE(3, 5), TERN_SHAPE(2, 3), ALL_OPTIONS),
                    test_golden_tensor(golden, "fold_all_options", device));
        tern_tensor *part = tern_narrow(tern_select(z, 0, 0), 1, 0, 9);
        assert_same(tern_fold(part, TERN_SHAPE(4), TERN_SHAPE(2), NULL),
                    test_golden_tensor(golden, "fold_one_image", device));
        /* halves sum in float32 */
        assert_same(tern_fold(tern_to_dtype(y, TERN_BF16), TERN_SHAPE(3, 5), TERN_SHAPE(2), NULL),
                    tern_to_dtype(test_golden_tensor(golden, "fold_plain", device), TERN_BF16));
    }
    test_golden_close(golden);
}

static tern_tensor *unfold_all(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_unfold(in[0], TERN_SHAPE(2, 3), ALL_OPTIONS);
}

static tern_tensor *fold_all(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_fold(in[0], TERN_SHAPE(3, 5), TERN_SHAPE(2, 3), ALL_OPTIONS);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 1, 3, 5), -1, 1, 1);
        tern_tensor *y = test_uniform(device, TERN_F64, TERN_SHAPE(1, 6, 12), -1, 1, 2);
        tern_requires_grad_(x, true);
        tern_requires_grad_(y, true);
        gradcheck(unfold_all, &x, 1, .second = true);
        gradcheck(fold_all, &y, 1, .second = true);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 1, 3, 3), TERN_F32, "cpu");
    assert_null(tern_unfold(x, TERN_SHAPE(4), NULL));
    assert_error(TERN_ERR_SHAPE, "calculated shape of the array of sliding blocks as (0, 0), but "
                                 "its components must be at least one");
    assert_null(tern_unfold(x, TERN_SHAPE(0), NULL));
    assert_error(TERN_ERR_ARGUMENT, "kernel_size should be greater than zero");
    assert_null(tern_unfold(x, TERN_SHAPE(1, 1, 1), NULL));
    assert_error(TERN_ERR_ARGUMENT, "expected kernel_size equals to 1 or 2, but got 3");
    assert_null(tern_unfold(tern_view(x, TERN_SHAPE(9)), TERN_SHAPE(1), NULL));
    assert_error(TERN_ERR_SHAPE, "Expected 3D or 4D (batch mode) tensor");
    assert_null(tern_unfold(tern_to_dtype(x, TERN_I64), TERN_SHAPE(1), NULL));
    assert_error(TERN_ERR_DTYPE, "tern_unfold: not implemented for int64");
    tern_tensor *columns = tern_zeros(TERN_SHAPE(1, 6, 4), TERN_F32, "cpu");
    assert_null(tern_fold(columns, TERN_SHAPE(3), TERN_SHAPE(2), NULL));
    assert_error(TERN_ERR_SHAPE, "size of input's dimension 1 to be divisible by the product");
    assert_null(tern_fold(columns, TERN_SHAPE(3), TERN_SHAPE(1, 2), NULL));
    assert_error(TERN_ERR_SHAPE, "the calculated number of sliding blocks 3 * 2 = 6, but got "
                                 "input.size(2)=4");
    assert_null(tern_unfold(NULL, TERN_SHAPE(1), NULL));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
}

static const struct CMUnitTest tests[] = {
    TEST(windows_are_pytorchs),
    TEST(windows_add_up_as_pytorchs),
    TEST(gradients_are_the_differences),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)

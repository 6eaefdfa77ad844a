/* test_numbers_elsewhere.c -- a tensor of the cpu without dims beside tensors of a device counts as a number: the result is
 * on the device, the gradient comes back to the cpu. */
#include "support.h"
#include <string.h>

enum { X, NUMBER, THIRD };

typedef tern_tensor *(*operation)(tern_tensor *const in[3]);

#define OPERATION(NAME, ...)                                                                       \
    static tern_tensor *call_##NAME(tern_tensor *const in[3])                                      \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define EACH_OPERATION(F)                                                                          \
    F(add, tern_add(in[X], in[NUMBER]))                                                            \
    F(sub, tern_sub(in[NUMBER], in[X]))                                                            \
    F(mul, tern_mul(in[X], in[NUMBER]))                                                            \
    F(div, tern_div(in[NUMBER], in[X]))                                                            \
    F(pow, tern_pow(in[X], in[NUMBER]))                                                            \
    F(maximum, tern_maximum(in[X], in[NUMBER]))                                                    \
    F(atan2, tern_atan2(in[NUMBER], in[X]))                                                        \
    F(where, tern_where(tern_gt(in[X], in[NUMBER]), in[X], in[NUMBER]))                            \
    F(lerp, tern_lerp(in[X], in[THIRD], in[NUMBER]))                                               \
    F(addcmul, tern_addcmul(in[X], in[NUMBER], in[THIRD], tern_scalar_real(0.5)))                  \
    F(add_in_place, tern_add_(tern_clone(in[X]), in[NUMBER]))                                      \
    F(mul_in_place, tern_mul_(tern_clone(in[X]), in[NUMBER]))
EACH_OPERATION(OPERATION)

static const struct {
    const char *name;
    operation call;
} operations[] = {
#define ROW(NAME, ...) {#NAME, call_##NAME},
    EACH_OPERATION(ROW)};

static void results_are_on_the_device_and_gradients_on_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        TERN_SCOPE {
            tern_tensor *y[2], *in[2][3];
            for (int k = 0; k < 2; k++) { /* the number is on the cpu, then on the device */
                const char *places[] = {device, k ? device : "cpu", device};
                for (int j = 0; j < 3; j++) {
                    tern_shape shape = j == NUMBER ? TERN_SHAPE_SCALAR : TERN_SHAPE(2, 3);
                    in[k][j] = tern_requires_grad_(
                        test_uniform(places[j], TERN_F32, shape, 1, 2, (uint64_t)j + 1), true);
                }
                y[k] = operations[i].call(in[k]);
                if (!y[k])
                    fail_msg("%s on %s: %s", operations[i].name, device, tern_last_error());
                assert_string_equal(tern_device(y[k]), tern_device(in[k][X]));
                assert_ok(tern_backward(tern_sum(tern_square(y[k]))));
            }
            assert_same(y[0], y[1]);
            assert_string_equal(tern_device(tern_grad(in[0][NUMBER])), "cpu");
            assert_same(tern_to(tern_grad(in[0][NUMBER]), device), tern_grad(in[1][NUMBER]));
            assert_same(tern_grad(in[0][X]), tern_grad(in[1][X]));
        }
}

static void its_type_counts_as_of_any_tensor_without_dims(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *half = tern_ones(TERN_SHAPE(2), TERN_F16, device);
        tern_tensor *whole = tern_ones(TERN_SHAPE(2), TERN_I64, device);
        tern_tensor *one = tern_ones(TERN_SHAPE_SCALAR, TERN_F32, "cpu");
        assert_int_equal(tern_dtype_of(tern_add(half, one)), TERN_F16);
        assert_int_equal(tern_dtype_of(tern_add(whole, one)), TERN_F32);
        assert_int_equal(tern_dtype_of(tern_gt(whole, one)), TERN_BOOL);
    }
}

static void others_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        if (strcmp(device, "cpu") == 0)
            continue;
        tern_tensor *x = tern_ones(TERN_SHAPE(2), 0, device);
        tern_tensor *one = tern_ones(TERN_SHAPE_SCALAR, 0, device);
        tern_tensor *row = tern_ones(TERN_SHAPE(2), 0, "cpu");
        tern_tensor *number = tern_ones(TERN_SHAPE_SCALAR, 0, "cpu");
        assert_null(tern_add(x, row));
        assert_error(TERN_ERR_DEVICE, "Expected all tensors to be on the same device");
        assert_null(tern_add(row, one)); /* a device's is no number */
        assert_error(TERN_ERR_DEVICE, "Expected all tensors to be on the same device");
        assert_null(tern_add_(number, one));
        assert_error(TERN_ERR_DEVICE, "Expected all tensors to be on the same device");
        assert_null(tern_dot(x, number));
        assert_null(tern_cat((tern_tensor *[]){x, number}, 2, 0));
        tern_clear_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_are_on_the_device_and_gradients_on_the_cpu),
        TEST(its_type_counts_as_of_any_tensor_without_dims),
        TEST(others_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}

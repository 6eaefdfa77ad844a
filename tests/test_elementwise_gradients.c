/* test_elementwise_gradients.c -- every elementwise row: its gradient, first and second, against central
 * differences, in every form that broadcasts. */
#include "rows.h"
#include <string.h>

typedef struct target {
    const row *r;
    bool in_place;
} target;

static row_arguments arguments(tern_tensor *y)
{
    return (row_arguments){.y = y, .a = tern_scalar_real(0.25), .b = tern_scalar_real(2.5)};
}

static tern_tensor *call(tern_tensor *const *in, void *user)
{
    const target *t = user;
    row_arguments p = arguments(t->r->kind == UNARY_ROW ? NULL : in[1]);
    if (!t->in_place)
        return t->r->call(in[0], p);
    return t->r->in_place(tern_mul_scalar(in[0], TERN_SCALAR(1)), p);
}

static tern_tensor *call_scalar(tern_tensor *const *in, void *user)
{
    const target *t = user;
    return t->r->scalar(in[0], TERN_SCALAR(1.5));
}

static tern_tensor *leaf(const row *r, const char *device, tern_shape shape, uint64_t seed)
{
    tern_tensor *x = test_uniform(device, TERN_F64, shape, r->low, r->high, seed);
    return tern_requires_grad_(x, true);
}

static bool takes_two(const row *r)
{
    return r->kind == BINARY_ROW || r->kind == TERNARY_ROW;
}

static bool has_gradient(const row *r)
{
    return r->types != INTS && r->types != WHOLES && (r->kind == UNARY_ROW || takes_two(r));
}

static void first_and_second_gradient_of_every_row(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int in_place = 0; in_place < 2; in_place++)
            TERN_SCOPE {
                target t = {&rows[i], in_place};
                if (!test_thorough(device))
                    continue;
                if (!has_gradient(t.r))
                    continue;
                tern_tensor *in[2] = {leaf(t.r, device, TERN_SHAPE(2, 3), 1),
                                      leaf(t.r, device, TERN_SHAPE(2, 3), 2)};
                test_gradcheck(call, in, takes_two(t.r) ? 2 : 1,
                               (test_gradcheck_options){.user = &t, .second = true, .abs = 1e-5},
                               t.r->name, __FILE__, __LINE__);
            }
}

static void gradients_of_broadcast_inputs_have_their_shape(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            target t = {&rows[i], false};
            if (!test_thorough(device))
                continue;
            if (!has_gradient(t.r) || !takes_two(t.r))
                continue;
            tern_tensor *in[2] = {leaf(t.r, device, TERN_SHAPE(2, 1, 3), 1),
                                  leaf(t.r, device, TERN_SHAPE(4, 1), 2)};
            test_gradcheck(call, in, 2, (test_gradcheck_options){.user = &t, .abs = 1e-5},
                           t.r->name, __FILE__, __LINE__);
        }
}

static void gradients_with_a_number_for_y(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            target t = {&rows[i], false};
            if (!test_thorough(device))
                continue;
            if (!has_gradient(t.r) || !t.r->scalar)
                continue;
            tern_tensor *x = leaf(t.r, device, TERN_SHAPE(5), 1);
            test_gradcheck(call_scalar, &x, 1,
                           (test_gradcheck_options){.user = &t, .second = true, .abs = 1e-5},
                           t.r->name, __FILE__, __LINE__);
        }
}

/* The fused kernel and the recorded expression are two ways to the same gradient. */
static void recorded_gradients_are_the_kernels(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            const row *r = &rows[i];
            if (!test_thorough(device))
                continue;
            if (!has_gradient(r))
                continue;
            tern_tensor *grads[2];
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(400), r->low, r->high, 3);
            tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(400), r->low, r->high, 4);
            tern_tensor *dz = test_uniform(device, TERN_F32, TERN_SHAPE(400), -1, 1, 5);
            tern_requires_grad_(x, true);
            for (int create = 0; create < 2; create++) {
                tern_tensor *z = r->call(x, arguments(y));
                assert_ok(tern_autograd_grad(
                    &z, 1, &x, 1, &grads[create],
                    &(tern_autograd_grad_options){.gradients = &dz, .create_graph = create}));
            }
            test_close(grads[1], grads[0], (test_tolerance){.rel = 1e-5, .abs = 1e-6}, r->name,
                       __FILE__, __LINE__);
        }
}

/* The gradient of the gradient, in x's dtype. */
static double *second_gradient(const row *r, tern_dtype dtype, const double *at, int n)
{
    tern_tensor *x = test_tensor("cpu", dtype, TERN_SHAPE(n), at), *y, *dx, *ddx;
    tern_tensor *ones = tern_ones(TERN_SHAPE(n), dtype, "cpu");
    const tern_autograd_grad_options o = {.gradients = &ones, .create_graph = true};
    tern_requires_grad_(x, true);
    y = r->call(x, arguments(NULL));
    assert_ok(tern_autograd_grad(&y, 1, &x, 1, &dx, &o));
    if (!tern_requires_grad(dx))
        return NULL;
    assert_ok(tern_autograd_grad(&dx, 1, &x, 1, &ddx, &o));
    return test_read(tern_detach(ddx));
}

/* Far from the range of the other tests exponentials of float32 are infinite first: not where what is made of them is
 * small, and the branch that a number does not take is not in its gradient. */
static void second_gradients_are_finite_where_those_of_float64_are(void **state)
{
    (void)state;
    static const double at[] = {-300, -100, -50, -25, -12, 12, 25, 50, 100, 300};
    enum { POINTS = sizeof at / sizeof *at };
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            const row *r = &rows[i];
            if (!has_gradient(r) || takes_two(r))
                continue;
            double *narrow = second_gradient(r, TERN_F32, at, POINTS);
            double *wide = second_gradient(r, TERN_F64, at, POINTS);
            for (int k = 0; narrow && k < POINTS; k++)
                if (fabs(wide[k]) < 1e30 && !isfinite(narrow[k]))
                    fail_msg("%s: at %g the second gradient is %g, in float64 %g", r->name, at[k],
                             narrow[k], wide[k]);
            free(narrow);
            free(wide);
        }
}

static void half_gradients_follow_float32(void **state)
{
    (void)state;
    static const tern_dtype halves[] = {TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 2; k++)
            TERN_SCOPE {
                const row *r = &rows[i];
                if (!test_thorough(device))
                    continue;
                if (!has_gradient(r))
                    continue;
                tern_shape n = TERN_SHAPE(50);
                tern_tensor *x[2], *grads[2];
                x[0] = test_uniform(device, halves[k], n, r->low, r->high, 3);
                x[1] = tern_detach(tern_to_dtype(x[0], TERN_F32));
                tern_tensor *y = tern_to_dtype(x[0], halves[k]);
                for (int wide = 0; wide < 2; wide++) {
                    tern_requires_grad_(x[wide], true);
                    tern_tensor *other =
                        wide ? tern_to_dtype(tern_detach(y), TERN_F32) : tern_detach(y);
                    tern_tensor *z = r->call(x[wide], arguments(other));
                    tern_tensor *dz = tern_ones_like(z);
                    assert_ok(tern_autograd_grad(&z, 1, &x[wide], 1, &grads[wide],
                                                 &(tern_autograd_grad_options){.gradients = &dz}));
                }
                test_tolerance t = {.rel = k ? 0x1p-5 : 0x1p-8, .abs = k ? 0x1p-5 : 0x1p-8};
                test_close(tern_to_dtype(grads[0], TERN_F32), grads[1], t, r->name, __FILE__,
                           __LINE__);
            }
}

static tern_tensor *gradient_on(const row *r, const char *device)
{
    tern_tensor *grad = NULL;
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(300), r->low, r->high, 3);
    tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(300), r->low, r->high, 4);
    tern_tensor *z = r->call(tern_requires_grad_(x, true), arguments(y));
    tern_tensor *dz = test_uniform(device, TERN_F32, TERN_SHAPE(300), -1, 1, 5);
    assert_ok(
        tern_autograd_grad(&z, 1, &x, 1, &grad, &(tern_autograd_grad_options){.gradients = &dz}));
    return grad;
}

static void gradients_are_those_of_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            tern_device_info info = {0};
            assert_ok(tern_device_get_info(device, &info));
            if (!has_gradient(&rows[i]))
                continue;
            tern_tensor *here = gradient_on(&rows[i], device);
            tern_tensor *there = gradient_on(&rows[i], "cpu");
            if (info.exact)
                test_same(here, there, rows[i].name, __FILE__, __LINE__);
            else
                test_close(here, there, (test_tolerance){.rel = 1e-5, .abs = 1e-5}, rows[i].name,
                           __FILE__, __LINE__);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(gradients_are_those_of_the_cpu),
    TEST(first_and_second_gradient_of_every_row),
    TEST(gradients_of_broadcast_inputs_have_their_shape),
    TEST(gradients_with_a_number_for_y),
    TEST(recorded_gradients_are_the_kernels),
    TEST(second_gradients_are_finite_where_those_of_float64_are),
    TEST(half_gradients_follow_float32),
};
TEST_MAIN(tests)

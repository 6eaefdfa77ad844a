/* test_collective.c -- collectives of devices: any of them with the cpu by copies, several CUDA devices
 * through NCCL (on the stand-in for it, tests/standin/nccl.c). */
#include "collectives.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* How many sums the stand-in's NCCL has made; -1 where the device is none of its. */
static long collectives(void)
{
    static long (*count)(void);
    const char *folder = getenv("TERN_CUDA_PATH");
    char path[1024];
    if (!folder)
        return -1;
    snprintf(path, sizeof path, "%s/libnccl.so.2", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "standin_collectives") : NULL;
    if (!symbol)
        return -1;
    memcpy(&count, &symbol, sizeof count);
    return count();
}

/* x[i] is i + 1 times 1, 2, ..., 12 on devices[i]. */
static void make(const char *const *devices, int n, tern_dtype dtype, tern_tensor **x)
{
    for (int i = 0; i < n; i++) {
        x[i] = tern_arange(1, 13, 1, TERN_F32, "cpu");
        x[i] = tern_to_dtype(tern_mul_scalar(x[i], TERN_SCALAR(i + 1)), dtype);
        x[i] = tern_to(tern_reshape(x[i], TERN_SHAPE(3, 4)), devices[i]);
    }
}

static void check_sums(tern_tensor *const *x, int n, tern_dtype dtype)
{
    double factor = n * (n + 1) / 2.0;
    for (int i = 0; i < n; i++) {
        double *values = test_read(x[i]);
        assert_int_equal(tern_dtype_of(x[i]), dtype);
        for (int k = 0; k < 12; k++)
            if (values[k] != factor * (k + 1))
                fail_msg("%s: element %d is %g, expected %g", tern_device(x[i]), k, values[k],
                         factor * (k + 1));
        free(values);
    }
}

static void all_get_the_sum(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32,  TERN_I32, TERN_I64, TERN_F16,
                                        TERN_BF16, TERN_U8,  TERN_F64};
    for (int with_cpu = 0; with_cpu < 2; with_cpu++)
        for (int d = 0; d < (test_thorough(test_device(0)) ? 7 : 2); d++)
            TERN_SCOPE {
                const char *devices[MOST];
                tern_tensor *x[MOST];
                int n = all_devices(devices, with_cpu);
                bool lacks = false;
                for (int i = 0; i < n; i++)
                    lacks |= !test_has(devices[i], dtypes[d]);
                if (lacks)
                    continue;
                make(devices, n, dtypes[d], x);
                int64_t version = tern_version(x[0]);
                assert_ok(tern_all_reduce_(x, n));
                check_sums(x, n, dtypes[d]);
                assert_int_equal(tern_version(x[0]), version + (n > 1));
            }
}

static void parts_of_tensors_and_one_device_twice(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *whole = TENSOR(device, TERN_F32, TERN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
        tern_tensor *x[] = {tern_select(whole, 0, 1), tern_select(whole, 0, 2),
                            TENSOR("cpu", TERN_F32, TERN_SHAPE(2), 10, 20)};
        assert_ok(tern_all_reduce_(x, 3));
        assert_values(whole, 1, 2, 18, 30, 18, 30);
        assert_values(x[2], 18, 30);
        tern_tensor *none[] = {tern_zeros(TERN_SHAPE(0), TERN_F32, device),
                               tern_zeros(TERN_SHAPE(0), TERN_F32, "cpu")};
        assert_ok(tern_all_reduce_(none, 2));
    }
}

/* Work before it and behind it is in order on each device, without a wait in between. */
static void nccl_sums_distinct_cuda_devices(void **state)
{
    (void)state;
    const char *devices[MOST];
    int n = all_devices(devices, false);
    if (n < 2 || collectives() < 0) {
        puts("left out: there are no two stand-ins here");
        return;
    }
    TERN_SCOPE {
        tern_tensor *x[MOST], *other[MOST];
        long before = collectives();
        make(devices, n, TERN_F32, x);
        for (int round = 0; round < 3; round++) {
            uint64_t launched = launches(devices[0]);
            assert_ok(tern_all_reduce_(x, n));
            assert_int_equal(launches(devices[0]), launched + 1);
            for (int i = 0; i < n; i++)
                tern_div_scalar_(x[i], TERN_SCALAR(n * (n + 1) / 2));
            if (round < 2)
                for (int i = 0; i < n; i++)
                    tern_mul_scalar_(x[i], TERN_SCALAR(i + 1));
        }
        assert_int_equal(collectives(), before + 3);
        for (int i = 0; i < n; i++)
            tern_mul_scalar_(x[i], TERN_SCALAR(n * (n + 1) / 2));
        check_sums(x, n, TERN_F32);

        /* in another order, and with the cpu, whose part is added to what NCCL made of the others */
        make(devices, n, TERN_F32, x);
        for (int i = 0; i < n; i++)
            other[i] = x[n - 1 - i];
        assert_ok(tern_all_reduce_(other, n));
        assert_int_equal(collectives(), before + 4);
        check_sums(x, n, TERN_F32);
        x[1] = tern_to(x[1], "cpu");
        assert_ok(tern_all_reduce_(x, n));
        assert_int_equal(collectives(), before + 4 + (n > 2 ? 2 : 0)); /* added, and sent */
    }
}

/* ---- with gradients -------------------------------------------------------------------------- */

/* Element i of what went to place k counts i + k + 1 times in the loss. */
static tern_tensor *weighted(tern_tensor *x, int k)
{
    tern_tensor *w = tern_arange(k + 1, (double)tern_numel(x) + k + 1, 1, TERN_F32, "cpu");
    w = tern_to(tern_reshape(w, tern_shape_of(x)), tern_device(x));
    return tern_to(tern_sum(tern_mul(x, w)), "cpu");
}

static tern_tensor *trained(int n, int m, const char *device)
{
    tern_tensor *x = tern_arange(0, n * m, 1, TERN_F32, "cpu");
    return tern_requires_grad_(tern_to(tern_reshape(x, TERN_SHAPE(n, m)), device), true);
}

static int mixed_devices(const char **devices)
{
    int n = all_devices(devices, true);
    devices[n] = devices[n - 1];
    return n + 1;
}

static void sent_to_all_and_added_up(void **state)
{
    const char *devices[MOST + 2];
    int n = mixed_devices(devices);
    (void)state;
    for (int home = 0; home < n; home++)
        TERN_SCOPE {
            tern_tensor *x[2] = {trained(2, 2, devices[home]), trained(1, 3, devices[home])};
            tern_tensor *out[2 * (MOST + 2)], *loss = tern_zeros(TERN_SHAPE_SCALAR, 0, "cpu");
            assert_ok(tern_comm_broadcast(x, 2, devices, n, out));
            for (int i = 0; i < n; i++) {
                assert_string_equal(tern_device(out[i]), devices[i]);
                assert_values(tern_detach(out[i]), 0, 1, 2, 3);
                assert_values(tern_detach(out[n + i]), 0, 1, 2);
                loss = tern_add(loss, weighted(out[i], i));
            }
            assert_ok(tern_backward(loss));
            double base = n * (n + 1) / 2.0;
            assert_values(tern_grad(x[0]), base, base + n, base + 2 * n, base + 3 * n);
            assert_null(tern_grad(x[1]));

            tern_tensor *parts[MOST + 2];
            for (int i = 0; i < n; i++)
                parts[i] = trained(2, 2, devices[i]);
            tern_tensor *sum = tern_comm_reduce_add(parts, n, devices[home]);
            assert_string_equal(tern_device(sum), devices[home]);
            assert_values(tern_detach(sum), 0, n, 2 * n, 3 * n);
            assert_ok(tern_backward(weighted(sum, 4)));
            for (int i = 0; i < n; i++)
                assert_values(tern_grad(parts[i]), 5, 6, 7, 8);
        }
}

static void dealt_out_and_brought_together(void **state)
{
    const char *devices[MOST + 2];
    int n = mixed_devices(devices);
    int64_t sizes[MOST + 2], total = 0;
    (void)state;
    for (int i = 0; i < n; i++)
        total += sizes[i] = i == 1 ? 0 : i + 1;
    for (int dim = 0; dim < 2; dim++)
        for (int home = 0; home < n; home++)
            TERN_SCOPE {
                tern_tensor *x = dim ? trained(2, (int)total, devices[home])
                                     : trained((int)total, 2, devices[home]);
                tern_tensor *out[MOST + 2];
                assert_ok(tern_comm_scatter(x, devices, n, sizes, dim, out));
                int k = 0;
                for (int i = 0; i < n; i++) {
                    if (i == 1) {
                        assert_null(out[i]);
                        continue;
                    }
                    assert_int_equal(tern_size(out[i], dim), sizes[i]);
                    assert_string_equal(tern_device(out[i]), devices[i]);
                    out[k++] = tern_mul_scalar(out[i], TERN_SCALAR(2));
                }
                tern_tensor *y = tern_comm_gather(out, k, dim, devices[home]);
                assert_string_equal(tern_device(y), devices[home]);
                assert_true(tern_equal(tern_mul_scalar(tern_detach(x), TERN_SCALAR(2)), y));
                assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
                assert_true(tern_equal(tern_grad(x), /* d (2 x)^2 */
                                       tern_mul_scalar(tern_detach(x), TERN_SCALAR(8))));
            }
    TERN_SCOPE { /* as torch.chunk; numbers as a vector */
        tern_tensor *x = trained(n + 1, 1, devices[0]), *out[MOST + 2];
        assert_ok(tern_comm_scatter(x, devices, n, NULL, 0, out));
        for (int i = 0; i < n; i++)
            assert_int_equal(out[i] ? tern_size(out[i], 0) : 0, n - 1 >= 2 * i ? 2 : n == 2 * i);
        tern_tensor *one[] = {tern_sum(x), tern_to(tern_sum(x), "cpu")};
        tern_tensor *both = tern_comm_gather(one, 2, 0, NULL);
        assert_values(tern_detach(both), n * (n + 1) / 2.0, n * (n + 1) / 2.0);
        sizes[0]++;
        assert_int_equal(tern_comm_scatter(x, devices, n, sizes, 0, out), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "don't add up");
    }
}

/* Halves are added in float32, but where NCCL adds them. */
static void halves_are_rounded_once(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[] = {TENSOR("cpu", TERN_F16, TERN_SHAPE(1), 2048),
                            TENSOR(device, TERN_F16, TERN_SHAPE(1), 1),
                            TENSOR("cpu", TERN_F16, TERN_SHAPE(1), 1)};
        assert_ok(tern_all_reduce_(x, 3)); /* 2048 + 1 is 2048 in float16 */
        for (int i = 0; i < 3; i++)
            assert_values(x[i], 2050);
    }
}

/* What a list of "cuda" devices costs in calls of NCCL. */
static void nccl_is_called_once_for_each(void **state)
{
    const char *devices[MOST + 1];
    int n = all_devices(devices, false);
    (void)state;
    if (n < 2 || collectives() < 0) {
        puts("left out: there are no two stand-ins here");
        return;
    }
    TERN_SCOPE {
        tern_tensor *x[MOST], *all[MOST], *out[MOST + 1];
        long before = collectives();
        make(devices, n, TERN_F32, x);
        for (int i = 0; i < n; i++)
            all[i] = tern_zeros(TERN_SHAPE(n, 3, 4), TERN_F32, devices[i]);
        assert_ok(tern_broadcast_(x, n, n - 1));
        assert_ok(tern_all_gather_(all, x, n));
        assert_ok(tern_reduce_scatter_(x, all, n));
        assert_int_equal(collectives(), before + 3);
        assert_non_null(tern_comm_reduce_add(x, n, "cpu")); /* within, then one copy */
        assert_int_equal(collectives(), before + 4);
        devices[n] = "cpu";
        x[0] = tern_requires_grad_(tern_to(x[0], "cpu"), true);
        assert_ok(tern_comm_broadcast(x, 1, devices, n + 1, out)); /* to one of them, and on */
        assert_int_equal(collectives(), before + 5);
        tern_tensor *loss = weighted(out[n], 0);
        for (int i = 0; i < n; i++)
            loss = tern_add(loss, weighted(out[i], i));
        assert_ok(tern_backward(loss)); /* the gradients are added within */
        assert_int_equal(collectives(), before + 6);
        for (int i = 0; i < n; i++)
            x[i] = tern_zeros(TERN_SHAPE(n, 2), TERN_F32, devices[i]);
        for (int op = 0; op < TERN_DIST_BAND; op++)
            assert_ok(tern_all_reduce_with_(x, n, (tern_dist_op)op));
        assert_int_equal(collectives(), before + 11);
        for (int i = 0; i < n; i++)
            x[i] = tern_zeros(TERN_SHAPE(n, 2), TERN_BOOL, devices[i]);
        for (int op = 0; op <= TERN_DIST_BXOR; op++)
            if (op != TERN_DIST_AVG)
                assert_ok(tern_all_reduce_with_(x, n, (tern_dist_op)op));
        assert_int_equal(collectives(), before + 18); /* xor by a broadcast of what one made */
        assert_ok(tern_synchronize(devices[0]));
    }
}

static tern_tensor *loss_of(tern_module *m, const char *device, int64_t from, int64_t to)
{
    tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(8, 5), -1, 1, 7);
    x = tern_to(tern_narrow(x, 0, from, to - from), device);
    tern_tensor *y = tern_nn_forward(m, x);
    return tern_sum(tern_mul(y, y));
}

/* The gradients of two copies of a model, each with half of the batch, sum up to the whole's. */
static void copies_of_a_model_share_a_batch(void **state)
{
    (void)state;
    const char *devices[MOST];
    int n = all_devices(devices, test_device(1) == NULL);
    TERN_SCOPE {
        tern_module *m[MOST];
        tern_tensor *grad[MOST];
        for (int i = 0; i < 3; i++) {
            tern_manual_seed(1);
            m[i] = tern_nn_linear(5, 3, &(tern_linear_options){.device = "cpu"});
        }
        assert_ok(tern_backward(loss_of(m[2], "cpu", 0, 8)));
        for (int i = 0; i < 2; i++) {
            const char *device = devices[i < n ? i : 0];
            assert_non_null(tern_nn_to(m[i], device));
            assert_ok(tern_backward(loss_of(m[i], device, 4 * i, 4 * i + 4)));
            grad[i] = tern_grad(tern_nn_parameter(m[i], "weight"));
        }
        assert_ok(tern_all_reduce_(grad, 2));
        for (int i = 0; i < 2; i++)
            assert_close(grad[i], tern_grad(tern_nn_parameter(m[2], "weight")), .abs = 1e-5,
                         .rel = 1e-5);
        for (int i = 0; i < 3; i++)
            tern_nn_free(m[i]);
    }
}

static void misfits_change_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2);
        tern_tensor *wide = TENSOR("cpu", TERN_F32, TERN_SHAPE(2, 2), 1, 2, 3, 4);
        tern_tensor *shapes[] = {a, TENSOR("cpu", TERN_F32, TERN_SHAPE(3), 1, 2, 3)};
        tern_tensor *dtypes[] = {a, TENSOR("cpu", TERN_I32, TERN_SHAPE(2), 1, 2)};
        tern_tensor *strided[] = {a, tern_select(wide, 1, 0)};
        tern_tensor *missing[] = {a, NULL};
        assert_int_equal(tern_all_reduce_(shapes, 2), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "expected all tensors to have the same size, but got ");
        assert_int_equal(tern_all_reduce_(dtypes, 2), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "the same dtype, but got float32 and int32 (tensor 1)");
        assert_int_equal(tern_all_reduce_(strided, 2), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "expected contiguous tensors, but tensor 1 is not");
        assert_int_equal(tern_all_reduce_(missing, 2), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tensor 1 of 2 is NULL");
        assert_int_equal(tern_all_reduce_(NULL, 0), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "expected tensors, but got 0");
        assert_values(a, 1, 2);
        assert_values(wide, 1, 2, 3, 4);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(all_get_the_sum),
    TEST(parts_of_tensors_and_one_device_twice),
    TEST(nccl_sums_distinct_cuda_devices),
    TEST(sent_to_all_and_added_up),
    TEST(dealt_out_and_brought_together),
    TEST(halves_are_rounded_once),
    TEST(nccl_is_called_once_for_each),
    TEST(copies_of_a_model_share_a_batch),
    TEST(misfits_change_nothing),
};
TEST_MAIN(tests)

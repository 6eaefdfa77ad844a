/* test_collective.c -- sums over devices: any of them with the cpu by copies, several CUDA devices
 * through NCCL (on the stand-in for it, tests/standin/nccl.c). */
#include "support.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4 };

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

/* The tested devices, with_cpu before them; how many. */
static int all_devices(const char **devices, bool with_cpu)
{
    int n = 0;
    if (with_cpu)
        devices[n++] = "cpu";
    for (int i = 0; test_device(i) && n < MOST; i++)
        devices[n++] = test_device(i);
    return n;
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

        /* in another order, and with the cpu, which NCCL has not */
        make(devices, n, TERN_F32, x);
        for (int i = 0; i < n; i++)
            other[i] = x[n - 1 - i];
        assert_ok(tern_all_reduce_(other, n));
        assert_int_equal(collectives(), before + 4);
        check_sums(x, n, TERN_F32);
        x[1] = tern_to(x[1], "cpu");
        assert_ok(tern_all_reduce_(x, n));
        assert_int_equal(collectives(), before + 4);
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
    TEST(copies_of_a_model_share_a_batch),
    TEST(misfits_change_nothing),
};
TEST_MAIN(tests)

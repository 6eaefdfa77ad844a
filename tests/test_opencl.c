/* test_opencl.c -- an OpenCL device at work: kernels of the user's own, memory, writes in flight,
 * calls that fail. */
#include "device/opencl/opencl.h"
#include "device/device.h"
#include "tensor/fields.h"
#include "support.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *device;

static const char twice[] =
    "__kernel void twice(__global const float *x, __global float *y, int n)\n"
    "{\n"
    "    int i = (int)get_global_id(0);\n"
    "    if (i < n) y[i] = 2.0f * x[i];\n"
    "}\n";

/* ---- kernels of the user's own ----------------------------------------------------------- */

static void a_users_kernel_runs(void **state)
{
    (void)state;
    tern_kernel *kernel = tern_kernel_compile(device, twice, "twice");
    assert_non_null(kernel);
    TERN_SCOPE {
        uint64_t before = launches(device);
        tern_tensor *x = tern_linspace(0, 999, 1000, TERN_F32, device), *y = tern_zeros_like(x);
        int64_t version = tern_version(y);
        assert_ok(tern_kernel_launch(kernel, TERN_GRID(1000), TERN_ARG_TENSOR(x),
                                     TERN_ARG_TENSOR(y), TERN_ARG_INT(1000)));
        assert_true(tern_version(y) > version);
        assert_same(y, tern_mul_scalar(x, TERN_SCALAR(2)));
        assert_true(launches(device) >= before + 2);
        /* groups of 48 do not divide 1000: the grid is rounded up */
        tern_zero_(y);
        assert_ok(tern_kernel_launch(kernel, TERN_GRID_GROUP(1000, 48), TERN_ARG_TENSOR(x),
                                     TERN_ARG_TENSOR(y), TERN_ARG_INT(1000)));
        assert_same(y, tern_mul_scalar(x, TERN_SCALAR(2)));
        /* nothing to do is no launch */
        before = launches(device);
        assert_ok(tern_kernel_launch(kernel, TERN_GRID(0), TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                                     TERN_ARG_INT(0)));
        assert_int_equal(launches(device), before);
    }
    tern_kernel_free(kernel);
}

static void local_memory_and_two_dimensions(void **state)
{
    (void)state;
    static const char source[] =
        "__kernel void sums(__global const int *x, __global int *y, __local int *scratch)\n"
        "{\n"
        "    int lane = get_local_id(0), row = get_global_id(1), n = get_local_size(0);\n"
        "    scratch[lane] = x[row * n + lane];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    if (lane == 0) {\n"
        "        int sum = 0;\n"
        "        for (int i = 0; i < n; i++) sum += scratch[i];\n"
        "        y[row] = sum;\n"
        "    }\n"
        "}\n";
    tern_kernel *kernel = tern_kernel_compile(device, source, "sums");
    assert_non_null(kernel);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 16), TERN_I32, device);
        tern_tensor *y = tern_zeros(TERN_SHAPE(3), TERN_I32, device);
        tern_kernel_grid grid = {.items = {16, 3, 1}, .group = {16, 1, 1}};
        assert_ok(tern_kernel_launch(kernel, grid, TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                                     TERN_ARG_LOCAL(16 * 4)));
        assert_values(y, 16, 16, 16);
        /* more local memory than there is: PoCL would abort the process */
        assert_int_equal(tern_kernel_launch(kernel, grid, TERN_ARG_TENSOR(x), TERN_ARG_TENSOR(y),
                                            TERN_ARG_LOCAL((size_t)1 << 40)),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "bytes of local memory");
    }
    tern_kernel_free(kernel);
}

static void bad_sources_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *source, *name, *part;
        tern_status status;
    } rows[] = {
        {"__kernel void f(__global int *x) { x[0] = nonsense; }", "f", "nonsense",
         TERN_ERR_ARGUMENT},
        {"__kernel void f(__global int *x) { x[0] = nonsense; }", "f", "CL_BUILD_PROGRAM_FAILURE",
         TERN_ERR_ARGUMENT},
        {twice, "thrice", "no kernel called \"thrice\"", TERN_ERR_ARGUMENT},
        {NULL, "f", "source is NULL", TERN_ERR_ARGUMENT},
        {twice, NULL, "name is NULL", TERN_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(tern_kernel_compile(device, rows[i].source, rows[i].name));
        assert_error(rows[i].status, rows[i].part);
    }
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    tern_kernel *kernel = tern_kernel_compile(device, twice, "twice");
    assert_non_null(kernel);
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(4, 6), TERN_F32, device), *y = tern_zeros_like(x);
        tern_kernel_arg X = TERN_ARG_TENSOR(x), Y = TERN_ARG_TENSOR(y), N = TERN_ARG_INT(24);
        const struct {
            tern_kernel_arg args[4];
            int n;
            tern_kernel_grid grid;
            tern_status status;
            const char *part;
        } rows[] = {
            {{X, Y}, 2, TERN_GRID(24), TERN_ERR_ARGUMENT, "takes 3 arguments, 2 were given"},
            {{X, Y, N, N}, 4, TERN_GRID(24), TERN_ERR_ARGUMENT, "takes 3 arguments, 4 were given"},
            {{X, Y, TERN_ARG_LONG(24)},
             3,
             TERN_GRID(24),
             TERN_ERR_ARGUMENT,
             "argument 2 of kernel"},
            {{X, Y, X}, 3, TERN_GRID(24), TERN_ERR_ARGUMENT, "argument 2 of kernel"},
            {{X, N, N}, 3, TERN_GRID(24), TERN_ERR_ARGUMENT, "argument 1 of kernel"},
            {{X, TERN_ARG_TENSOR(NULL), N}, 3, TERN_GRID(24), TERN_ERR_ARGUMENT, "NULL tensor"},
            {{TERN_ARG_TENSOR(tern_ones(TERN_SHAPE(24), TERN_F32, "cpu")), Y, N},
             3,
             TERN_GRID(24),
             TERN_ERR_DEVICE,
             "argument 0 is on cpu"},
            {{TERN_ARG_TENSOR(tern_transpose(x, 0, 1)), Y, N},
             3,
             TERN_GRID(24),
             TERN_ERR_ARGUMENT,
             "tern_contiguous"},
            {{TERN_ARG_TENSOR(tern_select(x, 0, 1)), Y, N},
             3,
             TERN_GRID(6),
             TERN_ERR_ARGUMENT,
             "tern_clone"},
            {{X, Y, N}, 3, TERN_GRID(-1), TERN_ERR_ARGUMENT, "-1 work-items"},
            {{X, Y, N}, 3, TERN_GRID_GROUP(24, 1 << 30), TERN_ERR_ARGUMENT, "is too large"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            assert_int_equal(tern_kernel_launch_args(kernel, rows[i].grid, rows[i].args, rows[i].n),
                             rows[i].status);
            assert_error(rows[i].status, rows[i].part);
        }
        assert_int_equal(tern_kernel_launch(NULL, TERN_GRID(1), X), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "kernel is NULL");
        assert_ok(tern_kernel_launch(kernel, TERN_GRID(24), X, Y, N)); /* still works */
        assert_same(y, tern_add(x, x));
    }
    tern_kernel_free(kernel);
}

/* ---- memory and order -------------------------------------------------------------------- */

static void too_large_an_allocation_says_both_numbers(void **state)
{
    (void)state;
    tern_device_info info;
    assert_ok(tern_device_get_info(device, &info));
    assert_true(info.largest_allocation > 0 && info.memory_total >= info.largest_allocation);
    assert_true(info.compute_units > 0 && *info.name && *info.platform && *info.driver);
    int64_t n = (int64_t)(info.largest_allocation / 4 + 1);
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, info.largest_allocation);
    assert_null(tern_empty(TERN_SHAPE(n), TERN_F32, device));
    assert_error(TERN_ERR_MEMORY, number);
}

/* A write must not overtake a launch that still reads, nor wait for its own bytes to stay. */
static void a_program_that_never_waits_is_waited_for(void **state)
{
    (void)state;
    tern_place *place = tern_place_find(device, "test");
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(1), TERN_F32, device);
        uint64_t most = 0;
        for (int i = 0; i < 9000; i++) {
            assert_non_null(tern_add_scalar_(x, TERN_SCALAR(1)));
            uint64_t queued = tern_cl_queued(tern_cl_state_of(place));
            most = queued > most ? queued : most;
        }
        assert_in_range(most, 1000, 5000);
        assert_values(x, 9000);
    }
}

static void small_writes_keep_their_place_in_the_queue(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(1 << 16), TERN_F32, device), *y[40];
        tern_tensor *small = tern_zeros(TERN_SHAPE(1), TERN_F32, device), *z[40];
        for (int i = 0; i < 40; i++) {
            float value = (float)i;
            y[i] = tern_add(x, small);
            tern_tensor *next = tern_from_data(&value, TERN_SHAPE(1), TERN_F32, "cpu");
            assert_non_null(tern_copy_(small, next));
            z[i] = tern_add(small, small);
        }
        for (int i = 0; i < 40; i++) {
            float first, last = 0;
            assert_ok(tern_copy_to_host(tern_narrow(y[i], 0, 0, 1), &first, sizeof first));
            assert_ok(tern_copy_to_host(z[i], &last, sizeof last));
            assert_float_equal(first, i == 0 ? 0 : (float)(i - 1), 0);
            assert_float_equal(last, (float)(2 * i), 0);
        }
    }
}

static void *add_on_a_thread(void *user)
{
    int *wrong = user;
    for (int round = 0; round < 50; round++)
        TERN_SCOPE {
            tern_tensor *x = tern_full(TERN_SHAPE(100), TERN_SCALAR(round), TERN_F32, device);
            for (int i = 0; i < 4; i++)
                x = tern_add(x, x);
            float values[100] = {0};
            if (tern_copy_to_host(x, values, sizeof values) != TERN_OK ||
                values[99] != (float)(round * 16))
                (*wrong)++;
        }
    tern_clear_error();
    return NULL;
}

static void threads_share_the_queue(void **state)
{
    (void)state;
    pthread_t threads[4];
    int wrong[4] = {0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_on_a_thread, &wrong[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

/* ---- the n-th call of OpenCL fails ------------------------------------------------------- */

static bool compute(void)
{
    bool right = false;
    TERN_SCOPE {
        float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
        tern_tensor *x = tern_from_data(in, TERN_SHAPE(8), TERN_F32, device);
        tern_tensor *y = tern_add(x, tern_zeros_like(x));
        right = tern_copy_to_host(tern_add(y, y), out, sizeof out) == TERN_OK && out[7] == 16;
        for (int i = 0; i < 4 && right; i++) /* one kernel, whose number changes with each launch */
            right = tern_copy_to_host(tern_mul_scalar(x, TERN_SCALAR(2 + i % 2)), out,
                                      sizeof out) == TERN_OK &&
                    out[7] == 8 * (2 + i % 2);
    }
    return right;
}

static void any_failing_call_is_an_error_and_passes(void **state)
{
    (void)state;
    assert_true(compute()); /* the programs are there */
    for (uint64_t n = 1;; n++) {
        assert_ok(tern_empty_cache(device)); /* so that memory is asked for again */
        tern_opencl_fail_at(n);
        bool right = compute();
        uint64_t calls = tern_opencl_fail_at(0);
        if (!right)
            assert_error(TERN_ERR_MEMORY, "CL_OUT_OF_RESOURCES");
        assert_no_error();
        assert_true(compute());
        if (calls < n)
            break;
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_users_kernel_runs),
        TEST(local_memory_and_two_dimensions),
        TEST(bad_sources_say_why),
        TEST(bad_arguments_are_refused),
        TEST(too_large_an_allocation_says_both_numbers),
        TEST(a_program_that_never_waits_is_waited_for),
        TEST(small_writes_keep_their_place_in_the_queue),
        TEST(threads_share_the_queue),
        TEST(any_failing_call_is_an_error_and_passes),
    };
    device = test_device(0);
    if (strncmp(device, "opencl", 6) != 0)
        return 77; /* nothing here concerns other devices */
    return test_main(tests, sizeof tests / sizeof *tests);
}

/* test_attention_matrix.c -- attention of halves on matrix units, through OpenCL and CUDA: its
 * kernels in ordinary arithmetic against float32 on the cpu; those of tensor cores, whose PTX the stand-in
 * for a GPU does as its manual says; and devices that promise a matrix unit and have none. */
#include "device/cuda/cuda.h"
#include "device/index32.h"
#include "device/opencl/gemm.h"
#include "environment.h"
#include "heard.h"
#include "tensor/tensor.h"
#include <string.h>
#include "attention_rows.h"

/* Where a row is computed without TERN_TEST_ALL, besides on other drivers. The stand-in compiles each
 * kernel as C++ and does its instructions one by one, which takes long: it has one row of each type,
 * a wide one (these by its instructions alone), and one also by ordinary arithmetic, whose text is
 * OpenCL's. PoCL compiles three kernels for each row: it has one row of each kind of mask and
 * layout, and of the widths 64, 128 and more. */
enum { ON_POCL = 1, ON_STANDIN = 2, IF_AUTO = 4 };
static const struct {
    row of;
    unsigned tried;
} rows[] = {
    {{"64 wide, causal", 150, 150, 64, 64, {.is_causal = true}, PACKED, TERN_DTYPE_DEFAULT},
     ON_POCL | IF_AUTO},
    {{"40 wide, all keys", 70, 100, 40, 72, {.scale = 0.2}, DENSE, TERN_DTYPE_DEFAULT}, 0},
    {{"128 wide, causal", 100, 70, 72, 128, {.is_causal = true}, DENSE, TERN_DTYPE_DEFAULT},
     ON_POCL},
    {{"a window",
      65,
      130,
      32,
      32,
      {.is_causal = true, .lower_right = true, .window = 40},
      DENSE,
      TERN_DTYPE_DEFAULT},
     ON_POCL},
    {{"a mask and dropout, any strides", 33, 65, 100, 33, {.dropout_p = 0.3}, BESIDE, TERN_BOOL},
     ON_POCL},
    {{"softcap and numbers for a mask", 97, 64, 16, 64, {.softcap = 2}, DENSE, TERN_F32},
     ON_POCL | ON_STANDIN},
    {{"a scale below 0, dropout and a band",
      90,
      90,
      64,
      64,
      {.is_causal = true, .dropout_p = 0.5, .scale = -0.3},
      PACKED,
      TERN_DTYPE_DEFAULT},
     0},
    {{"all dropped",
      31,
      130,
      64,
      1,
      {.is_causal = true, .lower_right = true, .dropout_p = 1},
      DENSE,
      TERN_DTYPE_DEFAULT},
     0},
    {{"256 wide, causal", 100, 70, 256, 200, {.is_causal = true}, DENSE, TERN_DTYPE_DEFAULT}, 0},
    {{"wide heads beside each other, a mask", 90, 65, 160, 136, {0}, BESIDE, TERN_BOOL},
     ON_POCL | IF_AUTO},
    {{"queries without keys",
      70,
      40,
      32,
      32,
      {.is_causal = true, .lower_right = true},
      DENSE,
      TERN_DTYPE_DEFAULT},
     ON_POCL},
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_cuda(const char *device)
{
    return strncmp(device, "cuda", 4) == 0;
}

/* NULL where attention goes by no kernels of groups. */
static tern_place *place_of(const char *device)
{
    tern_place *place = strcmp(device, "cpu") != 0 ? tern_place_find(device, "test") : NULL;
    if (place && tern_place_is_grouped(place))
        return place;
    test_skipped("attention on %s goes by no kernels of groups", device);
    return NULL;
}

/* Whether the device speaks of a matrix unit. */
static bool has_unit(tern_place *place, const char *device)
{
    return is_cuda(device) ? tern_cuda_state_of(place)->compute >= 80
                           : tern_cl_state_of(place)->matrix_way != TERN_MATRIX_PLAIN;
}

/* NULL before there are any. */
static tern_matrix_kernels *kernels_of(tern_place *place, const char *device)
{
    if (is_cuda(device))
        return &tern_cuda_state_of(place)->own;
    tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
    return s ? &s->matrix : NULL;
}

static int count_kernels(tern_place *place, const char *device)
{
    const tern_matrix_kernels *kernels = kernels_of(place, device);
    int n = 0;
    for (const tern_matrix_kernel *k = kernels ? kernels->first : NULL; k; k = k->next)
        n += k->compiled && strncmp(k->of.family->file, "attention", 9) == 0;
    return n;
}

/* Whether the row is computed on the device, with TERN_MATRIX=way. */
static bool is_computed(tern_place *place, int i, const char *way)
{
    const char *device = tern_place_text(place);
    if (test_thorough(device))
        return true;
    if (test_pocl_gpu_form(device))
        return rows[i].tried & ON_POCL;
    return !strstr(tern_place_info(place)->name, "stand-in") ||
           rows[i].tried & (strcmp(way, "auto") == 0 ? ON_STANDIN | IF_AUTO : ON_STANDIN);
}

static void compare_all(const char *device, const char *way)
{
    tern_place *place = place_of(device);
    for (int i = 0; place && i < ROWS; i++)
        TERN_SCOPE {
            if (!is_computed(place, i, way)) {
                test_skipped("attention on %s (%s): %s", device, way, rows[i].of.what);
                continue;
            }
            set_variable("TERN_MATRIX", way);
            compare(&rows[i].of, device, i % 2 ? TERN_F16 : TERN_BF16);
            set_variable("TERN_MATRIX", NULL);
            assert_true(count_kernels(place, device) > 0);
        }
}

static void ordinary_arithmetic_is_as_on_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    compare_all(device, "plain");
}

static void matrix_units_are_as_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (place_of(device) && has_unit(place_of(device), device))
        compare_all(device, "auto");
    else
        test_skipped("%s has no matrix unit", device);
}

/* With indices of 64 bits the kernels are others. */
static void so_it_is_with_large_indices(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_place *place = place_of(device);
        if (!place)
            continue;
        const int64_t limit = tern_index32_limit;
        int before = count_kernels(place, device);
        set_variable("TERN_MATRIX", "plain");
        tern_index32_limit = 1000;
        compare(&rows[0].of, device, TERN_BF16);
        tern_index32_limit = limit;
        set_variable("TERN_MATRIX", NULL);
        assert_true(count_kernels(place, device) > before);
    }
}

/* Memory of the application's begins at no multiple of what a kernel loads at once. */
static void memory_may_begin_anywhere(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const tern_shape shape = TERN_SHAPE(1, 4, 65, 32);
        tern_memory_handle memory;
        if (!is_cuda(device) || !place_of(device) || !has_unit(place_of(device), device)) {
            test_skipped("memory of %s is no address, or it has no matrix unit", device);
            continue;
        }
        tern_tensor *x = test_uniform(device, TERN_F16, TERN_SHAPE(4 * 65 * 32 + 1), -1, 1, 1);
        assert_ok(tern_get_memory_handle(x, &memory));
        tern_tensor *q = tern_from_blob((char *)memory.memory + memory.offset + 2, shape, TERN_F16,
                                        &(tern_from_blob_options){.device = device});
        tern_tensor *there = tern_reshape(tern_narrow(tern_to(x, "cpu"), 0, 1, 4 * 65 * 32), shape);
        tern_matrix_kernels_free(kernels_of(place_of(device), device));
        tern_tensor *y = tern_scaled_dot_product_attention(q, q, q, NULL);
        assert_close(tern_to(y, "cpu"),
                     tern_scaled_dot_product_attention(there, there, there, NULL), .abs = 4e-3,
                     .rel = 4e-3);
        assert_true(count_kernels(place_of(device), device) > 0);
    }
}

/* auto takes none where the device speaks of no unit, as PoCL's, and off none anywhere. */
static void the_variable_chooses(void **state)
{
    (void)state;
    static const char *const values[] = {"off", "auto"};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_place *place = place_of(device);
            if (!place)
                continue;
            if (kernels_of(place, device))
                tern_matrix_kernels_free(kernels_of(place, device));
            set_variable("TERN_MATRIX", values[i]);
            compare(&rows[3].of, device, TERN_F16);
            set_variable("TERN_MATRIX", NULL);
            assert_int_equal(count_kernels(place, device) > 0, i == 1 && has_unit(place, device));
        }
}

/* As of a driver that refuses what it promised, and of one whose instruction does something else:
 * both are heard of, and results are right. */
static void check_a_liar(const char *device, bool lies)
{
    heard h = {0};
    tern_on_warning(hear, &h);
    for (int again = 0; again < 2; again++)
        attend(&rows[3].of, device, lies ? TERN_BF16 : TERN_F16);
    compare(&rows[3].of, device, lies ? TERN_BF16 : TERN_F16);
    tern_on_warning(NULL, NULL);
    if (h.count != 1 || !strstr(h.text, lies ? "came out wrong" : "does not build"))
        fail_msg("%d warnings: %s", h.count, h.text);
}

static void opencl_lies(const char *device, bool lies)
{
    static const char *const options[] = {"-cl-std=CL1.2 -w",
                                          "-cl-std=CL1.2 -w -cl-opt-disable "
                                          "-Dintel_sub_group_bf16_bf16_matrix_mad_k16(a,b,c)=(c) "
                                          "-Dintel_sub_group_block_read8(p)=((uint8)(0))"};
    tern_cl_state *s = tern_cl_state_of(place_of(device));
    const char *own = s->options;
    const int way = s->matrix_way;
    s->options = options[lies];
    s->matrix_way = TERN_MATRIX_XE8;
    check_a_liar(device, lies);
    s->options = own;
    s->matrix_way = way;
}

static void cuda_lies(const char *device, bool lies)
{
    tern_matrix_kernels *kernels = kernels_of(place_of(device), device);
    const int minor = tern_cuda.nvrtc_minor;
    tern_matrix_kernels_free(kernels);
    tern_cuda.nvrtc_minor = 99; /* nothing of it is in a cache */
    setenv("TERN_STANDIN_MATRIX", lies ? "wrong" : "refused", 1);
    check_a_liar(device, lies);
    unsetenv("TERN_STANDIN_MATRIX");
    tern_cuda.nvrtc_minor = minor;
    tern_matrix_kernels_free(kernels);
}

static void a_device_that_promises_what_it_has_not_is_found_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int lies = 0; lies < 2; lies++)
        TERN_SCOPE {
            if (!place_of(device))
                continue;
            if (is_cuda(device) && !strstr(tern_place_info(place_of(device))->name, "stand-in"))
                test_skipped("%s tells the truth", device);
            else
                (is_cuda(device) ? cuda_lies : opencl_lies)(device, lies);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(ordinary_arithmetic_is_as_on_the_cpu),
    TEST(matrix_units_are_as_the_cpu),
    TEST(so_it_is_with_large_indices),
    TEST(memory_may_begin_anywhere),
    TEST(the_variable_chooses),
    TEST(a_device_that_promises_what_it_has_not_is_found_out),
};
TEST_MAIN(tests)

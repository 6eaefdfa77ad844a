/* test_gemm_matrix.c -- products of halves on matrix units through OpenCL: gemm_matrix.cl in
 * ordinary arithmetic against the portable kernel, and devices that promise a matrix unit and have
 * none. */
#include "device/gemm_kernel.h"
#include "device/opencl/gemm.h"
#include "environment.h"
#include "heard.h"
#include "support.h"
#include "tensor/tensor.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    tern_dtype dtype;
    double tolerance;
} types[] = {{TERN_F16, 4e-3}, {TERN_BF16, 3e-2}};

static const struct {
    int64_t m, n, k, count[2];
    double alpha, beta;
    bool bias, a_across, b_across;
    int64_t gap, at;
    const char *tile;
} shapes[] = {
    {67, 45, 33, {1, 1}, 1, 0, false, false, false, 0, 0, "64x64x32"},
    {64, 72, 40, {2, 3}, 0.5, 2, true, false, true, 0, 8, "64x64x32"}, /* eights everywhere */
    {136, 80, 24, {1, 2}, 1, 1, true, true, false, 16, 0, "128x64x64"},
    {65, 70, 19, {1, 3}, -1, 1, true, true, true, 5, 0, "64x64x16"},   /* rows at eights, edges */
    {33, 130, 17, {2, 1}, 1, 0, true, false, true, 3, 1, "64x128x32"}, /* nothing is aligned */
    {1, 200, 7, {1, 1}, 1, 0, false, true, false, 0, 2, "64x64x32"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tern_place *place_of(const char *device)
{
    if (strncmp(device, "opencl", 6) == 0)
        return tern_place_find(device, "test");
    test_skipped("products on %s are not OpenCL's", device);
    return NULL;
}

static tern_matrix matrix(const char *device, tern_dtype dtype, int64_t rows, int64_t columns,
                          size_t i, bool across, uint64_t seed, tern_tensor **memory)
{
    int64_t line = (across ? rows : columns) + shapes[i].gap;
    tern_matrix x = {.at = shapes[i].at, .row = across ? 1 : line, .col = across ? line : 1};
    x.batch[1] = line * (across ? columns : rows);
    x.batch[0] = x.batch[1] * shapes[i].count[1];
    *memory = test_uniform(device, dtype, TERN_SHAPE(x.batch[0] * shapes[i].count[0] + x.at), -1, 1,
                           seed);
    x.buffer = &(*memory)->storage->block->buffer;
    return x;
}

/* The product by a way of TERN_OPENCL_GEMM; NULL: by the library's choice. */
static tern_status multiply(const char *device, tern_dtype dtype, size_t i, const char *way,
                            tern_tensor **c)
{
    tern_tensor *a, *b, *bias = test_uniform(device, dtype, TERN_SHAPE(shapes[i].n + 2), -1, 1, 9);
    tern_gemm g = {.dtype = dtype,
                   .m = shapes[i].m,
                   .n = shapes[i].n,
                   .k = shapes[i].k,
                   .count = {shapes[i].count[0], shapes[i].count[1]},
                   .alpha = shapes[i].alpha,
                   .beta = shapes[i].beta};
    g.a = matrix(device, dtype, g.m, g.k, i, shapes[i].a_across, 1, &a);
    g.b = matrix(device, dtype, g.k, g.n, i, shapes[i].b_across, 2, &b);
    g.c = matrix(device, dtype, g.m, g.n, i, false, 3, c);
    if (shapes[i].bias)
        g.bias = &bias->storage->block->buffer, g.bias_at = i == 1 ? 0 : 2;
    if (way)
        set_variable("TERN_OPENCL_GEMM", way);
    tern_status status = tern_launch_gemm(tern_tensor_place(*c), &g);
    set_variable("TERN_OPENCL_GEMM", NULL);
    return status;
}

static void ordinary_arithmetic_agrees_with_the_portable_kernel(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < SHAPES; i++)
        TERN_SCOPE {
            const size_t t = i % 2;
            char way[64];
            tern_tensor *expected, *c;
            snprintf(way, sizeof way, "matrix:%s", shapes[i].tile);
            assert_ok(multiply(device, types[t].dtype, i, "portable", &expected));
            assert_ok(multiply(device, types[t].dtype, i, way, &c));
            assert_close(c, expected, .abs = types[t].tolerance, .rel = types[t].tolerance);
        }
}

static int kernels_of(tern_place *place)
{
    const tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
    int n = 0;
    for (const tern_matrix_kernel *k = s ? s->matrix.first : NULL; k; k = k->next)
        n += k->state == TERN_MATRIX_RIGHT;
    return n;
}

static void forget_kernels(tern_place *place)
{
    tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
    if (s)
        tern_matrix_kernels_free(&s->matrix);
}

/* TERN_MATRIX=plain takes the kernels wherever a matrix unit would; off and auto take none here. */
static void the_variable_chooses(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_place *place = place_of(device);
        if (!place)
            continue;
        tern_tensor *x = test_uniform(device, TERN_BF16, TERN_SHAPE(40, 24), -1, 1, 1);
        tern_tensor *y = test_uniform(device, TERN_BF16, TERN_SHAPE(24, 48), -1, 1, 2);
        static const char *const values[] = {"off", "auto", "plain"};
        tern_tensor *z[3];
        int were = kernels_of(place);
        for (int i = 0; i < 3; i++) {
            set_variable("TERN_MATRIX", values[i]);
            z[i] = tern_mm(x, y);
            assert_int_equal(kernels_of(place) - were, i == 2);
        }
        set_variable("TERN_MATRIX", NULL);
        assert_close(z[1], z[0], .abs = 3e-2, .rel = 3e-2);
        assert_close(z[2], z[0], .abs = 3e-2, .rel = 3e-2);
    }
}

/* Of a driver whose instruction leaves sums as they are. */
#define LIE                                                                                        \
    "-cl-std=CL1.2 -w -cl-opt-disable -Dintel_sub_group_bf16_bf16_matrix_mad_k16(a,b,c)=(c) "      \
    "-Dintel_sub_group_block_read8(p)=((uint8)(0))"

/* As of a driver that refuses what it promised, of one whose instruction does something else, and
 * of one that builds a kernel and does not launch it. */
static void a_device_that_promises_what_it_has_not_is_found_out(void **state)
{
    (void)state;
    static const char *const options[] = {
        "-cl-std=CL1.2 -w", LIE, LIE " -Dreqd_work_group_size(a,b,c)=reqd_work_group_size(a,2,1)"};
    static const char *const why[] = {"does not build", "came out wrong",
                                      "clEnqueueNDRangeKernel gave"};
    FOR_EACH_DEVICE(device)
    for (int lies = 0; lies < 3; lies++)
        TERN_SCOPE {
            tern_place *place = place_of(device);
            if (!place)
                continue;
            tern_cl_state *s = tern_cl_state_of(place);
            const tern_dtype dtype = lies ? TERN_BF16 : TERN_F16;
            const char *own = s->options;
            tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(40, 24), -1, 1, 1);
            tern_tensor *y = test_uniform(device, dtype, TERN_SHAPE(24, 48), -1, 1, 2);
            tern_tensor *expected = tern_mm(x, y);
            heard h = {0};
            forget_kernels(place);
            tern_on_warning(hear, &h);
            s->options = options[lies];
            s->matrix_way = TERN_MATRIX_XE8;
            assert_int_equal(tern_cl_matrix_way(place, dtype), TERN_MATRIX_NONE);
            int tried = kernels_of(place), heard_of = h.count;
            tern_tensor *z = tern_mm(x, y); /* which does not try it again */
            s->options = own;
            s->matrix_way = TERN_MATRIX_PLAIN;
            atomic_store(&s->matrix_tried[lies > 0], TERN_CL_NOT_TRIED);
            tern_on_warning(NULL, NULL);
            assert_int_equal(kernels_of(place), tried);
            assert_close(z, expected, .abs = 3e-2, .rel = 3e-2);
            assert_int_equal(heard_of, 1);
            assert_int_equal(h.count, 1);
            if (!strstr(h.text, why[lies]))
                fail_msg("%s", h.text);
        }
}

/* Where there is no memory for a trial nothing was tried, and the next product tries again. */
static void a_trial_without_memory_is_none(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        heard h = {0};
        if (!place)
            continue;
        assert_ok(tern_empty_cache(device));
        tern_cl_state *s = tern_cl_state_of(place);
        const char *own = s->options;
        const uint64_t live = atomic_load(&s->live);
        forget_kernels(place);
        tern_on_warning(hear, &h);
        s->options = LIE;
        s->matrix_way = TERN_MATRIX_XE8;
        atomic_store(&s->live, tern_place_info(place)->memory_total);
        const int full = tern_cl_matrix_way(place, TERN_BF16), heard_of = h.count;
        const int tried = atomic_load(&s->matrix_tried[1]);
        atomic_store(&s->live, live);
        const int later = tern_cl_matrix_way(place, TERN_BF16);
        s->options = own;
        s->matrix_way = TERN_MATRIX_PLAIN;
        atomic_store(&s->matrix_tried[1], TERN_CL_NOT_TRIED);
        forget_kernels(place);
        tern_on_warning(NULL, NULL);
        assert_int_equal(full, TERN_MATRIX_NONE);
        assert_int_equal(tried, TERN_CL_NOT_TRIED);
        assert_int_equal(heard_of, 0);
        assert_int_equal(later, TERN_MATRIX_NONE);
        assert_int_equal(h.count, 1);
        assert_non_null(strstr(h.text, "came out wrong"));
        assert_int_equal(tern_last_status(), TERN_OK);
    }
}

/* What tern keeps of freed tensors makes room for a trial. */
static void a_trial_takes_what_is_kept(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        heard h = {0};
        if (!place)
            continue;
        tern_cl_state *s = tern_cl_state_of(place);
        const char *own = s->options;
        assert_ok(tern_empty_cache(device));
        tern_release(tern_zeros(TERN_SHAPE(64 << 20), TERN_U8, device));
        forget_kernels(place);
        tern_on_warning(hear, &h);
        s->options = LIE;
        s->matrix_way = TERN_MATRIX_XE8;
        const uint64_t more = tern_place_info(place)->memory_total - atomic_load(&s->live);
        atomic_fetch_add(&s->live, more);
        tern_cl_matrix_way(place, TERN_BF16);
        const int tried = atomic_load(&s->matrix_tried[1]);
        atomic_fetch_sub(&s->live, more);
        s->options = own;
        s->matrix_way = TERN_MATRIX_PLAIN;
        atomic_store(&s->matrix_tried[1], TERN_CL_NOT_TRIED);
        forget_kernels(place);
        tern_on_warning(NULL, NULL);
        assert_true(tried != TERN_CL_NOT_TRIED);
        assert_int_equal(h.count, 1);
        assert_int_equal(tern_last_status(), TERN_OK);
    }
}

/* A line of the tuning file without type=half was measured in float32: large products of halves
 * leave it alone where they have a matrix unit. */
static void tuned_routes_are_of_a_type(void **state)
{
    (void)state;
    static const struct {
        tern_dtype dtype;
        bool plain, halves;
        tern_cl_way tuned, wanted;
    } rows[] = {
        {TERN_F16, true, false, TERN_CL_TILES, TERN_CL_MATRIX},
        {TERN_F16, true, true, TERN_CL_TILES, TERN_CL_TILES},
        {TERN_F16, true, false, TERN_CL_MATRIX, TERN_CL_MATRIX},
        {TERN_BF16, false, false, TERN_CL_TILES, TERN_CL_TILES},
        {TERN_F32, true, false, TERN_CL_TILES, TERN_CL_TILES},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < sizeof rows / sizeof *rows; i++) {
        tern_place *place = place_of(device);
        tern_cl_state *s = tern_cl_state_of(place);
        tern_gemm g = {.dtype = rows[i].dtype, .m = 200, .n = 100, .k = 50, .count = {1, 1}};
        tern_cl_tile tile = {0};
        tern_cl_route route = {.most = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                               .way = rows[i].tuned,
                               .halves = rows[i].halves,
                               .tile = {.m = 64, .n = 128, .k = 16}};
        g.a.col = g.b.col = g.c.col = 1;
        s->tuning = (struct tern_cl_tuning){.routes = &route, .n_routes = 1};
        set_variable("TERN_MATRIX", rows[i].plain ? "plain" : NULL);
        tern_cl_way way = tern_cl_route_of(place, &g, &tile);
        set_variable("TERN_MATRIX", NULL);
        s->tuning = (struct tern_cl_tuning){0};
        assert_int_equal(way, rows[i].wanted);
        assert_int_equal(tile.n, i == 0 ? 64 : 128); /* untuned, or the line's */
    }
}

/* What `tern doctor` found: nothing is tried for a type that was wrong, and programs see it. */
static void the_profile_keeps_what_was_tried(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        tern_device_info d;
        char path[64];
        if (!place)
            continue;
        tern_cl_state *s = tern_cl_state_of(place);
        snprintf(path, sizeof path, "matrix-profile-%ld.json", (long)getpid());
        FILE *file = fdopen(open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600), "w");
        assert_non_null(file);
        fputs("{\"routes\": {\"matrix_f16\": \"wrong\", \"matrix_bf16\": \"right\"}}\n", file);
        fclose(file);
        assert_ok(tern_device_get_info(device, &d));
        assert_string_equal(d.matrix_unit, "");
        set_variable("TERN_DOCTOR", path);
        tern_cl_doctor_read(place);
        set_variable("TERN_DOCTOR", NULL);
        remove(path);
        s->matrix_way = TERN_MATRIX_RDNA4;
        int were = kernels_of(place);
        tern_status status = tern_device_get_info(device, &d);
        int ways[] = {tern_cl_matrix_way(place, TERN_F16), tern_cl_matrix_way(place, TERN_BF16)};
        s->matrix_way = TERN_MATRIX_PLAIN;
        atomic_store(&s->matrix_tried[0], 0);
        atomic_store(&s->matrix_tried[1], 0);
        assert_ok(status);
        assert_string_equal(d.matrix_unit, "rdna4");
        assert_int_equal(d.matrix_f16, -1);
        assert_int_equal(d.matrix_bf16, 1);
        assert_int_equal(ways[0], TERN_MATRIX_NONE);
        assert_int_equal(ways[1], TERN_MATRIX_RDNA4);
        assert_int_equal(kernels_of(place), were);
    }
}

static void tiles_that_are_none_are_refused(void **state)
{
    (void)state;
    tern_cl_tile tile;
    assert_null(tern_cl_matrix_tile_read("128x64x32", &tile));
    assert_int_equal(tile.m, 128);
    assert_int_equal(tile.n, 64);
    assert_int_equal(tile.k, 32);
    assert_null(tern_cl_matrix_tile_check(&tile, 16384, 128));
    assert_non_null(tern_cl_matrix_tile_check(&tile, 16384, 127));
    assert_non_null(tern_cl_matrix_tile_check(&tile, 12287, 128));
    static const char *const wrong[] = {"",         "64x64",    "64x64x32x1", "32x64x32",
                                        "64x64x24", "64x64x48", "0x64x32",    "512x64x32"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(tern_cl_matrix_tile_read(wrong[i], &tile));
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *c;
        if (!place_of(device))
            continue;
        assert_int_equal(multiply(device, TERN_F16, 0, "matrix:64x60x32", &c), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "is not ROWSxCOLUMNSxDEPTH");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(ordinary_arithmetic_agrees_with_the_portable_kernel),
    TEST(the_variable_chooses),
    TEST(a_device_that_promises_what_it_has_not_is_found_out),
    TEST(a_trial_without_memory_is_none),
    TEST(a_trial_takes_what_is_kept),
    TEST(tuned_routes_are_of_a_type),
    TEST(the_profile_keeps_what_was_tried),
    TEST(tiles_that_are_none_are_refused),
};
TEST_MAIN(tests)

/* test_matmul_tiles.c -- matmul_tiles.cl in every tile that `tern tune` tries, against the portable kernel and the cpu. */
#include "device/gemm_kernel.h"
#include "device/opencl/gemm.h"
#include "heard.h"
#include "environment.h"
#include "support.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int sums;
    const char *text;
} tiles[] = {
#define X(QUICK, DOWN, ACROSS, M, N, K, V)                                                         \
    {(M) * (N), #DOWN "x" #ACROSS "x" #M "x" #N "x" #K "x" #V},
#include "tool/tune_tiles.def"
#undef X
};
enum { TILES = sizeof tiles / sizeof *tiles };
static const struct {
    tern_dtype dtype;
    double tolerance;
} types[] = {{TERN_F32, 2e-5}, {TERN_F16, 4e-3}, {TERN_BF16, 3e-2}};

static const struct {
    int64_t m, n, k, count[2];
    double alpha, beta;
    bool bias, a_across, b_across;
    int64_t gap, at;
} shapes[] = {
    {67, 45, 33, {1, 1}, 1, 0, false, false, false, 0, 0},
    {128, 64, 64, {1, 1}, 0.5, 2, true, false, true, 0, 0},  /* whole tiles, four at a time */
    {132, 68, 36, {2, 2}, 1, 0.5, false, true, false, 0, 4}, /* fours, and edges */
    {130, 70, 19, {1, 3}, -1, 1, true, true, true, 3, 1},    /* nothing is aligned */
    {1, 200, 17, {2, 1}, 1, 0, true, false, false, 0, 2},
    {200, 1, 5, {1, 1}, 1, 0, false, false, true, 1, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tern_place *place_of(const char *device)
{
    return strncmp(device, "opencl", 6) == 0 ? tern_place_find(device, "test") : NULL;
}

static tern_matrix matrix(const char *device, tern_dtype dtype, int64_t rows, int64_t columns,
                          size_t i, bool across, uint64_t seed, tern_tensor **room)
{
    int64_t line = (across ? rows : columns) + shapes[i].gap;
    tern_matrix x = {.at = shapes[i].at, .row = across ? 1 : line, .col = across ? line : 1};
    x.batch[1] = line * (across ? columns : rows);
    x.batch[0] = x.batch[1] * shapes[i].count[1];
    *room = test_uniform(device, dtype, TERN_SHAPE(x.batch[0] * shapes[i].count[0] + x.at), -1, 1,
                         seed);
    x.buffer = &(*room)->storage->block->buffer;
    return x;
}

/* The product by a way of TERN_OPENCL_GEMM, NULL for that of the tuning file; its status and all of C's room. */
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
        g.bias = &bias->storage->block->buffer, g.bias_at = 2;
    if (way)
        set_variable("TERN_OPENCL_GEMM", way);
    tern_status status = tern_launch_gemm(tern_tensor_place(*c), &g);
    set_variable("TERN_OPENCL_GEMM", NULL);
    return status;
}

/* Programs that the process built or loaded. */
static uint64_t test_programs(const char *device)
{
    tern_counters counters;
    assert_ok(tern_get_counters(device, &counters));
    return counters.programs_built + counters.programs_loaded;
}

static bool fits(tern_place *place, const char *text)
{
    const tern_cl_state *s = tern_cl_state_of(place);
    tern_cl_tile tile;
    assert_null(tern_cl_tile_read(text, &tile));
    return !tern_cl_tile_check(&tile, s->local_memory, s->group_limit);
}

static void check_tile(const char *device, const char *tile, int type, size_t shape)
{
    TERN_SCOPE {
        char way[64];
        tern_tensor *expected, *c;
        snprintf(way, sizeof way, "tiles:%s", tile);
        assert_ok(multiply(device, types[type].dtype, shape, "portable", &expected));
        assert_ok(multiply(device, types[type].dtype, shape, way, &c));
        assert_close(c, expected, .abs = types[type].tolerance, .rel = types[type].tolerance);
    }
}

/* Each is a program of its own, which PoCL takes seconds for where the loops are long: these are tried by TERN_TEST_ALL. */
static void every_tile_agrees_with_the_portable_kernel(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        for (size_t k = 0; place && k < TILES; k++)
            if (fits(place, tiles[k].text) &&
                (getenv("TERN_TEST_ALL") || tiles[k].sums <= (k % 6 ? 4 : 16)))
                check_tile(device, tiles[k].text, 0, k % SHAPES);
    }
}

static void layouts_halves_and_edges_agree_with_the_portable_kernel(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < SHAPES; i++) {
        check_tile(device, "8x4x4x4x8x4", 0, i);
        check_tile(device, i % 2 ? "4x8x2x1x8x1" : "8x4x4x4x8x4", 1 + (int)(i % 2), i);
    }
}

static void c_is_not_read_where_beta_is_0(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (!place_of(device))
            continue;
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(3, 20, 50), -1, 1, 1);
        tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(3, 37, 50), -1, 1, 2);
        tern_tensor *nan =
            tern_full(TERN_SHAPE(3, 20, 37), TERN_SCALAR((double)NAN), TERN_F32, device);
        set_variable("TERN_OPENCL_GEMM", "tiles:8x4x4x4x8x4");
        tern_tensor *z = tern_baddbmm(nan, x, tern_transpose(y, 1, 2), 0, 1);
        set_variable("TERN_OPENCL_GEMM", "portable");
        assert_close(z, tern_bmm(x, tern_transpose(y, 1, 2)), .abs = 1e-5, .rel = 1e-5);
        set_variable("TERN_OPENCL_GEMM", NULL);
    }
}

/* float64 goes another way; a tile that is none, or does not fit, is an error that says so. */
static void what_no_tile_can_do(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *c, *expected;
        tern_place *place = place_of(device);
        if (!place)
            continue;
        if (tern_place_info(place)->has_f64) {
            assert_ok(multiply(device, TERN_F64, 0, "tiles:8x4x4x4x8x4", &c));
            assert_ok(multiply(device, TERN_F64, 0, "portable", &expected));
            assert_close(c, expected, .abs = 1e-13, .rel = 1e-13);
        }
        assert_int_equal(multiply(device, TERN_F32, 0, "tiles:8x8", &c), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "is not DOWNxACROSSxMxNxKxV");
        assert_int_equal(multiply(device, TERN_F32, 0, "tiles:1024x1024x1x1x1x1", &c),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "wants larger work-groups than the device has");
    }
}

/* A route is taken; what the driver does not build is done by the portable kernel, and is an error by name alone. */
static void a_route_falls_back_to_the_portable_kernel(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int broken = 0; broken < 2; broken++)
        TERN_SCOPE {
            tern_place *place = place_of(device);
            if (!place)
                continue;
            tern_cl_state *s = tern_cl_state_of(place);
            const char *options = s->options;
            tern_cl_route route = {.most = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                                   .way = TERN_CL_TILES};
            const char *text = broken ? "4x4x1x2x4x1" : "4x4x2x1x4x1";
            char way[32];
            tern_tensor *c, *expected;
            heard h = {0};
            tern_on_warning(hear, &h);
            assert_null(tern_cl_tile_read(text, &route.tile));
            s->tuning = (struct tern_cl_tuning){.routes = &route, .n_routes = 1};
            assert_ok(multiply(device, TERN_F32, 0, "portable", &expected));
            uint64_t before = test_programs(device);
            s->options = broken ? "-cl-std=CL1.2 -w -Dgemm_tiles_f32=1" : options;
            for (int again = 0; again < 2; again++) {
                assert_ok(multiply(device, TERN_F32, 0, NULL, &c));
                assert_close(c, expected, .abs = 2e-5, .rel = 2e-5);
            }
            assert_int_equal(test_programs(device) - before, !broken);
            snprintf(way, sizeof way, "tiles:%s", broken ? "4x4x2x2x4x1" : text);
            tern_status status = multiply(device, TERN_F32, 0, way, &c);
            s->tuning = (struct tern_cl_tuning){0};
            s->options = options;
            tern_on_warning(NULL, NULL);
            assert_int_equal(h.count, broken);
            assert_true(strncmp(h.text, "tern_matmul: ", 13 * (size_t)broken) == 0);
            assert_int_equal(status, broken ? TERN_ERR_ARGUMENT : TERN_OK);
            if (broken)
                assert_error(TERN_ERR_ARGUMENT,
                             "tile 4x4x2x2x4x1 of matmul_tiles.cl does not build");
        }
}

static void limits_of_devices_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *tile;
        uint64_t local;
        size_t group;
        bool fits;
    } rows[] = {
        {"16x16x8x8x32x4", 65536, 256, true}, {"16x16x8x8x32x4", 32768, 256, false},
        {"16x16x8x8x16x4", 32768, 256, true}, {"16x16x8x8x16x4", 32768, 128, false},
        {"8x8x4x4x16x4", 32768, 64, true},    {"8x8x4x4x16x4", 32768, 63, false},
        {"8x8x4x4x16x4", 64 * 72, 64, true},  {"8x8x4x4x16x4", 64 * 72 - 1, 64, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_cl_tile tile;
        assert_null(tern_cl_tile_read(rows[i].tile, &tile));
        assert_int_equal(!tern_cl_tile_check(&tile, rows[i].local, rows[i].group), rows[i].fits);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_tile_agrees_with_the_portable_kernel),
    TEST(layouts_halves_and_edges_agree_with_the_portable_kernel),
    TEST(c_is_not_read_where_beta_is_0),
    TEST(what_no_tile_can_do),
    TEST(a_route_falls_back_to_the_portable_kernel),
    TEST(limits_of_devices_are_kept),
};
TEST_MAIN(tests)

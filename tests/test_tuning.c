/* test_tuning.c -- products routed by their sizes, and the file that tunes that and CLBlast. */
#include "device/opencl/gemm.h"
#include "environment.h"
#include "device/device.h"
#include "tensor/fields.h"
#include "support.h"
#include "temporary.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int64_t clblast_parameter(void *device, const char *kernel, int precision, const char *name);

static tern_place *place_of(const char *device)
{
    return strncmp(device, "opencl", 6) == 0 ? tern_place_find(device, "test") : NULL;
}

static tern_status read_file(tern_place *place, const char *text, tern_cl_tuning *tuning)
{
    char path[TEMPORARY_BYTES];
    int file = mkstemp(temporary(path, "tern-test-XXXXXX"));
    assert_true(file >= 0);
    assert_int_equal(write(file, text, (unsigned)strlen(text)), strlen(text));
    close(file);
    set_variable("TERN_OPENCL_TUNING", path);
    tern_status status = tern_cl_tuning_read(place, tuning);
    set_variable("TERN_OPENCL_TUNING", NULL);
    unlink(path);
    return status;
}

static const char *name_of(tern_cl_way way)
{
    static const char *const names[] = {
#define X(WAY, NAME) NAME,
        TERN_CL_WAYS(X)
#undef X
    };
    return way == TERN_CL_PORTABLE ? "portable" : names[way];
}

static const char *route(tern_place *place, tern_dtype dtype, int64_t m, int64_t n, int64_t k,
                         int64_t count)
{
    tern_gemm g = {.dtype = dtype, .m = m, .n = n, .k = k, .count = {1, count}};
    g.a = (tern_matrix){.row = k, .col = 1, .batch = {0, m * k}};
    g.b = (tern_matrix){.row = n, .col = 1, .batch = {0, k * n}};
    g.c = (tern_matrix){.row = n, .col = 1, .batch = {0, m * n}};
    return name_of(tern_cl_route_of(place, &g, NULL));
}

/* Of 50 x 50 x 50 with the second operand transposed. */
static const char *route_nt(tern_place *place, tern_dtype dtype)
{
    tern_gemm g = {.dtype = dtype, .m = 50, .n = 50, .k = 50, .count = {1, 1}};
    g.a = g.c = (tern_matrix){.row = 50, .col = 1};
    g.b = (tern_matrix){.row = 1, .col = 50};
    return name_of(tern_cl_route_of(place, &g, NULL));
}

static void routes_go_by_size(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k, count;
        const char *gpu, *clblast, *tuned; /* portable: also what own comes to in the gpu form */
    } shapes[] = {
        {512, 512, 512, 1, "gemm", "gemm", "gemm"}, {512, 512, 512, 8, "batched", "batched", "own"},
        {512, 1, 512, 1, "gemv", "gemv", "gemv"},   {1, 512, 512, 1, "gemv", "gemv", "gemm"},
        {512, 8, 512, 1, "own", "gemm", "own"},     {8, 512, 512, 4, "own", "batched", "batched"},
        {512, 512, 4, 1, "own", "gemm", "own"},     {32, 32, 512, 1, "own", "gemm", "own"},
    };
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        if (!place || !tern_cl_clblast_is_there())
            continue;
        tern_cl_state *s = tern_cl_state_of(place);
        const char *own = s->cpu_form ? "own" : "portable";
        const bool known = tern_cl_tile_of_family(tern_place_info(place)->name);
#define EXPECT(WAY, ROUTE) assert_string_equal(ROUTE, strcmp(WAY, "own") == 0 ? own : (WAY))
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k, count = shapes[i].count;
            set_variable("TERN_OPENCL_GEMM", NULL);
            EXPECT(tern_place_info(place)->type == TERN_DEVICE_CPU ? "own" : shapes[i].gpu,
                   route(place, TERN_F32, m, n, k, count));
            set_variable("TERN_OPENCL_GEMM", "clblast");
            EXPECT(shapes[i].clblast, route(place, TERN_F32, m, n, k, count));
            assert_string_equal(route(place, TERN_BF16, m, n, k, count), "portable");
            set_variable("TERN_OPENCL_GEMM", "gpu");
            EXPECT(shapes[i].gpu, route(place, TERN_F64, m, n, k, count));
            EXPECT(s->cpu_form || !known || m <= 32 || n <= 32 || k <= 16 ? "own" : "tiles",
                   route(place, TERN_F16, m, n, k, count));
            assert_ok(read_file(place,
                                "route gemm m=1 k=100..  # rows\n\n"
                                "route own count=5..9\n"
                                "route batched m=..8 count=2..\n"
                                "device no device has this name\n"
                                "route batched\n",
                                &s->tuning));
            assert_int_equal(s->tuning.n_routes, 3);
            EXPECT(shapes[i].tuned, route(place, TERN_F32, m, n, k, count));
            tern_free(s->tuning.routes);
            s->tuning = (tern_cl_tuning){0};
        }
#undef EXPECT
        set_variable("TERN_OPENCL_GEMM", NULL);
    }
}

/* A section is for a driver and a tern, and the next device begins anew. */
static void sections_are_for_a_device_its_driver_and_a_tern(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        if (!place)
            continue;
        const tern_device_info *info = tern_place_info(place);
        const struct {
            const char *driver, *tern;
            int routes;
        } rows[] = {{info->driver, TERN_VERSION_TEXT, 2},
                    {"no driver is this", TERN_VERSION_TEXT, 1},
                    {info->driver, "0.0.0", 1},
                    {"no driver is this", "0.0.0", 1}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tern_cl_tuning tuning;
            char text[2048];
            snprintf(text, sizeof text,
                     "device %s\ndriver %s\ntern %s\nroute tiles layout=nt tile=8x8x4x4x8x4\n"
                     "device no device has this name\ndriver %s\nroute own\n"
                     "device %s\nroute own m=7\n",
                     info->name, rows[i].driver, rows[i].tern, info->driver, info->name);
            assert_ok(read_file(place, text, &tuning));
            assert_int_equal(tuning.n_routes, rows[i].routes);
            const char *untuned[] = {route_nt(place, TERN_F32), route_nt(place, TERN_F16)};
            tern_cl_state_of(place)->tuning = tuning;
            const bool turned = rows[i].routes == 2;
            assert_string_equal(route_nt(place, TERN_F32), turned ? "tiles" : untuned[0]);
            assert_string_equal(route_nt(place, TERN_F16), turned ? "tiles" : untuned[1]);
            assert_string_not_equal(route_nt(place, TERN_F64), "tiles");
            assert_string_not_equal(route(place, TERN_F32, 50, 50, 50, 1), "tiles");
            tern_free(tuning.routes);
            tern_cl_state_of(place)->tuning = (tern_cl_tuning){0};
        }
    }
}

static void families_have_tiles_that_fit_the_least_of_them(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool known;
        size_t group;
    } rows[] = {{"NVIDIA H200", true, 1024},
                {"Tesla V100-SXM2-16GB", true, 1024},
                {"gfx1100", true, 256},
                {"gfx90a:sramecc+:xnack-", true, 256},
                {"Intel(R) Arc(TM) A770 Graphics", true, 512},
                {"Mali-G78 r0p1", true, 64},
                {"QUALCOMM Adreno(TM) 740", true, 64},
                {"Apple M1 Pro", true, 256},
                {"pthread-AMD EPYC 7B13", false, 4096},
                {"cpu-haswell", false, 4096},
                {"", false, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = tern_cl_tile_of_family(rows[i].name);
        tern_cl_tile tile;
        assert_int_equal(text != NULL, rows[i].known);
        if (text) {
            assert_null(tern_cl_tile_read(text, &tile));
            assert_null(tern_cl_tile_check(&tile, 16384, rows[i].group));
        }
    }
}

static void parameters_reach_clblast(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        if (!place || !tern_cl_clblast_is_there())
            continue;
        cl_device_id id = tern_cl_state_of(place)->device;
        int64_t before = clblast_parameter(id, "Xgemv", 32, "WGS1");
        int64_t wide = clblast_parameter(id, "Xgemv", 64, "WGS1");
        assert_true(before > 0 && wide > 0);
        tern_cl_tuning tuning;
        assert_ok(read_file(place,
                            "# as clblast_tuner_xgemv prints it\n"
                            "kernel Xgemv 32 WGS1=32 WPT1=1\n"
                            "device of another kind\n"
                            "kernel Xgemv 64 WGS1=32 WPT1=1\n",
                            &tuning));
        assert_int_equal(clblast_parameter(id, "Xgemv", 32, "WGS1"), 32);
        assert_int_equal(clblast_parameter(id, "Xgemv", 64, "WGS1"), wide);
        char text[256];
        snprintf(text, sizeof text, "device %s\nkernel Xgemv 64 WPT1=2 WGS1=96\n",
                 tern_place_info(place)->name);
        assert_ok(read_file(place, text, &tuning));
        assert_int_equal(clblast_parameter(id, "Xgemv", 64, "WGS1"), 96);
        assert_int_equal(clblast_parameter(id, "Xgemv", 64, "WPT1"), 2);
        assert_int_equal(tuning.n_routes, 0);
    }
}

static void a_bad_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } files[] = {
        {"\n# x\nkernels Xgemm\n",
         ":3: \"kernels\" is none of device, driver, tern, kernel, route"},
        {"device\n", ":1: device needs a part of its name"},
        {"kernel Xgemm 16 KWG=1\n", ":1: expected kernel NAME 32|64 PARAMETER=NUMBER ..."},
        {"kernel Xgemm 32\n", ":1: expected kernel"},
        {"kernel Xgemm 32 KWG=one\n", ":1: \"KWG=one\" is not PARAMETER=NUMBER"},
        {"kernel Xgemm 32 =1\n", "\"=1\" is not"},
        {"kernel Xgemm 32 KWG=99999999999999999999\n", "is not PARAMETER=NUMBER"},
        {"route\n", ":1: route: \"\" is none of own, gemm, gemv, batched, tiles"},
        {"route own m=1\nroute fast\n", ":2: route: \"fast\" is none of"},
        {"route own m=0\n", ":1: \"m=0\" is not m=A..B"},
        {"route own m=5..4\n", "\"m=5..4\" is not"},
        {"route own m=4...5\n", "\"m=4...5\" is not"},
        {"route own m=4-5\n", "\"m=4-5\" is not"},
        {"route own b=4\n", "\"b=4\" is not"},
        {"route own =4\n", "\"=4\" is not"},
        {"device nobody's\nroute own m\n", ":2: \"m\" is not"},
        {"driver\n", ":1: driver needs a part of its name"},
        {"route own layout=nx\n", "\"layout=nx\" is not layout=nn, nt, tn or tt"},
        {"route own layout=n\n", "\"layout=n\" is not layout"},
        {"route tiles m=1\n", ":1: route tiles needs tile="},
        {"route tiles tile=16x16x4x4x16\n", "is not DOWNxACROSSxMxNxKxV"},
        {"route tiles tile=16x16x4x4x16x4x\n", "is not DOWNxACROSSxMxNxKxV"},
        {"route tiles tile=0x16x4x4x16x4\n", "is not DOWNxACROSSxMxNxKxV"},
        {"route tiles tile=99999999999999999999x16x4x4x16x4\n", "is not DOWNxACROSSxMxNxKxV"},
        {"route tiles tile=8x8x32x4x16x4\n", "more than 16 rows or columns an item"},
        {"route tiles tile=8x8x4x4x16x2\n", "loads neither 1 nor 4"},
        {"route tiles tile=8x8x4x6x16x4\n", "4 do not divide"},
        {"route tiles tile=1024x1024x1x1x1x1\n", "wants larger work-groups than the device has"},
    };
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = place_of(device);
        tern_cl_tuning tuning;
        char many[1000] = "route own", long_line[9000];
        if (!place)
            continue;
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            assert_int_equal(read_file(place, files[i].text, &tuning), TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, files[i].words);
            assert_null(tuning.routes);
        }
        for (int i = 0; i < 70; i++)
            strcat(many, " m=1");
        assert_int_equal(read_file(place, many, &tuning), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, ":1: more than 63 words");
        memset(long_line, 'x', sizeof long_line - 1);
        long_line[sizeof long_line - 1] = '\0';
        assert_int_equal(read_file(place, long_line, &tuning), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, ":1: a line is longer than");
        set_variable("TERN_OPENCL_TUNING", "/nowhere/at/all");
        assert_int_equal(tern_cl_tuning_read(place, &tuning), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "/nowhere/at/all cannot be opened: No such file");
        set_variable("TERN_OPENCL_TUNING", "/tmp");
        assert_int_equal(tern_cl_tuning_read(place, &tuning), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "/tmp cannot be opened: it is not a regular file");
        set_variable("TERN_OPENCL_TUNING", "off");
        assert_ok(tern_cl_tuning_read(place, &tuning));
        set_variable("TERN_OPENCL_TUNING", NULL);
        if (!tern_cl_clblast_is_there())
            continue;
        assert_int_equal(read_file(place, "\nkernel Xgemm 32 KWG=16\n", &tuning),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, ":2: CLBlast wants all parameters of Xgemm");
        assert_int_equal(read_file(place, "kernel Xgeem 32 KWG=16\n", &tuning), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, ":1: CLBlast refuses the kernel Xgeem");
    }
}

/* x (rows, k) times w^T, w (columns, k) dense or a transposed look, plus bias: against the cpu. */
static void vectors_go_through_gemv(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, columns, k;
        bool turned;
    } cases[] = {{1, 37, 50, false}, {1, 37, 50, true}, {41, 1, 50, false}, {37, 1, 1, false}};
    FOR_EACH_DEVICE(device)
    {
        if (!place_of(device) || !tern_cl_clblast_is_there())
            continue;
        set_variable("TERN_OPENCL_GEMM", "clblast");
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            TERN_SCOPE {
                tern_tensor *result[2];
                int64_t n = cases[i].columns, k = cases[i].k;
                for (int there = 0; there < 2; there++) {
                    const char *on = there ? device : "cpu";
                    tern_tensor *x =
                        test_uniform(on, TERN_F32, TERN_SHAPE(cases[i].rows, k), -1, 1, 1);
                    tern_tensor *w = test_uniform(on, TERN_F32, TERN_SHAPE(n, k), -1, 1, 2);
                    if (cases[i].turned)
                        w = tern_transpose(tern_contiguous(tern_transpose(w, 0, 1)), 0, 1);
                    result[there] =
                        tern_linear(x, w, test_uniform(on, TERN_F32, TERN_SHAPE(n), -1, 1, 3));
                }
                assert_close(result[1], result[0], .abs = 1e-5, .rel = 1e-5);
            }
        set_variable("TERN_OPENCL_GEMM", NULL);
    }
}

static void batches_go_through_the_batched_product(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        if (!place_of(device) || !tern_cl_clblast_is_there())
            continue;
        tern_tensor *result[2];
        for (int there = 0; there < 2; there++) {
            const char *on = there ? device : "cpu";
            tern_tensor *x = test_uniform(on, TERN_F32, TERN_SHAPE(3, 20, 50), -1, 1, 1);
            tern_tensor *y = test_uniform(on, TERN_F32, TERN_SHAPE(3, 37, 50), -1, 1, 2);
            set_variable("TERN_OPENCL_GEMM", "clblast");
            result[there] = tern_bmm(x, tern_transpose(y, 1, 2));
            set_variable("TERN_OPENCL_GEMM", NULL);
        }
        assert_close(result[1], result[0], .abs = 1e-5, .rel = 1e-5);
    }
}

/* CLBlast adds halves in halves: they go there as float32. */
static void halves_go_through_float32(void **state)
{
    static const struct {
        tern_dtype dtype;
        double tolerance;
    } rows[] = {{TERN_F16, 4e-3}, {TERN_BF16, 3e-2}};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_place *place = place_of(device);
            if (!place || !tern_cl_clblast_is_there())
                continue;
            tern_dtype dtype = rows[i].dtype;
            tern_tensor *result[2][2];
            for (int there = 0; there < 2; there++) {
                const char *on = there ? device : "cpu";
                tern_tensor *x = test_uniform(on, dtype, TERN_SHAPE(3, 20, 50), -1, 1, 1);
                tern_tensor *y = test_uniform(on, dtype, TERN_SHAPE(3, 37, 50), -1, 1, 2);
                tern_tensor *sum = test_uniform(on, dtype, TERN_SHAPE(3, 20, 37), -1, 1, 3);
                tern_tensor *bias = test_uniform(on, dtype, TERN_SHAPE(37), -1, 1, 4);
                set_variable("TERN_OPENCL_GEMM", "clblast");
                result[there][0] = tern_baddbmm(sum, x, tern_transpose(y, 1, 2), 0.5, 2);
                result[there][1] = tern_baddbmm(bias, x, tern_transpose(y, 1, 2), 1, 1);
                set_variable("TERN_OPENCL_GEMM", NULL);
            }
            tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
            assert_true(s && s->wide[0].bytes >= 3 * 20 * 50 * sizeof(float));
            for (int k = 0; k < 2; k++)
                assert_close(result[1][k], result[0][k], .abs = rows[i].tolerance,
                             .rel = rows[i].tolerance);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(routes_go_by_size),
    TEST(sections_are_for_a_device_its_driver_and_a_tern),
    TEST(families_have_tiles_that_fit_the_least_of_them),
    TEST(parameters_reach_clblast),
    TEST(a_bad_file_is_refused_with_its_line),
    TEST(vectors_go_through_gemv),
    TEST(batches_go_through_the_batched_product),
    TEST(halves_go_through_float32),
};
TEST_MAIN(tests)

/* test_convolution_tiles.c -- convolutions of random shapes by tiles that gather from the image, against the cpu. */
#include "device/opencl/gemm.h"
#include "heard.h"
#include "support.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A shape: conv1d to conv3d, or the transposed ones. */
typedef struct conv_case {
    int ndim;
    bool transposed;
    tern_shape x, w;
    tern_conv_function_options o;
    tern_dtype dtype;
    bool bias;
} conv_case;

static uint64_t random_state;
static int64_t between(int64_t least, int64_t most)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((random_state >> 33) % (uint64_t)(most - least + 1));
}

/* Channels about a tile's edges; strides, paddings, dilations and sizes of each dim by themselves. */
static conv_case random_case(uint64_t seed)
{
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
    between(0, 1);
    conv_case c = {.ndim = (int)between(1, 3)};
    const int64_t groups = between(0, 3) ? 1 : between(2, 3);
    const int64_t of_group = between(8, 37), each = between(1, 2) * between(1, 12);
    int64_t all = c.ndim == 3 ? 7 : c.ndim == 2 ? 15 : 60;
    c.transposed = between(0, 3) == 0;
    c.dtype = between(0, 3) ? TERN_F32 : between(0, 1) ? TERN_F16 : TERN_BF16;
    c.bias = between(0, 1) == 1;
    c.x = (tern_shape){2 + c.ndim, {between(1, 4), each * groups}};
    c.w = (tern_shape){2 + c.ndim, {of_group * groups, each}};
    if (c.transposed) {
        c.x.dims[1] = of_group * groups;
        c.w.dims[0] = of_group * groups;
    }
    c.o.groups = groups;
    c.o.stride.ndim = c.o.padding.ndim = c.o.dilation.ndim = c.ndim;
    for (int d = 0; d < c.ndim; d++) {
        int64_t window = between(1, 4), dilation = between(0, 2) ? 1 : between(2, 3);
        int64_t span = (window - 1) * dilation + 1;
        c.w.dims[2 + d] = window;
        c.o.dilation.dims[d] = dilation;
        c.o.stride.dims[d] = between(0, 1) ? 1 : between(2, 4);
        c.o.padding.dims[d] = between(0, span / 2);
        c.x.dims[2 + d] = between(span, span + all);
    }
    return c;
}

static tern_tensor *convolve(const conv_case *c, tern_tensor *const *in)
{
    static tern_tensor *(*const plain[])(tern_tensor *, tern_tensor *, tern_tensor *,
                                         const tern_conv_function_options *) = {
        tern_conv1d, tern_conv2d, tern_conv3d};
    static tern_tensor *(*const back[])(tern_tensor *, tern_tensor *, tern_tensor *,
                                        const tern_conv_transpose_function_options *) = {
        tern_conv_transpose1d, tern_conv_transpose2d, tern_conv_transpose3d};
    const tern_conv_transpose_function_options t = {.stride = c->o.stride,
                                                    .padding = c->o.padding,
                                                    .dilation = c->o.dilation,
                                                    .groups = c->o.groups};
    tern_tensor *bias = c->bias ? in[2] : NULL;
    return c->transposed ? back[c->ndim - 1](in[0], in[1], bias, &t)
                         : plain[c->ndim - 1](in[0], in[1], bias, &c->o);
}

/* The result and its gradients, on a device or (NULL) the cpu in float64. */
static void compute(const conv_case *c, const char *device, tern_tensor *result[4])
{
    tern_dtype dtype = device ? c->dtype : TERN_F64;
    const char *place = device ? device : "cpu";
    int64_t channels = c->transposed ? c->w.dims[1] * c->o.groups : c->w.dims[0];
    const tern_shape shapes[] = {c->x, c->w, TERN_SHAPE(channels)};
    tern_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        tern_tensor *numbers =
            test_uniform("cpu", TERN_F32, shapes[i], -1, 1, random_state + (uint64_t)i);
        in[i] = tern_to_dtype(tern_to_dtype(numbers, c->dtype), dtype);
        in[i] = tern_requires_grad_(tern_detach(tern_to(in[i], place)), true);
    }
    result[0] = convolve(c, in);
    tern_tensor *dy = test_uniform("cpu", TERN_F32, tern_shape_of(result[0]), -1, 1, 77);
    dy = tern_to(tern_to_dtype(tern_to_dtype(dy, c->dtype), dtype), place);
    assert_ok(tern_backward_with(result[0], &(tern_backward_options){.gradient = dy}));
    for (int i = 0; i < 3; i++)
        result[1 + i] = i < 2 || c->bias ? tern_grad(in[i]) : NULL;
}

static void check_case(const conv_case *c, const char *device, uint64_t seed)
{
    static const char *const parts[] = {"y", "dx", "dw", "db"};
    const double tolerance = c->dtype == TERN_F32 ? 1e-4 : c->dtype == TERN_F16 ? 2e-3 : 1.6e-2;
    tern_tensor *expected[4], *got[4];
    compute(c, NULL, expected);
    compute(c, device, got);
    for (int i = 0; i < 4 && got[i]; i++) {
        char what[64];
        tern_tensor *wanted = tern_to_dtype(expected[i], c->dtype);
        double most = tern_item(tern_max(tern_abs(expected[i])));
        snprintf(what, sizeof what, "%s of seed %llu", parts[i], (unsigned long long)seed);
        test_close(got[i], wanted, (test_tolerance){.abs = tolerance * most, .rel = tolerance},
                   what, __FILE__, __LINE__);
    }
}

static bool has_tiles(const char *device)
{
    return strncmp(device, "opencl", 6) == 0;
}

/* As chosen, and by each of two tiles. */
static void random_shapes_agree_with_the_cpu(void **state)
{
    (void)state;
    static const char *const ways[] = {NULL, "tiles:8x4x4x4x8x4", "tiles:4x8x2x1x8x1"};
    FOR_EACH_DEVICE(device)
    for (uint64_t seed = 1; has_tiles(device) && seed <= (test_thorough(device) ? 120 : 40); seed++)
        TERN_SCOPE {
            const char *way = ways[seed % 3];
            if (way)
                setenv("TERN_OPENCL_GEMM", way, 1);
            const conv_case c = random_case(seed);
            check_case(&c, device, seed);
            unsetenv("TERN_OPENCL_GEMM");
        }
}

/* Pieces of work of a convolution and both gradients, as a graph records them, and whether they are the cpu's. */
static int64_t work_of(const char *device)
{
    const conv_case c = {.ndim = 2,
                         .x = {4, {2, 9, 11, 10}},
                         .w = {4, {16, 9, 3, 3}},
                         .o = {.groups = 1},
                         .dtype = TERN_F32};
    int64_t n = 0;
    check_case(&c, device, 0);
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, c.x, -1, 1, 1);
        tern_tensor *w = test_uniform(device, TERN_F32, c.w, -1, 1, 2);
        tern_graph *graph = tern_graph_new(device);
        TERN_CAPTURE (graph)
            tern_conv2d(x, w, NULL, NULL);
        n = tern_graph_size(graph);
        tern_graph_free(graph);
    }
    return n;
}

/* No columns are made: a convolution is one piece of work. They are where a device was tuned to other products, or does not
 * build the kernel. */
static void columns_are_made_where_tiles_are_not_for_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_place *place = has_tiles(device) ? tern_place_find(device, "test") : NULL;
        tern_cl_state *s = place ? tern_cl_state_of(place) : NULL;
        if (!s || s->cpu_form)
            continue;
        assert_int_equal(work_of(device), 1);
        tern_cl_route route = {.most = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                               .way = TERN_CL_OWN};
        s->tuning = (struct tern_cl_tuning){.routes = &route, .n_routes = 1};
        assert_true(work_of(device) > 1);
        route.way = TERN_CL_TILES;
        assert_null(tern_cl_tile_read("4x8x2x2x8x1", &route.tile));
        assert_int_equal(work_of(device), 1);
        const char *options = s->options;
        s->options = "-cl-std=CL1.2 -w -Dconv_tiles_f32=1";
        assert_null(tern_cl_tile_read("4x8x1x2x8x1", &route.tile));
        heard h = {0};
        tern_on_warning(hear, &h);
        int64_t broken = work_of(device);
        tern_on_warning(NULL, NULL);
        assert_true(h.count > 0 && strncmp(h.text, "tern_conv2d: ", 13) == 0);
        s->options = options;
        s->tuning = (struct tern_cl_tuning){0};
        assert_true(broken > 1);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(columns_are_made_where_tiles_are_not_for_it),
    TEST(random_shapes_agree_with_the_cpu),
};
TEST_MAIN(tests)

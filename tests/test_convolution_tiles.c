/* test_convolution_tiles.c -- convolutions of random shapes by tiles or vectors that gather from the image, against the cpu. */
#include "device/opencl/gemm.h"
#include "device/device.h"
#include "tensor/fields.h"
#include "heard.h"
#include "environment.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Where a case has an infinite number: in what goes in, or in what comes back. */
typedef enum infinite { NOWHERE, IN_X, IN_DY } infinite;

/* A shape: conv1d to conv3d, or the transposed ones. */
typedef struct conv_case {
    int ndim;
    bool transposed;
    tern_shape x, w;
    tern_conv_function_options o;
    tern_dtype dtype;
    bool bias;
    infinite infinite;
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

/* Numbers in the middle of a block whose others are NaN: `before` of them in front, so that they begin at no alignment. */
static tern_tensor *among_nan(tern_tensor *numbers, const char *place, int64_t before)
{
    const tern_dtype dtype = tern_dtype_of(numbers);
    const int64_t n = tern_numel(numbers);
    tern_tensor *memory =
        tern_full(TERN_SHAPE(n + before + 9), tern_scalar_real(NAN), dtype, place);
    tern_tensor *flat = test_view(memory, TERN_SHAPE(n), TERN_SHAPE(1), before);
    if (n)
        assert_non_null(tern_copy_(flat, tern_reshape(tern_to(numbers, place), TERN_SHAPE(n))));
    return tern_detach(tern_view(flat, tern_shape_of(numbers)));
}

/* All of one sign where one is infinite, so that a sum that sees it is. */
static tern_tensor *numbers_of(const conv_case *c, tern_shape shape, uint64_t seed, bool odd)
{
    double low = c->infinite ? 0.5 : -1;
    tern_tensor *x = test_uniform("cpu", TERN_F32, shape, low, 1, seed);
    if (odd && tern_numel(x)) {
        tern_tensor *flat = tern_view(x, TERN_SHAPE(-1));
        tern_fill_(tern_select(flat, 0, (int64_t)(seed % (uint64_t)tern_numel(x))),
                   tern_scalar_real(INFINITY));
    }
    return tern_to_dtype(x, c->dtype);
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
            numbers_of(c, shapes[i], random_state + (uint64_t)i, i == 0 && c->infinite == IN_X);
        in[i] = among_nan(tern_to_dtype(numbers, dtype), place, 1 + 2 * i);
        in[i] = tern_requires_grad_(in[i], true);
    }
    result[0] = convolve(c, in);
    tern_tensor *dy = numbers_of(c, tern_shape_of(result[0]), 77, c->infinite == IN_DY);
    dy = among_nan(tern_to_dtype(dy, dtype), place, 3);
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
        double most = tern_numel(wanted) ? tern_item(tern_max(tern_abs(expected[i]))) : 0;
        snprintf(what, sizeof what, "%s of seed %llu", parts[i], (unsigned long long)seed);
        test_close(got[i], wanted, (test_tolerance){.abs = tolerance * most, .rel = tolerance},
                   what, __FILE__, __LINE__);
    }
}

/* What is far: nothing, the stride of rows and slices, or taps from each other, of few elements all the same. */
typedef enum distance { NEAR, FAR_STRIDES, FAR_TAPS } distance;

/* One dim of a case with what is rare: paddings beyond the image, strides beyond the window. */
static void put_edge(conv_case *c, int d, distance far)
{
    const int64_t window = between(1, 3) * between(1, 2), out = between(1, between(0, 1) ? 6 : 20);
    int64_t dilation = between(1, 4), stride = between(0, 2) ? between(1, 9) : 1;
    int64_t in = between(1, between(1, 24)), padding;
    if (far == FAR_STRIDES && d + 1 < c->ndim)
        stride = INT64_C(1) << between(8, 24);
    if (far == FAR_TAPS)
        dilation = (INT64_C(1) << between(c->ndim == 3 ? 20 : 10, 24)) - between(0, 1);
    padding = (window - 1) * dilation + 1 + (out - 1) * stride - in;
    padding = padding > 0 ? (padding + 1) / 2 : 0;
    c->w.dims[2 + d] = window;
    c->x.dims[2 + d] = in;
    c->o.stride.dims[d] = stride;
    c->o.padding.dims[d] = padding;
    c->o.dilation.dims[d] = dilation;
}

/* Images of one number, few channels and groups of few, no images, and those dims. */
static conv_case edge_case(uint64_t seed, distance far)
{
    conv_case c = random_case(seed);
    c.transposed = false;
    const int64_t groups = between(0, 3) ? 1 : between(2, 4);
    const int64_t of_group = between(1, between(0, 1) ? 9 : 70), each = between(1, between(1, 18));
    c.x.dims[0] = between(0, 12) ? between(1, 3) : 0;
    c.x.dims[1] = each * groups;
    c.w.dims[0] = of_group * groups;
    c.w.dims[1] = each;
    c.o.groups = groups;
    for (int d = 0; d < c.ndim; d++)
        put_edge(&c, d, far);
    return c;
}

static bool has_tiles(const char *device)
{
    return strncmp(device, "opencl", 6) == 0;
}

/* As chosen, and on GPUs by each of two tiles. */
static void random_shapes_agree_with_the_cpu(void **state)
{
    (void)state;
    static const char *const ways[] = {NULL, "tiles:8x4x4x4x8x4", "tiles:4x8x2x1x8x1"};
    FOR_EACH_DEVICE(device)
    for (uint64_t seed = 1; has_tiles(device) && seed <= (test_thorough(device) ? 120 : 24); seed++)
        TERN_SCOPE {
            const char *way =
                test_gpu_form(device) || test_thorough(device) ? ways[seed % 3] : NULL;
            if (way)
                set_variable("TERN_OPENCL_GEMM", way);
            const conv_case c = random_case(seed);
            check_case(&c, device, seed);
            set_variable("TERN_OPENCL_GEMM", NULL);
        }
}

/* What a processor's work-group has at hand is less than these want, one way or another: channels before and behind, rows
 * and columns of places, taps; and windows that no patch holds. */
static void shapes_that_are_cut_agree_with_the_cpu(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {2, .x = {4, {2, 80, 9, 9}}, .w = {4, {70, 80, 3, 3}}, .o = {.groups = 1}, .bias = true},
        {2, .x = {4, {1, 3, 40, 300}}, .w = {4, {5, 3, 5, 5}}, .o = {.groups = 1}},
        {2, .x = {4, {1, 40, 60, 41}}, .w = {4, {9, 40, 3, 3}},
         .o = {.stride = {2, {2, 3}}, .groups = 1}},
        {2, .x = {4, {1, 66, 6, 25}}, .w = {4, {67, 66, 4, 5}}, .o = {.groups = 1},
         .dtype = TERN_BF16},
        {1, .x = {3, {2, 2, 2500}}, .w = {3, {3, 2, 400}}, .o = {.stride = {1, {5}}, .groups = 1}},
        {1, .x = {3, {2, 2, 900}}, .w = {3, {3, 2, 700}}, .o = {.groups = 1}},
        {3, .x = {5, {2, 12, 5, 8, 9}}, .w = {5, {8, 6, 2, 3, 3}}, .o = {.groups = 2},
         .bias = true},
        {2, .x = {4, {3, 1, 12, 12}}, .w = {4, {6, 1, 5, 5}}, .o = {.groups = 1},
         .dtype = TERN_F16},
        {2, .x = {4, {2, 70, 7, 9}}, .w = {4, {70, 11, 3, 3}}, .o = {.groups = 1},
         .transposed = true},
        {2, .x = {4, {2, 9, 7, 9}}, .w = {4, {8, 9, 1, 1}},
         .o = {.stride = {2, {2, 2}}, .groups = 1}},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; has_tiles(device) && i < sizeof cases / sizeof *cases; i++)
        TERN_SCOPE {
            conv_case c = cases[i];
            c.dtype = c.dtype ? c.dtype : TERN_F32;
            check_case(&c, device, i);
        }
}

static void edges_agree_with_the_cpu(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (uint64_t seed = 1; has_tiles(device) && seed <= (test_thorough(device) ? 600 : 80); seed++)
        TERN_SCOPE {
            const conv_case c = edge_case(seed, seed % 4 < 2    ? NEAR
                                                : seed % 4 == 2 ? FAR_STRIDES
                                                                : FAR_TAPS);
            check_case(&c, device, seed);
        }
}

/* A number that is not finite is in the sums that see it and in no others, however near it lies: not beyond the ends of rows,
 * images or channels. */
static void infinite_numbers_are_where_they_are_seen(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (uint64_t seed = 1; has_tiles(device) && seed <= (test_thorough(device) ? 120 : 24); seed++)
        TERN_SCOPE {
            conv_case c = seed % 2 ? random_case(seed) : edge_case(seed, NEAR);
            tern_tensor *expected[4], *got[4];
            c.infinite = seed % 4 < 2 ? IN_X : IN_DY;
            c.dtype = TERN_F32;
            compute(&c, NULL, expected);
            compute(&c, device, got);
            for (int i = 0; i < 3; i++) /* infinite times what is outside of x is NaN, or nothing */
                if (i != 2 || c.infinite == IN_X)
                    assert_same(tern_isfinite(got[i]), tern_isfinite(expected[i]));
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
    TEST(columns_are_made_where_tiles_are_not_for_it), TEST(random_shapes_agree_with_the_cpu),
    TEST(shapes_that_are_cut_agree_with_the_cpu),      TEST(edges_agree_with_the_cpu),
    TEST(infinite_numbers_are_where_they_are_seen),
};
TEST_MAIN(tests)

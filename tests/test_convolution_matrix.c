/* test_convolution_matrix.c -- convolutions of halves on matrix units through OpenCL, in ordinary
 * arithmetic, against the cpu's in float64; and what kernels on matrix units are tried with. */
#include "device/opencl/gemm.h"
#include "device/device.h"
#include "tensor/fields.h"
#include "environment.h"
#include "heard.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct conv_case {
    const char *tile;
    tern_dtype dtype;
    bool last, transposed, bias;
    int before; /* elements in front of x, in memory */
    tern_shape x, w;
    tern_conv_function_options o;
} conv_case;

#define EACH(a, b)                                                                                 \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            a, b                                                                                   \
        }                                                                                          \
    }
static const conv_case cases[] = {
    {"64x64x32", TERN_F16, .bias = true, .x = {4, {2, 40, 9, 11}}, .w = {4, {34, 20, 3, 2}},
     .o = {.stride = EACH(2, 1), .padding = EACH(1, 1), .dilation = EACH(1, 2), .groups = 2}},
    {"64x64x32", TERN_BF16, .last = true, .bias = true, .x = {4, {2, 64, 8, 7}},
     .w = {4, {48, 32, 3, 3}}, .o = {.stride = EACH(1, 2), .padding = EACH(1, 1), .groups = 2}},
    {"64x64x32", TERN_F16, .last = true, .before = 3, .x = {4, {1, 24, 8, 9}},
     .w = {4, {32, 24, 3, 3}}, .o = {.padding = EACH(1, 0), .groups = 1}},
    {"64x64x32", TERN_BF16, .last = true, .bias = true, .x = {4, {3, 3, 15, 14}},
     .w = {4, {40, 3, 5, 5}}, .o = {.stride = EACH(2, 2), .padding = EACH(2, 2), .groups = 1}},
    {"64x64x32", TERN_F16, .last = true, .x = {4, {2, 72, 7, 7}}, .w = {4, {24, 72, 1, 1}},
     .o = {.groups = 1}},
    {"64x64x16", TERN_F16, .x = {3, {2, 33, 70}}, .w = {3, {18, 33, 5}},
     .o = {.stride = {1, {3}}, .padding = {1, {2}}, .groups = 1}},
    {"64x64x16", TERN_BF16, .last = true, .x = {5, {1, 16, 4, 5, 6}}, .w = {5, {24, 16, 2, 3, 3}},
     .o = {.padding = {3, {1, 1, 1}}, .groups = 1}},
    {"64x64x16", TERN_F16, .transposed = true, .bias = true, .x = {4, {2, 32, 5, 6}},
     .w = {4, {32, 17, 3, 3}}, .o = {.stride = EACH(2, 2), .groups = 1}},
    {"128x64x64", TERN_BF16, .last = true, .transposed = true, .x = {4, {1, 64, 6, 5}},
     .w = {4, {64, 40, 4, 4}}, .o = {.stride = EACH(2, 1), .padding = EACH(1, 1), .groups = 1}},
};
enum { CASES = sizeof cases / sizeof *cases };

static tern_place *place_of(const char *device)
{
    if (strncmp(device, "opencl", 6) == 0)
        return tern_place_find(device, "test");
    test_skipped("convolutions on %s are not OpenCL's", device);
    return NULL;
}

static tern_tensor *convolve(const conv_case *c, tern_tensor *const *in)
{
    static tern_tensor *(*const plain[])(tern_tensor *, tern_tensor *, tern_tensor *,
                                         const tern_conv_function_options *) = {
        tern_conv1d, tern_conv2d, tern_conv3d};
    const tern_conv_transpose_function_options t = {
        .stride = c->o.stride, .padding = c->o.padding, .groups = c->o.groups};
    tern_tensor *bias = c->bias ? in[2] : NULL;
    return c->transposed ? tern_conv_transpose2d(in[0], in[1], bias, &t)
                         : plain[c->x.ndim - 3](in[0], in[1], bias, &c->o);
}

/* A view behind `before` elements of a room that is NaN, in the case's order. */
static tern_tensor *laid(const conv_case *c, tern_tensor *x, const char *place, int before)
{
    tern_shape shape = tern_shape_of(x), order = shape, back = {.ndim = shape.ndim};
    const int last = shape.ndim - 1;
    const bool turns = c->last && shape.ndim > 3;
    for (int d = 0; d <= last; d++) {
        const int from = !turns || d == 0 ? d : d == last ? 1 : d + 1;
        order.dims[d] = shape.dims[from];
        back.dims[from] = d;
    }
    const int64_t n = tern_numel(x);
    tern_tensor *room =
        tern_full(TERN_SHAPE(n + before + 9), tern_scalar_real(NAN), x->dtype, place);
    tern_tensor *flat = test_view(room, TERN_SHAPE(n), TERN_SHAPE(1), before);
    tern_tensor *view = tern_permute(tern_view(flat, order), back);
    assert_non_null(tern_copy_(view, tern_to(x, place)));
    return tern_requires_grad_(tern_detach(view), true);
}

/* The result and its gradients, on a device or (NULL) the cpu in float64. */
static void compute(const conv_case *c, const char *device, tern_tensor *result[4])
{
    const int64_t channels = c->transposed ? c->w.dims[1] * c->o.groups : c->w.dims[0];
    const tern_shape shapes[] = {c->x, c->w, TERN_SHAPE(channels)};
    tern_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        tern_tensor *x = tern_to_dtype(
            test_uniform("cpu", TERN_F32, shapes[i], -1, 1, (uint64_t)i + 3), c->dtype);
        in[i] = device ? laid(c, x, device, i ? 0 : c->before)
                       : tern_requires_grad_(tern_to_dtype(x, TERN_F64), true);
    }
    result[0] = convolve(c, in);
    tern_tensor *dy =
        tern_to_dtype(test_uniform("cpu", TERN_F32, tern_shape_of(result[0]), -1, 1, 7), c->dtype);
    dy = device ? tern_detach(laid(c, dy, device, 0)) : tern_to_dtype(dy, TERN_F64);
    assert_ok(tern_backward_with(result[0], &(tern_backward_options){.gradient = dy}));
    for (int i = 0; i < 3; i++)
        result[1 + i] = i < 2 || c->bias ? tern_grad(in[i]) : NULL;
}

static int kernels_of(tern_place *place, int pass, bool last)
{
    const tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
    int n = 0;
    for (const tern_cl_matrix_kernel *k = s ? s->matrix : NULL; k; k = k->next)
        n += k->kernel && k->file == tern_cl_conv_file && k->pass == pass && k->layout == last;
    return n;
}

static void convolutions_agree_with_float64(void **state)
{
    (void)state;
    static const char *const parts[] = {"y", "dx", "dw", "db"};
    FOR_EACH_DEVICE(device)
    for (size_t w = 0; place_of(device) && w < CASES; w++)
        TERN_SCOPE {
            const conv_case *c = &cases[w];
            const double tolerance = c->dtype == TERN_F16 ? 2e-3 : 1.6e-2;
            tern_tensor *expected[4], *got[4];
            char way[64];
            snprintf(way, sizeof way, "matrix:%s", c->tile);
            compute(c, NULL, expected);
            set_variable("TERN_OPENCL_GEMM", way);
            compute(c, device, got);
            set_variable("TERN_OPENCL_GEMM", NULL);
            for (int i = 0; i < 4 && got[i]; i++) {
                char what[64];
                double most = tern_item(tern_max(tern_abs(expected[i])));
                snprintf(what, sizeof what, "%s of case %zu", parts[i], w);
                test_close(got[i], tern_to_dtype(expected[i], c->dtype),
                           (test_tolerance){.abs = tolerance * most, .rel = tolerance}, what,
                           __FILE__, __LINE__);
            }
            if (c->last && c->x.ndim > 3 && !tern_is_contiguous_format(got[0], c->x.ndim - 3))
                fail_msg("case %zu is not channels last", w);
            for (int pass = 0; pass < 3; pass++)
                if (kernels_of(tern_place_find(device, "test"), pass, c->last) == 0)
                    fail_msg("pass %d of case %zu went another way", pass, w);
        }
}

/* TERN_MATRIX=plain takes the kernels wherever a matrix unit would: not for few channels, nor for
 * float32, nor for one tap of rows, which is a plain product; and off takes none. */
static void what_is_small_goes_another_way(void **state)
{
    (void)state;
    static const struct {
        const char *matrix;
        tern_shape x, w;
        tern_dtype dtype;
        bool taken;
    } rows[] = {{"plain", {4, {1, 16, 9, 9}}, {4, {24, 16, 3, 3}}, TERN_F16, true},
                {"off", {4, {1, 16, 9, 9}}, {4, {24, 16, 3, 3}}, TERN_F16, false},
                {"plain", {4, {1, 16, 9, 9}}, {4, {24, 16, 3, 3}}, TERN_F32, false},
                {"plain", {4, {1, 16, 9, 9}}, {4, {8, 16, 3, 3}}, TERN_F16, false},
                {"plain", {4, {1, 16, 9, 9}}, {4, {24, 16, 1, 1}}, TERN_F16, false}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, rows[i].dtype, rows[i].x, -1, 1, 1);
            tern_tensor *w = test_uniform(device, rows[i].dtype, rows[i].w, -1, 1, 2);
            tern_convolution c = {.dtype = rows[i].dtype, .pass = TERN_CONV_Y};
            set_variable("TERN_MATRIX", "off");
            tern_tensor *expected = tern_conv2d(x, w, NULL, NULL);
            set_variable("TERN_MATRIX", rows[i].matrix);
            tern_place *place = tern_place_find(device, "test");
            tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
            tern_cl_matrix_kernel *were = s ? s->matrix : NULL;
            if (s)
                s->matrix = NULL;
            tern_tensor *y = tern_conv2d(x, w, NULL, NULL);
            set_variable("TERN_MATRIX", NULL);
            assert_int_equal(kernels_of(place, (int)c.pass, false) > 0, rows[i].taken);
            s = tern_cl_state_of(place)->gemm;
            for (tern_cl_matrix_kernel **k = s ? &s->matrix : NULL; k; k = &(*k)->next)
                if (!*k) {
                    *k = were;
                    break;
                }
            double tolerance = rows[i].dtype == TERN_F32 ? 1e-4 : 3e-2;
            assert_close(y, expected, .abs = tolerance, .rel = tolerance);
        }
}

/* What a kernel is tried with comes out where nothing is wrong, and does not where a sum is: the
 * instruction is the one of ordinary arithmetic here. */
static void trials_find_what_is_wrong(void **state)
{
    (void)state;
    static const tern_cl_matrix_kernel kernels[] = {
        {.file = tern_cl_gemm_file, .tile = {.m = 64, .n = 64, .k = 32}},
        {.file = tern_cl_gemm_file, .tile = {.m = 128, .n = 64, .k = 64}, .layout = 1, .odd = 1},
        {.file = tern_cl_gemm_file, .tile = {.m = 64, .n = 64, .k = 16}, .layout = 2, .odd = 2},
        {.file = tern_cl_gemm_file, .tile = {.m = 64, .n = 128, .k = 32}, .layout = 3},
        {.file = tern_cl_conv_file, .tile = {.m = 64, .n = 64, .k = 32}, .layout = 1, .unit = 16},
        {.file = tern_cl_conv_file, .tile = {.m = 64, .n = 64, .k = 32}, .odd = 3, .unit = 4},
        {.file = tern_cl_conv_file,
         .tile = {.m = 64, .n = 64, .k = 32},
         .layout = 1,
         .odd = 1,
         .pass = TERN_CONV_X,
         .unit = 8},
        {.file = tern_cl_conv_file,
         .tile = {.m = 64, .n = 64, .k = 32},
         .odd = 3,
         .pass = TERN_CONV_X,
         .unit = 32},
        {.file = tern_cl_conv_file,
         .tile = {.m = 64, .n = 64, .k = 32},
         .layout = 1,
         .odd = 1,
         .pass = TERN_CONV_WEIGHT,
         .unit = 1},
        {.file = tern_cl_conv_file,
         .tile = {.m = 64, .n = 64, .k = 32},
         .odd = 3,
         .pass = TERN_CONV_WEIGHT,
         .unit = 1},
    };
    /* A driver whose instruction leaves sums as they are. */
    static const char lie[] = "-cl-std=CL1.2 -w -cl-opt-disable "
                              "-Dintel_sub_group_bf16_bf16_matrix_mad_k16(a,b,c)=(c) "
                              "-Dintel_sub_group_block_read8(p)=((uint8)(0))";
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; place_of(device) && i < sizeof kernels / sizeof *kernels; i++)
        for (int lies = 0; lies < 2; lies++)
            TERN_SCOPE {
                tern_place *place = tern_place_find(device, "test");
                tern_cl_gemm_state *s = tern_cl_gemm_state_of(place);
                tern_cl_state *own = tern_cl_state_of(place);
                const char *options = own->options;
                tern_cl_matrix_kernel k = kernels[i], *were = s->matrix;
                bool right = false;
                k.dtype = i % 2 && !lies ? TERN_F16 : TERN_BF16;
                k.way = lies ? TERN_MATRIX_XE8 : TERN_MATRIX_PLAIN;
                k.narrow = true;
                own->options = lies ? lie : options;
                s->matrix = NULL;
                heard h = {0};
                tern_on_warning(hear, &h);
                assert_ok(tern_cl_matrix_find(place, s, &k, &k.kernel));
                own->options = options;
                if (k.kernel && !lies)
                    assert_ok(tern_cl_matrix_try(place, &k, &right));
                else
                    right = k.kernel != NULL;
                tern_on_warning(NULL, NULL);
                if (right == lies || h.count != lies ||
                    (lies && !strstr(h.text, "its result was wrong")))
                    fail_msg("kernel %zu is %s, and was found %s: %s", i, lies ? "wrong" : "right",
                             right ? "right" : "wrong", h.text);
                tern_cl_kernel_free(s->matrix->kernel);
                tern_free(s->matrix);
                s->matrix = were;
            }
}

static const struct CMUnitTest tests[] = {
    TEST(convolutions_agree_with_float64),
    TEST(what_is_small_goes_another_way),
    TEST(trials_find_what_is_wrong),
};
TEST_MAIN(tests)

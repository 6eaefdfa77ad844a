/* test_convolution_matrix.c -- convolutions of halves on matrix units against the cpu's in float64:
 * through OpenCL in ordinary arithmetic, through CUDA, as where there is no cuDNN, on tensor cores
 * too; and what kernels on matrix units are tried with. */
#include "device/cuda/cuda.h"
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
    {"64x64x32", TERN_F16, .last = true, .x = {4, {3, 72, 14, 14}}, .w = {4, {24, 72, 1, 1}},
     .o = {.groups = 1}}, /* dw is a sum of parts */
    {"64x64x16", TERN_F16, .x = {3, {2, 33, 70}}, .w = {3, {18, 33, 5}},
     .o = {.stride = {1, {3}}, .padding = {1, {2}}, .groups = 1}},
    {"64x64x16", TERN_BF16, .last = true, .x = {5, {1, 16, 4, 5, 6}}, .w = {5, {24, 16, 2, 3, 3}},
     .o = {.padding = {3, {1, 1, 1}}, .groups = 1}},
    {"64x64x16", TERN_F16, .transposed = true, .bias = true, .x = {4, {2, 32, 5, 6}},
     .w = {4, {32, 17, 3, 3}}, .o = {.stride = EACH(2, 2), .groups = 1}},
    {"128x64x64", TERN_BF16, .last = true, .transposed = true, .x = {4, {1, 64, 6, 5}},
     .w = {4, {64, 40, 4, 4}}, .o = {.stride = EACH(2, 1), .padding = EACH(1, 1), .groups = 1}},
    {"128x128x64", TERN_BF16, .last = true, .x = {4, {1, 136, 12, 12}}, .w = {4, {136, 136, 1, 2}},
     .o = {.padding = EACH(0, 1), .groups = 1}},
};
enum { CASES = sizeof cases / sizeof *cases };

static bool is_cuda(const char *device)
{
    return strncmp(device, "cuda", 4) == 0;
}

static tern_place *place_of(const char *device)
{
    tern_place *place = strcmp(device, "cpu") != 0 ? tern_place_find(device, "test") : NULL;
    if (place && (!is_cuda(device) || tern_cuda_state_of(place)->compute >= 80))
        return place;
    test_skipped("convolutions on %s are by no matrix unit", device);
    return NULL;
}

static tern_place *opencl_of(const char *device)
{
    if (strncmp(device, "opencl", 6) == 0)
        return place_of(device);
    test_skipped("convolutions on %s are not OpenCL's", device);
    return NULL;
}

static bool is_standin(tern_place *place)
{
    return strstr(tern_place_info(place)->name, "stand-in") != NULL;
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

static tern_matrix_kernels *all_kernels(tern_place *place, const char *device)
{
    if (is_cuda(device))
        return &tern_cuda_state_of(place)->own;
    tern_cl_gemm_state *s = tern_cl_state_of(place)->gemm;
    return s ? &s->matrix : NULL;
}

static int kernels_of(tern_place *place, const char *device, int pass, bool last)
{
    int n = 0;
    const tern_matrix_kernels *all = all_kernels(place, device);
    for (const tern_matrix_kernel *k = all ? all->first : NULL; k; k = k->next)
        n += k->state == TERN_MATRIX_RIGHT && strcmp(k->of.family->kernel, "conv_matrix") == 0 &&
             k->of.numbers[7] == pass && k->of.numbers[4] == last; /* CONV_PASS, CONV_LAST */
    return n;
}

static void forget_kernels(tern_place *place, const char *device)
{
    tern_matrix_kernels *all = all_kernels(place, device);
    if (all)
        tern_matrix_kernels_free(all);
}

/* Whether the case is computed. The stand-in compiles each kernel as C++ and does its instructions
 * one by one, which takes long: there rows, channels last with eights, and a sum of parts are. */
static bool is_computed(tern_place *place, size_t i, const char *way)
{
    return !is_standin(place) || test_thorough(tern_place_text(place)) ||
           (strcmp(way, "auto") == 0 && (i == 0 || i == 1)) ||
           (strcmp(way, "plain") == 0 && i == 4);
}

static void compare(const conv_case *c, const char *device, size_t number)
{
    static const char *const parts[] = {"y", "dx", "dw", "db"};
    const double tolerance = c->dtype == TERN_F16 ? 2e-3 : 1.6e-2;
    tern_tensor *expected[4], *got[4];
    compute(c, NULL, expected);
    compute(c, device, got);
    for (int i = 0; i < 4 && got[i]; i++) {
        char what[64];
        double most = tern_item(tern_max(tern_abs(expected[i])));
        snprintf(what, sizeof what, "%s of case %zu", parts[i], number);
        test_close(got[i], tern_to_dtype(expected[i], c->dtype),
                   (test_tolerance){.abs = tolerance * most, .rel = tolerance}, what, __FILE__,
                   __LINE__);
    }
    if (c->last && c->x.ndim > 3 && !tern_is_contiguous_format(got[0], c->x.ndim - 3))
        fail_msg("case %zu is not channels last", number);
    for (int pass = 0; pass < 3; pass++)
        if (kernels_of(tern_place_find(device, "test"), device, pass, c->last) == 0)
            fail_msg("pass %d of case %zu went another way", pass, number);
}

/* A large tile is chosen where it fills the device. */
static void compare_on_cuda(const conv_case *c, const char *device, size_t number)
{
    static const char *const ways[] = {"plain", "auto"};
    tern_place *place = place_of(device);
    tern_device_info *info = (tern_device_info *)tern_place_info(place);
    const int units = info->compute_units;
    for (int i = 0; i < 2; i++) {
        if (!is_computed(place, number, ways[i])) {
            test_skipped("case %zu on %s (%s)", number, device, ways[i]);
            continue;
        }
        forget_kernels(place, device);
        set_variable("TERN_MATRIX", ways[i]);
        info->compute_units = strncmp(c->tile, "128", 3) == 0 ? 1 : 1000;
        compare(c, device, number);
        info->compute_units = units;
        set_variable("TERN_MATRIX", NULL);
    }
}

static void convolutions_agree_with_float64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t w = 0; place_of(device) && w < CASES; w++)
        TERN_SCOPE {
            char way[64];
            if (is_cuda(device)) {
                compare_on_cuda(&cases[w], device, w);
                continue;
            }
            if (strncmp(cases[w].tile, "128x128", 7) == 0 && !test_thorough(device)) {
                test_skipped("case %zu on %s", w, device);
                continue;
            }
            snprintf(way, sizeof way, "matrix:%s", cases[w].tile);
            set_variable("TERN_OPENCL_GEMM", way);
            compare(&cases[w], device, w);
            set_variable("TERN_OPENCL_GEMM", NULL);
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
            forget_kernels(place, device);
            tern_tensor *y = tern_conv2d(x, w, NULL, NULL);
            set_variable("TERN_MATRIX", NULL);
            assert_int_equal(kernels_of(place, device, (int)c.pass, false) > 0, rows[i].taken);
            double tolerance = rows[i].dtype == TERN_F32 ? 1e-4 : 3e-2;
            assert_close(y, expected, .abs = tolerance, .rel = tolerance);
        }
}

/* What a kernel is tried with comes out where nothing is wrong, and does not where a sum is: the
 * instruction is the one of ordinary arithmetic here. */
static void trials_find_what_is_wrong(void **state)
{
    (void)state;
    static const tern_gemm_variant products[] = {
        {.rows = 64, .columns = 64, .depth = 32},
        {.rows = 128, .columns = 64, .depth = 64, .layout = 1, .odd = 1},
        {.rows = 64, .columns = 64, .depth = 16, .layout = 2, .odd = 2},
        {.rows = 64, .columns = 128, .depth = 32, .layout = 3},
    };
    static const tern_conv_variant convolutions[] = {
        {.channels_last = true, .unit = 16},
        {.odd = 3, .unit = 4},
        {.channels_last = true, .odd = 1, .pass = TERN_CONV_X, .unit = 8},
        {.odd = 3, .pass = TERN_CONV_X, .unit = 32},
        {.channels_last = true, .odd = 1, .pass = TERN_CONV_WEIGHT, .unit = 1},
        {.odd = 3, .pass = TERN_CONV_WEIGHT, .unit = 1},
    };
    enum { PRODUCTS = sizeof products / sizeof *products };
    enum { KERNELS = PRODUCTS + sizeof convolutions / sizeof *convolutions };
    /* A driver whose instruction leaves sums as they are. */
    static const char lie[] = "-cl-std=CL1.2 -w -cl-opt-disable "
                              "-Dintel_sub_group_bf16_bf16_matrix_mad_k16(a,b,c)=(c) "
                              "-Dintel_sub_group_block_read8(p)=((uint8)(0))";
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; opencl_of(device) && i < KERNELS; i++)
        for (int lies = 0; lies < 2; lies++)
            TERN_SCOPE {
                tern_place *place = tern_place_find(device, "test");
                tern_cl_gemm_state *s = tern_cl_gemm_state_of(place);
                tern_cl_state *own = tern_cl_state_of(place);
                const char *options = own->options;
                tern_matrix_kernel *were = s->matrix.first;
                tern_gemm_variant product = products[i % PRODUCTS];
                tern_conv_variant v = convolutions[i < PRODUCTS ? 0 : i - PRODUCTS];
                void *found[2];
                bool right = false, usable;
                product.dtype = v.dtype = i % 2 && !lies ? TERN_F16 : TERN_BF16;
                product.way = v.way = lies ? TERN_MATRIX_XE8 : TERN_MATRIX_PLAIN;
                product.narrow = true;
                v.rows = v.columns = 64, v.depth = 32;
                own->options = lies ? lie : options;
                s->matrix.first = NULL;
                heard h = {0};
                tern_on_warning(hear, &h);
                if (i < PRODUCTS)
                    assert_ok(tern_gemm_find(place, &tern_cl_gemm_backend, &product, found));
                else
                    assert_ok(tern_conv_matrix_find(place, tern_cl_matrix_prepare, &v, 0, found,
                                                    &usable));
                own->options = options;
                right = found[0] != NULL;
                if (right && !lies)
                    assert_ok(i < PRODUCTS ? tern_gemm_try(place, &tern_cl_gemm_backend, found[0],
                                                           &product, &right)
                                           : tern_conv_matrix_try(place, found[0], &v, &right));
                tern_on_warning(NULL, NULL);
                if (right == lies || h.count != lies || (lies && !strstr(h.text, "came out wrong")))
                    fail_msg("kernel %zu is %s, and was found %s: %s", i, lies ? "wrong" : "right",
                             right ? "right" : "wrong", h.text);
                tern_matrix_kernels_free(&s->matrix);
                s->matrix.first = were;
            }
}

/* ---- CUDA ---------------------------------------------------------------------------------- */

/* A kernel that a recorded convolution wants is tried beside the recording, and its sums of parts
 * are in the graph's memory. */
static void a_recorded_convolution_is_tried_beside_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_place *place = is_cuda(device) ? place_of(device) : NULL;
        if (!place)
            continue;
        tern_tensor *x = test_uniform(device, TERN_F16, TERN_SHAPE(3, 24, 14, 14), -1, 1, 1);
        tern_tensor *w = test_uniform(device, TERN_F16, TERN_SHAPE(24, 24, 3, 1), -1, 1, 2);
        tern_tensor *y = NULL;
        tern_graph *graph = tern_graph_new(device);
        forget_kernels(place, device);
        TERN_CAPTURE (graph)
            y = tern_conv2d(x, w, NULL, NULL);
        for (int i = 0; i < 2; i++)
            assert_ok(tern_graph_replay(graph));
        assert_int_equal(kernels_of(place, device, TERN_CONV_Y, false), 1);
        assert_same(y, tern_conv2d(x, w, NULL, NULL));
        tern_graph_free(graph);
    }
}

static void hear_of_units(const char *kind, const char *text, void *user)
{
    if (strstr(text, "matrix unit"))
        hear(kind, text, user);
}

static void check_a_liar(const char *device, bool lies)
{
    heard h = {0};
    tern_place *place = place_of(device);
    const tern_dtype dtype = lies ? TERN_BF16 : TERN_F16; /* none of F16 is in a cache, of no run */
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(1, 24, 9, 9), -1, 1, 1);
    tern_tensor *w = test_uniform(device, dtype, TERN_SHAPE(24, 24, 3, 3), -1, 1, 2);
    set_variable("TERN_MATRIX", "off");
    tern_tensor *expected = tern_conv2d(x, w, NULL, NULL);
    set_variable("TERN_MATRIX", NULL);
    forget_kernels(place, device);
    tern_on_warning(hear_of_units, &h);
    for (int again = 0; again < 2; again++)
        assert_close(tern_conv2d(x, w, NULL, NULL), expected, .abs = 3e-2, .rel = 3e-2);
    tern_on_warning(NULL, NULL);
    assert_int_equal(kernels_of(place, device, TERN_CONV_Y, false), 0);
    if (!strstr(h.text, lies ? "came out wrong" : "does not build"))
        fail_msg("%d warnings: %s", h.count, h.text);
}

static void a_device_that_promises_what_it_has_not_is_found_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int lies = 0; lies < 2; lies++)
        TERN_SCOPE {
            tern_place *place = is_cuda(device) ? place_of(device) : NULL;
            if (!place || !is_standin(place)) {
                test_skipped("%s tells the truth", device);
                continue;
            }
            const int minor = tern_cuda.nvrtc_minor;
            tern_cuda.nvrtc_minor = 99; /* nothing of it is in a cache */
            setenv("TERN_STANDIN_MATRIX", lies ? "wrong" : "refused", 1);
            check_a_liar(device, lies);
            unsetenv("TERN_STANDIN_MATRIX");
            tern_cuda.nvrtc_minor = minor;
            forget_kernels(place, device);
        }
}

/* Memory of the application's begins at no multiple of what a kernel loads at once. */
static void memory_may_begin_anywhere(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const tern_shape shape = TERN_SHAPE(1, 9, 8, 16);
        const tern_shape rows = TERN_SHAPE(0, 3, 1, 2);
        const int64_t n = 9 * 8 * 16;
        tern_memory_handle memory;
        tern_place *place = is_cuda(device) ? place_of(device) : NULL;
        if (!place) {
            test_skipped("memory of %s is no address", device);
            continue;
        }
        tern_tensor *room = test_uniform(device, TERN_F16, TERN_SHAPE(n + 1), -1, 1, 1);
        tern_tensor *w =
            tern_permute(test_uniform(device, TERN_F16, TERN_SHAPE(16, 3, 3, 16), -1, 1, 2), rows);
        assert_ok(tern_get_memory_handle(room, &memory));
        tern_tensor *x = tern_from_blob((char *)memory.memory + memory.offset + 2, shape, TERN_F16,
                                        &(tern_from_blob_options){.device = device});
        tern_tensor *there =
            tern_view(tern_narrow(tern_to_dtype(tern_to(room, "cpu"), TERN_F64), 0, 1, n), shape);
        forget_kernels(place, device);
        tern_tensor *y = tern_conv2d(tern_permute(x, rows), w, NULL, NULL);
        assert_int_equal(kernels_of(place, device, TERN_CONV_Y, true), 1);
        assert_close(tern_to_dtype(tern_to(y, "cpu"), TERN_F64),
                     tern_conv2d(tern_permute(there, rows),
                                 tern_to_dtype(tern_to(w, "cpu"), TERN_F64), NULL, NULL),
                     .abs = 2e-2, .rel = 2e-3);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(convolutions_agree_with_float64),
        TEST(what_is_small_goes_another_way),
        TEST(trials_find_what_is_wrong),
        TEST(a_recorded_convolution_is_tried_beside_it),
        TEST(a_device_that_promises_what_it_has_not_is_found_out),
        TEST(memory_may_begin_anywhere),
    };
    FOR_EACH_DEVICE(device)
    if (is_cuda(device) && tern_place_find(device, "test"))
        tern_cuda.has_dnn = false;
    return test_main(tests, sizeof tests / sizeof *tests);
}

/* test_channels_last.c -- images whose channels lie next to each other: what operations make of them has the values and gradients
 * of images in rows, and lies as PyTorch's does (golden/channels_last.txt). */
#include "calls.h"
#include "tensor/memory_format.h"
#include <stdio.h>
#include <unistd.h>

enum { RESULTS = 8, LINE = 512 };

/* ---- lines: "<name> <argument>=<value> ... : <strides> ... | <strides> ..." -------------------- */

typedef struct line {
    char name[64], arguments[LINE], results[LINE], gradients[LINE];
} line;

static line lines[256];
static int n_lines;

static void read_lines(void)
{
    char text[LINE];
    FILE *file = fopen(TEST_FOLDER "/golden/channels_last.txt", "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        char *colon = strstr(text, " : "), *bar = strstr(text, " | ");
        if (*text == '#')
            continue;
        assert_true(colon && bar && n_lines < 256);
        line *l = &lines[n_lines++];
        *colon = *bar = '\0';
        assert_int_equal(sscanf(text, "%63s", l->name), 1);
        snprintf(l->arguments, sizeof l->arguments, "%s", text + strcspn(text, " "));
        snprintf(l->results, sizeof l->results, "%s", colon + 3);
        snprintf(l->gradients, sizeof l->gradients, "%s", bar + 3);
    }
    fclose(file);
}

/* Calls of which tern differs: their results or gradients lie by channels here, and in rows in PyTorch; softmax's gradient is a
 * view. */
static const struct {
    const char *name, *argument;
} others[] = {
    {"nn.functional.interpolate", "bicubic"}, {"nn.functional.interpolate", "size=(5,7,6)"},
    {"nn.functional.logsigmoid", ""},         {"nn.functional.softmax", "dim=1"},
    {"nn.functional.log_softmax", "dim=1"},
};

static bool is_other(const line *l)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(l->name, others[i].name) == 0 && strstr(l->arguments, others[i].argument) &&
            !strstr(l->arguments, "trilinear"))
            return true;
    return false;
}

/* Whether x lies so, as far as its dims have more than one element; "-": there is none. What is expanded is a view, and has no
 * elements of its own. */
static bool lies(const tern_tensor *x, const char *strides)
{
    bool so = true, expanded = false;
    for (int d = 0; x && d < tern_dim(x); d++) {
        char *end;
        long long stride = strtoll(strides, &end, 10);
        so = so && (tern_size(x, d) == 1 || tern_stride(x, d) == stride);
        expanded = expanded || (tern_size(x, d) > 1 && tern_stride(x, d) == 0);
        strides = end + (*end == ',');
    }
    return so || expanded;
}

/* ---- a line on a device, by channels or in rows ------------------------------------------------ */

typedef struct run {
    const char *device;
    bool last;
    tern_tensor *leaf[RESULTS], *buffer[RESULTS];
    int n_leaves, n_buffers, n;
    tern_tensor *out[RESULTS], *grad[RESULTS];
} run;

static tern_memory_format format_of(const tern_tensor *x)
{
    return tern_dim(x) == 5   ? TERN_CHANNELS_LAST_3D
           : tern_dim(x) == 4 ? TERN_CHANNELS_LAST
                              : TERN_CONTIGUOUS_FORMAT;
}

static tern_tensor *make(void *user, char kind, tern_shape shape, int64_t number)
{
    run *r = user;
    if (kind == 'i')
        return tern_full(shape, tern_scalar_int(number), TERN_I64, r->device);
    if (kind == 't')
        return tern_ones(shape, TERN_BOOL, r->device);
    uint64_t seed = (uint64_t)(1 + r->n_leaves + r->n_buffers);
    tern_tensor *x = test_uniform(r->device, TERN_F32, shape, 0.5, 1, seed);
    if (kind == 'c' && r->last)
        x = tern_detach(tern_to_memory_format(x, format_of(x)));
    if (kind == 'k')
        return r->buffer[r->n_buffers++] = x;
    return r->leaf[r->n_leaves++] = tern_requires_grad_(x, true);
}

static tern_dtype type_of(const tern_tensor *x)
{
    return tern_dtype_of(x);
}

/* dy lies as the results do, or in rows. */
static void compute(const line *l, run *r, bool dy_in_rows)
{
    char arguments[LINE];
    call c = {.make = make, .user = r};
    strcpy(arguments, l->arguments);
    tern_manual_seed(1);
    read_values(&c, arguments);
    r->n = tern_call_by_name(l->name, c.value, c.n, r->out, RESULTS);
    assert_in_range(r->n, 1, RESULTS);
    tern_tensor *graded[RESULTS], *dy[RESULTS];
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (tern_requires_grad(r->out[i])) {
            dy[n] = test_uniform(r->device, type_of(r->out[i]), tern_shape_of(r->out[i]), -1, 1, 9);
            if (!dy_in_rows && !tern_is_contiguous(r->out[i]))
                dy[n] = tern_to_memory_format(dy[n], format_of(r->out[i]));
            graded[n++] = r->out[i];
        }
    if (n)
        assert_ok(tern_autograd_grad(
            graded, n, r->leaf, r->n_leaves, r->grad,
            &(tern_autograd_grad_options){.gradients = dy, .allow_unused = true}));
}

static bool is_random(const line *l)
{
    return strstr(l->name, "dropout") != NULL;
}

static int misplaced(const line *l, const char *what, tern_tensor *const *x, int n,
                     const char *strides)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        if (!lies(x[i], strides) && !is_other(l)) {
            char got[128] = "";
            for (int d = 0; d < tern_dim(x[i]); d++)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%lld,",
                         (long long)tern_stride(x[i], d));
            print_error("%s%s: strides of %s %d are %s not %s\n", l->name, l->arguments, what, i,
                        got, strides);
        }
        wrong += !lies(x[i], strides);
        strides += strcspn(strides, " ");
        strides += *strides == ' ';
    }
    return wrong;
}

static int compare(const line *l, const char *device, bool dy_in_rows)
{
    run rows = {.device = device}, last = {.device = device, .last = true};
    test_tolerance t = {.abs = 2e-5, .rel = 2e-5};
    compute(l, &rows, true);
    compute(l, &last, dy_in_rows);
    assert_int_equal(rows.n, last.n);
    for (int i = 0; i < rows.n && !is_random(l); i++)
        test_close(last.out[i], rows.out[i], t, l->name, __FILE__, __LINE__);
    for (int i = 0; i < rows.n_leaves && !is_random(l); i++)
        if (last.grad[i])
            test_close(last.grad[i], rows.grad[i], t, l->name, __FILE__, __LINE__);
    for (int i = 0; i < rows.n_buffers; i++)
        test_close(last.buffer[i], rows.buffer[i], t, l->name, __FILE__, __LINE__);
    if (dy_in_rows)
        return 0;
    int wrong = misplaced(l, "result", last.out, last.n, l->results) +
                misplaced(l, "gradient", last.grad, last.n_leaves, l->gradients);
    return is_other(l) ? wrong == 0 : wrong;
}

static void results_lie_as_pytorchs(void **state)
{
    (void)state;
    read_lines();
    FOR_EACH_DEVICE(device)
    {
        bool all = test_thorough(device); /* else those that are not elementwise, mostly */
        int wrong = 0;
        for (int i = 0; i < n_lines; i++)
            for (int dy_in_rows = 0; dy_in_rows < 2; dy_in_rows++)
                TERN_SCOPE
                    if (all || strncmp(lines[i].name, "nn.", 3) == 0 || lines[i].name[0] == 'c')
                        wrong += compare(&lines[i], device, dy_in_rows);
        assert_int_equal(wrong, 0);
    }
}

/* ---- more elements than a group of the kernels takes ------------------------------------------- */

enum { PARTS = 6 }; /* y, and the gradients of x, weight and bias; the running statistics */

static void norm_and_relu(const char *device, tern_dtype dtype, bool training, bool last,
                          tern_tensor *got[PARTS])
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(4, 16, 72, 72), 2, 4, 1);
    tern_tensor *dy = test_uniform(device, dtype, tern_shape_of(x), -1, 1, 2);
    tern_tensor *p[4];
    for (uint64_t i = 0; i < 4; i++)
        p[i] = test_uniform(device, TERN_F32, TERN_SHAPE(16), 0.5, 1, 3 + i);
    x = tern_detach(last ? tern_to_memory_format(x, TERN_CHANNELS_LAST) : x);
    tern_requires_grad_(x, true);
    tern_requires_grad_(p[0], true);
    tern_requires_grad_(p[1], true);
    for (int step = 0; step < 2; step++) { /* the second time relu is known to follow */
        tern_tensor *y = tern_relu(tern_batch_norm(x, p[2], p[3], p[0], p[1], training, 0.1, 1e-5));
        assert_int_equal(tern_is_channels_last(y), last);
        got[0] = y;
        tern_tensor *leaves[] = {x, p[0], p[1]};
        assert_ok(tern_autograd_grad(&y, 1, leaves, 3, got + 1,
                                     &(tern_autograd_grad_options){.gradients = &dy}));
        assert_int_equal(tern_is_channels_last(got[1]), last);
    }
    got[4] = p[2];
    got[5] = p[3];
}

static void batch_norm_of_many_elements(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F32, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_tensor *expected[PARTS], *got[PARTS];
            tern_dtype dtype = types[i / 2];
            double error = dtype == TERN_F32 ? 1e-4 : 0.02;
            norm_and_relu(device, dtype, i % 2, false, expected);
            norm_and_relu(device, dtype, i % 2, true, got);
            for (int k = 0; k < PARTS; k++)
                assert_close(got[k], expected[k], .abs = error, .rel = error);
        }
}

/* ---- gradients of gradients ----------------------------------------------------------------------- */

static tern_tensor *images(tern_tensor *x)
{
    return tern_to_memory_format(x, TERN_CHANNELS_LAST);
}
static tern_tensor *norm(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_batch_norm(images(in[0]), NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
}
static tern_tensor *max_pool(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_max_pool2d(images(in[0]), TERN_SHAPE(2), NULL);
}
static tern_tensor *avg_pool(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_adaptive_avg_pool2d(images(in[0]), TERN_SHAPE(2, 3));
}
static tern_tensor *resampled(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_interpolate(
        images(in[0]),
        &(tern_interpolate_options){.size = TERN_SHAPE(3, 5), .mode = TERN_INTERPOLATE_BILINEAR});
}
static tern_tensor *joined(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *x = images(in[0]), *y = tern_pad(x, TERN_SHAPE(1, 0, 0, 1), NULL);
    return tern_cat((tern_tensor *[]){y, tern_square(y)}, 2, 1);
}
static tern_tensor *grouped(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_pixel_shuffle(tern_group_norm(images(in[0]), 2, NULL, NULL, 1e-5), 2);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    static const test_function functions[] = {norm, max_pool, avg_pool, resampled, joined, grouped};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 4, 4, 4), -1, 1, 1);
            tern_requires_grad_(x, true);
            gradcheck(functions[i], &x, 1, .second = true);
        }
}

/* ---- a network without copies ----------------------------------------------------------------------- */

typedef struct network {
    tern_module *all, *stem, *branch, *head;
} network;

static network network_new(const char *device, bool convolutions)
{
    const tern_conv_options around = {.padding = TERN_SHAPE(1), .no_bias = true};
    network n;
    tern_manual_seed(3);
    tern_set_default_device(device);
#define CONV(C, O)                                                                                 \
    (convolutions ? tern_nn_conv2d(C, O, TERN_SHAPE(3), &around) : tern_nn_identity())
    n.stem = tern_nn_sequential(
        CONV(16, 16), tern_nn_batch_norm2d(16, NULL), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_SHAPE(3), &(tern_max_pool_options){.stride = TERN_SHAPE(2),
                                                                   .padding = TERN_SHAPE(1)}));
    n.branch = tern_nn_sequential(CONV(16, 16), tern_nn_batch_norm2d(16, NULL), tern_nn_relu(),
                                  CONV(16, 16), tern_nn_batch_norm2d(16, NULL));
#undef CONV
    n.head = tern_nn_sequential(tern_nn_adaptive_avg_pool2d(TERN_SHAPE(1, 1)), tern_nn_flatten(),
                                tern_nn_linear(16, 4, NULL));
    n.all = tern_nn_sequential(n.stem, n.branch, n.head);
    tern_set_default_device(NULL);
    return n;
}

static tern_tensor *network_step(const network *n, tern_tensor *x)
{
    tern_tensor *h = tern_nn_forward(n->stem, x);
    h = tern_relu(tern_add(tern_nn_forward(n->branch, h), h));
    tern_tensor *y = tern_nn_forward(n->head, h);
    assert_ok(tern_backward(tern_mse_loss(y, tern_zeros_like(y), NULL)));
    return y;
}

/* Kernels of the trace that a profiler wrote whose names begin so. */
static int kernels_of(const char *path, const char *name)
{
    static char text[1 << 22];
    char key[64];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    int n = 0;
    snprintf(key, sizeof key, "\"cat\":\"kernel\",\"name\":\"%s", name);
    for (const char *at = text; (at = strstr(at, key)); at++)
        n++;
    return n;
}

static void compare_network(const char *device, bool convolutions)
{
    tern_tensor *y[2], *grad[2];
    char path[64];
    snprintf(path, sizeof path, "channels_last_%d.json", (int)getpid());
    for (int last = 0; last < 2; last++) {
        network n = network_new(device, convolutions);
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 16, 14, 14), -1, 1, 5);
        if (last) {
            assert_non_null(tern_nn_to_memory_format(n.all, TERN_CHANNELS_LAST));
            x = tern_detach(tern_to_memory_format(x, TERN_CHANNELS_LAST));
        }
        for (int step = 0; step < 2; step++) {
            tern_nn_zero_grad(n.all);
            TERN_PROFILE(path)
            y[last] = network_step(&n, x);
        }
        assert_true(kernels_of(path, "batch_norm") >= 6);
        if (last)
            assert_int_equal(kernels_of(path, "copy_"), 0);
        tern_tensor *weight = tern_nn_parameter(n.all, convolutions ? "0.0.weight" : "0.1.weight");
        grad[last] = tern_clone(tern_grad(weight));
        assert_int_equal(tern_is_channels_last(tern_grad(weight)), last && convolutions);
        tern_nn_free(n.all);
    }
    remove(path);
    assert_close(y[1], y[0], .abs = 1e-4, .rel = 1e-4);
    assert_close(grad[1], grad[0], .abs = 1e-3, .rel = 1e-3);
}

/* OpenCL's convolutions copy into rows and back, and so do the cpu's without oneDNN. */
static bool convolutions_copy(const char *device)
{
#ifdef TEST_WITH_ONEDNN
    return strncmp(device, "opencl", 6) == 0;
#else
    return strncmp(device, "opencl", 6) == 0 || strncmp(device, "cpu", 3) == 0;
#endif
}

static void a_network_copies_nothing(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int convolutions = 0; convolutions < (convolutions_copy(device) ? 1 : 2); convolutions++)
        TERN_SCOPE
            compare_network(device, convolutions);
}

/* ---- leaves ------------------------------------------------------------------------------------------ */

/* As in PyTorch, whatever came to them: a gradient in rows, by channels, expanded. */
static void gradients_of_leaves_lie_as_they(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            tern_tensor *rows = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5, 3, 4), -1, 1, 1);
            tern_tensor *last = tern_detach(tern_to_memory_format(rows, TERN_CHANNELS_LAST));
            tern_tensor *x = tern_requires_grad_(tern_detach(i % 2 ? last : rows), true);
            tern_tensor *by = i / 2 ? last : rows,
                        *y = i / 2 == 2 ? tern_mul(x, 2) : tern_mul(by, x);
            for (int step = 0; step < 2; step++)
                assert_ok(tern_backward_with(tern_sum(y),
                                             &(tern_backward_options){.retain_graph = true}));
            assert_int_equal(tern_is_channels_last(tern_grad(x)), i % 2);
            assert_int_equal(tern_is_contiguous(tern_grad(x)), !(i % 2));
            assert_close(tern_grad(x),
                         i / 2 == 2 ? tern_full_like(rows, tern_scalar_real(4)) : tern_mul(rows, 2),
                         .abs = 1e-6);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(results_lie_as_pytorchs),         TEST(batch_norm_of_many_elements),
    TEST(gradients_are_the_differences),   TEST(a_network_copies_nothing),
    TEST(gradients_of_leaves_lie_as_they),
};
TEST_MAIN(tests)

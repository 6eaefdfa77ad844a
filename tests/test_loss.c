/* test_loss.c -- cross entropy and squared error: PyTorch's numbers, corners and words. */
#include "support.h"
#include <math.h>
#include <stdio.h>

static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, 1e-12);
}

static tern_tensor *classes(const char *device, tern_shape shape, const int64_t *values)
{
    return tern_from_data(values, shape, TERN_I64, device);
}

static void one_case(test_golden *file, const char *name, const char *input, tern_tensor *target,
                     const tern_cross_entropy_options *options)
{
    tern_tensor *x = test_golden_tensor(file, input, tern_device(target));
    tern_requires_grad_(x, true);
    tern_tensor *loss = tern_cross_entropy(x, target, options);
    golden(file, name, "", loss);
    assert_ok(tern_backward(tern_sum(tern_mul(loss, test_golden_weight(loss)))));
    golden(file, name, ".dx", tern_grad(x));
}

static void cross_entropy_is_pytorch_s(void **state)
{
    (void)state;
    static const char *const reductions[] = {"mean", "sum", "none"};
    test_golden *file = test_golden_open("functional");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 12; i++)
        TERN_SCOPE {
            char name[40];
            int reduction = i / 4, weighted = i / 2 % 2, smooth = i % 2;
            tern_tensor *weight = test_golden_tensor(file, "weight", device);
            tern_cross_entropy_options options = {.weight = weighted ? weight : NULL,
                                                  .ignore_index = TERN_SOME(2),
                                                  .reduction = (tern_reduction)reduction,
                                                  .label_smoothing = smooth ? 0.125 : 0};
            snprintf(name, sizeof name, "classes_%s%d%d", reductions[reduction], weighted, smooth);
            tern_tensor *target = classes(device, TERN_SHAPE(4), (int64_t[]){1, 4, 2, 0});
            one_case(file, name, "logits", target, &options);
            options.ignore_index = (tern_optional_int){0};
            snprintf(name, sizeof name, "probabilities_%s%d%d", reductions[reduction], weighted,
                     smooth);
            one_case(file, name, "logits", test_golden_tensor(file, "probabilities", device),
                     &options);
        }
    FOR_EACH_DEVICE(device)
    {
        const int64_t target[] = {0, 1, 2, 0, 1, 1, 0, 2};
        one_case(file, "images_none", "images", classes(device, TERN_SHAPE(2, 2, 2), target),
                 &(tern_cross_entropy_options){.reduction = TERN_REDUCTION_NONE});
    }
    test_golden_close(file);
}

static void cross_entropy_at_the_corners(void **state)
{
    (void)state;
    static const struct {
        double x[2];
        int64_t target;
        double loss;
    } rows[] = {{{1, -INFINITY}, 1, INFINITY},    {{1, -INFINITY}, 0, 0}, {{1, INFINITY}, 1, NAN},
                {{-INFINITY, -INFINITY}, 1, NAN}, {{10000, 0}, 1, 10000}, {{1, 2}, -100, NAN}};
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE(1, 2), rows[i].x);
            assert_values(
                tern_cross_entropy(x, classes(device, TERN_SHAPE(1), &rows[i].target), NULL),
                rows[i].loss);
        }
        tern_tensor *none = tern_zeros(TERN_SHAPE(0, 3), TERN_F32, device);
        tern_tensor *target = tern_zeros(TERN_SHAPE(0), TERN_I64, device);
        tern_cross_entropy_options sum = {.reduction = TERN_REDUCTION_SUM};
        assert_values(tern_cross_entropy(none, target, NULL), NAN);
        assert_values(tern_cross_entropy(none, target, &sum), 0);
        tern_tensor *flat = tern_zeros(TERN_SHAPE(3), TERN_F32, device);
        tern_tensor *one = tern_zeros(TERN_SHAPE_SCALAR, TERN_I64, device);
        assert_values_close(tern_cross_entropy(flat, one, NULL), 1e-6, log(3));
        assert_int_equal(tern_dim(tern_cross_entropy(flat, one, NULL)), 0);
    }
}

static void a_target_that_is_no_class_is_found(void **state)
{
    (void)state;
    static const int64_t targets[][2] = {{0, 3}, {-1, 0}};
    static const char *const words[] = {"Target 3 is out of bounds", "Target -1 is out of bounds"};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++) {
        tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *loss = tern_cross_entropy(x, classes(device, TERN_SHAPE(2), targets[i]), NULL);
        if (loss) /* devices tell when they are waited for */
            assert_int_not_equal(tern_synchronize(device), TERN_OK);
        assert_error(TERN_ERR_ARGUMENT, words[i]);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const int64_t zeros[10] = {0};
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    tern_tensor *two = classes("cpu", TERN_SHAPE(2), zeros);
    tern_tensor *deep = tern_zeros(TERN_SHAPE(2, 3, 4), TERN_F32, "cpu");
    tern_cross_entropy_options weight = {.weight = tern_ones(TERN_SHAPE(2), TERN_F32, "cpu")};
    tern_cross_entropy_options smooth = {.label_smoothing = 1.5};
    tern_cross_entropy_options ignore = {.ignore_index = TERN_SOME(0)};
    const struct {
        tern_tensor *input, *target;
        const tern_cross_entropy_options *options;
        tern_status status;
        const char *words;
    } cases[] = {
        {x, classes("cpu", TERN_SHAPE(1), zeros), NULL, TERN_ERR_SHAPE,
         "Expected input batch_size (2) to match target batch_size (1)."},
        {x, tern_zeros(TERN_SHAPE(2), TERN_F32, "cpu"), NULL, TERN_ERR_DTYPE,
         "expected scalar type int64 but found float32"},
        {x, two, &weight, TERN_ERR_SHAPE,
         "weight tensor should be defined either for all 3 classes or no classes but got weight "
         "tensor "
         "of shape: [2]"},
        {x, tern_zeros(TERN_SHAPE(2, 4), TERN_F32, "cpu"), NULL, TERN_ERR_SHAPE,
         "0D or 1D target tensor expected, multi-target not supported"},
        {x, two, &smooth, TERN_ERR_ARGUMENT,
         "label_smoothing must be between 0.0 and 1.0. Got: 1.5"},
        {deep, classes("cpu", TERN_SHAPE(2, 5), zeros), NULL, TERN_ERR_SHAPE,
         "Expected target size [2, 4], got [2, 5]"},
        {x, x, &ignore, TERN_ERR_ARGUMENT,
         "ignore_index is not supported for floating point target"},
        {tern_zeros(TERN_SHAPE(2, 3), TERN_I64, "cpu"), two, NULL, TERN_ERR_DTYPE,
         "not implemented for int64"},
        {x, NULL, NULL, TERN_ERR_ARGUMENT, "target is NULL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(tern_cross_entropy(cases[i].input, cases[i].target, cases[i].options));
        assert_error(cases[i].status, cases[i].words);
    }
    assert_null(tern_mse_loss(x, deep, NULL));
    assert_error(TERN_ERR_SHAPE, "must match the size of tensor b");
    assert_null(tern_mse_loss(two, two, NULL));
    assert_error(TERN_ERR_DTYPE, "not implemented for int64");
}

static void squared_error_of_all_forms(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 2, 3, 4);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(2), 0, 4);
        tern_loss_options sum = {.reduction = TERN_REDUCTION_SUM};
        tern_loss_options none = {.reduction = TERN_REDUCTION_NONE};
        assert_values(tern_mse_loss(x, y, &none), 1, 4, 9, 0);
        assert_values(tern_mse_loss(x, y, &sum), 14);
        assert_values(tern_mse_loss(x, y, NULL), 3.5);
        assert_values(tern_mse_loss(x, tern_zeros_like(x), NULL), 7.5);
        assert_values(tern_mse_loss(x, tern_zeros_like(x), &sum), 30);
        tern_tensor *empty = tern_zeros(TERN_SHAPE(0), TERN_F32, device);
        assert_values(tern_mse_loss(empty, empty, NULL), NAN);
        tern_tensor *many = tern_full(TERN_SHAPE(100001), TERN_SCALAR(3.0), TERN_F32, device);
        assert_values(tern_mse_loss(many, tern_ones_like(many), NULL), 4);
    }
}

static tern_tensor *entropy(tern_tensor *const *in, void *user)
{
    const tern_cross_entropy_options *options = user;
    const int64_t target[] = {1, 4, 2};
    return tern_cross_entropy(in[0], classes(tern_device(in[0]), TERN_SHAPE(3), target), options);
}
static tern_tensor *against_each_other(tern_tensor *const *in, void *user)
{
    const tern_cross_entropy_options *options = user;
    return tern_cross_entropy(in[0], tern_softmax(in[1], 1), options);
}
static tern_tensor *squared(tern_tensor *const *in, void *user)
{
    const tern_loss_options *options = user;
    return tern_mse_loss(in[0], in[1], options);
}

/* Loss and gradients of a linear layer and cross_entropy, in chunks of any number of rows. */
static void chunks_of_logits_give_the_loss_of_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 48; i++)
        TERN_SCOPE {
            tern_reduction reduction = (tern_reduction)(i % 3);
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(7, 4), -1, 1, 1);
            tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(9, 4), -1, 1, 2);
            tern_tensor *b = test_uniform(device, TERN_F32, TERN_SHAPE(9), -1, 1, 3);
            tern_tensor *classes =
                i & 4 ? test_uniform(device, TERN_F32, TERN_SHAPE(9), 0, 1, 4) : NULL;
            tern_tensor *t = TENSOR(device, TERN_I64, TERN_SHAPE(7), 1, 8, -100, 0, 3, 3, -100);
            tern_tensor *leaves[] = {x, w, b}, *grads[2][3], *loss[2];
            const int trained = i < 24 ? 3 : 1; /* or the layer is frozen */
            for (int k = 0; k < trained; k++)
                tern_requires_grad_(leaves[k], true);
            loss[0] = tern_cross_entropy(
                tern_linear(x, w, b), t,
                &(tern_cross_entropy_options){
                    .weight = classes, .label_smoothing = i & 8 ? 0.1 : 0, .reduction = reduction});
            loss[1] = tern_linear_cross_entropy(
                x, w, t,
                &(tern_linear_cross_entropy_options){.linear_bias = b,
                                                     .weight = classes,
                                                     .label_smoothing = i & 8 ? 0.1 : 0,
                                                     .reduction = reduction,
                                                     .chunk_size = i % 24 < 12 ? 0 : 3});
            assert_close(loss[1], loss[0], .abs = 1e-6, .rel = 1e-6);
            for (int form = 0; form < 2; form++) {
                assert_ok(tern_backward(tern_sum(loss[form])));
                for (int k = 0; k < trained; k++)
                    grads[form][k] = tern_clone(tern_grad(leaves[k]));
                for (int k = 0; k < trained; k++)
                    assert_ok(tern_set_grad(leaves[k], NULL));
            }
            for (int k = 0; k < trained; k++)
                assert_close(grads[1][k], grads[0][k], .abs = 1e-6, .rel = 1e-5);
        }
}

static tern_tensor *of_frozen_layer(tern_tensor *const *in, void *user)
{
    const char *device = tern_device(in[0]);
    const int64_t target[] = {1, 4, 2};
    tern_tensor *w = test_uniform(device, TERN_F64, TERN_SHAPE(5, 4), -1, 1, 3);
    tern_linear_cross_entropy_options *o = user;
    o->linear_bias = test_uniform(device, TERN_F64, TERN_SHAPE(5), -1, 1, 4);
    return tern_linear_cross_entropy(in[0], w, classes(device, TERN_SHAPE(3), target), o);
}

static tern_status in_a_checkpoint(void *data, tern_tensor *const *in, int n, tern_tensor **out,
                                   int k)
{
    (void)n, (void)k;
    out[0] = of_frozen_layer(in, data);
    return out[0] ? TERN_OK : tern_last_status();
}

/* Its gradient is made with the loss: it can be scaled, asked for twice, differentiated, and computed again. */
static void chunks_before_a_frozen_layer_have_all_derivatives(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_linear_cross_entropy_options o = {
                .chunk_size = 2, .reduction = i % 2 ? TERN_REDUCTION_SUM : TERN_REDUCTION_MEAN};
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(3, 4), -2, 2, 5);
            tern_requires_grad_(x, true);
            gradcheck(of_frozen_layer, &x, 1, .user = &o, .second = true);
            tern_tensor *loss = tern_mul(of_frozen_layer(&x, &o), 3.0), *again = NULL, *twice;
            assert_ok(tern_backward_with(loss, &(tern_backward_options){.retain_graph = true}));
            twice = tern_clone(tern_grad(x));
            assert_ok(tern_backward(loss));
            assert_close(tern_grad(x), tern_mul(twice, 2.0), .abs = 1e-12);
            assert_ok(tern_set_grad(x, NULL));
            assert_ok(tern_checkpoint(in_a_checkpoint, &o, &x, 1, &again, 1, NULL));
            assert_ok(tern_backward(tern_mul(again, 3.0)));
            assert_close(tern_grad(x), twice, .abs = 1e-12);
        }
}

/* Where they have room beside the weight's gradient; a chunk is computed again in backward else, be it that of all rows. */
static void logits_that_have_room_are_computed_once(void **state)
{
    static const struct {
        int64_t rows, width, classes;
        bool once;
    } cases[] = {
        {100, 128, 300, true}, {100, 128, 20, true}, {100, 99, 20, false}, {60, 16, 300, false}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int64_t rows = cases[k].rows, width = cases[k].width, classes = cases[k].classes;
        uint64_t spent[2];
        for (int i = 0; i < 2; i++)
            TERN_SCOPE {
                tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(rows, width), -1, 1, 1);
                tern_tensor *w =
                    test_uniform("cpu", TERN_F32, TERN_SHAPE(classes, width), -1, 1, 2);
                tern_tensor *t = tern_randint(0, classes, TERN_SHAPE(rows), TERN_I64, "cpu");
                tern_requires_grad_(w, true);
                spent[i] = launches("cpu");
                assert_ok(tern_backward(tern_linear_cross_entropy(
                    x, w, t, &(tern_linear_cross_entropy_options){.chunk_size = i ? rows : 0})));
                spent[i] = launches("cpu") - spent[i];
            }
        assert_int_equal(spent[0] < spent[1], cases[k].once);
    }
}

static void chunked_loss_refuses_what_does_not_fit(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 4), TERN_BF16, NULL);
        tern_tensor *w = tern_ones(TERN_SHAPE(5, 4), TERN_BF16, NULL);
        tern_tensor *t = tern_zeros(TERN_SHAPE(3), TERN_I64, NULL);
        tern_linear_cross_entropy_options wide = {.dtype = TERN_F32};
        assert_int_equal(tern_dtype_of(tern_linear_cross_entropy(x, w, t, NULL)), TERN_BF16);
        assert_values_close(tern_linear_cross_entropy(x, w, t, &wide), 1e-6, 1.6094379124341003);
        assert_null(tern_linear_cross_entropy(x, tern_t(w), t, NULL));
        assert_error(TERN_ERR_SHAPE, "input (N, in) and linear_weight (C, in)");
        assert_null(tern_linear_cross_entropy(x, w, tern_narrow(t, 0, 0, 2), NULL));
        assert_error(TERN_ERR_SHAPE, "target (N) of 3 rows");
        assert_null(tern_linear_cross_entropy(x, w, tern_to_dtype(t, TERN_I32), NULL));
        assert_error(TERN_ERR_DTYPE, "expected scalar type int64");
        assert_null(tern_linear_cross_entropy(x, NULL, t, NULL));
        assert_error(TERN_ERR_ARGUMENT, "linear_weight");
    }
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *in[] = {test_uniform(device, TERN_F64, TERN_SHAPE(3, 5), -2, 2, 5),
                             test_uniform(device, TERN_F64, TERN_SHAPE(3, 5), -2, 2, 6)};
        tern_tensor *weight = test_uniform(device, TERN_F64, TERN_SHAPE(5), 0.5, 2, 7);
        for (int i = 0; i < 2; i++)
            tern_requires_grad_(in[i], true);
        for (int i = 0; i < 3; i++) {
            tern_cross_entropy_options options = {.reduction = (tern_reduction)i,
                                                  .weight = i ? weight : NULL,
                                                  .label_smoothing = i == 1 ? 0.25 : 0,
                                                  .ignore_index = TERN_SOME(4)};
            gradcheck(entropy, in, 1, .user = &options, .second = true);
            options.ignore_index.set = false;
            gradcheck(against_each_other, in, 2, .user = &options, .second = true);
            tern_loss_options mse = {.reduction = (tern_reduction)i};
            gradcheck(squared, in, 2, .user = &mse, .second = true);
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(cross_entropy_is_pytorch_s),
    TEST(cross_entropy_at_the_corners),
    TEST(a_target_that_is_no_class_is_found),
    TEST(what_does_not_fit_is_refused),
    TEST(chunks_of_logits_give_the_loss_of_all),
    TEST(chunks_before_a_frozen_layer_have_all_derivatives),
    TEST(logits_that_have_room_are_computed_once),
    TEST(chunked_loss_refuses_what_does_not_fit),
    TEST(squared_error_of_all_forms),
    TEST(gradients_are_the_differences),
};
TEST_MAIN(tests)

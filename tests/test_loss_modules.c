/* test_loss_modules.c -- modules of losses and distances: PyTorch's numbers, corners and words. */
#include "support.h"
#include <math.h>
#include <stdio.h>

/* The file's tensor; numbers as float32 where a device would have to compile more for float64. */
static tern_tensor *tensor(test_golden *file, const char *name, const char *device)
{
    tern_tensor *x = test_golden_tensor(file, name, "cpu");
    if (tern_dtype_of(x) == TERN_F64 && !(test_thorough(device) && test_has(device, TERN_F64)))
        x = tern_to_dtype(x, TERN_F32);
    return tern_to(x, device);
}

static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, tern_dtype_of(x) == TERN_F64 ? 1e-10 : 2e-5);
}

/* y and the gradients of in[] are the file's. */
static void golden_gradients(test_golden *file, const char *name, tern_tensor *y,
                             tern_tensor *const *in, int n)
{
    golden(file, name, "", y);
    assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
    for (int i = 0; i < n; i++) {
        char suffix[] = {'.', 'd', (char)('0' + i), '\0'};
        if (in[i] && tern_dtype_is_floating_point(tern_dtype_of(in[i])))
            golden(file, name, suffix, tern_grad(in[i]));
    }
}

/* ---- modules ----------------------------------------------------------------------------- */

static tern_tensor *city_blocks(tern_tensor *a, tern_tensor *b, void *user)
{
    (void)user;
    return tern_sum_dim(tern_abs(tern_sub(a, b)), TERN_DIMS(-1), false);
}

/* Every module as golden/loss_modules.py makes it. w and pw: its weight and pos_weight. */
/* clang-format off */
#define MODULES(X)                                                                                 \
    X(l1_loss, tern_loss_options, "x y", .reduction = TERN_REDUCTION_NONE)                         \
    X(smooth_l1_loss, tern_smooth_l1_loss_options, "x y", .beta = 0.5, .reduction = TERN_REDUCTION_SUM) \
    X(huber_loss, tern_huber_loss_options, "x y", .delta = 0.75)                                   \
    X(poisson_nll_loss, tern_poisson_nll_loss_options, "p counts", .no_log_input = true, .full = true, .eps = 0.125) \
    X(gaussian_nll_loss, tern_gaussian_nll_loss_options, "x y var", .full = true, .eps = 0.5, .reduction = TERN_REDUCTION_NONE) \
    X(kl_div_loss, tern_kl_div_options, "log_p t", .reduction = TERN_REDUCTION_BATCHMEAN)          \
    X(bce_loss, tern_weighted_loss_options, "p t", .weight = w, .reduction = TERN_REDUCTION_SUM)   \
    X(bce_with_logits_loss, tern_binary_cross_entropy_with_logits_options, "x t", .weight = w, .pos_weight = pw, .reduction = TERN_REDUCTION_NONE) \
    X(nll_loss, tern_nll_loss_options, "log_p classes", .weight = w, .ignore_index = TERN_SOME(2)) \
    X(soft_margin_loss, tern_loss_options, "x signs", .reduction = TERN_REDUCTION_MEAN)            \
    X(margin_ranking_loss, tern_margin_loss_options, "x y signs", .margin = 0.25)                  \
    X(hinge_embedding_loss, tern_margin_loss_options, "x signs", .margin = 0.5, .reduction = TERN_REDUCTION_NONE) \
    X(cosine_embedding_loss, tern_margin_loss_options, "x y sign", .margin = 0.125, .reduction = TERN_REDUCTION_NONE) \
    X(triplet_margin_loss, tern_triplet_margin_loss_options, "x y z", .margin = 0.5, .p = 3, .swap = true) \
    X(multi_margin_loss, tern_multi_margin_loss_options, "x classes", .p = 2, .margin = 0.75, .weight = w) \
    X(multi_label_margin_loss, tern_loss_options, "x several", .reduction = TERN_REDUCTION_NONE)   \
    X(multi_label_soft_margin_loss, tern_weighted_loss_options, "x yes", .weight = w, .reduction = TERN_REDUCTION_NONE) \
    X(cosine_similarity, tern_cosine_similarity_options, "x y", .dim = TERN_SOME(0), .eps = 1.5)   \
    X(pairwise_distance, tern_pairwise_distance_options, "x y", .p = 1, .eps = 0.125, .keepdim = true)
/* clang-format on */

#define MAKE(NAME, OPTIONS, INPUTS, ...)                                                           \
    static tern_module *make_##NAME(tern_tensor *w, tern_tensor *pw)                               \
    {                                                                                              \
        (void)w;                                                                                   \
        (void)pw;                                                                                  \
        return tern_nn_##NAME(&(OPTIONS){__VA_ARGS__});                                            \
    }
MODULES(MAKE)

static tern_module *make_of_logarithms(tern_tensor *w, tern_tensor *pw)
{
    (void)w;
    (void)pw;
    return tern_nn_kl_div_loss(
        &(tern_kl_div_options){.log_target = true, .reduction = TERN_REDUCTION_SUM});
}
static tern_module *make_with_distance(tern_tensor *w, tern_tensor *pw)
{
    (void)w;
    (void)pw;
    return tern_nn_triplet_margin_with_distance_loss(
        city_blocks, NULL,
        &(tern_triplet_margin_loss_options){.margin = 2, .reduction = TERN_REDUCTION_NONE});
}

#define ROW(NAME, OPTIONS, INPUTS, ...) {#NAME, make_##NAME, INPUTS},
static const struct {
    const char *name;
    tern_module *(*make)(tern_tensor *w, tern_tensor *pw);
    const char *inputs;
} modules[] = {
    MODULES(ROW){"kl_div_loss_of_logarithms", make_of_logarithms, "log_p log_q"},
    {"triplet_margin_with_distance_loss", make_with_distance, "x y z"},
};

/* The tensors that the words of names say, as leaves. */
static int leaves(test_golden *file, const char *names, const char *device, tern_tensor **in)
{
    char name[16];
    int n = 0;
    for (int used; sscanf(names, "%15s%n", name, &used) == 1; names += used) {
        in[n] = tensor(file, name, device);
        if (tern_dtype_is_floating_point(tern_dtype_of(in[n])))
            tern_requires_grad_(in[n], true);
        n++;
    }
    return n;
}

static void modules_are_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("loss_modules");
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i += test_thorough(device) ? 1 : 4)
        TERN_SCOPE {
            tern_tensor *in[3], *y = NULL;
            int n = leaves(file, modules[i].inputs, device, in);
            tern_module *m =
                modules[i].make(tensor(file, "weight", device), tensor(file, "pos_weight", device));
            assert_non_null(m);
            assert_ok(tern_nn_call(m, in, n, &y, 1));
            golden_gradients(file, modules[i].name, y, in, n);
            assert_int_equal(tern_nn_call(m, in, n + 1, &y, 1), TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "tensors and gives one, not");
            tern_nn_free(m);
        }
    test_golden_close(file);
}

/* ---- connectionist temporal classification ----------------------------------------------- */

static tern_tensor *ints(const char *device, tern_dtype dtype, int64_t n, const int64_t *values)
{
    return tern_to_dtype(tern_from_data(values, TERN_SHAPE(n), TERN_I64, device), dtype);
}

static void classes_of_times(test_golden *file, const char *device, int reduction, bool zeroed,
                             bool flat)
{
    static const char *const reductions[] = {"mean", "sum", "none"};
    static const int64_t padded[] = {1, 2, 2, 3, 0, 0, 1, 1, 1}, joined[] = {1, 2, 2, 3, 1, 1, 1};
    const int64_t x_lengths[] = {6, 5, zeroed ? 4 : 5}, y_lengths[] = {3, 1, 3};
    tern_ctc_loss_options options = {.zero_infinity = zeroed,
                                     .reduction = (tern_reduction)reduction};
    char name[32];
    snprintf(name, sizeof name, "ctc_loss_%s_%s", zeroed ? "zeroed" : "fits",
             reductions[reduction]);
    tern_tensor *x = tern_requires_grad_(tensor(file, "logits", device), true), *y = NULL;
    tern_tensor *targets =
        flat ? ints(device, TERN_I32, 7, joined) : ints(device, TERN_I64, 9, padded);
    if (!flat)
        targets = tern_view(targets, TERN_SHAPE(3, 3));
    tern_tensor *in[] = {tern_log_softmax(x, 2), targets, ints(device, TERN_I64, 3, x_lengths),
                         ints(device, TERN_I64, 3, y_lengths)};
    tern_module *m = tern_nn_ctc_loss(&options);
    assert_ok(tern_nn_call(m, in, 4, &y, 1));
    golden_gradients(file, name, y, &x, 1);
    tern_nn_free(m);
}

static void temporal_classification_is_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("loss_modules");
    FOR_EACH_DEVICE(device)
    {
        for (int i = 0; i < 12; i++)
            TERN_SCOPE
                classes_of_times(file, device, i / 4, i / 2 % 2, i % 2);
        tern_ctc_loss_options options = {.blank = 3, .reduction = TERN_REDUCTION_NONE};
        tern_tensor *x = tern_requires_grad_(tensor(file, "logits", device), true);
        tern_tensor *one = tern_log_softmax(tern_select(x, 1, 1), 1);
        one = tern_ctc_loss(one, ints(device, TERN_I64, 2, (int64_t[]){0, 2}),
                            tern_full(TERN_SHAPE_SCALAR, tern_scalar_int(5), TERN_I64, device),
                            tern_full(TERN_SHAPE_SCALAR, tern_scalar_int(2), TERN_I64, device),
                            &options);
        golden(file, "ctc_loss_blank", "", one);
        assert_ok(tern_backward(tern_div_scalar(one, TERN_SCALAR(8))));
        golden(file, "ctc_loss_blank", ".d0", tern_select(tern_grad(x), 1, 1));
        options.blank = 0;
        assert_ok(tern_set_grad(x, NULL));
        one = tern_ctc_loss(tern_log_softmax(x, 2), tern_zeros(TERN_SHAPE(3, 0), TERN_I64, device),
                            ints(device, TERN_I64, 3, (int64_t[]){6, 1, 3}),
                            ints(device, TERN_I64, 3, (int64_t[]){0, 0, 0}), &options);
        golden_gradients(file, "ctc_loss_nothing", one, &x, 1);
    }
    test_golden_close(file);
}

static void lengths_that_do_not_fit_are_found(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(TERN_SHAPE(4, 2, 3), TERN_F32, device);
        tern_tensor *targets = tern_ones(TERN_SHAPE(2, 2), TERN_I64, device);
        tern_tensor *fine = ints(device, TERN_I64, 2, (int64_t[]){4, 2});
        tern_tensor *long_ = ints(device, TERN_I64, 2, (int64_t[]){2, 5});
        for (int i = 0; i < 2; i++) {
            tern_tensor *y_lengths = tern_clamp(i ? long_ : fine, 0, i ? 5 : 2);
            if (tern_ctc_loss(x, targets, i ? fine : long_, y_lengths, NULL))
                assert_int_not_equal(tern_synchronize(device), TERN_OK);
            assert_error(TERN_ERR_ARGUMENT, i ? "values 2 and 5" : "values 5 and 2");
        }
    }
}

/* ---- distances --------------------------------------------------------------------------- */

static void distances_of_all_pairs_are_pytorch_s(void **state)
{
    (void)state;
    static const double orders[] = {2, 0, 0.5, 1, 3, INFINITY};
    test_golden *file = test_golden_open("loss_modules");
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < (test_thorough(device) ? sizeof orders / sizeof *orders : 1); i++)
        TERN_SCOPE {
            char name[32];
            snprintf(name, sizeof name, "cdist_%g", orders[i]);
            tern_tensor *in[2];
            leaves(file, "a b", device, in);
            tern_tensor *y = tern_cdist(in[0], in[1], orders[i]);
            golden_gradients(file, name, y, in, orders[i] > 0 ? 2 : 0);
        }
    test_golden_close(file);
}

/* Many points go another way: the same numbers, and nothing where points are the same. */
static void many_points_are_as_far_as_few(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(30, 3), -2, 2, 5);
        tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(7, 3), -2, 2, 6);
        tern_requires_grad_(x, true);
        tern_tensor *many = tern_cdist(x, y, 2), *few = tern_cdist(tern_narrow(x, 0, 4, 9), y, 2);
        assert_close(tern_narrow(many, 0, 4, 9), few, .abs = 1e-5);
        assert_ok(tern_backward(tern_sum(many)));
        tern_tensor *dx = tern_clone(tern_narrow(tern_grad(x), 0, 4, 9));
        assert_ok(tern_set_grad(x, NULL));
        assert_ok(tern_backward(tern_sum(few)));
        assert_close(tern_narrow(tern_grad(x), 0, 4, 9), dx, .abs = 1e-5);
        tern_tensor *same =
            tern_requires_grad_(tern_ones(TERN_SHAPE(30, 3), TERN_F32, device), true);
        tern_tensor *none = tern_cdist(same, same, 2);
        assert_ok(tern_backward(tern_sum(none)));
        assert_close(tern_sum(none), tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, device), .abs = 0);
        assert_close(tern_grad(same), tern_zeros(TERN_SHAPE(30, 3), TERN_F32, device), .abs = 0);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

#define REFUSED(CALL, STATUS, WORDS)                                                               \
    do {                                                                                           \
        assert_null(CALL);                                                                         \
        assert_error(STATUS, WORDS);                                                               \
    } while (0)
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, "cpu"), *flat = tern_select(x, 0, 0);
    tern_tensor *y = tern_ones(TERN_SHAPE(2), TERN_I64, "cpu"), *wide = tern_unsqueeze(x, 0);
    tern_loss_options batchmean = {.reduction = TERN_REDUCTION_BATCHMEAN};
    REFUSED(tern_l1_loss(x, NULL, NULL), TERN_ERR_ARGUMENT, "target is NULL");
    REFUSED(tern_l1_loss(x, x, &batchmean), TERN_ERR_ARGUMENT,
            "3 is not a valid value for reduction");
    REFUSED(tern_smooth_l1_loss(x, x, &(tern_smooth_l1_loss_options){.beta = -1}),
            TERN_ERR_ARGUMENT, "does not support negative values for beta");
    REFUSED(tern_huber_loss(x, x, &(tern_huber_loss_options){.delta = TERN_ZERO}),
            TERN_ERR_ARGUMENT, "does not support non-positive values for delta");
    REFUSED(tern_gaussian_nll_loss(x, x, tern_neg(x), NULL), TERN_ERR_ARGUMENT,
            "var has negative entry/entries");
    REFUSED(tern_gaussian_nll_loss(x, x, flat, NULL), TERN_ERR_SHAPE, "var is of incorrect size");
    REFUSED(tern_binary_cross_entropy(x, flat, NULL), TERN_ERR_SHAPE,
            "Using a target size ([3]) that is different to the input size ([2, 3])");
    REFUSED(tern_binary_cross_entropy_with_logits(x, flat, NULL), TERN_ERR_SHAPE,
            "Target size ([3]) must be the same as input size ([2, 3])");
    REFUSED(tern_nll_loss(flat, y, NULL), TERN_ERR_SHAPE, "[2]");
    REFUSED(tern_nll_loss(wide, y, NULL), TERN_ERR_SHAPE,
            "Expected input batch_size (1) to match target batch_size (2).");
    REFUSED(tern_nll_loss(x, y, &(tern_nll_loss_options){.weight = tern_select(x, 1, 0)}),
            TERN_ERR_SHAPE, "weight tensor should be defined either for all 3 classes");
    for (int rows = 0; rows < 2; rows++) { /* also where there are no classes */
        tern_tensor *some = tern_ones(TERN_SHAPE(rows, 3 * rows), TERN_F32, "cpu");
        tern_tensor *weight = tern_ones(TERN_SHAPE(3 * rows), TERN_F64, "cpu");
        REFUSED(tern_nll_loss(some, tern_zeros(TERN_SHAPE(rows), TERN_I64, "cpu"),
                              &(tern_nll_loss_options){.weight = weight}),
                TERN_ERR_DTYPE, "expected scalar type float32 but found float64 (weight)");
    }
    REFUSED(
        tern_margin_ranking_loss(x, flat, x, NULL), TERN_ERR_SHAPE,
        "All input tensors should have same dimension but got sizes: input1: [2, 3], input2: [3]");
    REFUSED(tern_cosine_embedding_loss(x, x, x, NULL), TERN_ERR_SHAPE,
            "0D or 1D target tensor expected, multi-target not supported");
    REFUSED(
        tern_cosine_embedding_loss(flat, x, y, NULL), TERN_ERR_SHAPE,
        "1D target tensor expects 2D input tensors, but found inputs with sizes [3] and [2, 3].");
    REFUSED(tern_triplet_margin_loss(x, x, flat, NULL), TERN_ERR_SHAPE,
            "All inputs should have same dimension but got 2D, 2D and 1D inputs.");
    REFUSED(tern_multi_margin_loss(x, y, &(tern_multi_margin_loss_options){.p = 3}),
            TERN_ERR_ARGUMENT, "only p == 1 and p == 2 supported");
    REFUSED(tern_multi_margin_loss(wide, y, NULL), TERN_ERR_SHAPE,
            "Expected non-empty vector or matrix");
    REFUSED(tern_multilabel_margin_loss(x, y, NULL), TERN_ERR_SHAPE, "inconsistent size [2]");
    REFUSED(tern_cosine_similarity(y, y, 0, 1e-8), TERN_ERR_DTYPE,
            "expected common dtype to be floating point, yet common dtype is int64");
    REFUSED(tern_cdist(x, tern_narrow(x, 1, 0, 2), 2), TERN_ERR_SHAPE,
            "X1 and X2 must have the same number of columns. X1: 3 X2: 2");
    REFUSED(tern_cdist(x, flat, 2), TERN_ERR_SHAPE, "at least 2D tensors, X2 got: 1D");
    REFUSED(tern_cdist(x, x, -1), TERN_ERR_ARGUMENT, "only supports non-negative p values");
    REFUSED(tern_pdist(flat, 2), TERN_ERR_SHAPE, "pdist only supports 2D tensors");
    REFUSED(tern_ctc_loss(wide, tern_cat((tern_tensor *[]){y, y}, 2, 0), y, y, NULL),
            TERN_ERR_SHAPE,
            "Expected targets to have the sum of target_lengths, 2, elements, but got [4]");
    REFUSED(tern_ctc_loss(wide, y, y, y, &(tern_ctc_loss_options){.blank = 3}), TERN_ERR_ARGUMENT,
            "blank must be in label range");
    REFUSED(tern_ctc_loss(wide, y, tern_select(y, 0, 0), y, NULL), TERN_ERR_SHAPE,
            "input_lengths must be of size batch_size");
    REFUSED(tern_ctc_loss(wide, y, y, tern_select(x, 1, 0), NULL), TERN_ERR_DTYPE,
            "target_lengths must be integral");
}

static void classes_and_probabilities_are_checked(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *p = TENSOR(device, TERN_F32, TERN_SHAPE(2), 0.5, 1.5), *y;
        tern_tensor *weight = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        assert_null(tern_binary_cross_entropy(p, tern_ones_like(p),
                                              &(tern_weighted_loss_options){.weight = weight}));
        assert_error(TERN_ERR_SHAPE, "tern_binary_cross_entropy"); /* whatever the input holds */
        assert_ok(tern_synchronize(device));
        tern_tensor *loss = tern_binary_cross_entropy(p, tern_ones_like(p), NULL);
        if (loss) /* devices tell when they are waited for */
            assert_int_not_equal(tern_synchronize(device), TERN_OK);
        assert_error(TERN_ERR_ARGUMENT, "all elements of input should be between 0 and 1");
        p = TENSOR(device, TERN_F32, TERN_SHAPE(4), 0, 1, 0, 1);
        y = TENSOR(device, TERN_F32, TERN_SHAPE(4), 0, 1, 1, 0);
        tern_requires_grad_(p, true);
        loss = tern_binary_cross_entropy(
            p, y, &(tern_weighted_loss_options){.reduction = TERN_REDUCTION_NONE});
        assert_values(loss, 0, 0, 100, 100);
        assert_ok(tern_backward(tern_sum(loss)));
        assert_values_close(tern_grad(p), 1e-6, 0, 0, -1e12, 1e12);
        tern_tensor *x = tern_zeros(TERN_SHAPE(1, 3), TERN_F32, device);
        y = tern_full(TERN_SHAPE(1), tern_scalar_int(3), TERN_I64, device);
        if (tern_nll_loss(x, y, NULL))
            assert_int_not_equal(tern_synchronize(device), TERN_OK);
        assert_error(TERN_ERR_ARGUMENT, "3 is out of bounds");
    }
}

/* A device that tells later of a class out of bounds refuses a type as the cpu does. */
static void types_are_looked_at_before_classes(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_BOOL, device);
        tern_tensor *y = tern_full(TERN_SHAPE(2), tern_scalar_int(7), TERN_I64, device);
        tern_tensor *many = tern_full(TERN_SHAPE(2, 3), tern_scalar_int(7), TERN_I64, device);
        REFUSED(tern_multilabel_margin_loss(x, many, NULL), TERN_ERR_DTYPE, "bool");
        REFUSED(tern_multi_margin_loss(x, y, NULL), TERN_ERR_DTYPE, "bool");
        REFUSED(tern_nll_loss(x, y, NULL), TERN_ERR_DTYPE, "bool");
        REFUSED(tern_cross_entropy(x, y, NULL), TERN_ERR_DTYPE, "bool");
        assert_ok(tern_synchronize(device));
    }
}

/* ---- gradients of gradients -------------------------------------------------------------- */

static tern_tensor *entropy(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_binary_cross_entropy(tern_sigmoid(in[0]), tern_sigmoid(in[1]), NULL);
}
static tern_tensor *logits(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_binary_cross_entropy_with_logits(in[0], in[1], NULL);
}
static tern_tensor *bent(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_huber_loss(in[0], in[1], NULL);
}
static tern_tensor *triplets(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_triplet_margin_loss(in[0], in[1], tern_mul(in[0], in[1]), NULL);
}
static tern_tensor *angles(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_cosine_similarity(in[0], in[1], 1, 1e-8);
}
static tern_tensor *distances(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_cdist(in[0], in[1], 2);
}

static void gradients_are_differentiable(void **state)
{
    (void)state;
    static const test_function functions[] = {entropy, logits, bent, triplets, angles, distances};
    tern_tensor *in[] = {test_uniform("cpu", TERN_F64, TERN_SHAPE(3, 4), -2, 2, 5),
                         test_uniform("cpu", TERN_F64, TERN_SHAPE(3, 4), -2, 2, 6)};
    for (int i = 0; i < 2; i++)
        tern_requires_grad_(in[i], true);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        gradcheck(functions[i], in, 2, .second = true);
}

static const struct CMUnitTest tests[] = {
    TEST(modules_are_pytorch_s),
    TEST(temporal_classification_is_pytorch_s),
    TEST(lengths_that_do_not_fit_are_found),
    TEST(distances_of_all_pairs_are_pytorch_s),
    TEST(many_points_are_as_far_as_few),
    TEST(what_does_not_fit_is_refused),
    TEST(classes_and_probabilities_are_checked),
    TEST(types_are_looked_at_before_classes),
    TEST(gradients_are_differentiable),
};
TEST_MAIN(tests)

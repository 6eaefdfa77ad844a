/* test_metrics.c -- metrics against torchmetrics' results; their states, their errors; stopping
 * early. */
#include "support.h"
#include <math.h>
#include <stdio.h>

static tern_tensor *part(tern_tensor *x, int64_t from, int64_t to)
{
    return tern_narrow(x, 0, from, to - from);
}

static test_golden *file;
static const char *device;

/* What m computes of two batches of golden tensors is the golden `name`; then m is freed. */
static void check(tern_metric *m, const char *name, const char *preds, const char *target)
{
    TERN_SCOPE {
        tern_tensor *p = test_golden_tensor(file, preds, device);
        tern_tensor *t = target ? test_golden_tensor(file, target, device) : NULL;
        assert_non_null(m);
        assert_ok(tern_metric_update(m, part(p, 0, 40), t ? part(t, 0, 40) : NULL));
        assert_ok(tern_metric_update(m, part(p, 40, 64), t ? part(t, 40, 64) : NULL));
        tern_tensor *y = tern_metric_compute(m);
        assert_non_null(y);
        test_golden_compare(file, name, "", y, 2e-6);
        assert_string_equal(tern_device(y), device);
    }
    tern_metric_free(m);
}

static const char *named(const char *metric, const char *kind, const char *more)
{
    static char text[128];
    snprintf(text, sizeof text, "%s.%s%s%s", metric, kind, *more ? "." : "", more);
    return text;
}

static const char *const averages[] = {NULL, "micro", "macro", "weighted", "none"};

static void positives_and_negatives(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tern_metric *(*make)(tern_task, int64_t, const tern_classification_options *);
    } rows[] = {{"accuracy", tern_metrics_accuracy}, {"precision", tern_metrics_precision},
                {"recall", tern_metrics_recall},     {"specificity", tern_metrics_specificity},
                {"f1_score", tern_metrics_f1_score}, {"jaccard_index", tern_metrics_jaccard_index}};
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        device = here;
        const char *name = rows[i].name;
        check(rows[i].make(TERN_TASK_BINARY, 0, NULL), named(name, "binary", ""), "chances",
              "bits");
        check(rows[i].make(TERN_TASK_BINARY, 0, &(tern_classification_options){.threshold = 0.75}),
              named(name, "binary", "high"), "chances", "bits");
        for (int a = 1; a <= TERN_AVERAGE_NONE; a++) {
            tern_classification_options o = {.average = (tern_average)a};
            check(rows[i].make(TERN_TASK_MULTICLASS, 5, &o), named(name, "multiclass", averages[a]),
                  "scores", "classes");
            check(rows[i].make(TERN_TASK_MULTICLASS, 5, &o), named(name, "volume", averages[a]),
                  "volume", "volume_classes");
            o.ignore_index = TERN_SOME(1);
            check(rows[i].make(TERN_TASK_MULTICLASS, 5, &o), named(name, "ignored", averages[a]),
                  "scores", "classes");
            o.ignore_index = TERN_SOME(-1);
            check(rows[i].make(TERN_TASK_MULTILABEL, 5, &o), named(name, "multilabel", averages[a]),
                  "logits", "labels");
            if (rows[i].make == tern_metrics_jaccard_index)
                continue;
            o = (tern_classification_options){.average = (tern_average)a, .top_k = 2};
            check(rows[i].make(TERN_TASK_MULTICLASS, 5, &o), named(name, "top2", averages[a]),
                  "scores", "classes");
        }
    }
    check(tern_metrics_fbeta_score(TERN_TASK_MULTICLASS, 5, 2,
                                   &(tern_classification_options){.average = TERN_AVERAGE_MACRO}),
          "fbeta_score", "scores", "classes");
    test_golden_close(file);
}

static void confusion_matrices(void **state)
{
    (void)state;
    static const char *const normalize[] = {"none", "true", "pred", "all"};
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    for (int k = 0; k <= TERN_NORMALIZE_ALL; k++) {
        device = here;
        tern_confusion_matrix_options o = {.normalize = (tern_confusion_normalize)k};
        check(tern_metrics_confusion_matrix(TERN_TASK_BINARY, 0, &o),
              named("confusion_matrix", "binary", normalize[k]), "chances", "bits");
        check(tern_metrics_confusion_matrix(TERN_TASK_MULTICLASS, 5, &o),
              named("confusion_matrix", "multiclass", normalize[k]), "scores", "classes");
        o.ignore_index = TERN_SOME(-1);
        check(tern_metrics_confusion_matrix(TERN_TASK_MULTILABEL, 5, &o),
              named("confusion_matrix", "multilabel", normalize[k]), "logits", "labels");
    }
    test_golden_close(file);
}

static void curves(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tern_metric *(*make)(tern_task, int64_t, const tern_curve_options *);
    } rows[] = {{"auroc", tern_metrics_auroc},
                {"average_precision", tern_metrics_average_precision}};
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    for (int i = 0; i < 4; i++) {
        device = here;
        tern_curve_options o = {.thresholds = i % 2 ? 21 : 0};
        const char *name = rows[i / 2].name, *kind = i % 2 ? "binned" : "exact";
        char full[64];
        check(rows[i / 2].make(TERN_TASK_BINARY, 0, &o), named(name, "binary", kind), "chances",
              "bits");
        for (int a = 1; a <= TERN_AVERAGE_NONE; a++) {
            o.average = (tern_average)a;
            o.ignore_index = TERN_SOME(-1);
            snprintf(full, sizeof full, "multilabel.%s", averages[a]);
            check(rows[i / 2].make(TERN_TASK_MULTILABEL, 5, &o), named(name, full, kind), "logits",
                  "labels");
            if (a == TERN_AVERAGE_MICRO)
                continue;
            o.ignore_index = (tern_optional_int){0};
            snprintf(full, sizeof full, "multiclass.%s", averages[a]);
            tern_metric *m = rows[i / 2].make(TERN_TASK_MULTICLASS, 5, &o);
            TERN_SCOPE {
                tern_tensor *scores = test_golden_tensor(file, "scores", device);
                tern_tensor *target =
                    tern_select(test_golden_tensor(file, "volume_classes", device), 1, 0);
                assert_ok(tern_metric_update(m, part(scores, 0, 40), part(target, 0, 40)));
                assert_ok(tern_metric_update(m, part(scores, 40, 64), part(target, 40, 64)));
                test_golden_compare(file, named(name, full, kind), "", tern_metric_compute(m),
                                    2e-6);
            }
            tern_metric_free(m);
        }
    }
    test_golden_close(file);
}

static void numbers_and_likelihoods(void **state)
{
    (void)state;
    static const char *const norms[] = {"l1", "l2", "max"};
    static const char *const outputs[] = {"uniform_average", "raw_values", "variance_weighted"};
    static const char *const reductions[] = {"mean", "sum", "none"};
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    {
        device = here;
        for (int k = 0; k < 3; k++) {
            tern_calibration_error_options o = {.norm = (tern_calibration_norm)k};
            check(tern_metrics_calibration_error(TERN_TASK_BINARY, 0, &o),
                  named("calibration_error", "binary", norms[k]), "chances", "bits");
            o.n_bins = 10;
            check(tern_metrics_calibration_error(TERN_TASK_MULTICLASS, 5, &o),
                  named("calibration_error", "multiclass", norms[k]), "scores", "classes");
            check(tern_metrics_r2_score(0, (tern_multioutput)k), named("r2_score", outputs[k], ""),
                  "numbers", "wanted");
            check(tern_metrics_cosine_similarity((tern_reduction)k),
                  named("cosine_similarity", reductions[k], ""), "numbers", "wanted");
        }
        check(tern_metrics_r2_score(4, TERN_UNIFORM_AVERAGE), "r2_score.adjusted", "numbers",
              "wanted");
        check(tern_metrics_mean_squared_error(true, 1), "mean_squared_error", "numbers", "wanted");
        check(tern_metrics_mean_squared_error(false, 1), "mean_squared_error.root", "numbers",
              "wanted");
        check(tern_metrics_mean_squared_error(true, 3), "mean_squared_error.columns", "numbers",
              "wanted");
        check(tern_metrics_mean_absolute_error(1), "mean_absolute_error", "numbers", "wanted");
        check(tern_metrics_mean_absolute_error(3), "mean_absolute_error.columns", "numbers",
              "wanted");
        check(tern_metrics_perplexity(TERN_SOME(-100)), "perplexity", "words", "said");
    }
    test_golden_close(file);
}

static void aggregates_leave_nan_out(void **state)
{
    (void)state;
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    {
        device = here;
        check(tern_metrics_mean(), "mean", "holes", NULL);
        check(tern_metrics_sum(), "sum", "holes", NULL);
        check(tern_metrics_max(), "max", "holes", NULL);
        check(tern_metrics_min(), "min", "holes", NULL);
        tern_metric *weighted = tern_metrics_mean(), *running = tern_metrics_running_mean(4);
        TERN_SCOPE {
            tern_tensor *x = test_golden_tensor(file, "holes", device);
            tern_tensor *y = test_golden_tensor(file, "wanted", device);
            assert_ok(tern_metric_update(weighted, x, tern_abs(y)));
            test_golden_compare(file, "mean.weighted", "", tern_metric_compute(weighted), 2e-6);
            for (int i = 0; i < 9; i++)
                assert_ok(tern_metric_update(running, tern_select(y, 0, i), NULL));
            test_golden_compare(file, "running_mean", "", tern_metric_compute(running), 2e-6);
            assert_ok(tern_metric_reset(weighted));
            assert_ok(tern_metric_update_number(weighted, 3, 1));
            assert_ok(tern_metric_update_number(weighted, 6, 2));
            assert_values(tern_metric_compute(weighted), 5);
        }
        tern_metric_free(weighted);
        tern_metric_free(running);
    }
    test_golden_close(file);
}

static void translations(void **state)
{
    (void)state;
    static const char *const said[] = {"the cat is on the mat", "there is a  cat on the mat\n",
                                       "it is a guide to action which ensures that the military "
                                       "always obeys the commands of the party",
                                       "", "a a a a a"};
    static const char *const meant[][3] = {
        {"there is a cat on the mat", "a cat is on the mat"},
        {"the cat is there on the mat"},
        {"it is a guide to action that ensures that the military will forever heed party commands",
         "it is the guiding principle which guarantees the military forces always being under the "
         "command of the party"},
        {"nothing"},
        {"a a b", "a c"}};
    const char *const *targets[5];
    for (int i = 0; i < 5; i++)
        targets[i] = meant[i];
    file = test_golden_open("metrics");
    tern_metric *const metrics[] = {
        tern_metrics_bleu_score(NULL),
        tern_metrics_bleu_score(&(tern_bleu_score_options){.smooth = true}),
        tern_metrics_bleu_score(
            &(tern_bleu_score_options){.n_gram = 2, .weights = (const double[]){0.25, 0.75}})};
    static const char *const names[] = {"plain", "smooth", "two"};
    for (int k = 0; k < 3; k++) {
        assert_ok(tern_metric_update_text(metrics[k], said, targets, 2));
        assert_ok(tern_metric_update_text(metrics[k], said + 2, targets + 2, 3));
        TERN_SCOPE
            test_golden_compare(file, "bleu_score.", names[k], tern_metric_compute(metrics[k]),
                                2e-6);
        tern_metric_free(metrics[k]);
    }
    test_golden_close(file);
}

/* ---- states ---------------------------------------------------------------------------------- */

static tern_status copy_state(const char *name, tern_tensor *x, void *user)
{
    return tern_metric_set_state(user, name, x);
}

/* Half of the data in each of two metrics, the second made of the saved states of a third. */
static void states_are_saved_and_merged(void **state)
{
    (void)state;
    file = test_golden_open("metrics");
    FOR_EACH_DEVICE(here)
    for (int exact = 0; exact < 3; exact++) {
        tern_metric *m[3];
        tern_curve_options o = {.thresholds = exact ? 0 : 21, .average = TERN_AVERAGE_NONE};
        for (int k = 0; k < 3; k++)
            m[k] = exact == 2 ? tern_metrics_mean_absolute_error(5)
                              : tern_metrics_auroc(TERN_TASK_MULTILABEL, 5, &o);
        TERN_SCOPE {
            tern_tensor *p = test_golden_tensor(file, "logits", here);
            tern_tensor *t = tern_to_dtype(
                tern_gt_scalar(test_golden_tensor(file, "scores", here), TERN_SCALAR(0.5)),
                exact == 2 ? TERN_F32 : TERN_I64);
            assert_ok(tern_metric_update(m[0], part(p, 0, 40), part(t, 0, 40)));
            assert_ok(tern_metric_update(m[2], part(p, 40, 50), part(t, 40, 50)));
            assert_ok(tern_metric_update(m[2], part(p, 50, 64), part(t, 50, 64)));
            assert_ok(tern_metric_each_state(m[2], copy_state, m[1]));
            assert_ok(tern_metric_merge(m[0], m[1]));
            tern_tensor *parts = tern_metric_compute(m[0]);
            assert_ok(tern_metric_reset(m[1]));
            assert_ok(tern_metric_update(m[1], p, t));
            assert_close(parts, tern_metric_compute(m[1]), .abs = 1e-6);
            assert_ok(tern_metric_to(m[1], "cpu"));
            assert_close(parts, tern_metric_compute(m[1]), .abs = 1e-6);
            assert_int_equal(tern_metric_merge(m[0], m[0]), TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "the same states");
        }
        for (int k = 0; k < 3; k++)
            tern_metric_free(m[k]);
    }
    test_golden_close(file);
}

static void double_precision_is_kept(void **state)
{
    (void)state;
    tern_metric *m = tern_metrics_mean_absolute_error(1);
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(3), TERN_SCALAR(1e-12), TERN_F64, "cpu");
        assert_ok(tern_metric_update(m, tern_add_scalar(x, TERN_SCALAR(1)),
                                     tern_ones(TERN_SHAPE(3), TERN_F64, "cpu")));
        tern_tensor *y = tern_metric_compute(m);
        assert_int_equal(tern_dtype_of(y), TERN_F64);
        assert_true(fabs(tern_item(y) - 1e-12) < 1e-15);
    }
    tern_metric_free(m);
}

static void what_is_refused_changes_nothing(void **state)
{
    (void)state;
    tern_metric *m = tern_metrics_accuracy(TERN_TASK_MULTICLASS, 3, NULL);
    TERN_SCOPE {
        tern_tensor *scores = tern_zeros(TERN_SHAPE(4, 3), TERN_F32, "cpu");
        tern_tensor *target = tern_zeros(TERN_SHAPE(4), TERN_I64, "cpu");
        assert_ok(tern_metric_update(m, scores, target));
        assert_int_equal(tern_metric_update(m, scores, part(target, 0, 3)), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "(N, C, ...) with C = 3");
        assert_int_equal(tern_metric_update(m, tern_zeros(TERN_SHAPE(4), TERN_F32, "cpu"), target),
                         TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "classes (integers)");
        assert_int_equal(tern_metric_update(m, NULL, target), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "preds");
        assert_values(tern_metric_compute(m), 1);
        tern_metric *matrix = tern_metrics_confusion_matrix(TERN_TASK_MULTICLASS, 3, NULL);
        assert_int_not_equal(
            tern_metric_update(matrix, tern_full(TERN_SHAPE(4), TERN_SCALAR(3), TERN_I64, "cpu"),
                               target),
            TERN_OK);
        assert_error(tern_last_status(), "out of bounds");
        assert_values(tern_metric_compute(matrix), 0, 0, 0, 0, 0, 0, 0, 0, 0);
        tern_metric_free(matrix);
        tern_metric *curve = tern_metrics_auroc(TERN_TASK_BINARY, 0, NULL);
        assert_null(tern_metric_compute(curve));
        assert_error(TERN_ERR_STATE, "none before the first");
        assert_int_equal(tern_metric_update_number(curve, 1, 1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "takes tensors");
        tern_metric_free(curve);
        assert_null(tern_metrics_accuracy(TERN_TASK_MULTICLASS, 1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "num_classes");
        assert_null(
            tern_metrics_auroc(TERN_TASK_BINARY, 0, &(tern_curve_options){.thresholds = 1}));
        assert_error(TERN_ERR_ARGUMENT, "thresholds");
    }
    tern_metric_free(m);
    tern_metric_free(NULL);
}

/* ---- stopping early -------------------------------------------------------------------------- */

static void a_training_stops_when_it_gets_no_better(void **state)
{
    (void)state;
    static const double losses[] = {1, 0.9, 0.95, 0.89, 0.93, 0.9};
    tern_early_stopping *s =
        tern_early_stopping_new(&(tern_early_stopping_options){.patience = 2, .min_delta = 0.005});
    tern_early_stopping *resumed =
        tern_early_stopping_new(&(tern_early_stopping_options){.patience = 2, .min_delta = 0.005});
    tern_early_stopping_state saved;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tern_early_stopping_step(s, losses[i]), i == 5);
        assert_int_equal(tern_early_stopping_is_best(s), i == 0 || i == 1 || i == 3);
        if (i == 4) {
            assert_ok(tern_early_stopping_get_state(s, &saved));
            assert_ok(tern_early_stopping_set_state(resumed, &saved));
        }
    }
    assert_true(tern_early_stopping_best(s) == 0.89);
    assert_true(tern_early_stopping_step(resumed, losses[5]));
    tern_early_stopping_free(s);
    tern_early_stopping_free(resumed);
    s = tern_early_stopping_new(&(tern_early_stopping_options){
        .maximize = true, .has_stopping_threshold = true, .stopping_threshold = 0.98});
    assert_false(tern_early_stopping_step(s, 0.9));
    assert_true(tern_early_stopping_step(s, 0.99));
    tern_early_stopping_free(s);
    s = tern_early_stopping_new(NULL);
    assert_false(tern_early_stopping_step(s, 2));
    assert_true(tern_early_stopping_step(s, (double)NAN));
    tern_early_stopping_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(positives_and_negatives),
                                       TEST(confusion_matrices),
                                       TEST(curves),
                                       TEST(numbers_and_likelihoods),
                                       TEST(aggregates_leave_nan_out),
                                       TEST(translations),
                                       TEST(states_are_saved_and_merged),
                                       TEST(double_precision_is_kept),
                                       TEST(what_is_refused_changes_nothing),
                                       TEST(a_training_stops_when_it_gets_no_better)};
    return test_main(tests, sizeof tests / sizeof *tests);
}

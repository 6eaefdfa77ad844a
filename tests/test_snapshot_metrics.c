/* test_snapshot_metrics.c -- metrics and early stopping in snapshots: what was gathered goes on. */
#include "support.h"
#include "folder.h"

typedef struct measures {
    tern_metric *accuracy, *area, *empty;
    tern_early_stopping *stopping;
    tern_snapshot *snapshot;
    const char *device;
} measures;

static measures start(const char *device, int64_t classes)
{
    measures m = {.device = device};
    assert_ok(tern_set_default_device(device));
    m.accuracy =
        tern_metrics_accuracy(TERN_TASK_MULTICLASS, classes,
                              &(tern_classification_options){.average = TERN_AVERAGE_MACRO});
    m.area = tern_metrics_auroc(TERN_TASK_BINARY, 1, NULL);
    m.empty = tern_metrics_auroc(TERN_TASK_BINARY, 1, NULL);
    m.stopping = tern_early_stopping_new(NULL);
    m.snapshot = tern_snapshot_new();
    assert_ok(tern_snapshot_add_metric(m.snapshot, "accuracy", m.accuracy));
    assert_ok(tern_snapshot_add_metric(m.snapshot, "area", m.area));
    assert_ok(tern_snapshot_add_metric(m.snapshot, "empty", m.empty));
    assert_ok(tern_snapshot_add_early_stopping(m.snapshot, "stopping", m.stopping));
    return m;
}

static void stop(measures *m)
{
    tern_snapshot_free(m->snapshot);
    tern_early_stopping_free(m->stopping);
    tern_metric_free(m->accuracy);
    tern_metric_free(m->area);
    tern_metric_free(m->empty);
    assert_ok(tern_set_default_device(NULL));
}

static void batch(measures *m, int i)
{
    uint64_t seed = 2 * (uint64_t)i;
    tern_tensor *x = test_uniform(m->device, TERN_F32, TERN_SHAPE(7, 3), 0, 1, seed);
    tern_tensor *y = tern_argmax_dim(
        test_uniform(m->device, TERN_F32, TERN_SHAPE(7, 3), 0, 1, seed + 1), 1, false);
    tern_tensor *is_first = tern_to_dtype(tern_eq_scalar(y, TERN_SCALAR(0)), TERN_I64);
    assert_ok(tern_metric_update(m->accuracy, tern_argmax_dim(x, 1, false), y));
    assert_ok(tern_metric_update(m->area, tern_select(x, 1, 0), is_first));
    tern_early_stopping_step(m->stopping, i == 1 ? 0.25 : 1 + i);
}

static void results(measures *m, double to[3])
{
    tern_early_stopping_state at;
    assert_ok(tern_early_stopping_get_state(m->stopping, &at));
    to[0] = tern_item(tern_metric_compute(m->accuracy));
    to[1] = tern_item(tern_metric_compute(m->area));
    to[2] = at.best + (double)at.wait_count + 10 * at.is_best + 20 * at.stopped;
}

static void sums_and_lists_go_on(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        double whole[3], resumed[3];
        measures m = start(device, 3);
        for (int i = 0; i < 4; i++) {
            if (i == 2)
                assert_ok(tern_snapshot_save(m.snapshot, in_folder("runs"), NULL));
            batch(&m, i);
        }
        results(&m, whole);
        stop(&m);
        m = start(device, 3);
        batch(&m, 7); /* which is forgotten */
        assert_ok(tern_metric_update(m.empty, tern_ones(TERN_SHAPE(2), TERN_F32, device),
                                     tern_ones(TERN_SHAPE(2), TERN_I64, device)));
        assert_ok(tern_snapshot_load(m.snapshot, in_folder("runs")));
        for (int i = 2; i < 4; i++)
            batch(&m, i);
        results(&m, resumed);
        assert_memory_equal(whole, resumed, sizeof whole);
        assert_null(tern_metric_compute(m.empty));
        assert_error(TERN_ERR_STATE, "there are none");
        stop(&m);
        remove_tree(in_folder("runs"));
    }
}

/* Another number of classes, another metric, more of them: nothing changes. */
static void other_metrics_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        double before[3], after[3];
        measures m = start("cpu", 3);
        batch(&m, 0);
        assert_ok(tern_snapshot_save(m.snapshot, in_folder("runs"), NULL));
        stop(&m);
        m = start("cpu", 4);
        batch(&m, 3);
        results(&m, before);
        assert_int_equal(tern_snapshot_load(m.snapshot, in_folder("runs")), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "is no state of this metric, or has another shape or type");
        results(&m, after);
        assert_memory_equal(before, after, sizeof before);
        stop(&m);
        tern_metric *mean = tern_metrics_mean();
        tern_snapshot *s = tern_snapshot_new();
        assert_ok(tern_snapshot_add_metric(s, "other", mean));
        assert_int_equal(tern_snapshot_load(s, in_folder("runs")), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "nothing called \"accuracy\" was added");
        assert_int_equal(tern_snapshot_add_metric(s, "none", NULL), TERN_ERR_ARGUMENT);
        tern_clear_error();
        tern_snapshot_free(s);
        tern_metric_free(mean);
        remove_tree(in_folder("runs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_and_lists_go_on),
        TEST(other_metrics_are_refused),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}

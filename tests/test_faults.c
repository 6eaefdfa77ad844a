/* test_faults.c -- in a training step of every kind of model an allocation fails, or a call of the
 * driver: the n-th alone, or it and all after it, for every n (some, without TERN_TEST_ALL).
 *
 * What must hold then: an error, and no result of the forward that met it; inputs as they were; every
 * parameter and buffer as it was, or, where it was in the optimizer that the step failed, as the whole
 * step leaves it; nothing is left behind; the next step works, and gives the numbers that it gives after
 * no failure. */
#include "support.h"
#include "faults/models.h"
#include "faults/source.h"
#include <math.h>

/* ---- what there is before and after a step ----------------------------------------------- */

enum { MOST_TENSORS = 64 };

typedef struct state {
    tern_tensor *x, *copy;  /* a parameter or buffer; its elements before */
    double *before, *after; /* the whole step */
} state;

typedef struct bench {
    test_training t;
    state states[MOST_TENSORS];
    int n;
    double *x, *y, loss;
} bench;

static tern_status note_tensor(const char *path, tern_tensor *x, void *user)
{
    bench *b = user;
    (void)path;
    assert_true(b->n < MOST_TENSORS);
    b->states[b->n++] = (state){.x = x, .copy = tern_keep(tern_clone(tern_detach(x)))};
    return TERN_OK;
}

static void put_back(bench *b)
{
    TERN_NO_GRAD {
        for (int i = 0; i < b->n; i++)
            assert_non_null(tern_copy_(b->states[i].x, b->states[i].copy));
    }
    assert_ok(tern_nn_zero_grad(b->t.m));
}

static void prepare(bench *b, const test_model *model, const char *device)
{
    *b = (bench){.n = 0};
    assert_ok(test_training_start(&b->t, model, device));
    TERN_SCOPE
        assert_ok(tern_nn_each_state(b->t.m, note_tensor, b));
    for (int i = 0; i < b->n; i++)
        b->states[i].before = test_read(b->states[i].x);
    for (int i = 0; i < 2; i++) { /* the first one builds kernels */
        put_back(b);
        assert_ok(test_training_begin(&b->t));
        assert_ok(test_training_step(&b->t, &b->loss));
    }
    for (int i = 0; i < b->n; i++)
        b->states[i].after = test_read(b->states[i].x);
    b->x = test_read(b->t.x);
    b->y = test_read(b->t.y);
    put_back(b);
}

static void clean_up(bench *b)
{
    for (int i = 0; i < b->n; i++) {
        tern_release(b->states[i].copy);
        free(b->states[i].before);
        free(b->states[i].after);
    }
    free(b->x);
    free(b->y);
    test_training_end(&b->t);
}

static bool is_close(const tern_tensor *x, const double *values, double error)
{
    double *now = test_read(x);
    bool close = true;
    for (int64_t i = 0; close && i < tern_numel(x); i++)
        close = fabs(now[i] - values[i]) <= error * (1 + fabs(values[i]));
    free(now);
    return close;
}

static bool is_same(const tern_tensor *x, const double *values)
{
    return is_close(x, values, 0);
}

/* Nothing failed that could not be done in another way, which may round otherwise. */
static void must_be_stepped(const bench *b, const char *what)
{
    for (int i = 0; i < b->n; i++)
        if (!is_close(b->states[i].x, b->states[i].after, 1e-5))
            fail_msg("%s: %s is no error, but tensor %d is not what a step makes it",
                     b->t.model->name, what, i);
}

/* How many tensors have changed, each as the whole step changes it. */
static int changed(const bench *b, const char *what)
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        if (is_same(b->states[i].x, b->states[i].before))
            continue;
        if (!is_same(b->states[i].x, b->states[i].after))
            fail_msg("%s: %s leaves tensor %d of the model half changed", b->t.model->name, what,
                     i);
        n++;
    }
    return n;
}

static int changes_of_a_step(const bench *b)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += memcmp(b->states[i].before, b->states[i].after,
                    (size_t)tern_numel(b->states[i].x) * sizeof(double)) != 0;
    return n;
}

/* ---- one failure ------------------------------------------------------------------------- */

static void must_work(bench *b, const char *what, const char *when)
{
    double loss;
    if (test_training_step(&b->t, &loss) != TERN_OK) {
        print_error("%s: %s: %s: %s\n", b->t.model->name, what, when, tern_last_error());
        tern_clear_error();
        fail();
    }
    if (loss != b->loss || changed(b, what) != changes_of_a_step(b))
        fail_msg("%s: %s: %s: another step than without a failure (loss %g, not %g)",
                 b->t.model->name, what, when, loss, b->loss);
}

/* Whether the failure happened, among so many calls. */
static bool try_one(bench *b, const source *s)
{
    const char *what = text_of(s);
    double loss;
    put_back(b);
    assert_ok(test_training_begin(&b->t));
    assert_ok(tern_empty_cache(b->t.device));
    arm(s);
    tern_status status = test_training_step(&b->t, &loss);
    bool happened = disarm(s) >= s->n;
    if (status != TERN_OK && !happened)
        fail_msg("%s: %s did not happen, and there is an error: %s", b->t.model->name, what,
                 tern_last_error());
    if (b->t.is_odd)
        fail_msg("%s: %s: there is a result, and an error: %s", b->t.model->name, what,
                 tern_last_error());
    if (status != TERN_OK && !*tern_last_error())
        fail_msg("%s: %s: there is no message", b->t.model->name, what);
    tern_clear_error();
    if (!is_same(b->t.x, b->x) || !is_same(b->t.y, b->y))
        fail_msg("%s: %s changed the inputs", b->t.model->name, what);
    if (status == TERN_OK)
        must_be_stepped(b, what);
    if (status == TERN_OK || changed(b, what) > 0 || b->t.scaler) {
        put_back(b);
        assert_ok(test_training_begin(&b->t));
    }
    must_work(b, what, "the next step");
    return happened;
}

/* ---- all of them ------------------------------------------------------------------------- */

static unsigned long long sweep_source(bench *b, const char *point, unsigned long long most)
{
    unsigned long long tried = 0;
    for (int on = 0; on < 2; on++) {
        source s = {.point = point, .n = 1ull << 40, .on = on};
        put_back(b);
        assert_ok(test_training_begin(&b->t));
        assert_ok(tern_empty_cache(b->t.device));
        double loss;
        arm(&s);
        tern_status status = test_training_step(&b->t, &loss);
        unsigned long long calls = disarm(&s);
        assert_ok(status);
        for (s.n = 1; s.n <= calls; s.n += stride(calls, most))
            TERN_SCOPE
                tried += try_one(b, &s);
    }
    return tried;
}

static uint64_t allocated_on(const char *device)
{
    tern_memory_stats stats = {0};
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats.allocated;
}

static void sweep(const char *device, bool memory)
{
    for (int i = 0; i < test_models_count; i++) {
        bench b;
        prepare(&b, &test_models[i], device); /* some memory is the device's for good */
        clean_up(&b);
        int64_t live = tern_live_tensors();
        uint64_t allocated = allocated_on(device);
        unsigned long long tried = 0;
        prepare(&b, &test_models[i], device);
        int64_t at_work = tern_live_tensors();
        if (memory) /* quick on the cpu */
            tried += sweep_source(&b, NULL, strcmp(device, "cpu") == 0 ? 100 : 25);
        for (int p = 0; !memory && p < driver.points(); p++)
            if (strcmp(driver.name(p), "kernel") != 0) /* after which nothing works */
                tried += sweep_source(&b, driver.name(p), 3);
        put_back(&b);
        assert_in_range(tern_live_tensors(), live, at_work);
        clean_up(&b);
        if (tern_live_tensors() != live)
            fail_msg("%s leaves %lld tensors behind", test_models[i].name,
                     (long long)(tern_live_tensors() - live));
        if (allocated_on(device) != allocated)
            fail_msg("%s leaves %llu bytes on %s behind", test_models[i].name,
                     (unsigned long long)(allocated_on(device) - allocated), device);
        print_message("%s on %s: %llu failures\n", test_models[i].name, device, tried);
    }
}

static void any_allocation_may_fail_in_a_step(void **unused)
{
    (void)unused;
    FOR_EACH_DEVICE(device)
    sweep(device, true);
}

static void any_call_of_the_driver_may_fail_in_a_step(void **unused)
{
    (void)unused;
    FOR_EACH_DEVICE(device)
    if (strcmp(device, "cpu") != 0)
        sweep(device, false);
}

int main(void)
{
    bool there = load_driver();
    if (strcmp(test_device(0), "cpu") != 0 && !there) {
        puts("SKIP: TERN_FAULT_DRIVER names no driver that can fail");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        TEST(any_allocation_may_fail_in_a_step),
        TEST(any_call_of_the_driver_may_fail_in_a_step),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}

/* test_snapshot.c -- trainings that were stopped go on with the same numbers. */
#include "support.h"
#include "folder.h"
#include "base/memory.h"
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- a training with everything in it -------------------------------------------------------- */

typedef struct training {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_lr_scheduler *scheduler;
    tern_scaler *scaler;
    tern_averaged_model *average;
    tern_snapshot *snapshot;
    tern_tensor *x, *y;
    int64_t step;
    double best;
} training;

static training *start(const char *device, bool momentum)
{
    training *t = calloc(1, sizeof *t);
    assert_ok(tern_set_default_device(device));
    tern_manual_seed(11);
    t->x = tern_keep(test_uniform(device, TERN_F32, TERN_SHAPE(8, 6), -1, 1, 1));
    t->y = tern_keep(test_uniform(device, TERN_F32, TERN_SHAPE(8, 3), -1, 1, 2));
    t->model =
        tern_nn_sequential(tern_nn_linear(6, 16, NULL), tern_nn_batch_norm1d(16, NULL),
                           tern_nn_relu(), tern_nn_dropout(NULL), tern_nn_linear(16, 3, NULL));
    t->optimizer = momentum ? tern_optim_sgd(t->model, 0.1, &(tern_sgd_options){.momentum = 0.9})
                            : tern_optim_adamw(t->model, 1e-2, NULL);
    t->scheduler = tern_lr_scheduler_sequential_lr(
        t->optimizer,
        (tern_lr_scheduler *[]){tern_lr_scheduler_linear_lr(t->optimizer, 0.1, 1, 4),
                                tern_lr_scheduler_cosine_annealing_lr(t->optimizer, 10, 0)},
        2, (int64_t[]){4});
    t->scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.growth_interval = 3});
    t->average = tern_swa_averaged_model(t->model, NULL);
    t->snapshot = tern_snapshot_new();
    t->best = 1e9;
    assert_ok(tern_snapshot_add_module(t->snapshot, "model", t->model));
    assert_ok(tern_snapshot_add_optimizer(t->snapshot, "optimizer", t->optimizer));
    assert_ok(tern_snapshot_add_lr_scheduler(t->snapshot, "scheduler", t->scheduler));
    assert_ok(tern_snapshot_add_scaler(t->snapshot, "scaler", t->scaler));
    assert_ok(tern_snapshot_add_averaged_model(t->snapshot, "average", t->average));
    assert_ok(tern_snapshot_add_int(t->snapshot, "step", &t->step));
    assert_ok(tern_snapshot_add_real(t->snapshot, "best", &t->best));
    return t;
}

static double run(training *t)
{
    double loss = 0;
    TERN_SCOPE {
        assert_ok(tern_optim_zero_grad(t->optimizer));
        tern_tensor *y = tern_nn_forward(t->model, t->x);
        tern_tensor *l = tern_mse_loss(y, t->y, NULL);
        assert_ok(tern_backward(tern_amp_scale(t->scaler, l)));
        assert_ok(tern_amp_step(t->scaler, t->optimizer));
        assert_ok(tern_amp_update(t->scaler));
        assert_ok(tern_lr_scheduler_step(t->scheduler));
        assert_ok(tern_swa_update(t->average));
        loss = tern_item(l);
    }
    t->step++;
    t->best = loss < t->best ? loss : t->best;
    return loss;
}

static void stop(training *t)
{
    tern_snapshot_free(t->snapshot);
    tern_swa_free(t->average);
    tern_amp_free(t->scaler);
    tern_lr_scheduler_free(t->scheduler);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
    tern_release(t->x), tern_release(t->y);
    free(t);
    assert_ok(tern_set_default_device(NULL));
}

static double average_of(const training *t)
{
    double value = 0;
    TERN_SCOPE
        value = tern_item(tern_sum(
            tern_abs(tern_swa_average(t->average, tern_nn_parameter(t->model, "0.weight")))));
    return value;
}

/* ---- going on -------------------------------------------------------------------------------- */

static void a_training_goes_on_with_the_same_numbers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int momentum = 0; momentum < 2; momentum++)
        TERN_SCOPE {
            const char *runs = in_folder(momentum ? "sgd" : "adamw");
            training *whole = start(device, momentum);
            double losses[12];
            for (int i = 0; i < 12; i++) {
                losses[i] = run(whole);
                if (i == 4)
                    assert_ok(tern_snapshot_save(whole->snapshot, runs, NULL));
            }
            double best = whole->best, average = average_of(whole),
                   scale = tern_amp_get_scale(whole->scaler),
                   lr = tern_optim_get_lr(whole->optimizer);
            stop(whole);
            training *again = start(device, momentum);
            assert_ok(tern_snapshot_load(again->snapshot, runs));
            assert_int_equal(again->step, 5);
            for (int i = 5; i < 12; i++)
                assert_true(run(again) == losses[i]);
            assert_true(again->best == best);
            assert_true(average_of(again) == average);
            assert_true(tern_amp_get_scale(again->scaler) == scale);
            assert_true(tern_optim_get_lr(again->optimizer) == lr);
            stop(again);
            remove_tree(runs);
        }
}

/* The generator of the old default device goes on on the new one: dropout's numbers are the same. */
static void it_goes_on_on_another_device(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        training *whole = start("cpu", false);
        double losses[9];
        for (int i = 0; i < 9; i++) {
            losses[i] = run(whole);
            if (i == 4)
                assert_ok(tern_snapshot_save(whole->snapshot, in_folder("move"), NULL));
        }
        stop(whole);
        training *there = start(device, false);
        assert_ok(tern_snapshot_load(there->snapshot, in_folder("move")));
        for (int i = 5; i < 9; i++)
            assert_true(fabs(run(there) - losses[i]) < 1e-4);
        stop(there);
        remove_tree(in_folder("move"));
    }
}

/* What a training has that has not begun: no states of the optimizer. */
static void a_snapshot_of_the_beginning_is_one(void **state)
{
    (void)state;
    TERN_SCOPE {
        training *t = start("cpu", false);
        assert_ok(tern_snapshot_save(t->snapshot, in_folder("zero"), NULL));
        double losses[3];
        for (int i = 0; i < 3; i++)
            losses[i] = run(t);
        assert_ok(tern_snapshot_load(t->snapshot, in_folder("zero")));
        assert_int_equal(t->step, 0);
        for (int i = 0; i < 3; i++)
            assert_true(run(t) == losses[i]);
        stop(t);
    }
}

static tern_tensor *closure(void *user)
{
    training *t = user;
    tern_optim_zero_grad(t->optimizer);
    tern_tensor *loss = tern_mse_loss(tern_nn_forward(t->model, t->x), t->y, NULL);
    tern_backward(loss);
    return loss;
}

/* Its history of steps and changes is part of it. */
static void lbfgs_goes_on_too(void **state)
{
    (void)state;
    TERN_SCOPE {
        double losses[6];
        for (int again = 0; again < 2; again++) {
            training *t = start("cpu", false);
            tern_optimizer *o = tern_optim_lbfgs(t->model, 0.1, NULL);
            tern_optim_free(t->optimizer);
            t->optimizer = o;
            tern_nn_eval(t->model); /* the loss is a function of the parameters alone */
            tern_snapshot *s = tern_snapshot_new();
            assert_ok(tern_snapshot_add_module(s, "model", t->model));
            assert_ok(tern_snapshot_add_optimizer(s, "optimizer", t->optimizer));
            if (again)
                assert_ok(tern_snapshot_load(s, in_folder("lbfgs")));
            for (int i = again ? 3 : 0; i < 6; i++) {
                double loss;
                assert_ok(tern_optim_step_closure(t->optimizer, closure, t, &loss));
                if (again)
                    assert_true(loss == losses[i]);
                losses[i] = loss;
                if (i == 2 && !again)
                    assert_ok(tern_snapshot_save(s, in_folder("lbfgs"), NULL));
            }
            tern_snapshot_free(s);
            stop(t);
        }
    }
}

/* The batches that a loop would have given are those that the next one gives. */
static void a_loader_goes_on_in_its_epoch(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_arange(0, 20, 1, TERN_I64, "cpu"),
                    *other = tern_arange(0, 21, 1, TERN_I64, "cpu");
        int64_t seen[2][8] = {{0}};
        for (int again = 0; again < 3; again++) {
            tern_dataset *data = tern_data_tensor_dataset(again < 2 ? x : other);
            tern_loader *loader = tern_data_loader(
                data, &(tern_loader_options){
                          .batch_size = 3, .shuffle = true, .seed = (uint64_t)(5 + again)});
            tern_snapshot *s = tern_snapshot_new();
            int n = again ? 3 : 0;
            assert_ok(tern_snapshot_add_loader(s, "loader", loader));
            if (again == 1)
                assert_ok(tern_snapshot_load(s, in_folder("loader")));
            if (again == 2) {
                assert_int_equal(tern_snapshot_load(s, in_folder("loader")), TERN_ERR_STATE);
                assert_error(TERN_ERR_STATE, "loader is of another data set or sampler");
            }
            for (; again < 2 && n < 7;)
                TERN_EACH_BATCH(batch, loader)
                {
                    seen[again][n++] = tern_item_int(tern_select(batch.tensors[0], 0, 0));
                    if (n == 3 && !again)
                        assert_ok(tern_snapshot_save(s, in_folder("loader"), NULL));
                    if (n == 7)
                        break;
                }
            tern_snapshot_free(s);
            tern_loader_free(loader);
            tern_dataset_free(data);
        }
        assert_memory_equal(seen[0] + 3, seen[1] + 3, 4 * sizeof(int64_t));
    }
}

/* ---- which are kept -------------------------------------------------------------------------- */

static void the_last_and_the_best_are_kept(void **state)
{
    (void)state;
    int64_t n = 0;
    char runs[4400];
    snprintf(runs, sizeof runs, "%s", in_folder("runs/deeper"));
    tern_snapshot *s = tern_snapshot_new();
    assert_ok(tern_snapshot_add_int(s, "n", &n));
    assert_null(tern_snapshot_latest(runs));
    assert_int_equal(tern_snapshot_count(runs), 0);
    assert_int_equal(tern_snapshot_load(s, in_folder("runs")), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "runs\": No such file or directory");
    for (n = 8; n < 13; n++)
        assert_ok(tern_snapshot_save(
            s, runs, &(tern_snapshot_options){.step = n, .keep_last = 2, .is_best = n == 9}));
    assert_int_equal(tern_snapshot_count(runs), 2);
    assert_non_null(strstr(tern_snapshot_latest(runs), "/step-12.safetensors"));
    assert_ok(tern_snapshot_load(s, runs));
    assert_int_equal(n, 12);
    assert_ok(tern_snapshot_load(s, tern_snapshot_best(runs)));
    assert_int_equal(n, 9);
    /* The user's own files are not counted and not touched. */
    write_file(in_folder("runs/deeper/step-1.safetensors"), "text", 4);
    write_file(in_folder("runs/deeper/step-x.safetensors"), "text", 4);
    write_file(in_folder("runs/deeper/notes"), "text", 4);
    /* One that goes on from before is not the first to go. */
    assert_ok(tern_snapshot_save(s, runs, &(tern_snapshot_options){.step = 5, .keep_last = 2}));
    assert_int_equal(access(in_folder("runs/deeper/step-5.safetensors"), F_OK), 0);
    assert_int_equal(tern_snapshot_count(runs), 2);
    assert_int_equal(count_files(runs), 6);
    tern_snapshot_free(s);
}

static void one_is_written_in_the_background(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(1 << 20), tern_scalar_real(1), TERN_F32, device);
        tern_snapshot *s = tern_snapshot_new();
        tern_snapshot_options options = {.background = true, .keep_last = 2};
        assert_ok(tern_snapshot_add_tensor(s, "x", x));
        for (int i = 0; i < 4; i++) {
            assert_ok(tern_snapshot_save(s, in_folder("later"), &options));
            tern_add_scalar_(x, tern_scalar_real(1)); /* which is not in it */
        }
        assert_ok(tern_snapshot_wait(s));
        assert_int_equal(tern_snapshot_count(in_folder("later")), 2);
        assert_ok(tern_snapshot_load(s, in_folder("later")));
        assert_true(tern_item(tern_max(x)) == 4);
        /* An error there is told by the next call. */
        remove_tree(in_folder("later"));
        assert_ok(tern_snapshot_save(s, in_folder("later"), &options));
        assert_ok(tern_snapshot_wait(s));
        mkfifo(in_folder("later/step-2.safetensors"), 0600);
        assert_ok(tern_snapshot_save(s, in_folder("later"), &options));
        assert_int_equal(tern_snapshot_wait(s), TERN_ERR_IO);
        assert_error(TERN_ERR_IO, "is no regular file");
        tern_snapshot_free(s);
        remove_tree(in_folder("later"));
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void another_training_is_refused_and_nothing_changes(void **state)
{
    (void)state;
    TERN_SCOPE {
        training *a = start("cpu", false), *b = start("cpu", true);
        run(a);
        assert_ok(tern_snapshot_save(a->snapshot, in_folder("other"), NULL));
        tern_tensor *before = tern_clone(tern_detach(tern_nn_parameter(b->model, "0.weight")));
        assert_int_equal(tern_snapshot_load(b->snapshot, in_folder("other")), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "tern_optim_sgd has no ");
        assert_same(before, tern_detach(tern_nn_parameter(b->model, "0.weight")));
        assert_int_equal(b->step, 0);
        int64_t more = 7;
        assert_ok(tern_snapshot_add_int(a->snapshot, "more", &more));
        assert_int_equal(tern_snapshot_load(a->snapshot, in_folder("other")), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "the file has no more");
        assert_ok(tern_snapshot_save(a->snapshot, in_folder("other"), NULL));
        training *c = start("cpu", false);
        assert_int_equal(tern_snapshot_load(c->snapshot, in_folder("other")), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "nothing called \"more\" was added");
        stop(a), stop(b), stop(c);
    }
}

static void what_is_no_snapshot_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", "a.b", "format", "rng", "n"};
    int64_t n = 3;
    tern_snapshot *s = tern_snapshot_new();
    tern_state_dict *dict = tern_state_dict_new();
    assert_ok(tern_snapshot_add_int(s, "n", &n));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(tern_snapshot_add_int(s, names[i], &n), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "nothing can be called");
    }
    assert_int_equal(tern_snapshot_save(s, "", NULL), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "\"\": the folder can't be made");
    assert_ok(tern_save(dict, in_folder("plain.safetensors"), NULL));
    assert_int_equal(tern_snapshot_load(s, in_folder("plain.safetensors")), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "it is no snapshot");
    tern_state_dict_set_metadata(dict, "format", "tern.snapshot");
    tern_state_dict_set_metadata(dict, "version", "2");
    assert_ok(tern_save(dict, in_folder("plain.safetensors"), NULL));
    assert_int_equal(tern_snapshot_load(s, in_folder("plain.safetensors")), TERN_ERR_IO);
    assert_error(TERN_ERR_IO, "version 2 is not known");
    assert_ok(tern_snapshot_save(s, in_folder("numbers"), NULL));
    tern_state_dict *saved = tern_load(tern_snapshot_latest(in_folder("numbers")), NULL);
    tern_state_dict_set_metadata(saved, "n", "three");
    assert_ok(tern_save(saved, in_folder("numbers/step-1.safetensors"), NULL));
    assert_int_equal(tern_snapshot_load(s, in_folder("numbers")), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "n is \"three\", which is no number");
    tern_state_dict_free(saved);
    tern_state_dict_free(dict);
    tern_snapshot_free(s);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    training *t = start("cpu", false);
    run(t);
    int64_t live = tern_live_tensors();
    bool done = false;
    for (uint64_t n = 1; !done && n < 3000; n++)
        TERN_SCOPE {
            tern_memory_fail_at(n);
            tern_status status = tern_snapshot_save(t->snapshot, in_folder("memory"),
                                                    &(tern_snapshot_options){.step = 1});
            if (status == TERN_OK)
                status = tern_snapshot_load(t->snapshot, in_folder("memory"));
            tern_memory_fail_at(0);
            done = status == TERN_OK;
            if (!done)
                assert_error(TERN_ERR_MEMORY, "");
        }
    assert_true(done);
    assert_int_equal(tern_live_tensors(), live);
    stop(t);
}

/* ---- the end of the process ------------------------------------------------------------------ */

static void a_kill_leaves_a_snapshot_that_loads(void **state)
{
    (void)state;
    char runs[4400];
    snprintf(runs, sizeof runs, "%s", in_folder("kills"));
    bool seen = false;
    for (int i = 0; i < (getenv("TERN_TEST_ALL") ? 1000 : 20); i++) {
        pid_t child = fork();
        if (child == 0) {
            int64_t n = i;
            tern_snapshot *s = tern_snapshot_new();
            tern_snapshot_add_int(s, "n", &n);
            tern_snapshot_add_tensor(s, "x", tern_ones(TERN_SHAPE(1 << 18), TERN_F32, "cpu"));
            while (tern_snapshot_save(
                       s, runs, &(tern_snapshot_options){.keep_last = 2, .background = i % 2}) ==
                   TERN_OK)
                ;
            _exit(1);
        }
        while (i == 0 && !tern_snapshot_latest(runs) && waitpid(child, NULL, WNOHANG) == 0)
            usleep(1000); /* there is one to be found from here on */
        usleep((useconds_t)(20000 + (i * 7919) % 20000));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        TERN_SCOPE {
            int64_t n = -1;
            tern_snapshot *s = tern_snapshot_new();
            tern_snapshot_add_int(s, "n", &n);
            tern_tensor *x = tern_zeros(TERN_SHAPE(1 << 18), TERN_F32, "cpu");
            tern_snapshot_add_tensor(s, "x", x);
            if (tern_snapshot_latest(runs)) {
                assert_ok(tern_snapshot_load(s, runs));
                assert_true(tern_item(tern_min(x)) == 1);
                seen = true;
            } else
                assert_false(seen); /* none was lost */
            tern_snapshot_free(s);
        }
    }
    /* One may have been about to go; what the last one left is not cleared away yet. */
    assert_in_range(tern_snapshot_count(runs), seen, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_training_goes_on_with_the_same_numbers),
        TEST(it_goes_on_on_another_device),
        TEST(a_snapshot_of_the_beginning_is_one),
        TEST(lbfgs_goes_on_too),
        TEST(a_loader_goes_on_in_its_epoch),
        TEST(the_last_and_the_best_are_kept),
        TEST(one_is_written_in_the_background),
        TEST(another_training_is_refused_and_nothing_changes),
        TEST(what_is_no_snapshot_is_refused),
        TEST(no_memory_is_an_error),
    };
    /* Forked children work with one thread: first, before there are others. */
    const struct CMUnitTest forks[] = {TEST(a_kill_leaves_a_snapshot_that_loads)};
    if (strcmp(test_device(0), "cpu") == 0 && folder_main(forks, 1))
        return 1;
    return folder_main(tests, sizeof tests / sizeof *tests);
}

/* images.c -- images with labels: data sets of files or drawn, loaders, epochs, snapshots. */
#include "images.h"
#include "common.h"
#include "progress.h"
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, DRAWN = 2000 };

bool image_settings_read(image_settings *s, int argc, char **argv)
{
    const char *files[2] = {NULL, NULL};
    *s = (image_settings){.device = "auto", .seed = 1, .epochs = 3, .every = 50};
    const option_row list[] = {{"device", .text = &s->device},
                               {"seed", .seed = &s->seed},
                               {"epochs", .number = &s->epochs},
                               {"train", .number = &s->train},
                               {"snapshots", .text = &s->snapshots},
                               {"every", .number = &s->every},
                               {NULL}};
    bool fine = read_options(argc, argv, list, files, 2);
    s->images = files[0];
    s->labels = files[1];
    return fine && !s->images == !s->labels && s->every > 0;
}

/* ---- images ------------------------------------------------------------------------------ */

void image_draw(uint64_t *random, uint8_t *image, int kind)
{
    int size = 4 + (int)number_below(random, 6);
    int row = 10 + (int)number_below(random, 8), column = 10 + (int)number_below(random, 8);
    for (int i = 0; i < PIXELS; i++) {
        int y = abs(i / SIDE - row), x = abs(i % SIDE - column), r = x * x + y * y;
        int inside = kind == 0   ? r <= size * size
                     : kind == 1 ? x <= size && y <= size / 2 + 1
                     : kind == 2 ? (x <= 1 && y <= size) || (y <= 1 && x <= size)
                                 : r <= size * size && r >= (size - 2) * (size - 2);
        image[i] = inside ? 255 : 0;
    }
}

static tern_dataset *draw_all(uint64_t random)
{
    TERN_SCOPE_HERE;
    uint8_t *images = malloc((size_t)DRAWN * PIXELS);
    int64_t labels[DRAWN];
    for (size_t i = 0; images && i < DRAWN; i++) {
        labels[i] = (int64_t)number_below(&random, KINDS);
        image_draw(&random, images + i * PIXELS, (int)labels[i]);
    }
    tern_tensor *x = tern_from_data(images, TERN_SHAPE(DRAWN, 1, SIDE, SIDE), TERN_U8, "cpu");
    free(images);
    return tern_data_tensor_dataset(x, tern_from_data(labels, TERN_SHAPE(DRAWN), TERN_I64, "cpu"));
}

/* The items first .. last - 1. */
static tern_dataset *stretch(tern_dataset *all, int64_t first, int64_t last)
{
    int64_t *indices = malloc((size_t)(last - first + 1) * sizeof *indices);
    for (int64_t i = first; indices && i < last; i++)
        indices[i - first] = i;
    tern_dataset *part = tern_data_subset(all, indices, last - first);
    free(indices);
    return part;
}

static bool are_images(tern_dataset *all)
{
    TERN_SCOPE_HERE;
    tern_tensor *item[TERN_MAX_ITEM];
    bool fits = tern_dataset_length(all) >= 5 && tern_dataset_count(all) == 2 &&
                tern_dataset_item(all, 0, item) == TERN_OK && tern_numel(item[0]) == PIXELS;
    if (!fits)
        fprintf(stderr, "these are not %d x %d images and their labels\n", SIDE, SIDE);
    return fits;
}

bool images_open(image_set *d, const image_settings *s, double mean, double deviation)
{
    *d = (image_set){
        .classes = s->images ? 10 : KINDS, .mean = mean, .deviation = deviation, .seed = s->seed};
    tern_dataset *all =
        s->images ? tern_datasets_idx(s->images, s->labels) : draw_all(s->seed * 2 + 1);
    if (all && are_images(all)) {
        int64_t n = tern_dataset_length(all), held = n / 5 * 4, trained = held;
        if (s->train > 0 && s->train < trained)
            trained = s->train;
        d->train = stretch(all, 0, trained);
        d->held = stretch(all, held, n);
    }
    tern_dataset_free(all);
    return d->train && d->held;
}

void images_close(image_set *d)
{
    tern_dataset_free(d->train);
    tern_dataset_free(d->held);
}

/* Bytes travel to the device, and become numbers there. */
static tern_loader *loader_of(const image_set *d, tern_dataset *data, bool shuffle)
{
    return tern_data_loader(data, &(tern_loader_options){
                                      .batch_size = BATCH,
                                      .shuffle = shuffle,
                                      .seed = d->seed + 1,
                                      .num_workers = 1,
                                      .device = tern_default_device(),
                                      .device_transform = tern_transforms_compose(
                                          tern_transforms_to_dtype(TERN_F32, true),
                                          tern_transforms_normalize(&d->mean, &d->deviation, 1)),
                                  });
}

/* ---- training ---------------------------------------------------------------------------- */

/* A training, and all that is in its snapshots. */
typedef struct training {
    const image_settings *s;
    tern_module *model;
    tern_optimizer *optimizer;
    image_step step;
    tern_loader *trained, *held;
    tern_metric *loss, *right;  /* of the epoch so far; of the images held out */
    int64_t steps, epochs;      /* done */
    double last_loss, accuracy; /* of the last epoch; percent */
    double best;                /* of the accuracies */
    tern_snapshot *snapshot;
    tern_report *report;
} training;

static void save(training *t, bool is_best)
{
    if (t->s->snapshots)
        tern_snapshot_save(
            t->snapshot, t->s->snapshots,
            &(tern_snapshot_options){
                .step = t->steps, .keep_last = 2, .is_best = is_best, .background = true});
}

static void go_on(training *t)
{
    tern_snapshot *s = t->snapshot = tern_snapshot_new();
    tern_snapshot_add_module(s, "model", t->model);
    tern_snapshot_add_optimizer(s, "optimizer", t->optimizer);
    tern_snapshot_add_loader(s, "loader", t->trained);
    tern_snapshot_add_metric(s, "loss", t->loss);
    tern_snapshot_add_int(s, "steps", &t->steps);
    tern_snapshot_add_int(s, "epochs", &t->epochs);
    tern_snapshot_add_real(s, "last_loss", &t->last_loss);
    tern_snapshot_add_real(s, "accuracy", &t->accuracy);
    tern_snapshot_add_real(s, "best", &t->best);
    if (t->s->snapshots && tern_snapshot_latest(t->s->snapshots) &&
        tern_snapshot_load(s, t->s->snapshots) == TERN_OK)
        progress_say("going on after %lld steps", (long long)t->steps);
}

/* What is left of the epoch. */
static void train_epoch(training *t)
{
    TERN_EACH_BATCH(batch, t->trained)
    {
        tern_tensor *loss = t->step(t->model, t->optimizer, batch.tensors[0], batch.tensors[1]);
        double value = tern_item(loss);
        tern_metric_update_number(t->loss, value, (double)batch.size);
        if (tern_last_status() != TERN_OK)
            break;
        tern_report_value(t->report, "train/loss", t->steps + 1, value);
        tern_report_step(t->report, t->steps + 1, batch.size);
        if (++t->steps % t->s->every == 0)
            save(t, false);
    }
}

/* How many percent of the images held out are told right. */
static double accuracy(const training *t)
{
    TERN_NO_GRAD_HERE;
    tern_metric_reset(t->right);
    tern_nn_eval(t->model);
    TERN_EACH_BATCH(batch, t->held)
    {
        tern_metric_update(t->right, tern_nn_forward(t->model, batch.tensors[0]), batch.tensors[1]);
    }
    tern_nn_train(t->model, true);
    return 100 * tern_item(tern_metric_compute(t->right));
}

static void report(const training *t)
{
    tern_report_value(t->report, "accuracy", t->steps, t->accuracy);
    progress_say("epoch %lld: loss %.4f, %.2f %% of those held out are right", (long long)t->epochs,
                 t->last_loss, t->accuracy);
}

/* The percentage of whoever takes the class whose mean image is the nearest. */
static double nearest_mean(const image_set *d)
{
    TERN_NO_GRAD_HERE;
    TERN_SCOPE_HERE;
    tern_loader *trained = loader_of(d, d->train, false), *held = loader_of(d, d->held, false);
    tern_tensor *sums = tern_zeros(TERN_SHAPE(d->classes, PIXELS), TERN_F32, NULL);
    tern_tensor *counts = tern_zeros(TERN_SHAPE(d->classes, 1), TERN_F32, NULL);
    double right = 0;
    TERN_EACH_BATCH(batch, trained)
    {
        tern_tensor *one = tern_to_dtype(tern_one_hot(batch.tensors[1], d->classes), TERN_F32);
        tern_add_(sums, tern_matmul(tern_t(one), tern_flatten(batch.tensors[0], 1, -1)));
        tern_add_(counts, tern_sum_dim(tern_t(one), TERN_DIMS(1), true));
    }
    tern_tensor *means = tern_div(sums, counts);
    TERN_EACH_BATCH(batch, held)
    {
        tern_tensor *far = tern_cdist(tern_flatten(batch.tensors[0], 1, -1), means, 2);
        right += tern_item(tern_sum(tern_eq(tern_argmin_dim(far, 1, false), batch.tensors[1])));
    }
    tern_loader_free(trained);
    tern_loader_free(held);
    return 100 * right / (double)tern_dataset_length(d->held);
}

static void run(training *t)
{
    go_on(t);
    if (t->epochs)
        report(t);
    while (t->epochs < t->s->epochs && tern_last_status() == TERN_OK) {
        TERN_SCOPE_HERE;
        train_epoch(t);
        t->accuracy = accuracy(t);
        t->last_loss = tern_item(tern_metric_compute(t->loss));
        tern_metric_reset(t->loss);
        if (tern_last_status() != TERN_OK)
            break;
        t->epochs++;
        report(t);
        bool is_best = t->accuracy > t->best;
        if (is_best)
            t->best = t->accuracy;
        save(t, is_best);
    }
    if (tern_last_status() == TERN_OK)
        tern_snapshot_wait(t->snapshot);
}

void images_train(image_set *d, const image_settings *s, tern_module *model,
                  tern_optimizer *optimizer, image_step step)
{
    training t = {.s = s, .model = model, .optimizer = optimizer, .step = step, .best = -1};
    t.trained = loader_of(d, d->train, true);
    t.held = loader_of(d, d->held, false);
    t.loss = tern_metrics_mean();
    t.right = tern_metrics_accuracy(TERN_TASK_MULTICLASS, d->classes, NULL);
    t.report = progress_begin("images", s->epochs * tern_loader_length(t.trained));
    if (t.trained && t.held && t.loss && t.right && t.report)
        run(&t);
    tern_report_compare(t.report, "accuracy", nearest_mean(d), "the nearest mean image of a class");
    tern_report_close(t.report);
    tern_snapshot_free(t.snapshot);
    tern_metric_free(t.loss);
    tern_metric_free(t.right);
    tern_loader_free(t.trained);
    tern_loader_free(t.held);
}

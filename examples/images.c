/* images.c -- images with labels: data sets of files or drawn, loaders, epochs. */
#include "images.h"
#include "common.h"
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, DRAWN = 2000 };

bool image_settings_read(image_settings *s, int argc, char **argv)
{
    const char *files[2] = {NULL, NULL};
    *s = (image_settings){.device = "auto", .seed = 1, .epochs = 3};
    const option_row list[] = {{"device", .text = &s->device},
                               {"seed", .seed = &s->seed},
                               {"epochs", .number = &s->epochs},
                               {"train", .number = &s->train},
                               {NULL}};
    bool fine = read_options(argc, argv, list, files, 2);
    s->images = files[0];
    s->labels = files[1];
    return fine && !s->images == !s->labels;
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
    *d = (image_set){.mean = mean, .deviation = deviation, .seed = s->seed};
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

/* The mean loss over the images trained with. */
static double train_epoch(tern_loader *loader, tern_module *model, tern_optimizer *optimizer,
                          image_step step)
{
    double sum = 0;
    int64_t n = 0;
    TERN_EACH_BATCH(batch, loader)
    {
        sum += (double)batch.size *
               tern_item(step(model, optimizer, batch.tensors[0], batch.tensors[1]));
        n += batch.size;
        if (tern_last_status() != TERN_OK)
            break;
    }
    return sum / (double)n;
}

/* How many percent of the images held out are told right. */
static double accuracy(tern_loader *loader, tern_module *model)
{
    double right = 0;
    int64_t n = 0;
    TERN_NO_GRAD_HERE;
    tern_nn_eval(model);
    TERN_EACH_BATCH(batch, loader)
    {
        tern_tensor *kind = tern_argmax_dim(tern_nn_forward(model, batch.tensors[0]), 1, false);
        right += (double)tern_item_int(tern_sum(tern_eq(kind, batch.tensors[1])));
        n += batch.size;
    }
    tern_nn_train(model, true);
    return 100 * right / (double)n;
}

void images_train(image_set *d, int epochs, tern_module *model, tern_optimizer *optimizer,
                  image_step step)
{
    tern_loader *trained = loader_of(d, d->train, true), *held = loader_of(d, d->held, false);
    for (int epoch = 0; epoch < epochs; epoch++) {
        double loss = train_epoch(trained, model, optimizer, step), right = accuracy(held, model);
        if (tern_last_status() != TERN_OK)
            break;
        printf("epoch %d: loss %.4f, %.2f %% of those held out are right\n", epoch + 1, loss,
               right);
        fflush(stdout);
    }
    tern_loader_free(trained);
    tern_loader_free(held);
}

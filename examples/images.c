/* images.c -- images with labels: reading, drawing, batches, epochs. */
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

static bool draw_all(image_set *d)
{
    d->images = (idx_file){malloc((size_t)DRAWN * PIXELS), DRAWN, PIXELS};
    d->labels = (idx_file){malloc(DRAWN), DRAWN, 1};
    if (!d->images.bytes || !d->labels.bytes)
        return false;
    for (size_t i = 0; i < DRAWN; i++) {
        d->labels.bytes[i] = (uint8_t)number_below(&d->random, KINDS);
        image_draw(&d->random, d->images.bytes + i * PIXELS, d->labels.bytes[i]);
    }
    return true;
}

bool images_open(image_set *d, const image_settings *s, float mean, float deviation)
{
    *d = (image_set){.mean = mean, .deviation = deviation, .random = s->seed * 2 + 1};
    if (s->images ? !idx_read(&d->images, s->images) || !idx_read(&d->labels, s->labels)
                  : !draw_all(d))
        return false;
    d->trained = d->held = d->images.n / 5 * 4;
    if (s->train > 0 && (size_t)s->train < d->trained)
        d->trained = (size_t)s->train;
    d->order = malloc((d->images.n + 1) * sizeof *d->order);
    for (size_t i = 0; d->order && i < d->images.n; i++)
        d->order[i] = i;
    bool fits = d->trained > 0 && d->images.each == PIXELS && d->labels.each == 1 &&
                d->images.n == d->labels.n;
    if (!fits)
        fprintf(stderr, "these are not %d x %d images and their labels\n", SIDE, SIDE);
    return fits && d->order;
}

void images_close(image_set *d)
{
    idx_free(&d->images);
    idx_free(&d->labels);
    free(d->order);
}

/* Fisher and Yates. */
static void shuffle(image_set *d)
{
    for (size_t i = d->trained - 1; i > 0; i--) {
        size_t j = number_below(&d->random, i + 1), other = d->order[i];
        d->order[i] = d->order[j];
        d->order[j] = other;
    }
}

/* Images order[first..first + n) as (n, 1, 28, 28), and their labels. */
static void read_batch(const image_set *d, size_t first, size_t n, tern_tensor **x, tern_tensor **y)
{
    static float pixels[BATCH * PIXELS];
    int64_t labels[BATCH];
    for (size_t i = 0; i < n; i++) {
        const uint8_t *image = d->images.bytes + d->order[first + i] * PIXELS;
        for (size_t p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = ((float)image[p] / 255.0f - d->mean) / d->deviation;
        labels[i] = d->labels.bytes[d->order[first + i]];
    }
    *x = tern_from_data(pixels, TERN_SHAPE((int64_t)n, 1, SIDE, SIDE), TERN_F32, NULL);
    *y = tern_from_data(labels, TERN_SHAPE((int64_t)n), TERN_I64, NULL);
}

/* ---- training ---------------------------------------------------------------------------- */

/* The mean loss over the images trained with. */
static double train_epoch(image_set *d, tern_module *model, tern_optimizer *optimizer,
                          image_step step)
{
    double sum = 0;
    shuffle(d);
    for (size_t first = 0, n; first < d->trained && tern_last_status() == TERN_OK; first += n) {
        n = d->trained - first < BATCH ? d->trained - first : BATCH;
        TERN_SCOPE {
            tern_tensor *x, *y;
            read_batch(d, first, n, &x, &y);
            sum += (double)n * tern_item(step(model, optimizer, x, y));
        }
    }
    return sum / (double)d->trained;
}

/* How many percent of the images held out are told right. */
static double accuracy(const image_set *d, tern_module *model)
{
    double right = 0;
    tern_nn_eval(model);
    for (size_t first = d->held, n; first < d->images.n; first += n) {
        n = d->images.n - first < BATCH ? d->images.n - first : BATCH;
        TERN_NO_GRAD
            TERN_SCOPE {
                tern_tensor *x, *y;
                read_batch(d, first, n, &x, &y);
                tern_tensor *kind = tern_argmax_dim(tern_nn_forward(model, x), 1, false);
                right += (double)tern_item_int(tern_sum(tern_eq(kind, y)));
            }
    }
    tern_nn_train(model, true);
    return 100 * right / (double)(d->images.n - d->held);
}

void images_train(image_set *d, int epochs, tern_module *model, tern_optimizer *optimizer,
                  image_step step)
{
    for (int epoch = 0; epoch < epochs; epoch++) {
        double loss = train_epoch(d, model, optimizer, step), right = accuracy(d, model);
        if (tern_last_status() != TERN_OK)
            return;
        printf("epoch %d: loss %.4f, %.2f %% of those held out are right\n", epoch + 1, loss,
               right);
        fflush(stdout);
    }
}

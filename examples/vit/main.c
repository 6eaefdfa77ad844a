/* main.c -- trains a small vision transformer to tell what is on an image.
 *
 *   vit [IMAGES LABELS] [--device D] [--epochs N] [--train N] [--seed N]
 *
 * IMAGES and LABELS are IDX files as MNIST's; without them the program draws discs, boxes, crosses
 * and rings itself. A fifth of the images is held out; the last line says how many of them it tells
 * right. */
#include "../mnist/idx.h"
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, KINDS = 4, DRAWN = 2000 };

typedef struct settings {
    const char *images, *labels, *device;
    uint64_t seed;
    int epochs, train;
} settings;

typedef struct data {
    idx_file images, labels;
    size_t *order;
    size_t trained, held; /* how many are trained with; where those that are held out begin */
    uint64_t random;
} data;

/* ---- images -------------------------------------------------------------------------------- */

/* xorshift64*: a number below n. */
static size_t number_below(data *d, size_t n)
{
    d->random ^= d->random >> 12;
    d->random ^= d->random << 25;
    d->random ^= d->random >> 27;
    return (size_t)(d->random * UINT64_C(2685821657736338717) >> 33) % n;
}

static void draw(data *d, uint8_t *image, int kind)
{
    int size = 4 + (int)number_below(d, 6);
    int row = 10 + (int)number_below(d, 8), column = 10 + (int)number_below(d, 8);
    for (int i = 0; i < PIXELS; i++) {
        int y = abs(i / SIDE - row), x = abs(i % SIDE - column), r = x * x + y * y;
        int inside = kind == 0   ? r <= size * size
                     : kind == 1 ? x <= size && y <= size / 2 + 1
                     : kind == 2 ? (x <= 1 && y <= size) || (y <= 1 && x <= size)
                                 : r <= size * size && r >= (size - 2) * (size - 2);
        image[i] = inside ? 255 : 0;
    }
}

static int draw_all(data *d)
{
    d->images = (idx_file){malloc((size_t)DRAWN * PIXELS), DRAWN, PIXELS};
    d->labels = (idx_file){malloc(DRAWN), DRAWN, 1};
    if (!d->images.bytes || !d->labels.bytes)
        return 0;
    for (size_t i = 0; i < DRAWN; i++) {
        d->labels.bytes[i] = (uint8_t)number_below(d, KINDS);
        draw(d, d->images.bytes + i * PIXELS, d->labels.bytes[i]);
    }
    return 1;
}

static int data_open(data *d, const settings *s)
{
    if (s->images ? !idx_read(&d->images, s->images) || !idx_read(&d->labels, s->labels)
                  : !draw_all(d))
        return 0;
    d->trained = d->held = d->images.n / 5 * 4;
    if (s->train > 0 && (size_t)s->train < d->trained)
        d->trained = (size_t)s->train;
    d->order = malloc((d->images.n + 1) * sizeof *d->order);
    for (size_t i = 0; d->order && i < d->images.n; i++)
        d->order[i] = i;
    int fits = d->trained > 0 && d->images.each == PIXELS && d->labels.each == 1 &&
               d->images.n == d->labels.n;
    if (!fits)
        fprintf(stderr, "vit: these are not images of %d x %d and their labels\n", SIDE, SIDE);
    return fits && d->order;
}

static void data_close(data *d)
{
    idx_free(&d->images);
    idx_free(&d->labels);
    free(d->order);
}

/* Fisher and Yates. */
static void shuffle(data *d)
{
    for (size_t i = d->trained - 1; i > 0; i--) {
        size_t j = number_below(d, i + 1), other = d->order[i];
        d->order[i] = d->order[j];
        d->order[j] = other;
    }
}

/* Images order[first..first + n) as (n, 1, 28, 28) from -1 to 1, and their labels. */
static void read_batch(const data *d, size_t first, size_t n, tern_tensor **x, tern_tensor **y)
{
    static float pixels[BATCH * PIXELS];
    int64_t labels[BATCH];
    for (size_t i = 0; i < n; i++) {
        const uint8_t *image = d->images.bytes + d->order[first + i] * PIXELS;
        for (size_t p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = (float)image[p] / 127.5f - 1;
        labels[i] = d->labels.bytes[d->order[first + i]];
    }
    *x = tern_from_data(pixels, TERN_SHAPE((int64_t)n, 1, SIDE, SIDE), TERN_F32, NULL);
    *y = tern_from_data(labels, TERN_SHAPE((int64_t)n), TERN_I64, NULL);
}

/* ---- training ------------------------------------------------------------------------------ */

/* The mean loss over the images trained with. */
static double train_epoch(data *d, tern_module *model, tern_optimizer *optimizer)
{
    double sum = 0;
    shuffle(d);
    for (size_t first = 0, n; first < d->trained && tern_last_status() == TERN_OK; first += n) {
        n = d->trained - first < BATCH ? d->trained - first : BATCH;
        TERN_SCOPE {
            tern_tensor *x, *y;
            read_batch(d, first, n, &x, &y);
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
            tern_backward(loss);
            tern_nn_clip_grad_norm_(model, 1.0);
            tern_optim_step(optimizer);
            sum += (double)n * tern_item(loss);
        }
    }
    return sum / (double)d->trained;
}

/* How many percent of the images held out are told right. */
static double accuracy(const data *d, tern_module *model)
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

static void train(data *d, const settings *s)
{
    vit_options o = {.width = 64, .heads = 4, .layers = 2, .classes = s->images ? 10 : KINDS};
    tern_manual_seed(s->seed);
    tern_set_default_device(s->device);
    tern_module *model = vit_new(&o);
    tern_optimizer *optimizer = tern_optim_adamw(model, 2e-3, NULL);
    printf("%lld parameters, %zu images to train with, %zu held out\n",
           (long long)tern_nn_numel(model), d->trained, d->images.n - d->held);
    for (int epoch = 0; epoch < s->epochs && tern_last_status() == TERN_OK; epoch++) {
        printf("epoch %d: loss %.4f", epoch + 1, train_epoch(d, model, optimizer));
        printf(", %.2f %% of those held out are right\n", accuracy(d, model));
        fflush(stdout);
    }
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

/* ---- the command line ---------------------------------------------------------------------- */

static int read_settings(settings *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-') {
            *(s->images ? &s->labels : &s->images) = argv[i];
            continue;
        }
        if (value && strcmp(argv[i], "--device") == 0)
            s->device = value;
        else if (value && strcmp(argv[i], "--seed") == 0)
            s->seed = strtoull(value, NULL, 10);
        else if (value && strcmp(argv[i], "--epochs") == 0)
            s->epochs = atoi(value);
        else if (value && strcmp(argv[i], "--train") == 0)
            s->train = atoi(value);
        else
            return 0;
        i++;
    }
    return !s->images == !s->labels;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .seed = 1, .epochs = 3};
    if (!read_settings(&s, argc, argv)) {
        fputs("Usage: vit [IMAGES LABELS] [--device D] [--epochs N] [--train N] [--seed N]\n"
              "IMAGES and LABELS are IDX files, as such or packed (.gz).\n",
              stderr);
        return 2;
    }
    data d = {.random = s.seed * 2 + 1};
    int fine = data_open(&d, &s);
    if (fine)
        train(&d, &s);
    data_close(&d);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "vit: %s\n", tern_last_error());
    return fine && tern_last_status() == TERN_OK ? 0 : 1;
}

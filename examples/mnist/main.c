/* main.c -- trains a small convolutional network to read handwritten digits.
 *
 *   mnist t10k-images-idx3-ubyte t10k-labels-idx1-ubyte --device opencl:0
 *
 * The last fifth of the images is held out; the last line says how many of them it reads right.
 * With
 * --train N it sees no more than the first N of the others. */
#include "idx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, BATCH = 64 };

typedef struct settings {
    const char *images, *labels, *device;
    uint64_t seed;
    int epochs, train;
} settings;

typedef struct digits {
    idx_file images, labels;
    size_t trained, held; /* the first ones; from here on they are held out */
    size_t *order;
} digits;

/* ---- data -------------------------------------------------------------------------------- */

static int digits_open(digits *d, const settings *s)
{
    if (!idx_read(&d->images, s->images) || !idx_read(&d->labels, s->labels))
        return 0;
    d->trained = d->held = d->images.n / 5 * 4;
    if (s->train > 0 && (size_t)s->train < d->trained)
        d->trained = (size_t)s->train;
    d->order = malloc((d->images.n + 1) * sizeof *d->order);
    for (size_t i = 0; d->order && i < d->images.n; i++)
        d->order[i] = i;
    int fits = d->images.each == PIXELS && d->labels.each == 1 && d->images.n == d->labels.n;
    if (!fits)
        fprintf(stderr, "these are not %d x %d images and their labels\n", SIDE, SIDE);
    return fits && d->order;
}

static void digits_close(digits *d)
{
    idx_free(&d->images);
    idx_free(&d->labels);
    free(d->order);
}

/* Images order[first..first + n) as (n, 1, 28, 28) with mean 0 and deviation 1, and their labels.
 */
static void read_batch(const digits *d, size_t first, size_t n, tern_tensor **x, tern_tensor **y)
{
    static float pixels[BATCH * PIXELS];
    int64_t labels[BATCH];
    for (size_t i = 0; i < n; i++) {
        const uint8_t *image = d->images.bytes + d->order[first + i] * PIXELS;
        for (size_t p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = ((float)image[p] / 255.0f - 0.1307f) / 0.3081f;
        labels[i] = d->labels.bytes[d->order[first + i]];
    }
    *x = tern_from_data(pixels, TERN_SHAPE((int64_t)n, 1, SIDE, SIDE), TERN_F32, NULL);
    *y = tern_from_data(labels, TERN_SHAPE((int64_t)n), TERN_I64, NULL);
}

/* Fisher and Yates; xorshift64* for the numbers. */
static void shuffle(digits *d, uint64_t *random)
{
    for (size_t i = d->trained - 1; i > 0; i--) {
        *random ^= *random >> 12;
        *random ^= *random << 25;
        *random ^= *random >> 27;
        size_t j = (size_t)((*random * UINT64_C(2685821657736338717)) >> 33) % (i + 1);
        size_t other = d->order[i];
        d->order[i] = d->order[j];
        d->order[j] = other;
    }
}

/* ---- the network ------------------------------------------------------------------------- */

static tern_module *network(void)
{
    tern_nn_conv_options same = {.padding = TERN_DIMS(1)};
    return tern_nn_sequential(
        tern_nn_conv2d(1, 16, TERN_DIMS(3), &same), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_conv2d(16, 32, TERN_DIMS(3), &same),
        tern_nn_relu(), tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_flatten(),
        tern_nn_linear(32 * 7 * 7, 128, NULL), tern_nn_relu(), tern_nn_linear(128, 10, NULL));
}

/* The mean loss over the images trained with. */
static double train_epoch(const digits *d, tern_module *model, tern_optimizer *optimizer)
{
    double sum = 0;
    for (size_t first = 0, n; first < d->trained; first += n) {
        n = d->trained - first < BATCH ? d->trained - first : BATCH;
        TERN_SCOPE {
            tern_tensor *x, *y;
            read_batch(d, first, n, &x, &y);
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
            tern_backward(loss);
            tern_optim_step(optimizer);
            sum += (double)n * tern_item(loss);
        }
        if (tern_last_status() != TERN_OK)
            return 0;
    }
    return sum / (double)d->trained;
}

/* How many percent of the images held out are read right. */
static double accuracy(const digits *d, tern_module *model)
{
    double right = 0;
    tern_nn_eval(model);
    for (size_t first = d->held, n; first < d->images.n; first += n) {
        n = d->images.n - first < BATCH ? d->images.n - first : BATCH;
        TERN_NO_GRAD
            TERN_SCOPE {
                tern_tensor *x, *y;
                read_batch(d, first, n, &x, &y);
                tern_tensor *digit = tern_argmax_dim(tern_nn_forward(model, x), 1, false);
                right += (double)tern_item_int(tern_sum(tern_eq(digit, y)));
            }
    }
    tern_nn_train(model, true);
    return 100 * right / (double)(d->images.n - d->held);
}

static void train(digits *d, const settings *s)
{
    uint64_t random = s->seed * 2 + 1;
    tern_manual_seed(s->seed);
    tern_set_default_device(s->device);
    tern_module *model = network();
    tern_optimizer *optimizer = tern_optim_adam(model, 1e-3, NULL);
    for (int epoch = 0; epoch < s->epochs && tern_last_status() == TERN_OK; epoch++) {
        shuffle(d, &random);
        printf("epoch %d: loss %.4f", epoch + 1, train_epoch(d, model, optimizer));
        printf(", %.2f %% of those held out are right\n", accuracy(d, model));
        fflush(stdout);
    }
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

/* ---- the command line -------------------------------------------------------------------- */

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
    return s->images && s->labels;
}

int main(int argc, char **argv)
{
    settings s = {.device = "auto", .seed = 1, .epochs = 3};
    digits d = {.trained = 0};
    if (!read_settings(&s, argc, argv)) {
        fputs("Usage: mnist IMAGES LABELS [--device D] [--seed N] [--epochs N]"
              " [--train N]\n"
              "IMAGES and LABELS are IDX files, as such or packed (.gz).\n",
              stderr);
        return 2;
    }
    int opened = digits_open(&d, &s);
    if (opened)
        train(&d, &s);
    digits_close(&d);
    if (!opened)
        return 1;
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "mnist: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}

/* autoencoder.c -- presses images into a few numbers and draws them again from those.
 *
 *   autoencoder [IMAGES] [--device D] [--steps N] [--seed N]
 *
 * IMAGES is an IDX file of 28 x 28 images, as MNIST's; without one the program draws its own:
 * discs, boxes and crosses. Every device begins with the same weights and sees the same images.
 * What to expect: a fifth of the loss of always drawing the mean image. */
#include "common.h"
#include "images.h"
#include "progress.h"
#include <stdio.h>
#include <string.h>

enum { CODE = 16, BATCH = 32, DRAWN = 3 };

typedef struct settings {
    const char *images, *device;
    uint64_t seed;
    int steps;
} settings;

/* ---- images ------------------------------------------------------------------------------ */

typedef struct source {
    tern_tensor *file; /* (N, 28, 28), bytes on the cpu; NULL: images are drawn */
    uint64_t random;
} source;

/* (BATCH, 1, 28, 28) with elements from 0 to 1. */
static tern_tensor *next_batch(source *s)
{
    static float pixels[BATCH * PIXELS];
    uint8_t image[PIXELS];
    const uint8_t *all = s->file ? tern_data(s->file) : NULL;
    for (int n = 0; n < BATCH; n++) {
        if (all)
            memcpy(image, all + number_below(&s->random, (size_t)tern_size(s->file, 0)) * PIXELS,
                   PIXELS);
        else
            image_draw(&s->random, image, (int)number_below(&s->random, 3));
        for (int i = 0; i < PIXELS; i++)
            pixels[n * PIXELS + i] = (float)image[i] / 255.0f;
    }
    return tern_from_data(pixels, TERN_SHAPE(BATCH, 1, SIDE, SIDE), TERN_F32, NULL);
}

/* ---- the network ------------------------------------------------------------------------- */

static tern_tensor *planes(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_reshape(x, TERN_SHAPE(-1, 16, 7, 7));
}

static tern_module *network(void)
{
    tern_conv_options half = {.stride = TERN_DIMS(2), .padding = TERN_DIMS(1)};
    tern_conv_transpose_options twice = {
        .stride = TERN_DIMS(2), .padding = TERN_DIMS(1), .output_padding = TERN_DIMS(1)};
    tern_module *encoder =
        tern_nn_sequential(tern_nn_conv2d(1, 8, TERN_DIMS(3), &half), tern_nn_relu(),
                           tern_nn_conv2d(8, 16, TERN_DIMS(3), &half), tern_nn_relu(),
                           tern_nn_flatten(), tern_nn_linear(16 * 7 * 7, CODE, NULL));
    tern_module *decoder =
        tern_nn_sequential(tern_nn_linear(CODE, 16 * 7 * 7, NULL), tern_nn_relu(),
                           tern_nn_module("Planes", planes, NULL),
                           tern_nn_conv_transpose2d(16, 8, TERN_DIMS(3), &twice), tern_nn_relu(),
                           tern_nn_conv_transpose2d(8, 1, TERN_DIMS(3), &twice), tern_nn_sigmoid());
    return tern_nn_sequential(encoder, decoder);
}

static double train_step(tern_module *model, tern_optimizer *optimizer, source *s)
{
    double value = 0;
    TERN_SCOPE {
        tern_tensor *x = next_batch(s);
        tern_optim_zero_grad(optimizer);
        tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), x, NULL);
        tern_backward(loss);
        tern_optim_step(optimizer);
        value = tern_item(loss);
    }
    return value;
}

/* ---- what comes of it -------------------------------------------------------------------- */

/* Two rows of pixels a line. */
static void print_row(const float *upper)
{
    static const char shades[] = " .:-=+*#%@";
    for (int x = 0; x < SIDE; x++) {
        float light = (upper[x] + upper[x + SIDE]) / 2;
        putchar(shades[(int)(light < 0 ? 0 : light > 1 ? 9 : light * 9.0f)]);
    }
}

static void show(tern_module *model, source *s)
{
    static float seen[BATCH * PIXELS], drawn[BATCH * PIXELS];
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_tensor *x = next_batch(s), *y = tern_nn_forward(model, x);
            if (tern_copy_to_host(x, seen, sizeof seen) != TERN_OK ||
                tern_copy_to_host(y, drawn, sizeof drawn) != TERN_OK)
                return;
        }
    for (int i = 0; i < DRAWN; i++)
        for (int row = 0; row < SIDE; row += 2) {
            print_row(seen + i * PIXELS + row * SIDE);
            printf("  |  ");
            print_row(drawn + i * PIXELS + row * SIDE);
            putchar('\n');
        }
}

/* What is lost by whoever always draws the mean of all images. */
static double loss_of_mean(source *s)
{
    TERN_SCOPE_HERE;
    tern_tensor *x = next_batch(s), *mean = tern_mean_dim(x, TERN_DIMS(0), true);
    return tern_item(tern_mse_loss(tern_expand_as(mean, x), x, NULL));
}

static void train(source *s, const settings *set)
{
    tern_manual_seed(set->seed);
    if (tern_set_default_device(set->device) != TERN_OK)
        return;
    tern_report *report = progress_begin("images", set->steps);
    source others = {.file = s->file, .random = 3};
    double reference = loss_of_mean(&others);
    tern_module *model = network();
    tern_optimizer *optimizer = tern_optim_adam(model, 2e-3, NULL);
    for (int step = 1; step <= set->steps && tern_last_status() == TERN_OK; step++) {
        tern_report_value(report, "loss", step, train_step(model, optimizer, s));
        tern_report_step(report, step, BATCH);
    }
    tern_report_compare(report, "loss", reference, "the mean image");
    tern_report_close(report);
    if (tern_last_status() == TERN_OK)
        show(model, s);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

int main(int argc, char **argv)
{
    settings set = {.device = "auto", .seed = 1, .steps = 500};
    source s = {.random = 1};
    const option_row list[] = {{"device", .text = &set.device},
                               {"steps", .number = &set.steps},
                               {"seed", .seed = &set.seed},
                               {NULL}};
    if (!read_options(argc, argv, list, &set.images, 1)) {
        fputs("Usage: autoencoder [IMAGES] [--device D] [--steps N] [--seed N]\n", stderr);
        return 2;
    }
    s.random = 2 * set.seed + 1;
    if (set.images)
        s.file = tern_read_idx(set.images);
    if (s.file && (tern_numel(s.file) != tern_size(s.file, 0) * PIXELS || tern_numel(s.file) == 0 ||
                   tern_dtype_of(s.file) != TERN_U8)) {
        fprintf(stderr, "%s has no images of %d x %d\n", set.images, SIDE, SIDE);
        return 1;
    }
    if (tern_last_status() == TERN_OK)
        train(&s, &set);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "autoencoder: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}

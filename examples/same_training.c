/* same_training.c -- one training on every device of the machine: the same numbers, and the times beside each other.
 *
 *   same_training [DEVICE...]
 *
 * A small convolutional network learns drawn images (images.h) for a few steps on the cpu and on each OpenCL and CUDA device, or on those
 * that are named. What to expect: losses that differ by rounding alone, less than a thousandth. */
#include "images.h"
#include <math.h>
#include <stdio.h>
#include <tern/tern.h>
#include <time.h>

enum { STEPS = 60, WARM = 5, BATCH = 64, MOST = 16 };

typedef struct result {
    char device[32], name[128];
    double loss[STEPS], ms; /* of a step, after the first WARM, in which kernels are compiled */
} result;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* (N, 1, 28, 28) -> (N, 4) */
static tern_module *model_new(void)
{
    const tern_conv_options same = {.padding = TERN_SHAPE(1)};
    return tern_nn_sequential(tern_nn_conv2d(1, 16, TERN_SHAPE(3), &same), tern_nn_relu(),
                              tern_nn_max_pool2d(TERN_SHAPE(2), NULL),
                              tern_nn_conv2d(16, 32, TERN_SHAPE(3), &same), tern_nn_relu(),
                              tern_nn_max_pool2d(TERN_SHAPE(2), NULL), tern_nn_flatten(),
                              tern_nn_linear(32 * 7 * 7, 4, NULL));
}

/* Images of all kinds in turn, and their kinds. */
static void draw(float *pixels, int64_t *kinds)
{
    static uint8_t image[PIXELS];
    uint64_t random = 1;
    for (int i = 0; i < STEPS * BATCH; i++) {
        kinds[i] = i % KINDS;
        image_draw(&random, image, i % KINDS);
        for (int p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = image[p] / 255.0f;
    }
}

/* The same text for all devices: the seed, the weights and the images are the same too. */
static void train(result *r, const float *pixels, const int64_t *kinds)
{
    tern_set_default_device(r->device);
    tern_manual_seed(1);
    tern_module *model = model_new();
    tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
    double begin = 0;
    for (int step = 0; step < STEPS && tern_last_status() == TERN_OK; step++)
        TERN_SCOPE {
            if (step == WARM)
                begin = now();
            const int64_t at = (int64_t)step * BATCH;
            tern_tensor *x = tern_from_data(pixels + at * PIXELS, TERN_SHAPE(BATCH, 1, SIDE, SIDE),
                                            TERN_F32, NULL);
            tern_tensor *y = tern_from_data(kinds + at, TERN_SHAPE(BATCH), TERN_I64, NULL);
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
            tern_backward(loss);
            tern_optim_step(optimizer);
            r->loss[step] = tern_item(loss);
        }
    r->ms = (now() - begin) * 1e3 / (STEPS - WARM);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

/* The cpu, and every device of the other kinds; how many. */
static int find(result *list)
{
    static const char *const kinds[] = {"cpu", "opencl", "cuda"};
    int n = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < tern_device_count(kinds[k]) && n < MOST; i++)
            snprintf(list[n++].device, sizeof list->device, k ? "%s:%d" : "%s", kinds[k], i);
    return n;
}

static double largest_difference(const result *a, const result *b)
{
    double largest = 0;
    for (int i = 0; i < STEPS; i++)
        largest = fmax(largest, fabs(a->loss[i] - b->loss[i]));
    return largest;
}

int main(int argc, char **argv)
{
    static result list[MOST];
    static float pixels[STEPS * BATCH * PIXELS];
    static int64_t kinds[STEPS * BATCH];
    int n = 0;
    for (int i = 1; i < argc && n < MOST; i++)
        snprintf(list[n++].device, sizeof list->device, "%s", argv[i]);
    n = n ? n : find(list);
    draw(pixels, kinds);
    for (int i = 0; i < n && tern_last_status() == TERN_OK; i++) {
        tern_device_info d;
        if (tern_device_get_info(list[i].device, &d) != TERN_OK)
            break;
        snprintf(list[i].name, sizeof list[i].name, "%.100s", d.name);
        train(&list[i], pixels, kinds);
    }
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "same_training: %s\n", tern_last_error());
        return 1;
    }
    printf("%-10s  first loss  last loss   ms a step  name\n", "device");
    double worst = 0;
    for (int i = 0; i < n; i++) {
        printf("%-10s  %10.6f  %9.6f  %10.2f  %s\n", list[i].device, list[i].loss[0],
               list[i].loss[STEPS - 1], list[i].ms, list[i].name);
        worst = fmax(worst, largest_difference(&list[0], &list[i]));
    }
    printf("largest difference of a loss from %s: %.1e\n", list[0].device, worst);
    return worst < 1e-3 ? 0 : 1;
}

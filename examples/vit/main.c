/* main.c -- trains a small vision transformer to tell what is on an image.
 *
 *   vit [IMAGES LABELS] [--device D] [--epochs N] [--train N] [--seed N] [--snapshots FOLDER]
 *
 * IMAGES and LABELS are IDX files as MNIST's; without them the program draws discs, boxes, crosses
 * and rings itself. A fifth of the images is held out; the last line says how many of them it tells
 * right. With --snapshots it saves itself every 50 steps (--every N), and the same command goes on
 * where it was stopped. What to expect: some 75 % of the drawn ones after three epochs, 85 % after six. */
#include "model.h"
#include <stdio.h>

static tern_tensor *train_step(tern_module *model, tern_optimizer *optimizer, tern_tensor *x,
                               tern_tensor *y)
{
    tern_optim_zero_grad(optimizer);
    tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    tern_backward(loss);
    tern_nn_clip_grad_norm_(model, 1.0);
    tern_optim_step(optimizer);
    return loss;
}

static void train(image_set *d, const image_settings *s)
{
    vit_options o = {.width = 64, .heads = 4, .layers = 2, .classes = d->classes};
    tern_manual_seed(s->seed);
    if (tern_set_default_device(s->device) != TERN_OK)
        return;
    tern_module *model = vit_new(&o);
    tern_optimizer *optimizer = tern_optim_adamw(model, 2e-3, NULL);
    printf("%lld parameters, %lld images to train with, %lld held out\n",
           (long long)tern_nn_numel(model), (long long)tern_dataset_length(d->train),
           (long long)tern_dataset_length(d->held));
    images_train(d, s, model, optimizer, train_step);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

int main(int argc, char **argv)
{
    image_settings s;
    image_set d;
    if (!image_settings_read(&s, argc, argv)) {
        fputs("Usage: vit [IMAGES LABELS] [--device D] [--epochs N] [--train N] [--seed N]\n"
              "           [--snapshots FOLDER] [--every N]\n"
              "IMAGES and LABELS are IDX files, as such or packed (.gz).\n",
              stderr);
        return 2;
    }
    bool opened = images_open(&d, &s, 0.5, 0.5);
    if (opened)
        train(&d, &s);
    images_close(&d);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "vit: %s\n", tern_last_error());
    return opened && tern_last_status() == TERN_OK ? 0 : 1;
}

/* main.c -- trains a small convolutional network to read handwritten digits.
 *
 *   mnist t10k-images-idx3-ubyte t10k-labels-idx1-ubyte --device opencl:0
 *
 * Without files it looks at discs, boxes, crosses and rings that it draws. What to expect: 97 % of MNIST's after three
 * passes over its 10,000, nearly all of the drawn ones. The last fifth of the images is held out; the last line says how many of them it reads right.
 * With --train N it sees no more than the first N of the others. With --snapshots FOLDER it saves
 * itself there every 50 steps (--every N); the same command goes on where it was stopped. */
#include "../images.h"
#include <stdio.h>

static tern_module *network(int classes)
{
    tern_conv_options same = {.padding = TERN_DIMS(1)};
    return tern_nn_sequential(
        tern_nn_conv2d(1, 16, TERN_DIMS(3), &same), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_conv2d(16, 32, TERN_DIMS(3), &same),
        tern_nn_relu(), tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_flatten(),
        tern_nn_linear(32 * 7 * 7, 128, NULL), tern_nn_relu(), tern_nn_linear(128, classes, NULL));
}

static tern_tensor *train_step(tern_module *model, tern_optimizer *optimizer, tern_tensor *x,
                               tern_tensor *y)
{
    tern_optim_zero_grad(optimizer);
    tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    tern_backward(loss);
    tern_optim_step(optimizer);
    return loss;
}

static void train(image_set *digits, const image_settings *s)
{
    tern_manual_seed(s->seed);
    if (tern_set_default_device(s->device) != TERN_OK)
        return;
    tern_module *model = network(digits->classes);
    tern_optimizer *optimizer = tern_optim_adam(model, 1e-3, NULL);
    images_train(digits, s, model, optimizer, train_step);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

int main(int argc, char **argv)
{
    image_settings s;
    image_set digits;
    if (!image_settings_read(&s, argc, argv)) {
        fputs("Usage: mnist [IMAGES LABELS] [--device D] [--seed N] [--epochs N]"
              " [--train N] [--snapshots FOLDER] [--every N]\n"
              "IMAGES and LABELS are IDX files, as such or packed (.gz).\n",
              stderr);
        return 2;
    }
    bool opened = images_open(&digits, &s, 0.1307, 0.3081);
    if (opened)
        train(&digits, &s);
    images_close(&digits);
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "mnist: %s\n", tern_last_error());
    return opened && tern_last_status() == TERN_OK ? 0 : 1;
}

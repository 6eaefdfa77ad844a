/* data.c -- how fast batches come.
 *
 *   bench_data items|tensors WORKERS SECONDS     items a second of an own data set, of tensors (64 a batch)
 *   bench_data jpeg FOLDER WORKERS SECONDS       images a second, decoded, cropped, turned, normalised
 *   bench_data train loader|there SECONDS        steps a second of a small network, with a loader or on data that is there
 *
 * Prints one number. */
#include "clock.h"
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

enum { IMAGES = 60000, SIDE = 28, BATCH = 64 };

static uint8_t pixels[IMAGES][SIDE * SIDE];

static tern_status image(tern_dataset *self, int64_t i, tern_tensor **item)
{
    (void)self;
    item[0] = tern_from_data(pixels[i], TERN_SHAPE(1, SIDE, SIDE), TERN_U8, NULL);
    item[1] = tern_tensor_scalar(TERN_SCALAR(i % 10), TERN_I64, NULL);
    return TERN_OK;
}

static tern_dataset *tensors(void)
{
    tern_tensor *x =
        tern_from_data((void *)pixels, TERN_SHAPE(IMAGES, 1, SIDE, SIDE), TERN_U8, NULL);
    tern_tensor *y =
        tern_remainder_scalar(tern_arange(0, IMAGES, 1, TERN_I64, NULL), TERN_SCALAR(10));
    return tern_data_tensor_dataset(x, y);
}

static tern_dataset *jpegs(const char *folder)
{
    tern_dataset *images = tern_datasets_image_folder(folder, NULL);
    const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    tern_dataset *d = tern_data_transformed(
        images, 0,
        tern_transforms_compose(tern_transforms_random_resized_crop(TERN_SHAPE(224), NULL),
                                tern_transforms_random_horizontal_flip(0.5),
                                tern_transforms_to_dtype(TERN_F32, true),
                                tern_transforms_normalize(mean, std, 3)));
    tern_dataset_free(images);
    return d;
}

/* Items a second, after one batch to begin with. */
static double rate(tern_dataset *d, int workers, double seconds)
{
    tern_loader *loader = tern_data_loader(
        d, &(tern_loader_options){
               .batch_size = BATCH, .shuffle = true, .num_workers = workers, .seed = 1});
    double began = 0, n = 0, spent = 0;
    while (spent < seconds && tern_last_status() == TERN_OK)
        TERN_EACH_BATCH(batch, loader)
        {
            if (began == 0)
                began = clock_seconds();
            else
                n += (double)batch.size;
            spent = clock_seconds() - began;
            if (spent >= seconds)
                break;
        }
    tern_loader_free(loader);
    return n / spent;
}

/* ---- a step ------------------------------------------------------------------------------ */

static tern_module *network(void)
{
    tern_conv_options same = {.padding = TERN_DIMS(1)};
    return tern_nn_sequential(
        tern_nn_conv2d(1, 16, TERN_DIMS(3), &same), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_conv2d(16, 32, TERN_DIMS(3), &same),
        tern_nn_relu(), tern_nn_max_pool2d(TERN_DIMS(2), NULL), tern_nn_flatten(),
        tern_nn_linear(32 * 7 * 7, 128, NULL), tern_nn_relu(), tern_nn_linear(128, 10, NULL));
}

static void step(tern_module *model, tern_optimizer *optimizer, tern_tensor *x, tern_tensor *y)
{
    tern_optim_zero_grad(optimizer);
    tern_tensor *loss = tern_cross_entropy(tern_nn_forward(model, x), y, NULL);
    tern_backward(loss);
    tern_optim_step(optimizer);
    tern_item(loss);
}

static double steps(bool with_loader, double seconds)
{
    tern_dataset *d = tensors();
    tern_module *model = network();
    tern_optimizer *optimizer = tern_optim_adam(model, 1e-3, NULL);
    const double mean = 0.13, std = 0.31;
    tern_transform *floats = tern_transforms_compose(tern_transforms_to_dtype(TERN_F32, true),
                                                     tern_transforms_normalize(&mean, &std, 1));
    tern_loader *loader = tern_data_loader(
        d,
        &(tern_loader_options){.batch_size = BATCH, .shuffle = true, .num_workers = 1, .seed = 1});
    double began = 0, n = 0, spent = 0;
    TERN_EACH_BATCH(batch, loader)
    {
        tern_tensor *x = tern_transform_apply(floats, batch.tensors[0]), *y = batch.tensors[1];
        do {
            TERN_SCOPE_HERE;
            step(model, optimizer, with_loader ? tern_transform_apply(floats, batch.tensors[0]) : x,
                 y);
            if (began == 0)
                began = clock_seconds();
            else
                n++;
            spent = clock_seconds() - began;
        } while (!with_loader && spent < seconds);
        if (spent >= seconds)
            break;
    }
    tern_loader_free(loader);
    tern_transform_free(floats);
    tern_optim_free(optimizer);
    tern_nn_free(model);
    tern_dataset_free(d);
    return n / spent;
}

int main(int argc, char **argv)
{
    double result = 0;
    if (argc < 4)
        return 2;
    for (size_t i = 0; i < sizeof pixels; i++)
        ((uint8_t *)pixels)[i] = (uint8_t)(i * 2654435761u >> 13);
    if (!strcmp(argv[1], "train")) {
        result = steps(!strcmp(argv[2], "loader"), atof(argv[3]));
    } else {
        bool files = !strcmp(argv[1], "jpeg");
        tern_dataset *d = files ? jpegs(argv[2])
                          : !strcmp(argv[1], "items")
                              ? tern_data_dataset("images", IMAGES, 2, image, NULL)
                              : tensors();
        result = rate(d, atoi(argv[2 + files]), atof(argv[3 + files]));
        tern_dataset_free(d);
    }
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "bench_data: %s\n", tern_last_error());
        return 1;
    }
    printf("%.1f\n", result);
    return 0;
}

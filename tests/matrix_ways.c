/* matrix_ways.c -- what a device makes of products on its matrix unit, for who has it for some minutes.
 *
 *   matrix_ways DEVICE [SECONDS]      a turn of each; 0: nothing is timed, and products are small
 *
 * The way that the device claims and whether the library's own trial lets it be; then products of several shapes, layouts
 * and ends, by that way and in ordinary arithmetic, each beside the portable kernel: the largest error and the speed. 1 where
 * one is wrong or the trial was lost; 77 where the device is none of OpenCL's. */
#include "../bench/clock.h"
#include "device/device.h"
#include "device/opencl/gemm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

static const struct {
    int64_t m, n, k, batch;
    bool a_across, b_across, bias;
} shapes[] = {
    {64, 64, 64, 1, false, false, false},   {200, 136, 72, 1, false, true, true},
    {129, 77, 51, 1, true, false, false},   {128, 256, 320, 3, true, true, false},
    {512, 512, 512, 4, false, true, false}, {1024, 1024, 1024, 1, false, false, true},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, SMALL = 3 };

typedef struct product {
    const char *device;
    tern_tensor *a, *b, *bias;
} product;

static tern_tensor *multiply(const product *p)
{
    return p->bias ? tern_addmm(p->bias, p->a, p->b, 1, 1) : tern_matmul(p->a, p->b);
}

static void repeat(void *user, long n)
{
    product *p = user;
    for (long i = 0; i < n; i++)
        TERN_SCOPE
            multiply(p);
    tern_synchronize(p->device);
}

static tern_tensor *matrix(int64_t batch, int64_t rows, int64_t columns, bool across,
                           tern_dtype dtype)
{
    tern_shape s = across ? TERN_SHAPE(batch, columns, rows) : TERN_SHAPE(batch, rows, columns);
    tern_tensor *x = tern_to_dtype(tern_randn(s, TERN_F32, NULL), dtype);
    x = across ? tern_transpose(x, 1, 2) : x;
    return batch == 1 ? tern_select(x, 0, 0) : x;
}

/* Of a shape in a type: false where a way is wrong. */
static bool compare(const char *device, tern_dtype dtype, size_t i, double seconds)
{
    static const char *const ways[] = {"off", "plain", "auto"};
    double error[3] = {0}, speed[3] = {0}, size = 0;
    const double flops = 2e-9 * (double)(shapes[i].m * shapes[i].n * shapes[i].k * shapes[i].batch);
    bool right = true;
    TERN_NO_GRAD
        TERN_SCOPE {
            product p = {.device = device};
            p.a = matrix(shapes[i].batch, shapes[i].m, shapes[i].k, shapes[i].a_across, dtype);
            p.b = matrix(shapes[i].batch, shapes[i].k, shapes[i].n, shapes[i].b_across, dtype);
            if (shapes[i].bias)
                p.bias = tern_to_dtype(tern_randn(TERN_SHAPE(shapes[i].n), TERN_F32, NULL), dtype);
            tern_tensor *wanted = NULL;
            for (int w = 0; w < 3 && tern_last_status() == TERN_OK; w++) {
                setenv("TERN_MATRIX", ways[w], 1);
                tern_tensor *y = tern_to_dtype(multiply(&p), TERN_F32);
                wanted = wanted ? wanted : y;
                error[w] = tern_item(tern_max(tern_abs(tern_sub(y, wanted))));
                size = tern_item(tern_max(tern_abs(wanted)));
                speed[w] = seconds > 0 ? flops / clock_turn(repeat, &p, seconds) : 0;
                right = right && error[w] <= size * (dtype == TERN_F16 ? 2e-3 : 1.6e-2);
            }
        }
    right = right && size > 0 && tern_last_status() == TERN_OK;
    printf("%s %lldx%lldx%lld batch %lld%s%s%s: %s; of a largest %.3g plain is off by %.2g, auto "
           "by %.2g; "
           "GFLOP/s off %.4g, plain %.4g, auto %.4g\n",
           tern_dtype_name(dtype), (long long)shapes[i].m, (long long)shapes[i].n,
           (long long)shapes[i].k, (long long)shapes[i].batch,
           shapes[i].a_across ? " a transposed" : "", shapes[i].b_across ? " b transposed" : "",
           shapes[i].bias ? " bias" : "", right ? "right" : "WRONG", size, error[1], error[2],
           speed[0], speed[1], speed[2]);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "opencl:0";
    const double seconds = argc > 2 ? atof(argv[2]) : 0.2;
    bool right = true;
    tern_place *place =
        strncmp(device, "opencl", 6) == 0 ? tern_place_find(device, "matrix_ways") : NULL;
    if (!place) {
        printf("SKIPPED: %s is no OpenCL device\n", device);
        return 77;
    }
    setenv("TERN_WARN", "1", 1);
    tern_set_default_device(device);
    for (int t = 0; t < 2; t++) {
        const tern_dtype dtype = t ? TERN_BF16 : TERN_F16;
        const int claimed = tern_cl_state_of(place)->matrix_way,
                  way = tern_cl_matrix_way(place, dtype);
        const bool lost = claimed != TERN_MATRIX_PLAIN && way != claimed;
        printf("%s claims %s for %s; %s\n", device, tern_matrix_name(claimed),
               tern_dtype_name(dtype),
               claimed == TERN_MATRIX_PLAIN ? "it has no matrix unit that the library knows"
               : lost                       ? "its trial was LOST"
                                            : "its trial came out right");
        right = right && !lost;
    }
    const size_t n = seconds > 0 ? SHAPES : SMALL;
    for (size_t i = 0; i < 2 * n && tern_last_status() == TERN_OK; i++)
        right = compare(device, i % 2 ? TERN_BF16 : TERN_F16, i / 2, seconds) && right;
    if (tern_last_status() != TERN_OK)
        fprintf(stderr, "matrix_ways: %s\n", tern_last_error());
    return !right || tern_last_status() != TERN_OK;
}

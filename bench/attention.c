/* attention.c -- causal attention, forward and both ways, of some shapes in half precision.
 *
 *   attention DEVICE [bf16 | f16 [SECONDS [SHRINK]]]
 *
 * A line for each shape: sequences, heads, length and width of a head, milliseconds of the forward pass
 * and of it with the backward pass, and TFLOP/s of both, of which a causal one has half. SHRINK divides
 * lengths, to try the program where there is no GPU. */
#include "clock.h"
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

static const struct {
    int64_t n, heads, length, width;
} shapes[] = {{16, 12, 1024, 64},
              {4, 32, 2048, 64},
              {4, 32, 2048, 128},
              {1, 16, 8192, 128},
              {2, 16, 2048, 256}};

typedef struct work {
    const char *device;
    tern_tensor *q, *k, *v, *dy;
} work;

static tern_tensor *forward(const work *w)
{
    return tern_scaled_dot_product_attention(
        w->q, w->k, w->v, &(tern_scaled_dot_product_attention_options){.is_causal = true});
}

static void repeat_forward(void *user, long n)
{
    const work *w = user;
    TERN_NO_GRAD
        for (long i = 0; i < n; i++)
            TERN_SCOPE
                forward(w);
    tern_synchronize(w->device);
}

static void repeat_both(void *user, long n)
{
    const work *w = user;
    for (long i = 0; i < n; i++)
        TERN_SCOPE {
            tern_backward_with(forward(w), &(tern_backward_options){.gradient = w->dy});
            tern_set_grad(w->q, NULL);
            tern_set_grad(w->k, NULL);
            tern_set_grad(w->v, NULL);
        }
    tern_synchronize(w->device);
}

static tern_tensor *some(tern_shape shape, tern_dtype dtype)
{
    return tern_to_dtype(tern_randn(shape, TERN_F32, NULL), dtype);
}

static void measure(const char *device, tern_dtype dtype, size_t i, double seconds, int64_t shrink)
{
    const int64_t length = shapes[i].length / shrink;
    const tern_shape shape = TERN_SHAPE(shapes[i].n, shapes[i].heads, length, shapes[i].width);
    TERN_SCOPE {
        work w = {.device = device};
        TERN_NO_GRAD {
            w.q = some(shape, dtype), w.k = some(shape, dtype), w.v = some(shape, dtype);
            w.dy = some(shape, dtype);
        }
        tern_requires_grad_(w.q, true);
        tern_requires_grad_(w.k, true);
        tern_requires_grad_(w.v, true);
        repeat_both(&w, 1); /* which may compile */
        double y = clock_turn(repeat_forward, &w, seconds);
        double both = clock_turn(repeat_both, &w, seconds);
        double flops = 2 * (double)(shapes[i].n * shapes[i].heads * shapes[i].width) *
                       (double)length * (double)length; /* two products, half of each */
        printf("%s %s %lldx%lldx%lldx%lld: forward %.4f ms %.2f TFLOP/s, both %.4f ms %.2f "
               "TFLOP/s\n",
               device, tern_dtype_name(dtype), (long long)shapes[i].n, (long long)shapes[i].heads,
               (long long)length, (long long)shapes[i].width, 1e3 * y, 1e-12 * flops / y,
               1e3 * both, 3.5e-12 * flops / both);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    const tern_dtype dtype = argc > 2 && strcmp(argv[2], "f16") == 0 ? TERN_F16 : TERN_BF16;
    const double seconds = argc > 3 ? atof(argv[3]) : 0.5;
    const int64_t shrink = argc > 4 ? atoll(argv[4]) : 1;
    tern_set_default_device(device);
    for (size_t i = 0;
         i < sizeof shapes / sizeof *shapes && tern_last_status() == TERN_OK && shrink > 0; i++)
        measure(device, dtype, i, seconds, shrink);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "attention: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}

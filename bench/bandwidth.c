/* bandwidth.c -- how fast operations that do little arithmetic pass over memory.
 *
 *   bandwidth DEVICE
 *
 * A request on stdin: "NAME DTYPE MIB COLUMNS SECONDS", NAME of the table below, for a matrix x of
 * MIB MiB and COLUMNS columns; the answer: GB/s, of what must be read and written at least. */
#include "clock.h"
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

typedef struct work {
    const char *device;
    tern_tensor *(*pass)(tern_tensor *x, tern_tensor *y);
    tern_tensor *x, *y;
} work;

/* Same type, both dense: a copy of the driver's within the device. */
static tern_tensor *copy(tern_tensor *x, tern_tensor *y)
{
    return tern_copy_(y, x);
}

static tern_tensor *neg(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_neg(x);
}

static tern_tensor *gelu(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_gelu(x);
}

/* To the other of f32 and bf16. */
static tern_tensor *cast(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_to_dtype(x, tern_dtype_of(x) == TERN_F32 ? TERN_BF16 : TERN_F32);
}

static tern_tensor *transpose(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_contiguous(tern_t(x));
}

static tern_tensor *softmax(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_softmax(x, -1);
}

static tern_tensor *layer_norm(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_layer_norm(x, TERN_SHAPE(tern_size(x, 1)), NULL, NULL, 1e-5);
}

static tern_tensor *sum(tern_tensor *x, tern_tensor *y)
{
    (void)y;
    return tern_sum_dim(x, TERN_DIMS(1), false);
}

/* How often it passes over memory of x's size; cast adds what its result needs. */
static const struct {
    const char *name;
    int passes;
    tern_tensor *(*pass)(tern_tensor *x, tern_tensor *y);
} kinds[] = {
    {"copy", 2, copy},
    {"neg", 2, neg},
    {"add", 3, tern_add},
    {"gelu", 2, gelu},
    {"cast", 1, cast},
    {"softmax", 2, softmax},
    {"layer_norm", 2, layer_norm},
    {"sum", 1, sum},
    {"transpose", 2, transpose},
};

static void repeat(void *user, long n)
{
    work *w = user;
    TERN_NO_GRAD
        for (long i = 0; i < n; i++)
            TERN_SCOPE
                w->pass(w->x, w->y);
    tern_synchronize(w->device);
}

static tern_dtype dtype_named(const char *name)
{
    return strcmp(name, "f32") == 0 ? TERN_F32 : strcmp(name, "bf16") == 0 ? TERN_BF16 : TERN_F16;
}

static void measure(const char *device, size_t kind, tern_dtype dtype, int64_t bytes,
                    int64_t columns, double seconds)
{
    int64_t rows = bytes / (int64_t)tern_dtype_size(dtype) / columns;
    double moved = (double)bytes * kinds[kind].passes;
    if (kinds[kind].pass == cast)
        moved *= dtype == TERN_F32 ? 1.5 : 3;
    TERN_SCOPE {
        work w = {.device = device, .pass = kinds[kind].pass};
        TERN_NO_GRAD {
            w.x = tern_to_dtype(tern_rand(TERN_SHAPE(rows, columns), TERN_F32, NULL), dtype);
            w.y = tern_to_dtype(tern_rand(TERN_SHAPE(rows, columns), TERN_F32, NULL), dtype);
        }
        repeat(&w, 1); /* which may compile */
        printf("%.5g\n", 1e-9 * moved / clock_turn(repeat, &w, seconds));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    char name[16], dtype[8];
    long long megabytes, columns;
    double seconds;
    tern_set_default_device(device);
    while (tern_last_status() == TERN_OK &&
           scanf("%15s %7s %lld %lld %lf", name, dtype, &megabytes, &columns, &seconds) == 5)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(kinds[i].name, name) == 0)
                measure(device, i, dtype_named(dtype), megabytes << 20, columns, seconds);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "bandwidth: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}

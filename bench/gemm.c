/* gemm.c -- tern's matrix products: eight in a row, then a wait. Usage: gemm DEVICE [f16 | bf16] */
#include "gemm.h"
#include <string.h>
#include <tern/tern.h>

typedef struct product {
    tern_tensor *a, *b;
    const char *device;
} product;

static void repeat(void *user, long n)
{
    product *p = user;
    TERN_NO_GRAD
        for (long i = 0; i < n; i++) {
            for (int j = 0; j < PIPELINED; j++)
                TERN_SCOPE
                    tern_matmul(p->a, p->b);
            tern_synchronize(p->device);
        }
}

/* A matrix (rows, columns) of the numbers, rounded to dtype; stored transposed when asked for. */
static tern_tensor *matrix(int rows, int columns, int transposed, uint32_t seed, tern_dtype dtype)
{
    float *numbers = gemm_numbers((int64_t)rows * columns, seed);
    tern_tensor *x =
        tern_from_data(numbers, transposed ? TERN_SHAPE(columns, rows) : TERN_SHAPE(rows, columns),
                       TERN_F32, NULL);
    free(numbers);
    x = tern_to_dtype(x, dtype);
    return transposed ? tern_t(x) : x;
}

static void measure(const char *device, tern_dtype dtype, const gemm_shape *s, double seconds)
{
    TERN_SCOPE {
        product p = {matrix(s->m, s->k, s->ta, 1, dtype), matrix(s->k, s->n, s->tb, 2, dtype),
                     device};
        float *c = gemm_numbers((int64_t)s->m * s->n, 3);
        tern_tensor *out = tern_to_dtype(tern_matmul(p.a, p.b), TERN_F32);
        if (c && tern_copy_to_host(out, c, sizeof *c * (size_t)s->m * (size_t)s->n) == TERN_OK)
            gemm_answer(s, clock_turn(repeat, &p, seconds) / PIPELINED, c);
        free(c);
    }
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "opencl:0";
    const char *type = argc > 2 ? argv[2] : "f32";
    tern_dtype dtype = strcmp(type, "f16") == 0    ? TERN_F16
                       : strcmp(type, "bf16") == 0 ? TERN_BF16
                                                   : TERN_F32;
    gemm_shape s;
    double seconds;
    tern_set_default_device(device);
    while (tern_last_status() == TERN_OK && gemm_request(&s, &seconds))
        measure(device, dtype, &s, seconds);
    if (tern_last_status() != TERN_OK) {
        fprintf(stderr, "gemm: %s\n", tern_last_error());
        return 1;
    }
    return 0;
}

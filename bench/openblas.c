/* openblas.c -- the same products by OpenBLAS, in a process of its own: its threads go on spinning
 * after a call and would starve any others. Says "none" and leaves when it is not installed. */
#include "gemm.h"
#include <dlfcn.h>

typedef void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);

typedef struct product {
    sgemm multiply;
    gemm_shape s;
    float *a, *b, *c;
} product;

static void repeat(void *user, long n)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    product *p = user;
    const gemm_shape *s = &p->s;
    for (long i = 0; i < n * PIPELINED; i++)
        p->multiply(ROW_MAJOR, s->ta ? TRANSPOSED : PLAIN, s->tb ? TRANSPOSED : PLAIN, s->m, s->n,
                    s->k, 1, p->a, s->ta ? s->m : s->k, p->b, s->tb ? s->k : s->n, 0, p->c, s->n);
}

int main(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    product p = {0};
    if (library)
        p.multiply = (sgemm)(uintptr_t)dlsym(library, "cblas_sgemm");
    if (!p.multiply) {
        puts("none");
        return 0;
    }
    double seconds;
    while (gemm_request(&p.s, &seconds)) {
        p.a = gemm_numbers((int64_t)p.s.m * p.s.k, 1);
        p.b = gemm_numbers((int64_t)p.s.k * p.s.n, 2);
        p.c = gemm_numbers((int64_t)p.s.m * p.s.n, 3);
        if (p.a && p.b && p.c) {
            double spent = clock_turn(repeat, &p, seconds) / PIPELINED;
            gemm_answer(&p.s, spent, p.c);
        }
        free(p.a);
        free(p.b);
        free(p.c);
    }
    return 0;
}

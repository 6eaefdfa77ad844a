/* flops.c -- multiplications and additions of the operations that are made of little else. */
#include "profile/profile.h"
#include "tensor/op.h"
#include <string.h>

static int64_t last(const tern_tensor *x, int k)
{
    return x && x->ndim >= k ? x->shape[x->ndim - k] : 1;
}

/* y (..., n) = x (..., k) w' */
static double of_product(const tern_call *call)
{
    return 2.0 * (double)tern_numel(call->out[0]) * (double)last(call->in[0], 1);
}

/* weight (out, in / groups, kernel...): each element of y is a sum of in / groups kernel products; and with weight (in,
 * out / groups, kernel...) each of x goes to out / groups kernel elements of y. */
static double of_window(const tern_tensor *w, const tern_tensor *x)
{
    double each = w && w->ndim && w->shape[0] ? (double)(w->numel / w->shape[0]) : 0;
    return 2.0 * (double)tern_numel(x) * each;
}
static double of_convolution(const tern_call *call)
{
    return of_window(call->in[1], call->out[0]);
}
static double of_transposed(const tern_call *call)
{
    return of_window(call->in[1], call->in[0]);
}

/* q k' and its product with v. */
static double of_attention(const tern_call *call)
{
    const tern_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2];
    double rows = last(q, 1) ? (double)(q->numel / last(q, 1)) : 0;
    return 2.0 * rows * (double)last(k, 2) * (double)(last(q, 1) + last(v, 1));
}

double tern_profile_flops(const tern_call *call)
{
    static const struct {
        const char *name;
        int inputs;
        double (*count)(const tern_call *call);
    } table[] = {{"linear", 2, of_product},
                 {"matmul", 2, of_product},
                 {"convolution", 2, of_convolution},
                 {"conv_transpose", 2, of_transposed},
                 {"scaled_dot_product_attention", 3, of_attention}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (call->n_in >= table[i].inputs && strcmp(call->op->name, table[i].name) == 0)
            return table[i].count(call);
    return 0;
}

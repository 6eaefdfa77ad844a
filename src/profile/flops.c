/* flops.c -- counts the multiplications and additions of matrix products, convolutions, attention
 * and recurrent layers. */
#include "profile/profile.h"
#include "tensor/op.h"
#include <string.h>

enum { AS_ROW = 1, AS_COLUMN = 2 }; /* values of insert and drop of a product's attributes */

static int64_t last(const tern_tensor *x, int k)
{
    return x && x->ndim >= k ? x->shape[x->ndim - k] : 1;
}

/* Returns the count for x, each of whose elements is multiplied by `others` elements. */
static double times(const tern_tensor *x, int64_t others)
{
    return 2.0 * (double)tern_numel(x) * (double)others;
}

/* y (..., n) = x (..., k) w' */
static double of_linear(const tern_call *call)
{
    return times(call->out[0], last(call->in[0], 1));
}
/* Products of n and k: dy (..., n) with w (n, k), or dy with x (..., k). */
static double of_linear_gradient(const tern_call *call)
{
    return times(call->in[0], last(call->in[1], 1));
}

/* y = op(x) op(w). The attributes give the dim of x that is summed, and whether the dims before it
 * are summed too: each element of x is then multiplied by a row of w. */
static double of_matrices(const tern_call *call, const tern_tensor *x)
{
    const tern_traced_call traced = {.names = call->op->names, .attributes = call->attributes};
    const tern_tensor *y = call->out[0];
    int64_t insert[TERN_MAX_DIMS], transpose[TERN_MAX_DIMS], drop[TERN_MAX_DIMS],
        sum[TERN_MAX_DIMS];
    if (tern_traced_ints(&traced, "insert", insert) < 0) /* another function has this name */
        return 0;
    tern_traced_ints(&traced, "transpose", transpose);
    tern_traced_ints(&traced, "drop", drop);
    tern_traced_ints(&traced, "sum", sum);
    if (*sum)
        return times(x, *drop & AS_COLUMN ? 1 : last(y, 1));
    if (*insert & (*transpose ? AS_ROW : AS_COLUMN))
        return times(y, 1);
    return times(y, last(x, *transpose && !*insert ? 2 : 1));
}
static double of_product(const tern_call *call)
{
    return of_matrices(call, call->in[0]);
}
static double of_added_product(const tern_call *call)
{
    return of_matrices(call, call->in[1]);
}

/* With weight (out, in / groups, kernel...) each element of y is a sum of in / groups kernel
 * products; with weight (in, out / groups, kernel...) each element of x is added to out / groups
 * kernel elements of y. */
static double of_window(const tern_tensor *w, const tern_tensor *x)
{
    return times(x, w && w->ndim && w->shape[0] ? w->numel / w->shape[0] : 0);
}
static double of_convolution(const tern_call *call)
{
    return of_window(call->in[1], call->out[0]);
}
static double of_transposed(const tern_call *call)
{
    return of_window(call->in[1], call->in[0]);
}
static double of_weight(const tern_call *call)
{
    return of_window(call->out[0], call->in[1]);
}

/* The products q k' and of the weights with v; masked elements are counted too. */
static double scores(const tern_call *call, int64_t of_keys, int64_t of_values)
{
    const tern_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2];
    int64_t rows = last(q, 1) ? q->numel / last(q, 1) : 0;
    return 2.0 * (double)rows * (double)last(k, 2) *
           (double)(of_keys * last(q, 1) + of_values * last(v, 1));
}
static double of_attention(const tern_call *call)
{
    return scores(call, 1, 1);
}
/* The products for dq, dk, dv and the gradient of the weights, and the weights again if the forward
 * did not save them. */
static double of_attention_gradient(const tern_call *call)
{
    enum { WEIGHTS = 7 };
    return scores(call, tern_numel(call->in[WEIGHTS]) ? 2 : 3, 2);
}

/* The gates of x (rows, in) by w_ih (gates, in), and those of the states by w_hh. */
static double of_layer(const tern_call *call)
{
    const int64_t rows = last(call->in[0], 2);
    return times(call->in[1], rows) + times(call->in[2], rows);
}
/* The backward through w_hh: dy (rows, hidden) and w_hh, which is input 3. */
static double of_steps_back(const tern_call *call)
{
    return times(call->in[3], last(call->in[0], 2));
}

double tern_profile_flops(const tern_call *call)
{
    static const struct {
        const char *name;
        int inputs; /* the least number, as a function of a program may have the name */
        double (*count)(const tern_call *call);
    } table[] = {{"linear", 2, of_linear},
                 {"linear_packed", 4, of_linear},
                 {"linear_gradient", 2, of_linear_gradient},
                 {"linear_gelu_gradient", 3, of_linear_gradient},
                 {"matmul", 2, of_product},
                 {"addmm", 3, of_added_product},
                 {"addmv", 3, of_added_product},
                 {"baddbmm", 3, of_added_product},
                 {"addbmm", 3, of_added_product},
                 {"convolution", 2, of_convolution},
                 {"convolution_weight", 2, of_weight},
                 {"conv_transpose", 2, of_transposed},
                 {"scaled_dot_product_attention", 3, of_attention},
                 {"scaled_dot_product_attention_gradient", 9, of_attention_gradient},
                 {"lstm", 7, of_layer},
                 {"gru", 7, of_layer},
                 {"rnn_tanh", 7, of_layer},
                 {"rnn_relu", 7, of_layer},
                 {"lstm_gradient", 8, of_steps_back},
                 {"gru_gradient", 8, of_steps_back},
                 {"tanh_gradient", 8, of_steps_back},
                 {"relu_gradient", 8, of_steps_back}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (call->n_in >= table[i].inputs && strcmp(call->op->name, table[i].name) == 0)
            return table[i].count(call);
    return 0;
}

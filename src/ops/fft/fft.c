/* fft.c -- discrete Fourier transforms of rows by the factors of their length (Stockham's order).
 *
 * The transform of `have` inputs, padded with zeros to n, of which `want` outputs are kept, is a
 * matrix; the gradient is its transpose, which is the transform with the opposite sign, with `have`
 * and `want` exchanged. */
#include "ops/fft/fft.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

enum { FACTORS = 64 };

static bool is_real(tern_fft_kind kind)
{
    return kind == TERN_FFT_REALS;
}

/* Sets the factors of n and returns their number. Fours come first, as they need the fewest
 * additions. The only factor of a prime is itself, of 1 it is 1. */
static int factors_of(int64_t n, int64_t factors[FACTORS])
{
    int count = 0;
    for (; n % 4 == 0; n /= 4)
        factors[count++] = 4;
    for (int64_t f = 2; f * f <= n; f++)
        for (; n % f == 0; n /= f)
            factors[count++] = f;
    if (n > 1 || count == 0)
        factors[count++] = n;
    return count;
}

int64_t tern_fft_largest_factor(int64_t n)
{
    int64_t factors[FACTORS], largest = 0;
    int count = factors_of(n, factors);
    for (int i = 0; i < count; i++)
        largest = factors[i] > largest ? factors[i] : largest;
    return largest;
}

/* Returns the shape of x (..., n[, 2]) with the last dim (before the pairs) of the output. */
static tern_shape shape_with(const tern_tensor *x, const tern_fft_rule *rule)
{
    tern_shape shape = tern_shape_of(x);
    int at = shape.ndim - 1 - !is_real(rule->in);
    shape.dims[at] = rule->want;
    shape.ndim = at + 1;
    if (!is_real(rule->out))
        shape.dims[shape.ndim++] = 2;
    return shape;
}

static tern_status infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype,
                                    .shape = shape_with(call->in[0], call->attributes)};
    return TERN_OK;
}

static tern_tensor *scratch(const tern_call *call, int64_t n, tern_dtype dtype)
{
    return tern_tensor_new(&(tern_shape){1, {n}}, dtype, call->place, "tern_fft");
}

/* Computes the n-th roots of unity. */
static tern_status make_roots(const tern_call *call, tern_tensor *roots)
{
    static const tern_kernel_ref kernel = {"fft", "fft_roots"};
    const tern_fft_rule *rule = call->attributes;
    return TERN_LAUNCH(call->place, &kernel, roots->dtype, tern_items_of(rule->n, 40),
                       tern_arg_out(roots), tern_arg_i64(rule->n), tern_arg_i32(rule->sign));
}

static tern_status one_factor(const tern_call *call, const tern_fft_shape *s, tern_tensor *y,
                              tern_tensor *x, tern_tensor *roots, double scale)
{
    static const tern_kernel_ref kernel = {"fft", "fft_factor"};
    return TERN_LAUNCH(call->place, &kernel, y->dtype,
                       tern_items_of(s->rows * s->n, 10 * s->factor), tern_arg_out(y),
                       tern_arg_in(x), tern_arg_in(roots), TERN_ARG_STRUCT(tern_fft_shape, s),
                       tern_arg_real(y->dtype, scale));
}

/* Applies all factors, each from one of two buffers to the other. */
static tern_status all_factors(const tern_call *call, int64_t rows, tern_tensor *roots,
                               tern_tensor *const space[2], const int64_t *factors, int count)
{
    const tern_fft_rule *rule = call->attributes;
    tern_fft_shape s = {.rows = rows, .n = rule->n, .stride = 1};
    for (int i = 0; i < count; i++, s.stride *= s.factor) {
        bool first = i == 0, last = i == count - 1;
        s.factor = factors[i];
        s.groups = s.n / s.stride / s.factor;
        s.have = first ? rule->have : s.n;
        s.want = last ? rule->want : s.n;
        s.real_in = first && is_real(rule->in);
        s.half_in = first && rule->in == TERN_FFT_HALF;
        s.real_out = last && is_real(rule->out);
        s.half_out = last && rule->out == TERN_FFT_HALF;
        tern_tensor *x = first ? call->in[0] : space[(i + 1) % 2];
        tern_tensor *y = last ? call->out[0] : space[i % 2];
        TERN_TRY(one_factor(call, &s, y, x, roots, last ? rule->scale : 1));
    }
    return TERN_OK;
}

static tern_status forward(tern_call *call)
{
    const tern_fft_rule *rule = call->attributes;
    const tern_tensor *x = call->in[0];
    int64_t factors[FACTORS], rows = x->numel / (is_real(rule->in) ? 1 : 2) / rule->have;
    int count = factors_of(rule->n, factors);
    if (call->out[0]->numel == 0)
        return TERN_OK;
    tern_tensor *roots = scratch(call, 2 * rule->n, x->dtype), *space[2] = {NULL, NULL};
    tern_status status = roots ? make_roots(call, roots) : tern_last_status();
    for (int i = 0; i < 2 && i < count - 1 && status == TERN_OK; i++)
        if (!(space[i] = scratch(call, 2 * rows * rule->n, x->dtype)))
            status = tern_last_status();
    if (status == TERN_OK)
        status = all_factors(call, rows, roots, space, factors, count);
    tern_release(space[0]);
    tern_release(space[1]);
    tern_release(roots);
    return status;
}

static tern_status backward(tern_gradient *g)
{
    const tern_fft_rule *rule = g->attributes;
    tern_fft_rule back = {.in = rule->out,
                          .out = rule->in,
                          .sign = -rule->sign,
                          .n = rule->n,
                          .have = rule->want,
                          .want = rule->have,
                          .scale = rule->scale};
    g->din[0] = tern_fft_by_factors(g->dout[0], &back);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op fft_op = {.name = "fft",
                               .cast = TERN_CAST_FLOAT32,
                               .infer = infer,
                               .forward = forward,
                               .backward = backward};

tern_tensor *tern_fft_by_factors(tern_tensor *x, const tern_fft_rule *rule)
{
    x = tern_contiguous(x);
    return x ? tern_apply(&fft_op, &x, 1, rule, sizeof *rule) : NULL;
}

/* gradients.c -- the gradients of a case, and those of them, in float64. */
#include "runner.h"
#include <stdlib.h>

/* How the gradients lie that come in; of those that repeat a number or a row, `dense` are copies. */
typedef enum repeated { NOTHING, NUMBER, ROW } repeated;
static struct {
    parity_layout layout;
    repeated repeats;
    bool dense;
} how;

/* What result k is multiplied with before it is summed up; generate.py has the same. */
static tern_tensor *weights_for(tern_tensor *x, int k)
{
    int64_t n = tern_numel(x);
    double *data = malloc(sizeof *data * (size_t)n + 1);
    for (int64_t i = 0; data && i < n; i++)
        data[i] = (double)((i * 7 + k * 3) % 11 - 5) / 4 + 0.125;
    tern_tensor *w = tern_from_data(data, tern_shape_of(x), TERN_F64, run.device);
    free(data);
    w = tern_to_dtype(w, tern_dtype_of(x));
    for (int d = 0; how.repeats && d < tern_dim(w) - (how.repeats == ROW); d++)
        w = tern_size(w, d) > 0 ? tern_narrow(w, d, 0, 1) : w;
    w = tern_expand(w, tern_shape_of(x));
    return how.dense ? tern_clone(w) : how.repeats ? w : parity_lay_out(w, how.layout);
}

typedef enum order { FIRST, FIRST_OF_TWO, SECOND } order;

/* Gradients of the sum of root[i] * weight[i] by the tensors wanted, each of which has one. Of second derivatives those
 * that are not there are zero. */
static bool differentiate(tern_tensor **root, int n, tern_tensor **wanted, int n_wanted,
                          tern_tensor **grad, order which, char *text, size_t size)
{
    tern_tensor *weight[OUTS], *differs[OUTS];
    int roots = 0;
    for (int k = 0; k < n; k++) {
        if (!tern_requires_grad(root[k]))
            continue;
        weight[roots] = weights_for(root[k], k);
        differs[roots++] = root[k];
    }
    tern_autograd_grad_options options = {
        .gradients = weight, .allow_unused = true, .create_graph = which == FIRST_OF_TWO};
    if (roots == 0 ||
        tern_autograd_grad(differs, roots, wanted, n_wanted, grad, &options) != TERN_OK) {
        snprintf(text, size, "no gradient: %s", roots ? tern_last_error() : "nothing is recorded");
        return false;
    }
    for (int i = 0; i < n_wanted; i++)
        if (!grad[i] && which == SECOND) {
            grad[i] = tern_zeros_like(wanted[i]);
        } else if (!grad[i]) {
            snprintf(text, size, "gradient %d of those wanted is not there", i);
            return false;
        }
    return true;
}

static tern_tensor *argument_of(const tern_value *values, const case_result *g)
{
    const tern_value *v = &values[g->argument];
    return g->item < 0 ? v->as.tensor : v->as.tensors[g->item];
}

static bool check_gradients(const parity_file *file, const char *what, const case_result *expected,
                            int n, tern_tensor **grad, char *text, size_t size)
{
    for (int i = 0; i < n; i++)
        if (!parity_check(file, what, &expected[i], expected[i].argument, grad[i], text, size))
            return false;
    return true;
}

/* The gradients, or those of them, in float64. */
static bool derivative(const parity_file *file, const parity_case *c, bool second, char *text,
                       size_t size)
{
    tern_value values[CASE_ARGUMENTS];
    tern_tensor *list[OUTS], *out[OUTS], *wanted[CASE_RESULTS], *grad[CASE_RESULTS],
        *grad2[CASE_RESULTS];
    int n = parity_values(file, c, TERN_F64, run.device, run.layout, values, list), n_out;
    for (int i = 0; i < c->n_grads; i++)
        wanted[i] = tern_requires_grad_(argument_of(values, &c->grad[i]), true);
    if (!parity_call(file, values, n, out, &n_out, text, size) ||
        !differentiate(out, n_out, wanted, c->n_grads, grad, second ? FIRST_OF_TWO : FIRST, text,
                       size))
        return false;
    if (!second)
        return check_gradients(file, "gradient of argument", c->grad, c->n_grads, grad, text, size);
    bool depends = false; /* else PyTorch gives zeros */
    for (int i = 0; i < c->n_grads2; i++) {
        wanted[i] = argument_of(values, &c->grad2[i]);
        grad2[i] = tern_zeros_like(wanted[i]);
    }
    for (int i = 0; i < c->n_grads; i++)
        depends |= tern_requires_grad(grad[i]);
    return (!depends ||
            differentiate(grad, c->n_grads, wanted, c->n_grads2, grad2, SECOND, text, size)) &&
           check_gradients(file, "second derivative of argument", c->grad2, c->n_grads2, grad2,
                           text, size);
}

static bool derivative_by(const parity_file *file, const parity_case *c, parity_layout layout,
                          bool second, char *text, size_t size)
{
    how.layout = layout;
    return derivative(file, c, second, text, size);
}

bool parity_gradient(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    return derivative_by(file, c, run.layout, false, text, size);
}

bool parity_second(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    return derivative_by(file, c, run.layout, true, text, size);
}

/* What follows a sum hands a row on for all rows, or a number for all: the gradients are those by the same numbers
 * one after the other. */
static bool same_as_dense(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    tern_value values[CASE_ARGUMENTS];
    tern_tensor *list[OUTS], *out[OUTS], *wanted[CASE_RESULTS], *grad[2][CASE_RESULTS];
    int n_out;
    for (int dense = 0; dense < 2; dense++) {
        int n = parity_values(file, c, TERN_F64, run.device, run.layout, values, list);
        for (int i = 0; i < c->n_grads; i++)
            wanted[i] = tern_requires_grad_(argument_of(values, &c->grad[i]), true);
        how.dense = dense;
        if (!parity_call(file, values, n, out, &n_out, text, size) ||
            !differentiate(out, n_out, wanted, c->n_grads, grad[dense], FIRST, text, size))
            return false;
    }
    for (int i = 0; i < c->n_grads; i++)
        if (!tern_allclose(grad[0][i], grad[1][i], 1e-9, 1e-9, true)) {
            snprintf(text, size, "gradient of argument %d: another by an expanded %s",
                     c->grad[i].argument, how.repeats == ROW ? "row" : "number");
            return false;
        }
    return true;
}

bool parity_incoming(const parity_file *file, const parity_case *c, char *text, size_t size)
{
    bool same = true;
    for (int layout = PARITY_TRANSPOSED; layout < PARITY_INCOMING && same; layout++)
        same = derivative_by(file, c, (parity_layout)layout, false, text, size);
    for (how.repeats = NUMBER; how.repeats <= ROW && same; how.repeats++)
        same = same_as_dense(file, c, text, size);
    how.repeats = NOTHING;
    how.dense = false;
    return same;
}

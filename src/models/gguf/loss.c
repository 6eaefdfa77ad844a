/* loss.c -- cross entropy after a head of blocks without storing all logits: tiles of the head's
 * rows are computed once in forward, for the log-sum-exp and the label's logit, and again in
 * backward for the gradient of x. */
#include "models/gguf/layer.h"
#include <stdlib.h>
#include <string.h>

/* in: x (M, columns), blocks, labels (M), -100 for ignored tokens. */
typedef struct tile {
    tern_tensor *weight, *logits; /* shapes (n, columns), (M, n) */
    tern_tensor *of_label;        /* (M, n): 1 where the column is the row's label */
} tile;

static tern_status compute_tile(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks,
                                tern_tensor *labels, int64_t at, int64_t n, tile *t)
{
    t->weight = gguf_decode(l, blocks, at, n);
    t->logits = t->weight ? tern_linear(x, t->weight, NULL) : NULL;
    tern_tensor *columns =
        tern_arange_scalar(tern_scalar_int(at), tern_scalar_int(at + n), tern_scalar_int(1),
                           tern_dtype_of(labels), tern_device(labels));
    t->of_label =
        columns ? tern_to_dtype(tern_eq(tern_unsqueeze(labels, 1), columns), TERN_F32) : NULL;
    return t->logits && t->of_label ? TERN_OK : tern_last_status();
}

static tern_tensor *counted(tern_tensor *labels)
{
    return tern_to_dtype(tern_ne_scalar(labels, tern_scalar_int(-100)), TERN_F32);
}

/* Computes the log-sum-exp of each row's logits, and the logit of its label. */
static tern_status sum_up(const gguf_layer *l, tern_tensor *const *in, tern_tensor **lse,
                          tern_tensor **own)
{
    const int64_t once = gguf_rows_of_tile(l);
    tern_status status = TERN_OK;
    for (int64_t at = 0, n; at < l->rows && status == TERN_OK; at += n)
        TERN_SCOPE {
            tile t;
            n = at + once < l->rows ? once : l->rows - at;
            status = compute_tile(l, in[0], in[1], in[2], at, n, &t);
            if (status == TERN_OK) {
                tern_tensor *sum = tern_logsumexp(t.logits, TERN_DIMS(1), false);
                tern_tensor *picked =
                    tern_sum_dim(tern_mul(t.logits, t.of_label), TERN_DIMS(1), false);
                *lse = at ? tern_logaddexp(*lse, sum) : sum;
                *own = at ? tern_add(*own, picked) : picked;
                status = *lse && *own ? TERN_OK : tern_last_status();
                *lse = status == TERN_OK ? tern_escape(*lse) : NULL;
                *own = status == TERN_OK ? tern_escape(*own) : NULL;
            }
        }
    return status;
}

/* Fails if a label is neither a row of the head nor -100; checks labels on the cpu only. */
static tern_status check_labels(const gguf_layer *l, tern_tensor *labels)
{
    tern_tensor *here = tern_contiguous(tern_to_dtype(labels, TERN_I64));
    if (!here || strcmp(tern_device(labels), "cpu") != 0)
        return here ? TERN_OK : tern_last_status();
    const int64_t *list = tern_data(here), n = tern_numel(here);
    for (int64_t i = 0; i < n; i++)
        if (list[i] != -100 && (list[i] < 0 || list[i] >= l->rows))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_models_loss: label %lld is out of range: 0 to %lld, or -100, is "
                             "expected",
                             (long long)list[i], (long long)l->rows - 1);
    return TERN_OK;
}

/* Sets the loss of an invalid label to NaN: on other devices labels are not checked on the host. */
static tern_tensor *known_alone(const gguf_layer *l, tern_tensor *labels, tern_tensor *own)
{
    tern_tensor *known = tern_logical_and(tern_ge_scalar(labels, tern_scalar_int(0)),
                                          tern_lt_scalar(labels, tern_scalar_int(l->rows)));
    known = tern_logical_or(known, tern_eq_scalar(labels, tern_scalar_int(-100)));
    return tern_where_scalar(known, own, tern_scalar_real(NAN));
}

static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    tern_tensor *lse = NULL, *own = NULL;
    (void)k;
    TRY(check_labels(tern_function_data(f), in[2]));
    TRY(sum_up(tern_function_data(f), in, &lse, &own));
    own = known_alone(tern_function_data(f), in[2], own);
    tern_tensor *count = counted(in[2]);
    tern_tensor *all = tern_sum(count);
    out[0] = tern_div(tern_sum(tern_mul(tern_sub(lse, own), count)), all);
    for (int i = 0; i < n; i++)
        TRY(tern_function_save(f, in[i]));
    TRY(tern_function_save(f, lse));
    return out[0] ? tern_function_save(f, all) : tern_last_status();
}

/* The gradient of a row's logits is (softmax - one_hot(label)) / (number of rows that are not
 * ignored). */
static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    const gguf_layer *l = tern_function_data(f);
    const int64_t once = gguf_rows_of_tile(l);
    tern_tensor *in[3], *dx = NULL;
    (void)k;
    for (int i = 0; i < n; i++)
        grad_in[i] = NULL;
    if (!grad_out[0] || !tern_function_needs_grad(f, 0))
        return TERN_OK;
    for (int i = 0; i < 3; i++)
        in[i] = tern_function_saved(f, i);
    tern_tensor *lse = tern_unsqueeze(tern_function_saved(f, 3), 1);
    tern_tensor *factor =
        tern_mul(counted(in[2]), tern_div(grad_out[0], tern_function_saved(f, 4)));
    factor = factor ? tern_unsqueeze(factor, 1) : NULL;
    tern_status status = factor && lse ? TERN_OK : tern_last_status();
    for (int64_t at = 0, some; at < l->rows && status == TERN_OK; at += some)
        TERN_SCOPE {
            tile t;
            some = at + once < l->rows ? once : l->rows - at;
            status = compute_tile(l, in[0], in[1], in[2], at, some, &t);
            tern_tensor *p = status == TERN_OK ? tern_exp(tern_sub(t.logits, lse)) : NULL;
            p = p ? tern_mul(tern_sub(p, t.of_label), factor) : NULL;
            tern_tensor *part = p ? tern_matmul(p, t.weight) : NULL;
            if (part && dx)
                part = tern_add_(dx, part);
            else if (part)
                dx = part = tern_escape(part);
            status = part ? TERN_OK : tern_last_status();
        }
    grad_in[0] = dx;
    return status;
}

static const tern_function_type loss = {"CrossEntropyGGUF", forward, backward, free, {0}};

tern_tensor *gguf_cross_entropy(tern_module *head, tern_tensor *x, tern_tensor *labels)
{
    gguf_layer *copy = malloc(sizeof *copy);
    if (!copy)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_models_loss: no memory");
    *copy = *(const gguf_layer *)tern_nn_data(head);
    x = tern_to_dtype(tern_reshape(x, TERN_SHAPE(-1, copy->columns)), TERN_F32);
    tern_tensor *in[3] = {x, tern_nn_buffer(head, "weight"), labels}, *y = NULL;
    if (!x) {
        free(copy);
        return NULL;
    }
    return tern_function_apply(&loss, copy, in, 3, &y, 1) == TERN_OK ? y : NULL;
}

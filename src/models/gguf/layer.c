/* layer.c -- linear layers and embeddings over the blocks of a GGUF file: products decode some rows
 * at a time, forward and backward; an embedding decodes the requested rows. The weights are not
 * trained, but gradients of inputs are computed. */
#include "models/gguf/layer.h"
#include <stdlib.h>
#include <string.h>

static const char linear_name[] = "LinearGGUF", embedding_name[] = "EmbeddingGGUF";

enum { TILE = 1 << 20 }; /* elements of a weight that are decoded to float32 at a time */

static bool is_named(tern_module *m, const char *name)
{
    const char *own = m ? tern_nn_name(m) : NULL;
    return own && strcmp(own, name) == 0;
}

bool gguf_is_linear(tern_module *m)
{
    return is_named(m, linear_name);
}

bool gguf_is_layer(tern_module *m)
{
    return gguf_is_linear(m) || is_named(m, embedding_name);
}

tern_tensor *gguf_weight(tern_module *m)
{
    const gguf_layer *l = tern_nn_data(m);
    return gguf_decode(l, tern_nn_buffer(m, "weight"), 0, l->rows);
}

/* ---- products ------------------------------------------------------------------------------ */

int64_t gguf_rows_of_tile(const gguf_layer *l)
{
    int64_t n = TILE / (l->columns ? l->columns : 1);
    n = n < 1 ? 1 : n;
    return n < l->rows ? n : l->rows;
}

/* Returns x W^T, in float32. */
static tern_tensor *multiply(const gguf_layer *l, tern_tensor *x, tern_tensor *blocks)
{
    tern_shape shape = tern_shape_of(x);
    const int64_t once = gguf_rows_of_tile(l);
    tern_tensor *given = tern_to_dtype(x, TERN_F32), *y = NULL;
    if (shape.ndim < 1 || shape.dims[shape.ndim - 1] != l->columns)
        return tern_fail_null(
            TERN_ERR_SHAPE, "%s: x ends in %lld, and %lld inputs are expected", linear_name,
            (long long)(shape.ndim ? shape.dims[shape.ndim - 1] : -1), (long long)l->columns);
    if (gguf_is_skinny(l, x, blocks))
        return gguf_multiply_skinny(l, x, blocks);
    shape.dims[shape.ndim - 1] = l->rows;
    if (once == l->rows) {
        tern_tensor *w = gguf_decode(l, blocks, 0, l->rows);
        return w ? tern_to_dtype(tern_linear(given, w, NULL), tern_dtype_of(x)) : NULL;
    }
    y = given ? tern_empty(shape, TERN_F32, tern_device(x)) : NULL;
    tern_status status = y ? TERN_OK : tern_last_status();
    for (int64_t at = 0, n; at < l->rows && status == TERN_OK; at += n)
        TERN_SCOPE {
            n = at + once < l->rows ? once : l->rows - at;
            tern_tensor *w = gguf_decode(l, blocks, at, n);
            tern_tensor *part = w ? tern_linear(given, w, NULL) : NULL;
            if (!part || !tern_copy_(tern_narrow(y, -1, at, n), part))
                status = tern_last_status();
        }
    return status == TERN_OK ? tern_to_dtype(y, tern_dtype_of(x)) : NULL;
}

/* Returns dy W, in float32. */
static tern_tensor *multiply_back(const gguf_layer *l, tern_tensor *dy, tern_tensor *blocks)
{
    const int64_t once = gguf_rows_of_tile(l);
    tern_tensor *given = tern_to_dtype(dy, TERN_F32), *dx = NULL;
    tern_status status = given ? TERN_OK : tern_last_status();
    for (int64_t at = 0, n; at < l->rows && status == TERN_OK; at += n)
        TERN_SCOPE {
            n = at + once < l->rows ? once : l->rows - at;
            tern_tensor *w = gguf_decode(l, blocks, at, n);
            tern_tensor *part = w ? tern_matmul(tern_narrow(given, -1, at, n), w) : NULL;
            if (part && dx)
                part = tern_add_(dx, part);
            else if (part)
                dx = part = tern_escape(part);
            status = part ? TERN_OK : tern_last_status();
        }
    return status == TERN_OK ? tern_to_dtype(dx, tern_dtype_of(dy)) : NULL;
}

static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)n, (void)k;
    TRY(tern_function_save(f, in[1]));
    out[0] = multiply(tern_function_data(f), in[0], in[1]);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    (void)k, (void)n;
    grad_in[0] = grad_in[1] = NULL;
    if (!grad_out[0] || !tern_function_needs_grad(f, 0))
        return TERN_OK;
    grad_in[0] = multiply_back(tern_function_data(f), grad_out[0], tern_function_saved(f, 0));
    return grad_in[0] ? TERN_OK : tern_last_status();
}

static const tern_function_type product = {"MatMulGGUF", forward, backward, free, {0}};

static tern_status call_linear(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                               int k)
{
    const gguf_layer *l = tern_nn_data(self);
    tern_tensor *given[2] = {n == 1 && k == 1 ? in[0] : NULL, tern_nn_buffer(self, "weight")};
    if (!given[0] || !given[1])
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s takes one tensor and gives one",
                         linear_name);
    if (tern_is_grad_enabled() && tern_requires_grad(given[0])) {
        gguf_layer *copy = malloc(sizeof *copy);
        if (!copy)
            return tern_fail(TERN_ERR_MEMORY, "%s: no memory", linear_name);
        *copy = *l;
        TRY(tern_function_apply(&product, copy, given, 2, out, 1));
    } else
        out[0] = multiply(l, given[0], given[1]);
    tern_tensor *bias = tern_nn_parameter_at(self, 0);
    if (bias && out[0])
        out[0] = tern_add(out[0], tern_to_dtype(bias, tern_dtype_of(out[0])));
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- embeddings ---------------------------------------------------------------------------- */

static tern_status call_embedding(tern_module *self, tern_tensor *const *in, int n,
                                  tern_tensor **out, int k)
{
    gguf_layer some = *(const gguf_layer *)tern_nn_data(self);
    if (n != 1 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: %s takes one tensor and gives one",
                         embedding_name);
    tern_shape shape = tern_shape_of(in[0]);
    tern_tensor *ids = tern_reshape(in[0], TERN_SHAPE(-1));
    tern_tensor *rows = ids ? tern_index_select(tern_nn_buffer(self, "weight"), 0, ids) : NULL;
    some.rows = ids ? tern_numel(ids) : 0;
    tern_tensor *x = rows ? gguf_decode(&some, rows, 0, some.rows) : NULL;
    if (!x || shape.ndim >= TERN_MAX_DIMS)
        return x ? tern_fail(TERN_ERR_SHAPE, "%s: ids of %d dims", embedding_name, shape.ndim)
                 : tern_last_status();
    shape.dims[shape.ndim++] = some.columns;
    out[0] = tern_view(x, shape);
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- creation ------------------------------------------------------------------------------ */

static tern_module *make(const char *name, tern_module_call call, gguf_layer l, tern_tensor *blocks)
{
    tern_module *m = blocks ? models_module(name, call, &l, sizeof l) : NULL;
    if (m && tern_nn_add_buffer(m, "weight", blocks))
        return m;
    tern_nn_free(m);
    return NULL;
}

tern_module *gguf_linear(gguf_layer l, tern_tensor *blocks, tern_tensor *bias)
{
    bool trained = bias && tern_requires_grad(bias);
    tern_module *m = make(linear_name, call_linear, l, blocks);
    if (m && ((!tern_nn_add_parameter(m, "bias", bias) && bias) ||
              (bias && !tern_requires_grad_(bias, trained)) ||
              tern_nn_set_extra(m, "in_features=%lld, out_features=%lld, bias=%s, type=%s",
                                (long long)l.columns, (long long)l.rows, bias ? "True" : "False",
                                l.block->name) != TERN_OK)) {
        tern_nn_free(m);
        m = NULL;
    }
    return m;
}

tern_module *gguf_embedding(gguf_layer l, tern_tensor *blocks)
{
    tern_module *m = make(embedding_name, call_embedding, l, blocks);
    if (m)
        tern_nn_set_extra(m, "%lld, %lld, type=%s", (long long)l.rows, (long long)l.columns,
                          l.block->name);
    return m;
}

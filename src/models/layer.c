/* layer.c -- a transformer layer of any of the architectures, by the paths of its submodules:
 *
 *   x + attention(norm(x)), x + mlp(norm(x))     norm_first
 *   norm(x + attention(x)), norm(x + mlp(x))     otherwise
 *
 * mlp(x) is down(f(gate(x)) up(x)), or down(f(up(x))) without a gate. */
#include "models/cache.h"
#include <string.h>

typedef struct layer {
    const models_layer_names *names;
    int64_t heads, kv_heads, head_dim, window;
    double dropout, attention_dropout, activation_dropout, scale, softcap;
    models_activation activation;
    int index;
    bool causal;
} layer;

/* ---- attention ------------------------------------------------------------------------------ */

/* Reshapes (N, T, heads width) to (N, heads, T, width) and applies the norm, if there is one. */
static tern_tensor *split(tern_module *self, tern_tensor *x, int64_t heads, int64_t width,
                          const char *norm)
{
    if (!x)
        return NULL;
    x = tern_view(x, TERN_SHAPE(tern_size(x, 0), tern_size(x, 1), heads, width));
    if (norm)
        x = models_run(self, norm, x);
    return tern_transpose(x, 1, 2);
}

/* Computes query, key and value. */
static tern_status project(tern_module *self, const layer *l, tern_tensor *x, tern_tensor *qkv[3])
{
    const models_layer_names *n = l->names;
    const char *const paths[] = {n->query, n->key, n->value};
    const char *const norms[] = {n->query_norm, n->key_norm, NULL};
    const int64_t sizes[] = {l->heads * l->head_dim, l->kv_heads * l->head_dim,
                             l->kv_heads * l->head_dim};
    if (n->qkv && tern_split_with_sizes(models_run(self, n->qkv, x), sizes, 3, -1, qkv, 3) != 3)
        return tern_last_status();
    for (int i = 0; i < 3; i++) {
        if (!n->qkv)
            qkv[i] = models_run(self, paths[i], x);
        if (n->qkv)
            qkv[i] = tern_contiguous(qkv[i]);
        qkv[i] = split(self, qkv[i], i ? l->kv_heads : l->heads, l->head_dim, norms[i]);
        if (!qkv[i])
            return tern_last_status();
    }
    return TERN_OK;
}

/* Returns the output layer's result for y (N, heads, T, width), as (N, T, heads width). */
static tern_tensor *merge(tern_module *self, const layer *l, tern_tensor *x, tern_tensor *y,
                          const char *out)
{
    if (!y)
        return NULL;
    y = tern_reshape(tern_transpose(y, 1, 2),
                     TERN_SHAPE(tern_size(x, 0), tern_size(x, 1), l->heads * l->head_dim));
    return models_run(self, out, y);
}

static tern_tensor *attend(tern_module *self, const layer *l, tern_tensor *x,
                           const models_shared *s)
{
    tern_tensor *qkv[3];
    if (project(self, l, x, qkv) != TERN_OK)
        return NULL;
    for (int i = 0; i < 2 && s->cos; i++)
        qkv[i] = tern_rotary_embedding(qkv[i], s->cos, s->sin, NULL);
    if (s->cache && models_cache_extend(s->cache, l->index, l->window, &qkv[1], &qkv[2]) != TERN_OK)
        return NULL;
    tern_tensor *mask = s->mask;
    int64_t keys = tern_size(qkv[1], 2), masked = mask ? tern_size(mask, 3) : keys;
    bool fixed = models_cache_static(s->cache) > 0;
    /* A single query attends to all keys. The queries of the heads that share a key head are then
     * rows of one product, so keys and values are not repeated for each head. */
    const int64_t n = tern_size(x, 0), group = l->heads / l->kv_heads;
    bool one = group > 1 && tern_size(x, 1) == 1 && (!mask || tern_size(mask, 1) == 1);
    if (one && !(qkv[0] = tern_reshape(qkv[0], TERN_SHAPE(n, l->kv_heads, group, l->head_dim))))
        return NULL;
    if (keys < masked) /* the cache of a layer with a window holds only the last keys */
        mask = tern_narrow(mask, 3, masked - keys, keys);
    if (fixed && l->window) /* the option `window` counts from the last key, and a static cache
                               has unused keys at its end */
        mask = tern_logical_and(mask, models_cache_mask(s->cache, l->window));
    tern_scaled_dot_product_attention_options o = {
        .attn_mask = mask,
        .is_causal = l->causal && !mask && !one,
        .lower_right = true,
        .scale = l->names->unscaled ? 1 : l->scale,
        .softcap = l->softcap,
        .window = fixed || one ? 0 : l->window,
        .enable_gqa = l->heads != l->kv_heads && !one,
        .dropout_p = tern_nn_is_training(self) ? l->attention_dropout : 0};
    tern_tensor *y = tern_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], &o);
    if (one)
        y = tern_reshape(y, TERN_SHAPE(n, l->heads, 1, l->head_dim));
    return merge(self, l, x, y, l->names->out);
}

/* Cross-attention of x to memory; every query attends to all of memory unless memory_mask is
 * set. */
static tern_tensor *attend_across(tern_module *self, const layer *l, tern_tensor *x,
                                  const models_shared *s)
{
    const models_layer_names *n = l->names;
    const char *const paths[] = {n->cross_query, n->cross_key, n->cross_value};
    tern_tensor *qkv[3];
    for (int i = 0; i < 3; i++) {
        tern_tensor *y = models_run(self, paths[i], i ? s->memory : x);
        if (!(qkv[i] = split(self, y, i ? l->kv_heads : l->heads, l->head_dim, NULL)))
            return NULL;
    }
    tern_scaled_dot_product_attention_options o = {
        .attn_mask = s->memory_mask,
        .scale = n->unscaled ? 1 : 0,
        .dropout_p = tern_nn_is_training(self) ? l->attention_dropout : 0};
    return merge(self, l, x, tern_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], &o),
                 n->cross_out);
}

/* ---- the layer ------------------------------------------------------------------------------ */

static tern_tensor *mlp(tern_module *self, const layer *l, tern_tensor *x)
{
    const models_layer_names *n = l->names;
    tern_tensor *parts[2] = {NULL, NULL}; /* outputs of gate and up */
    if (n->gate_up && tern_chunk(models_run(self, n->gate_up, x), 2, -1, parts, 2) != 2)
        return NULL;
    tern_tensor *up = n->gate_up ? parts[1] : models_run(self, n->up, x);
    tern_tensor *gate = n->gate_up ? parts[0] : n->gate ? models_run(self, n->gate, x) : up;
    if (!up || !gate)
        return NULL;
    gate = l->activation(gate);
    gate = gate && gate != up && (n->gate || n->gate_up) ? tern_mul(gate, up) : gate;
    gate = gate ? tern_dropout(gate, l->activation_dropout, tern_nn_is_training(self)) : NULL;
    return gate ? models_run(self, n->down, gate) : NULL;
}

enum { ATTEND, ACROSS, MLP };

/* Returns x + part(x), with the norm before the part (norm_first) or after the sum. */
static tern_tensor *residual(tern_module *self, const layer *l, tern_tensor *x,
                             const models_shared *s, int part)
{
    const models_layer_names *n = l->names;
    const char *const norms[] = {n->norm1, n->cross_norm, n->norm2};
    const char *const posts[] = {n->post1, NULL, n->post2};
    bool first = n->norm_first && !(n->no_first_norm && part == ATTEND && l->index == 0);
    tern_tensor *h = !x ? NULL : first ? models_run(self, norms[part], x) : x;
    h = !h               ? NULL
        : part == ATTEND ? attend(self, l, h, s)
        : part == ACROSS ? attend_across(self, l, h, s)
                         : mlp(self, l, h);
    if (posts[part])
        h = models_run(self, posts[part], h);
    h = h ? tern_dropout(h, l->dropout, tern_nn_is_training(self)) : NULL;
    h = h ? tern_add(x, h) : NULL;
    return n->norm_first || !h ? h : models_run(self, norms[part], h);
}

/* The cache of the running call. When backward runs a checkpointed layer again, there is none. */
static _Thread_local tern_kv_cache *running_cache;

/* in: x, mask, cos, sin, memory and memory's mask; all but x may be NULL. */
static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const layer *l = tern_nn_data(self);
    if (n < 1 || n > 6 || k != 1)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_nn_call: %s takes x, masks, cos, sin and memory and gives one tensor",
            l->names->class_name);
    models_shared s = {.mask = n > 1 ? in[1] : NULL,
                       .cos = n > 2 ? in[2] : NULL,
                       .sin = n > 3 ? in[3] : NULL,
                       .memory = n > 4 ? in[4] : NULL,
                       .memory_mask = n > 5 ? in[5] : NULL,
                       .cache = running_cache};
    out[0] = residual(self, l, in[0], &s, ATTEND);
    if (s.memory && l->names->cross_query)
        out[0] = residual(self, l, out[0], &s, ACROSS);
    out[0] = residual(self, l, out[0], &s, MLP);
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- making them ----------------------------------------------------------------------------- */

static tern_status linear(tern_module *m, const models_layer_names *n, const char *path, int64_t in,
                          int64_t out, bool bias)
{
    if (!path)
        return TERN_OK;
    return n->columns ? models_conv1d(m, path, in, out) : models_linear(m, path, in, out, bias);
}

static tern_status norm(tern_module *m, const models_layer_names *n, const char *path,
                        int64_t width, double eps)
{
    const tern_layer_norm_options o = {.eps = eps, .no_bias = true};
    if (!path)
        return TERN_OK;
    if (n->no_norm_bias)
        return models_put(m, path, tern_nn_layer_norm(TERN_SHAPE(width), &o)) ? TERN_OK
                                                                              : tern_last_status();
    return n->one_plus ? models_rms_norm_one(m, path, width, eps)
           : n->rms    ? models_rms_norm(m, path, width, eps)
                       : models_layer_norm(m, path, width, eps);
}

static tern_status fill(tern_module *m, const models_layer_names *n, const models_config *c,
                        bool first)
{
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    TRY(linear(m, n, n->qkv, c->width, q + 2 * kv, c->bias));
    TRY(linear(m, n, n->query, c->width, q, c->bias));
    TRY(linear(m, n, n->key, c->width, kv, c->bias && !n->no_key_bias));
    TRY(linear(m, n, n->value, c->width, kv, c->bias));
    TRY(linear(m, n, n->out, q, c->width, c->out_bias));
    TRY(linear(m, n, n->cross_query, c->width, q, c->bias));
    TRY(linear(m, n, n->cross_key, c->width, kv, c->bias && !n->no_key_bias));
    TRY(linear(m, n, n->cross_value, c->width, kv, c->bias));
    TRY(linear(m, n, n->cross_out, q, c->width, c->out_bias));
    TRY(norm(m, n, n->cross_norm, c->width, c->eps));
    TRY(norm(m, n, n->query_norm, c->head_dim, c->eps));
    TRY(norm(m, n, n->key_norm, c->head_dim, c->eps));
    TRY(norm(m, n, first && n->no_first_norm ? NULL : n->norm1, c->width, c->eps));
    TRY(norm(m, n, n->post1, c->width, c->eps));
    TRY(norm(m, n, n->post2, c->width, c->eps));
    TRY(linear(m, n, n->gate_up, c->width, 2 * c->hidden, c->mlp_bias));
    TRY(linear(m, n, n->gate, c->width, c->hidden, c->mlp_bias));
    TRY(linear(m, n, n->up, c->width, c->hidden, c->mlp_bias));
    TRY(linear(m, n, n->down, c->hidden, c->width, c->mlp_bias));
    return norm(m, n, n->norm2, c->width, c->eps);
}

bool models_is_local(const models_model *m, int64_t index)
{
    const models_config *c = &m->c;
    const json_t *type = json_array_get(json_object_get(m->json, "layer_types"), (size_t)index);
    if (json_is_string(type))
        return strcmp(json_string_value(type), "sliding_attention") == 0;
    return c->full_every ? index % c->full_every != c->full_at
                         : c->window > 0 && index >= c->window_from;
}

tern_status models_layers(models_model *m, tern_module *base, const char *path,
                          const models_layer_names *names, bool causal)
{
    const models_config *c = &m->c;
    tern_module *list = models_put(base, path, tern_nn_module_list_of(NULL, 0));
    for (int64_t i = 0; list && i < c->layers; i++) {
        layer l = {.names = names,
                   .heads = c->heads,
                   .kv_heads = c->kv_heads,
                   .head_dim = c->head_dim,
                   .window = models_is_local(m, i) ? c->window : 0,
                   .dropout = c->dropout,
                   .attention_dropout = c->attention_dropout,
                   .activation_dropout = c->activation_dropout,
                   .scale = c->scale,
                   .softcap = c->softcap,
                   .activation = c->activation,
                   .index = (int)i,
                   .causal = causal};
        tern_module *one = models_module(names->class_name, call, &l, sizeof l);
        if (!one || !tern_nn_append(list, one))
            return tern_last_status();
        TRY(fill(one, names, c, i == 0));
    }
    return list ? TERN_OK : tern_last_status();
}

tern_tensor *models_run_layers(models_model *m, tern_module *base, const char *path, tern_tensor *x,
                               const models_shared *s)
{
    tern_module *list = x ? tern_nn_child(base, path) : NULL;
    bool checkpoints = m->checkpointing && !s->cache && tern_is_grad_enabled();
    tern_kv_cache *before = running_cache;
    running_cache = s->cache;
    for (int i = 0; list && x && i < tern_nn_children_count(list); i++) {
        bool local = models_is_local(m, i);
        tern_tensor *in[] = {x,
                             local && s->local_mask ? s->local_mask : s->mask,
                             local && s->local_cos ? s->local_cos : s->cos,
                             local && s->local_sin ? s->local_sin : s->sin,
                             s->memory,
                             s->memory_mask};
        tern_module *one = tern_nn_child_at(list, i);
        tern_status status =
            checkpoints ? tern_checkpoint_call(one, in, 6, &x, 1) : tern_nn_call(one, in, 6, &x, 1);
        x = status == TERN_OK ? x : NULL;
    }
    running_cache = before;
    return list ? x : NULL;
}

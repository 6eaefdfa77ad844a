/* multihead_attention.c -- attention with several heads as a module.
 *
 *   concat(head_1, ..., head_h) W_out,   head_i = softmax(Q_i K_i^T / sqrt(d)) V_i
 *
 * with Q, K and V projections of query, key and value. */
#include "base/checked.h"
#include "base/memory.h"
#include "nn/layers/layer.h"
#include "nn/module.h"
#include <string.h>

enum { QUERY, KEY, VALUE, KEY_PADDING_MASK, ATTN_MASK, IS_CAUSAL, OF_EACH_HEAD, INPUTS };

typedef struct attention {
    int64_t embed_dim, num_heads;
    tern_multihead_attention_options o; /* options with kdim and vdim set */
    bool separate;                      /* separate weights for query, key and value */
} attention;

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns a parameter, or NULL if it is absent. */
static tern_tensor *parameter_of(tern_module *self, const char *parameter)
{
    return tern_nn_parameter(self, parameter);
}

static tern_status call(tern_module *self, tern_tensor *const *given, int n, tern_tensor **out,
                        int k)
{
    const attention *a = tern_nn_data(self);
    tern_tensor *in[INPUTS] = {NULL};
    if (n < 3 || n > INPUTS || k > 2)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes query, key, value, key_padding_mask, attn_mask, "
                         "is_causal and of_each_head and gives output and weights, not %d in and "
                         "%d out",
                         tern_nn_name(self), n, k);
    memcpy(in, given, (size_t)n * sizeof *in);
    const uint64_t failures = tern_failures();
    tern_multi_head_attention_forward_options o = {
        .num_heads = a->num_heads,
        .in_proj_bias = parameter_of(self, "in_proj_bias"),
        .out_proj_weight = parameter_of(self, "out_proj.weight"),
        .out_proj_bias = parameter_of(self, "out_proj.bias"),
        .bias_k = parameter_of(self, "bias_k"),
        .bias_v = parameter_of(self, "bias_v"),
        .add_zero_attn = a->o.add_zero_attn,
        .batch_first = a->o.batch_first,
        .is_causal = in[IS_CAUSAL] != NULL,
        .no_average_attn_weights = in[OF_EACH_HEAD] != NULL,
        .dropout_p = tern_nn_is_training(self) ? a->o.dropout : 0,
        .key_padding_mask = in[KEY_PADDING_MASK],
        .attn_mask = in[ATTN_MASK]};
    if (a->separate) {
        o.q_proj_weight = parameter_of(self, "q_proj_weight");
        o.k_proj_weight = parameter_of(self, "k_proj_weight");
        o.v_proj_weight = parameter_of(self, "v_proj_weight");
    } else {
        o.in_proj_weight = parameter_of(self, "in_proj_weight");
    }
    TERN_TRY(tern_failed_since(failures)); /* distinguishes an error from an absent parameter */
    tern_tensor *y = tern_multi_head_attention_forward(in[QUERY], in[KEY], in[VALUE], &o,
                                                       k > 1 ? &out[1] : NULL);
    if (k > 0)
        out[0] = y;
    return y ? TERN_OK : tern_last_status();
}

tern_tensor *tern_nn_multihead_attention_forward(tern_module *m, tern_tensor *query,
                                                 tern_tensor *key, tern_tensor *value,
                                                 const tern_multihead_attention_masks *masks,
                                                 tern_tensor **weights)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_multihead_attention_masks none;
    masks = masks ? masks : &none;
    tern_tensor *in[INPUTS] = {query,
                               key,
                               value,
                               masks->key_padding_mask,
                               masks->attn_mask,
                               masks->is_causal ? query : NULL,
                               masks->no_average_attn_weights ? query : NULL};
    tern_tensor *out[2] = {NULL, NULL};
    tern_status status = tern_nn_call(m, in, INPUTS, out, weights ? 2 : 1);
    if (weights)
        *weights = out[1];
    return status == TERN_OK ? out[0] : NULL;
}

/* ---- constructor ----------------------------------------------------------------------------- */

static tern_tensor *empty(const attention *a, tern_shape shape)
{
    return tern_empty(shape, a->o.dtype, a->o.device);
}

/* Adds x, or an absent parameter unless `wanted`. Fails if x is NULL and `wanted` is true. */
static tern_status add(tern_module *m, const char *name, bool wanted, tern_tensor *x)
{
    return wanted && !x ? tern_last_status() : tern_layer_parameter(m, name, wanted ? x : NULL);
}

/* One weight for all three projections needs only one matrix product in self-attention. Keys and
 * values of other widths need their own weights. */
static tern_status add_weights(tern_module *m, const attention *a)
{
    int64_t e = a->embed_dim;
    if (!a->separate)
        return add(m, "in_proj_weight", true,
                   tern_nn_init_xavier_uniform_(empty(a, TERN_SHAPE(tern_size_mul(3, e), e)), 1));
    TERN_TRY(
        add(m, "q_proj_weight", true, tern_nn_init_xavier_uniform_(empty(a, TERN_SHAPE(e, e)), 1)));
    TERN_TRY(add(m, "k_proj_weight", true,
                 tern_nn_init_xavier_uniform_(empty(a, TERN_SHAPE(e, a->o.kdim)), 1)));
    return add(m, "v_proj_weight", true,
               tern_nn_init_xavier_uniform_(empty(a, TERN_SHAPE(e, a->o.vdim)), 1));
}

/* Returns the output projection, a Linear whose class has another name in PyTorch. Its bias is
 * zero. */
static tern_module *output_projection(const attention *a)
{
    tern_linear_options o = {.no_bias = a->o.no_bias, .dtype = a->o.dtype, .device = a->o.device};
    tern_module *m = tern_nn_linear(a->embed_dim, a->embed_dim, &o);
    char *name = m ? tern_copy_text("NonDynamicallyQuantizableLinear") : NULL;
    if (!name) {
        tern_nn_free(m);
        return NULL;
    }
    tern_free(m->name);
    m->name = name;
    if (!o.no_bias && !tern_nn_init_zeros_(tern_nn_parameter(m, "bias"))) {
        tern_nn_free(m);
        return NULL;
    }
    return m;
}

/* Adds the input projections, the additional key and value of add_bias_kv, and the output
 * projection. */
static tern_status add_parameters(tern_module *m, const attention *a)
{
    int64_t e = a->embed_dim;
    bool bias = !a->o.no_bias, kv = a->o.add_bias_kv;
    TERN_TRY(add_weights(m, a));
    TERN_TRY(add(m, "in_proj_bias", bias,
                 bias ? tern_zeros(TERN_SHAPE(3 * e), a->o.dtype, a->o.device) : NULL));
    for (int i = 0; i < 2; i++)
        TERN_TRY(add(m, i ? "bias_v" : "bias_k", kv,
                     kv ? tern_nn_init_xavier_normal_(empty(a, TERN_SHAPE(1, 1, e)), 1) : NULL));
    return tern_nn_add(m, "out_proj", output_projection(a)) ? TERN_OK : tern_last_status();
}

tern_module *tern_nn_multihead_attention(int64_t embed_dim, int64_t num_heads,
                                         const tern_multihead_attention_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    attention a = {.embed_dim = embed_dim, .num_heads = num_heads};
    a.o = tern_read_multihead_attention(options);
    a.o.kdim = a.o.kdim == -1 ? embed_dim : a.o.kdim;
    a.o.vdim = a.o.vdim == -1 ? embed_dim : a.o.vdim;
    a.separate = a.o.kdim != embed_dim || a.o.vdim != embed_dim;
    if (embed_dim < 1 || num_heads < 1 || a.o.kdim < 1 || a.o.vdim < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: embed_dim, num_heads, kdim and vdim must be greater than 0, got "
                              "embed_dim=%lld, num_heads=%lld, kdim=%lld and vdim=%lld instead",
                              function, (long long)embed_dim, (long long)num_heads,
                              (long long)a.o.kdim, (long long)a.o.vdim);
    if (embed_dim % num_heads)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: embed_dim must be divisible by num_heads (%lld, %lld)", function,
                              (long long)embed_dim, (long long)num_heads);
    if (!(a.o.dropout >= 0 && a.o.dropout <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: dropout probability has to be between 0 and 1, but got %s",
                              function, TERN_NUMBER_TEXT(a.o.dropout));
    tern_module *m = tern_layer_loss("MultiheadAttention", call, &a, sizeof a);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = add_parameters(m, &a);
    return tern_layer_if(m, status);
}

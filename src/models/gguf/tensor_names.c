/* tensor_names.c -- the names of parameters in GGUF files, and the conversion of values to the
 * layout of Hugging Face's modules. */
#include "base/text.h"
#include "base/os.h"
#include "models/gguf/gguf.h"
#include <stdio.h>
#include <string.h>

/* A module's name in the model and in files, without .weight or .bias; inside of a layer without
 * the layer's prefix and number. */
typedef struct row {
    const char *ours, *file;
} row;

static const row outside[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"classifier", "cls"},
    {NULL, NULL},
};
static const row decoder[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {NULL, NULL},
};
/* Gemma 2 and 3 have a norm after attention that is not the norm before the MLP. */
static const row four_norms[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {NULL, NULL},
};
static const row gpt2[] = {
    {"ln_1", "attn_norm"}, {"attn.c_attn", "attn_qkv"}, {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},  {"mlp.c_fc", "ffn_up"},      {"mlp.c_proj", "ffn_down"},
    {NULL, NULL},
};
static const row bert[] = {
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {NULL, NULL},
};

static const char *look_up(const row *rows, const char *name, size_t n)
{
    for (; rows->ours; rows++)
        if (strlen(rows->ours) == n && memcmp(rows->ours, name, n) == 0)
            return rows->file;
    return NULL;
}

static bool is_of(const models_model *m, const char *type)
{
    return strcmp(m->kind->type, type) == 0;
}

/* Parses the prefix of a layer: sets *layer to the number and moves *path past the prefix; returns
 * false if path is not in a layer. */
static bool take_layer(const char **path, int *layer)
{
    static const char *const formats[] = {"model.layers.%d.%n", "transformer.h.%d.%n",
                                          "encoder.layer.%d.%n"};
    for (int i = 0; i < 3; i++) {
        int n = 0;
        if (sscanf(*path, formats[i], layer, &n) == 1 && n) {
            *path += n;
            return true;
        }
    }
    return false;
}

bool gguf_name(const models_model *m, const char *path, char *name, size_t bytes)
{
    const char *end = strrchr(path, '.'), *found = NULL;
    int layer = -1, n;
    if (!end)
        return false;
    if (is_of(m, "bert") && strncmp(path, "bert.", 5) == 0)
        path += 5;
    bool inside = take_layer(&path, &layer);
    size_t length = (size_t)(end - path);
    if (!inside)
        found = look_up(outside, path, length);
    else if (is_of(m, "gpt2") || is_of(m, "bert"))
        found = look_up(is_of(m, "bert") ? bert : gpt2, path, length);
    else {
        if (is_of(m, "gemma2") || is_of(m, "gemma3_text"))
            found = look_up(four_norms, path, length);
        found = found ? found : look_up(decoder, path, length);
    }
    if (!found)
        return false;
    n = inside ? snprintf(name, bytes, "blk.%d.%s%s", layer, found, end)
               : snprintf(name, bytes, "%s%s", found, end);
    return n > 0 && (size_t)n < bytes;
}

bool gguf_is_extra(const char *name)
{
    static const char *const patterns[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                           "rope_factors_short.weight", "blk.*.attn_rot_embd",
                                           "blk.*.rope_freqs.weight"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (tern_os_matches(patterns[i], name))
            return true;
    return false;
}

/* ---- values ------------------------------------------------------------------------------ */

bool gguf_is_transposed(const models_model *m, const char *path)
{
    return is_of(m, "gpt2") &&
           (tern_ends_with(path, ".c_attn.weight") || tern_ends_with(path, ".c_proj.weight") ||
            tern_ends_with(path, ".c_fc.weight"));
}

/* Reorders the rows of each head from the order (0, d / 2, 1, d / 2 + 1, ...) to (0, 1, ...). */
static tern_tensor *halves(tern_tensor *x, int64_t heads)
{
    int64_t rows = tern_size(x, 0), columns = rows ? tern_numel(x) / rows : 0;
    if (rows % (2 * heads))
        return x; /* a wrong shape, which is refused later */
    tern_tensor *y = tern_view(x, TERN_SHAPE(heads, rows / heads / 2, 2, columns));
    return tern_view(tern_contiguous(tern_transpose(y, 1, 2)), tern_shape_of(x));
}

tern_tensor *gguf_values(const models_model *m, const char *path, tern_tensor *x)
{
    bool q = strstr(path, ".q_proj.") != NULL, k = strstr(path, ".k_proj.") != NULL;
    if (is_of(m, "llama") && (q || k) && tern_dim(x) > 0)
        return halves(x, q ? m->c.heads : m->c.kv_heads);
    if (gguf_is_transposed(m, path) && tern_dim(x) == 2)
        return tern_contiguous(tern_transpose(x, 0, 1));
    /* Files hold 1 + w. Subtracting 1 undoes the rounding of 1 + w: where it was rounded, 1 + w is
     * at least 0.5. */
    if (strncmp(m->kind->type, "gemma", 5) == 0 && tern_ends_with(path, "norm.weight"))
        return tern_sub_scalar(tern_to_dtype(x, TERN_F32), tern_scalar_int(1));
    return x;
}

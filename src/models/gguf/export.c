/* export.c -- writes a model as a GGUF file. A model read from a GGUF keeps that file's keys and
 * tokenizer, in their order. */
#include "models/gguf/write.h"
#include "base/os.h"
#include "models/quantize.h"
#include <stdio.h>

enum { TYPES = 32 }; /* more types than a file has */

const char *gguf_architecture(const models_model *m, const char *function)
{
    static const char *const types[][2] = {
        {"llama", "llama"}, {"mistral", "llama"}, {"qwen2", "qwen2"},        {"qwen3", "qwen3"},
        {"gemma", "gemma"}, {"gemma2", "gemma2"}, {"gemma3_text", "gemma3"}, {"phi3", "phi3"},
        {"gpt2", "gpt2"},   {"bert", "bert"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(m->kind->type, types[i][0]) == 0)
            return types[i][1];
    return tern_fail_null(TERN_ERR_UNSUPPORTED,
                          "%s: a GGUF of a %s model is not written: llama, mistral, qwen2, qwen3, "
                          "gemma, gemma2, gemma3_text, phi3, gpt2 and bert are",
                          function, m->kind->type);
}

/* ---- values -------------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

/* Reorders the rows of each head from the order (0, 1, ...) to (0, d / 2, 1, d / 2 + 1, ...). */
static tern_tensor *neighbours(tern_tensor *x, int64_t heads)
{
    const int64_t rows = tern_size(x, 0), columns = rows ? tern_numel(x) / rows : 0;
    tern_tensor *y = tern_view(tern_contiguous(x), TERN_SHAPE(heads, 2, rows / heads / 2, columns));
    return tern_view(tern_contiguous(tern_transpose(y, 1, 2)), tern_shape_of(x));
}

tern_tensor *gguf_unvalues(const models_model *m, const char *path, tern_tensor *x)
{
    const bool q = strstr(path, ".q_proj.") != NULL, k = strstr(path, ".k_proj.") != NULL;
    if ((strcmp(m->kind->type, "llama") == 0 || strcmp(m->kind->type, "mistral") == 0) && (q || k))
        return neighbours(x, q ? m->c.heads : m->c.kv_heads);
    if (gguf_is_transposed(m, path) && tern_dim(x) == 2)
        return tern_contiguous(tern_transpose(x, 0, 1));
    if (strncmp(m->kind->type, "gemma", 5) == 0 && ends_in(path, "norm.weight"))
        return tern_add_scalar(tern_to_dtype(x, TERN_F32), tern_scalar_int(1));
    return x;
}

/* ---- tensors ------------------------------------------------------------------------------- */

typedef struct exporting {
    models_model *m;
    const char *function, *path;
    const gguf_encoder *type; /* type of all matrices; NULL: each keeps its own */
    const gguf_file *from;    /* the file that the model was read from; NULL: read from a
                                 directory */
    tern_state_dict *dict;    /* the model's tensors by their paths */
    tern_state_dict *names;   /* metadata: the path for each name in the file */
    gguf_writer w;
    bool changed; /* a matrix has another type than in the file */
    struct {
        const gguf_encoder *type; /* NULL: a type without an encoder, copied unchanged */
        int64_t elements;
    } types[TYPES]; /* types of the matrices */
    int n_types;
} exporting;

/* Adds the elements of a matrix to the count of its type. */
static void count_type(exporting *e, const gguf_encoder *type, int64_t elements)
{
    int i = 0;
    while (i < e->n_types && e->types[i].type != type)
        i++;
    if (i == TYPES)
        return;
    e->types[i].type = type;
    e->types[i].elements += elements;
    e->n_types += i == e->n_types;
}

/* Returns the type of most elements of matrices; NULL: there are none, or the type has no
 * encoder. */
static const gguf_encoder *most_common(const exporting *e)
{
    int most = 0;
    for (int i = 1; i < e->n_types; i++)
        if (e->types[i].elements > e->types[most].elements)
            most = i;
    return e->types[most].type;
}

/* Returns the layer over blocks whose matrix is at path, or NULL. */
static tern_module *layer_of(const exporting *e, const char *path)
{
    char module[512];
    if (!ends_in(path, ".weight") || strlen(path) >= sizeof module)
        return NULL;
    snprintf(module, sizeof module, "%.*s", (int)strlen(path) - 7, path);
    tern_module *m = tern_nn_child(e->m->module, module);
    return m && gguf_is_layer(m) ? m : NULL;
}

/* Returns the data of an item in the file's layout; called during writing. */
static tern_tensor *values_of(void *user, const gguf_item *item)
{
    const exporting *e = user;
    if (!item->path && item->values) /* rope factors */
        return item->values;
    if (!item->path) { /* no parameter: copied from the file */
        return item->encoder ? tern_file_get(e->from->file, item->name, "cpu")
                             : io_gguf_blocks(e->from->file, item->name, "cpu");
    }
    if (item->layer && !item->encoder) {
        tern_tensor *blocks = tern_to(item->values, "cpu");
        return blocks && !gguf_is_transposed(e->m, item->path)
                   ? gguf_unvalues(e->m, item->path, blocks)
                   : blocks;
    }
    if (item->layer) {
        tern_tensor *w = tern_to(gguf_weight(item->layer), "cpu");
        return w && !gguf_is_transposed(e->m, item->path) ? gguf_unvalues(e->m, item->path, w) : w;
    }
    return gguf_unvalues(e->m, item->path, tern_to_dtype(tern_to(item->values, "cpu"), TERN_F32));
}

/* Whether encoding to the type and decoding changes no value. */
static bool is_kept(const exporting *e, const gguf_item *item, const io_block *block,
                    const gguf_encoder *encoder)
{
    bool same = true;
    unsigned char buffer[256];
    float back[256];
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = values_of((void *)e, item);
            x = x ? tern_contiguous(tern_to_dtype(x, TERN_F32)) : NULL;
            tern_tensor *half =
                x && strcmp(block->name, "F32") != 0 && block->elements == 1
                    ? tern_to_dtype(
                          tern_to_dtype(x, strcmp(block->name, "F16") == 0 ? TERN_F16 : TERN_BF16),
                          TERN_F32)
                    : x;
            const float *from = x ? tern_data(x) : NULL, *to = half ? tern_data(half) : NULL;
            const int64_t n = x ? tern_numel(x) : 0;
            same = from && to;
            for (int64_t i = 0; same && i < n; i += block->elements) {
                if (block->decode) {
                    encoder->encode(from + i, buffer);
                    block->decode(buffer, back);
                }
                same = memcmp(from + i, block->decode ? back : to + i,
                              (size_t)block->elements * sizeof *from) == 0;
            }
        }
    return same;
}

/* Chooses the type: matrices get the requested one, except position and token type embeddings;
 * other tensors are float32. */
static void choose_asked(const exporting *e, gguf_item *item)
{
    const bool matrix = item->shape.ndim == 2 && strncmp(item->name, "position_embd", 13) != 0 &&
                        strncmp(item->name, "token_types", 11) != 0;
    item->encoder = gguf_encoder_named("F32");
    item->block = io_block_named("F32");
    if (!matrix)
        return;
    item->encoder = e->type;
    while (item->encoder && item->shape.dims[1] % io_block_named(item->encoder->name)->elements)
        item->encoder =
            gguf_encoder_named(item->encoder->otherwise ? item->encoder->otherwise : "F16");
    item->block = io_block_named(item->encoder->name);
    if (item->layer && ((const gguf_layer *)tern_nn_data(item->layer))->block == item->block)
        item->encoder = NULL; /* already blocks of that type */
}

/* Chooses a type without loss: blocks stay; values get the file's type if that is lossless, else
 * their own. */
static void choose_kept(exporting *e, gguf_item *item)
{
    static const char *const own[] = {"F32", "F16", "BF16"};
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    const bool there = e->from && tern_file_has(e->from->file, item->name);
    const char *name = there ? tern_file_dtype_name(e->from->file, item->name) : NULL;
    const gguf_encoder *encoder = name ? gguf_encoder_named(name) : NULL;
    if (item->layer) {
        item->block = ((const gguf_layer *)tern_nn_data(item->layer))->block;
        item->encoder = NULL;
    } else if (encoder && is_kept(e, item, io_block_named(name), encoder)) {
        item->block = io_block_named(name);
        item->encoder = encoder;
    } else {
        int i = 2;
        while (i > 0 && tern_dtype_of(item->values) != dtypes[i])
            i--;
        item->encoder = gguf_encoder_named(item->shape.ndim > 1 ? own[i] : "F32");
        item->block = io_block_named(item->encoder->name);
    }
    if (item->shape.ndim != 2)
        return;
    e->changed |= !name || strcmp(name, item->block->name) != 0;
    count_type(e, item->encoder ? item->encoder : gguf_encoder_named(item->block->name),
               item->shape.dims[0] * item->shape.dims[1]);
}

static tern_status add_parameter(exporting *e, const char *name, const char *path)
{
    gguf_item item = {.name = (char *)name, .path = path};
    item.values = tern_state_dict_get(e->dict, path);
    item.layer = layer_of(e, path);
    item.shape = tern_shape_of(item.values);
    if (item.layer) {
        const gguf_layer *l = tern_nn_data(item.layer);
        item.shape = TERN_SHAPE(l->rows, l->columns);
    } else if (gguf_is_transposed(e->m, path) && item.shape.ndim == 2)
        item.shape = TERN_SHAPE(item.shape.dims[1], item.shape.dims[0]);
    if (e->type)
        choose_asked(e, &item);
    else
        choose_kept(e, &item);
    return gguf_write_tensor(&e->w, &item);
}

/* Adds a tensor that is no parameter, unchanged. */
static tern_status add_other(exporting *e, const char *name)
{
    const char *type = tern_file_dtype_name(e->from->file, name);
    gguf_item item = {.name = (char *)name, .shape = tern_file_shape(e->from->file, name)};
    item.block = io_block_named(type);
    item.encoder = gguf_encoder_named(type);
    if (!item.block || !item.encoder || item.block->decode)
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: \"%s\": `%s` is of %s, which is not written",
                         e->function, e->path, name, type);
    return gguf_write_tensor(&e->w, &item);
}

/* Adds the tensors in the order of the file, and then those that the file lacks. */
static tern_status add_tensors(exporting *e)
{
    const tern_file *file = e->from ? e->from->file : NULL;
    for (int i = 0; file && i < tern_file_count(file); i++) {
        const char *name = tern_file_name_at(file, i);
        const char *path = tern_state_dict_metadata(e->names, name);
        if (path)
            TRY(add_parameter(e, name, path));
        else if (gguf_is_extra(name))
            TRY(add_other(e, name));
    }
    for (int i = 0; i < tern_state_dict_count(e->dict); i++) {
        char name[512];
        const char *path = tern_state_dict_key_at(e->dict, i);
        if (gguf_name(e->m, path, name, sizeof name) && !(file && tern_file_has(file, name)) &&
            tern_state_dict_metadata(e->names, name))
            TRY(add_parameter(e, name, path));
    }
    return TERN_OK;
}

/* Returns the weight of a module: a parameter or blocks. */
static tern_tensor *weight_at(const exporting *e, const char *path)
{
    tern_module *m = path ? tern_nn_child(e->m->module, path) : NULL;
    return !m                 ? NULL
           : gguf_is_layer(m) ? tern_nn_buffer(m, "weight")
                              : tern_nn_parameter(m, "weight");
}

/* Whether files of the architecture may lack a name. */
static bool is_left_out(const models_model *m, const char *path)
{
    for (const char *const *p = m->kind->left_out; p && *p; p++)
        if (tern_os_matches(*p, path))
            return true;
    return false;
}

/* Fills e->names: which parameter is which tensor of the file; a tied head has no tensor of its
 * own. */
static tern_status map_names(exporting *e)
{
    char name[512], head[256] = "";
    const tern_tensor *tied = weight_at(e, e->m->tied);
    if (tied && e->m->kind->head && weight_at(e, e->m->kind->head) == tied)
        snprintf(head, sizeof head, "%s.weight", e->m->kind->head);
    for (int i = 0; i < tern_state_dict_count(e->dict); i++) {
        const char *path = tern_state_dict_key_at(e->dict, i);
        if (strcmp(path, head) == 0)
            continue;
        if (quantize_has(e->m, path) && !layer_of(e, path))
            return tern_fail(
                TERN_ERR_UNSUPPORTED,
                "%s: %s is of a layer that tern_models_quantize made: a GGUF of floats "
                "or of its own blocks is written",
                e->function, path);
        const bool has_name = gguf_name(e->m, path, name, sizeof name);
        if (!has_name && is_left_out(e->m, path)) /* BERT's pooler */
            continue;
        if (!has_name)
            return tern_fail(TERN_ERR_UNSUPPORTED, "%s: a GGUF has no name for %s", e->function,
                             path);
        TRY(tern_state_dict_set_metadata(e->names, name, path));
    }
    return TERN_OK;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static tern_status add_pairs(exporting *e)
{
    io_gguf_value v;
    const char *key;
    int64_t before, now;
    TRY(gguf_size(e->from, "general.file_type", 0, INT32_MAX, &before));
    const gguf_encoder *type = e->type ? e->type : e->changed ? most_common(e) : NULL;
    now = type ? type->file_type : before;
    for (int i = 0; (key = io_gguf_pair_at(e->from->file, i, &v)); i++) {
        if (strncmp(key, "split.", 6) == 0)
            continue;
        if (strcmp(key, "general.file_type") == 0 && now != before)
            gguf_write_u32(&e->w, key, now);
        else
            gguf_write_value(&e->w, key, &v);
    }
    int64_t alignment;
    TRY(gguf_size(e->from, "general.alignment", 8, 32, &alignment));
    e->w.alignment = (uint64_t)alignment;
    return TERN_OK;
}

/* Writes the keys of a model that was not read from a GGUF. */
static tern_status make_pairs(exporting *e)
{
    const char *arch = gguf_architecture(e->m, e->function), *name = e->m->directory;
    const gguf_encoder *type = e->type ? e->type : most_common(e);
    if (!arch)
        return TERN_ERR_UNSUPPORTED;
    gguf_write_text(&e->w, "general.architecture", arch);
    gguf_write_text(&e->w, "general.type", "model");
    if (name && strrchr(name, '/') && strrchr(name, '/')[1])
        name = strrchr(name, '/') + 1;
    if (name)
        gguf_write_text(&e->w, "general.name", name);
    gguf_write_u32(&e->w, "general.file_type", type ? type->file_type : 0);
    TRY(gguf_write_config(&e->w, e->m, arch));
    return gguf_write_tokenizer(&e->w, e->m);
}

static tern_status save(exporting *e)
{
    TRY(map_names(e));
    TRY(add_tensors(e));
    TRY(e->from ? add_pairs(e) : make_pairs(e));
    return gguf_write_file(&e->w);
}

tern_status gguf_save_model(models_model *m, const char *path, const char *type,
                            const char *function)
{
    exporting e = {.m = m, .function = function, .path = path};
    gguf_file g;
    e.type = type ? gguf_encoder_named(type) : NULL;
    if (type && !e.type)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: type \"%.40s\" is none of f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, "
            "q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl",
            function, type);
    if (!gguf_architecture(m, function))
        return TERN_ERR_UNSUPPORTED;
    e.w = (gguf_writer){.function = function, .path = path, .get = values_of, .user = &e};
    e.dict = tern_nn_state_dict(m->module);
    e.names = tern_state_dict_new();
    const bool from_file = m->directory && gguf_is_file(m->directory);
    tern_file *file = from_file ? tern_safe_open(m->directory) : NULL;
    tern_status status = e.dict && e.names && (file || !from_file) ? TERN_OK : tern_last_status();
    if (status == TERN_OK && file)
        status = gguf_begin(&g, file, function, m->directory);
    e.from = file ? &g : NULL;
    if (status == TERN_OK)
        status = save(&e);
    gguf_writer_free(&e.w);
    tern_state_dict_free(e.names);
    tern_state_dict_free(e.dict);
    tern_file_free(file);
    return status;
}

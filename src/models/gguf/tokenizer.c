/* tokenizer.c -- the tokenizer of a GGUF file: its arrays are converted to the equivalent
 * tokenizer.json, which is then read. */
#include "models/gguf/vocabulary.h"
#include <stdio.h>
#include <string.h>

tern_status gguf_read_ids(const gguf_file *g, tk_maker *m, const int64_t defaults[5], bool bos,
                          bool eos)
{
    TRY(gguf_token_id(g, &m->v, "bos", defaults[0], &m->bos));
    TRY(gguf_token_id(g, &m->v, "eos", defaults[1], &m->eos));
    TRY(gguf_token_id(g, &m->v, "unknown", defaults[2], &m->unknown));
    TRY(gguf_token_id(g, &m->v, "padding", defaults[3], &m->pad));
    TRY(gguf_token_id(g, &m->v, "seperator", defaults[4], &m->separator)); /* the key's spelling */
    TRY(gguf_flag(g, "tokenizer.ggml.add_bos_token", bos, &m->add_bos));
    return gguf_flag(g, "tokenizer.ggml.add_eos_token", eos, &m->add_eos);
}

/* ---- SentencePiece ----------------------------------------------------------------------- */

static tern_status read_spaces(const gguf_file *g, tk_maker *m)
{
    TRY(gguf_flag(g, "tokenizer.ggml.add_space_prefix", true, &m->space));
    TRY(gguf_flag(g, "tokenizer.ggml.remove_extra_whitespaces", false, &m->spaces_once));
    if (!m->v.scores)
        return gguf_bad(g, "there is no `tokenizer.ggml.scores`, which a tokenizer of %s has",
                        m->v.model);
    m->byte_fallback = true;
    tk_score_range(m);
    return TERN_OK;
}

static tern_status find_charsmap(const gguf_file *g, tk_maker *m)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    io_gguf_value v;
    if (!io_gguf_find(g->file, key, &v))
        return TERN_OK;
    if (!v.is_array || (v.kind != IO_GGUF_U8 && v.kind != IO_GGUF_I8))
        return gguf_bad(g, "`%s` is %.60s, and an array of u8 is expected", key,
                        tern_file_metadata(g->file, key));
    m->charsmap = v.bytes;
    m->n_charsmap = (size_t)v.count;
    return TERN_OK;
}

static tern_status make_llama(const gguf_file *g, tk_maker *m)
{
    static const int64_t defaults[] = {1, 2, 0, -1, -1};
    TRY(read_spaces(g, m));
    TRY(gguf_read_ids(g, m, defaults, true, false));
    return tk_make_llama(m);
}

static tern_status make_t5(const gguf_file *g, tk_maker *m)
{
    static const int64_t defaults[] = {-1, 1, 2, 0, -1};
    TRY(read_spaces(g, m));
    TRY(gguf_read_ids(g, m, defaults, false, true));
    TRY(find_charsmap(g, m));
    return tk_make_t5(m);
}

static tern_status make_bert(const gguf_file *g, tk_maker *m)
{
    static const int64_t defaults[] = {101, -1, 100, 0, 102};
    TRY(gguf_read_ids(g, m, defaults, true, true));
    TRY(gguf_flag(g, "tokenizer.ggml.add_sep_token", m->add_eos, &m->add_eos));
    m->lowercase = m->marked = true;
    return tk_make_bert(m);
}

/* ---- all of them ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    tern_status (*make)(const gguf_file *g, tk_maker *m);
} models[] = {
    {"gpt2", gguf_make_gpt2}, {"llama", make_llama}, {"t5", make_t5}, {"bert", make_bert}};

static tern_status make_model(const gguf_file *g, tk_maker *m)
{
    if (!m->v.model || !m->v.n)
        return gguf_bad(g, "there is no tokenizer: `tokenizer.ggml.tokens` is expected");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, m->v.model) == 0)
            return models[i].make(g, m);
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "%s: \"%s\": `tokenizer.ggml.model` is %.40s, and gpt2, llama, t5 or bert is "
                     "supported",
                     g->function, g->path, m->v.model);
}

/* Sets what tokenizer.json cannot express. */
static tern_status complete(const gguf_file *g, tk_maker *m, tern_tokenizer *t)
{
    const char *chat;
    if (strcmp(m->v.model, "bert") == 0 && m->eos < 0)
        t->eos_id = m->separator;
    if (strcmp(m->v.model, "t5") == 0)
        t->model.unknown_score = m->least - 10;
    if (strcmp(m->v.model, "llama") == 0)
        TRY(tk_rank_by_score(m, t));
    TRY(gguf_text(g, "tokenizer.chat_template", &chat));
    t->chat_template = chat ? tk_copy(chat, strlen(chat)) : NULL;
    return chat && !t->chat_template ? TERN_ERR_MEMORY : TERN_OK;
}

tern_tokenizer *gguf_tokenizer(const char *function, const char *path)
{
    gguf_file g;
    tern_tokenizer *t = NULL;
    char where[5000]; /* start of all error messages about the file */
    snprintf(where, sizeof where, "%s: \"%s\"", function, path);
    tk_maker m = {.where = where};
    tern_file *file = tern_safe_open(path);
    if (file && gguf_begin(&g, file, function, path) == TERN_OK &&
        gguf_read_vocabulary(&g, &m.v) == TERN_OK)
        t = tk_make(&m, make_model(&g, &m));
    if (t && complete(&g, &m, t) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    tk_maker_free(&m);
    tern_file_free(file);
    return t;
}

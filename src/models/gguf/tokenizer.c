/* tokenizer.c -- the tokenizer of a GGUF: its arrays are written as the tokenizer.json of the same tokenizer, which is read as any is. */
#include "models/gguf/maker.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    tern_status (*write)(gguf_maker *m);
} models[] = {{"gpt2", gguf_write_gpt2},
              {"llama", gguf_write_llama},
              {"t5", gguf_write_t5},
              {"bert", gguf_write_bert}};

static tern_status write_model(gguf_maker *m)
{
    if (!m->v.model || !m->v.n)
        return gguf_bad(m->g, "there is no tokenizer: `tokenizer.ggml.tokens` is expected");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, m->v.model) == 0)
            return models[i].write(m);
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "%s: \"%s\": `tokenizer.ggml.model` is %.40s, and gpt2, llama, t5 or bert is "
                     "supported",
                     m->g->function, m->g->path, m->v.model);
}

/* What tokenizer.json has no place for. */
static tern_status complete(gguf_maker *m, tern_tokenizer *t)
{
    const char *chat;
    t->bos_id = m->bos;
    t->eos_id = strcmp(m->v.model, "bert") == 0 && m->eos < 0 ? m->separator : m->eos;
    t->pad_id = m->pad;
    if (strcmp(m->v.model, "t5") == 0)
        t->model.unknown_score = m->least - 10;
    if (strcmp(m->v.model, "llama") == 0)
        TRY(gguf_rank_by_score(m, t));
    TRY(gguf_text(m->g, "tokenizer.chat_template", &chat));
    t->chat_template = chat ? tk_copy(chat, strlen(chat)) : NULL;
    return chat && !t->chat_template ? TERN_ERR_MEMORY : TERN_OK;
}

tern_tokenizer *gguf_tokenizer(const char *function, const char *path)
{
    gguf_file g;
    gguf_maker m = {.g = &g};
    tern_tokenizer *t = NULL;
    char where[5000]; /* what every message about the file begins with */
    snprintf(where, sizeof where, "%s: \"%s\"", function, path);
    tern_file *file = tern_safe_open(path);
    if (file && gguf_begin(&g, file, function, path) == TERN_OK &&
        gguf_read_vocabulary(&g, &m.v) == TERN_OK && write_model(&m) == TERN_OK)
        t = tk_tokenizer_read(where, m.o.text, m.o.n);
    if (t && complete(&m, t) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    free(m.o.text);
    gguf_free_vocabulary(&m.v);
    tern_file_free(file);
    return t;
}

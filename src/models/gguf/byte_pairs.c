/* byte_pairs.c -- tokenizers of the GGUF model "gpt2": byte-level BPE, whose patterns have
 * names. */
#include "models/gguf/vocabulary.h"
#include <stdio.h>
#include <string.h>

/* ---- patterns ---------------------------------------------------------------------------- */

#define WORDS_AND(numbers)                                                                         \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASES_AND(contractions, numbers)                                                           \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" contractions "|[^\\r\\n\\p{L}\\p{N}]?" UPPER      \
    "+" LOWER "*" contractions "|" numbers                                                         \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]"
    "+|\\s+(?!\\S)|\\s+";
static const char qwen35_pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* The meaning of a value of tokenizer.ggml.pre. */
typedef struct family {
    const char *names; /* separated by spaces */
    const char *pattern;
    bool digits; /* numbers are split off first */
    bool whole;  /* a word that is a token is not merged from parts */
    bool bos;    /* the value of add_bos_token if the key is absent */
    bool nfc;
} family;

static const family families[] = {
    {.names = " gpt-2 phi-2 roberta-bpe exaone4 mpt olmo jais trillion ", .pattern = gpt2_pattern},
    {.names = " llama-bpe llama3 llama-v3 falcon3 pixtral lfm2 ",
     .pattern = WORDS_AND("\\p{N}{1,3}"),
     .whole = true,
     .bos = true},
    {.names = " dbrx smaug-bpe chatglm-bpe glm4 ", .pattern = WORDS_AND("\\p{N}{1,3}")},
    {.names = " qwen2 deepseek-r1-qwen megrez stablelm2 ",
     .pattern = WORDS_AND("\\p{N}"),
     .nfc = true},
    {.names = " qwen35 ", .pattern = qwen35_pattern, .nfc = true},
    {.names = " starcoder smollm refact command-r codeshell exaone minerva-7b ",
     .pattern = gpt2_pattern,
     .digits = true},
    {.names = " gpt-4o llama4 ",
     .pattern = CASES_AND("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}")},
    {.names = " tekken ", .pattern = CASES_AND("", "\\p{N}"), .whole = true, .bos = true},
};

static const family *family_of(const gguf_file *g)
{
    char name[64];
    const char *pre;
    if (gguf_text(g, "tokenizer.ggml.pre", &pre) != TERN_OK)
        return NULL;
    snprintf(name, sizeof name, " %.60s ", pre ? pre : "default");
    for (size_t i = 0; pre && i < sizeof families / sizeof *families; i++)
        if (!strchr(pre, ' ') && strstr(families[i].names, name))
            return &families[i];
    return tern_fail_null(
        TERN_ERR_UNSUPPORTED,
        "%s: \"%s\": `tokenizer.ggml.pre` is %s%.60s, whose patterns are not supported: "
        "the model is to be converted again, or a tokenizer.json of the model can be given",
        g->function, g->path, pre ? "" : "not there, which stands for ", pre ? pre : "default");
}

const char *gguf_pre_of(const char *pattern, bool digits, bool whole, bool nfc)
{
    static const char *const names[] = {"gpt-2",  "llama-bpe", "dbrx",   "qwen2",
                                        "qwen35", "starcoder", "gpt-4o", "tekken"};
    pattern = pattern ? pattern : gpt2_pattern;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i].pattern, pattern) && families[i].digits == digits &&
            families[i].whole == whole && families[i].nfc == nfc)
            return names[i];
    return NULL;
}

/* ---- gpt2: BPE on bytes ------------------------------------------------------------------ */

tern_status gguf_make_gpt2(const gguf_file *g, tk_maker *m)
{
    static const int64_t defaults[] = {11, 11, -1, -1, -1};
    const family *f = family_of(g);
    if (!f)
        return tern_last_status();
    TRY(gguf_read_ids(g, m, defaults, f->bos, false));
    TRY(tk_make_byte_level(m, f->pattern, f->digits, f->nfc, f->whole));
    tk_out_text(&m->o, ",\"merges\":[");
    for (size_t i = 0; i < m->v.n_merges; i++) {
        const tk_text_of *merge = &m->v.merges[i];
        const char *space = memchr(merge->text + 1, ' ', merge->n - 1);
        if (!space)
            return gguf_bad(g, "`tokenizer.ggml.merges` changed while it was read");
        tk_out_merge(&m->o, i == 0, merge, (size_t)(space - merge->text), 1);
    }
    tk_out_text(&m->o, "]}}");
    return m->o.status;
}

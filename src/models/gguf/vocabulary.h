/* vocabulary.h -- the arrays of a GGUF's tokenizer. */
#ifndef TERN_SRC_MODELS_GGUF_VOCABULARY_H
#define TERN_SRC_MODELS_GGUF_VOCABULARY_H
#include "models/gguf/gguf.h"
#include "models/tokenizer/tokenizer.h"

enum { GGUF_NORMAL = 1, GGUF_UNKNOWN, GGUF_CONTROL, GGUF_USER, GGUF_UNUSED, GGUF_BYTE };

typedef struct gguf_text_of {
    const char *text; /* in the file */
    size_t n;
} gguf_text_of;

typedef struct gguf_vocabulary {
    const char *model; /* tokenizer.ggml.model; NULL: there is no tokenizer */
    gguf_text_of *tokens;
    int32_t *types; /* GGUF_NORMAL where the file has none */
    float *scores;  /* NULL: none */
    gguf_text_of *merges;
    size_t n, n_merges;
    tk_vocab table; /* of the tokens; all are different */
} gguf_vocabulary;

/* Read, and compared with each other; to be freed also after an error. */
tern_status gguf_read_vocabulary(const gguf_file *g, gguf_vocabulary *v);
void gguf_free_vocabulary(gguf_vocabulary *v);
/* tokenizer.ggml.NAME_token_id: -1 and TERN_OK where it is absent and absent is no token either. */
tern_status gguf_token_id(const gguf_file *g, const gguf_vocabulary *v, const char *name,
                          int64_t absent, int64_t *id);

#endif

/* vocabulary.h -- the arrays of a GGUF file's tokenizer. */
#ifndef TERN_SRC_MODELS_GGUF_VOCABULARY_H
#define TERN_SRC_MODELS_GGUF_VOCABULARY_H
#include "models/gguf/gguf.h"
#include "models/tokenizer/maker.h"

/* Reads and checks *v; the caller frees it by tk_vocabulary_free, also after an error. */
tern_status gguf_read_vocabulary(const gguf_file *g, tk_vocabulary *v);
/* Reads tokenizer.ggml.NAME_token_id; without the key *id is absent, or -1 if absent is no
 * token. */
tern_status gguf_token_id(const gguf_file *g, const tk_vocabulary *v, const char *name,
                          int64_t absent, int64_t *id);

/* Reads the ids of special tokens. defaults: ids of bos, eos, unknown, padding and separator, -1:
 * none; bos, eos: whether these tokens are added if no key says so. */
tern_status gguf_read_ids(const gguf_file *g, tk_maker *m, const int64_t defaults[5], bool bos,
                          bool eos);
/* Returns llama.cpp's name of a pre-tokenizer by its pattern (NULL: ByteLevel's own) and options,
 * or NULL if it has no name. */
const char *gguf_pre_of(const char *pattern, bool digits, bool whole, bool nfc);
tern_status gguf_make_gpt2(const gguf_file *g, tk_maker *m);

#endif

/* vocabulary.h -- the arrays of a GGUF's tokenizer. */
#ifndef TERN_SRC_MODELS_GGUF_VOCABULARY_H
#define TERN_SRC_MODELS_GGUF_VOCABULARY_H
#include "models/gguf/gguf.h"
#include "models/tokenizer/maker.h"

/* Read, and compared with each other, to be freed by tk_vocabulary_free also after an error. */
tern_status gguf_read_vocabulary(const gguf_file *g, tk_vocabulary *v);
/* tokenizer.ggml.NAME_token_id: -1 and TERN_OK where it is absent and absent is no token either. */
tern_status gguf_token_id(const gguf_file *g, const tk_vocabulary *v, const char *name,
                          int64_t absent, int64_t *id);

/* The special tokens. defaults: of bos, eos, unknown, padding and separator, -1: none; bos, eos:
 * whether they are added where no key says so. */
tern_status gguf_read_ids(const gguf_file *g, tk_maker *m, const int64_t defaults[5], bool bos,
                          bool eos);
/* The name of a pattern (NULL: ByteLevel's own) and of what is done beside it; NULL: there is
 * none. */
const char *gguf_pre_of(const char *pattern, bool digits, bool whole, bool nfc);
tern_status gguf_make_gpt2(const gguf_file *g, tk_maker *m);

#endif

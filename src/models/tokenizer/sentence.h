/* sentence.h -- SentencePiece's behaviour that tokenizer.json cannot express. */
#ifndef TERN_SRC_MODELS_TOKENIZER_SENTENCE_H
#define TERN_SRC_MODELS_TOKENIZER_SENTENCE_H
#include "models/tokenizer/model.h"

struct tk_sentence {
    tk_trie user;      /* user-defined tokens, which a text keeps unchanged; the values are ids */
    tk_step *charsmap; /* NULL: characters are not replaced */
    bool space, behind, spaces_once;
    const tk_vocab *vocab;
    uint8_t *types; /* types of the n tokens */
    size_t n;
    char *surface; /* decoded text of an unknown token; NULL: the token's text */
    bool has_unused;
};

void tk_sentence_free(tk_sentence *s);
/* Returns the length in bytes of the longest user-defined token that the n bytes begin with, or 0.
 * spaces: a space also matches U+2581 of a token. */
size_t tk_sentence_user(const tk_sentence *s, const char *text, size_t n, bool spaces, int64_t *id);
extern const tk_kind tk_sentence_normalizer, tk_sentence_decoder;

#endif

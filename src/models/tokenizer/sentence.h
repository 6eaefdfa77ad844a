/* sentence.h -- what SentencePiece does with a text and tokenizer.json has no words for. */
#ifndef TERN_SRC_MODELS_TOKENIZER_SENTENCE_H
#define TERN_SRC_MODELS_TOKENIZER_SENTENCE_H
#include "models/tokenizer/model.h"

struct tk_sentence {
    tk_trie user;      /* tokens of the user's, which a text keeps as they are, by number */
    tk_step *charsmap; /* NULL: characters stay as they are */
    bool space, behind, spaces_once;
    const tk_vocab *vocab;
    uint8_t *types; /* of the n tokens */
    size_t n;
    char *surface; /* what an unknown token is decoded as; NULL: its own text */
    bool has_unused;
};

void tk_sentence_free(tk_sentence *s);
/* Bytes of the longest of the user's tokens in front of n bytes; 0: none is there. spaces: a space
 * is what U+2581 in a token is too. */
size_t tk_sentence_user(const tk_sentence *s, const char *text, size_t n, bool spaces, int64_t *id);
extern const tk_kind tk_sentence_normalizer, tk_sentence_decoder;

#endif

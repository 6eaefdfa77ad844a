/* tokenizer.h -- the struct of a tokenizer and the stages of encoding and decoding. */
#ifndef TERN_MODELS_TOKENIZER_TOKENIZER_H
#define TERN_MODELS_TOKENIZER_TOKENIZER_H
#include "models/tokenizer/model.h"

/* ---- added tokens (added.c): found in the text before the model runs ------------------------- */

typedef struct tk_added {
    uint32_t id;
    bool single_word, left, right, special;
} tk_added;
typedef struct tk_added_tokens {
    tk_vocab texts; /* by token id, which may also be an id of the model's vocab */
    tk_added *list;
    size_t n, capacity;
    tk_trie raw,
        normal; /* values: indices of list; raw: found in the user's text, normal: found in the
                   normalized text */
    bool first[2][256]; /* [raw, normal][byte]: whether a token begins with the byte */
} tk_added_tokens;
tern_status tk_added_read(tk_added_tokens *added, const char *function, const json_t *json,
                          const tk_vocab *vocab, const tk_step *normalizer);
void tk_added_free(tk_added_tokens *added);
/* Makes the existing added tokens unfindable in texts. */
void tk_added_unmatch(tk_added_tokens *added);
/* Returns the added token of an id, or NULL if there is none. */
const tk_added *tk_added_by_id(const tk_added_tokens *added, int64_t id);
/* Splits a text into added tokens and the normalized pieces between them. */
tern_status tk_added_split(const tk_added_tokens *added, const tk_step *normalizer, tk_matching *m,
                           const char *text, size_t n, tk_pieces *out);

/* ---- post-processors (post.c) ---------------------------------------------------------------- */

/* A token of a template, or one of the texts: token is -1 for the first, -2 for the second. */
typedef struct tk_place {
    int64_t token;
    uint8_t type;
} tk_place;
typedef struct tk_template {
    tk_place *list;
    size_t n, capacity;
} tk_template;
typedef struct tk_post {
    tk_template one, two;
    bool trim, prefix_space; /* trim: offsets omit blanks at both ends */
} tk_post;
tern_status tk_post_read(tk_post *post, const char *function, const json_t *json);
void tk_post_free(tk_post *post);
/* Returns the number of special tokens that the post-processor adds. */
int64_t tk_post_added(const tk_post *post, bool pair);
tern_status tk_post_run(const tern_tokenizer *tokenizer, bool special, const char *const texts[2],
                        const tk_tokens parts[2], bool pair, tk_tokens *out);

/* ---- the tokenizer --------------------------------------------------------------------------- */

struct tern_tokenizer {
    char *json; /* text of the file, for saving */
    size_t n_json;
    tk_step *normalizer, *pre_tokenizer, *decoder;
    tk_added_tokens added;
    tk_model model;
    tk_post post;
    int64_t pad_id, bos_id, eos_id; /* -1: unknown */
    bool pad_left, cut_left;
    int64_t pad_multiple;
    char *chat_template; /* Jinja; NULL: none */
};

/* Reads n bytes of JSON followed by a zero; NULL after an error. */
tern_tokenizer *tk_tokenizer_read(const char *function, const char *bytes, size_t n);
/* Returns the bytes of a file followed by a zero; the caller frees them. If may_lack and the file
 * is absent: NULL with *n 0 and no error; after an error: NULL with *n 1. */
char *tk_read_file(const char *function, const char *path, bool may_lack, size_t *n);
/* Returns the text of a token, or NULL if no token has this id. */
const char *tk_token_text(const tern_tokenizer *tokenizer, int64_t id, size_t *n);
/* Encodes one or two texts with the post-processor's tokens, truncated to max_length if that is not
 * 0. */
tern_status tk_encode(const tern_tokenizer *tokenizer, const char *function,
                      const char *const text[2], const size_t n[2], const tern_encode_options *o,
                      tk_tokens *out);
/* Returns the decoded text, owned by the caller, or NULL after an error. */
char *tk_decode_ids(const tern_tokenizer *tokenizer, const char *function, const int64_t *ids,
                    size_t n, bool skip_special);

#endif

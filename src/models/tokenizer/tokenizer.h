/* tokenizer.h -- a tokenizer as it was read, and a text on its way through it. */
#ifndef TERN_MODELS_TOKENIZER_TOKENIZER_H
#define TERN_MODELS_TOKENIZER_TOKENIZER_H
#include "models/tokenizer/model.h"

/* ---- added tokens (added.c): cut out of the text before the model sees it -------------------- */

typedef struct tk_added {
    uint32_t id;
    bool single_word, left, right, special;
} tk_added;
typedef struct tk_added_tokens {
    tk_vocab texts; /* by the tokens' numbers, which may be the model's too */
    tk_added *list;
    size_t n, capacity;
    tk_trie raw,
        normal; /* places in the list: looked for in the user's text, and in the normalized one */
    bool first[2][256]; /* bytes that one of them begins with */
} tk_added_tokens;
tern_status tk_added_read(tk_added_tokens *added, const char *function, const json_t *json,
                          const tk_vocab *vocab, const tk_step *normalizer);
void tk_added_free(tk_added_tokens *added);
/* None of those that are there is found in a text from now on. */
void tk_added_unmatch(tk_added_tokens *added);
/* NULL if it is none of them. */
const tk_added *tk_added_by_id(const tk_added_tokens *added, int64_t id);
/* The pieces of a text: tokens, and what is between them, normalized. */
tern_status tk_added_split(const tk_added_tokens *added, const tk_step *normalizer, tk_matching *m,
                           const char *text, size_t n, tk_pieces *out);

/* ---- what stands around a text (post.c) ------------------------------------------------------ */

/* Tokens of a template, or one of the texts: token -1 for the first, -2 for the second. */
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
    bool trim, prefix_space; /* offsets without blanks at the ends */
} tk_post;
tern_status tk_post_read(tk_post *post, const char *function, const json_t *json);
void tk_post_free(tk_post *post);
/* Special tokens that it adds. */
int64_t tk_post_added(const tk_post *post, bool pair);
tern_status tk_post_run(const tern_tokenizer *tokenizer, bool special, const char *const texts[2],
                        const tk_tokens parts[2], bool pair, tk_tokens *out);

/* ---- all of it ------------------------------------------------------------------------------- */

struct tern_tokenizer {
    char *json; /* the file's text, for saving */
    size_t n_json;
    tk_step *normalizer, *pre_tokenizer, *decoder;
    tk_added_tokens added;
    tk_model model;
    tk_post post;
    int64_t pad_id, bos_id, eos_id; /* -1: none is known */
    bool pad_left, cut_left;
    int64_t pad_multiple;
    char *chat_template; /* Jinja; NULL: none */
};

/* Of n bytes of JSON, behind which is a zero. */
tern_tokenizer *tk_tokenizer_read(const char *function, const char *bytes, size_t n);
/* All bytes of a file and a zero, to be freed; NULL and *n 0 without an error where it may lack and
 * does, NULL and *n 1 after an error. */
char *tk_read_file(const char *function, const char *path, bool may_lack, size_t *n);
/* The bytes of a token; NULL if there is none of that number. */
const char *tk_token_text(const tern_tokenizer *tokenizer, int64_t id, size_t *n);
/* A text or two to tokens with all that stands around them, cut to max_length where that is not
 * 0. */
tern_status tk_encode(const tern_tokenizer *tokenizer, const char *function,
                      const char *const text[2], const size_t n[2], const tern_encode_options *o,
                      tk_tokens *out);
/* Text to be freed; NULL after an error. */
char *tk_decode_ids(const tern_tokenizer *tokenizer, const char *function, const int64_t *ids,
                    size_t n, bool skip_special);

#endif

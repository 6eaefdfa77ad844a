/* internal.h -- what a tokenizer is made of: growing arrays, texts with their origin, patterns,
 * steps. */
#ifndef TERN_MODELS_TOKENIZER_INTERNAL_H
#define TERN_MODELS_TOKENIZER_INTERNAL_H
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models/tokenizer.h>

#define TK_TRY(call)                                                                               \
    do {                                                                                           \
        tern_status try_status_ = (call);                                                          \
        if (try_status_ != TERN_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

/* ---- arrays (text.c) ------------------------------------------------------------------------- */

/* Room for `more` elements behind the n that are there; TERN_ERR_MEMORY. */
tern_status tk_reserve(void **list, size_t *capacity, size_t n, size_t more, size_t each);
#define TK_RESERVE(list, capacity, n, more)                                                        \
    tk_reserve((void **)&(list), &(capacity), n, more, sizeof *(list))
char *tk_copy(const char *text, size_t n); /* ends in a zero; NULL after TERN_ERR_MEMORY */

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct tk_range {
    uint32_t from, to; /* bytes of the user's text */
} tk_range;

/* A text on its way to the model: UTF-8, and where each of its bytes comes from. */
typedef struct tk_text {
    char *data;
    tk_range *origin;
    size_t n, capacity, origin_capacity;
} tk_text;

tern_status tk_text_add(tk_text *to, const char *bytes, size_t n, const tk_range *origin);
/* All of them from the same place. */
tern_status tk_text_add_at(tk_text *to, const char *bytes, size_t n, tk_range origin);
/* A text of the user's as it is; n bytes of UTF-8. */
tern_status tk_text_begin(tk_text *to, const char *bytes, size_t n);
void tk_text_free(tk_text *text);

/* A part of a text, or a token that was found in it. */
typedef struct tk_piece {
    size_t from, n;
    int64_t token; /* -1: not one */
} tk_piece;

typedef struct tk_pieces {
    tk_text text;
    tk_piece *list;
    size_t n, capacity;
} tk_pieces;

/* The n bytes of `from` from `at` on as a piece of `to`; of no bytes none. */
tern_status tk_pieces_add(tk_pieces *to, const tk_text *from, size_t at, size_t n);
/* A token instead; bytes of the user's text. */
tern_status tk_pieces_add_token(tk_pieces *to, int64_t token, tk_range origin);
void tk_pieces_free(tk_pieces *pieces);

/* ---- characters (unicode.c) ------------------------------------------------------------------ */

/* Of text that is UTF-8; *at goes on behind it. */
uint32_t tk_next(const char *text, size_t *at);
size_t tk_put(uint32_t c, char bytes[4]);
/* The first byte that is not UTF-8's, n if all are. */
size_t tk_utf8_end(const char *text, size_t n);
bool tk_is_white(uint32_t c);       /* White_Space */
bool tk_is_punctuation(uint32_t c); /* ASCII's and general category P */
bool tk_is_numeric(uint32_t c);     /* N */
bool tk_is_word(uint32_t c);        /* as \w */
bool tk_is_other(uint32_t c);       /* Cc, Cf, Co */
bool tk_is_mark(uint32_t c);        /* M */
bool tk_is_nonspacing(uint32_t c);  /* Mn */
/* Its small letters; the count, at most 2. */
int tk_lower(uint32_t c, uint32_t to[2]);
/* The character that byte-level vocabularies write a byte as, and back: -1 if it is none. */
uint32_t tk_byte_to_char(uint8_t byte);
int tk_char_to_byte(uint32_t c);

/* A character in place of others of a text: change < 0 of as many more after its own, 0 of its own,
 * > 0 of none. */
typedef struct tk_change {
    uint32_t c;
    int32_t change;
} tk_change;
typedef struct tk_changes {
    tk_change *list;
    size_t n, capacity;
} tk_changes;
tern_status tk_changes_add(tk_changes *to, uint32_t c, int32_t change);
/* The text that the list makes of one, without the first `dropped` characters. */
tern_status tk_transform(const tk_text *from, const tk_changes *list, size_t dropped, tk_text *to);
/* Unicode's normal form D, or C where composed, of compatibility where that is asked for. */
tern_status tk_normal_form(const char *text, size_t n, bool composed, bool compatible,
                           tk_changes *to);

/* ---- patterns (pattern.c) -------------------------------------------------------------------- */

typedef struct tk_pattern tk_pattern;
/* What is compared on the way: buffers of one call. Zero-initialise it. */
typedef struct tk_matching {
    const char *function;
    void *match, *context, *stack;
} tk_matching;
void tk_matching_end(tk_matching *m);

/* From {"Regex": ...} or {"String": ...}; NULL after an error. */
tk_pattern *tk_pattern_read(const char *function, const json_t *json);
tk_pattern *tk_pattern_regex(const char *function, const char *regex);
tk_pattern *tk_pattern_literal(const char *bytes, size_t n);
void tk_pattern_free(tk_pattern *p);
/* The next match from `at` on: found or not. */
tern_status tk_find(const tk_pattern *p, tk_matching *m, const char *text, size_t n, size_t at,
                    size_t *from, size_t *to, bool *found);

/* ---- steps (steps.c): normalizers, pre-tokenizers and decoders, from {"type": ..., ...} ------ */

typedef struct tk_step tk_step;
/* Lines of text that decoders change. */
typedef struct tk_words {
    char *data; /* all of them in a row */
    size_t n, capacity;
    size_t *ends;
    size_t count, ends_capacity;
} tk_words;
tern_status tk_words_add(tk_words *to, const char *bytes, size_t n);
tern_status tk_words_extend(tk_words *to, const char *bytes, size_t n); /* the last one */
void tk_words_free(tk_words *words);

typedef struct tk_kind {
    const char *type;
    tern_status (*read)(tk_step *step, const char *function, const json_t *json);
    tern_status (*normalize)(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out);
    tern_status (*split)(const tk_step *step, tk_matching *m, const tk_pieces *in, tk_pieces *out);
    tern_status (*decode)(const tk_step *step, tk_matching *m, const tk_words *in, tk_words *out);
} tk_kind;

typedef enum tk_behavior {
    TK_REMOVED,
    TK_ISOLATED,
    TK_MERGED_WITH_PREVIOUS,
    TK_MERGED_WITH_NEXT,
    TK_CONTIGUOUS
} tk_behavior;

/* What kinds read of JSON, each in fields of its choice. */
struct tk_step {
    const tk_kind *kind;
    tk_step **steps; /* of a Sequence */
    size_t n_steps;
    tk_pattern *pattern;
    char *text, *other;
    size_t n_text, n_other;
    tk_behavior behavior;
    bool flags[4];
    int64_t numbers[2];
    uint32_t character;
    void *table;
    size_t n_table;
    const struct tk_sentence *of; /* of a SentencePiece model, which owns it */
};

/* The kinds of a family; ends with a NULL type. */
extern const tk_kind tk_normalizers[], tk_pre_tokenizers[], tk_decoders[];
/* json may be NULL or null: *step is NULL then. */
tern_status tk_step_read(const char *function, const char *what, const tk_kind *kinds,
                         const json_t *json, tk_step **step);
void tk_step_free(tk_step *step);
/* Each of them may be given no step, which changes nothing. */
tern_status tk_normalize(const tk_step *step, tk_matching *m, tk_text *text);
tern_status tk_split(const tk_step *step, tk_matching *m, tk_pieces *pieces);
tern_status tk_decode(const tk_step *step, tk_matching *m, tk_words *words);

/* sentencepiece's table of replacements (precompiled.c). */
tern_status tk_precompiled_read(tk_step *step, const char *function, const json_t *json);
/* The same of its n bytes, which were base64 there. */
tern_status tk_precompiled_table(tk_step *step, const char *function, const void *bytes, size_t n);
/* What stands for the longest beginning of n bytes that the table has, and its length; NULL: it has
 * none. */
const char *tk_precompiled_longest(const tk_step *step, const char *text, size_t n, size_t *length);
tern_status tk_precompiled(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out);

/* Fields of JSON (steps.c). */
bool tk_bool(const json_t *json, const char *key, bool otherwise);
int64_t tk_int(const json_t *json, const char *key, int64_t otherwise);
/* A text; *n bytes, NULL if there is none. */
const char *tk_string(const json_t *json, const char *key, size_t *n);
tern_status tk_need_text(const char *function, const json_t *json, const char *key, char **text,
                         size_t *n);
/* A text of one character. */
tern_status tk_need_char(const char *function, const json_t *json, const char *key,
                         uint32_t otherwise, uint32_t *c);

#endif

/* internal.h -- the parts of a tokenizer: growing arrays, texts with offsets, patterns, steps. */
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

/* Makes *list hold n + more elements of `each` bytes; TERN_ERR_MEMORY if that fails. */
tern_status tk_reserve(void **list, size_t *capacity, size_t n, size_t more, size_t each);
#define TK_RESERVE(list, capacity, n, more)                                                        \
    tk_reserve((void **)&(list), &(capacity), n, more, sizeof *(list))
/* Returns a zero-terminated copy, owned by the caller, or NULL after TERN_ERR_MEMORY. */
char *tk_copy(const char *text, size_t n);

/* ---- texts ----------------------------------------------------------------------------------- */

typedef struct tk_range {
    uint32_t from, to; /* byte offsets in the user's text */
} tk_range;

/* A text between two steps: UTF-8, and for each byte its range in the user's text. */
typedef struct tk_text {
    char *data;
    tk_range *origin;
    size_t n, capacity, origin_capacity;
} tk_text;

tern_status tk_text_add(tk_text *to, const char *bytes, size_t n, const tk_range *origin);
/* Appends n bytes that all have the same origin. */
tern_status tk_text_add_at(tk_text *to, const char *bytes, size_t n, tk_range origin);
/* Starts with the user's text, n bytes of UTF-8. */
tern_status tk_text_begin(tk_text *to, const char *bytes, size_t n);
void tk_text_free(tk_text *text);

/* A part of a text, or an added token that was found in it. */
typedef struct tk_piece {
    size_t from, n;
    int64_t token; /* -1: no token */
} tk_piece;

typedef struct tk_pieces {
    tk_text text;
    tk_piece *list;
    size_t n, capacity;
} tk_pieces;

/* Appends n bytes of `from`, starting at `at`, as a piece of `to`; does nothing if n is 0. */
tern_status tk_pieces_add(tk_pieces *to, const tk_text *from, size_t at, size_t n);
/* Appends a token as a piece; origin: its range in the user's text. */
tern_status tk_pieces_add_token(tk_pieces *to, int64_t token, tk_range origin);
void tk_pieces_free(tk_pieces *pieces);

/* ---- characters (unicode.c) ------------------------------------------------------------------ */

/* Returns the character at *at of valid UTF-8 and advances *at past it. */
uint32_t tk_next(const char *text, size_t *at);
size_t tk_put(uint32_t c, char bytes[4]);
/* Returns the offset of the first byte that is not valid UTF-8, or n. */
size_t tk_utf8_end(const char *text, size_t n);
bool tk_is_white(uint32_t c);       /* property White_Space */
bool tk_is_punctuation(uint32_t c); /* ASCII punctuation and general category P */
bool tk_is_numeric(uint32_t c);     /* general category N */
bool tk_is_word(uint32_t c);        /* matches \w */
bool tk_is_other(uint32_t c);       /* general categories Cc, Cf, Co */
bool tk_is_mark(uint32_t c);        /* general category M */
bool tk_is_nonspacing(uint32_t c);  /* general category Mn */
/* Writes the lowercase form to to[] and returns its length, at most 2. */
int tk_lower(uint32_t c, uint32_t to[2]);
/* The characters that byte-level vocabularies write bytes as; tk_char_to_byte returns -1 for any
 * other character. */
uint32_t tk_byte_to_char(uint8_t byte);
int tk_char_to_byte(uint32_t c);

/* A character of the new text. change = 0: it replaces one character; change < 0: it replaces 1 -
 * change characters; change > 0: it is inserted. */
typedef struct tk_change {
    uint32_t c;
    int32_t change;
} tk_change;
typedef struct tk_changes {
    tk_change *list;
    size_t n, capacity;
} tk_changes;
tern_status tk_changes_add(tk_changes *to, uint32_t c, int32_t change);
/* Applies the list of changes to a text whose first `dropped` characters are removed. */
tern_status tk_transform(const tk_text *from, const tk_changes *list, size_t dropped, tk_text *to);
/* Computes Unicode's normal form D, or C if composed; KD or KC if compatible. */
tern_status tk_normal_form(const char *text, size_t n, bool composed, bool compatible,
                           tk_changes *to);

/* ---- patterns (pattern.c) -------------------------------------------------------------------- */

typedef struct tk_pattern tk_pattern;
/* Buffers of matching within one call; initialize with zeros. */
typedef struct tk_matching {
    const char *function;
    void *match, *context, *stack;
} tk_matching;
void tk_matching_end(tk_matching *m);

/* Return a new pattern, the first from {"Regex": ...} or {"String": ...}, or NULL after an
 * error. */
tk_pattern *tk_pattern_read(const char *function, const json_t *json);
tk_pattern *tk_pattern_regex(const char *function, const char *regex);
tk_pattern *tk_pattern_literal(const char *bytes, size_t n);
void tk_pattern_free(tk_pattern *p);
/* Finds the next match at or after `at`: sets *found, and if true *from and *to. */
tern_status tk_find(const tk_pattern *p, tk_matching *m, const char *text, size_t n, size_t at,
                    size_t *from, size_t *to, bool *found);

/* ---- steps (steps.c): normalizers, pre-tokenizers and decoders, from {"type": ..., ...} ------ */

typedef struct tk_step tk_step;
/* The list of strings that decoders change. */
typedef struct tk_words {
    char *data; /* all strings, concatenated */
    size_t n, capacity;
    size_t *ends;
    size_t count, ends_capacity;
} tk_words;
tern_status tk_words_add(tk_words *to, const char *bytes, size_t n);
/* Appends to the last string. */
tern_status tk_words_extend(tk_words *to, const char *bytes, size_t n);
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

/* A step as read from JSON; each kind uses fields of its choice. */
struct tk_step {
    const tk_kind *kind;
    tk_step **steps; /* the steps of a Sequence */
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
    const struct tk_sentence *of; /* SentencePiece models: the data, owned by the model */
};

/* The kinds of each family; the last has a NULL type. */
extern const tk_kind tk_normalizers[], tk_pre_tokenizers[], tk_decoders[];
/* Reads a step; if json is NULL or null, *step is NULL. */
tern_status tk_step_read(const char *function, const char *what, const tk_kind *kinds,
                         const json_t *json, tk_step **step);
void tk_step_free(tk_step *step);
/* Run a step; a NULL step changes nothing. */
tern_status tk_normalize(const tk_step *step, tk_matching *m, tk_text *text);
tern_status tk_split(const tk_step *step, tk_matching *m, tk_pieces *pieces);
tern_status tk_decode(const tk_step *step, tk_matching *m, tk_words *words);

/* Reads sentencepiece's table of replacements (precompiled.c). */
tern_status tk_precompiled_read(tk_step *step, const char *function, const json_t *json);
/* Reads the same table from its n bytes, decoded from base64. */
tern_status tk_precompiled_table(tk_step *step, const char *function, const void *bytes, size_t n);
/* Returns the replacement of the longest prefix of the n bytes that is in the table, and the
 * prefix's length; NULL if there is none. */
const char *tk_precompiled_longest(const tk_step *step, const char *text, size_t n, size_t *length);
tern_status tk_precompiled(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out);

/* Return a field of a JSON object, or `otherwise` if it is absent (steps.c). */
bool tk_bool(const json_t *json, const char *key, bool otherwise);
int64_t tk_int(const json_t *json, const char *key, int64_t otherwise);
/* Returns a string field, *n bytes; NULL if it is absent. */
const char *tk_string(const json_t *json, const char *key, size_t *n);
tern_status tk_need_text(const char *function, const json_t *json, const char *key, char **text,
                         size_t *n);
/* Reads a string field of one character. */
tern_status tk_need_char(const char *function, const json_t *json, const char *key,
                         uint32_t otherwise, uint32_t *c);

#endif

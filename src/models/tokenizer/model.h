/* model.h -- what makes tokens of the pieces of a text: BPE, WordPiece, Unigram, WordLevel. */
#ifndef TERN_MODELS_TOKENIZER_MODEL_H
#define TERN_MODELS_TOKENIZER_MODEL_H
#include "models/tokenizer/internal.h"

/* ---- tables (vocab.c) ------------------------------------------------------------------------ */

typedef struct tk_entry {
    uint32_t at, n; /* in the arena; n UINT32_MAX: no token has this number */
} tk_entry;
typedef struct tk_slot {
    uint32_t hash, next_id; /* the token's number + 1; 0: free */
} tk_slot;
/* Tokens by number and by text. */
typedef struct tk_vocab {
    char *arena;
    size_t arena_n, arena_capacity;
    tk_entry *entries;
    size_t n, capacity; /* the largest number and one */
    tk_slot *slots;
    size_t n_slots, count;
} tk_vocab;
tern_status tk_vocab_reserve(tk_vocab *v, size_t count);
/* A text that is there already gets this number. */
tern_status tk_vocab_add(tk_vocab *v, const char *text, size_t n, uint32_t id);
int64_t tk_vocab_find(const tk_vocab *v, const char *text, size_t n); /* -1 if it is not there */
/* NULL for a number without a token. */
const char *tk_vocab_text(const tk_vocab *v, int64_t id, size_t *n);
void tk_vocab_free(tk_vocab *v);

/* Two numbers to a place in a list of merges, and the token that it makes. */
typedef struct tk_pairs {
    struct tk_pair {
        uint64_t key; /* both + 1; 0: free */
        uint32_t rank, id;
    } * slots;
    size_t n_slots, count;
} tk_pairs;
tern_status tk_pairs_reserve(tk_pairs *p, size_t count);
/* The room must be there. A pair that is there already gets the new values. */
void tk_pairs_set(tk_pairs *p, uint32_t a, uint32_t b, uint32_t rank, uint32_t id);
const struct tk_pair *tk_pairs_find(const tk_pairs *p, uint32_t a, uint32_t b);

/* Texts by their first bytes. */
typedef struct tk_trie {
    tk_pairs edges;     /* (node, byte) to a node */
    uint32_t *values;   /* of a node: a number + 1; 0: no text ends there */
    size_t n, capacity; /* nodes */
} tk_trie;
tern_status tk_trie_add(tk_trie *t, const char *text, size_t n, uint32_t value);
/* One byte on from *node, at first 0: whether there is a way. *value: of the text that ends there,
 * else -1. */
bool tk_trie_step(const tk_trie *t, uint32_t *node, uint8_t byte, int64_t *value);
void tk_trie_free(tk_trie *t);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct tk_token {
    uint32_t id;
    tk_range origin; /* bytes of the piece, then of the user's text */
    int32_t word;    /* which piece; -1: none */
    uint8_t type, special;
    bool found; /* an added token, as it stands in the text */
} tk_token;
typedef struct tk_tokens {
    tk_token *list;
    size_t n, capacity;
} tk_tokens;
tern_status tk_tokens_add(tk_tokens *to, uint32_t id, size_t from, size_t end);

typedef struct tk_model tk_model;
typedef struct tk_sentence tk_sentence;
typedef struct tk_scratch {
    void *a, *b;
    size_t a_capacity, b_capacity;
} tk_scratch;

typedef struct tk_model_kind {
    const char *type;
    tern_status (*read)(tk_model *model, const char *function, const json_t *json);
    tern_status (*run)(const tk_model *model, tk_scratch *scratch, const char *text, size_t n,
                       tk_tokens *out);
} tk_model_kind;

struct tk_model {
    const tk_model_kind *kind;
    tk_vocab vocab;
    int64_t unknown;       /* -1: none */
    char *prefix, *suffix; /* of what goes on, and of a word's end; NULL: none */
    size_t n_prefix, n_suffix;
    bool byte_fallback, fuse_unknown, ignore_merges;
    int64_t bytes[256]; /* tokens <0x00> ... <0xFF>; -1: not there */
    tk_pairs merges;
    int64_t longest; /* characters of a word */
    double *scores;
    double unknown_score;
    tk_trie trie;
    tk_sentence *sentence; /* of a SentencePiece model; NULL: of tokenizer.json */
};

extern const tk_model_kind tk_bpe, tk_word_piece, tk_unigram, tk_word_level;
tern_status tk_model_read(tk_model *model, const char *function, const json_t *json);
void tk_model_free(tk_model *model);
/* "vocab" as {text: number}, and the number of "unk_token". */
tern_status tk_read_vocab(tk_model *model, const char *function, const json_t *json);
/* Halves of a merge "a b", whose text and length are the first ones given; false where it has not
 * one space. */
bool tk_merge_split(const char *text[2], size_t n[2]);
/* The numbers of both halves and of what they make, without the n_prefix bytes before the second;
 * how many there are up to the first that is not. room: for both. */
int tk_merge_find(const tk_vocab *vocab, const char *const text[2], const size_t n[2],
                  size_t n_prefix, char *buffer, uint32_t ids[3]);
/* "vocab" and "merges" of a file into model, and what is left of it as JSON without their rows
 * (vocabulary_lists.c). NULL where that is not done and the model is as it was: with *status
 * TERN_OK the file is one for jansson. bytes[n] is zero. */
json_t *tk_lists_read(tk_model *model, const char *bytes, size_t n, tern_status *status);

#endif

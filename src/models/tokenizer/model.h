/* model.h -- the models that split pieces of text into tokens: BPE, WordPiece, Unigram,
 * WordLevel. */
#ifndef TERN_MODELS_TOKENIZER_MODEL_H
#define TERN_MODELS_TOKENIZER_MODEL_H
#include "models/tokenizer/internal.h"

/* ---- tables (vocab.c) ------------------------------------------------------------------------ */

typedef struct tk_entry {
    uint32_t at, n; /* offset and length in the arena; n UINT32_MAX: no token has this id */
} tk_entry;
typedef struct tk_slot {
    uint32_t hash, next_id; /* next_id: the token's id + 1; 0: the slot is free */
} tk_slot;
/* Tokens by id and by text. */
typedef struct tk_vocab {
    char *arena;
    size_t arena_n, arena_capacity;
    tk_entry *entries;
    size_t n, capacity; /* n: the largest id + 1 */
    tk_slot *slots;
    size_t n_slots, count;
} tk_vocab;
tern_status tk_vocab_reserve(tk_vocab *v, size_t count);
/* Adds a token; a text that exists already gets the new id. */
tern_status tk_vocab_add(tk_vocab *v, const char *text, size_t n, uint32_t id);
int64_t tk_vocab_find(const tk_vocab *v, const char *text, size_t n); /* -1 if it is absent */
/* Returns the text of a token, or NULL if no token has this id. */
const char *tk_vocab_text(const tk_vocab *v, int64_t id, size_t *n);
void tk_vocab_free(tk_vocab *v);

/* A hash table from two ids to the rank of their merge and the id of the merged token. */
typedef struct tk_pairs {
    struct tk_pair {
        uint64_t key; /* both ids + 1; 0: the slot is free */
        uint32_t rank, id;
    } * slots;
    size_t n_slots, count;
} tk_pairs;
tern_status tk_pairs_reserve(tk_pairs *p, size_t count);
/* Sets a pair's values; tk_pairs_reserve must have been called for it. */
void tk_pairs_set(tk_pairs *p, uint32_t a, uint32_t b, uint32_t rank, uint32_t id);
const struct tk_pair *tk_pairs_find(const tk_pairs *p, uint32_t a, uint32_t b);

/* A trie of texts. */
typedef struct tk_trie {
    tk_pairs edges;     /* from (node, byte) to the next node */
    uint32_t *values;   /* by node: the text's value + 1; 0: no text ends at the node */
    size_t n, capacity; /* counts of nodes */
} tk_trie;
tern_status tk_trie_add(tk_trie *t, const char *text, size_t n, uint32_t value);
/* Follows the edge `byte` from *node (0: the root); returns false if there is none. *value: the
 * value of the text that ends at the new node, or -1. */
bool tk_trie_step(const tk_trie *t, uint32_t *node, uint8_t byte, int64_t *value);
void tk_trie_free(tk_trie *t);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct tk_token {
    uint32_t id;
    tk_range origin; /* byte offsets in the piece, later in the user's text */
    int32_t word;    /* index of the piece; -1: none */
    uint8_t type, special;
    bool found; /* an added token found in the text */
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
    char *prefix, *suffix; /* prefix of continuations, suffix of word ends; NULL: none */
    size_t n_prefix, n_suffix;
    bool byte_fallback, fuse_unknown, ignore_merges;
    int64_t bytes[256]; /* ids of the tokens <0x00> ... <0xFF>; -1: absent */
    tk_pairs merges;
    int64_t longest; /* maximal number of characters of a word */
    double *scores;
    double unknown_score;
    tk_trie trie;
    tk_sentence *sentence; /* SentencePiece models; NULL: a tokenizer.json */
};

extern const tk_model_kind tk_bpe, tk_word_piece, tk_unigram, tk_word_level;
tern_status tk_model_read(tk_model *model, const char *function, const json_t *json);
void tk_model_free(tk_model *model);
/* Reads "vocab", an object {text: id}, and the id of "unk_token". */
tern_status tk_read_vocab(tk_model *model, const char *function, const json_t *json);
/* Splits a merge "a b", given as text[0] and n[0], into its halves; false if it does not have
 * exactly one space. */
bool tk_merge_split(const char *text[2], size_t n[2]);
/* Finds the ids of both halves and of the merged token, whose text omits the first n_prefix bytes
 * of the second half; returns how many are found before the first that is not. buffer: capacity for
 * both halves. */
int tk_merge_find(const tk_vocab *vocab, const char *const text[2], const size_t n[2],
                  size_t n_prefix, char *buffer, uint32_t ids[3]);
/* Reads "vocab" and "merges" of a file into model and returns the rest of the file as JSON without
 * their rows (vocabulary_lists.c). Returns NULL with model unchanged if the lists are not read;
 * with *status TERN_OK the caller then parses the whole file by jansson. bytes[n] is zero. */
json_t *tk_lists_read(tk_model *model, const char *bytes, size_t n, tern_status *status);

#endif

/* maker.h -- what writes the tokenizer.json of a GGUF's tokenizer. */
#ifndef TERN_SRC_MODELS_GGUF_MAKER_H
#define TERN_SRC_MODELS_GGUF_MAKER_H
#include "models/gguf/vocabulary.h"

/* Text that grows; after a failure it stays as it was. */
typedef struct gguf_out {
    char *text;
    size_t n, capacity;
    tern_status status;
} gguf_out;

/* A tokenizer on its way. */
typedef struct gguf_maker {
    const gguf_file *g;
    gguf_vocabulary v;
    gguf_out o;
    int64_t bos, eos, unknown, pad, separator;
    bool add_bos, add_eos, space; /* space: one is put in front */
    bool spaces_once;             /* those at the ends go, and of several in a row one stays */
    double least, most;           /* of the scores of normal tokens */
} gguf_maker;

/* ---- text of JSON (maker.c) ---------------------------------------------------------------------- */

void gguf_put(gguf_out *o, const char *text);
void gguf_put_bytes(gguf_out *o, const char *bytes, size_t n);
void gguf_put_number(gguf_out *o, int64_t x);
/* "prefix text" */
void gguf_put_quoted(gguf_out *o, const char *prefix, const char *text, size_t n);

/* ---- parts that all have ----------------------------------------------------------------------- */

/* defaults: of bos, eos, unknown, padding and separator, -1: none; bos, eos: whether they are added where no key says so. */
tern_status gguf_read_ids(gguf_maker *m, const int64_t defaults[5], bool bos, bool eos);
/* The beginning of the file: control tokens and the user's are found in the text before anything else; but SentencePiece reads "<s>",
 * "</s>" and "<unk>" in a text as text (named: these are not found). */
void gguf_put_added(gguf_maker *m, bool named);
/* What stands in front of a text and behind it; first and last may be -1. of_both: the second text of a pair has `last` alone. */
void gguf_put_post(gguf_maker *m, int64_t first, int64_t last, bool of_both);
void gguf_put_token(gguf_maker *m, int64_t id);
void gguf_put_vocab(gguf_maker *m);
void gguf_put_unknown(gguf_maker *m);
/* A pair of `whole`, its first n bytes and what is behind the next `gap`. */
void gguf_put_merge(gguf_out *o, bool first, const gguf_text_of *whole, size_t n, size_t gap);

/* ---- models (byte_pairs.c, sentence_pieces.c) ---------------------------------------------------- */

tern_status gguf_write_gpt2(gguf_maker *m);
tern_status gguf_write_llama(gguf_maker *m);
tern_status gguf_write_t5(gguf_maker *m);
tern_status gguf_write_bert(gguf_maker *m);
/* Pairs that make one token have one rank, and so have tokens of one score: the leftmost is merged first. */
tern_status gguf_rank_by_score(gguf_maker *m, tern_tokenizer *t);

#endif

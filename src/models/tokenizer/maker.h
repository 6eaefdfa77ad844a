/* maker.h -- what writes the tokenizer.json of a tokenizer that lies in a file of another kind. */
#ifndef TERN_SRC_MODELS_TOKENIZER_MAKER_H
#define TERN_SRC_MODELS_TOKENIZER_MAKER_H
#include "models/tokenizer/tokenizer.h"

/* ---- text of JSON (maker.c) ------------------------------------------------------------------ */

/* Text that grows; after a failure it stays as it was. */
typedef struct tk_out {
    char *text;
    size_t n, capacity;
    tern_status status;
} tk_out;

void tk_out_text(tk_out *o, const char *text);
void tk_out_bytes(tk_out *o, const char *bytes, size_t n);
void tk_out_number(tk_out *o, int64_t x);
/* "prefix text" */
void tk_out_quoted(tk_out *o, const char *prefix, const char *text, size_t n);
void tk_out_base64(tk_out *o, const unsigned char *bytes, size_t n);
/* A step of the pre-tokenizer that cuts a text by a pattern, and a comma. */
void tk_out_split(tk_out *o, const char *pattern);
/* The bytes that n letters of base64 stand for, into `bytes`, which has room for n; how many there
 * are, SIZE_MAX for a wrong letter. */
size_t tk_base64(const char *text, size_t n, uint8_t *bytes);

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* SentencePiece's and GGUF's types of tokens. */
enum { TK_NORMAL = 1, TK_UNKNOWN, TK_CONTROL, TK_USER, TK_UNUSED, TK_BYTE };

typedef struct tk_text_of {
    const char *text; /* in the file, or in the arena of the vocabulary */
    size_t n;
} tk_text_of;

typedef struct tk_vocabulary {
    const char *model; /* a GGUF's tokenizer.ggml.model; NULL: there is no tokenizer */
    tk_text_of *tokens;
    int32_t *types; /* TK_NORMAL where the file has none */
    float *scores;  /* NULL: none */
    tk_text_of *merges;
    size_t n, n_merges;
    char *arena;    /* texts that are in no file; NULL: all are */
    tk_vocab table; /* of the tokens; all are different */
} tk_vocabulary;

void tk_vocabulary_free(tk_vocabulary *v);
/* Room for n tokens, which are empty and normal; TERN_ERR_MEMORY. */
tern_status tk_vocabulary_reserve(const char *where, tk_vocabulary *v, size_t n, bool scores);
/* Token i of the vocabulary, which is found by its text from now on; TERN_ERR_IO where the text is
 * there already. what: for messages. */
tern_status tk_vocabulary_set(const char *where, const char *what, tk_vocabulary *v, size_t i,
                              tk_text_of text);

/* ---- tokenizers on their way ----------------------------------------------------------------- */

typedef struct tk_maker {
    const char *where; /* what messages begin with: the function and the file */
    tk_vocabulary v;
    tk_out o;
    int64_t bos, eos, unknown, pad, separator; /* -1: none */
    bool add_bos, add_eos;
    bool space, behind;   /* space: one is put in front of a text, or behind it */
    bool spaces_once;     /* spaces at the ends go, and of several in a row one stays */
    bool byte_fallback;   /* what has no token is its bytes */
    bool lowercase;       /* of word pieces */
    bool roberta;         /* pairs and the mask are RoBERTa's */
    bool marked;          /* word pieces that begin a word have U+2581 in front, others no ## */
    const void *charsmap; /* SentencePiece's table of replacements; NULL: none */
    size_t n_charsmap;
    const char *surface; /* what an unknown token is decoded as; NULL: its own text */
    double least, most;  /* of the scores of normal tokens */
} tk_maker;

/* The beginning of the file: control tokens and the user's are found in the text before anything
 * else; but SentencePiece reads "<s>", "</s>" and "<unk>" in a text as text (named: these are not
 * found). */
void tk_make_added(tk_maker *m, bool named);
/* What stands in front of a text and behind it; first and last may be -1. of_both: the second text
 * of a pair has `last` alone. */
void tk_make_post(tk_maker *m, int64_t first, int64_t last, bool of_both);
void tk_make_token(tk_maker *m, int64_t id);
void tk_make_vocab(tk_maker *m);
void tk_make_unknown(tk_maker *m);
/* A pair of `whole`, its first n bytes and what is behind the next `gap`. */
void tk_out_merge(tk_out *o, bool first, const tk_text_of *whole, size_t n, size_t gap);
/* The pairs of tokens that make another one, which has the highest score first, and the end of the
 * file. */
tern_status tk_make_scored_merges(tk_maker *m);

/* Least and most of the scores; all of these are needed by the next two (sentence_pieces.c). */
void tk_score_range(tk_maker *m);
tern_status tk_make_llama(tk_maker *m);
tern_status tk_make_t5(tk_maker *m);
tern_status tk_make_bert(tk_maker *m); /* tokens as tokenizer.json spells them (word_pieces.c) */
/* BPE on bytes, whose tokens are spelled in GPT-2's alphabet, by its pattern (byte_level.c): up to
 * the model's vocab. */
tern_status tk_make_byte_level(tk_maker *m, const char *pattern, bool digits, bool nfc, bool whole);
/* Pairs that make one token have one rank, and so have tokens of one score: the leftmost is merged
 * first. */
tern_status tk_rank_by_score(tk_maker *m, tern_tokenizer *t);
/* What SentencePiece does and tokenizer.json has no words for (sentence.c); the tokenizer was read
 * of what m wrote. */
tern_status tk_make_sentence(tk_maker *m, tern_tokenizer *t);
/* The tokenizer of what m wrote, with its special ids, where that was done (status); NULL after an
 * error. */
tern_tokenizer *tk_make(tk_maker *m, tern_status status);
void tk_maker_free(tk_maker *m);

/* ---- files of other kinds -------------------------------------------------------------------- */

/* What a directory's tokenizer_config.json says, or a program. */
typedef struct tk_settings {
    const json_t *config; /* NULL: none */
    const tern_tiktoken_options *tiktoken;
} tk_settings;
/* Of n bytes behind which is a zero; where: the function and the file. path: of the file, for those
 * that have another beside them. */
typedef tern_tokenizer *(*tk_reader)(const char *where, const char *path, const char *bytes,
                                     size_t n, const tk_settings *settings);
tern_tokenizer *tk_read_json(const char *where, const char *path, const char *bytes, size_t n,
                             const tk_settings *settings);
tern_tokenizer *tk_read_sentence_piece(const char *where, const char *path, const char *bytes,
                                       size_t n, const tk_settings *settings);
tern_tokenizer *tk_read_tiktoken(const char *where, const char *path, const char *bytes, size_t n,
                                 const tk_settings *settings);
tern_tokenizer *tk_read_tekken(const char *where, const char *path, const char *bytes, size_t n,
                               const tk_settings *settings);
tern_tokenizer *tk_read_word_list(const char *where, const char *path, const char *bytes, size_t n,
                                  const tk_settings *settings);
tern_tokenizer *tk_read_vocab_and_merges(const char *where, const char *path, const char *bytes,
                                         size_t n, const tk_settings *settings);
/* An object of JSON; NULL after an error (load.c). */
json_t *tk_parse(const char *where, const char *bytes, size_t n);
/* The chat templates beside a tokenizer by their names ("default"), as transformers reads them:
 * chat_template.jinja and additional_chat_templates/NAME.jinja, else what tokenizer_config.json
 * (NULL: there is none) has, a text or a list, else chat_template.json; NULL after an error. */
json_t *tk_chat_templates(const char *function, const char *folder, const json_t *config);
/* Whether n bytes are a SentencePiece model: fields of it up to the end. */
bool tk_is_sentence_piece(const char *bytes, size_t n);
/* Whether the first line is base64, a space, digits. */
bool tk_is_tiktoken(const char *bytes, size_t n);
/* The reader of a file's contents; NULL: none reads them (kinds.c). */
tk_reader tk_reader_of(const char *bytes, size_t n);

#endif

/* maker.h -- writes the tokenizer.json of tokenizers that are stored in other formats. */
#ifndef TERN_SRC_MODELS_TOKENIZER_MAKER_H
#define TERN_SRC_MODELS_TOKENIZER_MAKER_H
#include "models/tokenizer/tokenizer.h"

/* ---- text of JSON (maker.c) ------------------------------------------------------------------ */

/* A growing text; after an error it does not change any more. */
typedef struct tk_out {
    char *text;
    size_t n, capacity;
    tern_status status;
} tk_out;

void tk_out_text(tk_out *o, const char *text);
void tk_out_bytes(tk_out *o, const char *bytes, size_t n);
void tk_out_number(tk_out *o, int64_t x);
/* Writes prefix and text as one JSON string. */
void tk_out_quoted(tk_out *o, const char *prefix, const char *text, size_t n);
void tk_out_base64(tk_out *o, const unsigned char *bytes, size_t n);
/* Writes a pre-tokenizer step that splits by a pattern, and a comma. */
void tk_out_split(tk_out *o, const char *pattern);
/* Decodes n letters of base64 into bytes, which has capacity n; returns the number of bytes, or
 * SIZE_MAX for a wrong letter. */
size_t tk_base64(const char *text, size_t n, uint8_t *bytes);

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* Token types of SentencePiece and GGUF. */
enum { TK_NORMAL = 1, TK_UNKNOWN, TK_CONTROL, TK_USER, TK_UNUSED, TK_BYTE };

typedef struct tk_text_of {
    const char *text; /* points into the file or into the vocabulary's arena */
    size_t n;
} tk_text_of;

typedef struct tk_vocabulary {
    const char *model; /* tokenizer.ggml.model of a GGUF; NULL: no tokenizer */
    tk_text_of *tokens;
    int32_t *types; /* TK_NORMAL if the file has no types */
    float *scores;  /* NULL: none */
    tk_text_of *merges;
    size_t n, n_merges;
    char *arena;    /* texts that are in no file; NULL: none */
    tk_vocab table; /* finds tokens by their text; all texts differ */
} tk_vocabulary;

void tk_vocabulary_free(tk_vocabulary *v);
/* Allocates n tokens, empty and of type TK_NORMAL; TERN_ERR_MEMORY if that fails. */
tern_status tk_vocabulary_reserve(const char *where, tk_vocabulary *v, size_t n, bool scores);
/* Sets the text of token i and adds it to the table; TERN_ERR_IO if another token has the same
 * text. what: for messages. */
tern_status tk_vocabulary_set(const char *where, const char *what, tk_vocabulary *v, size_t i,
                              tk_text_of text);

/* ---- writing tokenizers --------------------------------------------------------------------- */

typedef struct tk_maker {
    const char *where; /* start of error messages: the function and the file */
    tk_vocabulary v;
    tk_out o;
    int64_t bos, eos, unknown, pad, separator; /* token ids; -1: none */
    bool add_bos, add_eos;
    bool space, behind;   /* space: a space is added before a text, or after it if behind */
    bool spaces_once;     /* spaces at both ends are removed, runs of spaces become one */
    bool byte_fallback;   /* text without a token becomes byte tokens */
    bool lowercase;       /* WordPiece: the text is lowercased */
    bool roberta;         /* the post-processor and the mask token are RoBERTa's */
    bool marked;          /* WordPiece: word starts begin with U+2581; continuations have no ## */
    const void *charsmap; /* SentencePiece's table of replacements; NULL: none */
    size_t n_charsmap;
    const char *surface; /* decoded text of an unknown token; NULL: the token's text */
    double least, most;  /* range of the scores of normal tokens */
} tk_maker;

/* Writes the start of the file with the added tokens: control and user-defined tokens are found in
 * the text before anything else. If named, "<s>", "</s>" and "<unk>" are not found: SentencePiece
 * reads them in a text as text. */
void tk_make_added(tk_maker *m, bool named);
/* Writes the post-processor, which puts token `first` before and `last` after a text; -1: none.
 * of_both: the second text of a pair has `last` alone. */
void tk_make_post(tk_maker *m, int64_t first, int64_t last, bool of_both);
void tk_make_token(tk_maker *m, int64_t id);
void tk_make_vocab(tk_maker *m);
void tk_make_unknown(tk_maker *m);
/* Writes a merge of `whole`: its first n bytes, and the bytes after the next `gap`. */
void tk_out_merge(tk_out *o, bool first, const tk_text_of *whole, size_t n, size_t gap);
/* Writes the merges for every token that two others form, highest score first, and the end of the
 * file; TERN_ERR_MEMORY. */
tern_status tk_make_scored_merges(tk_maker *m);

/* Computes m->least and m->most, which tk_make_llama and tk_make_t5 need (sentence_pieces.c). */
void tk_score_range(tk_maker *m);
tern_status tk_make_llama(tk_maker *m);
tern_status tk_make_t5(tk_maker *m);
tern_status tk_make_bert(tk_maker *m); /* tokens in the spelling of tokenizer.json
                                          (word_pieces.c) */
/* Writes byte-level BPE, whose tokens are spelled in GPT-2's alphabet, with a split pattern
 * (byte_level.c), up to the model's vocab. */
tern_status tk_make_byte_level(tk_maker *m, const char *pattern, bool digits, bool nfc, bool whole);
/* Gives merges that form the same token one rank, and tokens of equal score one rank: the leftmost
 * is merged first. */
tern_status tk_rank_by_score(tk_maker *m, tern_tokenizer *t);
/* Adds SentencePiece's behaviour that tokenizer.json cannot express (sentence.c); t was read from
 * the text that m wrote. */
tern_status tk_make_sentence(tk_maker *m, tern_tokenizer *t);
/* Returns the tokenizer of the text that m wrote, with its special ids, or NULL after an error,
 * including an error in status. */
tern_tokenizer *tk_make(tk_maker *m, tern_status status);
void tk_maker_free(tk_maker *m);

/* ---- other file formats --------------------------------------------------------------------- */

/* Settings from tokenizer_config.json of the directory, or from the program. */
typedef struct tk_settings {
    const json_t *config; /* NULL: none */
    const tern_tiktoken_options *tiktoken;
} tk_settings;
/* Returns a tokenizer from n bytes followed by a zero, or NULL after an error. where: the function
 * and the file, for messages; path: the file, for formats with a second file beside it. */
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
/* Returns an object parsed from JSON, or NULL after an error (load.c). */
json_t *tk_parse(const char *where, const char *bytes, size_t n);
/* Returns the chat templates beside a tokenizer by name ("default"), in transformers' order:
 * chat_template.jinja and additional_chat_templates/NAME.jinja, else the text or list in
 * tokenizer_config.json (config; NULL: none), else chat_template.json; NULL after an error. */
json_t *tk_chat_templates(const char *function, const char *folder, const json_t *config);
/* Whether n bytes are a SentencePiece model: valid protobuf fields up to the end. */
bool tk_is_sentence_piece(const char *bytes, size_t n);
/* Whether the first line is base64, a space and digits. */
bool tk_is_tiktoken(const char *bytes, size_t n);
/* Returns the reader for a file's contents, or NULL if the format is unknown (kinds.c). */
tk_reader tk_reader_of(const char *bytes, size_t n);

#endif

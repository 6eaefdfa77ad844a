/* tokenizer.h -- tokenizers of pretrained models: text to ids and back, as tokenizer.json
 * describes. */
#ifndef TERN_MODELS_TOKENIZER_H
#define TERN_MODELS_TOKENIZER_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* The side on which the shorter texts of a batch are padded. */
typedef enum tern_padding_side {
    TERN_PADDING_SIDE_DEFAULT = 0, /* as the tokenizer's files specify, else right */
    TERN_PADDING_SIDE_RIGHT,
    TERN_PADDING_SIDE_LEFT /* for generation */
} tern_padding_side;

typedef struct tern_encode_options {
    bool no_special_tokens;     /* add no special tokens, such as [CLS] or <s>
                             * (add_special_tokens=False) */
    int64_t max_length;         /* longer texts are cut to this many tokens, with special tokens; 0:
                             * no limit */
    int64_t pad_to_multiple_of; /* pad a batch to a multiple of this; 0: to its longest text */
    bool pad_to_max_length;     /* pad to max_length (padding="max_length") */
    tern_padding_side padding_side; /* the side on which a batch is padded */
    tern_optional_int pad_token_id; /* default: that of the files */
    int64_t text_bytes; /* the length of a single text that may contain zero bytes; 0: it ends
                         * with one */
    const char *device; /* the device of the results; NULL: the default device */
    uint64_t reserved[4];
} tern_encode_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_encode_options tern_encode_defaults(void);

/* A batch of encoded texts, n rows of T tokens, in int64. */
typedef struct tern_encoding {
    tern_tensor *input_ids, *attention_mask; /* (n, T); the mask is 0 for padding */
    tern_tensor *token_type_ids;             /* (n, T): 1 for the second text of a pair */
    tern_tensor *special_tokens_mask;        /* (n, T): 1 for tokens that are not in the text */
    tern_tensor *word_ids;                   /* (n, T): the number of the word; -1 for none */
    tern_tensor *offsets; /* (n, T, 2): the first and the last + 1 byte in the text */
    uint64_t reserved[4];
} tern_encoding;

/* ---- tokenizers ------------------------------------------------------------------------------ */

/* A tokenizer: BPE, WordPiece, Unigram or WordLevel, with the normalizers, patterns, processors and
 * decoders of its file. It does not change, so several threads may use one. */
typedef struct tern_tokenizer tern_tokenizer;

/* Loads the tokenizer of a directory of the Hugging Face Hub (AutoTokenizer.from_pretrained): the
 * first of tokenizer.json, tokenizer.model, spiece.model, sentencepiece.bpe.model, vocab.json with
 * merges.txt, vocab.txt, tekken.json, and the only *.tiktoken or *.gguf, and tokenizer_config.json
 * if it exists. directory may also be one of these files; a tokenizer.json beside a GGUF takes
 * precedence over the GGUF. Truncation and padding lengths in the files are not applied, as in
 * transformers. The caller frees it with tern_tokenizer_free. NULL after TERN_ERR_IO for files that
 * do not exist or are malformed, and after TERN_ERR_UNSUPPORTED for a component of another type,
 * which the message names. */
TERN_API tern_tokenizer *tern_tokenizer_from_pretrained(const char *directory);
/* Loads a tokenizer from one file, whose contents determine its format: tokenizer.json
 * (tokenizers.Tokenizer.from_file), a SentencePiece model (BPE or Unigram), a tiktoken file,
 * tekken.json, vocab.txt (WordPiece), vocab.json or merges.txt (with the other one beside it), or
 * GGUF. Without a configuration, a SentencePiece BPE model puts its first token before a text, as
 * Llama's does, and a Unigram model its last one after it, as T5's does; control tokens in a text
 * are not recognised. */
TERN_API tern_tokenizer *tern_tokenizer_from_file(const char *path);

/* The properties of a tokenizer that a tiktoken file does not contain. */
typedef struct tern_tiktoken_options {
    const char
        *pattern; /* the pattern that splits a text into words; NULL: chosen, with the special
                   * tokens, by the number of tokens: GPT-2, p50k_base, cl100k_base, o200k_base,
                   * Whisper, Llama 3, Qwen */
    const char *const *special_tokens; /* ends with NULL; these are matched in a text first */
    const int64_t *special_ids;        /* the id of each; NULL: the numbers after the last rank */
    uint64_t reserved[4];
} tern_tiktoken_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_tiktoken_options tern_tiktoken_defaults(void);
/* Loads a tiktoken file, which has the ranks of tokens in base64 (tiktoken.Encoding). NULL after
 * TERN_ERR_ARGUMENT if no pattern is given and none is known for that number of tokens, and if a
 * special token has the id of another token. */
TERN_API tern_tokenizer *tern_tokenizer_from_tiktoken(const char *path,
                                                      const tern_tiktoken_options *options);
/* Writes a tokenizer.json: the same bytes that were read, or for a tokenizer of another format the
 * equivalent tokenizer.json. Properties that this format cannot express (user-defined tokens of a
 * SentencePiece model within words, its sums in float32) are written as Hugging Face's converters
 * do. */
TERN_API tern_status tern_tokenizer_save(const tern_tokenizer *tokenizer, const char *path);
/* Frees the tokenizer; NULL is fine. */
TERN_API void tern_tokenizer_free(tern_tokenizer *tokenizer);

/* Returns the ids (1, T), int64, of a text in UTF-8. Errors: TERN_ERR_ARGUMENT for bytes that are
 * not UTF-8. */
TERN_API tern_tensor *tern_tokenizer_encode(const tern_tokenizer *tokenizer, const char *text,
                                            const tern_encode_options *options);
/* Encodes n texts and pads them to one length: *ids and *mask become the ids and the attention mask
 * (n, T), int64. Either pointer may be NULL. */
TERN_API tern_status tern_tokenizer_encode_batch(const tern_tokenizer *tokenizer,
                                                 const char *const *texts, int n,
                                                 const tern_encode_options *options,
                                                 tern_tensor **ids, tern_tensor **mask);
/* Does the same for n texts, or n pairs of texts if pairs is not NULL, and writes everything that
 * is known of the tokens to *out (tokenizer(texts, pairs)). */
TERN_API tern_status tern_tokenizer_call(const tern_tokenizer *tokenizer, const char *const *texts,
                                         const char *const *pairs, int n,
                                         const tern_encode_options *options, tern_encoding *out);
/* Returns the text of ids (T) or (1, T), int64 or int32, which the caller frees with
 * tern_free_text. Ids without a token are skipped. */
TERN_API char *tern_tokenizer_decode(const tern_tokenizer *tokenizer, const tern_tensor *ids,
                                     bool skip_special_tokens);

/* Returns the number of tokens, with added ones (len(tokenizer)). */
TERN_API int64_t tern_tokenizer_vocab_size(const tern_tokenizer *tokenizer);
/* Returns the id of a token (convert_tokens_to_ids); -1, without an error, if there is none. */
TERN_API int64_t tern_tokenizer_token_to_id(const tern_tokenizer *tokenizer, const char *token);
/* Returns the token of an id as the file has it; NULL, without an error, if there is none. The text
 * lives as long as the tokenizer. */
TERN_API const char *tern_tokenizer_id_to_token(const tern_tokenizer *tokenizer, int64_t id);

typedef enum tern_special_token {
    TERN_TOKEN_PAD,
    TERN_TOKEN_BOS,
    TERN_TOKEN_EOS
} tern_special_token;
/* Returns the id of the token that the files specify for this purpose; -1, without an error, if
 * they specify none. */
TERN_API int64_t tern_tokenizer_special_id(const tern_tokenizer *tokenizer,
                                           tern_special_token which);

/* Returns the chat template of the files, as text (Jinja, which tern does not execute); NULL,
 * without an error, if there is none. The text lives as long as the tokenizer. */
TERN_API const char *tern_tokenizer_chat_template(const tern_tokenizer *tokenizer);

/* ---- training -------------------------------------------------------------------------------- */

typedef struct tern_bpe_options {
    int64_t vocab_size;                /* default 30000 */
    int64_t min_frequency;             /* pairs that occur less often are not merged */
    int64_t max_token_length;          /* in characters of the vocabulary; 0: no limit */
    const char *const *special_tokens; /* these get the first ids; ends with NULL */
    const tern_tokenizer
        *like; /* use the normalizer, patterns and decoder of this tokenizer; default: GPT-2's
                * bytes */
    uint64_t reserved[4];
} tern_bpe_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_bpe_options tern_bpe_defaults(void);
/* Trains a BPE tokenizer on n texts, with the tokens that Hugging Face's BpeTrainer learns from
 * them (also tokenizer.train_new_from_iterator). tern_tokenizer_save writes it. The caller frees it
 * with tern_tokenizer_free; NULL after an error. */
TERN_API tern_tokenizer *tern_tokenizer_train_bpe(const char *const *texts, int n,
                                                  const tern_bpe_options *options);

/* ---- streaming ------------------------------------------------------------------------------- */

typedef struct tern_decode_stream tern_decode_stream;
/* Makes a decoder of ids that arrive one by one (tokenizers.decoders.DecodeStream). The caller
 * frees it with tern_decode_stream_free, before the tokenizer. */
TERN_API tern_decode_stream *tern_decode_stream_new(const tern_tokenizer *tokenizer,
                                                    bool skip_special_tokens);
/* Returns the text that the next id adds: "" while a character is incomplete. The text lives until
 * the next call; NULL after an error. */
TERN_API const char *tern_decode_stream_step(tern_decode_stream *stream, int64_t id);
/* Frees the decoder; NULL is fine. */
TERN_API void tern_decode_stream_free(tern_decode_stream *stream);

TERN_END_DECLS
#endif

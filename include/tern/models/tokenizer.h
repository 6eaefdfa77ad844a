/* tokenizer.h -- text as ids and back, by the tokenizer.json of a pretrained model. */
#ifndef TERN_MODELS_TOKENIZER_H
#define TERN_MODELS_TOKENIZER_H
#include <tern/tern.h>

TERN_BEGIN_DECLS

/* Where the shorter texts of a batch are filled up. */
typedef enum tern_padding_side {
    TERN_PADDING_SIDE_DEFAULT = 0, /* what the tokenizer's files say, else the right */
    TERN_PADDING_SIDE_RIGHT,
    TERN_PADDING_SIDE_LEFT /* for generation */
} tern_padding_side;

typedef struct tern_encode_options {
    bool no_special_tokens;     /* add_special_tokens=False: neither [CLS] nor <s> */
    int64_t max_length;         /* longer ones are cut, special tokens counted; 0: they are not */
    int64_t pad_to_multiple_of; /* of a batch; 0: as long as the longest */
    bool pad_to_max_length;     /* padding="max_length" */
    tern_padding_side padding_side; /* of a batch */
    tern_optional_int pad_token_id; /* default: the files' own */
    int64_t text_bytes;             /* of a single text that may hold zeros; 0: it ends with one */
    const char *device;             /* of the results; NULL: the default device */
    uint64_t reserved[4];
} tern_encode_options;
/* All of the defaults. */
TERN_API tern_encode_options tern_encode_defaults(void);

/* Text as a batch of n rows of T tokens, of int64. */
typedef struct tern_encoding {
    tern_tensor *input_ids, *attention_mask; /* (n, T); the mask is 0 where a row is filled up */
    tern_tensor *token_type_ids;             /* (n, T): 1 for the second text of a pair */
    tern_tensor *special_tokens_mask;        /* (n, T): 1 for what the text does not have itself */
    tern_tensor *word_ids;                   /* (n, T): which piece of the text; -1: none */
    tern_tensor *offsets;                    /* (n, T, 2): from and to, in bytes of the text */
    uint64_t reserved[4];
} tern_encoding;

/* ---- tokenizers ------------------------------------------------------------------------------ */

/* BPE, WordPiece, Unigram or WordLevel with the normalizers, patterns, processors and decoders that
 * its file names. It does not change: threads may use one together. */
typedef struct tern_tokenizer tern_tokenizer;

/* Of a directory of the Hugging Face Hub (AutoTokenizer.from_pretrained): the first of
 * tokenizer.json, tokenizer.model, spiece.model, sentencepiece.bpe.model, vocab.json with
 * merges.txt, vocab.txt, tekken.json, and the only *.tiktoken or *.gguf; and where it is there
 * tokenizer_config.json. Or of a file of these kinds; before a GGUF a tokenizer.json beside it
 * goes. Lengths to cut or fill up to that the files name are not applied, as transformers does not.
 * To be freed with tern_tokenizer_free. NULL after TERN_ERR_IO for files that are not there or
 * malformed, and after TERN_ERR_UNSUPPORTED for a part of another type, which the message names. */
TERN_API tern_tokenizer *tern_tokenizer_from_pretrained(const char *directory);
/* Of a file alone, whose kind its contents say: tokenizer.json (tokenizers.Tokenizer.from_file), a
 * SentencePiece model (of byte pairs or unigrams), a tiktoken file, tekken.json, vocab.txt
 * (WordPiece), vocab.json or merges.txt (the other one lies beside it), GGUF. Without a config a
 * SentencePiece model of byte pairs puts its first token in front of a text, as Llama's, and one of
 * unigrams its last behind it, as T5's; control tokens are not found in a text. */
TERN_API tern_tokenizer *tern_tokenizer_from_file(const char *path);

/* What a tiktoken file does not hold. */
typedef struct tern_tiktoken_options {
    const char
        *pattern; /* what cuts a text into words; NULL: by the number of tokens, and the special
                    tokens too: GPT-2, p50k_base, cl100k_base, o200k_base, Whisper, Llama 3, Qwen */
    const char *const *special_tokens; /* ends with NULL; found in a text before anything else */
    const int64_t *special_ids;        /* of each; NULL: the numbers behind the last rank */
    uint64_t reserved[4];
} tern_tiktoken_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_tiktoken_options tern_tiktoken_defaults(void);
/* Of a tiktoken file, ranks of the bytes of tokens in base64 (tiktoken.Encoding). NULL after
 * TERN_ERR_ARGUMENT where no pattern is given and none is known for so many tokens, and for a
 * special token whose number is another's. */
TERN_API tern_tokenizer *tern_tokenizer_from_tiktoken(const char *path,
                                                      const tern_tiktoken_options *options);
/* Writes a tokenizer.json, byte for byte as it was read; of a tokenizer from a file of another kind
 * the tokenizer.json that stands for it: what that has no words for (a SentencePiece model's tokens
 * of the user's within words, its float32 sums) is as Hugging Face's converters leave it. */
TERN_API tern_status tern_tokenizer_save(const tern_tokenizer *tokenizer, const char *path);
/* Frees it; NULL is fine. */
TERN_API void tern_tokenizer_free(tern_tokenizer *tokenizer);

/* A text, UTF-8, as ids (1, T) of int64. TERN_ERR_ARGUMENT for bytes that are not UTF-8. */
TERN_API tern_tensor *tern_tokenizer_encode(const tern_tokenizer *tokenizer, const char *text,
                                            const tern_encode_options *options);
/* n texts filled up to one length: ids and attention_mask (n, T) of int64, either of which may be
 * NULL. */
TERN_API tern_status tern_tokenizer_encode_batch(const tern_tokenizer *tokenizer,
                                                 const char *const *texts, int n,
                                                 const tern_encode_options *options,
                                                 tern_tensor **ids, tern_tensor **mask);
/* The same with all that is known of the tokens (tokenizer(texts, pairs)): of n texts, or n pairs
 * of texts where pairs is not NULL. */
TERN_API tern_status tern_tokenizer_call(const tern_tokenizer *tokenizer, const char *const *texts,
                                         const char *const *pairs, int n,
                                         const tern_encode_options *options, tern_encoding *out);
/* The text of ids (T) or (1, T) of int64 or int32, to be freed with tern_free_text. Numbers without
 * a token give nothing. */
TERN_API char *tern_tokenizer_decode(const tern_tokenizer *tokenizer, const tern_tensor *ids,
                                     bool skip_special_tokens);

/* How many tokens there are, added ones too (len(tokenizer)). */
TERN_API int64_t tern_tokenizer_vocab_size(const tern_tokenizer *tokenizer);
/* The number of a token (convert_tokens_to_ids); -1 without an error if there is none. */
TERN_API int64_t tern_tokenizer_token_to_id(const tern_tokenizer *tokenizer, const char *token);
/* The token of a number as the file writes it; NULL without an error if there is none. Lives as
 * long as the tokenizer. */
TERN_API const char *tern_tokenizer_id_to_token(const tern_tokenizer *tokenizer, int64_t id);

typedef enum tern_special_token {
    TERN_TOKEN_PAD,
    TERN_TOKEN_BOS,
    TERN_TOKEN_EOS
} tern_special_token;
/* The number of the token that the files name for it; -1 without an error if they name none. */
TERN_API int64_t tern_tokenizer_special_id(const tern_tokenizer *tokenizer,
                                           tern_special_token which);

/* The text of the chat template that the files name (Jinja, which is not run); NULL without an
 * error if there is none. Lives as long as the tokenizer. */
TERN_API const char *tern_tokenizer_chat_template(const tern_tokenizer *tokenizer);

/* ---- training -------------------------------------------------------------------------------- */

typedef struct tern_bpe_options {
    int64_t vocab_size;                /* default 30000 */
    int64_t min_frequency;             /* pairs that are rarer are not merged */
    int64_t max_token_length;          /* characters as the vocabulary writes them; 0: any */
    const char *const *special_tokens; /* the first numbers; ends with NULL */
    const tern_tokenizer
        *like; /* whose normalizer, patterns and decoder it is to have; default: GPT-2's bytes */
    uint64_t reserved[4];
} tern_bpe_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_bpe_options tern_bpe_defaults(void);
/* A tokenizer of byte pairs learned of n texts, with the tokens that Hugging Face's BpeTrainer
 * learns of them (also tokenizer.train_new_from_iterator); tern_tokenizer_save writes it. To be
 * freed with tern_tokenizer_free; NULL after an error. */
TERN_API tern_tokenizer *tern_tokenizer_train_bpe(const char *const *texts, int n,
                                                  const tern_bpe_options *options);

/* ---- as tokens come -------------------------------------------------------------------------- */

typedef struct tern_decode_stream tern_decode_stream;
/* Text of ids that come one by one (tokenizers.decoders.DecodeStream); to be freed with
 * tern_decode_stream_free before the tokenizer. */
TERN_API tern_decode_stream *tern_decode_stream_new(const tern_tokenizer *tokenizer,
                                                    bool skip_special_tokens);
/* What the next id adds to the text: "" while a character is not whole. Lives until the next call;
 * NULL after an error. */
TERN_API const char *tern_decode_stream_step(tern_decode_stream *stream, int64_t id);
/* Frees it; NULL is fine. */
TERN_API void tern_decode_stream_free(tern_decode_stream *stream);

TERN_END_DECLS
#endif

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

TERN_END_DECLS
#endif

/* text.h -- text to learn from: files, a vocabulary of bytes, windows, and a bigram table. */
#ifndef CHAR_GPT_TEXT_H
#define CHAR_GPT_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch of text as ids of the vocabulary. */
typedef struct text_ids {
    uint8_t *ids;
    size_t n;
    int files;
} text_ids;

typedef struct text {
    text_ids train, valid;
    int vocabulary; /* how many different bytes the training text has */
    int id_of[256]; /* of a byte; -1 where the training text does not have it */
    unsigned char byte_of[256];
} text;

/* Windows of the validation text, spread evenly over it: the same for the model and the bigrams. */
typedef struct text_windows {
    int count, length;
    size_t distance; /* from the start of one to that of the next */
} text_windows;

/* Read a file (split 90/10) or every text file below a folder (each 10th is for validation). Of a
 * checkout of tern that is src, include and cl_kernels; path NULL: stories (stories.h). False after a
 * message to stderr. */
bool text_load(text *t, const char *path);
void text_free(text *t);

/* Random numbers of the example's own: uniform in [0, 1). */
double text_random(uint64_t *state);
/* n windows of length ids from random places, and the same one id further on. */
void text_random_windows(const text_ids *from, int n, int length, uint64_t *state, int64_t *x,
                         int64_t *y);
/* At most `most` windows for validation, a multiple of batch where the text is long enough. */
text_windows text_validation_windows(const text *t, int length, int batch, int most);
/* Windows first .. first + n - 1 of the validation text. */
void text_windows_read(const text *t, text_windows w, int first, int n, int64_t *x, int64_t *y);
/* Mean loss in nats over these windows of a table of pairs counted in the training text, each count
 * one larger than it was found (add-one smoothing). */
double text_bigram_loss(const text *t, text_windows w);

#endif

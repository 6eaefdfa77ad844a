/* structure.h -- files as trees of their parts, so that a fuzzer changes what a file is made of: numbers that count and measure other
 * parts are right again after a change, unless they are to lie. */
#ifndef TERN_FUZZ_STRUCTURE_H
#define TERN_FUZZ_STRUCTURE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct blob {
    uint8_t *at;
    size_t n;
} blob;

typedef enum part_kind { PART_BYTES, PART_NUMBER, PART_GROUP } part_kind;
/* What a number is: as it stands; of the part `of` its bytes, its children, its bytes with all bits turned, its checksum, the head of
 * a raw block of zstd. */
typedef enum part_says {
    SAYS_VALUE,
    SAYS_LENGTH,
    SAYS_COUNT,
    SAYS_COMPLEMENT,
    SAYS_CRC,
    SAYS_BLOCK
} part_says;

typedef struct part part;
struct part {
    part_kind kind;
    blob content; /* of PART_BYTES */
    int width;    /* of a number, in bytes; 0: a varint */
    bool big;     /* the first byte is the highest */
    part_says says;
    part *of;
    int64_t more; /* is added to what it says */
    bool lies;    /* it is its value, whatever it should be */
    uint64_t value;
    part **children;
    int n;
    const char *open, *close, *between; /* texts around and between the children; NULL: none */
    int align;                          /* of a group: zeros behind it up to a multiple */
    blob (*wrap)(
        const part
            *group); /* what a group becomes, from its children's `made`; NULL: their bytes */
    blob made;
    bool is_made;
};

/* Memory of a tree, until structure_clear. */
void *structure_room(size_t n);
void structure_clear(void);
part *part_bytes(const void *at, size_t n);
part *part_text(const char *text);
part *part_number(int width, uint64_t value);
/* A number that says something of a part. */
part *part_saying(int width, part_says says, part *of);
part *part_group(void);
/* child is the group's last one; returns child. */
part *part_add(part *group, part *child);

/* The bytes of the whole; none (n 0) where they are more than a fuzzer tries. */
blob structure_make(part *root);
/* One change of the tree. words: texts that mean something in it, NULL-ended. */
void structure_change(part *root, const char *const *words, uint64_t *random);
uint64_t structure_random(uint64_t *state);

/* Files of a kind as trees (grammars.c). What can't be parsed is one part. */
part *parse_gguf(blob file);
part *parse_torch(blob file); /* an archive with its pickles, or a stream of them */
part *parse_protobuf(blob file);
part *parse_json(blob file);
part *parse_lines(blob file);
part *parse_gzip(blob content); /* in two members */
part *parse_zstd(blob content); /* in two frames, and one that is skipped */
part *parse_image(blob file);   /* BMP, WebP */

#endif

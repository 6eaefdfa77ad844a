/* pickles.h -- pickles written by hand, and archives of torch.save around them. */
#ifndef TERN_TESTS_PICKLES_H
#define TERN_TESTS_PICKLES_H
#include "archive.h"
#include "folder.h"
#include "support.h"

/* A pickle's bytes may be zeros. */
typedef struct pickle {
    const char *bytes;
    size_t n;
} pickle;
#define P(TEXT)                                                                                    \
    {                                                                                              \
        TEXT, sizeof(TEXT) - 1                                                                     \
    }

/* ---- pieces of pickles ----------------------------------------------------------------------- */

#define BEGIN      "\x80\2"
#define TEXT(N, T) "X" N "\0\0\0" T
#define NUMBER(N)  "K" N
#define FLOATS     "ctorch\nFloatStorage\n"
#define REBUILD    "ctorch._utils\n_rebuild_tensor_v2\n"
#define ORDERED    "ccollections\nOrderedDict\n)R"
/* A storage of N floats under a key, and a tensor of it. */
#define STORAGE(KEY, N)                                                                            \
    "(" TEXT("\7", "storage") FLOATS TEXT("\1", KEY) TEXT("\3", "cpu") NUMBER(N) "tQ"
#define TENSOR_OF(S, OFFSET, SIZE, STRIDE)                                                         \
    REBUILD "(" S NUMBER(OFFSET)                                                                   \
    SIZE STRIDE "\x89" ORDERED "tR"
#define MATRIX               TENSOR_OF(STORAGE("0", "\6"), "\0", "K\2K\3\x86", "K\3K\1\x86")
#define DICT_OF(NAME, VALUE) BEGIN "}" TEXT("\1", NAME) VALUE "s."

#define TEN(T) T T T T T T T T T T

/* ---- files ----------------------------------------------------------------------------------- */

static const float numbers[6] = {1, 2, 3, 4, 5, 6};

typedef struct options {
    const char *order; /* NULL: little */
    const char *more;  /* the name of another member */
    size_t bytes;      /* of the storage; 0: all */
    bool no_crc, no_storage;
} options;

static inline void write_archive(const char *path, pickle p, options o)
{
    archive a = {0};
    archive_add(&a, (archive_member){
                        .name = "any/data.pkl", .data = p.bytes, .size = p.n, .no_crc = o.no_crc});
    archive_add(&a, (archive_member){.name = "any/byteorder",
                                     .data = o.order ? o.order : "little",
                                     .size = strlen(o.order ? o.order : "little")});
    if (!o.no_storage)
        archive_add(&a, (archive_member){.name = "any/data/0",
                                         .data = numbers,
                                         .size = o.bytes ? o.bytes : sizeof numbers,
                                         .no_crc = o.no_crc});
    if (o.more)
        archive_add(&a, (archive_member){.name = o.more, .data = "x", .size = 1});
    archive_add(&a, (archive_member){.name = "any/version", .data = "3\n", .size = 2});
    archive_end(&a, 0);
    write_file(path, a.bytes, a.size);
    free(a.bytes);
}

/* The dict of a pickle; NULL also where there is no libzip, which is said. */
static inline tern_state_dict *load(pickle p, options o)
{
    write_archive(in_folder("x.pt"), p, o);
    return tern_load(in_folder("x.pt"), NULL);
}

#endif

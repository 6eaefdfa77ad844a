/* hostile_safetensors.c -- safetensors files that are damaged, odd or made to do harm. */
#include "hostile.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- headers --------------------------------------------------------------------------------- */

#define INFO(DTYPE, SHAPE, OFFSETS)                                                                \
    "{\"dtype\":" DTYPE ",\"shape\":" SHAPE ",\"data_offsets\":" OFFSETS "}"
#define F32(SHAPE, OFFSETS)      INFO("\"F32\"", SHAPE, OFFSETS)
#define USUAL                    F32("[2,2]", "[0,16]")
#define NAMED(NAME)              "{" NAME ":" USUAL "}"
#define T(DTYPE, SHAPE, OFFSETS) "{\"t\":" INFO(DTYPE, SHAPE, OFFSETS) "}"
#define SHAPED(SHAPE)            T("\"F32\"", SHAPE, "[0,16]")
#define PLACED(OFFSETS)          T("\"F32\"", "[2,2]", OFFSETS)
#define TWO(A, B)                "{\"a\":" F32("[2,2]", A) ",\"b\":" F32("[2,2]", B) "}"
#define META(VALUE)              "{\"__metadata__\":" VALUE ",\"t\":" USUAL "}"
#define PLAIN                    NAMED("\"t\"")

enum { GIVEN = 1, RELATIVE };

typedef struct row {
    const char *name;
    bool accepted;
    const char *says, *header;
    int data;   /* bytes of it */
    int n_kind; /* the length in front: of the header; this; this more; */
    uint64_t n;
    const char *payload;
    size_t payload_bytes;
} row;

#define REJECT(NAME, SAYS, HEADER, DATA, ...)                                                      \
    {.name = NAME, .says = SAYS, .header = HEADER, .data = DATA, __VA_ARGS__},
#define ACCEPT(NAME, HEADER, DATA, ...)                                                            \
    {.name = NAME, .accepted = true, .header = HEADER, .data = DATA, __VA_ARGS__},
#define JSON "invalid JSON in header"

static const row rows[] = {
#include "hostile_safetensors.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- those that are long: front, `times` times middle (with its number in it), end ----------- */

typedef struct long_row {
    const char *name;
    bool accepted;
    const char *says, *front, *middle, *between, *end;
    int times, data;
} long_row;

static const long_row longs[] = {
    {"json_deep_arrays", false, JSON, "{\"x\":", "[", "", "}", 100000, 0},
    {"json_deep_objects", false, JSON, "", "{\"a\":", "", "1", 50000, 0},
    {"json_deep_unknown_field", false, JSON,
     "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16],\"x\":", "[]", "", "}}",
     100000, 16},
    {"dtype_4KB_string", false, JSON, "{\"t\":{\"dtype\":\"", "F", "",
     "\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", 4096, 16},
    {"shape_rank_1000", false, JSON, "{\"t\":{\"dtype\":\"F32\",\"shape\":[", "1,", "",
     "4],\"data_offsets\":[0,16]}}", 999, 16},
    {"off_overlap_10k", false, "invalid offset", "{", "\"w%d\":" USUAL, ",", "}", 10000, 16},
    {"zero_size_100k", true, NULL, "{", "\"w%d\":" F32("[0]", "[0,0]"), ",", "}", 100000, 0},
    {"name_1MB", true, NULL, "{\"", "n", "", "\":" USUAL "}", 1 << 20, 16},
    {"meta_100k", true, NULL, "{\"__metadata__\":{", "\"k%d\":\"v\"", ",", "},\"t\":" USUAL "}",
     100000, 16},
};
enum { LONGS = sizeof longs / sizeof *longs };

static void put(hostile_file *file, const char *header, size_t n, uint64_t length, const char *data,
                size_t bytes)
{
    file->size = 8 + n + bytes;
    file->bytes = calloc(1, file->size + 1);
    for (int i = 0; i < 8; i++)
        file->bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(file->bytes + 8, header, n);
    if (data)
        memcpy(file->bytes + 8 + n, data, bytes);
}

static void make_long(const long_row *r, hostile_file *file)
{
    size_t each = strlen(r->middle) + strlen(r->between) + 8;
    char *text = malloc(strlen(r->front) + strlen(r->end) + each * (size_t)r->times + 1);
    char *to = text + sprintf(text, "%s", r->front);
    for (int i = 0; i < r->times; i++) {
        const char *number = strstr(r->middle, "%d");
        if (number)
            to += sprintf(to, "%.*s%d%s", (int)(number - r->middle), r->middle, i, number + 2);
        else
            to = stpcpy(to, r->middle);
        if (i + 1 < r->times)
            to = stpcpy(to, r->between);
    }
    to = stpcpy(to, r->end);
    put(file, text, (size_t)(to - text), (uint64_t)(to - text), NULL, (size_t)r->data);
    free(text);
}

bool hostile_safetensors(int i, hostile_file *file)
{
    static const char *const cut[] = {"", "\2\0\0\0\0\0\0"}; /* without a length */
    static const size_t cut_bytes[] = {0, 7};
    if (i < 2) {
        *file = (hostile_file){i ? "len_7_bytes" : "len_empty_file", false, "header too small",
                               calloc(1, 8), cut_bytes[i]};
        memcpy(file->bytes, cut[i], cut_bytes[i]);
        return true;
    }
    i -= 2;
    if (i < LONGS) {
        *file = (hostile_file){
            .name = longs[i].name, .accepted = longs[i].accepted, .says = longs[i].says};
        make_long(&longs[i], file);
        return true;
    }
    i -= LONGS;
    if (i >= ROWS)
        return false;
    const row *r = &rows[i];
    size_t n = strlen(r->header);
    *file = (hostile_file){.name = r->name, .accepted = r->accepted, .says = r->says};
    put(file, r->header, n,
        r->n_kind == GIVEN      ? r->n
        : r->n_kind == RELATIVE ? n + r->n
                                : n,
        r->payload, r->payload ? r->payload_bytes : (size_t)r->data);
    return true;
}

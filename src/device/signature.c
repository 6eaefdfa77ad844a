/* signature.c -- reads the parameters of kernels, and writes the error of arguments that do not
 * fit. */
#include "device/signature.h"
#include "prelude_host.h"

#include "dialect.h"
#include "order.h"
#include "shapes.h"
#undef TERN_F64 /* of the dialect; here it is the dtype */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} types[] = {{"untyped", 0},
#define X(T) {#T, sizeof(DTYPE_FIELD(STORED, DTYPE_##T))},
             EACH_DTYPE(X)
#undef X
#define X(T) {#T, sizeof(DTYPE_FIELD(STORED, STORED_##T))},
                 EACH_STORED(X)
#undef X
#define X(NAME, BYTES) {#NAME, BYTES},
#include "types.def"
#undef X
};

/* Types of dialect.h that depend on the kernel's dtype. */
enum { WORDS = 4 };
static const char *const words[WORDS] = {"STO", "REAL", "ACC", "KEY"};
#define TYPE_(T)    DTYPE_GLUE_(TERN_TYPE, T)
#define KEY__(MATH) KEY_##MATH
#define KEY_(MATH)  KEY__(MATH)
static const uint8_t type_of_word[TERN_DTYPE_END][WORDS] = {
#define X(T)                                                                                       \
    [DTYPE_FIELD(ENUM, DTYPE_##T)] = {TERN_TYPE_##T, TYPE_(DTYPE_FIELD(MATH, DTYPE_##T)),          \
                                      TYPE_(DTYPE_FIELD(SUM, DTYPE_##T)),                          \
                                      TYPE_(KEY_(DTYPE_FIELD(MATH, DTYPE_##T)))},
    EACH_DTYPE(X)
#undef X
};

static uint8_t type_called(const char *name)
{
    for (int i = 1; i < TERN_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return (uint8_t)i;
    return TERN_TYPE_NONE;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* A parameter as it is written: (OUT, STO, ys). */
typedef struct written {
    char role[8], type[32], name[32];
} written;

typedef struct reader {
    const char *at, *again; /* again: the text behind "*20", which is repeated 20 times */
    long times; /* repetitions left; 0 before "*20". Repeated parameters have no offsets. */
} reader;

static bool next(reader *r, written *w)
{
    if (*r->at == '*') {
        char *end;
        r->times = strtol(r->at + 1, &end, 10);
        r->at = r->again = end;
    }
    if (!*r->at && r->times > 1) {
        r->times--;
        r->at = r->again;
    }
    int read = 0;
    if (sscanf(r->at, "(%7[^,], %31[^,], %31[^)])%n", w->role, w->type, w->name, &read) != 3)
        return false;
    r->at += read;
    return true;
}

/* An element type that is written out, instead of STO, stands for two dtypes of the same size. */
static const struct {
    uint8_t type, also;
} alike[] = {{TERN_TYPE_f16, TERN_TYPE_bf16}, /* u16 */
             {TERN_TYPE_u8, TERN_TYPE_bool},
             {TERN_TYPE_u64, TERN_TYPE_i64}};

static tern_kernel_parameter parameter_of(const written *w, tern_dtype dtype)
{
    tern_kernel_parameter p = {.role = strcmp(w->role, "OUT") == 0  ? TERN_ROLE_OUT
                                       : strcmp(w->role, "IN") == 0 ? TERN_ROLE_IN
                                                                    : TERN_ROLE_VALUE};
    char other[sizeof w->type];
    for (int i = 0; i < WORDS; i++)
        if (strcmp(words[i], w->type) == 0)
            p.type = type_of_word[dtype][i];
    if (sscanf(w->type, "STO_OF(%31[^)])", other) == 1)
        p.type = type_called(other);
    p.also = p.type;
    if (p.type == TERN_TYPE_NONE) {
        p.type = type_called(strcmp(w->type, "u16") == 0 ? "f16" : w->type);
        p.also = p.type;
        for (size_t i = 0; p.role != TERN_ROLE_VALUE && i < sizeof alike / sizeof *alike; i++)
            if (alike[i].type == p.type)
                p.also = alike[i].also;
    }
    p.bytes = (uint32_t)types[p.type].bytes;
    p.by_reference = p.role == TERN_ROLE_VALUE && p.type >= TERN_FIRST_STRUCT;
    return p;
}

static reader reader_of(const char *name, tern_dtype dtype)
{
    return (reader){.at = tern_host_parameters(name, dtype)};
}

int tern_signature_read(tern_kernel_parameter parameters[TERN_MOST_PARAMETERS], const char *file,
                        const char *name, tern_dtype dtype)
{
    written w;
    int n = 0;
    if (tern_dtype_is_stored(dtype)) {
        tern_fail_dtype(name, dtype);
        return -1;
    }
    reader r = reader_of(name, dtype);
    if (!r.at) {
        tern_fail(TERN_ERR_UNSUPPORTED, "there is no kernel %s for %s (%s.cl)", name,
                  tern_dtype_name(dtype), file);
        return -1;
    }
    while (n < TERN_MOST_PARAMETERS && next(&r, &w)) {
        parameters[n] = parameter_of(&w, dtype);
        parameters[n++].without_offset = r.times > 0;
    }
    return n;
}

/* ---- messages ---------------------------------------------------------------------------- */

typedef struct phrase {
    char text[96];
} phrase;

/* Returns a text like "OUT f32" or "ARG tern_nd_index of 496 bytes". */
static phrase phrase_of(unsigned role, unsigned type, const char *name, uint32_t bytes)
{
    static const char *const roles[] = {"a buffer of", "OUT", "IN", "an unused buffer of", "ARG"};
    phrase p;
    int n = snprintf(p.text, sizeof p.text, "%s %s", roles[role], name);
    if (type >= TERN_FIRST_STRUCT)
        snprintf(p.text + n, sizeof p.text - (size_t)n, " of %u bytes", (unsigned)bytes);
    return p;
}

tern_status tern_signature_refuse(const tern_place *place, const char *file, const char *name,
                                  tern_dtype dtype, const tern_arg *args, int n)
{
    reader r = reader_of(name, dtype);
    phrase wanted = {"nothing"}, given = {"nothing"};
    written w;
    tern_kernel_parameter p;
    int i = 0;
    bool more;
    while ((more = next(&r, &w)) && i < n) {
        p = parameter_of(&w, dtype);
        if (!tern_parameter_takes(&p, &args[i]))
            break;
        i++;
    }
    if (more) {
        p = parameter_of(&w, dtype);
        wanted = phrase_of(p.role, p.type, p.also == p.type ? types[p.type].name : w.type, p.bytes);
    }
    if (i < n)
        given = phrase_of(args[i].role, args[i].type, types[args[i].type].name, args[i].bytes);
    return tern_fail(TERN_ERR_ARGUMENT,
                     "%s: kernel %s for %s (%s.cl) can't be launched: parameter %d (%s): expected "
                     "%s, given %s; %d arguments in all",
                     tern_place_text(place), name, tern_dtype_name(dtype), file, i + 1,
                     more ? w.name : "one too many", wanted.text, given.text, n);
}

tern_status tern_signature_check(const tern_place *place, const char *file, const char *name,
                                 tern_dtype dtype, const tern_arg *args, int n)
{
    tern_kernel_parameter parameters[TERN_MOST_PARAMETERS];
    int wanted = tern_signature_read(parameters, file, name, dtype);
    if (wanted < 0)
        return tern_last_status();
    return tern_parameters_take(parameters, wanted, args, n)
               ? TERN_OK
               : tern_signature_refuse(place, file, name, dtype, args, n);
}

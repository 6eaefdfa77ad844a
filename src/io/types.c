/* types.c -- the names of element types in files. */
#include "io/types.h"
#include <string.h>

/* In reverse order of their place in files. */
static const io_type types[] = {
    {"BOOL", 8, TERN_BOOL, "b1"},
    {"F4", 4, TERN_DTYPE_DEFAULT, ""},
    {"F6_E2M3", 6, TERN_DTYPE_DEFAULT, ""},
    {"F6_E3M2", 6, TERN_DTYPE_DEFAULT, ""},
    {"U8", 8, TERN_U8, "u1"},
    {"I8", 8, TERN_I8, "i1"},
    {"F8_E5M2", 8, TERN_F8_E5M2, ""},
    {"F8_E4M3", 8, TERN_F8_E4M3FN, ""},
    {"F8_E8M0", 8, TERN_DTYPE_DEFAULT, ""},
    {"F8_E4M3FNUZ", 8, TERN_DTYPE_DEFAULT, ""},
    {"F8_E5M2FNUZ", 8, TERN_DTYPE_DEFAULT, ""},
    {"I16", 16, TERN_I16, "i2"},
    {"U16", 16, TERN_U16, "u2"},
    {"F16", 16, TERN_F16, "f2"},
    {"BF16", 16, TERN_BF16, ""},
    {"I32", 32, TERN_I32, "i4"},
    {"U32", 32, TERN_U32, "u4"},
    {"F32", 32, TERN_F32, "f4"},
    {"C64", 64, TERN_DTYPE_DEFAULT, ""},
    {"F64", 64, TERN_F64, "f8"},
    {"I64", 64, TERN_I64, "i8"},
    {"U64", 64, TERN_U64, "u8"},
};
enum { TYPES = sizeof types / sizeof *types };

const io_type *io_type_named(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const io_type *io_type_numpy(const char *descr)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].numpy[0] && strcmp(types[i].numpy, descr) == 0)
            return &types[i];
    return NULL;
}

const io_type *io_type_of(tern_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (dtype && types[i].dtype == dtype)
            return &types[i];
    return NULL;
}

int io_type_rank(const io_type *type)
{
    return (int)(types + TYPES - type);
}

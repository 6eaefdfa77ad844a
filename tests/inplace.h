/* inplace.h -- the functions of inplace.def, and what they are given. */
#ifndef TERN_TESTS_INPLACE_H
#define TERN_TESTS_INPLACE_H
#include "support.h"

#define ONE TERN_SCALAR(1)

typedef struct operands {
    tern_tensor *y, *mask, *index, *places, *number;
} operands;

typedef tern_tensor *(*function_of_x)(tern_tensor *x, const operands *o);

/* name: "add", of tern_add_ and tern_add; makes: the latter, NULL where there is none; says: what tern_add_ says of a leaf
 * that requires grad. */
typedef struct row {
    const char *name, *says;
    function_of_x write, makes;
} row;

/* clang-format off */
#define OF_OPERANDS(NAME, FUNCTION, ...)                                                           \
    static tern_tensor *NAME(tern_tensor *x, const operands *o)                                    \
    {                                                                                              \
        tern_tensor *y = o->y, *mask = o->mask, *index = o->index, *number = o->number;            \
        tern_tensor *places = o->places;                                                           \
        (void)y, (void)mask, (void)index, (void)places, (void)number;                              \
        return FUNCTION(x __VA_OPT__(,) __VA_ARGS__);                                              \
    }
/* clang-format on */
#define IN_PLACE_ONLY(name, ...) OF_OPERANDS(write_##name, tern_##name##_, __VA_ARGS__)
#define OF_MORE(name, ...)                                                                         \
    IN_PLACE_ONLY(name, __VA_ARGS__) OF_OPERANDS(make_##name, tern_##name, __VA_ARGS__)
#define OF_INTEGERS(name, ...) OF_MORE(name, __VA_ARGS__)
#define OF_X(name)             OF_MORE(name)
#define OF_Y(name)             OF_MORE(name, y)
#define OF_A_NUMBER(name)      OF_MORE(name, ONE)
#include "inplace.def"
#undef IN_PLACE_ONLY
#undef OF_MORE
#undef OF_INTEGERS

#define IN_PLACE_ONLY(name, ...) {#name, "leaf Variable", write_##name, NULL},
#define OF_MORE(name, ...)       {#name, "leaf Variable", write_##name, make_##name},
#define OF_INTEGERS(name, ...)   {#name, "not implemented for float32", write_##name, make_##name},
static const row rows[] = {
#include "inplace.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static inline operands operands_of(const char *device)
{
    return (operands){TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 2, 1, 2, 1, 2),
                      TENSOR(device, TERN_BOOL, TERN_SHAPE(2, 3), 1, 0, 1, 0, 1, 0),
                      TENSOR(device, TERN_I64, TERN_SHAPE(2), 0, 1),
                      TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 0, 1, 0, 1, 0, 1),
                      TENSOR(device, TERN_F32, (tern_shape){0}, 1)};
}

#endif

/* dtype.h -- what the library has about an element type: a row of cl_kernels/dtypes.def. */
#ifndef TERN_BASE_DTYPE_H
#define TERN_BASE_DTYPE_H
#include "base/error.h"
#include "dtypes.def"
#include <stdatomic.h>
#include <tern/tensor.h>

typedef struct tern_dtype_row {
    const char *name;   /* "float32" */
    const char *suffix; /* "f32", in kernels' names */
    tern_dtype math;    /* what kernels compute in: F32, F64, I32 or I64 */
    uint8_t size;       /* bytes of an element */
    uint8_t kind;       /* bit of the sets below; of equal types of numbers the same */
    uint8_t digits;     /* every whole number up to 2^digits is one of the type's */
    double greatest;    /* the largest finite number */
} tern_dtype_row;

enum {
#define X(T) +1
    TERN_DTYPE_END = 1 EACH_DTYPE(X) EACH_STORED(X) /* one after the last type */
#undef X
};

/* By tern_dtype; the first is no type, and all zeros. */
extern const tern_dtype_row tern_dtype_rows[TERN_DTYPE_END];

/* Sets of types, as rows of elementwise.def name them. */
#define TERN_KINDS_(F, D, H, S, U, B)                                                              \
    ((F) << 0 | (D) << 1 | (H) << 2 | (S) << 3 | (U) << 4 | (B) << 5)
typedef enum tern_dtype_set {
    TERN_SET_ALL = DTYPE_CALL_(TERN_KINDS_, SET_ALL),
    TERN_SET_FLOATS = DTYPE_CALL_(TERN_KINDS_, SET_FLOATS),
    TERN_SET_NUMBERS = DTYPE_CALL_(TERN_KINDS_, SET_NUMBERS),
    TERN_SET_WHOLES = DTYPE_CALL_(TERN_KINDS_, SET_WHOLES),
    TERN_SET_INTS = DTYPE_CALL_(TERN_KINDS_, SET_INTS),
    TERN_SET_SIGNED = DTYPE_CALL_(TERN_KINDS_, SET_SIGNED),
    TERN_SET_UNSIGNED = DTYPE_CALL_(TERN_KINDS_, SET_UNSIGNED),
    TERN_SET_BOOLS = DTYPE_CALL_(TERN_KINDS_, SET_BOOLS)
} tern_dtype_set;

/* Of a known type. */
static inline bool tern_dtype_in(tern_dtype dtype, tern_dtype_set set)
{
    return (unsigned)set >> tern_dtype_rows[dtype].kind & 1u;
}

/* Whether dtype is one of those that are only stored: copied, converted, compared and indexed. */
static inline bool tern_dtype_is_stored(tern_dtype dtype)
{
    return dtype > TERN_BOOL;
}

/* Whether a pointer to elements may be to elements of dtype, and "float32", "halves (uint16_t)". */
bool tern_elements_are(tern_elements elements, tern_dtype dtype);
const char *tern_elements_name(tern_elements elements);

/* The dtype of reals that none was given for: tern_get_default_dtype(). */
extern _Atomic(tern_dtype) tern_chosen_dtype;
static inline tern_dtype tern_default_real(void)
{
    return atomic_load_explicit(&tern_chosen_dtype, memory_order_relaxed);
}

static inline bool tern_dtype_is_half(tern_dtype dtype)
{
    return dtype == TERN_F16 || dtype == TERN_BF16;
}

/* TERN_ERR_DTYPE: "<function>: not implemented for <dtype>", and what such a dtype is for; unless
 * it is a floating type. */
tern_status tern_fail_dtype(const char *function, tern_dtype dtype);
tern_status tern_check_floating(const char *function, tern_dtype dtype);

#endif

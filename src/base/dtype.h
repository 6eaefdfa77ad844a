/* dtype.h -- the properties of an element type, which are a row of cl_kernels/dtypes.def. */
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
    uint8_t kind;       /* the number of the type's bit in the sets below */
    uint8_t digits;     /* the type has every whole number up to 2^digits */
    double greatest;    /* the largest finite number */
} tern_dtype_row;

enum {
#define X(T) +1
    TERN_DTYPE_END = 1 EACH_DTYPE(X) EACH_STORED(X) /* one after the last type */
#undef X
};

/* The rows, indexed by tern_dtype. Row 0 belongs to no type and is all zeros. */
extern const tern_dtype_row tern_dtype_rows[TERN_DTYPE_END];

/* The sets of types that rows of elementwise.def name. */
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

/* Returns whether dtype, which is not 0, is in the set. */
static inline bool tern_dtype_in(tern_dtype dtype, tern_dtype_set set)
{
    return (unsigned)set >> tern_dtype_rows[dtype].kind & 1u;
}

/* Returns whether kernels do not compute in dtype: tensors of it are only copied, converted,
 * compared and indexed. */
static inline bool tern_dtype_is_stored(tern_dtype dtype)
{
    return dtype > TERN_BOOL;
}

/* The first returns whether a C pointer of the type `elements` may point to elements of dtype, the
 * second that type's name for messages: "float32", "halves (uint16_t)". */
bool tern_elements_are(tern_elements elements, tern_dtype dtype);
const char *tern_elements_name(tern_elements elements);

/* The dtype of floating point tensors that are created without one: tern_get_default_dtype(). */
extern _Atomic(tern_dtype) tern_chosen_dtype;
static inline tern_dtype tern_default_real(void)
{
    return atomic_load_explicit(&tern_chosen_dtype, memory_order_relaxed);
}

static inline bool tern_dtype_is_half(tern_dtype dtype)
{
    return dtype == TERN_F16 || dtype == TERN_BF16;
}

/* The first records and returns TERN_ERR_DTYPE: "<function>: not implemented for <dtype>", and the
 * operations that such a dtype has. The second does so unless dtype is a floating point type, and
 * then returns TERN_OK. */
tern_status tern_fail_dtype(const char *function, tern_dtype dtype);
tern_status tern_check_floating(const char *function, tern_dtype dtype);

#endif

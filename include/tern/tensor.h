/* tensor.h -- tensors: their types and shapes, what they hold, and who owns them. */
#ifndef TERN_TENSOR_H
#define TERN_TENSOR_H
#include <tern/defaults.h>
#include <tern/device.h>

TERN_BEGIN_DECLS

typedef struct tern_tensor tern_tensor;

enum { TERN_MAX_DIMS = 12 };

/* Element types. Values never change. */
typedef enum tern_dtype {
    TERN_DTYPE_DEFAULT = 0, /* the type that PyTorch would choose: float32, or that of the value */
    TERN_F32 = 1,           /* torch.float32 */
    TERN_F64 = 2,           /* torch.float64 */
    TERN_F16 = 3,           /* torch.float16 */
    TERN_BF16 = 4,          /* torch.bfloat16 */
    TERN_I32 = 5,           /* torch.int32 */
    TERN_I64 = 6,           /* torch.int64 */
    TERN_U8 = 7,            /* torch.uint8 */
    TERN_BOOL = 8,          /* torch.bool */
    /* The types from here on are only stored: their tensors can be copied, filled, printed,
     * converted (tern_to_dtype), compared and indexed, and promote as PyTorch's do; other
     * arithmetic is TERN_ERR_DTYPE. */
    TERN_I8 = 9,         /* torch.int8 */
    TERN_I16 = 10,       /* torch.int16 */
    TERN_U16 = 11,       /* torch.uint16 */
    TERN_U32 = 12,       /* torch.uint32 */
    TERN_U64 = 13,       /* torch.uint64 */
    TERN_F8_E4M3FN = 14, /* torch.float8_e4m3fn: conversions to it saturate at 448 */
    TERN_F8_E5M2 = 15    /* torch.float8_e5m2 */
} tern_dtype;

/* Returns "float32" and so on; "?" for an unknown value. */
TERN_API const char *tern_dtype_name(tern_dtype dtype);
/* Returns the bytes of one element; 0 for an unknown value. */
TERN_API size_t tern_dtype_size(tern_dtype dtype);
/* Returns whether dtype is float32, float64, float16, bfloat16 or a float8. */
TERN_API bool tern_dtype_is_floating_point(tern_dtype dtype);
/* Returns the dtype of new tensors and modules for which none is given, of a real beside integers,
 * and of what integers become where reals are needed (torch.get_default_dtype). It is float32 until
 * it is set, and one for the whole process. */
TERN_API tern_dtype tern_get_default_dtype(void);
/* Sets that dtype, which must be of floating point (torch.set_default_dtype). Errors:
 * TERN_ERR_DTYPE. */
TERN_API tern_status tern_set_default_dtype(tern_dtype dtype);
/* Returns the type that two tensors of these types are computed in (torch.promote_types). Where
 * there is none, as for a float8, or for uint16, uint32 and uint64 with another integer, it returns
 * TERN_DTYPE_DEFAULT and records TERN_ERR_DTYPE. */
TERN_API tern_dtype tern_promote_types(tern_dtype a, tern_dtype b);

/* ---- shapes and lists of dims: TERN_SHAPE(2, 3), TERN_DIMS(-1) ------------------------------- */
typedef struct tern_shape {
    int ndim;
    int64_t dims[TERN_MAX_DIMS];
} tern_shape;

/* Returns the shape of an array of ndim sizes. An ndim outside of 0..TERN_MAX_DIMS gives a shape
 * that every function refuses; so does dims NULL with ndim above 0, which also is an error. */
TERN_API tern_shape tern_shape_from(int ndim, const int64_t *dims);

/* The shape () of a scalar, or a list of no dims. */
#define TERN_SHAPE_SCALAR tern_shape_from(0, NULL)
#define TERN_DIMS(...)    TERN_SHAPE(__VA_ARGS__)

#ifndef __cplusplus
#define TERN_SHAPE(...)                                                                            \
    tern_shape_from((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
                    (const int64_t[]){__VA_ARGS__})
#endif

/* ---- scalars: a tagged integer, real or bool, so that int64 stays exact ---------------------- */
typedef enum tern_scalar_kind {
    TERN_SCALAR_REAL,
    TERN_SCALAR_INT,
    TERN_SCALAR_BOOL
} tern_scalar_kind;
typedef struct tern_scalar {
    tern_scalar_kind kind;
    union {
        double real;
        int64_t integer; /* of an integer or a bool */
    } value;
} tern_scalar;
/* Returns a scalar that holds a real, which promotes as a Python float does. */
TERN_API tern_scalar tern_scalar_real(double value);
/* Returns a scalar that holds an integer, which promotes as a Python int does. */
TERN_API tern_scalar tern_scalar_int(int64_t value);
/* Returns a scalar that holds a bool. */
TERN_API tern_scalar tern_scalar_bool(bool value);
/* Returns the value of a scalar as a real. */
TERN_API double tern_scalar_to_real(tern_scalar scalar);
/* Returns the value of a scalar as an integer; a real is truncated. */
TERN_API int64_t tern_scalar_to_int(tern_scalar scalar);

#ifndef __cplusplus
static inline tern_scalar tern_scalar_self_(tern_scalar x)
{
    return x;
}
/* TERN_SCALAR(2) is an integer, TERN_SCALAR(0.5) a real, TERN_SCALAR((bool)1) a bool; a tern_scalar
 * is itself. */
#define TERN_SCALAR(x)                                                                             \
    _Generic((x), float                                                                            \
             : tern_scalar_real, double                                                            \
             : tern_scalar_real, long double                                                       \
             : tern_scalar_real, bool                                                              \
             : tern_scalar_bool, tern_scalar                                                       \
             : tern_scalar_self_, default                                                          \
             : tern_scalar_int)(x)
#endif

/* The number zero in a literal of an options struct, where a field that is zero means the default.
 * TERN_DEFAULTS (defaults.h) is for numbers that the program computes. */
#define TERN_ZERO 4.9406564584124654e-324

/* An integer that may be absent, for options where zero is a meaningful value. */
typedef struct tern_optional_int {
    bool set;
    int64_t value;
} tern_optional_int;
/* Returns an optional integer that is there. */
TERN_API tern_optional_int tern_some(int64_t value);
#define TERN_SOME(x) tern_some(x)

/* ---- looking at tensors ---------------------------------------------------------------------- */
/* Returns the number of dims. Of this and the next three functions a negative dim counts from the
 * end, and the result is -1 after an error. */
TERN_API int tern_dim(const tern_tensor *x);
/* Returns the size of a dim. */
TERN_API int64_t tern_size(const tern_tensor *x, int dim);
/* Returns the stride of a dim, in elements. */
TERN_API int64_t tern_stride(const tern_tensor *x, int dim);
/* Returns the number of elements. */
TERN_API int64_t tern_numel(const tern_tensor *x);
/* Returns the shape of a tensor: all sizes, and how many there are. */
TERN_API tern_shape tern_shape_of(const tern_tensor *x);
/* Returns the type of the elements. */
TERN_API tern_dtype tern_dtype_of(const tern_tensor *x);
/* Returns the dtype that both tensors are brought to (torch.result_type). A tensor without dims
 * counts only by its kind (bool, integer or real) where the other has dims. */
TERN_API tern_dtype tern_result_type(const tern_tensor *x, const tern_tensor *y);
/* Returns the canonical string of x's device; NULL for NULL. The text lives as long as the
 * process. */
TERN_API const char *tern_device(const tern_tensor *x);
/* Returns whether x is dense in row-major order. */
TERN_API bool tern_is_contiguous(const tern_tensor *x);
/* Returns whether all sizes of a and b are the same. */
TERN_API bool tern_same_shape(const tern_tensor *a, const tern_tensor *b);
/* Returns how often x's storage was written in place. */
TERN_API int64_t tern_version(const tern_tensor *x);
/* Returns where the first element lies in host memory, on the cpu only (elsewhere NULL and
 * TERN_ERR_DEVICE). Version counters do not see what the program writes there. */
TERN_API void *tern_data(tern_tensor *x);
/* Returns the value of a one-element tensor, and waits for its device. NaN, or 0, after an error. A
 * NaN has no sign, so that printf writes "nan". */
TERN_API double tern_item(const tern_tensor *x);
/* Returns the value as an integer. A real is truncated; a uint64 from 2^63 on is negative and can
 * be cast back. 0 after an error. */
TERN_API int64_t tern_item_int(const tern_tensor *x);
/* Copies all elements to data, densely in row-major order. bytes must be the number of elements
 * times the size of one. */
TERN_API tern_status tern_copy_to_host(const tern_tensor *x, void *data, size_t bytes);
/* The type of the elements that a host pointer points to, which pointers.h finds by the pointer's
 * type. */
typedef enum tern_elements {
    TERN_ELEMENTS_ANY = 0, /* bytes: void * */
    TERN_ELEMENTS_F32 = TERN_F32,
    TERN_ELEMENTS_F64 = TERN_F64,
    TERN_ELEMENTS_I32 = TERN_I32,
    TERN_ELEMENTS_I64 = TERN_I64,
    TERN_ELEMENTS_U8 = TERN_U8,
    TERN_ELEMENTS_BOOL = TERN_BOOL,
    TERN_ELEMENTS_I8 = TERN_I8,
    TERN_ELEMENTS_I16 = TERN_I16,
    TERN_ELEMENTS_U32 = TERN_U32,
    TERN_ELEMENTS_U64 = TERN_U64,
    TERN_ELEMENTS_HALF = -1,   /* uint16_t: float16, bfloat16 or uint16 */
    TERN_ELEMENTS_OTHER = -2,  /* pointers, or an integer that is no dtype */
    TERN_ELEMENTS_UNKNOWN = -3 /* char, a struct: the dtype has to be given */
} tern_elements;
/* Does the same where data points to elements. Errors: TERN_ERR_DTYPE if these are not of x's
 * type. */
TERN_API tern_status tern_copy_to_host_typed(const tern_tensor *x, void *data,
                                             tern_elements elements, size_t bytes);
/* Writes x to stdout as PyTorch prints it, "tensor([[1., 2.],\n [3., 4.]])", and a newline. */
TERN_API tern_status tern_print(const tern_tensor *x);
/* Returns the same text, which the caller frees with tern_free_text; NULL after an error. */
TERN_API char *tern_to_text(const tern_tensor *x);
/* Frees a text that tern_to_text or a function of its kind gave; NULL is fine. */
TERN_API void tern_free_text(char *text);

/* Gives the leaf x the elements of data, which both share from then on: x takes data's shape, dtype
 * and device, and keeps its handle and requires_grad (PyTorch's x.data = y). A gradient that does
 * not fit any more is removed. Backward through what was computed from the old elements is an
 * error. Returns x. Errors: TERN_ERR_STATE for results of recorded operations, TERN_ERR_DTYPE for
 * integers where x requires a gradient. */
TERN_API tern_tensor *tern_set_data_(tern_tensor *x, tern_tensor *data);

/* ---- ownership ----------------------------------------------------------------------------------
 * A new tensor belongs to the innermost open scope and is released when that scope closes. Outside
 * of all scopes it belongs to the thread's root scope, which tern_scope_clear() and the end of the
 * thread empty. */
/* Takes a reference to x that outlives every scope, and returns x. */
TERN_API tern_tensor *tern_keep(tern_tensor *x);
/* Gives up a reference that tern_keep took; NULL is fine. */
TERN_API void tern_release(tern_tensor *x);
/* Hands x, which the innermost scope owns, to the scope around it. Returns x. */
TERN_API tern_tensor *tern_escape(tern_tensor *x);
/* Releases the tensors of the thread's root scope. */
TERN_API void tern_scope_clear(void);
/* Returns how many tensors are alive in the process. */
TERN_API int64_t tern_live_tensors(void);

typedef struct tern_scope_block {
    int active;
    int depth;
    size_t mark;
} tern_scope_block;
/* Opens the block of TERN_SCOPE, for other languages. */
TERN_API tern_scope_block tern_scope_enter(void);
/* Closes the scope and releases the tensors that were made in it. */
TERN_API void tern_scope_leave(tern_scope_block *block);

/* TERN_SCOPE { ... } releases the tensors that are made inside; TERN_SCOPE_HERE; those that are
 * made from there to the end of the braces (device.h says what holds for all blocks):
 *
 *   for (;;) {
 *       TERN_SCOPE_HERE;
 *       if (tern_item(step()) < 0.1)
 *           break;
 *   } */
#define TERN_SCOPE      TERN_BLOCK_(tern_scope_block, tern_scope_enter(), tern_scope_leave)
#define TERN_SCOPE_HERE TERN_HERE_(tern_scope_block, tern_scope_enter(), tern_scope_leave)

/* ---- determinism ------------------------------------------------------------------------- */
/* Turns torch.use_deterministic_algorithms on or off, for the whole process. The cpu and OpenCL
 * processors always give the same results on every run. On GPUs sums into places that an index
 * tensor gives (scatter_add, index_add, put and index_put that accumulate; the gradients of
 * embedding, gather, index and index_select) are atomic and in no fixed order, and where several
 * elements are written to one place (scatter, index_copy, index_put) any of them may stay. With the
 * switch on these operations take a slower form that goes through the index in order. All other
 * operations give the same results on every run anyway. */
TERN_API void tern_use_deterministic(bool on);
/* Returns whether the switch is on. */
TERN_API bool tern_are_deterministic_algorithms_enabled(void);

/* ---- random numbers -----------------------------------------------------------------------------
 * Each device has one generator, Philox 4x32-10 (https://doi.org/10.1145/2063384.2063405): the same
 * seed gives the same numbers on every device. A call takes whole groups of four 32-bit words from
 * the generator: a word for each element; two words for a float64, for an integer out of more than
 * 2^32, and for an element of randperm. dropout takes a word for each element of any type. */
/* Seeds the generator of every device, also of devices that are opened later. */
TERN_API void tern_manual_seed(uint64_t seed);
/* Returns the seed that was set last. */
TERN_API uint64_t tern_initial_seed(void);
typedef struct tern_rng_state {
    uint64_t seed;
    uint64_t offset; /* in groups of four 32-bit numbers */
} tern_rng_state;
/* Writes the state of a device's generator to *state. */
TERN_API tern_status tern_get_rng_state(const char *device, tern_rng_state *state);
/* Sets the state from which a device's generator goes on. */
TERN_API tern_status tern_set_rng_state(const char *device, const tern_rng_state *state);

TERN_END_DECLS

#ifdef __cplusplus
template <class... D> inline tern_shape tern_make_shape(D... d)
{
    tern_shape shape = {static_cast<int>(sizeof...(d)), {static_cast<int64_t>(d)...}};
    return shape;
}
#define TERN_SHAPE(...) tern_make_shape(__VA_ARGS__)
inline tern_scalar tern_make_scalar(bool value)
{
    return tern_scalar_bool(value);
}
inline tern_scalar tern_make_scalar(float value)
{
    return tern_scalar_real(value);
}
inline tern_scalar tern_make_scalar(double value)
{
    return tern_scalar_real(value);
}
inline tern_scalar tern_make_scalar(long double value)
{
    return tern_scalar_real(static_cast<double>(value));
}
inline tern_scalar tern_make_scalar(tern_scalar value)
{
    return value;
}
template <class I> inline tern_scalar tern_make_scalar(I value)
{
    return tern_scalar_int(static_cast<int64_t>(value));
}
#define TERN_SCALAR(x) tern_make_scalar(x)
#endif
#endif

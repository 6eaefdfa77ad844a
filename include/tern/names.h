/* names.h -- every operation by PyTorch's name: found, listed, described and called at run time, as
 * bindings of other languages and interpreters need. These functions are in a library of their own,
 * libtern_names (pkg-config tern_names, CMake tern::names).
 *
 *     tern_tensor *out[2];
 *     tern_value values[] = {tern_value_tensor("input", x), tern_value_int("dim", 1)};
 *     int n = tern_call_by_name("nn.functional.softmax", values, 2, out, 2); */
#ifndef TERN_NAMES_H
#define TERN_NAMES_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- values ---------------------------------------------------------------------------------- */
typedef enum tern_value_kind {
    TERN_VALUE_NONE = 0, /* Python's None: as if not given */
    TERN_VALUE_TENSOR,
    TERN_VALUE_TENSORS,
    TERN_VALUE_SCALAR, /* an integer, a real or a bool */
    TERN_VALUE_INTS,
    TERN_VALUE_REALS,
    TERN_VALUE_TEXT,
    TERN_VALUE_DTYPE
} tern_value_kind;

/* One argument. name NULL means the next argument by position; arguments with names may follow.
 * What it points to is only read, and only during the call. */
typedef struct tern_value {
    const char *name;
    tern_value_kind kind;
    int count; /* the length of a list */
    union {
        tern_tensor *tensor;
        tern_tensor *const *tensors;
        tern_scalar scalar;
        const int64_t *ints;
        const double *reals;
        const char *text;
        tern_dtype dtype;
    } as;
} tern_value;

/* Returns a value that stands for Python's None: the argument is not given. */
TERN_API tern_value tern_value_none(const char *name);
/* Returns a value that holds a tensor. A NULL tensor is an error of the call, not None. */
TERN_API tern_value tern_value_tensor(const char *name, tern_tensor *x);
/* Returns a value that holds a list of tensors. */
TERN_API tern_value tern_value_tensors(const char *name, tern_tensor *const *tensors, int count);
/* Returns a value that holds a number of any kind. */
TERN_API tern_value tern_value_scalar(const char *name, tern_scalar scalar);
/* Returns a value that holds an integer. */
TERN_API tern_value tern_value_int(const char *name, int64_t integer);
/* Returns a value that holds a real. */
TERN_API tern_value tern_value_real(const char *name, double real);
/* Returns a value that holds True or False. */
TERN_API tern_value tern_value_bool(const char *name, bool value);
/* Returns a value that holds a list of integers. */
TERN_API tern_value tern_value_ints(const char *name, const int64_t *ints, int count);
/* Returns a value that holds a list of reals. */
TERN_API tern_value tern_value_reals(const char *name, const double *reals, int count);
/* Returns a value that holds a text, such as the name of a mode. */
TERN_API tern_value tern_value_text(const char *name, const char *text);
/* Returns a value that holds a dtype. */
TERN_API tern_value tern_value_dtype(const char *name, tern_dtype dtype);

/* ---- operations ------------------------------------------------------------------------------ */
typedef struct tern_named_op tern_named_op;

/* Returns the first operation of a name ("add", "nn.functional.conv2d"); NULL, without an error, if
 * there is none. Several operations may have one name and take different arguments;
 * tern_named_op_next returns the others. */
TERN_API const tern_named_op *tern_op_by_name(const char *name);
/* Returns the next operation of the same name; NULL after the last one. */
TERN_API const tern_named_op *tern_named_op_next(const tern_named_op *op);
/* Returns the i-th of all operations, from 0 on; NULL after the last one. */
TERN_API const tern_named_op *tern_named_op_at(int i);

/* Returns the name of an operation, "gather". The text lives as long as the process. */
TERN_API const char *tern_named_op_name(const tern_named_op *op);
/* Returns the parameters and results of an operation in the notation of PyTorch's schemas,
 * "gather(Tensor input, int dim, Tensor index) -> Tensor": T? may be None, T[] is a list, int[2] a
 * list of two or one number for both; parameters after * are given by name only. NULL for NULL. The
 * text lives as long as the process. */
TERN_API const char *tern_named_op_signature(const tern_named_op *op);

typedef enum tern_parameter_kind {
    TERN_PARAMETER_TENSOR = 1,
    TERN_PARAMETER_TENSORS,
    TERN_PARAMETER_INT,
    TERN_PARAMETER_INTS,
    TERN_PARAMETER_REAL,
    TERN_PARAMETER_REALS,
    TERN_PARAMETER_BOOL,
    TERN_PARAMETER_SCALAR, /* an integer, a real or a bool, which promotes as in PyTorch */
    TERN_PARAMETER_TEXT,
    TERN_PARAMETER_DTYPE
} tern_parameter_kind;

enum { TERN_MAX_PARAMETERS = 20 };

typedef struct tern_parameter {
    char name[32];
    tern_parameter_kind kind;
    int length;     /* 2 for int[2]; 0 for lists of any length */
    bool optional;  /* may be None */
    bool by_name;   /* must be given by name */
    bool required;  /* has no default */
    char value[24]; /* the default as text: "None", "-1", "True", "mean"; "" if required */
} tern_parameter;

/* Writes the parameters of op, in order, to parameters[capacity]. Returns how many it has (at most
 * TERN_MAX_PARAMETERS); -1 after an error. */
TERN_API int tern_named_op_parameters(const tern_named_op *op, tern_parameter *parameters,
                                      int capacity);

/* Calls the first operation of that name whose parameters match the values. Its results, which
 * belong to the innermost scope, go into out[capacity]. Returns the number of results; -1 after an
 * error: TERN_ERR_ARGUMENT if no operation of that name takes these values, or the error of the
 * operation itself. */
TERN_API int tern_call_by_name(const char *name, const tern_value *values, int n, tern_tensor **out,
                               int capacity);
/* Does the same for one operation. */
TERN_API int tern_named_op_call(const tern_named_op *op, const tern_value *values, int n,
                                tern_tensor **out, int capacity);

TERN_END_DECLS
#endif

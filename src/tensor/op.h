/* op.h -- what an operation is, and the dispatcher that runs it. */
#ifndef TERN_TENSOR_OP_H
#define TERN_TENSOR_OP_H
#include "base/error.h"
#include "base/thread.h"
#include "tensor/fields.h"
#include "tensor/scope.h"
#include "tensor/shape.h"
#include "tensor/trace.h"

enum { TERN_MAX_OUTPUTS = 4 };

typedef struct tern_op tern_op;
/* What exists for speed alone (fuse/fuse.h). */
typedef struct tern_fusion tern_fusion;
typedef struct tern_fused_gradient tern_fused_gradient;
typedef struct tern_node tern_node;
typedef struct tern_place tern_place;

/* What infer says of one output. */
typedef struct tern_result {
    tern_dtype dtype;
    tern_shape shape;
    /* Views only: how it lies in the storage of input 0. */
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset;
} tern_result;

/* One run of an operation, as its functions see it. */
typedef struct tern_call {
    const tern_op *op;
    tern_tensor *const
        *in; /* promoted and cast where the op asks for it; an optional one is NULL */
    int n_in;
    const void *attributes;
    tern_place *place;
    int n_out;
    bool in_place;      /* as tern_mul_ */
    bool channels_last; /* infer sets it where results of 4 and 5 dims are to lie so
                          (memory_format.h) */
    uint32_t padded;    /* results, as bits, that are to be of tern_tensor_padded */
    tern_tensor *const *
        into; /* what results are to be, if they fit, views maybe; NULL, or one that is: new ones */
    tern_result result[TERN_MAX_OUTPUTS]; /* infer fills these ... */
    tern_tensor *out[TERN_MAX_OUTPUTS];   /* ... and forward these, allocated by then */
} tern_call;

/* One node on the way back. Tensors are borrowed; din are new ones, owned by the open scope. */
typedef struct tern_gradient {
    const tern_op *op;
    const void *attributes;
    int n_in, n_out;
    tern_tensor *const *in;   /* saved inputs; NULL where the op does not save them */
    tern_tensor *const *out;  /* saved outputs, likewise */
    tern_tensor *const *dout; /* NULL where nothing came in */
    const bool *needs;        /* which inputs want a gradient */
    const tern_shape *in_shape;
    tern_tensor **din;          /* to fill; NULL means zero */
    tern_node *inner;           /* of a write through a view: the operation that wrote */
    bool recorded;              /* create_graph: use differentiable operations only */
    tern_fused_gradient *fused; /* for speed alone; NULL outside of a backward pass */
} tern_gradient;

/* Which types the inputs are brought to before infer. */
typedef enum tern_promotion {
    TERN_PROMOTE_NONE = 0, /* infer checks them itself */
    TERN_PROMOTE_SAME,     /* the common type of all (tern_promote_types) */
    TERN_PROMOTE_FLOAT,    /* the same, and integers become the default dtype */
    TERN_PROMOTE_BOOL      /* bool */
} tern_promotion;

/* Sets of types of dtypes.def: what an operation is there for. The dispatcher refuses others of
 * input 0 before infer. */
enum {
    TERN_TAKES_ALL = 0, /* infer refuses what it must */
    TERN_TAKES_FLOATS = TERN_SET_FLOATS,
    TERN_TAKES_WHOLES = TERN_SET_WHOLES,
    TERN_TAKES_INTS = TERN_SET_INTS,
    TERN_TAKES_NUMBERS = TERN_SET_NUMBERS
};

/* What an operation does with types that are only stored (EACH_STORED): nothing, unless it only
 * moves elements, or reads them as the type that holds their values. Views take every type. */
typedef enum tern_takes_stored {
    TERN_STORED_REFUSED = 0,
    TERN_STORED_MOVED,
    TERN_STORED_READ
} tern_takes_stored;

/* What autocast makes of the inputs of a floating point type, other than float64. PyTorch's lists
 * for CUDA: https://pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior */
typedef enum tern_cast {
    TERN_CAST_NONE = 0, /* they stay as they are */
    TERN_CAST_LOWER,    /* the block's type */
    TERN_CAST_FLOAT32,
    TERN_CAST_WIDEST, /* the widest type among them */
    TERN_CAST_REFUSED /* an error: the gradient does not fit into halves */
} tern_cast;

/* Whether the outputs look into input 0; forward is NULL then. Several views by one call are not
 * written in place. */
typedef enum tern_view_kind { TERN_VIEW_NONE = 0, TERN_VIEW_ONE, TERN_VIEW_SEVERAL } tern_view_kind;

#define TERN_SAVE_IN(i)  ((i) < 16 ? 1u << ((i)&15) : 0u)
#define TERN_SAVE_OUT(i) (1u << (16 + (i)))

/* An operation is one static const literal; its address is its identity. */
struct tern_op {
    const char *name; /* "mul": tern_mul in messages, MulBackward in graphs */
    tern_promotion promotion;
    uint32_t takes; /* TERN_TAKES_... */
    tern_takes_stored stored;
    const char *advice; /* in place of "not implemented for bool"; may be NULL */
    tern_cast cast;
    uint32_t optional; /* bit i: input i may be NULL */
    uint32_t saves;    /* TERN_SAVE_...: what backward needs */
    tern_view_kind view;
    bool of_number; /* the form for a number: tern_mul_scalar in messages */
    bool
        takes_numbers; /* tensors of the cpu without dims are brought to the device of the others */
    bool not_differentiable;
    bool writes_inputs; /* forward does, running statistics, and is the last thing that can fail */
    uint32_t no_grad_out;        /* bit i: output i never has a gradient (indices, masks) */
    const tern_attribute *names; /* of its attributes, for who reads them (trace.h); may be NULL */
    int32_t variant;  /* which of those that share its functions; the enum is their file's */
    const void *data; /* the row of a table that it was made of */
    const tern_fusion *fusion; /* for speed alone; NULL for almost all operations */
    uint32_t (*choose_saves)(const tern_call *call); /* instead of saves, where it depends */
    tern_dtype (*promote)(const tern_call *call, tern_dtype common); /* adjusts the common type */
    /* Check inputs and attributes; set n_out and result. Fails without side effects. */
    tern_status (*infer)(tern_call *call);
    /* Compute out from in. Elementwise ops must stand out[0] being any of in, or strided. */
    tern_status (*forward)(tern_call *call);
    /* Fill din. One that could not be made needs no status: its error is noticed. */
    tern_status (*backward)(tern_gradient *g);
    /* The node is gone: free what its attributes point to, the op itself maybe. */
    void (*release)(void *attributes);
};

/* Run op on n inputs and return its single output, owned by the innermost scope; NULL after an
 * error. attributes (plain data, no pointers that may die) are copied into the graph. */
tern_tensor *tern_apply(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                        size_t attribute_bytes);
/* The same for several outputs. */
tern_status tern_apply_all(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                           size_t attribute_bytes, tern_tensor **out, int n_out);
/* The same. A result of the shape, dtype and device of into[i], which is dense and which the
 * operation does not read, is written there, and out[i] is it; others, and where into or into[i] is
 * NULL, are new. */
tern_status tern_apply_into(const tern_op *op, tern_tensor *const *in, int n,
                            const void *attributes, size_t attribute_bytes, tern_tensor **out,
                            int n_out, tern_tensor *const *into);
/* The same into in[0], for elementwise ops; returns in[0]. */
tern_tensor *tern_apply_in_place(const tern_op *op, tern_tensor *const *in, int n,
                                 const void *attributes, size_t attribute_bytes);
/* The function of a call, for messages: "tern_mul_scalar_". */
enum { TERN_FUNCTION_BYTES = 72 };
void tern_call_name(const tern_call *call, char function[TERN_FUNCTION_BYTES]);
/* The backward of an op whose result depends on no element of input 0: zeros, as in PyTorch, which
 * are not the same as no gradient (ops/copy/copy.c). */
tern_status tern_no_gradient(tern_gradient *g);

/* The common type of tensors, of which some may be NULL (torch.result_type): those with dims
 * outweigh those without of the same category. */
tern_dtype tern_common_type(tern_tensor *const *in, int n);

/* ---- autocast before the dispatcher (apply.c) ------------------------------------------------ */
/* At the beginning of a function that is made of several operations:
 *
 *     TERN_COMPOSED("addr", LOWER, &x, &a, &b);
 *
 * Its inputs, variables given by their addresses, are cast by its own policy (all become NULL after
 * an error), and what it calls in the rest of the block runs in the types that come of that. Errors
 * there name this function (TERN_NAMED_IN_ERRORS). */
#define TERN_COMPOSED(NAME, CAST, ...)                                                             \
    static const tern_op composed_op = {.name = NAME, .cast = TERN_CAST_##CAST};                   \
    TERN_UNTIL_END tern_compose(&composed_op, __func__, TERN_ADDRESSES(__VA_ARGS__))
/* The same for tensors[n]. */
#define TERN_COMPOSED_LIST(NAME, CAST, tensors, n)                                                 \
    static const tern_op composed_op = {.name = NAME, .cast = TERN_CAST_##CAST};                   \
    TERN_UNTIL_END tern_compose_list(&composed_op, __func__, tensors, n)
/* In a function that looks at the types of op's inputs before it applies op. */
#define TERN_CAST_FOR(op, ...) TERN_UNTIL_END tern_compose(op, NULL, TERN_ADDRESSES(__VA_ARGS__))
#define TERN_ADDRESSES(...)                                                                        \
    (tern_tensor * *[]){__VA_ARGS__},                                                              \
        sizeof((tern_tensor **[]){__VA_ARGS__}) / sizeof(tern_tensor **)
#define TERN_UNTIL_END tern_composed_outer outer_mode __attribute__((cleanup(tern_composed))) =
typedef struct tern_composed_outer {
    tern_autocast_hook hook;
    const char *called;
} tern_composed_outer;
tern_composed_outer tern_compose(const tern_op *op, const char *function, tern_tensor **const *in,
                                 size_t n);
tern_composed_outer tern_compose_list(const tern_op *op, const char *function,
                                      tern_tensor **tensors, int n);
void tern_composed(const tern_composed_outer *outer);

/* ---- anomalies (anomaly.c) --------------------------------------------------------------- */
/* TERN_ERR_STATE when a result of the call has a NaN in it, if those are looked for; while
 * debugging, a warning when no input has, or had (before a call in place). */
tern_status tern_anomaly_check_results(const tern_call *call, bool had_nan);
/* While debugging, before a call: whether an input has a NaN that the call may write over. */
bool tern_anomaly_came_in(const tern_call *call);

/* ---- the tape (tape.c, node.c) ----------------------------------------------------------- */
/* Whether a call with these inputs is recorded now. */
bool tern_must_record(const tern_op *op, tern_tensor *const *in, int n);
/* Hang a node on the outputs of a call that was run. */
tern_status tern_record(const tern_call *call, tern_tensor *const *recorded_in,
                        size_t attribute_bytes);
/* The same of one that was made of in outside of the dispatcher. The attributes are given away. */
tern_status tern_record_made(const tern_op *op, tern_tensor *in, tern_tensor *out, void *attributes,
                             size_t attribute_bytes);
void tern_node_release(tern_node *node);
void tern_node_retain(tern_node *node);
const char *tern_node_name(const tern_node *node);

/* ---- in place through views (inplace.c) -------------------------------------------------- */
/* Refuse what autograd or memory overlap forbids, before anything is written. */
tern_status tern_check_in_place(const tern_call *call, tern_tensor *x, tern_tensor *const *in,
                                int n);
/* Inputs that may share elements with x, of which check_in_place cannot tell whether they do,
 * become copies; separate is room for the call's inputs. */
tern_status tern_separate_inputs(tern_call *call, const tern_tensor *x, tern_tensor **separate);
/* What a write in place will leave in the graph, made before the write so that it cannot fail
 * after. */
typedef struct tern_write {
    tern_node *node;   /* NULL: nothing is recorded */
    tern_node *inner;  /* the operation itself, where node is a write through a view */
    tern_tensor *head; /* what node will have made: x, or the tensor x is a view of */
    int slot;          /* of the saved result, -1 for none */
} tern_write;
/* Before writing into call->out[0], which is one of in. An input that backward needs and the write
 * destroys is copied. */
tern_status tern_prepare_write(tern_write *write, const tern_call *call, tern_tensor *const *in,
                               size_t attribute_bytes);
/* After the write (written: give x, and its base, the new history), or instead of it. */
tern_status tern_finish_write(tern_write *write, tern_tensor *x, bool written);
/* x became a differentiable view of `of`, by a recorded or recordable view op. */
tern_status tern_note_view(tern_tensor *x, tern_tensor *of, bool one_of_several);
/* Any look at x's storage. Its backward needs to know how x itself lies there. */
typedef struct tern_strided {
    tern_shape shape;
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset; /* relative to x */
    int64_t in_stride[TERN_MAX_DIMS];
} tern_strided;
/* Bring x's node up to date when its base was written in place. */
tern_status tern_refresh_view(tern_tensor *x);

#endif

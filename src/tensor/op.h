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
    /* Of views alone: where the result lies in the storage of input 0. */
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset;
} tern_result;

/* One run of an operation, as its functions see it. */
typedef struct tern_call {
    const tern_op *op;
    tern_tensor *const *in; /* promoted and cast as the op asks; an optional one may be NULL */
    int n_in;
    const void *attributes;
    tern_place *place;
    int n_out;
    bool in_place;      /* the call is one of the kind of tern_mul_ */
    bool channels_last; /* infer sets it where results of 4 and 5 dims are to lie so
                          (memory_format.h) */
    uint32_t padded;    /* bit i: result i is to be made by tern_tensor_padded */
    /* The caller's tensors, views maybe, that results are written to where they fit. NULL, or an
     * element that is NULL: the result is a new tensor. */
    tern_tensor *const *into;
    tern_result result[TERN_MAX_OUTPUTS]; /* infer fills these ... */
    tern_tensor *out[TERN_MAX_OUTPUTS];   /* ... and forward these, allocated by then */
} tern_call;

/* The backward of one node. Tensors are borrowed; those in din are new, and the open scope owns
 * them. */
typedef struct tern_gradient {
    const tern_op *op;
    const void *attributes;
    int n_in, n_out;
    tern_tensor *const *in;   /* saved inputs; NULL where the op does not save them */
    tern_tensor *const *out;  /* saved outputs, likewise */
    tern_tensor *const *dout; /* of the outputs; NULL where no gradient came */
    const bool *needs;        /* which inputs want a gradient */
    const tern_shape *in_shape;
    tern_tensor **din;          /* backward fills them; NULL means zero */
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

/* Sets of types of dtypes.def that an operation takes. The dispatcher refuses an input 0 of another
 * type before infer. */
enum {
    TERN_TAKES_ALL = 0, /* infer refuses what it must */
    TERN_TAKES_FLOATS = TERN_SET_FLOATS,
    TERN_TAKES_WHOLES = TERN_SET_WHOLES,
    TERN_TAKES_INTS = TERN_SET_INTS,
    TERN_TAKES_NUMBERS = TERN_SET_NUMBERS
};

/* What an operation does with types that are only stored (EACH_STORED): it refuses them, unless it
 * only moves elements, or reads them as the type that holds their values. Views take every type. */
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

/* Whether the outputs are views of input 0; forward is NULL then. Several views that one call made
 * may not be written in place. */
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
    bool of_number;     /* the form for a number: tern_mul_scalar in messages */
    bool takes_numbers; /* tensors of the cpu without dims are brought to the others' device */
    bool not_differentiable;
    bool writes_inputs;   /* forward writes inputs (running statistics); nothing fails behind it */
    uint32_t no_grad_out; /* bit i: output i never has a gradient (indices, masks) */
    const tern_attribute *names; /* of the attributes, for those who read them (trace.h), or NULL */
    int32_t variant;  /* tells operations that share functions apart; their file has the enum */
    const void *data; /* the row of a table that the operation was made of */
    const tern_fusion *fusion; /* for speed alone; NULL for almost all operations */
    uint32_t (*choose_saves)(const tern_call *call); /* instead of saves, where it depends */
    tern_dtype (*promote)(const tern_call *call, tern_dtype common); /* adjusts the common type */
    /* Checks inputs and attributes, and sets n_out and result. It fails without side effects. */
    tern_status (*infer)(tern_call *call);
    /* Computes out from in. In elementwise ops out[0] may be one of in, and may be strided. */
    tern_status (*forward)(tern_call *call);
    /* Fills din. Where a gradient could not be made, its error counts, whatever is returned. */
    tern_status (*backward)(tern_gradient *g);
    /* Is called when the node is gone: frees what the attributes point to, maybe the op too. */
    void (*release)(void *attributes);
};

/* Runs op on n inputs. Returns its single output, which the innermost scope owns; NULL after an
 * error. The graph copies attributes, which are plain data without pointers that may die. */
tern_tensor *tern_apply(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                        size_t attribute_bytes);
/* Does the same for several outputs. */
tern_status tern_apply_all(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                           size_t attribute_bytes, tern_tensor **out, int n_out);
/* Does the same. A result that has the shape, dtype and device of into[i] is written there, and
 * out[i] is into[i], which must be dense and may not be read by the operation. Other results, and
 * those where into or into[i] is NULL, are new tensors. */
tern_status tern_apply_into(const tern_op *op, tern_tensor *const *in, int n,
                            const void *attributes, size_t attribute_bytes, tern_tensor **out,
                            int n_out, tern_tensor *const *into);
/* Runs an elementwise op and writes its result into in[0]. Returns in[0]. */
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
/* Returns whether a call with these inputs is recorded now. */
bool tern_must_record(const tern_op *op, tern_tensor *const *in, int n);
/* Makes a node of a call that was run, and hangs it on the outputs. */
tern_status tern_record(const tern_call *call, tern_tensor *const *recorded_in,
                        size_t attribute_bytes);
/* Does the same for a tensor that was made of in outside of the dispatcher. The node takes the
 * attributes over. */
tern_status tern_record_made(const tern_op *op, tern_tensor *in, tern_tensor *out, void *attributes,
                             size_t attribute_bytes);
void tern_node_release(tern_node *node);
void tern_node_retain(tern_node *node);
const char *tern_node_name(const tern_node *node);

/* ---- in place through views (inplace.c) -------------------------------------------------- */
/* Refuses, before anything is written, writes that autograd or overlapping memory forbids. */
tern_status tern_check_in_place(const tern_call *call, tern_tensor *x, tern_tensor *const *in,
                                int n);
/* Copies the inputs of which tern_check_in_place cannot tell whether they share elements with x.
 * separate has an element for each input. */
tern_status tern_separate_inputs(tern_call *call, const tern_tensor *x, tern_tensor **separate);
/* What a write in place adds to the graph. It is made before the write, so that nothing can fail
 * after it. */
typedef struct tern_write {
    tern_node *node;   /* NULL: nothing is recorded */
    tern_node *inner;  /* the operation itself, where node is a write through a view */
    tern_tensor *head; /* what node will have made: x, or the tensor x is a view of */
    int slot;          /* of the saved result, -1 for none */
} tern_write;
/* Is called before a write into call->out[0], which is one of in. Copies an input that backward
 * needs and that the write destroys. */
tern_status tern_prepare_write(tern_write *write, const tern_call *call, tern_tensor *const *in,
                               size_t attribute_bytes);
/* Is called after the write (written: x and its base get the new history), or in its place. */
tern_status tern_finish_write(tern_write *write, tern_tensor *x, bool written);
/* x became a differentiable view of `of`, by a recorded or recordable view op. */
tern_status tern_note_view(tern_tensor *x, tern_tensor *of, bool one_of_several);
/* The attributes of any view of x's storage. Its backward needs to know how x itself lies there. */
typedef struct tern_strided {
    tern_shape shape;
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset; /* relative to x */
    int64_t in_stride[TERN_MAX_DIMS];
} tern_strided;
/* Brings x's node up to date where the base of x was written in place. */
tern_status tern_refresh_view(tern_tensor *x);

#endif

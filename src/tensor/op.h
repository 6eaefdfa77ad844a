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
/* Optimizations that change no result (fuse/fuse.h). */
typedef struct tern_fusion tern_fusion;
typedef struct tern_fused_gradient tern_fused_gradient;
typedef struct tern_node tern_node;
typedef struct tern_place tern_place;

/* The description of one output, which infer writes. */
typedef struct tern_result {
    tern_dtype dtype;
    tern_shape shape;
    /* For views: the position of the result in the storage of input 0. */
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset;
} tern_result;

/* One run of an operation, as its functions see it. */
typedef struct tern_call {
    const tern_op *op;
    tern_tensor *const *in; /* promoted and cast as op specifies; an optional input may be NULL */
    int n_in;
    const void *attributes;
    tern_place *place;
    int n_out;
    bool in_place;      /* the function is in place, like tern_mul_ */
    bool channels_last; /* infer sets it if results of 4 and 5 dims are to be channels last
                         * (memory_format.h) */
    uint32_t padded;    /* bit i: result i is created by tern_tensor_padded */
    /* The caller's tensors, which may be views, to which results are written if they fit. If into
     * or into[i] is NULL, result i is a new tensor. */
    tern_tensor *const *into;
    tern_result result[TERN_MAX_OUTPUTS]; /* infer fills these ... */
    tern_tensor *out[TERN_MAX_OUTPUTS];   /* ... and forward these, allocated by then */
} tern_call;

/* The arguments of one node's backward. Tensors are borrowed; those in din are new and belong to
 * the open scope. */
typedef struct tern_gradient {
    const tern_op *op;
    const void *attributes;
    int n_in, n_out;
    tern_tensor *const *in;   /* saved inputs; NULL where the op does not save them */
    tern_tensor *const *out;  /* saved outputs; NULL where the op does not save them */
    tern_tensor *const *dout; /* gradients of the outputs; NULL: no gradient */
    const bool *needs;        /* which inputs need a gradient */
    const tern_shape *in_shape;
    tern_tensor **din;          /* backward fills them; NULL means zero */
    tern_node *inner;           /* write through a view: the node of the operation */
    bool recorded;              /* create_graph: use differentiable operations only */
    tern_fused_gradient *fused; /* for optimizations; NULL outside of a backward pass */
} tern_gradient;

/* The dtype to which the inputs are converted before infer. */
typedef enum tern_promotion {
    TERN_PROMOTE_NONE = 0, /* infer checks the dtypes itself */
    TERN_PROMOTE_SAME,     /* the common type of all (tern_promote_types) */
    TERN_PROMOTE_FLOAT,    /* the common type, and the default dtype in place of an integer type */
    TERN_PROMOTE_BOOL      /* bool */
} tern_promotion;

/* The dtypes that an operation takes, as sets of dtypes.def. The dispatcher refuses an input 0 of
 * another dtype before infer. */
enum {
    TERN_TAKES_ALL = 0, /* infer refuses those that it does not take */
    TERN_TAKES_FLOATS = TERN_SET_FLOATS,
    TERN_TAKES_WHOLES = TERN_SET_WHOLES,
    TERN_TAKES_INTS = TERN_SET_INTS,
    TERN_TAKES_NUMBERS = TERN_SET_NUMBERS
};

/* What an operation does with storage types (EACH_STORED): it refuses them, only moves their
 * elements, or reads them as the type that holds their values. Views take every type. */
typedef enum tern_takes_stored {
    TERN_STORED_REFUSED = 0,
    TERN_STORED_MOVED,
    TERN_STORED_READ
} tern_takes_stored;

/* How autocast converts the floating point inputs except float64. The lists are PyTorch's for CUDA:
 * https://pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior */
typedef enum tern_cast {
    TERN_CAST_NONE = 0, /* not at all */
    TERN_CAST_LOWER,    /* to the dtype of the autocast block */
    TERN_CAST_FLOAT32,
    TERN_CAST_WIDEST, /* to the widest dtype among them */
    TERN_CAST_REFUSED /* an error, because the gradient can exceed the range of float16 */
} tern_cast;

/* Whether the outputs are views of input 0 (forward is then NULL). If one call creates several
 * views, they must not be written in place. */
typedef enum tern_view_kind { TERN_VIEW_NONE = 0, TERN_VIEW_ONE, TERN_VIEW_SEVERAL } tern_view_kind;

#define TERN_SAVE_IN(i)  ((i) < 16 ? 1u << ((i)&15) : 0u)
#define TERN_SAVE_OUT(i) (1u << (16 + (i)))

/* An operation is one static const literal; its address is its identity. */
struct tern_op {
    const char *name; /* "mul": tern_mul in messages, MulBackward in graphs */
    tern_promotion promotion;
    uint32_t takes; /* TERN_TAKES_... */
    tern_takes_stored stored;
    const char *advice; /* the error for bool, in place of "not implemented for bool"; may be
                         * NULL */
    tern_cast cast;
    uint32_t optional; /* bit i: input i may be NULL */
    uint32_t saves;    /* TERN_SAVE_...: what backward needs */
    tern_view_kind view;
    bool of_number;     /* the form that takes a number: tern_mul_scalar in messages */
    bool takes_numbers; /* scalar tensors on the cpu are copied to the device of the others */
    bool not_differentiable;
    bool writes_inputs;   /* forward writes inputs (running statistics), so nothing may fail after
                         * it */
    uint32_t no_grad_out; /* bit i: output i never has a gradient (indices, masks) */
    const tern_attribute *names; /* the names of the attributes, for readers of traces (trace.h), or
                                  * NULL */
    int32_t variant;  /* distinguishes operations that share functions; their file has the enum */
    const void *data; /* the table row that defines the operation */
    const tern_fusion *fusion; /* optimizations; NULL for almost all operations */
    /* in place of saves, if it depends on the call */
    uint32_t (*choose_saves)(const tern_call *call);
    tern_dtype (*promote)(const tern_call *call, tern_dtype common); /* adjusts the common type */
    /* Checks inputs and attributes, and sets n_out and result. It fails without side effects. */
    tern_status (*infer)(tern_call *call);
    /* Computes out from in. In elementwise ops out[0] may be one of in, and may be strided. */
    tern_status (*forward)(tern_call *call);
    /* Fills din. If a gradient cannot be computed, the recorded error counts, whatever the function
     * returns. */
    tern_status (*backward)(tern_gradient *g);
    /* Called when the node is freed: frees what the attributes point to, and possibly the op
     * itself. */
    void (*release)(void *attributes);
};

/* Runs op on n inputs. Returns its single output, which the innermost scope owns; NULL after an
 * error. The graph copies attributes, which are plain data without pointers to memory that may be
 * freed. */
tern_tensor *tern_apply(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                        size_t attribute_bytes);
/* Does the same for an operation with several outputs. */
tern_status tern_apply_all(const tern_op *op, tern_tensor *const *in, int n, const void *attributes,
                           size_t attribute_bytes, tern_tensor **out, int n_out);
/* Does the same. A result with the shape, dtype and device of into[i] is written there, and out[i]
 * is into[i]; that tensor must be dense, and the operation must not read it. Other results are new
 * tensors, and so are those for which into or into[i] is NULL. */
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
 * is different from no gradient (ops/copy/copy.c). */
tern_status tern_no_gradient(tern_gradient *g);

/* Returns the common type of tensors, some of which may be NULL (torch.result_type): tensors with
 * dims take precedence over those without in the same category. */
tern_dtype tern_common_type(tern_tensor *const *in, int n);

/* ---- autocast before the dispatcher (apply.c) ------------------------------------------------ */
/* For the beginning of a function that calls several operations:
 *
 *     TERN_COMPOSED("addr", LOWER, &x, &a, &b);
 *
 * The function's inputs, given as addresses of variables, are converted by its own autocast policy
 * (after an error all become NULL). The operations that it calls in the rest of the block run with
 * the dtypes that result, without autocast. Errors name this function (TERN_NAMED_IN_ERRORS). */
#define TERN_COMPOSED(NAME, CAST, ...)                                                             \
    static const tern_op composed_op = {.name = NAME, .cast = TERN_CAST_##CAST};                   \
    TERN_UNTIL_END tern_compose(&composed_op, __func__, TERN_ADDRESSES(__VA_ARGS__))
/* Does the same for the n elements of tensors. */
#define TERN_COMPOSED_LIST(NAME, CAST, tensors, n)                                                 \
    static const tern_op composed_op = {.name = NAME, .cast = TERN_CAST_##CAST};                   \
    TERN_UNTIL_END tern_compose_list(&composed_op, __func__, tensors, n)
/* Casts the inputs of op in a function that reads their dtypes before it applies op. */
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
/* Returns TERN_ERR_STATE if a result of the call has a NaN and anomaly detection is on. In debug
 * mode it gives a warning if no input has, or had (before a call in place), a NaN. */
tern_status tern_anomaly_check_results(const tern_call *call, bool had_nan);
/* In debug mode, before a call: returns whether an input that the call may overwrite has a NaN. */
bool tern_anomaly_came_in(const tern_call *call);

/* ---- the tape (tape.c, node.c) ----------------------------------------------------------- */
/* Returns whether a call with these inputs is recorded now. */
bool tern_must_record(const tern_op *op, tern_tensor *const *in, int n);
/* Creates the node of a call that has run, and attaches it to the outputs. */
tern_status tern_record(const tern_call *call, tern_tensor *const *recorded_in,
                        size_t attribute_bytes);
/* Does the same for a tensor that was computed from `in` outside of the dispatcher. The node owns
 * the attributes. */
tern_status tern_record_made(const tern_op *op, tern_tensor *in, tern_tensor *out, void *attributes,
                             size_t attribute_bytes);
void tern_node_release(tern_node *node);
void tern_node_retain(tern_node *node);
const char *tern_node_name(const tern_node *node);

/* ---- in place through views (inplace.c) -------------------------------------------------- */
/* Fails, before anything is written, for a write that autograd or overlapping memory forbids. */
tern_status tern_check_in_place(const tern_call *call, tern_tensor *x, tern_tensor *const *in,
                                int n);
/* Copies the inputs of which tern_check_in_place cannot tell whether they share elements with x.
 * separate has an element for each input. */
tern_status tern_separate_inputs(tern_call *call, const tern_tensor *x, tern_tensor **separate);
/* What a write in place adds to the graph. It is created before the write, so that nothing can fail
 * after it. */
typedef struct tern_write {
    tern_node *node;   /* NULL: nothing is recorded */
    tern_node *inner;  /* the operation itself, if node is a write through a view */
    tern_tensor *head; /* the tensor that node will have written: x, or the tensor of which x is a
                        * view */
    int slot;          /* the slot of the saved result, -1 for none */
} tern_write;
/* Called before a write to call->out[0], which is one of in. Copies an input that backward needs
 * and that the write would overwrite. */
tern_status tern_prepare_write(tern_write *write, const tern_call *call, tern_tensor *const *in,
                               size_t attribute_bytes);
/* Called after the write (written: x and its base get the new history), or if it did not take
 * place. */
tern_status tern_finish_write(tern_write *write, tern_tensor *x, bool written);
/* Records that x became a differentiable view of `of`, by a recorded or recordable view
 * operation. */
tern_status tern_note_view(tern_tensor *x, tern_tensor *of, bool one_of_several);
/* The attributes of a view of x's storage. Its backward needs the layout of x itself. */
typedef struct tern_strided {
    tern_shape shape;
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset; /* relative to x */
    int64_t in_stride[TERN_MAX_DIMS];
} tern_strided;
/* Updates x's node if the base of x was written in place. */
tern_status tern_refresh_view(tern_tensor *x);

#endif

/* tensor.h -- the inside of a tensor, and what the layers above may do with it. */
#ifndef TERN_SRC_TENSOR_H
#define TERN_SRC_TENSOR_H
#include "base/dtype.h"
#include "base/handle.h"
#include "device/device.h"
#include "tensor/scope.h"
#include <tern/autograd.h>

typedef struct tern_node tern_node;

/* Elements in a device's memory, shared by a tensor and its views. */
typedef struct tern_storage {
    atomic_int refs;
    atomic_llong version; /* counts writes in place */
    tern_place *place;
    tern_block *block; /* NULL for no elements */
    size_t emptied;    /* bytes of the block that it gave back (storage.h) */
    /* Rows of so many elements, in memory for multiples of TERN_ROW_MULTIPLE of both that has zeros in what is more; 0: another
     * layout, or another content of that. */
    int64_t zero_padded[2];
} tern_storage;

typedef struct tern_hook {
    struct tern_hook *next;
    int id;
    union {
        tern_grad_hook call;
        tern_post_accumulate_grad_hook post; /* of the list `post` of a leaf */
    };
    void *user;
} tern_hook;

/* What only leaves have that devices or processes train together. */
typedef struct tern_leaf {
    tern_hook *post;    /* called once the gradient is in its place */
    tern_tensor *home;  /* where it is to lie (leaf.h); NULL: anywhere */
    const void *writer; /* the walk that makes a gradient there; NULL: none does */
    struct tern_ranks *ranks;
} tern_leaf;

/* What only tensors in the autograd graph have. */
typedef struct tern_history {
    tern_node *node; /* what made it; NULL for leaves */
    int output;      /* which of the node's outputs */
    tern_tensor *grad;
    tern_hook *hooks;
    int last_hook;
    bool retains_grad;
    atomic_size_t arrival; /* of a leaf: its place in the list of the walk that came last */
    tern_leaf *leaf;       /* NULL for most */
    /* A differentiable view: the tensor it looks into, and the base's count of in-place writes for
     * which `node` is right. */
    tern_tensor *base;
    int64_t base_writes;
    bool multi_view; /* one of several views that one call made: no in-place writes */
    bool untracked;  /* a view made while nothing was recorded: none that are */
    int64_t writes;  /* of a base: in-place writes recorded through it or its views */
} tern_history;

struct tern_tensor {
    tern_handle handle;
    tern_dtype dtype;
    int ndim;
    bool requires_grad; /* asked for, or inherited from inputs */
    bool contiguous;
    atomic_uchar speculation; /* of a norm's weight (fuse/speculative.c): a dtype, 0 for none */
    int64_t numel;
    int64_t offset; /* first element in the storage */
    tern_storage *storage;
    _Atomic(tern_history *) history; /* NULL for most; threads that share x may make it */
    int64_t shape[TERN_MAX_DIMS];
    int64_t stride[TERN_MAX_DIMS];
};

/* ---- shapes (shape.c) ------------------------------------------------------------------------ */
/* Elements of a shape; -1 after an error that names function (negative, too
 * many dims, overflow). */
int64_t tern_shape_numel(const tern_shape *shape, const char *function);
/* What describes windows (kernel_size, stride, ...) are ints, so that sums of products of them do
 * not wrap: TERN_ERR_ARGUMENT, "integer out of range", for others. */
tern_status tern_check_window(const tern_shape *list, const char *name, const char *function);
bool tern_shape_equal(const tern_shape *a, const tern_shape *b);
/* *out = the broadcast of both, or TERN_ERR_SHAPE in PyTorch's words. */
tern_status tern_shape_broadcast(const tern_shape *a, const tern_shape *b, tern_shape *out,
                                 const char *function);
/* 0 <= *dim < ndim from a dim that may count from the end (a scalar counts as one dim). */
tern_status tern_wrap_dim(int64_t dim, int ndim, int *wrapped, const char *function);
/* A shape as (outer, n, inner) around a dim; a scalar has one dim of size 1. */
typedef struct tern_sides {
    int64_t outer, n, inner;
} tern_sides;
tern_sides tern_sides_of(const tern_shape *shape, int dim);
void tern_dense_strides(const tern_shape *shape, int64_t *stride);
/* Dims, as bits, whose elements are certain to differ: by rising stride, as long as each steps over
 * all that the ones before it reach. The others may come back to the same elements. */
uint32_t tern_distinct_dims(const tern_shape *shape, const int64_t *stride);
/* Whether several elements of x may be one in memory, as in what was expanded. */
bool tern_repeats(const tern_tensor *x);
/* "[2, 3]" in a buffer of the caller's. */
typedef struct tern_shape_text {
    char text[256];
} tern_shape_text;
tern_shape_text tern_shape_to_text(const tern_shape *shape);
#define TERN_SHAPE_TEXT(shape) (tern_shape_to_text(shape).text)
#define TERN_TENSOR_TEXT(x)    (tern_shape_to_text(&(tern_shape[1]){tern_shape_of(x)}[0]).text)

/* ---- making (storage.c) ------------------------------------------------------------------ */
/* A dense tensor of new memory, not in any scope, with one reference; NULL after an error. */
tern_tensor *tern_tensor_new(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                             const char *function);
/* The same with rows, of the last dim, that begin at multiples of TERN_ROW_MULTIPLE elements, and memory for a multiple of rows; x is a
 * view of its memory then. */
tern_tensor *tern_tensor_padded(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                                const char *function);
/* n rounded up to a multiple of TERN_ROW_MULTIPLE. */
static inline int64_t tern_up(int64_t n)
{
    return (n + TERN_ROW_MULTIPLE - 1) / TERN_ROW_MULTIPLE * TERN_ROW_MULTIPLE;
}
/* The same of memory that is there, and is the tensor's from then on unless this fails. */
tern_tensor *tern_tensor_of_block(const tern_shape *shape, tern_dtype dtype, tern_block *block);
/* The same with strides and the first element. */
tern_tensor *tern_tensor_on_block(const tern_shape *shape, tern_dtype dtype, tern_block *block,
                                  const int64_t *strides, int64_t offset);
/* Elements from the first to the last that shape and strides, none negative, reach, in *span; false where that
 * overflows. */
bool tern_span_of(const tern_shape *shape, const int64_t *strides, int64_t *span);
/* tern_copy_to_host that the function does unasked: it waits, so TERN_ERR_STATE within TERN_STRICT. */
tern_status tern_hidden_read(const tern_tensor *x, void *data, size_t bytes, const char *function);
/* TERN_ERR_STATE for a tensor whose storage was emptied (storage.h). */
tern_status tern_storage_missing(const tern_tensor *x, const char *function);
static inline tern_status tern_storage_there(const tern_tensor *x, const char *function)
{
    return x->storage->emptied ? tern_storage_missing(x, function) : TERN_OK;
}
/* *shape = x's shape: tern_shape_of for where every nanosecond counts. */
static inline void tern_read_shape(const tern_tensor *x, tern_shape *shape)
{
    shape->ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++)
        shape->dims[i] = x->shape[i];
}
/* The headers of tensors that ended, by handle.next. */
typedef struct tern_headers {
    tern_handle *first, *last;
    int count;
} tern_headers;
/* Of a thread. */
typedef struct tern_headers_kept {
    tern_handle *fresh; /* to be used again */
    tern_handle *gone;  /* a batch that grows */
    int count;
} tern_headers_kept;
/* One that has no history and is not asked for a gradient; NULL after an error. What becomes of
 * those that ended. Of one that ends: what is to
 * be told of it; the storage without memory that those of a place share, and the last that was
 * asked for (header.c). */
tern_tensor *tern_header_new(void);
void tern_headers_put(tern_headers_kept *kept, const tern_headers *ended);
tern_headers_kept *tern_headers_of_thread(void);
void tern_header_tell(tern_tensor *x);
tern_storage *tern_gone_storage(tern_place *place);
extern _Atomic(tern_storage *) tern_gone_last;
/* tern_release of several: of each, and once after it (storage.c). */
void tern_release_into(tern_tensor *x, tern_headers *ended);
void tern_released(tern_headers_kept *kept, const tern_headers *ended);
/* Another view of x's storage; the same. Knows nothing of autograd. */
tern_tensor *tern_tensor_alias(const tern_tensor *x, const tern_shape *shape, const int64_t *stride,
                               int64_t offset);
/* Give back a reference to a storage; NULL is allowed. */
void tern_storage_release(tern_storage *storage);
/* The same elements, same geometry, no history. */
tern_tensor *tern_tensor_detached(const tern_tensor *x);
/* The same of a tensor that a function made without an operation: errors say so once it is gone. The
 * name, "tern_full", lives as long as the process. */
static inline tern_tensor *tern_scoped_from(tern_tensor *x, const char *function)
{
    if (x)
        x->handle.about = function + sizeof "tern_" - 1;
    return tern_scoped(x);
}
/* Whether x is a tensor; an error that names function and argument if it is NULL or gone. */
bool tern_given_slow(const tern_tensor *x, const char *function, const char *argument);
static inline bool tern_given(const tern_tensor *x, const char *function, const char *argument)
{
    return (x && !tern_handle_is_gone(&x->handle)) || tern_given_slow(x, function, argument);
}
/* Its history, made if need be; NULL after TERN_ERR_MEMORY. */
tern_history *tern_history_of(tern_tensor *x);
/* x keeps grad, which has been checked, or NULL, in place of the one before. */
tern_status tern_history_set_grad(tern_tensor *x, tern_tensor *grad);
tern_place *tern_tensor_place(const tern_tensor *x);
/* x as a kernel's argument, its elements taken for those of a dtype of the same width. Without a
 * block, as empty tensors are, it may be made but not passed. */
static inline tern_arg tern_arg_as(tern_role role, tern_dtype dtype, const tern_tensor *x)
{
    const tern_block *block = x->storage->block;
    return tern_arg_buffer(role, dtype, block ? &block->buffer : NULL, x->offset);
}
/* x where the kernel writes; where it reads; for a parameter that it leaves alone this time. */
static inline tern_arg tern_arg_out(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_OUT, x->dtype, x);
}
static inline tern_arg tern_arg_in(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_IN, x->dtype, x);
}
/* Bytes of the memory, of that of the program (lent) all that there are (storage_parts.c). */
size_t tern_storage_bytes(const tern_storage *storage);
static inline tern_arg tern_arg_unused(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNUSED, x->dtype, x);
}
/* Read where it is there; `any` tensor stands in for NULL, which the kernel is told of otherwise. */
static inline tern_arg tern_arg_optional(const tern_tensor *x, const tern_tensor *any)
{
    return x ? tern_arg_in(x) : tern_arg_unused(any);
}
/* x for what has no parameters of its own: vendors' routines and kernels of the user's. */
static inline tern_arg tern_arg_tensor(const tern_tensor *x)
{
    return tern_arg_as(TERN_ROLE_UNKNOWN, x->dtype, x);
}
void tern_bump_version(tern_tensor *x);
int64_t tern_tensor_version(const tern_tensor *x);

/* Walks back count while there are reasons (count.c), which are post hooks, of which there are n more, and copies
 * between devices: from the first that is recorded on. */
void tern_walks_count(int n);
void tern_walks_cross(void);
bool tern_walks_do_count(void);

/* ---- hooks that the layers to the right fill in ------------------------------------------ */
/* For gradients: a + b, a += b, x summed to a shape it was broadcast from. Defined in ops/. */
tern_tensor *tern_hook_add(tern_tensor *a, tern_tensor *b);
tern_tensor *tern_hook_add_in_place(tern_tensor *a, tern_tensor *b);
tern_tensor *tern_hook_sum_to(tern_tensor *x, const tern_shape *shape);
/* Whether an element of x is NaN; waits for the device. */
tern_status tern_hook_has_nan(tern_tensor *x, bool *has_nan);
/* y = x, elementwise, for any strides and dtypes on one device. */
tern_status tern_hook_copy(tern_tensor *y, const tern_tensor *x);

/* int64 in the order of x's uint64: what comparisons read. */
tern_tensor *tern_hook_ordered(tern_tensor *x);

/* Element i of dense host data; of uint64 an integer with its bits. */
tern_scalar tern_element(const void *data, tern_dtype dtype, int64_t i);

#endif

/* storage.c -- tensors and their storage: creating, sharing, releasing, reading fields. */
#include "tensor/node.h"
#include "tensor/header.h"
#include "tensor/tensor.h"
#include <string.h>

static atomic_llong live;

int64_t tern_live_tensors(void)
{
    return atomic_load(&live);
}

/* Releases a reference. Returns true if it was the last. If the count is 1, no other thread can
 * change it, so no locked instruction is needed. */
static bool last_reference(atomic_int *refs)
{
    return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

void tern_storage_release(tern_storage *storage)
{
    if (!storage || !last_reference(&storage->refs))
        return;
    tern_block_free(storage->block);
    tern_free(storage);
}

static bool dense(const tern_tensor *x)
{
    int64_t step = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        if (x->shape[i] != 1 && x->stride[i] != step)
            return false;
        step *= x->shape[i];
    }
    return true;
}

/* Every tensor is created here, so that the sizes of all tensors are checked. */
static tern_tensor *blank(const tern_shape *shape, tern_dtype dtype, const char *function)
{
    int64_t numel = tern_shape_numel(shape, function);
    tern_tensor *x = numel < 0 ? NULL : tern_header_new();
    if (!x)
        return NULL;
    atomic_init(&x->handle.refs, 1);
    x->dtype = dtype;
    x->ndim = shape->ndim;
    x->numel = numel;
    atomic_init(&x->speculation, 0);
    for (int i = 0; i < shape->ndim; i++)
        x->shape[i] = shape->dims[i];
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return x;
}

/* Returns a dense tensor whose storage has no memory yet. */
static tern_tensor *without_memory(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                                   const char *function)
{
    tern_tensor *x = blank(shape, dtype, function);
    if (!x)
        return NULL;
    tern_dense_strides(shape, x->stride);
    x->contiguous = true;
    x->storage = tern_alloc(sizeof *x->storage);
    if (!x->storage) {
        tern_release(x);
        return NULL;
    }
    atomic_init(&x->storage->refs, 1);
    x->storage->place = place;
    return x;
}

tern_tensor *tern_tensor_new(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                             const char *function)
{
    if (dtype == TERN_F64 && !tern_place_has_f64(place))
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: %s has no float64", function,
                              tern_place_text(place));
    tern_tensor *x = without_memory(shape, dtype, place, function);
    if (!x || x->numel == 0)
        return x;
    x->storage->block =
        tern_block_alloc(place, (size_t)x->numel * tern_dtype_size(dtype), function);
    if (x->storage->block)
        return x;
    tern_release(x);
    return NULL;
}

tern_status tern_zero_elements(tern_tensor *x)
{
    const size_t size = tern_dtype_size(x->dtype);
    return x->numel == 0 ? TERN_OK
                         : tern_block_zero(x->storage->block, (size_t)x->offset * size,
                                           (size_t)x->numel * size);
}

tern_tensor *tern_tensor_padded(const tern_shape *shape, tern_dtype dtype, tern_place *place,
                                const char *function)
{
    tern_shape wide = *shape;
    int64_t strides[TERN_MAX_DIMS], *row = &wide.dims[wide.ndim - 1], n = *row, rows = 1;
    for (int d = 0; d < wide.ndim - 1; d++)
        rows *= wide.dims[d];
    *row = tern_up(n);
    tern_dense_strides(&wide, strides);
    tern_tensor *all = tern_tensor_new(
        &(tern_shape){2, {wide.ndim > 1 ? tern_up(rows) : 1, tern_up(n)}}, dtype, place, function);
    tern_tensor *x = all ? tern_tensor_alias(all, shape, strides, 0) : NULL;
    if (x && wide.ndim > 1) {
        x->storage->padded[0] = rows;
        x->storage->padded[1] = n;
    }
    tern_release(all);
    return x;
}

/* A view of other memory may have the same strides, with other elements between its rows. */
bool tern_lies_padded(const tern_tensor *x)
{
    const int last = x->ndim - 1;
    const int64_t *of = x->storage->padded;
    if (of[1] == 0 || last < 1 || x->offset != 0 || x->shape[last] != of[1] ||
        x->stride[last] != 1 || x->numel != of[0] * of[1])
        return false;
    int64_t step = tern_up(of[1]);
    for (int d = last - 1; d >= 0; d--) {
        if (x->shape[d] > 1 && x->stride[d] != step)
            return false;
        step *= x->shape[d];
    }
    return true;
}

tern_tensor *tern_tensor_of_block(const tern_shape *shape, tern_dtype dtype, tern_block *block)
{
    tern_tensor *x = without_memory(shape, dtype, block->place, "tern_from_data");
    if (x)
        x->storage->block = block;
    return x;
}

tern_tensor *tern_tensor_on_block(const tern_shape *shape, tern_dtype dtype, tern_block *block,
                                  const int64_t *strides, int64_t offset)
{
    tern_tensor *x = tern_tensor_of_block(shape, dtype, block);
    if (!x)
        return NULL;
    for (int i = 0; i < shape->ndim; i++)
        x->stride[i] = strides[i];
    x->offset = offset;
    x->contiguous = dense(x);
    return x;
}

tern_tensor *tern_tensor_alias(const tern_tensor *of, const tern_shape *shape,
                               const int64_t *stride, int64_t offset)
{
    tern_tensor *x = blank(shape, of->dtype, "a view");
    if (!x)
        return NULL;
    for (int i = 0; i < shape->ndim; i++)
        x->stride[i] = stride[i];
    x->offset = offset;
    x->contiguous = x->numel == 0 || dense(x);
    x->storage = of->storage;
    atomic_fetch_add_explicit(&x->storage->refs, 1, memory_order_relaxed);
    return x;
}

tern_tensor *tern_tensor_detached(const tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    return tern_tensor_alias(x, &shape, x->stride, x->offset);
}

tern_history *tern_history_of(tern_tensor *x)
{
    tern_history *history = atomic_load_explicit(&x->history, memory_order_acquire);
    if (history)
        return history;
    tern_history *made = tern_alloc(sizeof *made);
    if (!made || atomic_compare_exchange_strong(&x->history, &history, made))
        return made;
    tern_free(made); /* another thread created it first */
    return history;
}

tern_status tern_history_set_grad(tern_tensor *x, tern_tensor *grad)
{
    tern_history *history = tern_history_of(x);
    if (!history)
        return TERN_ERR_MEMORY;
    tern_keep(grad);
    tern_release(history->grad);
    history->grad = grad;
    return TERN_OK;
}

tern_place *tern_tensor_place(const tern_tensor *x)
{
    return x->storage->place;
}

void tern_bump_version(tern_tensor *x)
{
    atomic_fetch_add_explicit(&x->storage->version, 1, memory_order_relaxed);
}

int64_t tern_tensor_version(const tern_tensor *x)
{
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}

void tern_hand_out(const tern_tensor *x)
{
    atomic_store_explicit(&x->storage->handed_out, true, memory_order_relaxed);
}

/* ---- references -------------------------------------------------------------------------- */

tern_tensor *tern_keep(tern_tensor *x)
{
    if (!x || tern_handle_is_gone(&x->handle))
        return x && tern_given_slow(x, "tern_keep", "x") ? x : NULL;
    atomic_fetch_add_explicit(&x->handle.refs, 1, memory_order_relaxed);
    return x;
}

static int free_hooks(tern_hook *hook)
{
    int n = 0;
    while (hook) {
        tern_hook *next = hook->next;
        tern_free(hook);
        hook = next;
        n++;
    }
    return n;
}

static void leaf_free(tern_leaf *leaf)
{
    tern_passes_count(-free_hooks(leaf->post));
    tern_release(leaf->bucket_view);
    tern_free(leaf);
}

static void history_free(tern_history *history)
{
    free_hooks(history->hooks);
    if (history->retains_grad && history->node)
        history->node->output[history->output].retainer = NULL;
    if (history->leaf)
        leaf_free(history->leaf);
    tern_release(history->grad);
    tern_release(history->base);
    tern_node_release(history->node);
    tern_free(history);
}

/* Frees what x owns, and adds its header to `ended`. */
static void end(tern_tensor *x, tern_headers *ended)
{
    tern_storage *storage = x->storage, *none;
    if (tern_debugging)
        tern_header_describe(x);
    if (x->history) {
        history_free(x->history);
        x->history = NULL;
    }
    x->requires_grad = false;
    if (storage) {
        none = atomic_load_explicit(&tern_gone_last, memory_order_acquire);
        x->storage =
            none && none->place == storage->place ? none : tern_gone_storage(storage->place);
        tern_storage_release(storage);
    }
    atomic_store_explicit(&x->handle.refs, 0, memory_order_release);
    x->handle.next = ended->first;
    if (!ended->first)
        ended->last = &x->handle;
    ended->first = &x->handle;
    ended->count++;
}

/* Releases the only reference. It is a separate function so that tern_release is short. */
static __attribute__((noinline)) void release_last(tern_tensor *x, tern_headers *ended, int refs)
{
    if (refs < 1)
        tern_given_slow(x, "tern_release", "x");
    else if (refs == 1 || atomic_fetch_sub_explicit(&x->handle.refs, 1, memory_order_acq_rel) == 1)
        end(x, ended);
}

void tern_released(tern_headers_kept *kept, const tern_headers *ended)
{
    atomic_fetch_sub_explicit(&live, ended->count, memory_order_relaxed);
    tern_headers_put(kept, ended);
}

static __attribute__((noinline)) void release_one(tern_tensor *x, int refs)
{
    tern_headers ended = {.count = 0};
    release_last(x, &ended, refs);
    if (ended.count)
        tern_released(&tern_thread.headers, &ended);
}

void tern_release_into(tern_tensor *x, tern_headers *ended)
{
    release_last(x, ended, atomic_load_explicit(&x->handle.refs, memory_order_acquire));
}

void tern_release(tern_tensor *x)
{
    if (!x)
        return;
    int refs = atomic_load_explicit(&x->handle.refs, memory_order_acquire);
    while (refs > 1)
        if (atomic_compare_exchange_weak_explicit(&x->handle.refs, &refs, refs - 1,
                                                  memory_order_acq_rel, memory_order_acquire))
            return;
    release_one(x, refs);
}

bool tern_given_slow(const tern_tensor *x, const char *function, const char *argument)
{
    if (!x)
        tern_fail_argument_null(function, argument);
    else
        tern_fail_gone(&x->handle, "tensor", function, argument);
    return false;
}

/* ---- fields ------------------------------------------------------------------------------ */
/* A function that records no error for NULL accepts a freed tensor too, with unchanged fields. */

int tern_dim(const tern_tensor *x)
{
    return tern_given(x, "tern_dim", "x") ? x->ndim : -1;
}

int64_t tern_numel(const tern_tensor *x)
{
    return tern_given(x, "tern_numel", "x") ? x->numel : -1;
}

int64_t tern_size(const tern_tensor *x, int dim)
{
    int d = 0;
    if (!tern_given(x, "tern_size", "x") || tern_wrap_dim(dim, x->ndim, &d, "tern_size") != TERN_OK)
        return -1;
    return x->ndim ? x->shape[d] : 1;
}

int64_t tern_stride(const tern_tensor *x, int dim)
{
    int d = 0;
    if (!tern_given(x, "tern_stride", "x") ||
        tern_wrap_dim(dim, x->ndim, &d, "tern_stride") != TERN_OK)
        return -1;
    return x->ndim ? x->stride[d] : 1;
}

tern_shape tern_shape_of(const tern_tensor *x)
{
    return x ? tern_shape_from(x->ndim, x->shape) : tern_shape_from(-1, NULL);
}

tern_dtype tern_dtype_of(const tern_tensor *x)
{
    return x ? x->dtype : TERN_DTYPE_DEFAULT;
}

const char *tern_device(const tern_tensor *x)
{
    return x ? tern_place_text(x->storage->place) : NULL;
}

bool tern_is_contiguous(const tern_tensor *x)
{
    return x && x->contiguous;
}

bool tern_same_shape(const tern_tensor *a, const tern_tensor *b)
{
    if (!a || !b || a->ndim != b->ndim)
        return false;
    return memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->ndim) == 0;
}

int64_t tern_version(const tern_tensor *x)
{
    return x ? tern_tensor_version(x) : 0;
}

void *tern_data(tern_tensor *x)
{
    if (!tern_given(x, "tern_data", "x") || x->numel == 0)
        return NULL;
    if (tern_storage_there(x, "tern_data") != TERN_OK)
        return NULL;
    char *host = x->storage->block->buffer.host;
    if (!host || strcmp(tern_place_kind(x->storage->place), "cpu") != 0)
        return tern_fail_null(
            TERN_ERR_DEVICE,
            "tern_data: the tensor is on %s; only cpu tensors have a host address "
            "(tern_copy_to_host or tern_to(x, \"cpu\") copies)",
            tern_device(x));
    tern_hand_out(x);
    return host + (size_t)x->offset * tern_dtype_size(x->dtype);
}

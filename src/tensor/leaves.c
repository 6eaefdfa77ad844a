/* leaves.c -- the gradients of a backward pass: summing them, calling hooks, and storing them in
 * leaves, which several threads may share. */
#include "base/callback.h"
#include "base/lock.h"
#include "tensor/from_ops.h"
#include "tensor/fuse/pass.h"
#include "tensor/history.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

/* How many backward passes of all threads have begun, and how many run now. */
static atomic_ullong begun;
static atomic_int under_way;

void tern_pass_begin(tern_backward_pass *w)
{
    w->number = atomic_fetch_add(&begun, 1) + 1;
    w->first = atomic_fetch_add(&under_way, 1) == 0;
}

/* Returns whether no other pass has run since w began. */
static bool is_alone(const tern_backward_pass *w)
{
    return w->first && atomic_load_explicit(&begun, memory_order_acquire) == w->number;
}

void tern_pass_end(tern_backward_pass *w)
{
    for (size_t i = 0; i < w->n_leaves; i++) {
        tern_fuse_unclaim(w, &w->leaves[i]);
        tern_release(w->leaves[i].leaf);
        tern_release(w->leaves[i].grad);
    }
    tern_free(w->leaves);
    tern_free(w->stack.node);
    atomic_fetch_sub(&under_way, 1);
}

/* ---- gradients --------------------------------------------------------------------------- */

tern_status tern_pass_gather(tern_tensor **sum, tern_tensor *grad)
{
    tern_tensor *total = *sum ? tern_from_ops->add(*sum, grad) : grad;
    if (!total)
        return tern_last_status();
    tern_keep(total);
    tern_release(*sum);
    *sum = total;
    return TERN_OK;
}

/* Returns the next hook by id: a hook may remove any hook. New hooks run in the next pass. */
static const tern_hook *hook_behind(const tern_hook *hook, int id, int last)
{
    while (hook && hook->id <= id)
        hook = hook->next;
    return hook && hook->id <= last ? hook : NULL;
}

tern_status tern_pass_hooks(tern_backward_pass *w, tern_hook *const *list, tern_tensor **grad)
{
    const tern_hook *hook;
    int last = 0;
    for (hook = *list; hook; hook = hook->next)
        last = hook->id;
    tern_fuse_shown(w, *grad);
    for (int id = 0; (hook = hook_behind(*list, id, last));) {
        id = hook->id;
        const tern_callback before = tern_callback_begin();
        tern_tensor *other = hook->call(*grad, hook->user);
        tern_callback_end(&before, TERN_OK);
        TERN_TRY(tern_failed_since(w->failures));
        if (!other)
            continue;
        TERN_TRY(tern_check_hooked(other, *grad));
        tern_keep(other);
        tern_release(*grad);
        *grad = other;
    }
    return TERN_OK;
}

static tern_status call_post_hooks(tern_backward_pass *w, tern_tensor *x)
{
    const tern_hook *hook;
    int last = 0;
    for (hook = x->history->leaf->post; hook; hook = hook->next)
        last = hook->id;
    for (int id = 0; (hook = hook_behind(x->history->leaf->post, id, last));) {
        id = hook->id;
        const tern_callback before = tern_callback_begin();
        tern_status status = hook->post(x, hook->user);
        TERN_TRY(TERN_CALLBACK_END(&before, status,
                                   "tern_backward: a hook on a gradient of shape %s failed",
                                   TERN_TENSOR_TEXT(x)));
        TERN_TRY(tern_failed_since(w->failures));
    }
    return TERN_OK;
}

tern_status tern_pass_set_grad(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad)
{
    tern_fuse_shown(w, grad);
    return tern_history_set_grad(x, grad);
}

tern_status tern_pass_retain(tern_backward_pass *w, tern_tensor *x, tern_tensor *grad)
{
    tern_tensor *old = x->history->grad;
    grad = old ? tern_from_ops->add(old, grad) : grad;
    return grad ? tern_pass_set_grad(w, x, grad) : tern_last_status();
}

/* ---- arriving ---------------------------------------------------------------------------- */

/* Returns the index of the leaf in w->leaves, or n_leaves for a new leaf. history->arrival may be
 * the index in another pass, of another thread or nested in this one. */
static size_t place_of(const tern_backward_pass *w, const tern_tensor *leaf, tern_history *history)
{
    size_t at = atomic_load_explicit(&history->arrival, memory_order_acquire);
    if (at < w->n_leaves && w->leaves[at].leaf == leaf)
        return at;
    for (at = is_alone(w) ? w->n_leaves : 0; at < w->n_leaves; at++)
        if (w->leaves[at].leaf == leaf)
            break;
    return at;
}

tern_arrival *tern_pass_leaf(tern_backward_pass *w, tern_tensor *leaf)
{
    tern_history *history = tern_history_of(leaf);
    if (!history)
        return NULL;
    size_t at = place_of(w, leaf, history);
    if (at < w->n_leaves)
        return &w->leaves[at];
    if (w->n_leaves == w->leaf_capacity) {
        size_t capacity = w->leaf_capacity ? 2 * w->leaf_capacity : 32;
        tern_arrival *leaves = tern_grow(w->leaves, capacity * sizeof *leaves);
        if (!leaves)
            return NULL;
        w->leaves = leaves;
        w->leaf_capacity = capacity;
    }
    atomic_store_explicit(&history->arrival, w->n_leaves, memory_order_release);
    w->leaves[w->n_leaves] = (tern_arrival){.leaf = tern_keep(leaf)};
    return &w->leaves[w->n_leaves++];
}

/* Returns whether x is dense, and neither x nor its storage has another owner. */
static bool is_free(const tern_tensor *x)
{
    return atomic_load(&x->handle.refs) == 1 && atomic_load(&x->storage->refs) == 1 &&
           (x->contiguous || tern_is_channels_last(x)) && x->offset == 0;
}

tern_status tern_pass_to_leaf(tern_backward_pass *w, tern_tensor *leaf, tern_tensor *grad)
{
    tern_arrival *a = tern_pass_leaf(w, leaf);
    if (!a || !a->grad || w->create || !is_free(a->grad))
        return a ? tern_pass_gather(&a->grad, grad) : TERN_ERR_MEMORY;
    return tern_from_ops->add_(a->grad, grad) ? TERN_OK : tern_failed_since(w->failures);
}

/* ---- staying ----------------------------------------------------------------------------- */

/* Returns the gradient that the leaf stores: grad itself if nothing else uses it and it has the
 * leaf's memory format, else a copy in that format (PyTorch's contract of gradients' layout). */
static tern_tensor *own(const tern_tensor *leaf, tern_tensor *grad, bool create)
{
    if (create || (tern_lies_as(grad, leaf) && is_free(grad)))
        return grad;
    tern_shape shape = tern_shape_of(grad);
    tern_tensor *copy = tern_tensor_new(&shape, grad->dtype, grad->storage->place, "tern_backward");
    if (copy && tern_is_channels_last(leaf))
        tern_make_channels_last(copy);
    if (copy && copy->numel && tern_from_ops->copy(copy, grad) != TERN_OK) {
        tern_release(copy);
        copy = NULL;
    }
    return tern_scoped(copy);
}

/* Adds grad to leaf.grad in view, the leaf's bucket view, even if other tensors share view. */
static tern_status accumulate_at(tern_backward_pass *w, tern_tensor *view, tern_tensor *leaf,
                                 tern_tensor *grad)
{
    tern_tensor *old = leaf->history->grad;
    if (old == view)
        return tern_from_ops->add_(view, grad) ? TERN_OK : tern_failed_since(w->failures);
    if (old && !(grad = tern_from_ops->add(old, grad)))
        return tern_failed_since(w->failures);
    if (grad != view) { /* grad was not computed in view */
        if (view->numel)
            TERN_TRY(tern_from_ops->copy(view, grad));
        tern_bump_version(view);
    }
    return tern_pass_set_grad(w, leaf, view);
}

/* leaf.grad += grad */
static tern_status accumulate(tern_backward_pass *w, tern_tensor *leaf, tern_tensor *grad)
{
    tern_tensor *old = tern_history_of(leaf)->grad;
    const tern_leaf *more = leaf->history->leaf;
    if (more && more->bucket_view && !w->create && !tern_fuse_is_claimed(w, more))
        return accumulate_at(w, more->bucket_view, leaf, grad);
    if (!old)
        grad = own(leaf, grad, w->create);
    else if (w->create || atomic_load(&old->handle.refs) > 1)
        grad = tern_from_ops->add(old, grad); /* old has another owner: it stays unchanged */
    else
        grad = tern_from_ops->add_(old, grad);
    return grad ? tern_pass_set_grad(w, leaf, grad) : tern_last_status();
}

static tern_status leave_in_leaf(tern_backward_pass *w, tern_arrival *a)
{
    if (a->leaf->history->hooks)
        TERN_TRY(tern_pass_hooks(w, &a->leaf->history->hooks, &a->grad));
    TERN_TRY(tern_check_leaf(a->grad, a->leaf));
    if (w->wanted) {
        for (int k = 0; k < w->n_wanted; k++)
            if (w->wanted[k] == a->leaf)
                TERN_TRY(tern_pass_gather(&w->caught[k], a->grad));
        return TERN_OK;
    }
    tern_mutex *lock = tern_leaf_lock(a->leaf);
    tern_status status = accumulate(w, a->leaf, a->grad);
    tern_mutex_unlock(lock);
    if (status == TERN_OK && a->leaf->history->leaf)
        status = call_post_hooks(w, a->leaf);
    return status;
}

/* Works on a copy of the entry, because w->leaves may grow meanwhile (by a hook that runs a
 * backward pass). */
tern_status tern_pass_finish_leaf(tern_backward_pass *w, tern_arrival *line)
{
    tern_arrival a = *line;
    tern_status status = TERN_OK;
    line->grad = NULL;
    line->claimed = false;
    if (a.grad)
        TERN_SCOPE
            status = leave_in_leaf(w, &a);
    tern_fuse_unclaim(w, &a);
    tern_release(a.grad);
    return status;
}

tern_status tern_pass_finish_leaves(tern_backward_pass *w)
{
    tern_status status = TERN_OK;
    for (size_t i = 0; i < w->n_leaves && status == TERN_OK; i++)
        status = tern_pass_finish_leaf(w, &w->leaves[i]);
    return status;
}

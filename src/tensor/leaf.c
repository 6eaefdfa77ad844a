/* leaf.c -- what only some leaves have: hooks after their gradient is accumulated, a bucket view,
 * other ranks. */
#include "tensor/leaf.h"
#include "base/lock.h"
#include "tensor/ranks.h"
#include "tensor/backward_pass.h"

/* Creates the struct if there is none; NULL after TERN_ERR_MEMORY. */
static tern_leaf *leaf_of(tern_tensor *x)
{
    tern_history *history = tern_history_of(x);
    if (history && !history->leaf)
        history->leaf = tern_alloc(sizeof *history->leaf);
    return history ? history->leaf : NULL;
}

tern_mutex *tern_leaf_lock(const tern_tensor *leaf)
{
#define FOUR(X) X, X, X, X
    static tern_mutex locks[] = {FOUR(FOUR(TERN_MUTEX_INIT))};
#undef FOUR
    tern_mutex *lock = &locks[(uintptr_t)leaf / sizeof *leaf % (sizeof locks / sizeof *locks)];
    tern_mutex_lock(lock);
    return lock;
}

static const tern_leaf *leaf_there(const tern_tensor *x)
{
    return x && x->history ? x->history->leaf : NULL;
}

int tern_register_post_accumulate_grad_hook(tern_tensor *x, tern_post_accumulate_grad_hook call,
                                            void *user)
{
    static const char function[] = "tern_register_post_accumulate_grad_hook";
    if (!tern_given(x, function, "x"))
        return 0;
    if (!call) {
        tern_fail_argument_null(function, "hook");
        return 0;
    }
    if (!tern_requires_grad(x) || !tern_is_leaf(x)) {
        tern_fail(TERN_ERR_STATE, "%s: %s", function,
                  tern_is_leaf(x) ? "cannot register a hook on a tensor that doesn't require "
                                    "gradient"
                                  : "post accumulate grad hooks cannot be registered on non-leaf "
                                    "tensors");
        return 0;
    }
    tern_leaf *leaf = leaf_of(x);
    tern_hook *hook = leaf ? tern_alloc(sizeof *hook) : NULL;
    if (!hook)
        return 0;
    hook->id = ++x->history->last_hook;
    hook->post = call;
    hook->user = user;
    tern_hook **end = &leaf->post;
    while (*end)
        end = &(*end)->next;
    *end = hook;
    tern_passes_count(1);
    return hook->id;
}

tern_status tern_set_grad_bucket_view(tern_tensor *x, tern_tensor *view)
{
    static const char function[] = "tern_set_grad_bucket_view";
    if (!tern_given(x, function, "x") || (view && !tern_given(view, function, "view")))
        return TERN_ERR_STATE;
    if (view && (!tern_same_shape(x, view) || view->dtype != x->dtype ||
                 view->storage->place != x->storage->place))
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: a bucket view of %s, %s, %s for the gradient of a tensor of %s, %s, %s", function,
            TERN_TENSOR_TEXT(view), tern_dtype_name(view->dtype), tern_device(view),
            TERN_TENSOR_TEXT(x), tern_dtype_name(x->dtype), tern_device(x));
    if (!view && !leaf_there(x))
        return TERN_OK;
    tern_leaf *leaf = leaf_of(x);
    if (!leaf)
        return TERN_ERR_MEMORY;
    tern_keep(view);
    tern_release(leaf->bucket_view);
    leaf->bucket_view = view;
    return TERN_OK;
}

tern_tensor *tern_grad_bucket_view(const tern_tensor *x)
{
    const tern_leaf *leaf = leaf_there(x);
    return leaf ? leaf->bucket_view : NULL;
}

tern_status tern_set_ranks(tern_tensor *x, tern_ranks *ranks)
{
    if (!tern_given(x, "tern_set_ranks", "x"))
        return TERN_ERR_STATE;
    if (!ranks && !leaf_there(x))
        return TERN_OK;
    tern_leaf *leaf = leaf_of(x);
    if (!leaf)
        return TERN_ERR_MEMORY;
    leaf->ranks = ranks;
    return TERN_OK;
}

tern_ranks *tern_ranks_of(const tern_tensor *x)
{
    const tern_leaf *leaf = leaf_there(x);
    return leaf ? leaf->ranks : NULL;
}

/* autograd.c -- public functions of a tensor's gradient: requires_grad, grad, detach, hooks. */
#include "tensor/node.h"
#include "tensor/history.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>

tern_tensor *tern_requires_grad_(tern_tensor *x, bool requires_grad)
{
    if (!tern_given(x, "tern_requires_grad_", "x"))
        return NULL;
    if (requires_grad && !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_requires_grad_: Only Tensors of floating point dtype can "
                              "require gradients (this one is %s)",
                              tern_dtype_name(x->dtype));
    if (!requires_grad && x->history && x->history->node)
        return tern_fail_null(
            TERN_ERR_STATE, "tern_requires_grad_: you can only change requires_grad flags of leaf "
                            "variables. If you want to use a computed variable in a subgraph that "
                            "doesn't require differentiation use tern_detach");
    tern_history *history = x->history;
    x->requires_grad = requires_grad || (history && history->node);
    /* A leaf is not a view any more: it would hold its base, and the base would hold the leaf once
     * it is written with a value computed from the leaf. */
    if (requires_grad && history && history->base && !history->node) {
        tern_release(history->base);
        history->base = NULL;
    }
    return x;
}

/* Returns whether x is a view that depends on its base's graph, and whose node is out of date. This
 * answers tern_requires_grad and tern_is_leaf without allocating the new node. */
static bool is_behind(const tern_tensor *x)
{
    const tern_history *mine = x->history;
    return mine && mine->base && mine->base->requires_grad &&
           mine->base_writes != mine->base->history->writes;
}

bool tern_requires_grad(const tern_tensor *x)
{
    return x && (x->requires_grad || is_behind(x));
}

bool tern_is_leaf(const tern_tensor *x)
{
    return x && !(x->history && x->history->node) && !is_behind(x);
}

/* If x is a view whose base was written in place, x's node is updated first. That changes nothing
 * that x's caller can see, so x is const. */
const char *tern_grad_fn(const tern_tensor *x)
{
    tern_tensor *view;
    memcpy(&view, &x, sizeof x);
    if (x)
        tern_refresh_view(view);
    return x && x->history && x->history->node ? tern_node_name(x->history->node) : NULL;
}

tern_tensor *tern_grad(const tern_tensor *x)
{
    return x && x->history ? x->history->grad : NULL;
}

tern_status tern_set_grad(tern_tensor *x, tern_tensor *grad)
{
    if (!tern_given(x, "tern_set_grad", "x") ||
        (grad && !tern_given(grad, "tern_set_grad", "grad")))
        return tern_last_status();
    if (!grad && !x->history)
        return TERN_OK;
    if (grad && !tern_same_shape(x, grad))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_set_grad: assigned grad has data of a different size (%s for %s)",
                         TERN_TENSOR_TEXT(grad), TERN_TENSOR_TEXT(x));
    if (grad && grad->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_set_grad: assigned grad has data of a different type (%s for %s)",
                         tern_dtype_name(grad->dtype), tern_dtype_name(x->dtype));
    if (grad && grad->storage->place != x->storage->place)
        return tern_fail(TERN_ERR_DEVICE, "tern_set_grad: assigned grad is on %s, the tensor on %s",
                         tern_device(grad), tern_device(x));
    if (grad == x)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_set_grad: can't assign a tensor as its own grad");
    return tern_history_set_grad(x, grad);
}

tern_status tern_retain_grad(tern_tensor *x)
{
    if (!tern_given(x, "tern_retain_grad", "x"))
        return tern_last_status();
    TERN_TRY(tern_refresh_view(x));
    if (!x->requires_grad)
        return tern_fail(TERN_ERR_STATE, "tern_retain_grad: can't retain_grad on Tensor that has "
                                         "requires_grad=False");
    if (tern_is_leaf(x))
        return TERN_OK;
    x->history->retains_grad = true;
    x->history->node->output[x->history->output].retainer = x;
    return TERN_OK;
}

tern_tensor *tern_detach(tern_tensor *x)
{
    if (!tern_given(x, "tern_detach", "x"))
        return NULL;
    return tern_scoped(tern_tensor_detached(x));
}

tern_tensor *tern_detach_(tern_tensor *x)
{
    if (!tern_given(x, "tern_detach_", "x"))
        return NULL;
    if (x->history && x->history->base)
        return tern_fail_null(TERN_ERR_STATE, "tern_detach_: Can't detach views in-place. Use "
                                              "tern_detach instead");
    if (x->history && x->history->node) {
        if (x->history->retains_grad)
            x->history->node->output[x->history->output].retainer = NULL;
        x->history->retains_grad = false;
        tern_node_release(x->history->node);
        x->history->node = NULL;
    }
    x->requires_grad = false;
    return x;
}

/* Returns the list of x's hooks: the node's list for results, the tensor's own for leaves. */
static tern_hook **hooks_of(tern_tensor *x)
{
    tern_history *h = x->history;
    return h->node ? &h->node->output[h->output].hooks : &h->hooks;
}

int tern_register_hook(tern_tensor *x, tern_grad_hook call, void *user)
{
    if (!tern_given(x, "tern_register_hook", "x"))
        return 0;
    if (!call) {
        tern_fail_argument_null("tern_register_hook", "hook");
        return 0;
    }
    if (tern_refresh_view(x) != TERN_OK)
        return 0;
    if (!x->requires_grad) {
        tern_fail(TERN_ERR_STATE, "tern_register_hook: cannot register a hook on a tensor that "
                                  "doesn't require gradient");
        return 0;
    }
    tern_history *history = tern_history_of(x);
    tern_hook *hook = history ? tern_alloc(sizeof *hook) : NULL;
    if (!hook)
        return 0;
    hook->id = ++history->last_hook;
    hook->call = call;
    hook->user = user;
    tern_hook **end = hooks_of(x);
    while (*end)
        end = &(*end)->next;
    *end = hook;
    return hook->id;
}

static bool remove_from(tern_hook **list, int id)
{
    while (*list && (*list)->id != id)
        list = &(*list)->next;
    tern_hook *gone = *list;
    if (gone)
        *list = gone->next;
    tern_free(gone);
    return gone;
}

tern_status tern_remove_hook(tern_tensor *x, int id)
{
    if (!tern_given(x, "tern_remove_hook", "x"))
        return tern_last_status();
    if (x->history && remove_from(hooks_of(x), id))
        return TERN_OK;
    if (x->history && x->history->leaf && remove_from(&x->history->leaf->post, id)) {
        tern_passes_count(-1);
        return TERN_OK;
    }
    return tern_fail(TERN_ERR_ARGUMENT, "tern_remove_hook: the tensor has no hook %d", id);
}

/* saved.c -- saved tensors that are replaced: by tensors that the program's hooks return
 * (torch.autograd.graph.saved_tensors_hooks), or by the input from which they are recomputed. */
#include "base/callback.h"
#include "tensor/from_ops.h"
#include "tensor/fuse/fuse.h"
#include "tensor/history.h"
#include "tensor/node.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>
#include <tern/ops/copy.h>

/* ---- hooks ------------------------------------------------------------------------------- */

tern_saved_tensors_hooks_block tern_saved_tensors_hooks_block_enter(
    tern_tensor *(*pack)(tern_tensor *x, void *user),
    tern_tensor *(*unpack)(tern_tensor *packed, void *user), void *user)
{
    tern_saved_tensors_hooks_block block = {.active = 1, .outer = tern_thread.saved_hooks};
    if (!pack || !unpack) {
        tern_fail_argument_null("tern_saved_tensors_hooks", pack ? "unpack" : "pack");
        block.active = 0;
    } else {
        tern_thread.saved_hooks = (tern_saved_tensors_hooks){pack, unpack, user};
    }
    return block;
}

void tern_saved_tensors_hooks_block_leave(tern_saved_tensors_hooks_block *block)
{
    tern_thread.saved_hooks = block->outer;
}

static tern_tensor *to_cpu(tern_tensor *x, void *user)
{
    (void)user;
    return tern_from_ops->to(x, "cpu");
}

static tern_tensor *as_it_is(tern_tensor *packed, void *user)
{
    (void)user;
    return packed;
}

tern_saved_tensors_hooks_block tern_save_on_cpu_block_enter(void)
{
    return tern_saved_tensors_hooks_block_enter(to_cpu, as_it_is, NULL);
}

tern_tensor *tern_saved_hook(tern_tensor *(*hook)(tern_tensor *, void *), tern_tensor *x,
                             void *user, const char *name)
{
    const tern_saved_tensors_hooks outer = tern_thread.saved_hooks;
    tern_tensor *y = NULL;
    tern_thread.saved_hooks = (tern_saved_tensors_hooks){NULL, NULL, NULL};
    const tern_callback before = tern_callback_begin();
    TERN_NO_GRAD
        TERN_SCOPE
            y = tern_keep(hook(x, user));
    const tern_status status = TERN_CALLBACK_END(
        &before, y ? TERN_OK : TERN_ERR_STATE, "tern_saved_tensors_hooks: %s gave no tensor", name);
    tern_thread.saved_hooks = outer;
    if (status == TERN_OK)
        return y;
    tern_release(y);
    return NULL;
}

/* Hooks get a tensor without history: the history would hold the node that saves the tensor. */
static tern_tensor *packed_by_hooks(const tern_saved_tensors_hooks *hooks, const tern_tensor *x)
{
    tern_tensor *detached = tern_tensor_detached(x);
    tern_tensor *y = detached ? tern_saved_hook(hooks->pack, detached, hooks->user, "pack") : NULL;
    tern_release(detached);
    return y;
}

/* ---- slots ------------------------------------------------------------------------------- */

static tern_packed *pack(const tern_node *node, int slot, tern_tensor *x)
{
    const tern_saved_tensors_hooks *hooks = &tern_thread.saved_hooks;
    const tern_node *maker = !hooks->pack && slot == 0 ? tern_fuse_maker(node, x) : NULL;
    if (!hooks->pack && !maker)
        return NULL;
    tern_packed *packed = tern_alloc(sizeof *packed);
    if (!packed)
        return NULL;
    packed->maker = maker ? maker->op : NULL;
    packed->hooks = *hooks;
    packed->dtype = x->dtype;
    packed->shape = tern_shape_of(x);
    packed->held.tensor = maker ? tern_keep(maker->saved[0].tensor) : packed_by_hooks(hooks, x);
    if (packed->held.tensor) {
        packed->held.version = tern_tensor_version(packed->held.tensor);
        return packed;
    }
    tern_free(packed);
    return NULL;
}

tern_status tern_node_leave_relu(tern_node *node)
{
    tern_packed *packed = tern_alloc(sizeof *packed);
    if (!packed)
        return TERN_ERR_MEMORY;
    packed->maker = node->edge[0].node->op;
    node->saved[node->n_in] = (tern_saved){.packed = packed};
    return TERN_OK;
}

tern_status tern_node_pack(tern_node *node, int slot, tern_tensor *x)
{
    const bool leaf = slot < node->n_in && node->edge[slot].leaf;
    const uint64_t failures = tern_failures();
    tern_packed *packed = x && !leaf ? pack(node, slot, x) : NULL;
    const tern_status status = packed || !x ? TERN_OK : tern_failed_since(failures);
    const bool keeps = !packed && status == TERN_OK;
    node->saved[slot] = (tern_saved){.tensor = keeps ? x : NULL,
                                     .version = keeps && x ? tern_tensor_version(x) : 0,
                                     .packed = packed};
    if (!keeps)
        tern_release(x);
    return status;
}

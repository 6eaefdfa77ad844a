/* saved.c -- saved tensors that are not kept: hooks of the program turn them into others
 * (torch.autograd.graph.saved_tensors_hooks), and what is made again is left out. */
#include "base/callback.h"
#include "tensor/fuse/fuse.h"
#include "tensor/history.h"
#include "tensor/node.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>
#include <tern/ops/copy.h>

tern_tensor *tern_packed_held(const tern_packed *packed)
{
    if (tern_tensor_version(packed->held.tensor) == packed->held.version)
        return packed->held.tensor;
    return tern_fail_null(
        TERN_ERR_STATE,
        "tern_backward: one of the variables needed for gradient computation has been modified by "
        "an inplace operation: [%s %s], which is an input of %s, is at version %lld; expected "
        "version %lld instead",
        tern_dtype_name(packed->dtype), TERN_TENSOR_TEXT(packed->held.tensor), packed->maker->name,
        (long long)tern_tensor_version(packed->held.tensor), (long long)packed->held.version);
}

/* ---- hooks ------------------------------------------------------------------------------- */

tern_saved_tensors_hooks_block
tern_saved_tensors_hooks_enter(tern_tensor *(*pack)(tern_tensor *x, void *user),
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

void tern_saved_tensors_hooks_leave(tern_saved_tensors_hooks_block *block)
{
    tern_thread.saved_hooks = block->outer;
}

static tern_tensor *to_cpu(tern_tensor *x, void *user)
{
    (void)user;
    return tern_to(x, "cpu");
}

static tern_tensor *as_it_is(tern_tensor *packed, void *user)
{
    (void)user;
    return packed;
}

tern_saved_tensors_hooks_block tern_save_on_cpu_enter(void)
{
    return tern_saved_tensors_hooks_enter(to_cpu, as_it_is, NULL);
}

/* A hook's answer to x, in no scope. */
static tern_tensor *call_hook(tern_tensor *(*hook)(tern_tensor *, void *), tern_tensor *x,
                              void *user, const char *name)
{
    const tern_saved_tensors_hooks outer = tern_thread.saved_hooks;
    tern_tensor *y = NULL;
    tern_thread.saved_hooks = (tern_saved_tensors_hooks){NULL, NULL, NULL};
    const tern_callback before = tern_callback_begin();
    TERN_NO_GRAD
        TERN_SCOPE
            y = tern_keep(hook(x, user));
    const tern_status status =
        TERN_CALLBACK_END(&before, y ? TERN_OK : TERN_ERR_STATE, "tern_saved_tensors_hooks: %s gave no tensor", name);
    tern_thread.saved_hooks = outer;
    if (status == TERN_OK)
        return y;
    tern_release(y);
    return NULL;
}

/* Hooks see a tensor without history, which would hold its own node. */
static tern_tensor *packed_by_hooks(const tern_saved_tensors_hooks *hooks, const tern_tensor *x)
{
    tern_tensor *detached = tern_tensor_detached(x);
    tern_tensor *y = detached ? call_hook(hooks->pack, detached, hooks->user, "pack") : NULL;
    tern_release(detached);
    return y;
}

static tern_tensor *unpacked_by_hooks(const tern_packed *packed, const tern_node *node)
{
    tern_tensor *x =
        call_hook(packed->hooks.unpack, packed->held.tensor, packed->hooks.user, "unpack");
    x = x ? tern_scoped(x) : NULL;
    tern_shape shape = x ? tern_shape_of(x) : packed->shape;
    if (x && (x->dtype != packed->dtype || !tern_shape_equal(&shape, &packed->shape)))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_saved_tensors_hooks: unpack gave a tensor of %s %s for one of "
                              "%s %s",
                              tern_dtype_name(x->dtype), TERN_SHAPE_TEXT(&shape),
                              tern_dtype_name(packed->dtype), TERN_SHAPE_TEXT(&packed->shape));
    if (x && x->storage->place != node->place)
        x = tern_to(x, tern_place_text(node->place));
    return x && (x->requires_grad || x->history) ? tern_detach(x) : x;
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
    packed->held.tensor =
        maker ? tern_keep(maker->saved[0].tensor) : packed_by_hooks(hooks, x);
    if (packed->held.tensor) {
        packed->held.version = tern_tensor_version(packed->held.tensor);
        return packed;
    }
    tern_free(packed);
    return NULL;
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

/* Whether the backward of node asks for input 0 itself, when it has the gradient for it. */
static bool waits(const tern_node *node, int slot, bool create)
{
    const tern_packed *packed = node->saved[slot].packed;
    const tern_node *before = slot == 0 && packed->maker ? node->edge[0].node : NULL;
    return before && before->op == packed->maker && !create;
}

/* Second derivatives go through what made an input. */
static tern_tensor *unpacked(const tern_node *node, int slot)
{
    const tern_packed *packed = node->saved[slot].packed;
    if (!packed->maker) {
        tern_tensor *x = unpacked_by_hooks(packed, node);
        const tern_edge *edge = slot < node->n_in ? &node->edge[slot] : NULL;
        if (!x || !edge || !edge->node)
            return x;
        x = tern_scoped(tern_tensor_detached(x));
        return x && tern_node_attach(edge->node, edge->output, x) == TERN_OK ? x : NULL;
    }
    tern_tensor *held = tern_packed_held(packed);
    return held ? tern_fuse_again(packed->maker, held) : NULL;
}

tern_status tern_node_unpack(tern_node *node, bool create)
{
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        tern_saved *s = &node->saved[i];
        if (!s->packed || s->tensor || waits(node, i, create))
            continue;
        s->tensor = tern_keep(unpacked(node, i));
        if (!s->tensor)
            return tern_last_status();
        s->version = tern_tensor_version(s->tensor);
    }
    return TERN_OK;
}

void tern_node_repack(tern_node *node)
{
    for (int i = 0; i < node->n_in + node->n_out; i++)
        if (node->saved[i].packed) {
            tern_release(node->saved[i].tensor);
            node->saved[i].tensor = NULL;
        }
}

void tern_packed_free(tern_packed *packed)
{
    if (packed)
        tern_release(packed->held.tensor);
    tern_free(packed);
}

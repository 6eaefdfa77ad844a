/* unpack.c -- sets packed saved tensors (saved.c) for the time in which a node's backward runs. */
#include "tensor/from_ops.h"
#include "tensor/fuse/fuse.h"
#include "tensor/history.h"
#include "tensor/node.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>
#include <tern/ops/copy.h>

static tern_tensor *unpacked_by_hooks(const tern_packed *packed, const tern_node *node)
{
    tern_tensor *x =
        tern_saved_hook(packed->hooks.unpack, packed->held.tensor, packed->hooks.user, "unpack");
    x = x ? tern_scoped(x) : NULL;
    tern_shape shape = x ? tern_shape_of(x) : packed->shape;
    if (x && (x->dtype != packed->dtype || !tern_shape_equal(&shape, &packed->shape)))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_saved_tensors_hooks: unpack gave a tensor of %s %s for one of "
                              "%s %s",
                              tern_dtype_name(x->dtype), TERN_SHAPE_TEXT(&shape),
                              tern_dtype_name(packed->dtype), TERN_SHAPE_TEXT(&packed->shape));
    if (x && x->storage->place != node->place)
        x = tern_from_ops->to(x, tern_place_text(node->place));
    return x && (x->requires_grad || x->history) ? tern_detach(x) : x;
}

/* Returns whether the tensor of a slot is recomputed later: input 0 by the node's backward, after
 * it has computed the gradient of input 0 (tern_made_again). */
static bool waits(const tern_node *node, int slot, bool create)
{
    const tern_packed *packed = node->saved[slot].packed;
    if (slot >= node->n_in && packed->maker)
        return true; /* relu: its gradient may be deferred, so that its result is not needed */
    const tern_node *before = slot == 0 && packed->maker ? node->edge[0].node : NULL;
    return before && before->op == packed->maker && !create;
}

static tern_tensor *unpacked_by_maker(const tern_packed *packed)
{
    tern_tensor *held = tern_packed_held(packed), *x = NULL;
    TERN_NO_GRAD
        x = held ? tern_fuse_again(packed->maker, held) : NULL;
    return x;
}

/* Returns a slot's tensor; an input has its node, so that second derivatives pass through it. */
static tern_tensor *unpacked(const tern_node *node, int slot)
{
    const tern_packed *packed = node->saved[slot].packed;
    tern_tensor *x = packed->maker ? unpacked_by_maker(packed) : unpacked_by_hooks(packed, node);
    const tern_edge *edge = slot < node->n_in ? &node->edge[slot] : NULL;
    if (!x || !edge || !edge->node)
        return x;
    x = tern_scoped(tern_tensor_detached(x));
    return x && tern_node_attach(edge->node, edge->output, x) == TERN_OK ? x : NULL;
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

/* inplace.c -- writes in place and their effect on the graph, also through views.
 *
 * A view refers to its base, the tensor whose elements it shares. A write through a view changes
 * the base: the base's history becomes a copy_slices node. Its backward takes the gradient of the
 * written part out of the base's gradient, passes it to the backward of the operation that wrote,
 * and writes the result back. Each view stores the base's count of writes; if the count has changed
 * when the view is next used, the view gets a new node from the base (as_strided). */
#include "tensor/node.h"
#include "tensor/from_ops.h"
#include "tensor/history.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>

typedef struct geometry {
    tern_shape shape; /* of the view */
    int64_t stride[TERN_MAX_DIMS];
    int64_t offset; /* relative to the base's first element */
} geometry;

static geometry geometry_in(const tern_tensor *view, const tern_tensor *base)
{
    geometry g = {.shape = tern_shape_of(view), .offset = view->offset - base->offset};
    memcpy(g.stride, view->stride, sizeof g.stride);
    return g;
}

bool tern_repeats(const tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    return x->numel > 1 && !x->contiguous &&
           tern_distinct_dims(&shape, x->stride) != (1u << x->ndim) - 1;
}

/* Sets *first and *last to the first and last element of the storage that x can access. */
static void extent(const tern_tensor *x, int64_t *first, int64_t *last)
{
    *first = *last = x->offset;
    for (int i = 0; i < x->ndim; i++)
        *last += (x->shape[i] - 1) * x->stride[i];
}

static bool same_elements(const tern_tensor *a, const tern_tensor *b)
{
    if (a->offset != b->offset || !tern_same_shape(a, b) || a->dtype != b->dtype)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return true;
}

static bool overlap(const tern_tensor *a, const tern_tensor *b)
{
    int64_t a0, a1, b0, b1;
    if (a->storage != b->storage || a->numel == 0 || b->numel == 0)
        return false;
    extent(a, &a0, &a1);
    extent(b, &b0, &b1);
    return a0 <= b1 && b0 <= a1;
}

/* Returns whether x's elements fill a range of memory, in any order. */
static bool is_without_gaps(const tern_tensor *x)
{
    int64_t first, last;
    extent(x, &first, &last);
    return last - first + 1 == x->numel && !tern_repeats(x);
}

static tern_status refuse(const tern_call *call, tern_status status, const char *why)
{
    char function[TERN_FUNCTION_BYTES];
    tern_call_name(call, function);
    return tern_fail(status, "%s: %s", function, why);
}

static tern_status check_memory(const tern_call *call, tern_tensor *x, tern_tensor *const *in,
                                int n)
{
    if (tern_repeats(x))
        return refuse(call, TERN_ERR_ARGUMENT,
                      "unsupported operation: more than one element of the written-to tensor "
                      "refers to a single memory location. Please clone() the tensor before "
                      "performing the operation.");
    for (int i = 0; i < n; i++)
        if (in[i] && in[i] != x && overlap(x, in[i]) && !same_elements(x, in[i]) &&
            is_without_gaps(x) && is_without_gaps(in[i]))
            return refuse(call, TERN_ERR_ARGUMENT,
                          "unsupported operation: some elements of the input tensor and the "
                          "written-to tensor refer to a single memory location. Please clone() "
                          "the tensor before performing the operation.");
    return TERN_OK;
}

tern_status tern_separate_inputs(tern_call *call, const tern_tensor *x, tern_tensor **separate)
{
    for (int i = 0; i < call->n_in; i++) {
        tern_tensor *in = call->in[i];
        if (!in || in == x || !overlap(x, in) || same_elements(x, in))
            continue;
        if (call->in != separate)
            memcpy(separate, call->in, sizeof *separate * (size_t)call->n_in);
        call->in = separate;
        if (!(separate[i] = tern_from_ops->clone(in)))
            return tern_last_status();
    }
    return TERN_OK;
}

static bool leaf_with_grad(const tern_tensor *x)
{
    return x->requires_grad && !(x->history && x->history->node);
}

tern_status tern_check_in_place(const tern_call *call, tern_tensor *x, tern_tensor *const *in,
                                int n)
{
    TERN_TRY(check_memory(call, x, in, n));
    if (!tern_is_grad_enabled())
        return TERN_OK;
    tern_tensor *base = x->history ? x->history->base : NULL;
    if (base && leaf_with_grad(base))
        return refuse(call, TERN_ERR_STATE,
                      "a view of a leaf Variable that requires grad is being used in an in-place "
                      "operation.");
    if (leaf_with_grad(x))
        return refuse(call, TERN_ERR_STATE,
                      "a leaf Variable that requires grad is being used in an in-place operation.");
    if (base && base->requires_grad && x->history->untracked)
        return refuse(call, TERN_ERR_STATE,
                      "A view was created in no_grad mode and is being modified inplace with grad "
                      "mode enabled. Given that this use case is ambiguous and error-prone, it is "
                      "forbidden. Make the view and write to it either both inside TERN_NO_GRAD "
                      "or both outside.");
    if (!base || !tern_must_record(call->op, in, n))
        return TERN_OK;
    if (x->history->multi_view)
        return refuse(call, TERN_ERR_STATE,
                      "the tensor is a view and is being modified inplace. This view is the "
                      "output of a function that returns multiple views. Such functions do not "
                      "allow the output views to be modified inplace. You should replace the "
                      "inplace operation by an out-of-place one.");
    if (!base->contiguous)
        return refuse(call, TERN_ERR_UNSUPPORTED,
                      "recording a write through a view needs a contiguous base; tern_contiguous "
                      "makes one");
    return TERN_OK;
}

/* ---- views ------------------------------------------------------------------------------- */

tern_status tern_note_view(tern_tensor *x, tern_tensor *of, bool one_of_several)
{
    if (!tern_is_grad_enabled() && !of->requires_grad)
        return TERN_OK;
    tern_tensor *base = of->history && of->history->base ? of->history->base : of;
    tern_history *mine = tern_history_of(x), *its = tern_history_of(base);
    if (!mine || !its)
        return TERN_ERR_MEMORY;
    mine->base = tern_keep(base);
    mine->base_writes = its->writes;
    mine->multi_view = one_of_several;
    mine->untracked = !tern_is_grad_enabled() || (of->history->base && of->history->untracked);
    return TERN_OK;
}

tern_status tern_refresh_view(tern_tensor *x)
{
    tern_history *mine = x->history;
    if (!mine || !mine->base || mine->base_writes == mine->base->history->writes)
        return TERN_OK;
    tern_tensor *base = mine->base;
    const int64_t writes = base->history->writes;
    if (!base->requires_grad) {
        mine->base_writes = writes;
        return TERN_OK;
    }
    tern_strided at = {.shape = tern_shape_of(x), .offset = x->offset - base->offset};
    memcpy(at.stride, x->stride, sizeof at.stride);
    memcpy(at.in_stride, base->stride, sizeof at.in_stride);
    tern_tensor *in[1] = {base};
    tern_call call = {.op = tern_from_ops->as_strided,
                      .in = in,
                      .n_in = 1,
                      .attributes = &at,
                      .place = x->storage->place,
                      .n_out = 1,
                      .out = {x}};
    TERN_TRY(tern_record(&call, in, sizeof at));
    mine->base_writes = writes;
    return TERN_OK;
}

/* ---- writing through a view -------------------------------------------------------------- */

static tern_status copy_slices_backward(tern_gradient *g)
{
    const geometry *view = g->attributes;
    tern_node *inner = g->inner;
    int n = g->n_in;
    if (g->recorded)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_backward: no second derivative of a write through a view (%s_)",
                         inner->op->name);
    tern_tensor *dbase = tern_from_ops->new_empty(g->dout[0], g->in_shape[0]);
    if (!dbase)
        return tern_last_status();
    TERN_TRY(tern_from_ops->copy(dbase, g->dout[0]));
    tern_tensor *slice =
        tern_scoped(tern_tensor_alias(dbase, &view->shape, view->stride, view->offset));
    tern_tensor *dview = slice ? tern_from_ops->new_empty(slice, view->shape) : NULL;
    if (!dview)
        return tern_last_status();
    TERN_TRY(tern_from_ops->copy(dview, slice));

    tern_tensor *in[n], *out[1] = {inner->saved[n].tensor}, *dout[1] = {dview}, *din[n];
    bool needs[n];
    for (int i = 0; i < n; i++) {
        in[i] = inner->saved[i].tensor;
        din[i] = NULL;
        needs[i] = i == 0 ? g->needs[0] : g->needs[i];
    }
    tern_gradient part = {.op = inner->op,
                          .attributes = inner->attributes,
                          .n_in = n,
                          .n_out = 1,
                          .in = in,
                          .out = out,
                          .dout = dout,
                          .needs = needs,
                          .in_shape = inner->in_shape,
                          .din = din};
    TERN_TRY(inner->op->backward(&part));
    TERN_TRY(
        din[0] ? tern_from_ops->copy(slice, din[0])
               : (tern_from_ops->fill_(slice, tern_scalar_real(0)) ? TERN_OK : tern_last_status()));
    g->din[0] = dbase;
    for (int i = 1; i < n; i++)
        g->din[i] = din[i];
    return TERN_OK;
}

static tern_status nothing(tern_call *call)
{
    (void)call;
    return TERN_OK;
}

static const tern_op copy_slices_op = {
    .name = "copy_slices",
    .infer = nothing,
    .backward = copy_slices_backward,
};

static tern_node *call_node(const tern_call *call, tern_tensor *const *in, size_t attribute_bytes)
{
    tern_node *node =
        tern_node_new(call->op, call->place, call->n_in, 1, call->attributes, attribute_bytes);
    if (node && tern_node_fill(node, call, in) != TERN_OK) {
        tern_node_release(node);
        node = NULL;
    }
    return node;
}

/* Creates the node of a write through a view of base: it has the edges, inner the operation. */
static tern_node *slices_node(const tern_call *call, tern_tensor *const *in, tern_node *inner,
                              tern_tensor *base)
{
    geometry g = geometry_in(call->out[0], base);
    tern_node *node = tern_node_new(&copy_slices_op, call->place, call->n_in, 1, &g, sizeof g);
    if (!node)
        return NULL;
    node->inner = inner;
    for (int i = 0; i < call->n_in; i++) {
        tern_tensor *input = i == 0 ? base : in[i];
        node->edge[i] = tern_edge_to(input);
        node->in_shape[i] = tern_shape_of(input);
        /* The edges of the inner node are removed: they would only keep its neighbours alive. */
        tern_node_release(inner->edge[i].node);
        tern_release(inner->edge[i].leaf);
        inner->edge[i] = (tern_edge){0};
    }
    node->output[0] = (tern_node_output){.dtype = base->dtype, .differentiable = true};
    return node;
}

static bool saves_input(const tern_call *call, const tern_tensor *x)
{
    uint32_t saves = call->op->choose_saves ? call->op->choose_saves(call) : call->op->saves;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] == x && saves & TERN_SAVE_IN(i))
            return true;
    return false;
}

/* Returns a tensor with x's history and x's elements before the write. The node must not hold x
 * itself, which is its output. The elements are copied if backward needs them. */
static tern_tensor *value_before(const tern_call *call, tern_tensor *x)
{
    tern_tensor *old;
    if (saves_input(call, x)) {
        tern_shape shape = tern_shape_of(x);
        char function[TERN_FUNCTION_BYTES];
        tern_call_name(call, function);
        old = tern_tensor_new(&shape, x->dtype, x->storage->place, function);
        if (old && x->numel && tern_from_ops->copy(old, x) != TERN_OK) {
            tern_release(old);
            return NULL;
        }
    } else {
        old = tern_tensor_detached(x);
    }
    if (!old)
        return NULL;
    old->requires_grad = x->requires_grad;
    if (x->history && x->history->node &&
        tern_node_attach(x->history->node, x->history->output, old) != TERN_OK) {
        tern_release(old);
        return NULL;
    }
    return old;
}

tern_status tern_prepare_write(tern_write *write, const tern_call *call, tern_tensor *const *in,
                               size_t attribute_bytes)
{
    tern_tensor *x = call->out[0];
    *write = (tern_write){.slot = -1};
    if (!tern_must_record(call->op, in, call->n_in))
        return TERN_OK;
    tern_history *history = tern_history_of(x);
    tern_tensor *old = history ? value_before(call, x) : NULL;
    if (!old)
        return tern_last_status();
    tern_tensor *inputs[call->n_in];
    for (int i = 0; i < call->n_in; i++)
        inputs[i] = in[i] == x ? old : in[i];
    tern_node *node = call_node(call, inputs, attribute_bytes);
    if (!node) {
        tern_release(old);
        return TERN_ERR_MEMORY;
    }
    write->head = history->base ? history->base : x;
    const tern_saved *result = &node->saved[call->n_in];
    write->slot = result->tensor || result->version < 0 ? call->n_in : -1;
    if (history->base) {
        write->inner = node;
        node = slices_node(call, inputs, node, history->base);
    }
    tern_release(old);
    write->node = node;
    if (node && tern_history_of(write->head))
        return TERN_OK;
    if (!node)
        tern_node_release(write->inner);
    else
        tern_node_release(node);
    return TERN_ERR_MEMORY;
}

tern_status tern_finish_write(tern_write *write, tern_tensor *x, bool written)
{
    if (!write->node)
        return TERN_OK;
    tern_status status = TERN_OK;
    if (written) {
        tern_node *op = write->inner ? write->inner : write->node;
        if (write->slot >= 0) /* the result is saved as it is after the write */
            tern_node_saved_written(op, write->slot, x);
        status = tern_node_attach(write->node, 0, write->head);
        write->head->history->writes++; /* views of head will update their nodes */
        x->requires_grad = true;
    }
    tern_node_release(write->node);
    return status;
}

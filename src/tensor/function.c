/* function.c -- functions whose gradient the program defines (torch.autograd.Function).
 *
 * The node of a call has the edges of its inputs. After the slots of its inputs, it has a slot for
 * each saved tensor that is neither an input nor a result. */
#include "base/callback.h"
#include "tensor/node.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>

/* The slot of a saved tensor: among the inputs and extra slots, or (from_out) the results. */
typedef struct saved {
    int slot;
    bool from_out;
} saved;

struct tern_function {
    tern_op op; /* the node's operation, with the name of the type */
    const tern_function_type *type;
    void *data;
    int n, k;
    bool *needs;        /* n elements: whether each input requires a gradient */
    bool *fixed;        /* k elements: whether each result is not differentiable */
    tern_tensor **kept; /* in forward: the saved tensors, in order, retained */
    saved *where;       /* for each saved tensor, once the node exists */
    int n_saved, capacity;
    const tern_gradient *g; /* the arguments of the backward that runs, or NULL */
};

static void let_go(tern_function *f)
{
    for (int i = 0; f->kept && i < f->n_saved; i++)
        tern_release(f->kept[i]);
    tern_free(f->kept);
    f->kept = NULL;
}

static void free_function(tern_function *f)
{
    let_go(f);
    if (f->type->free_data)
        f->type->free_data(f->data);
    tern_free(f->where);
    tern_free(f->needs);
    tern_free(f->fixed);
    tern_free(f);
}

static void release(void *attributes)
{
    free_function(*(tern_function **)attributes);
}

/* ---- functions that the program's functions call ----------------------------------------- */

void *tern_function_data(const tern_function *f)
{
    return f ? f->data : NULL;
}

tern_status tern_function_save(tern_function *f, tern_tensor *x)
{
    if (!f)
        return tern_fail_argument_null("tern_function_save", "f");
    if (!tern_given(x, "tern_function_save", "x"))
        return tern_last_status();
    if (f->g || f->where)
        return tern_fail(TERN_ERR_STATE, "tern_function_save: %s is past its forward",
                         f->type->name);
    if (f->n_saved == f->capacity) {
        int capacity = f->capacity ? 2 * f->capacity : 8;
        tern_tensor **kept = tern_grow(f->kept, sizeof *kept * (size_t)capacity);
        if (!kept)
            return TERN_ERR_MEMORY;
        f->kept = kept;
        f->capacity = capacity;
    }
    f->kept[f->n_saved++] = tern_keep(x);
    return TERN_OK;
}

tern_tensor *tern_function_saved(const tern_function *f, int i)
{
    if (!f || !f->g)
        return tern_fail_null(TERN_ERR_STATE, "tern_function_saved: this is not a backward");
    if (i < 0 || i >= f->n_saved)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_function_saved: index %d is out of range (%s saved %d)", i,
                              f->type->name, f->n_saved);
    const saved *s = &f->where[i];
    return s->from_out ? f->g->out[s->slot] : f->g->in[s->slot];
}

bool tern_function_needs_grad(const tern_function *f, int i)
{
    return f && i >= 0 && i < f->n && f->needs[i];
}

tern_status tern_function_mark_non_differentiable(tern_function *f, int i)
{
    if (!f || i < 0 || i >= f->k)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_function_mark_non_differentiable: there is no result %d", i);
    f->fixed[i] = true;
    return TERN_OK;
}

/* ---- the backward pass ----------------------------------------------------------------------- */

/* Returns an error if the pass could not sum a gradient to the shape of its input. */
static tern_status check_gradients(const tern_function *f, const tern_gradient *g)
{
    for (int i = 0; i < f->n; i++) {
        const tern_shape *to = &g->in_shape[i];
        const tern_tensor *dx = g->needs[i] ? g->din[i] : NULL;
        int added = dx ? dx->ndim - to->ndim : 0;
        bool fits = added >= 0;
        for (int d = 0; dx && fits && d < to->ndim; d++)
            fits = to->dims[d] == 1 || to->dims[d] == dx->shape[d + added];
        if (!fits)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_backward: %s returned an invalid gradient at index %d - got %s "
                             "but expected shape compatible with %s",
                             f->type->name, i, TERN_TENSOR_TEXT(dx), TERN_SHAPE_TEXT(to));
    }
    return TERN_OK;
}

static tern_status backward(tern_gradient *g)
{
    tern_function *f = *(tern_function *const *)g->attributes;
    const tern_gradient *outside = f->g;
    f->g = g;
    const tern_callback before = tern_callback_begin();
    tern_status status = f->type->backward(f, g->dout, f->k, g->din, f->n);
    f->g = outside;
    status = TERN_CALLBACK_END(&before, status, "tern_backward: %s failed", f->type->name);
    return status == TERN_OK ? check_gradients(f, g) : status;
}

/* ---- the node ---------------------------------------------------------------------------- */

static int index_of(tern_tensor *const *list, int n, const tern_tensor *x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return i;
    return -1;
}

static tern_status keep_all(tern_function *f, tern_node *node, tern_tensor *const *in,
                            tern_tensor *const *out)
{
    int extra = f->n;
    f->where = tern_alloc(sizeof *f->where * (size_t)(f->n_saved + 1));
    if (!f->where)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < f->n_saved; i++) {
        tern_tensor *x = f->kept[i];
        int from = index_of(in, f->n, x), to = from < 0 ? index_of(out, f->k, x) : -1;
        f->where[i] = to >= 0 ? (saved){to, true} : (saved){from >= 0 ? from : extra++, false};
        int slot = to >= 0 ? node->n_in + to : f->where[i].slot;
        if (node->saved[slot].tensor || node->saved[slot].packed || node->saved[slot].version < 0)
            continue; /* saved twice */
        tern_tensor *own = to >= 0 ? tern_tensor_detached(x) : tern_keep(x);
        if (!own)
            return TERN_ERR_MEMORY;
        if (to < 0)
            tern_read_shape(x, &node->in_shape[slot]);
        TERN_TRY(tern_node_keep(node, slot, own));
    }
    return TERN_OK;
}

/* Creates the node of f. The node owns f from then on, also after an error. */
static tern_node *make_node(tern_function *f, tern_tensor *const *in, tern_tensor *const *out)
{
    tern_place *place = out[0]->storage->place;
    int extras = 0;
    for (int i = 0; i < f->n_saved; i++)
        extras += index_of(in, f->n, f->kept[i]) < 0 && index_of(out, f->k, f->kept[i]) < 0;
    tern_node *node =
        tern_node_new(&f->op, place, f->n + extras, f->k, &f, sizeof(tern_function *));
    if (!node) {
        free_function(f);
        return NULL;
    }
    for (int i = 0; i < f->n; i++)
        if (in[i]) {
            node->edge[i] = tern_edge_to(in[i]);
            tern_read_shape(in[i], &node->in_shape[i]);
        }
    for (int i = 0; i < f->k; i++)
        node->output[i] = (tern_node_output){
            .dtype = out[i]->dtype,
            .differentiable = tern_dtype_is_floating_point(out[i]->dtype) && !f->fixed[i]};
    tern_status status = keep_all(f, node, in, out);
    let_go(f);
    if (status == TERN_OK)
        return node;
    tern_node_release(node);
    return NULL;
}

/* Replaces a result that is an input or has a history by a detached view. */
static tern_status own_results(const tern_function *f, tern_tensor *const *in, tern_tensor **out)
{
    for (int i = 0; i < f->k; i++) {
        int from = index_of(in, f->n, out[i]);
        if (from < 0 && !out[i]->requires_grad && !out[i]->history)
            continue;
        tern_tensor *look = tern_tensor_detached(out[i]);
        if (!look)
            return TERN_ERR_MEMORY;
        out[i] = tern_scoped(look);
        if (!out[i])
            return tern_last_status();
        if (from >= 0)
            TERN_TRY(tern_note_view(look, in[from], true));
    }
    return TERN_OK;
}

static tern_status record(tern_function *f, tern_tensor *const *in, tern_tensor **out)
{
    tern_node *node = make_node(f, in, out);
    tern_status status = node ? TERN_OK : tern_last_status();
    for (int i = 0; status == TERN_OK && i < f->k; i++)
        if (node->output[i].differentiable)
            status = tern_node_attach(node, i, out[i]);
    tern_node_release(node);
    return status;
}

bool tern_is_function(const tern_op *op)
{
    return op->backward == backward;
}

/* ---- running ----------------------------------------------------------------------------- */

static tern_function *new_function(const tern_function_type *type, void *data,
                                   tern_tensor *const *in, int n, int k)
{
    tern_function *f = tern_alloc(sizeof *f);
    bool *needs = f ? tern_alloc((size_t)n + 1) : NULL,
         *fixed = needs ? tern_alloc((size_t)k + 1) : NULL;
    if (!fixed) {
        tern_free(needs);
        tern_free(f);
        if (type->free_data)
            type->free_data(data);
        return NULL;
    }
    f->op = (tern_op){.name = type->name, .backward = backward, .release = release};
    f->type = type;
    f->data = data;
    f->n = n;
    f->k = k;
    f->needs = needs;
    f->fixed = fixed;
    for (int i = 0; i < n; i++)
        needs[i] = in[i] && tern_requires_grad(in[i]);
    return f;
}

/* Runs forward in a scope. The results outlive the scope, the other new tensors do not. */
static tern_status run_forward(tern_function *f, tern_tensor *const *in, tern_tensor **out)
{
    const tern_callback before = tern_callback_begin();
    tern_status status = TERN_OK;
    TERN_SCOPE {
        TERN_NO_GRAD
            status = f->type->forward(f, in, f->n, out, f->k);
        for (int i = 0; status == TERN_OK && i < f->k; i++)
            if (!out[i])
                status = tern_fail_argument_null("tern_function_apply", "a result");
            else if (!tern_given(out[i], "tern_function_apply", "a result"))
                status = TERN_ERR_STATE;
        for (int i = 0; status == TERN_OK && i < f->k; i++)
            tern_keep(out[i]);
    }
    for (int i = 0; i < f->k; i++)
        out[i] = status == TERN_OK ? tern_scoped(out[i]) : NULL;
    status = TERN_CALLBACK_END(&before, status, "tern_function_apply: %s failed", f->type->name);
    return status == TERN_OK ? tern_failed_since(before.failures) : status;
}

tern_status tern_function_apply(const tern_function_type *type, void *data, tern_tensor *const *in,
                                int n, tern_tensor **out, int k)
{
    static const char function[] = "tern_function_apply";
    if (!type || !type->name || !type->forward || !type->backward)
        return tern_fail_argument_null(function, !type            ? "type"
                                                 : !type->name    ? "type->name"
                                                 : !type->forward ? "type->forward"
                                                                  : "type->backward");
    if (!in || !out)
        return tern_fail_argument_null(function, in ? "out" : "in");
    if (n < 1 || k < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: %s with %d inputs and %d results must have 1 of each", function,
                         type->name, n, k);
    for (int i = 0; i < k; i++)
        out[i] = NULL;
    tern_function *f = new_function(type, data, in, n, k);
    if (!f)
        return TERN_ERR_MEMORY;
    bool recorded = tern_must_record(&f->op, in, n);
    tern_status status = run_forward(f, in, out);
    if (status == TERN_OK)
        status = own_results(f, in, out);
    if (status == TERN_OK && recorded)
        status = record(f, in, out);
    else
        free_function(f);
    for (int i = 0; status != TERN_OK && i < k; i++)
        out[i] = NULL;
    return status;
}

/* shard_run.c -- the forward and backward pass of a unit. Its parameters are gathered before the
 * forward and freed after it, and again around its part of the backward pass, whose gradients are
 * reduce-scattered. */
#include "dist/shard.h"
#include "tensor/leaf.h"
#include <stddef.h>
#include <tern/graph.h>

/* ---- passes ---------------------------------------------------------------------------------- */

static void let_go(tern_shard_pass *p)
{
    for (int i = 0; p->full && i < p->unit->n; i++)
        tern_release(p->full[i]);
    tern_free(p->full);
    p->full = NULL;
}

static void release_pass(void *data)
{
    tern_shard_pass *p = data;
    if (atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    let_go(p);
    tern_shard_drop(p->unit);
    tern_shard_drop(p->root);
    tern_free(p);
}

static tern_shard_pass *new_pass(tern_shard_unit *u, tern_shard_unit *root)
{
    tern_shard_pass *p = tern_alloc(sizeof *p);
    tern_tensor **full = p ? tern_alloc(sizeof *full * 2 * (size_t)u->n) : NULL;
    if (!full) {
        tern_free(p);
        return NULL;
    }
    atomic_init(&p->refs, 1);
    p->unit = u;
    p->root = root;
    p->index = root->order.n - 1;
    p->full = full;
    p->stand = full + u->n;
    tern_shard_hold(u);
    tern_shard_hold(root);
    return p;
}

static bool gives_back(const tern_shard_unit *u)
{
    return !u->keeps && u->module && u->module->parent;
}

static bool is_there(const tern_shard_unit *u, const tern_shard_unit *root)
{
    return u->stays && u->whole && u->mesh == root->mesh && u->epoch == u->mesh->epoch;
}

/* Begins the all-gather of the unit that ran after (step 1) or before (step -1) this one in the
 * last forward; for the backward pass only if that unit freed its parameters. */
static tern_status prefetch(const tern_shard_pass *p, int step)
{
    const tern_shard_units *plan = &p->root->plan;
    const int i = p->index + step;
    if (p->index >= plan->n || plan->units[p->index] != p->unit || i < 0 || i >= plan->n)
        return TERN_OK;
    tern_shard_unit *next = plan->units[i];
    const bool due = step > 0 ? !is_there(next, p->root) : (next->recorded && gives_back(next));
    return due && next->n && next->module ? tern_shard_gather(next) : TERN_OK;
}

/* ---- in the backward pass -------------------------------------------------------------------- */

static tern_status backward_ended(tern_after_backward *end, tern_status status);

static void await_backward(tern_shard_unit *root)
{
    if (root->in_backward)
        return;
    root->end.call = backward_ended;
    root->in_backward = tern_await_backward(&root->end);
    if (root->in_backward)
        tern_shard_hold(root);
}

static void close_pass(tern_shard_pass *p)
{
    tern_shard_pass **link = &p->root->open;
    while (*link && *link != p)
        link = &(*link)->next_open;
    if (!*link)
        return;
    *link = p->next_open;
    if (p->unit->inside == p->stand)
        tern_shard_swap(p->unit, NULL);
    for (int i = 0; i < p->unit->n; i++) {
        if (!p->unit->stays)
            tern_storage_empty(p->full[i]);
        tern_release(p->stand[i]);
        p->stand[i] = NULL;
    }
    release_pass(p);
}

static tern_status look(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const uint64_t failures = tern_failures();
    (void)f;
    (void)n;
    for (int i = 0; i < k; i++)
        if (!(out[i] = tern_detach(in[i])))
            return tern_failed_since(failures);
    return TERN_OK;
}

static tern_status nothing(tern_function *f, tern_tensor *const *grad_out, int k,
                           tern_tensor **grad_in, int n)
{
    (void)f;
    (void)grad_out;
    (void)k;
    for (int i = 0; i < n; i++)
        grad_in[i] = NULL;
    return TERN_OK;
}

/* Checkpoints in the unit run its forward again, which then needs computed whole parameters as
 * members, as in the first forward. */
static tern_status stand_in(tern_shard_pass *p)
{
    static const tern_function_type type = {
        .name = "Unsharded", .forward = look, .backward = nothing};
    const uint64_t failures = tern_failures();
    tern_shard_unit *u = p->unit;
    for (int i = 0; i < u->n; i++) {
        tern_tensor *x = tern_detach(p->full[i]), *computed = NULL;
        if (!x || !tern_requires_grad_(x, tern_requires_grad(u->slots[i].x)))
            return tern_failed_since(failures);
        TERN_ENABLE_GRAD
        if (tern_function_apply(&type, NULL, &x, 1, &computed, 1) == TERN_OK)
            p->stand[i] = tern_keep(computed);
        TERN_TRY(tern_failed_since(failures));
    }
    if (!u->runs)
        tern_shard_swap(u, p->stand);
    return TERN_OK;
}

static tern_status open_pass(tern_shard_pass *p)
{
    tern_shard_unit *u = p->unit;
    bool empty = false;
    await_backward(p->root);
    for (const tern_shard_pass *q = p->root->open; q; q = q->next_open)
        if (q == p)
            return TERN_OK;
    atomic_fetch_add(&p->refs, 1);
    p->next_open = p->root->open;
    p->root->open = p;
    for (int i = 0; i < u->n; i++) {
        empty = empty || tern_storage_is_empty(p->full[i]);
        TERN_TRY(tern_storage_refill(p->full[i]));
    }
    if (empty) {
        TERN_TRY(tern_shard_take(u, p->full));
        TERN_TRY(prefetch(p, -1));
    }
    tern_status status = TERN_OK;
    TERN_SCOPE
        status = stand_in(p);
    return status;
}

/* Waits for the averages, and passes them to the parts as gradients, so that their hooks run. */
static tern_status settle(tern_shard_unit *root)
{
    if (!root->reduce.items)
        return TERN_OK;
    tern_shard_unit *u = root->reduce.unit;
    tern_status status = TERN_OK;
    tern_shard_hold(u);
    TERN_SCOPE {
        tern_tensor *parts[u->n];
        status = tern_shard_take_reduced(&root->reduce, parts);
        for (int i = 0; i < u->n && status == TERN_OK; i++)
            if (parts[i])
                status = tern_backward_with(u->slots[i].x,
                                            &(tern_backward_options){.gradient = parts[i]});
    }
    tern_shard_drop(u);
    return status;
}

static void forget_prefetched(const tern_shard_units *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->units[i]->gather.items)
            tern_shard_end_traffic(&list->units[i]->gather);
}

static tern_status backward_ended(tern_after_backward *end, tern_status status)
{
    tern_shard_unit *root =
        (tern_shard_unit *)(void *)((char *)end - offsetof(tern_shard_unit, end));
    root->in_backward = false;
    while (root->open)
        close_pass(root->open);
    forget_prefetched(&root->plan);
    if (status == TERN_OK)
        status = settle(root);
    else if (root->reduce.items)
        tern_shard_end_traffic(&root->reduce);
    tern_shard_drop(root);
    return status;
}

/* ---- the autograd function from parts to whole parameters ------------------------------------ */

/* Returns a tensor for the whole parameter. Its memory includes padding rows that the last ranks
 * lack. */
static tern_tensor *new_full(const tern_shard_unit *u, const tern_shard_slot *s)
{
    tern_shape padded = s->shape;
    padded.dims[0] = s->each * tern_dist_get_world_size(u->mesh->group);
    tern_tensor *rows =
        tern_empty(padded, u->param_dtype ? u->param_dtype : tern_dtype_of(s->bucket_view),
                   tern_device(s->bucket_view));
    return rows ? tern_storage_view(rows, s->shape, NULL, 0) : NULL;
}

/* Keeps the whole parameters for the next forward. Graphs of earlier forwards keep the old ones. */
static tern_status stay(tern_shard_unit *u, tern_tensor *const *full)
{
    tern_tensor **whole = tern_alloc(sizeof *whole * (size_t)u->n);
    if (!whole)
        return TERN_ERR_MEMORY;
    tern_shard_release(u->whole, u->n);
    u->whole = whole;
    for (int i = 0; i < u->n; i++)
        whole[i] = tern_keep(full[i]);
    u->epoch = u->mesh->epoch;
    u->seen = tern_shard_version(u);
    return TERN_OK;
}

static tern_status gather(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    const uint64_t failures = tern_failures();
    tern_shard_pass *p = tern_function_data(f);
    const bool there = is_there(p->unit, p->root);
    (void)in;
    (void)n;
    for (int i = 0; i < k; i++) {
        const tern_shard_slot *s = &p->unit->slots[i];
        out[i] =
            there ? tern_storage_view(p->unit->whole[i], s->shape, NULL, 0) : new_full(p->unit, s);
        tern_tensor *look = out[i] ? tern_detach(out[i]) : NULL;
        if (!look)
            return tern_failed_since(failures);
        p->full[i] = tern_keep(look);
        if (!tern_function_needs_grad(f, i))
            TERN_TRY(tern_function_mark_non_differentiable(f, i));
    }
    if (there)
        return TERN_OK;
    TERN_TRY(tern_shard_take(p->unit, p->full));
    return p->unit->stays ? stay(p->unit, p->full) : TERN_OK;
}

/* Sets sums[i] to local[i] + grads[i], where NULL is no gradient. */
static tern_status add_local(const tern_shard_unit *u, tern_tensor *const *grads,
                             tern_tensor **sums)
{
    const uint64_t failures = tern_failures();
    for (int i = 0; i < u->n; i++) {
        tern_tensor *local = u->local ? u->local[i] : NULL;
        sums[i] = local && grads[i] ? tern_add(local, grads[i]) : local ? local : grads[i];
    }
    return tern_failed_since(failures);
}

static tern_status keep_local(tern_shard_unit *u, tern_tensor *const *sums)
{
    tern_tensor **kept = tern_alloc(sizeof *kept * (size_t)u->n);
    if (!kept)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < u->n; i++)
        kept[i] = sums[i] ? tern_keep(sums[i]) : NULL;
    tern_shard_release(u->local, u->n);
    u->local = kept;
    return TERN_OK;
}

static tern_status reduce(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    tern_shard_pass *p = tern_function_data(f);
    tern_shard_unit *u = p->unit, *root = p->root;
    bool trained[n];
    (void)k;
    if (tern_is_grad_enabled())
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "tern_backward: there are no second derivatives of sharded parameters");
    for (int i = 0; i < n; i++)
        trained[i] = tern_function_needs_grad(f, i);
    close_pass(p);
    if (tern_pass_catches()) {
        TERN_TRY(settle(root));
        TERN_TRY(tern_shard_reduce(u, &root->reduce, grad_out, trained));
        return tern_shard_take_reduced(&root->reduce, grad_in);
    }
    tern_tensor *sums[n];
    TERN_TRY(add_local(u, grad_out, sums));
    if (u->waits)
        return keep_local(u, sums);
    TERN_TRY(settle(root));
    await_backward(root);
    TERN_TRY(tern_shard_reduce(u, &root->reduce, sums, trained));
    tern_shard_release(u->local, u->n);
    u->local = NULL;
    return TERN_OK;
}

static const tern_function_type gather_type = {
    .name = "AllGather", .forward = gather, .backward = reduce, .free_data = release_pass};

/* ---- functions whose backward opens and closes a pass ---------------------------------------- */

static tern_status behind(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    (void)n;
    for (int i = 0; i < k; i++)
        grad_in[i] = grad_out[i];
    return open_pass(tern_function_data(f));
}

static tern_status before(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    (void)n;
    for (int i = 0; i < k; i++)
        grad_in[i] = grad_out[i];
    close_pass(tern_function_data(f));
    return TERN_OK;
}

static const tern_function_type behind_type = {
    .name = "Unshard", .forward = look, .backward = behind, .free_data = release_pass};
static const tern_function_type before_type = {
    .name = "Reshard", .forward = look, .backward = before, .free_data = release_pass};

/* Replaces those of the n tensors x that require gradients by the outputs of the function. */
static tern_status go_through(const tern_function_type *type, tern_shard_pass *p, tern_tensor **x,
                              int n)
{
    tern_tensor *in[n + 1], *out[n + 1];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (x[i] && tern_requires_grad(x[i]))
            in[k++] = x[i];
    if (k == 0)
        return TERN_OK;
    atomic_fetch_add(&p->refs, 1);
    TERN_TRY(tern_function_apply(type, p, in, k, out, k));
    for (int i = n; i-- > 0;)
        if (x[i] && tern_requires_grad(x[i]))
            x[i] = out[--k];
    return TERN_OK;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Sets full to references to the whole parameters. */
static tern_status gather_all(tern_shard_pass *p, tern_tensor **full)
{
    tern_shard_unit *u = p->unit;
    tern_tensor *parts[u->n];
    tern_status status = TERN_OK;
    for (int i = 0; i < u->n; i++)
        parts[i] = u->slots[i].x;
    atomic_fetch_add(&p->refs, 1);
    TERN_SCOPE {
        status = tern_function_apply(&gather_type, p, parts, u->n, full, u->n);
        for (int i = 0; i < u->n; i++)
            full[i] = status == TERN_OK ? tern_keep(full[i]) : NULL;
    }
    return status;
}

static tern_status cast_inputs(const tern_shard_unit *u, tern_tensor *const *in, int n,
                               tern_tensor **x)
{
    const uint64_t failures = tern_failures();
    for (int i = 0; i < n; i++) {
        x[i] = in[i];
        if (u->param_dtype && in[i] && tern_dtype_is_floating_point(tern_dtype_of(in[i])) &&
            tern_dtype_of(in[i]) != u->param_dtype &&
            !(x[i] = tern_to_dtype(in[i], u->param_dtype)))
            return tern_failed_since(failures);
    }
    return TERN_OK;
}

/* Frees what only a backward pass needs. A checkpoint needs only the tensors that it saves. */
static void give_back(tern_shard_pass *p)
{
    if (!p->recorded)
        let_go(p);
    for (int i = 0; p->recorded && gives_back(p->unit) && i < p->unit->n; i++)
        tern_storage_empty(p->full[i]);
}

static tern_status run_whole(tern_shard_pass *p, tern_module_run run, tern_tensor *const *in, int n,
                             tern_tensor **out, int k)
{
    tern_shard_unit *u = p->unit;
    tern_tensor *const *outer = u->inside, *x[n + 1], *full[u->n];
    if (tern_is_capturing())
        return tern_fail(TERN_ERR_STATE, "tern_dist_fully_shard: a step can't be recorded");
    TERN_TRY(cast_inputs(u, in, n, x));
    TERN_TRY(gather_all(p, full));
    tern_status status = prefetch(p, 1);
    bool trained = false;
    for (int i = 0; i < u->n; i++)
        trained = trained || tern_requires_grad(full[i]);
    p->recorded = tern_is_grad_enabled() && !tern_thread.mode.frame;
    u->recorded = p->recorded;
    if (status == TERN_OK && p->recorded && !trained)
        status = go_through(&before_type, p, x, n);
    if (status == TERN_OK) {
        const uint64_t failures = tern_failures();
        tern_shard_swap(u, full);
        u->runs++;
        status = run(u->module, x, n, out, k);
        u->runs--;
        tern_shard_swap(u, outer);
        if (status == TERN_OK)
            status = tern_nn_check_result(u->module, out, k, failures);
    }
    for (int i = 0; i < u->n; i++)
        tern_release(full[i]);
    give_back(p);
    return status == TERN_OK && p->recorded ? go_through(&behind_type, p, out, k) : status;
}

static tern_status add_to(tern_shard_units *list, tern_shard_unit *u)
{
    if (list->n == list->capacity) {
        const int capacity = list->capacity ? 2 * list->capacity : 16;
        tern_shard_unit **grown = tern_grow(list->units, sizeof *grown * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        list->units = grown;
        list->capacity = capacity;
    }
    tern_shard_hold(u);
    list->units[list->n++] = u;
    return TERN_OK;
}

/* At the end of an outermost forward, its order of units becomes the plan for prefetching in the
 * backward pass and the next forward. */
static void end_forward(tern_shard_unit *root)
{
    const tern_shard_units old = root->plan;
    forget_prefetched(&root->plan);
    forget_prefetched(&root->order);
    root->plan = root->order;
    root->order = (tern_shard_units){old.units, 0, old.capacity};
    for (int i = 0; i < old.n; i++)
        tern_shard_drop(old.units[i]);
}

tern_status tern_shard_run(tern_module *m, tern_module_run run, tern_tensor *const *in, int n,
                           tern_tensor **out, int k)
{
    tern_shard_unit *u = (tern_shard_unit *)(void *)m->around;
    const bool first = !tern_thread.shard_root;
    if (first)
        tern_thread.shard_root = u;
    tern_shard_unit *root = tern_thread.shard_root;
    tern_shard_hold(u);
    tern_status status = first ? tern_shard_look(root) : TERN_OK;
    if (status == TERN_OK)
        status = add_to(&root->order, u);
    tern_shard_pass *p = status == TERN_OK && u->n ? new_pass(u, root) : NULL;
    if (p) {
        status = run_whole(p, run, in, n, out, k);
        release_pass(p);
    } else if (status == TERN_OK) {
        status = u->n ? TERN_ERR_MEMORY : run(m, in, n, out, k);
    }
    if (first) {
        end_forward(root);
        tern_thread.shard_root = NULL;
    }
    tern_shard_drop(u);
    return status;
}

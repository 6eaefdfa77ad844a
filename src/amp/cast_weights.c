/* cast_weights.c -- casts all weights of a module in one launch, and their gradients in another, on
 * devices with work-groups, where hundreds of small launches would cost more than the matrix
 * products.
 *
 * Autocast casts a weight when an operation uses it, and caches the cast while its block is open.
 * The weights that a module's operations use are collected at the end of its first run; from the
 * next run on all are cast before it begins. */
#include "amp/casts.h"
#include "base/lock.h"
#include "base/memory.h"
#include "nn/module.h"
#include "ops/foreach/foreach.h"
#include "tensor/fuse/fuse.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>

typedef struct tern_cast_list {
    atomic_int refs; /* number of references by the module and by graph nodes */
    tern_mutex lock; /* protects the table */
    tern_place *place;
    tern_dtype to;
    int n;
    tern_tensor **leaf;
    int64_t *numel; /* sizes for which the table was made */
    tern_foreach *table;
} cast_list;

static void free_list(cast_list *list)
{
    if (!list || atomic_fetch_sub(&list->refs, 1) > 1)
        return;
    for (int i = 0; i < list->n; i++)
        tern_release(list->leaf[i]);
    tern_foreach_free(list->table);
    tern_mutex_destroy(&list->lock);
    tern_free(list->leaf);
    tern_free(list->numel);
    tern_free(list);
}

/* Returns a module's list with a new reference, as another thread may replace the list. */
static tern_mutex lists = TERN_MUTEX_INIT;
static cast_list *list_of_module(tern_module *m)
{
    tern_mutex_lock(&lists);
    cast_list *list = m->casts;
    if (list)
        atomic_fetch_add(&list->refs, 1);
    tern_mutex_unlock(&lists);
    return list;
}

static void set_list(tern_module *m, cast_list *list)
{
    tern_mutex_lock(&lists);
    cast_list *old = m->casts;
    m->casts = list;
    tern_mutex_unlock(&lists);
    free_list(old);
}

/* ---- one launch ---------------------------------------------------------------------------- */

/* Runs the kernel on all i with half[i] not NULL: it casts half[i] to or from wide[i], float32. */
static tern_status convert(cast_list *list, const tern_foreach_kernel *kernel, tern_tensor **half,
                           tern_tensor **wide)
{
    tern_tensor *any = NULL, **all = tern_alloc(sizeof *all * (size_t)list->n);
    if (!all)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < list->n; i++)
        any = half[i] ? half[i] : any;
    for (int i = 0; i < list->n; i++)
        all[i] = half[i] ? half[i] : any;
    const tern_foreach_call call = {
        .kernel = kernel, .function = "tern_autocast", .column = {all, half, wide}};
    tern_mutex_lock(&list->lock);
    tern_status status = any ? tern_foreach_launch(list->table, &call) : TERN_OK;
    tern_mutex_unlock(&list->lock);
    tern_free(all);
    return status;
}

static tern_tensor *like(const tern_tensor *x, tern_dtype dtype)
{
    tern_shape shape = tern_shape_of(x);
    return tern_tensor_new(&shape, dtype, x->storage->place, "tern_autocast");
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The attributes of a node: weight i of a list. */
typedef struct weight_cast {
    cast_list *list;
    int i;
} weight_cast;

static tern_status backward(tern_gradient *g)
{
    g->din[0] = tern_to_dtype(g->dout[0], TERN_F32);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Computes in one launch the gradients of all nodes of one list whose gradients are contiguous;
 * others get separate launches. */
static tern_status of_list(cast_list *list, void *const *attributes, tern_tensor *const *dout,
                           tern_tensor **din, int n)
{
    static const tern_foreach_kernel widen = TERN_FOREACH_KERNEL("foreach", "widen");
    tern_tensor **half = tern_alloc(2 * sizeof *half * (size_t)list->n), **wide = half + list->n;
    tern_status status = half ? TERN_OK : TERN_ERR_MEMORY;
    for (int k = 0; k < n && status == TERN_OK; k++) {
        const weight_cast *at = attributes[k];
        if (at->list != list || din[k] || half[at->i] || !dout[k]->contiguous ||
            dout[k]->dtype != list->to || dout[k]->numel != list->numel[at->i] ||
            dout[k]->storage->place != list->place)
            continue;
        din[k] = tern_scoped(like(dout[k], TERN_F32));
        status = din[k] ? TERN_OK : tern_last_status();
        half[at->i] = dout[k];
        wide[at->i] = din[k];
    }
    if (status == TERN_OK)
        status = convert(list, &widen, half, wide);
    tern_free(half);
    return status;
}

static tern_status batched_backward(void *const *attributes, tern_tensor *const *dout,
                                    tern_tensor **din, int n)
{
    for (int k = 0; k < n; k++) {
        const weight_cast *at = attributes[k];
        if (!din[k])
            TERN_TRY(of_list(at->list, attributes, dout, din, n));
        if (!din[k] && !(din[k] = tern_to_dtype(dout[k], TERN_F32)))
            return tern_last_status();
    }
    return TERN_OK;
}

static void release(void *attributes)
{
    free_list(((const weight_cast *)attributes)->list);
}

static const tern_fusion weight_fusion = {.is_cast = true, .batched_backward = batched_backward};

static const tern_op weight_op = {
    .name = "to_dtype", .backward = backward, .fusion = &weight_fusion, .release = release};

static tern_status record(cast_list *list, int i, tern_tensor *half)
{
    weight_cast at = {list, i};
    atomic_fetch_add(&list->refs, 1); /* the node's reference */
    return tern_record_made(&weight_op, list->leaf[i], half, &at, sizeof at);
}

/* ---- before a module runs -------------------------------------------------------------------- */

/* Returns whether all weights still have the device, dtype and size for which the table was
 * made. */
static bool fits(const cast_list *list)
{
    for (int i = 0; i < list->n; i++) {
        const tern_tensor *x = list->leaf[i];
        if (x->storage->emptied || x->storage->place != list->place || x->dtype != TERN_F32 ||
            !x->contiguous || x->numel != list->numel[i] || !tern_requires_grad(x) ||
            !tern_is_leaf(x))
            return false;
    }
    return tern_casts_dtype(list->leaf[0]) == list->to;
}

static tern_status cast_all(cast_list *list, tern_tensor **half)
{
    static const tern_foreach_kernel narrow = TERN_FOREACH_KERNEL("foreach", "narrow");
    int missing = 0;
    for (int i = 0; i < list->n; i++) {
        if (tern_casts_find(list->leaf[i], list->to))
            continue;
        if (!(half[i] = like(list->leaf[i], list->to)))
            return tern_last_status();
        missing++;
    }
    if (missing == 0)
        return TERN_OK;
    TERN_TRY(convert(list, &narrow, half, list->leaf));
    for (int i = 0; i < list->n; i++)
        if (half[i]) {
            TERN_TRY(record(list, i, half[i]));
            TERN_TRY(tern_casts_keep(list->leaf[i], half[i]));
        }
    return TERN_OK;
}

static tern_status begin(cast_list *list)
{
    if (!tern_is_grad_enabled() || tern_thread.casts.disabled || tern_thread.mode.trace ||
        tern_thread.mode.anomaly.on || tern_thread.mode.frame || !fits(list))
        return TERN_OK;
    tern_tensor **half = tern_alloc(sizeof *half * (size_t)list->n);
    tern_status status = half ? cast_all(list, half) : TERN_ERR_MEMORY;
    for (int i = 0; half && i < list->n; i++)
        tern_release(half[i]);
    tern_free(half);
    return status;
}

static tern_status begin_casts(tern_module *m)
{
    cast_list *list = list_of_module(m);
    tern_thread.casts_before = tern_casts_made();
    tern_status status = list ? begin(list) : TERN_OK;
    free_list(list);
    return status;
}

/* ---- after a module has run ------------------------------------------------------------------ */

/* The weights that were cast, of the first one's device and dtype. */
typedef struct found {
    tern_tensor **leaf;
    int n, capacity;
    tern_place *place;
    tern_dtype to;
} found;

static tern_status look(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    found *f = user;
    tern_dtype to = tern_casts_dtype(x);
    if (x->dtype != TERN_F32 || to == TERN_DTYPE_DEFAULT || !x->contiguous || x->numel == 0 ||
        !tern_place_is_grouped(x->storage->place) || !tern_casts_find(x, to) ||
        (f->n && (x->storage->place != f->place || to != f->to)))
        return TERN_OK;
    for (int i = 0; i < f->n; i++)
        if (f->leaf[i] == x) /* a tied weight */
            return TERN_OK;
    if (f->n == f->capacity) {
        int capacity = f->capacity ? 2 * f->capacity : 64;
        tern_tensor **grown = tern_grow(f->leaf, sizeof *grown * (size_t)capacity);
        if (!grown)
            return TERN_ERR_MEMORY;
        f->leaf = grown;
        f->capacity = capacity;
    }
    f->place = x->storage->place;
    f->to = to;
    f->leaf[f->n++] = x;
    return TERN_OK;
}

static cast_list *new_list(const found *f)
{
    cast_list *list = tern_alloc(sizeof *list);
    if (!list)
        return NULL;
    atomic_init(&list->refs, 1);
    tern_mutex_init(&list->lock);
    list->place = f->place;
    list->to = f->to;
    list->leaf = tern_alloc(sizeof *list->leaf * (size_t)f->n);
    list->numel = tern_alloc(sizeof *list->numel * (size_t)f->n);
    for (; list->leaf && list->numel && list->n < f->n; list->n++) {
        list->leaf[list->n] = tern_keep(f->leaf[list->n]);
        list->numel[list->n] = f->leaf[list->n]->numel;
    }
    list->table = list->n ? tern_foreach_new(list->leaf, list->n) : NULL;
    if (list->table)
        return list;
    free_list(list);
    return NULL;
}

static bool is_known(const cast_list *list, const found *f)
{
    return list && list->n == f->n && list->to == f->to && list->place == f->place &&
           memcmp(list->leaf, f->leaf, sizeof *f->leaf * (size_t)f->n) == 0;
}

/* Makes the module's list of weights. Not in a capture, where nothing can be uploaded. Errors are
 * ignored: without a list the casts are only slower. */
static void end_casts(tern_module *m)
{
    if (tern_casts_made() - tern_thread.casts_before < 2 || tern_thread.graph)
        return;
    found f = {.n = 0};
    cast_list *old = list_of_module(m), *list = NULL;
    tern_error_hold hold;
    tern_error_hold_begin(&hold);
    if (tern_nn_each_parameter(m, look, &f) == TERN_OK && f.n > 1 && !is_known(old, &f))
        list = new_list(&f);
    tern_error_hold_end(&hold, NULL, 0);
    if (list)
        set_list(m, list);
    free_list(old);
    tern_free(f.leaf);
}

void tern_casts_register(void)
{
    static const tern_amp_functions functions = {begin_casts, end_casts, free_list};
    tern_from_amp = &functions;
}

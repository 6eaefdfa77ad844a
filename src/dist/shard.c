/* shard.c -- tern_dist_fully_shard: the parameters of a unit, and their parts. */
#include "base/checked.h"
#include "base/option.h"
#include "base/text.h"
#include "dist/ddp.h"
#include "dist/shard.h"

static const char function[] = "tern_dist_fully_shard";

/* ---- the unit's parameters ------------------------------------------------------------------- */

/* Visits the tensors below m that are outside of other units, with their paths. Shared tensors are
 * visited once for each place. */
static tern_status each_own(tern_module *m, tern_member_kind kind, tern_text *path,
                            tern_tensor_visit visit, void *user)
{
    const size_t length = path->length;
    tern_status status = TERN_OK;
    for (int i = 0; i < m->count && status == TERN_OK; i++) {
        const tern_member *member = &m->members[i];
        const bool goes_down = member->child && !member->child->around;
        if (!goes_down && !(member->tensor && member->kind == kind))
            continue;
        tern_text_add(path, "%s%s", length ? "." : "", member->name);
        status = path->failed ? TERN_ERR_MEMORY
                 : goes_down  ? each_own(member->child, kind, path, visit, user)
                              : visit(path->data, member->tensor, user);
        path->length = length;
        if (path->data)
            path->data[length] = '\0';
    }
    return status;
}

static tern_status each(tern_module *m, tern_member_kind kind, tern_tensor_visit visit, void *user)
{
    tern_text path = {0};
    tern_status status = each_own(m, kind, &path, visit, user);
    tern_text_free(&path);
    return status;
}

static tern_status each_parameter(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, MEMBER_PARAMETER, visit, user);
}

static tern_status each_buffer(tern_module *m, tern_tensor_visit visit, void *user)
{
    return each(m, MEMBER_BUFFER, visit, user);
}

static tern_status count(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    (void)x;
    ++*(int *)user;
    return TERN_OK;
}

static tern_status add(const char *path, tern_tensor *x, void *user)
{
    tern_shard_unit *u = user;
    tern_ranks *cut = tern_ranks_of(x);
    if (cut && !tern_dist_cut_of(cut))
        return tern_fail(TERN_ERR_STATE,
                         "%s: parameter '%s' is shared with a part of the model that is sharded "
                         "already: shard what has both",
                         function, path);
    if (tern_dim(x) < 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: doesn't support scalar parameters. Change %s to a 1D tensor with "
                         "numel equal to 1.",
                         function, path);
    for (int i = 0; i < u->n; i++)
        if (u->slots[i].x == x) {
            u->slots[i].places++;
            return TERN_OK;
        }
    const int ranks = tern_dist_get_world_size(u->mesh->group);
    tern_shard_slot *s = &u->slots[u->n++];
    *s = (tern_shard_slot){.x = tern_keep(x), .cut = cut, .shape = tern_shape_of(x), .places = 1};
    s->each = (s->shape.dims[0] + ranks - 1) / ranks;
    s->elements = s->each;
    for (int d = 1; d < s->shape.ndim; d++)
        s->elements = tern_size_mul(s->elements, s->shape.dims[d]);
    return TERN_OK;
}

typedef struct outside {
    tern_shard_unit *unit;
    int *places;
} outside;

static tern_status count_place(const char *path, tern_tensor *x, void *user)
{
    outside *o = user;
    for (int i = 0; i < o->unit->n; i++)
        if (o->unit->slots[i].x == x && ++o->places[i] > o->unit->slots[i].places)
            return tern_fail(TERN_ERR_STATE,
                             "%s: parameter '%s' is also outside of the module that is sharded: "
                             "shard what has both places",
                             function, path);
    return TERN_OK;
}

/* Fails if a module outside of the unit has one of its parameters, as it would see a part only. */
static tern_status check_outside(tern_shard_unit *u, tern_module *m)
{
    const tern_each_options all = {.keep_duplicates = true};
    while (m->parent)
        m = m->parent;
    outside o = {u, tern_alloc(sizeof *o.places * ((size_t)u->n + 1))};
    tern_status status =
        o.places ? tern_nn_each_parameter_with(m, count_place, &o, &all) : TERN_ERR_MEMORY;
    tern_free(o.places);
    return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool travel_together(const tern_tensor *a, const tern_tensor *b)
{
    return tern_dtype_of(a) == tern_dtype_of(b) && tern_device(a) == tern_device(b);
}

/* Divides the slots into buckets, each of one dtype and device. */
static void deal_out(tern_shard_unit *u)
{
    for (int at = 0; at < u->n; at++) {
        int next = at;
        while (at && next < u->n && !travel_together(u->slots[at - 1].x, u->slots[next].x))
            next++;
        if (at == 0 || next == u->n) {
            u->buckets[u->n_buckets++] = (tern_shard_bucket){NULL, at, 0};
            next = at;
        }
        const tern_shard_slot slot = u->slots[next];
        for (int i = next; i > at; i--)
            u->slots[i] = u->slots[i - 1];
        u->slots[at] = slot;
        u->slots[at].bucket = u->n_buckets - 1;
        u->buckets[u->n_buckets - 1].slots++;
    }
}

static tern_status make_part(tern_shard_slot *s, tern_tensor *flat, int rank, int ranks)
{
    const uint64_t failures = tern_failures();
    tern_shape part = s->shape;
    int64_t first;
    part.dims[0] = tern_rows_of_rank(s->shape.dims[0], rank, ranks, &first);
    tern_tensor *view = tern_storage_view(flat, part, NULL, s->at);
    s->bucket_view = view ? tern_keep(view) : NULL;
    if (view && tern_numel(view))
        tern_copy_(view, tern_narrow(tern_detach(s->x), 0, first, part.dims[0]));
    return tern_failed_since(failures);
}

static tern_status make_bucket(tern_shard_unit *u, tern_shard_bucket *b)
{
    const uint64_t failures = tern_failures();
    int64_t elements = 0;
    for (int i = b->first; i < b->first + b->slots; i++) {
        u->slots[i].at = elements;
        elements = tern_size_add(elements, u->slots[i].elements);
    }
    const tern_tensor *x = u->slots[b->first].x;
    tern_tensor *flat = tern_zeros(TERN_SHAPE(elements), tern_dtype_of(x), tern_device(x));
    if (!flat)
        return tern_failed_since(failures);
    b->flat = tern_keep(flat);
    for (int i = b->first; i < b->first + b->slots; i++)
        TERN_TRY(make_part(&u->slots[i], flat, tern_dist_get_rank(u->mesh->group),
                           tern_dist_get_world_size(u->mesh->group)));
    return TERN_OK;
}

/* Steps that can fail come first, so that an error leaves the parameters unchanged. */
static tern_status make_parts(tern_shard_unit *u)
{
    const uint64_t failures = tern_failures();
    for (int i = 0; i < u->n_buckets; i++)
        TERN_TRY(make_bucket(u, &u->buckets[i]));
    for (int i = 0; i < u->n; i++) {
        tern_shard_mesh *mesh =
            tern_shard_mesh_of(u->mesh->group, u->mesh->replicate, u->slots[i].cut);
        TERN_TRY(mesh ? tern_set_ranks(u->slots[i].x, &mesh->of.ranks) : TERN_ERR_MEMORY);
        u->slots[i].shared = true;
    }
    for (int i = 0; i < u->n; i++)
        tern_set_data_(u->slots[i].x, u->slots[i].bucket_view);
    return tern_failed_since(failures);
}

/* ---- */

static tern_status begin_alike(tern_module *m, const tern_shard_mesh *mesh)
{
    tern_dist_group *groups[] = {mesh->replicate, mesh->group};
    for (int i = 0; i < 2; i++) {
        if (i == 0 && !groups[i])
            continue;
        TERN_TRY(tern_ddp_compare(function, m, each_parameter, each_buffer, groups[i]));
        TERN_TRY(tern_ddp_broadcast(m, each_parameter, groups[i], "parameters"));
        TERN_TRY(tern_ddp_broadcast(m, each_buffer, groups[i], "buffers"));
    }
    return TERN_OK;
}

static tern_status check_dtype(const char *name, tern_dtype dtype)
{
    if (dtype == TERN_DTYPE_DEFAULT || tern_dtype_is_floating_point(dtype))
        return TERN_OK;
    return tern_fail(TERN_ERR_DTYPE, "%s: %s is %s, expected a type of floating point", function,
                     name, tern_dtype_name(dtype));
}

static tern_status set_up(tern_shard_unit *u, tern_module *m, const tern_fully_shard_options *o)
{
    int n = 0;
    if (m->around)
        return tern_fail(TERN_ERR_STATE, "%s: %s is sharded already", function, m->name);
    if (tern_dist_get_rank(o->group) < 0 || (o->replicate && tern_dist_get_rank(o->replicate) < 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: this process is not in the group", function);
    TERN_TRY(check_dtype("param_dtype", o->param_dtype));
    TERN_TRY(check_dtype("reduce_dtype", o->reduce_dtype));
    TERN_TRY(each_parameter(m, count, &n));
    u->keeps = o->no_reshard_after_forward || o->keep_whole;
    u->stays = o->keep_whole;
    u->param_dtype = o->param_dtype;
    u->reduce_dtype = o->reduce_dtype;
    u->mesh = tern_shard_mesh_of(o->group, o->replicate, NULL);
    u->slots = tern_alloc(sizeof *u->slots * ((size_t)n + 1));
    u->buckets = tern_alloc(sizeof *u->buckets * ((size_t)n + 1));
    if (!u->mesh || !u->slots || !u->buckets)
        return TERN_ERR_MEMORY;
    TERN_TRY(each_parameter(m, add, u));
    TERN_TRY(check_outside(u, m));
    TERN_TRY(begin_alike(m, u->mesh));
    deal_out(u);
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD
            status = make_parts(u);
    return status;
}

/* The module was freed; graphs may still hold the unit. */
static void module_ended(tern_module_around *around)
{
    tern_shard_unit *u = (tern_shard_unit *)(void *)around;
    tern_shard_units *lists[] = {&u->plan, &u->order};
    u->module = NULL;
    if (u->gather.items)
        tern_shard_end_traffic(&u->gather);
    for (int i = 0; i < 2; i++)
        while (lists[i]->n > 0)
            tern_shard_drop(lists[i]->units[--lists[i]->n]);
    tern_shard_drop(u);
}

static tern_status set_waits(tern_module *m, void *user)
{
    if (m->around && m->around->call == tern_shard_run)
        ((tern_shard_unit *)(void *)m->around)->waits = *(const bool *)user;
    return TERN_OK;
}

tern_status tern_dist_set_requires_gradient_sync(tern_module *module, bool sync)
{
    bool waits = !sync;
    TERN_MODULE_GIVEN(module, "tern_dist_set_requires_gradient_sync");
    return module ? tern_nn_apply(module, set_waits, &waits)
                  : tern_fail_argument_null("tern_dist_set_requires_gradient_sync", "module");
}

tern_module *tern_dist_fully_shard(tern_module *module, const tern_fully_shard_options *options)
{
    const tern_fully_shard_options o = tern_read_fully_shard(options);
    TERN_MODULE_GIVEN(module, function);
    if (!module) {
        tern_fail_argument_null(function, "module");
        return NULL;
    }
    tern_shard_unit *u = tern_alloc(sizeof *u);
    if (!u)
        return NULL;
    atomic_init(&u->refs, 1);
    u->around = (tern_module_around){tern_shard_run, module_ended};
    tern_shard_list(u);
    if (set_up(u, module, &o) != TERN_OK) {
        tern_shard_drop(u);
        return NULL;
    }
    u->module = module;
    module->around = &u->around;
    return module;
}

tern_optimizer *tern_dist_zero_redundancy_optimizer(
    tern_module *module, tern_optimizer *(*make)(tern_module *module, void *user), void *user)
{
    const tern_fully_shard_options o = {.keep_whole = true};
    if (!make)
        return tern_fail_argument_null("tern_dist_zero_redundancy_optimizer", "make"), NULL;
    return tern_dist_fully_shard(module, &o) ? make(module, user) : NULL;
}

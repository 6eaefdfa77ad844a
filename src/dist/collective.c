/* collective.c -- the public collectives: checks of their arguments, and their start. */
#include "base/dtype.h"
#include "base/option.h"
#include "base/parallel.h"
#include "dist/dist.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { MOST_TAG = 30000, NO_ROOT = INT_MIN };

/* ---- arguments ------------------------------------------------------------------------------- */

typedef tern_dist_request request;

static bool adds(tern_dist_kind kind)
{
    return kind == DIST_ALL_REDUCE || kind == DIST_REDUCE || kind == DIST_REDUCE_SCATTER;
}

static tern_status check_tensor(const char *name, const tern_tensor *x)
{
    const uint64_t failures = tern_failures();
    if (tern_dim(x) < 0)
        return tern_failed_since(failures);
    if (!tern_is_contiguous(x))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: Tensors must be contiguous", name);
    return TERN_OK;
}

static tern_status check_op(const char *name, tern_dist_op op, tern_dtype dtype)
{
    const bool real = tern_dtype_is_floating_point(dtype);
    TERN_TRY(tern_check_enum(name, "op", (int)op, TERN_DIST_BXOR, "tern_dist_op"));
    if (dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2 || (op == TERN_DIST_AVG && !real) ||
        (op >= TERN_DIST_BAND && real))
        return tern_fail(TERN_ERR_DTYPE, "tern_dist_%s: %s can't be combined by op %d", name,
                         tern_dtype_name(dtype), (int)op);
    return TERN_OK;
}

static tern_status check_sizes(const request *r)
{
    const int64_t ranks = tern_dist_get_world_size(r->o.group);
    if (!r->one || !r->all)
        return TERN_OK;
    if (tern_dtype_of(r->one) != tern_dtype_of(r->all))
        return tern_fail(TERN_ERR_DTYPE, "tern_dist_%s: expected one dtype, but got %s and %s",
                         r->name, tern_dtype_name(tern_dtype_of(r->one)),
                         tern_dtype_name(tern_dtype_of(r->all)));
    const int64_t one = tern_numel(r->one), all = tern_numel(r->all);
    if (r->w.kind == DIST_ALL_TO_ALL ? one != all || one % ranks : one * ranks != all)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_dist_%s: %" PRId64 " and %" PRId64 " elements for %" PRId64 " ranks",
                         r->name, one, all, ranks);
    return TERN_OK;
}

/* Sets r->w.root to the group's rank of the process that has number root in the job. */
static tern_status find_root(request *r, int root)
{
    const tern_dist_group *g = r->w.group;
    const bool pair = r->w.kind == DIST_SEND || r->w.kind == DIST_RECV;
    const int size = g->size ? g->size : 1;
    r->w.root = -1;
    for (int i = 0; i < size; i++)
        if ((g->members ? g->members[i] : i) == root)
            r->w.root = i;
    if (r->w.root < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: rank %d is not in the group of %d",
                         r->name, root, size);
    if (pair && r->w.root == g->rank)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_dist_%s: Invalid rank %d: it should not be the same as the rank of "
                         "the current process.",
                         r->name, root);
    return TERN_OK;
}

static tern_status check_job(const char *name)
{
    const tern_dist_job *job = &tern_dist_the_job;
    return job->mpi && job->forks != tern_forks()
               ? tern_fail(TERN_ERR_STATE, "tern_dist_%s: not in a forked child", name)
               : TERN_OK;
}

static tern_status check(request *r, int root)
{
    r->w.group = r->o.group ? r->o.group : &tern_dist_the_job.all;
    TERN_TRY(check_job(r->name));
    if (tern_is_capturing() && (!r->one || !tern_storage_recording(r->one)))
        return tern_fail(TERN_ERR_STATE,
                         "tern_dist_%s: not in a capture, but of tensors of its device", r->name);
    if (r->w.group->rank < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_dist_%s: rank %d does not belong to the group it gives", r->name,
                         tern_dist_the_job.all.rank);
    TERN_TRY(find_root(r, root));
    if (r->one)
        TERN_TRY(check_tensor(r->name, r->one));
    if (r->all)
        TERN_TRY(check_tensor(r->name, r->all));
    TERN_TRY(check_sizes(r));
    if (r->o.tag < 0 || r->o.tag > MOST_TAG || !(r->o.timeout >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: tag %d (of at most %d), timeout %g",
                         r->name, r->o.tag, MOST_TAG, r->o.timeout);
    return r->one && adds(r->w.kind) ? check_op(r->name, r->o.op, tern_dtype_of(r->one)) : TERN_OK;
}

/* ---- host memory or transport ---------------------------------------------------------------- */

static size_t bytes_of(const tern_tensor *x)
{
    return (size_t)tern_numel(x) * tern_dtype_size(tern_dtype_of(x));
}

static tern_status hold(tern_dist_work *w, tern_tensor *in, tern_tensor *out)
{
    w->in = in ? tern_keep(in) : NULL;
    w->out = out ? tern_keep(out) : NULL;
    return tern_dist_offer(w) ? TERN_OK : tern_dist_stage(w);
}

/* ---- one process ----------------------------------------------------------------------------- */

static tern_status alone(const request *r)
{
    const uint64_t failures = tern_failures();
    tern_tensor *in = r->in, *out = r->out;
    TERN_SCOPE {
        TERN_NO_GRAD {
            if (in && out && tern_numel(out))
                tern_copy_(tern_reshape(out, TERN_SHAPE(-1)), tern_reshape(in, TERN_SHAPE(-1)));
        }
    }
    TERN_TRY(tern_failed_since(failures));
    if (!r->o.work)
        return TERN_OK;
    tern_dist_work *w = tern_alloc(sizeof *w);
    if (!w)
        return TERN_ERR_MEMORY;
    w->state = WORK_DONE;
    atomic_store(&w->done, true);
    *r->o.work = w;
    return TERN_OK;
}

/* ---- start and wait -------------------------------------------------------------------------- */

tern_status tern_dist_wait(tern_dist_work *w)
{
    tern_status status = TERN_OK;
    if (!w)
        return tern_fail_argument_null("tern_dist_wait", "work");
    if (w->recorded)
        status = tern_dist_record_wait(w->recorded);
    if (w->group)
        status = tern_dist_await(&tern_dist_the_job, w);
    if (status == TERN_OK && w->out && w->writes) {
        tern_storage_written(w->out);
        if (w->by_transport)
            status = tern_dist_narrow(w);
        else if (w->out_stage)
            status = tern_stage_write(w->out_stage, 0, w->out, 0, bytes_of(w->out));
    }
    tern_dist_work_free(w);
    return status;
}

bool tern_dist_is_completed(const tern_dist_work *w)
{
    return !w || atomic_load(&w->done);
}

static tern_status begin(const request *r)
{
    const tern_tensor *x = r->one ? r->one : r->all;
    tern_dist_work own = r->w, *w = &own;
    const int ranks = w->group->size;
    w->timeout = r->o.timeout > 0 ? r->o.timeout : w->group->timeout;
    w->tag = r->o.tag;
    if (x) {
        w->dtype = tern_dtype_of(x);
        w->count = tern_numel(x);
        if (w->kind == DIST_ALL_TO_ALL || !r->one)
            w->count /= ranks;
    }
    if (w->kind > DIST_BROADCAST && w->count > INT_MAX && w->kind < DIST_SEND)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_dist_%s: %" PRId64 " elements a rank, of at most %d", r->name,
                         w->count, INT_MAX);
    if (adds(w->kind)) {
        const bool half = tern_dtype_is_half(w->dtype);
        w->op = r->o.op;
        w->ordered =
            w->tree || (tern_are_deterministic_algorithms_enabled() &&
                        tern_dtype_is_floating_point(w->dtype) && w->op <= TERN_DIST_PRODUCT);
        w->direct = half || w->ordered;
    }
    w->awaited = !r->o.work;
    tern_dist_work *made = tern_dist_work_new(w, r->o.label);
    if (!made)
        return TERN_ERR_MEMORY;
    tern_status status = hold(made, r->in, r->out);
    if (status == TERN_OK)
        status = tern_dist_give(&tern_dist_the_job, made);
    if (status != TERN_OK)
        tern_dist_work_free(made);
    else if (r->o.work)
        *r->o.work = made;
    else
        status = tern_dist_wait(made);
    return status;
}

static tern_status begin_recorded(const request *r)
{
    TERN_TRY(check_job(r->name));
    if (!tern_dist_the_job.mpi)
        return tern_fail(TERN_ERR_STATE, "tern_dist_%s: the job of the recording was left",
                         r->name);
    return begin(r);
}

static tern_status go_on(request r, int root)
{
    const tern_dist_kind kind = r.w.kind;
    tern_tensor *one = r.one, *all = r.all;
    const bool both =
        kind == DIST_ALL_GATHER || kind == DIST_REDUCE_SCATTER || kind == DIST_ALL_TO_ALL;
    if ((kind != DIST_BARRIER && !one) || (both && !all))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: a tensor is NULL", r.name);
    if (r.o.work)
        *r.o.work = NULL;
    const bool rooted = root != NO_ROOT;
    TERN_TRY(check(&r, rooted ? root : (r.o.group ? r.o.group->members[0] : 0)));
    const bool is_root = r.w.root == r.w.group->rank;
    r.in = kind == DIST_ALL_GATHER || kind == DIST_GATHER           ? one
           : kind >= DIST_REDUCE_SCATTER && kind <= DIST_ALL_TO_ALL ? all
                                                                    : NULL;
    r.out = r.in == one && one ? all : one;
    if ((kind == DIST_GATHER || kind == DIST_SCATTER) && is_root && !all)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_dist_%s: all is NULL on rank %d", r.name, root);
    if (kind == DIST_GATHER && !is_root)
        r.out = NULL;
    if (kind == DIST_SCATTER && !is_root)
        r.in = NULL;
    r.w.reads = kind == DIST_ALL_REDUCE || kind == DIST_REDUCE || kind == DIST_SEND ||
                (kind == DIST_BROADCAST && is_root);
    r.w.writes = kind == DIST_BROADCAST ? !is_root
                 : kind == DIST_REDUCE  ? is_root
                                        : kind != DIST_SEND;
    return r.w.group->size <= 1  ? alone(&r)
           : tern_is_capturing() ? tern_dist_record(&r, begin_recorded)
                                 : begin(&r);
}

static tern_status go(tern_dist_kind kind, tern_tensor *one, tern_tensor *all, int root,
                      const tern_dist_options *options)
{
    return go_on((request){.name = tern_dist_kind_name(kind),
                           .w.kind = kind,
                           .o = tern_read_dist(options),
                           .one = one,
                           .all = all},
                 root);
}

tern_status tern_dist_all_reduce_by(tern_tensor *x, tern_dist_way way,
                                    const tern_dist_options *options)
{
    return go_on((request){.name = "all_reduce",
                           .w = {.kind = DIST_ALL_REDUCE,
                                 .tree = way == DIST_WAY_TREE,
                                 .apart = way == DIST_WAY_APART},
                           .o = tern_read_dist(options),
                           .one = x},
                 NO_ROOT);
}

tern_status tern_dist_all_reduce(tern_tensor *x, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return tern_dist_all_reduce_by(x, DIST_WAY_ANY, options);
}

tern_status tern_dist_reduce(tern_tensor *x, int dst, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_REDUCE, x, NULL, dst, options);
}

tern_status tern_dist_broadcast(tern_tensor *x, int src, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_BROADCAST, x, NULL, src, options);
}

tern_status tern_dist_all_gather_into_tensor(tern_tensor *out, tern_tensor *x,
                                             const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_ALL_GATHER, x, out, NO_ROOT, options);
}

tern_status tern_dist_reduce_scatter_tensor(tern_tensor *out, tern_tensor *x,
                                            const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_REDUCE_SCATTER, out, x, NO_ROOT, options);
}

tern_status tern_dist_gather(tern_tensor *x, tern_tensor *all, int dst,
                             const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_GATHER, x, all, dst, options);
}

tern_status tern_dist_scatter(tern_tensor *x, tern_tensor *all, int src,
                              const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_SCATTER, x, all, src, options);
}

tern_status tern_dist_all_to_all_single(tern_tensor *out, tern_tensor *x,
                                        const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return go(DIST_ALL_TO_ALL, out, x, NO_ROOT, options);
}

tern_status tern_dist_send(tern_tensor *x, int dst, const tern_dist_options *options)
{
    return go(DIST_SEND, x, NULL, dst, options);
}

tern_status tern_dist_recv(tern_tensor *x, int src, const tern_dist_options *options)
{
    return go(DIST_RECV, x, NULL, src, options);
}

tern_dist_work *tern_dist_isend(tern_tensor *x, int dst, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_dist_options o = tern_read_dist(options);
    tern_dist_work *work = NULL;
    o.work = &work;
    return tern_dist_send(x, dst, &o) == TERN_OK ? work : NULL;
}

tern_dist_work *tern_dist_irecv(tern_tensor *x, int src, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_dist_options o = tern_read_dist(options);
    tern_dist_work *work = NULL;
    o.work = &work;
    return tern_dist_recv(x, src, &o) == TERN_OK ? work : NULL;
}

tern_status tern_dist_barrier(const tern_dist_options *options)
{
    return go(DIST_BARRIER, NULL, NULL, NO_ROOT, options);
}

tern_status tern_dist_monitored_barrier(const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return tern_dist_barrier(options);
}

/* ---- collectives of bytes -------------------------------------------------------------------- */

static tern_status run_bytes(tern_dist_kind kind, const void *from, void *to, int64_t count,
                             int src, const tern_dist_options *o, const char *what)
{
    request r = {.name = what, .o = *o};
    r.w.kind = kind;
    TERN_TRY(check(&r, src != NO_ROOT ? src : (o->group ? o->group->members[0] : 0)));
    if (r.w.group->size <= 1) {
        if (from && to && from != to)
            memcpy(to, from, (size_t)count);
        return TERN_OK;
    }
    r.w.from = from;
    r.w.to = to;
    r.w.count = count;
    r.w.dtype = TERN_U8;
    r.w.reads = kind == DIST_BROADCAST && r.w.root == r.w.group->rank;
    r.w.writes = !r.w.reads;
    r.w.timeout = o->timeout > 0 ? o->timeout : r.w.group->timeout;
    return tern_dist_run(&r.w, o->label ? o->label : what);
}

void *tern_dist_broadcast_object(const void *data, size_t *bytes, int src,
                                 const tern_dist_options *options)
{
    const char *name = "broadcast_object";
    const tern_dist_options o = tern_read_dist(options);
    if (!bytes || (!data && *bytes && tern_dist_get_rank(NULL) == src))
        return tern_fail_argument_null("tern_dist_broadcast_object", bytes ? "data" : "bytes"),
               NULL;
    uint64_t size = *bytes;
    if (run_bytes(DIST_BROADCAST, NULL, &size, sizeof size, src, &o, name) != TERN_OK)
        return NULL;
    char *copy = tern_alloc(size < SIZE_MAX ? (size_t)size + 1 : SIZE_MAX);
    if (copy && data && tern_dist_get_rank(NULL) == src)
        memcpy(copy, data, (size_t)size);
    if (copy && run_bytes(DIST_BROADCAST, NULL, copy, (int64_t)size, src, &o, name) != TERN_OK) {
        tern_free(copy);
        return NULL;
    }
    *bytes = copy ? (size_t)size : *bytes;
    return copy;
}

void *tern_dist_all_gather_object(const void *data, size_t bytes, size_t *sizes,
                                  const tern_dist_options *options)
{
    const char *name = "all_gather_object";
    const tern_dist_options o = tern_read_dist(options);
    const size_t ranks = (size_t)tern_dist_get_world_size(o.group);
    if (!sizes || (!data && bytes))
        return tern_fail_argument_null("tern_dist_all_gather_object", sizes ? "data" : "sizes"),
               NULL;
    size_t most = 0, at = 0;
    if (run_bytes(DIST_ALL_GATHER, &bytes, sizes, sizeof bytes, NO_ROOT, &o, name) != TERN_OK)
        return NULL;
    for (size_t i = 0; i < ranks; i++)
        most = sizes[i] > most ? sizes[i] : most;
    char *own = tern_alloc(most + 1), *all = tern_alloc(most * ranks + 1);
    if (own && all) {
        if (bytes)
            memcpy(own, data, bytes);
        if (run_bytes(DIST_ALL_GATHER, own, all, (int64_t)most, NO_ROOT, &o, name) != TERN_OK) {
            tern_free(all);
            all = NULL;
        }
    }
    for (size_t i = 0; own && all && i < ranks; at += sizes[i++])
        memmove(all + at, all + i * most, sizes[i]);
    if (own && all)
        all[at] = '\0';
    tern_free(own);
    return all;
}

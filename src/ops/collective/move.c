/* move.c -- copies among several devices of one process, and sums on one of them. */
#include "base/memory.h"
#include "ops/collective/collective.h"
#include "tensor/storage.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

static bool is_kind(const tern_place *a, const tern_place *b)
{
    return strcmp(tern_place_kind(a), tern_place_kind(b)) == 0;
}

static bool is_host(const tern_place *place)
{
    return strcmp(tern_place_kind(place), "cpu") == 0;
}

/* ---- one by one ---------------------------------------------------------------------------- */

/* Returns whether x must be copied to device `to` through host memory; such reads all begin before
 * the first is waited for. */
static bool goes_by_host(const tern_tensor *x, const tern_place *to)
{
    const tern_place *from = x->storage->place;
    return from != to && x->numel && !is_host(from) && (is_host(to) || !is_kind(from, to));
}

/* Begins the read of x to the host; sets *read to NULL if none is needed. */
static tern_status begin(tern_tensor *x, const tern_place *to, tern_transfer **read)
{
    *read = goes_by_host(x, to) ? tern_transfer_begin(x, "cpu") : NULL;
    return *read || !goes_by_host(x, to) ? TERN_OK : tern_last_status();
}

/* Returns x, dense, on device `to`, after waiting for `read`, or NULL. */
static tern_tensor *finish(tern_tensor *x, tern_transfer *read, const tern_place *to)
{
    if (read && !(x = tern_transfer_take(read)))
        return NULL;
    if (x->storage->place == to)
        return tern_contiguous(x);
    tern_transfer *write = tern_transfer_begin(x, tern_place_text(to));
    return write ? tern_transfer_take(write) : NULL;
}

tern_status tern_move_each(tern_tensor *const *x, tern_place *const *to, int n, tern_tensor **out)
{
    tern_transfer *read[n];
    tern_status status = TERN_OK;
    memset(read, 0, sizeof read);
    TERN_NO_GRAD {
        for (int i = 0; i < n && status == TERN_OK; i++)
            status = begin(x[i], to[i], &read[i]);
        for (int i = 0; i < n && status == TERN_OK; i++) {
            out[i] = finish(x[i], read[i], to[i]);
            read[i] = NULL;
            status = out[i] ? TERN_OK : tern_last_status();
        }
    }
    for (int i = 0; i < n; i++)
        tern_transfer_free(read[i]);
    return status;
}

/* ---- groups of devices of one vendor -------------------------------------------------------- */

/* Distinct devices of one vendor, and for each its index in a list of tensors. */
typedef struct island {
    tern_place *place[TERN_MOST_COLLECTIVE_DEVICES];
    int at[TERN_MOST_COLLECTIVE_DEVICES], n; /* at -1: not in the list */
} island;

static int find(const island *s, const tern_place *place)
{
    for (int i = 0; i < s->n; i++)
        if (s->place[i] == place)
            return i;
    return -1;
}

/* Adds a device unless it is in the group, sorted by name, so that libraries see one order. */
static void add(island *s, tern_place *place, int at)
{
    if (s->n == TERN_MOST_COLLECTIVE_DEVICES || find(s, place) >= 0)
        return;
    int i = s->n++;
    for (; i > 0 && strcmp(tern_place_text(place), tern_place_text(s->place[i - 1])) < 0; i--) {
        s->place[i] = s->place[i - 1];
        s->at[i] = s->at[i - 1];
    }
    s->place[i] = place;
    s->at[i] = at;
}

/* Collects the devices of the kind of the first one that is not the host. A process has at most one
 * such kind. */
static void find_island(island *s, tern_place *const *places, int n)
{
    s->n = 0;
    for (int i = 0; i < n; i++)
        if (!is_host(places[i]) && (s->n == 0 || is_kind(places[i], s->place[0])))
            add(s, places[i], i);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

/* Broadcasts x from device `root` of the group to all its devices by one call, and sets their
 * entries of `out`. */
static tern_status send_within(const island *s, int root, tern_tensor *const *x, int k, int n,
                               tern_tensor **out, bool *taken)
{
    const int all = k * s->n;
    tern_collective list[k];
    tern_arg from[all], to[all];
    tern_tensor *made[all];
    int used = 0;
    for (int j = 0; j < k; j++) {
        if (x[j]->numel == 0)
            continue;
        for (int i = 0; i < s->n; i++) {
            const int at = s->at[i];
            tern_shape shape = tern_shape_of(x[j]);
            tern_tensor *y = i == root ? x[j] : at >= 0 ? out[j * n + at] : NULL;
            if (!y)
                y = tern_scoped_from(
                    tern_tensor_new(&shape, x[j]->dtype, s->place[i], "tern_comm_broadcast"),
                    "tern_comm_broadcast");
            if (!y)
                return TERN_ERR_MEMORY;
            made[used * s->n + i] = y;
            to[used * s->n + i] = tern_arg_tensor(y);
            from[used * s->n + i] = i == root ? tern_arg_tensor(x[j]) : to[used * s->n + i];
        }
        list[used] = (tern_collective){.kind = TERN_COLLECTIVE_BROADCAST,
                                       .dtype = x[j]->dtype,
                                       .count = x[j]->numel,
                                       .root = root,
                                       .from = &from[used * s->n],
                                       .to = &to[used * s->n]};
        used++;
    }
    *taken = false;
    if (used)
        TERN_TRY(tern_launch_collectives(s->place, s->n, list, used, taken));
    for (int j = 0, row = 0; j < k && *taken; j++)
        for (int i = 0; x[j]->numel && i < s->n; i += 1) {
            if (s->at[i] >= 0 && i != root)
                out[j * n + s->at[i]] = made[row * s->n + i];
            row += i == s->n - 1;
        }
    return TERN_OK;
}

/* Sets s to the group of the targets, and of `origin` if it is of the same kind. *root is the
 * device that has x, or the one that gets x through the host first. */
static void find_way(island *s, tern_place *origin, tern_place *const *to, int n, int *root)
{
    find_island(s, to, n);
    if (s->n && is_kind(origin, s->place[0]))
        add(s, origin, -1);
    *root = find(s, origin);
    *root = *root < 0 ? 0 : *root;
}

/* Copies x into *out if that is a tensor, else sets *out to x. */
static tern_status put(tern_tensor **out, tern_tensor *x)
{
    if (*out && *out != x)
        return tern_copy_(*out, x) ? TERN_OK : tern_last_status();
    *out = x;
    return TERN_OK;
}

/* Sets the entries of out that the group has not set, from x or from its copy on the host. */
static tern_status send_rest(tern_tensor *x, tern_tensor *host, tern_place *const *to, int n,
                             const bool *has, tern_tensor **out)
{
    for (int i = 0; i < n; i++) {
        if (has[i])
            continue;
        tern_tensor *y = finish(host && goes_by_host(x, to[i]) ? host : x, NULL, to[i]);
        if (!y)
            return tern_last_status();
        TERN_TRY(put(&out[i], y));
    }
    return TERN_OK;
}

/* Copies x[j] to the host where a target needs that; all copies begin before the first wait. */
static tern_status read_all(tern_tensor *const *x, int k, tern_place *const *to, int n,
                            tern_tensor **host)
{
    tern_transfer *read[k];
    tern_status status = TERN_OK;
    memset(read, 0, sizeof read);
    for (int j = 0; j < k && status == TERN_OK; j++)
        for (int i = 0; i < n && !read[j] && status == TERN_OK; i++)
            status = begin(x[j], to[i], &read[j]);
    for (int j = 0; j < k; j++) {
        host[j] = NULL;
        if (read[j] && status == TERN_OK) {
            host[j] = tern_transfer_take(read[j]);
            status = host[j] ? TERN_OK : tern_last_status();
        } else {
            tern_transfer_free(read[j]);
        }
    }
    return status;
}

/* Sends k tensors x, all dense and on one device, to each device. */
static tern_status send_some(tern_tensor *const *x, int k, tern_place *const *to, int n,
                             tern_tensor **out)
{
    island s;
    int root;
    bool taken = false, has[n];
    tern_tensor *host[k], *at_root[k];
    find_way(&s, x[0]->storage->place, to, n, &root);
    TERN_TRY(read_all(x, k, to, n, host));
    for (int j = 0; j < k && s.n > 1; j++) {
        tern_tensor *from = host[j] && goes_by_host(x[j], s.place[root]) ? host[j] : x[j];
        tern_tensor *given = s.at[root] >= 0 ? out[j * n + s.at[root]] : NULL;
        at_root[j] = finish(from, NULL, s.place[root]);
        if (!at_root[j])
            return tern_last_status();
        if (given && given != at_root[j])
            TERN_TRY(put(&given, at_root[j]));
        else if (s.at[root] >= 0)
            out[j * n + s.at[root]] = at_root[j];
    }
    if (s.n > 1)
        TERN_TRY(send_within(&s, root, at_root, k, n, out, &taken));
    for (int i = 0; i < n; i++) {
        const int member = s.n > 1 ? find(&s, to[i]) : -1;
        has[i] = member >= 0 && s.at[member] == i && (taken || member == root);
    }
    for (int j = 0; j < k; j++) {
        bool none[n];
        memset(none, 0, sizeof none);
        TERN_TRY(send_rest(x[j], host[j], to, n, x[j]->numel ? has : none, out + j * n));
    }
    return TERN_OK;
}

tern_status tern_send_all(tern_tensor *const *x, int k, tern_place *const *to, int n,
                          tern_tensor **out)
{
    enum { AT_ONCE = 64 };
    tern_status status = TERN_OK;
    TERN_NO_GRAD {
        for (int first = 0, end; first < k && status == TERN_OK; first = end) {
            tern_tensor *dense[AT_ONCE];
            for (end = first; end < k && end - first < AT_ONCE; end++) {
                if (x[end]->storage->place != x[first]->storage->place)
                    break;
                if (!(dense[end - first] = tern_contiguous(x[end])))
                    return tern_last_status();
            }
            status = send_some(dense, end - first, to, n, out + first * n);
        }
    }
    return status;
}

/* ---- sums ------------------------------------------------------------------------------------ */

tern_status tern_check_sum(const char *function, tern_dtype dtype, tern_dist_op op)
{
    const bool real = tern_dtype_is_floating_point(dtype);
    TERN_TRY(tern_check_enum(function, "op", (int)op, TERN_DIST_BXOR, "tern_dist_op"));
    if (dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2)
        return tern_fail(TERN_ERR_DTYPE, "%s: %s has no sums", function, tern_dtype_name(dtype));
    if (op == TERN_DIST_AVG ? real : op < TERN_DIST_BAND || !real)
        return TERN_OK;
    return tern_fail(TERN_ERR_DTYPE, "%s: %s can't be combined by op %d", function,
                     tern_dtype_name(dtype), (int)op);
}

tern_dist_op tern_base_op(tern_dtype dtype, tern_dist_op op)
{
    static const tern_dist_op of_bools[] = {
        [TERN_DIST_SUM] = TERN_DIST_BOR,   [TERN_DIST_PRODUCT] = TERN_DIST_BAND,
        [TERN_DIST_MIN] = TERN_DIST_BAND,  [TERN_DIST_MAX] = TERN_DIST_BOR,
        [TERN_DIST_BAND] = TERN_DIST_BAND, [TERN_DIST_BOR] = TERN_DIST_BOR,
        [TERN_DIST_BXOR] = TERN_DIST_BXOR};
    return dtype == TERN_BOOL ? of_bools[op] : op;
}

/* Returns the dtype in which sums are accumulated. */
static tern_dtype wide(tern_dtype dtype)
{
    return tern_dtype_is_half(dtype) ? TERN_F32 : tern_dtype_is_stored(dtype) ? TERN_I64 : dtype;
}

/* Sums the tensors of a vendor's group by the vendor's library: sets *sum to their sum, on device
 * `to` or on the first device of the group, and in_it[i] to true where x[i] is included. */
static tern_status sum_within(tern_tensor *const *x, int n, tern_dist_op op, const tern_place *to,
                              bool *in_it, tern_tensor **sum)
{
    island s;
    tern_place *places[n];
    tern_arg from[TERN_MOST_COLLECTIVE_DEVICES], into[TERN_MOST_COLLECTIVE_DEVICES];
    bool taken = false;
    for (int i = 0; i < n; i++)
        places[i] = x[i]->storage->place;
    find_island(&s, places, n);
    if (s.n < 2)
        return TERN_OK;
    const int root = find(&s, to) < 0 ? 0 : find(&s, to);
    tern_shape shape = tern_shape_of(x[0]);
    tern_tensor *made = tern_scoped_from(
        tern_tensor_new(&shape, x[0]->dtype, s.place[root], "tern_comm_reduce_add"),
        "tern_comm_reduce_add");
    if (!made)
        return tern_last_status();
    for (int i = 0; i < s.n; i++) {
        from[i] = tern_arg_tensor(x[s.at[i]]);
        into[i] = i == root ? tern_arg_tensor(made) : from[i];
    }
    const tern_collective t = {.kind = TERN_COLLECTIVE_REDUCE,
                               .op = op == TERN_DIST_AVG ? TERN_DIST_SUM : op,
                               .dtype = x[0]->dtype,
                               .count = x[0]->numel,
                               .root = root,
                               .from = from,
                               .to = into};
    TERN_TRY(tern_launch_collectives(s.place, s.n, &t, 1, &taken));
    for (int i = 0; i < s.n && taken; i++)
        in_it[s.at[i]] = true;
    *sum = taken ? made : NULL;
    return TERN_OK;
}

/* Maps uint64 to int64 with the same order for minimum and maximum, and back. */
static tern_tensor *in_order(tern_tensor *x, tern_dtype dtype, tern_dist_op op)
{
    const bool turns = dtype == TERN_U64 && (op == TERN_DIST_MIN || op == TERN_DIST_MAX);
    return x && turns ? tern_bitwise_xor_scalar(x, tern_scalar_int(INT64_MIN)) : x;
}

/* Computes *sum = op(*sum, y), or sets *sum to y if it is NULL, copied if y is an input. */
static tern_status gather(tern_tensor **sum, tern_tensor *y, tern_dist_op op,
                          const tern_tensor *own)
{
    static tern_tensor *(*const into[])(tern_tensor * x, tern_tensor * y) = {
        tern_add_,     tern_add_,         tern_mul_,        tern_minimum_,
        tern_maximum_, tern_bitwise_and_, tern_bitwise_or_, tern_bitwise_xor_};
    tern_tensor *in = y ? in_order(tern_to_dtype(y, wide(y->dtype)), y->dtype, op) : NULL;
    if (in && !*sum)
        *sum = in == own ? tern_clone(in) : in;
    else if (in)
        *sum = into[op](*sum, in);
    return in && *sum ? TERN_OK : tern_last_status();
}

/* Begins a sum: the vendor's sum, and the reads of the tensors that it does not include. All sums
 * begin before the first is ended. */
static tern_status begin_sum(const tern_addends *s, tern_dist_op op, tern_place *to, bool *in_it,
                             tern_tensor **within, tern_transfer **read)
{
    TERN_TRY(s->x[0]->numel ? sum_within(s->x, s->n, op, to, in_it, within) : TERN_OK);
    for (int i = 0; i < s->n; i++)
        if (!in_it[i])
            TERN_TRY(begin(s->x[i], to, &read[i]));
    return TERN_OK;
}

static tern_tensor *end_sum(const tern_addends *s, tern_dist_op op, tern_place *to,
                            const bool *in_it, tern_tensor *within, tern_transfer **read)
{
    tern_tensor *const *x = s->x, *sum = NULL;
    tern_status status = TERN_OK;
    for (int i = 0; i < s->n && status == TERN_OK; i++) {
        if (!in_it[i]) {
            status = gather(&sum, finish(x[i], read[i], to), op, x[i]);
            read[i] = NULL;
        } else if (within) {
            status = gather(&sum, finish(within, NULL, to), op, NULL);
            within = NULL;
        }
    }
    if (status == TERN_OK && op == TERN_DIST_AVG)
        sum = tern_div_scalar_(sum, tern_scalar_int(s->n));
    return status == TERN_OK && sum ? tern_to_dtype(in_order(sum, x[0]->dtype, op), x[0]->dtype)
                                    : NULL;
}

/* The data of all k sums, `most` tensors each. */
typedef struct adding {
    tern_tensor **dense, **within; /* within: the vendor's result of each sum */
    tern_transfer **read;
    bool *in_it;
} adding;

/* Computes all sums, which have one op. */
static tern_status sum_all(tern_addends *sums, int k, int most, tern_dist_op op, tern_place *to,
                           const adding *a)
{
    const uint64_t failures = tern_failures();
    for (int j = 0; j < k; j++) {
        for (int i = 0; i < sums[j].n; i++)
            a->dense[j * most + i] = tern_contiguous(sums[j].x[i]);
        sums[j].x = a->dense + j * most;
    }
    tern_status status = tern_failed_since(failures);
    for (int j = 0; j < k && status == TERN_OK; j++)
        if (sums[j].n)
            status =
                begin_sum(&sums[j], op, to, a->in_it + j * most, &a->within[j], a->read + j * most);
    for (int j = 0; j < k && status == TERN_OK; j++) {
        if (sums[j].n == 0)
            continue;
        sums[j].out =
            end_sum(&sums[j], op, to, a->in_it + j * most, a->within[j], a->read + j * most);
        status = tern_escape(sums[j].out) ? TERN_OK : tern_last_status();
    }
    for (int i = 0; i < k * most; i++)
        tern_transfer_free(a->read[i]);
    return status;
}

tern_status tern_sum_each(tern_addends *sums, int k, int most, tern_dist_op op, tern_place *to)
{
    const size_t all = (size_t)k * (size_t)most;
    tern_tensor **dense = tern_alloc(sizeof *dense * (2 * all + (size_t)k) + all);
    tern_status status = TERN_ERR_MEMORY;
    if (!dense)
        return status;
    adding a = {.dense = dense, .within = dense + all};
    a.read = (tern_transfer **)(void *)(a.within + k);
    a.in_it = (bool *)(void *)(a.read + all);
    TERN_SCOPE {
        TERN_NO_GRAD
            status = sum_all(sums, k, most, op, to, &a);
    }
    tern_free(dense);
    return status;
}

tern_tensor *tern_sum_at(tern_tensor *const *x, int n, tern_dist_op op, tern_place *to)
{
    tern_addends sum = {.x = x, .n = n};
    return tern_sum_each(&sum, 1, n, tern_base_op(x[0]->dtype, op), to) == TERN_OK ? sum.out : NULL;
}

/* comm.c -- tensors copied to several devices and gathered from them, with gradients. The gradient
 * of a copy is a copy back; broadcast and sum are each other's gradients. */
#include "base/memory.h"
#include "device/device.h"
#include "ops/collective/collective.h"
#include "ops/collective/comm_watch.h"
#include "tensor/history.h"
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* The data of a function of the graph: the devices of its inputs and of its result, and its
 * results. */
typedef struct trip {
    int n;
    tern_tensor **ready; /* the results, owned by the caller's scope; stored after place[] */
    tern_comm_watch *watch;
    tern_place *origin, *place[];
} trip;

static void trip_free(void *data)
{
    trip *t = data;
    tern_comm_watch_release(t->watch);
    tern_free(t);
}

static void arrived(const trip *t, bool returned)
{
    if (t->watch)
        t->watch->back(t->watch, returned);
}

static trip *trip_new(tern_place *origin, tern_place *const *places, int n,
                      tern_tensor *const *ready, int k)
{
    trip *t = tern_alloc(sizeof *t + sizeof *places * (size_t)n + sizeof *ready * (size_t)k);
    if (!t)
        return NULL;
    t->n = n;
    t->origin = origin;
    t->watch = tern_comm_watch_now();
    memcpy(t->place, places, sizeof *places * (size_t)n);
    t->ready = (tern_tensor **)(void *)(t->place + n);
    memcpy(t->ready, ready, sizeof *ready * (size_t)k);
    return t;
}

static bool is_recorded(tern_tensor *const *x, int n)
{
    bool recorded = false;
    for (int i = 0; i < n; i++)
        recorded = recorded || tern_requires_grad(x[i]);
    recorded = recorded && tern_is_grad_enabled();
    if (recorded)
        tern_passes_cross();
    return recorded;
}

static tern_status hand_out(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    const trip *t = tern_function_data(f);
    (void)in, (void)n;
    memcpy(out, t->ready, sizeof *out * (size_t)k);
    return TERN_OK;
}

/* Records a function of the graph whose results `out` are already computed. */
static tern_status record(const tern_function_type *type, tern_place *origin,
                          tern_place *const *places, int trips, tern_tensor *const *in, int n,
                          tern_tensor **out, int k)
{
    trip *t = trip_new(origin, places, trips, out, k);
    return t ? tern_function_apply(type, t, in, n, out, k) : TERN_ERR_MEMORY;
}

/* ---- broadcast and sum ----------------------------------------------------------------------- */

static tern_status send(tern_tensor *const *x, int k, tern_place *const *places, int n,
                        tern_tensor **out);
static tern_status record_sum(tern_tensor *const *x, int n, tern_place *to, tern_tensor **sum);

/* The gradient of each input is the sum of the gradients of its copies; all reads begin before the
 * first is waited for. */
static tern_status broadcast_backward(tern_function *f, tern_tensor *const *grad_out, int k,
                                      tern_tensor **grad_in, int n)
{
    const trip *t = tern_function_data(f);
    const int copies = k / n;
    tern_addends *sums = tern_alloc(sizeof *sums * (size_t)n + sizeof(tern_tensor *) * (size_t)k);
    tern_tensor **there = (tern_tensor **)(void *)(sums + n);
    if (!sums)
        return TERN_ERR_MEMORY;
    arrived(t, true);
    for (int j = 0; j < n; j++) {
        sums[j] = (tern_addends){.x = there + j * copies};
        for (int i = j * copies; i < (j + 1) * copies; i++)
            if (grad_out[i])
                there[j * copies + sums[j].n++] = grad_out[i];
    }
    tern_status status = tern_sum_each(sums, n, copies, TERN_DIST_SUM, t->origin);
    for (int j = 0; j < n && status == TERN_OK; j++) {
        grad_in[j] = sums[j].out;
        if (sums[j].n)
            status = record_sum(there + j * copies, sums[j].n, t->origin, &grad_in[j]);
    }
    tern_free(sums);
    return status;
}

static tern_status add_backward(tern_function *f, tern_tensor *const *grad_out, int k,
                                tern_tensor **grad_in, int n)
{
    const trip *t = tern_function_data(f);
    (void)k;
    return send(grad_out, 1, t->place, n, grad_in);
}

static const tern_function_type broadcast_type = {
    "Broadcast", hand_out, broadcast_backward, trip_free, {0}};
static const tern_function_type add_type = {"ReduceAdd", hand_out, add_backward, trip_free, {0}};

/* Records one broadcast function for all results that are not x themselves. */
static tern_status attach(tern_tensor *const *x, int k, tern_place *const *places, int n,
                          tern_tensor **out)
{
    if (!is_recorded(x, k))
        return TERN_OK;
    tern_tensor **in = tern_alloc(sizeof *in * (size_t)k * (size_t)(n + 1)), **away = in + k;
    int used = 0, copies = 0;
    if (!in)
        return TERN_ERR_MEMORY;
    for (int j = 0; j < k; j++) {
        if (!tern_requires_grad(x[j]))
            continue;
        in[used++] = x[j];
        for (int i = 0; i < n; i++)
            if (places[i] != x[j]->storage->place)
                away[copies++] = out[j * n + i];
    }
    tern_status status = TERN_OK;
    if (copies)
        status = record(&broadcast_type, x[0]->storage->place, places, 0, in, used, away, copies);
    copies = 0;
    for (int j = 0; j < k && status == TERN_OK; j++)
        for (int i = 0; i < n && tern_requires_grad(x[j]); i++)
            if (places[i] != x[j]->storage->place)
                out[j * n + i] = away[copies++];
    tern_free(in);
    return status;
}

static tern_status send(tern_tensor *const *x, int k, tern_place *const *places, int n,
                        tern_tensor **out)
{
    memset(out, 0, sizeof *out * (size_t)k * (size_t)n);
    TERN_TRY(tern_send_all(x, k, places, n, out));
    for (int j = 0; j < k; j++) {
        for (int i = 0; i < n; i++)
            if (places[i] == x[j]->storage->place)
                out[j * n + i] = x[j];
    }
    return attach(x, k, places, n, out);
}

static tern_status record_sum(tern_tensor *const *x, int n, tern_place *to, tern_tensor **sum)
{
    tern_place *places[n];
    for (int i = 0; i < n; i++)
        places[i] = x[i]->storage->place;
    return is_recorded(x, n) ? record(&add_type, to, places, n, x, n, sum, 1) : TERN_OK;
}

/* Returns the sum of x on device `to`, recorded as one function, or x[0] if alone and there. */
static tern_tensor *add_up(tern_tensor *const *x, int n, tern_place *to)
{
    tern_place *places[n];
    bool apart = false;
    for (int i = 0; i < n; i++) {
        places[i] = x[i]->storage->place;
        apart = apart || places[i] != to;
    }
    if (!apart && n == 1)
        return x[0];
    tern_tensor *sum = tern_sum_at(x, n, TERN_DIST_SUM, to);
    return sum && record_sum(x, n, to, &sum) == TERN_OK ? sum : NULL;
}

/* ---- one by one ------------------------------------------------------------------------------ */

static tern_status move(tern_tensor *const *x, tern_place *const *to, int n, tern_tensor **out);

static tern_status move_backward(tern_function *f, tern_tensor *const *grad_out, int k,
                                 tern_tensor **grad_in, int n)
{
    const trip *t = tern_function_data(f);
    tern_tensor *there[k];
    tern_place *places[k];
    int count = 0;
    arrived(t, false);
    for (int i = 0; i < k; i++)
        if (grad_out[i]) {
            places[count] = t->place[i];
            there[count++] = grad_out[i];
        }
    TERN_TRY(move(there, places, count, there));
    for (int i = n - 1; i >= 0; i--)
        grad_in[i] = grad_out[i] ? there[--count] : NULL;
    return TERN_OK;
}

static const tern_function_type move_type = {"Move", hand_out, move_backward, trip_free, {0}};

/* Moves tensors to other devices by one function of all tensors that are on another device. */
static tern_status move(tern_tensor *const *x, tern_place *const *to, int n, tern_tensor **out)
{
    tern_tensor *here[n + 1], *there[n + 1];
    tern_place *from[n + 1], *places[n + 1];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (x[i]->storage->place != to[i]) {
            from[k] = x[i]->storage->place;
            places[k] = to[i];
            here[k++] = x[i];
        }
    if (k)
        TERN_TRY(tern_move_each(here, places, k, there));
    if (k && is_recorded(here, k))
        TERN_TRY(record(&move_type, NULL, from, k, here, k, there, k));
    for (int i = n - 1; i >= 0; i--)
        out[i] = x[i]->storage->place != to[i] ? there[--k] : x[i];
    return TERN_OK;
}

/* ---- public functions ------------------------------------------------------------------------ */

static tern_status find_places(const char *function, const char *const *devices, int n,
                               tern_place **places)
{
    if (!devices || n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected devices, but got %d", function, n);
    for (int i = 0; i < n; i++)
        if (!(places[i] = tern_place_find(devices[i], function)))
            return tern_last_status();
    return TERN_OK;
}

static tern_place *target(const char *function, const char *device, const tern_tensor *x)
{
    return device ? tern_place_find(device, function) : x->storage->place;
}

tern_status tern_comm_broadcast(tern_tensor *const *x, int k, const char *const *devices, int n,
                                tern_tensor **out)
{
    static const char function[] = "tern_comm_broadcast";
    tern_place *places[n > 0 ? n : 1];
    TERN_TRY(find_places(function, devices, n, places));
    if (!x || !out || k < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected tensors, but got %d", function, k);
    for (int j = 0; j < k; j++) {
        if (!tern_given(x[j], function, "x"))
            return TERN_ERR_ARGUMENT;
        if (x[j]->storage->place != x[0]->storage->place)
            return tern_fail(TERN_ERR_DEVICE,
                             "%s: expected all tensors on one device, but got %s and %s", function,
                             tern_device(x[0]), tern_device(x[j]));
    }
    return send(x, k, places, n, out);
}

tern_tensor *tern_comm_reduce_add(tern_tensor *const *x, int n, const char *device)
{
    static const char function[] = "tern_comm_reduce_add";
    if (tern_check_list(function, x, n, false) != TERN_OK ||
        tern_check_sum(function, x[0]->dtype, TERN_DIST_SUM) != TERN_OK)
        return NULL;
    tern_place *to = target(function, device, x[0]);
    return to ? add_up(x, n, to) : NULL;
}

/* Sets part[i] to the size along dim that device i gets. */
static tern_status cut(const char *function, tern_tensor *x, int n, const int64_t *sizes, int dim,
                       int64_t *part)
{
    const uint64_t failures = tern_failures();
    const int64_t total = tern_size(x, dim), each = total < 0 ? 0 : (total + n - 1) / n;
    int64_t left = total;
    TERN_TRY(tern_failed_since(failures));
    bool fits = true;
    for (int i = 0; i < n && fits; i++) {
        part[i] = sizes ? sizes[i] : left < each ? left : each;
        fits = part[i] >= 0 && part[i] <= left;
        left -= part[i];
    }
    if (fits && left == 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE, "%s: sizes don't add up to %lld, x's along dim %d", function,
                     (long long)total, dim);
}

tern_status tern_comm_scatter(tern_tensor *x, const char *const *devices, int n,
                              const int64_t *sizes, int dim, tern_tensor **out)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    const int most = n > 0 ? n : 1;
    tern_place *places[most];
    tern_tensor *parts[most];
    int64_t part[most], at = 0;
    int used = 0;
    if (!tern_given(x, function, "x") || !out)
        return out ? tern_last_status() : tern_fail_argument_null(function, "out");
    TERN_TRY(find_places(function, devices, n, places));
    TERN_TRY(cut(function, x, n, sizes, dim, part));
    for (int i = 0; i < n; at += part[i++]) {
        if (part[i] == 0)
            continue;
        parts[used] = part[i] == tern_size(x, dim) ? x : tern_narrow(x, dim, at, part[i]);
        if (!parts[used])
            return tern_last_status();
        places[used++] = places[i];
    }
    TERN_TRY(move(parts, places, used, parts));
    for (int i = n - 1; i >= 0; i--)
        out[i] = part[i] ? parts[--used] : NULL;
    return TERN_OK;
}

tern_tensor *tern_comm_gather(tern_tensor *const *x, int n, int dim, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    if (!x || n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: expected tensors, but got %d", function, n);
    tern_tensor *parts[n];
    tern_place *places[n];
    for (int i = 0; i < n; i++) {
        if (!tern_given(x[i], function, "x"))
            return NULL;
        parts[i] = tern_dim(x[i]) || n == 1 ? x[i] : tern_reshape(x[i], TERN_SHAPE(1));
        places[i] = i ? places[0] : target(function, device, x[0]);
        if (!parts[i] || !places[i])
            return NULL;
    }
    if (move(parts, places, n, parts) != TERN_OK)
        return NULL;
    return n == 1 ? parts[0] : tern_cat(parts, n, dim);
}

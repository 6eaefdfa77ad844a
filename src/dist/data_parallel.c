/* data_parallel.c -- one module on several devices of one process: the rows of the inputs are
 * divided, the module runs for each device with its members replaced by copies there, and the
 * results are gathered. */
#include "base/memory.h"
#include "base/option.h"
#include "dist/replicas.h"
#include "dist/row_partition.h"
#include "dist/stopwatch.h"
#include <stdio.h>
#include <string.h>
#include <tern/ops/collective.h>

static const char function[] = "tern_nn_data_parallel";

/* The first COLD_STEPS steps are not timed, as kernels are compiled in them. Then each step with
 * the same parts as the step before is timed, until there are FAST_LOOKS timings; later one step in
 * RARELY. */
enum { COLD_STEPS = 2, FAST_LOOKS = 20, RARELY = 16 };

typedef struct parallel {
    int n, dim;
    const char **device; /* names of the devices, owned by the library */
    const char *output;
    double *weight; /* weights with the sum 1, or NULL for equal parts */
    bool balance;
    bool whole;                /* some step had a backward pass: only such steps are timed */
    int64_t step, looks, next; /* next is the step of the next timing */
    int64_t *part;             /* rows of each device in the last step */
    tern_step_watch *watch;    /* times of the last step, or NULL if it was not timed */
    tern_replicas replicas;
} parallel;

/* One forward. */
typedef struct pass {
    parallel *p;
    tern_module *child;
    tern_tensor *const *in;
    int n_in, n_out;
    int64_t rows;        /* rows of the inputs, or -1 if no input has dims */
    int64_t *part, *at;  /* number of rows and first row of each device */
    tern_tensor **parts; /* n_in tensors for each device */
    tern_tensor **out;   /* n_out tensors for each device */
} pass;

/* ---- one device ------------------------------------------------------------------------------ */

static bool is_shared_out(const tern_tensor *x)
{
    return x && tern_dim(x) > 0;
}

static tern_status run_one(pass *s, int i)
{
    /* As with torch.cuda.device, tensors that the module makes on the default device are made on
     * this one. */
    const char *own = strcmp(tern_default_device(), s->p->device[0]) == 0 ? s->p->device[i] : NULL;
    tern_device_block block = tern_device_block_enter(own ? own : tern_default_device());
    tern_status status =
        tern_nn_call(s->child, s->parts + i * s->n_in, s->n_in, s->out + i * s->n_out, s->n_out);
    tern_device_block_leave(&block);
    return status;
}

static tern_status run_replica(pass *s, int i)
{
    parallel *p = s->p;
    if (p->watch)
        tern_stopwatch_begin(&p->watch->part[i], p->device[i]);
    if (i > 0)
        tern_replicas_enter(&p->replicas, i);
    tern_status status = run_one(s, i);
    if (i > 0)
        tern_replicas_leave(&p->replicas);
    if (p->watch)
        tern_stopwatch_given(&p->watch->part[i]);
    return status;
}

/* Runs asynchronous devices first, so that they work during the cpu's part. */
static tern_status run_replicas(pass *s)
{
    tern_status status = TERN_OK;
    for (int own = 0; own < 2; own++)
        for (int i = 0; i < s->p->n && status == TERN_OK; i++)
            if (s->part[i] > 0 && (strcmp(s->p->device[i], "cpu") == 0) == own)
                status = run_replica(s, i);
    return status;
}

/* ---- dividing the inputs --------------------------------------------------------------------- */

static tern_status count_rows(pass *s)
{
    s->rows = -1;
    for (int k = 0; k < s->n_in; k++) {
        if (!is_shared_out(s->in[k]))
            continue;
        const uint64_t failures = tern_failures();
        int64_t rows = tern_size(s->in[k], s->p->dim);
        if (rows < 0)
            return tern_failed_since(failures);
        if (s->rows >= 0 && rows != s->rows)
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: inputs are shared out along dim %d, and one has size %lld there, "
                             "input %d %lld",
                             function, s->p->dim, (long long)s->rows, k, (long long)rows);
        s->rows = rows;
    }
    return TERN_OK;
}

/* Divides the rows. Without rows the first device runs alone. */
static void share_out(pass *s)
{
    const parallel *p = s->p;
    int64_t at = 0;
    if (s->rows <= 0) {
        s->part[0] = s->rows = 1;
        return;
    }
    if (p->weight)
        tern_row_partition_weighted(s->rows, p->weight, p->n, s->part);
    else
        tern_row_partition_equal(s->rows, p->n, s->part);
    for (int i = 0; i < p->n; i++) {
        s->at[i] = at;
        at += s->part[i];
    }
}

/* Copies to each device with rows its rows of the inputs. Inputs without dims are copied to all. */
static tern_status deal_out(pass *s)
{
    const parallel *p = s->p;
    tern_tensor *parts[p->n];
    const char *devices[p->n];
    int who[p->n], n = 0;
    for (int i = 0; i < p->n; i++)
        if (s->part[i] > 0) {
            devices[n] = p->device[i];
            who[n++] = i;
        }
    for (int k = 0; k < s->n_in; k++) {
        tern_tensor *x = s->in[k];
        int64_t sizes[p->n];
        if (!x)
            continue;
        for (int i = 0; i < n; i++)
            sizes[i] = s->part[who[i]];
        if (is_shared_out(x) && n > 1)
            TERN_TRY(tern_comm_scatter(x, devices, n, sizes, p->dim, parts));
        else
            TERN_TRY(tern_comm_broadcast(&x, 1, devices, n, parts));
        for (int i = 0; i < n; i++)
            s->parts[who[i] * s->n_in + k] = parts[i];
    }
    return TERN_OK;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* Concatenates result k of all devices along dim; scalars become a vector. */
static tern_status gather(const pass *s, int k, tern_tensor **out)
{
    const uint64_t failures = tern_failures();
    tern_tensor *parts[s->p->n];
    int n = 0;
    for (int i = 0; i < s->p->n; i++) {
        if (s->part[i] == 0)
            continue;
        tern_tensor *x = s->out[i * s->n_out + k];
        if (x && tern_dim(x) == 0 && s->p->n > 1)
            x = tern_reshape(x, TERN_SHAPE(1));
        if (!x)
            return tern_failed_since(failures);
        parts[n++] = x;
    }
    const int dim = tern_dim(parts[0]) > s->p->dim ? s->p->dim : 0;
    *out = tern_comm_gather(parts, n, dim, s->p->output);
    return tern_failed_since(failures);
}

/* ---- balance --------------------------------------------------------------------------------- */

static void drop_watch(parallel *p)
{
    if (p->watch)
        tern_comm_watch_release(&p->watch->comm);
    p->watch = NULL;
}

/* Moves the weights by the times of the last step. If that step had no backward pass, its forward
 * alone counts, unless other steps had one. */
static tern_status look_back(parallel *p)
{
    double seconds[p->n];
    tern_status status = TERN_OK;
    if (p->watch) {
        status = tern_step_watch_read(p->watch, seconds);
        p->whole = p->whole || p->watch->returned;
        if (status == TERN_OK && (p->watch->returned || !p->whole)) {
            tern_row_partition_balance(p->weight, p->part, seconds, p->n, ++p->looks);
            p->next = p->step + (p->looks < FAST_LOOKS ? 0 : RARELY);
        }
    }
    drop_watch(p);
    return status;
}

/* Returns whether to time this step. There is nothing to balance if all parts are on one device. */
static bool is_time_to_look(const parallel *p, const int64_t *part)
{
    bool apart = false;
    for (int i = 1; i < p->n; i++)
        apart = apart || strcmp(p->device[i], p->device[0]) != 0;
    return p->balance && apart && p->step > COLD_STEPS && p->step >= p->next &&
           (tern_is_grad_enabled() || !p->whole) &&
           memcmp(part, p->part, sizeof *part * (size_t)p->n) == 0;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static tern_status run_and_gather(pass *s, tern_tensor **out)
{
    parallel *p = s->p;
    TERN_TRY(tern_replicas_send(&p->replicas, p->device, s->part, p->n));
    tern_status status = run_replicas(s);
    for (int k = 0; k < s->n_out && status == TERN_OK; k++)
        status = gather(s, k, &out[k]);
    return status;
}

static tern_status run_all(pass *s, tern_tensor **out)
{
    parallel *p = s->p;
    TERN_TRY(count_rows(s));
    TERN_TRY(tern_replicas_look(&p->replicas, s->child, p->device[0]));
    TERN_TRY(look_back(p));
    share_out(s);
    p->step++;
    if (is_time_to_look(p, s->part) && !(p->watch = tern_step_watch_new(p->n)))
        return TERN_ERR_MEMORY;
    memcpy(p->part, s->part, sizeof *p->part * (size_t)p->n);
    TERN_TRY(deal_out(s));
    tern_comm_watch *before = tern_comm_watched_by(p->watch ? &p->watch->comm : NULL);
    tern_status status = run_and_gather(s, out);
    tern_comm_watched_by(before);
    if (status != TERN_OK)
        drop_watch(p);
    return status;
}

static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    parallel *p = tern_nn_data(self);
    int64_t part[p->n], at[p->n];
    tern_tensor *results[p->n * k + 1], *parts[p->n * n + 1];
    memset(part, 0, sizeof part);
    memset(at, 0, sizeof at);
    memset(results, 0, sizeof results);
    memset(parts, 0, sizeof parts);
    pass s = {.p = p,
              .child = self->members[0].child,
              .in = in,
              .n_in = n,
              .n_out = k,
              .part = part,
              .at = at,
              .parts = parts,
              .out = results};
    return run_all(&s, out);
}

/* ---- construction ---------------------------------------------------------------------------- */

static void free_parallel(void *data)
{
    parallel *p = data;
    drop_watch(p);
    tern_replicas_free(&p->replicas);
    tern_free(p->device);
    tern_free(p->part);
    tern_free(p->weight);
    tern_free(p);
}

static parallel *new_parallel(int n, bool weighted)
{
    parallel *p = tern_alloc(sizeof *p);
    if (!p)
        return NULL;
    p->n = n;
    p->device = tern_alloc(sizeof *p->device * (size_t)n);
    p->part = tern_alloc(sizeof *p->part * (size_t)n);
    p->weight = weighted ? tern_alloc(sizeof *p->weight * (size_t)n) : NULL;
    if (p->device && p->part && (p->weight || !weighted))
        return p;
    free_parallel(p);
    return NULL;
}

static void *copy_parallel(const void *data, tern_module *copy)
{
    const parallel *from = data;
    parallel *p = new_parallel(from->n, from->weight);
    (void)copy;
    if (!p)
        return NULL;
    memcpy(p->device, from->device, sizeof *p->device * (size_t)p->n);
    if (p->weight)
        memcpy(p->weight, from->weight, sizeof *p->weight * (size_t)p->n);
    p->output = from->output;
    p->dim = from->dim;
    p->balance = from->balance;
    return p;
}

static tern_status read_weights(parallel *p, const double *weights)
{
    double sum = 0;
    for (int i = 0; p->weight && i < p->n; i++) {
        p->weight[i] = weights ? weights[i] : 1;
        if (!(p->weight[i] >= 0) || isinf(p->weight[i]))
            return tern_fail(TERN_ERR_ARGUMENT, "%s: weight %d is %g, expected a number >= 0",
                             function, i, p->weight[i]);
        sum += p->weight[i];
    }
    if (p->weight && sum <= 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: all weights are 0", function);
    for (int i = 0; p->weight && i < p->n; i++)
        p->weight[i] /= sum;
    return TERN_OK;
}

static tern_status read_device(const char *text, const char **device)
{
    const uint64_t failures = tern_failures();
    *device = tern_device_canonical(text ? text : tern_default_device());
    return tern_failed_since(failures);
}

/* Reads the devices. If devices is NULL, they are 0 to n - 1 of that kind. */
static tern_status read_devices(parallel *p, const char *const *devices, const char *kind)
{
    for (int i = 0; i < p->n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%s:%d", kind, i);
        TERN_TRY(read_device(devices ? devices[i] : text, &p->device[i]));
    }
    return TERN_OK;
}

static tern_status set_up(parallel *p, tern_module *module, const char *const *devices,
                          const char *kind, const tern_data_parallel_options *o)
{
    p->balance = o->balance;
    p->dim = o->dim;
    if (o->dim < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: dim %d, expected one >= 0", function, o->dim);
    TERN_TRY(read_weights(p, o->weights));
    TERN_TRY(read_devices(p, devices, kind));
    p->output = p->device[0];
    if (o->output_device)
        TERN_TRY(read_device(o->output_device, &p->output));
    return tern_replicas_look(&p->replicas, module, p->device[0]);
}

/* Sets *device to the device of the first tensor. */
static tern_status first_device(const char *path, tern_tensor *x, void *device)
{
    (void)path;
    if (!*(const char **)device)
        *(const char **)device = tern_device(x);
    return TERN_OK;
}

tern_module *tern_nn_data_parallel(tern_module *module, const char *const *devices, int n,
                                   const tern_data_parallel_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_data_parallel_options o = tern_read_data_parallel(options);
    TERN_MODULE_GIVEN(module, function);
    if (!module) {
        tern_fail_argument_null(function, "module");
        return NULL;
    }
    const char *own = NULL;
    char kind[24] = "";
    tern_nn_each_parameter(module, first_device, &own);
    own = own ? own : tern_default_device();
    strncat(kind, own, strcspn(own, ":"));
    if (!devices)
        n = tern_device_count(kind);
    parallel *p = n < 1 ? NULL : new_parallel(n, o.weights || o.balance);
    if (n < 1)
        tern_fail(TERN_ERR_ARGUMENT, "%s: expected devices, but got %d", function, n);
    tern_module *self = NULL;
    if (p && set_up(p, module, devices, kind, &o) == TERN_OK &&
        (self = tern_nn_module_with_call("DataParallel", call, p))) {
        tern_nn_on_free(self, free_parallel);
        tern_nn_on_copy(self, copy_parallel);
        if (tern_nn_add(self, "module", module))
            return self;
        tern_nn_free(self);
        return NULL;
    }
    if (p)
        free_parallel(p);
    if (!module->parent)
        tern_nn_free(module);
    return NULL;
}

double tern_data_parallel_weight(const tern_module *parallel_module, int i)
{
    TERN_MODULE_GIVEN(parallel_module, "tern_data_parallel_weight");
    if (!parallel_module || parallel_module->call != call)
        return -1;
    const parallel *p = parallel_module->data;
    return i < 0 || i >= p->n ? -1 : p->weight ? p->weight[i] : 1.0 / p->n;
}

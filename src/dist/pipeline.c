/* pipeline.c -- stages of a sequential, and the schedules by which micro-batches go through them.
 *
 * Each stage has an order of forwards and backwards that depends on the schedule alone. In each
 * round every stage takes its next step if the input was given in an earlier round, so asynchronous
 * devices have work of several micro-batches at once. Autograd graphs end between stages. */
#include "base/option.h"
#include "base/os.h"
#include "dist/dist.h"
#include "dist/pipeline.h"
#include "nn/module.h"

static const char function[] = "tern_dist_pipeline";

/* ---- stages ---------------------------------------------------------------------------------- */

static tern_status add_bytes(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    *(double *)user += (double)tern_numel(x) * (double)tern_dtype_size(tern_dtype_of(x));
    return TERN_OK;
}

/* Ends each stage where its share of all bytes is reached, with at least one child left for each
 * later stage. */
static tern_status split_evenly(tern_pipeline *p, int children)
{
    double all = 0, sum = 0;
    TERN_TRY(tern_nn_each_parameter(p->sequential, add_bytes, &all));
    int stage = 1;
    for (int i = 0; i < children && stage < p->n; i++) {
        double own = 0;
        TERN_TRY(tern_nn_each_parameter(tern_nn_child_at(p->sequential, i), add_bytes, &own));
        const bool must = children - i == p->n - stage, enough = sum + own / 2 > all * stage / p->n;
        if (i > p->begin[stage - 1] && (must || enough))
            p->begin[stage++] = i;
        sum += own;
    }
    return TERN_OK;
}

static tern_status split(tern_pipeline *p, const int *given)
{
    const int children = tern_nn_children_count(p->sequential);
    if (children < p->n || p->n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %d stages out of %d children", function, p->n,
                         children);
    p->begin[p->n] = children;
    if (!given)
        return split_evenly(p, children);
    for (int s = 1; s < p->n; s++) {
        p->begin[s] = given[s - 1];
        if (p->begin[s] <= p->begin[s - 1] || p->begin[s] >= children)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: stage %d begins with child %d of %d, behind %d", function, s,
                             p->begin[s], children, p->begin[s - 1]);
    }
    return TERN_OK;
}

static tern_status place(tern_pipeline *p, const char *const *devices, const int *ranks)
{
    const int own = tern_dist_get_rank(NULL);
    for (int s = 0; s < p->n; s++) {
        p->rank[s] = ranks ? ranks[s] : own;
        if (p->rank[s] < 0 || p->rank[s] >= tern_dist_get_world_size(NULL))
            return tern_fail(TERN_ERR_ARGUMENT, "%s: stage %d is rank %d's", function, s,
                             p->rank[s]);
        if (p->rank[s] != own)
            continue;
        if (!devices[s])
            return tern_fail(TERN_ERR_ARGUMENT, "%s: stage %d of this rank has no device", function,
                             s);
        p->device[s] = tern_device_canonical(devices[s]);
        if (!p->device[s])
            return TERN_ERR_DEVICE;
        for (int i = p->begin[s]; i < p->begin[s + 1]; i++)
            if (!tern_nn_to(tern_nn_child_at(p->sequential, i), p->device[s]))
                return TERN_ERR_DEVICE;
    }
    return tern_dist_set_stages(p->sequential, p->begin, p->rank, p->n);
}

static bool reserve(tern_pipeline *p)
{
    const size_t n = (size_t)p->n, m = (size_t)p->micro_batches;
    p->begin = tern_alloc(sizeof *p->begin * (n + 1));
    p->device = tern_alloc(sizeof *p->device * n);
    p->rank = tern_alloc(sizeof *p->rank * n);
    p->run = tern_alloc(sizeof *p->run * n);
    p->sent = tern_alloc(sizeof *p->sent * (4 * n * m + n));
    bool made = p->begin && p->device && p->rank && p->run && p->sent;
    for (size_t s = 0; made && s < n; s++) {
        tern_stage_run *r = &p->run[s];
        r->in = tern_alloc(sizeof *r->in * m);
        r->out = tern_alloc(sizeof *r->out * m);
        r->up = tern_alloc(sizeof *r->up * m);
        r->down = tern_alloc(sizeof *r->down * m);
        made = r->in && r->out && r->up && r->down;
    }
    return made;
}

void tern_dist_pipeline_free(tern_pipeline *p)
{
    if (!p)
        return;
    for (int s = 0; p->run && s < p->n; s++) {
        tern_free(p->run[s].in);
        tern_free(p->run[s].out);
        tern_free(p->run[s].up);
        tern_free(p->run[s].down);
    }
    tern_free(p->run);
    tern_free(p->begin);
    tern_free(p->device);
    tern_free(p->rank);
    tern_free(p->sent);
    tern_free(p);
}

tern_pipeline *tern_dist_pipeline(tern_module *sequential, const char *const *devices, int n,
                                  const tern_pipeline_options *options)
{
    const tern_pipeline_options o = tern_read_pipeline(options);
    TERN_MODULE_GIVEN(sequential, function);
    if (!sequential || !devices)
        return tern_fail_argument_null(function, sequential ? "devices" : "sequential"), NULL;
    if (n < 1 || n > 1024 || o.micro_batches < 0 || o.micro_batches > 1 << 16 ||
        tern_check_enum(function, "schedule", (int)o.schedule, TERN_PIPELINE_GPIPE,
                        "tern_pipeline_schedule") != TERN_OK)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %d stages, %d micro-batches", function, n,
                              o.micro_batches);
    tern_pipeline *p = tern_alloc(sizeof *p);
    if (!p)
        return NULL;
    p->sequential = sequential;
    p->n = n;
    p->micro_batches = o.micro_batches ? o.micro_batches : n;
    p->schedule = o.schedule;
    p->no_scale_grads = o.no_scale_grads;
    if (!reserve(p) || split(p, o.split) != TERN_OK || place(p, devices, o.ranks) != TERN_OK) {
        tern_dist_pipeline_free(p);
        return NULL;
    }
    return p;
}

int tern_dist_pipeline_stage(const tern_pipeline *p, int child)
{
    for (int s = 0; p && s < p->n; s++)
        if (child >= p->begin[s] && child < p->begin[s + 1])
            return s;
    tern_fail(TERN_ERR_ARGUMENT, "tern_dist_pipeline_stage: no child %d", child);
    return -1;
}

/* ---- a step ---------------------------------------------------------------------------------- */

typedef struct step {
    tern_pipeline *p;
    tern_tensor *x, *y, *loss; /* loss is the sum so far, by a reference */
    tern_module *criterion;
    int64_t rows, each;
    int micro_batches; /* number of micro-batches that have rows */
    int round;
} step;

/* Returns the rows of a micro-batch. */
static tern_tensor *rows_of(const step *t, tern_tensor *x, int micro)
{
    const int64_t from = micro * t->each, left = t->rows - from;
    return tern_narrow(x, 0, from, left < t->each ? left : t->each);
}

static tern_tensor *keep(tern_tensor *x)
{
    return x ? tern_keep(x) : NULL;
}

/* Returns the loss of a micro-batch, from which its backward pass begins, and adds it to
 * t->loss. */
static tern_tensor *loss_of(step *t, tern_tensor *out, int micro)
{
    tern_tensor *y = tern_to(rows_of(t, t->y, micro), tern_device(out));
    tern_tensor *loss = tern_nn_loss(t->criterion, out, y);
    if (loss && !t->p->no_scale_grads)
        loss = tern_mul_scalar(loss, tern_scalar_real((double)tern_size(y, 0) / (double)t->rows));
    if (!loss)
        return NULL;
    TERN_NO_GRAD {
        tern_tensor *sum =
            t->loss ? tern_add(t->loss, tern_detach(loss)) : tern_clone(tern_detach(loss));
        tern_release(t->loss);
        t->loss = keep(sum);
    }
    return loss;
}

static tern_status forward(step *t, int s)
{
    tern_pipeline *p = t->p;
    tern_stage_run *r = &p->run[s];
    const int micro = r->forwards++;
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        tern_tensor *x = s ? tern_stage_message_take(p, s - 1, s, micro)
                           : tern_detach(tern_to(rows_of(t, t->x, micro), p->device[s]));
        if (x && s && tern_dtype_is_floating_point(tern_dtype_of(x)))
            tern_requires_grad_(x, true);
        r->in[micro] = keep(x);
        for (int i = p->begin[s]; x && i < p->begin[s + 1]; i++)
            x = tern_nn_forward(tern_nn_child_at(p->sequential, i), x);
        if (x && s == p->n - 1)
            x = loss_of(t, x, micro);
        else if (x)
            tern_stage_message_give(p, s, s + 1, micro, x, t->round);
        r->out[micro] = keep(x);
    }
    return tern_failed_since(failures);
}

static tern_status backward(step *t, int s)
{
    tern_pipeline *p = t->p;
    tern_stage_run *r = &p->run[s];
    const int micro = r->backwards++;
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        tern_tensor *out = r->out[micro], *in = r->in[micro];
        const bool last = s == p->n - 1;
        tern_tensor *dout = last ? NULL : tern_stage_message_take(p, s + 1, s, micro);
        if ((last || dout) && tern_requires_grad(out))
            tern_backward_with(out, &(tern_backward_options){.gradient = dout});
        if (s && tern_failed_since(failures) == TERN_OK) { /* the gradient of an unused input is
                                                              zeros */
            tern_tensor *dx = tern_grad(in);
            tern_stage_message_give(p, s, s - 1, micro, dx ? dx : tern_zeros_like(in), t->round);
        }
        tern_release(out);
        tern_release(in);
        r->out[micro] = r->in[micro] = NULL;
    }
    return tern_failed_since(failures);
}

/* Returns whether the next step of stage s is a forward. */
static bool goes_forward(const step *t, int s)
{
    const tern_stage_run *r = &t->p->run[s];
    const int most = t->p->schedule == TERN_PIPELINE_GPIPE ? t->micro_batches : t->p->n - s;
    return r->forwards < t->micro_batches && r->forwards - r->backwards < most;
}

static bool is_ready(const step *t, int s)
{
    tern_pipeline *p = t->p;
    const tern_stage_run *r = &p->run[s];
    const bool up = goes_forward(t, s);
    const int from = up ? s - 1 : s + 1;
    if (!p->device[s] || r->backwards == t->micro_batches || (!up && r->backwards == r->forwards))
        return false;
    return from < 0 || from == p->n ||
           tern_stage_message_is_there(p, from, s, up ? r->forwards : r->backwards, t->round);
}

static tern_status run_rounds(step *t)
{
    enum { NAP = 30000 };
    const int n = t->p->n;
    for (;; t->round++) {
        int ran = 0, left = 0;
        for (int s = 0; s < n; s++)
            if (is_ready(t, s)) {
                TERN_TRY(goes_forward(t, s) ? forward(t, s) : backward(t, s));
                ran++;
            }
        for (int s = 0; s < n; s++)
            left += t->p->device[s] && t->p->run[s].backwards < t->micro_batches;
        if (!left)
            return TERN_OK;
        if (!ran)
            tern_os_sleep(NAP); /* waits for messages */
    }
}

/* Sends the loss from the rank of the last stage to all others of the pipeline. */
static tern_status share_loss(step *t)
{
    tern_pipeline *p = t->p;
    const int own = tern_dist_get_rank(NULL), last = p->rank[p->n - 1];
    bool sent = own == last;
    for (int s = 0; s < p->n - 1; s++) {
        bool first = p->rank[s] != last;
        for (int k = 0; k < s; k++)
            first &= p->rank[k] != p->rank[s];
        if (first && own == last)
            TERN_TRY(tern_dist_send(tern_to_dtype(t->loss, tern_get_default_dtype()), p->rank[s],
                                    &(tern_dist_options){.tag = 19999}));
        if (first && own == p->rank[s] && !sent) {
            t->loss = keep(tern_zeros(TERN_SHAPE_SCALAR, tern_get_default_dtype(), "cpu"));
            TERN_TRY(tern_dist_recv(t->loss, last, &(tern_dist_options){.tag = 19999}));
            sent = true;
        }
    }
    return TERN_OK;
}

static void clear(tern_pipeline *p)
{
    for (int s = 0; s < p->n; s++) {
        tern_stage_run *r = &p->run[s];
        for (int m = 0; m < p->micro_batches; m++) {
            tern_release(r->in[m]);
            tern_release(r->out[m]);
            tern_stage_message_drop(&r->up[m]);
            tern_stage_message_drop(&r->down[m]);
            r->in[m] = r->out[m] = NULL;
        }
        r->forwards = r->backwards = 0;
    }
}

static tern_status begin(step *t)
{
    const tern_pipeline *p = t->p;
    const char *name = "tern_dist_pipeline_step";
    const bool first = p->device[0] != NULL, last = p->device[p->n - 1] != NULL;
    bool takes_part = false;
    for (int s = 0; s < p->n; s++)
        takes_part |= p->device[s] != NULL;
    if (!takes_part)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: no stage is rank %d's", name,
                         tern_dist_get_rank(NULL));
    if ((first && !t->x) || (last && (!t->y || !t->criterion)))
        return tern_fail_argument_null(name, first && !t->x ? "x" : t->y ? "criterion" : "y");
    tern_tensor *given = first ? t->x : t->y;
    t->rows = given && tern_dim(given) > 0 ? tern_size(given, 0) : -1;
    if ((given && t->rows < 1) ||
        (first && last && (tern_dim(t->y) < 1 || tern_size(t->y, 0) != t->rows)))
        return tern_fail(TERN_ERR_SHAPE, "%s: x and y have not as many rows, or none", name);
    return TERN_OK;
}

/* Sends the number of rows to ranks with neither the first nor the last stage. */
static tern_status share_rows(step *t)
{
    const tern_pipeline *p = t->p;
    bool several = false;
    for (int s = 1; s < p->n; s++)
        several |= p->rank[s] != p->rank[0];
    tern_status status = TERN_OK;
    for (int s = 1; several && s < p->n && status == TERN_OK; s++)
        TERN_SCOPE {
            if (p->rank[s] == p->rank[s - 1])
                continue;
            tern_tensor *n = tern_from_data(&t->rows, TERN_SHAPE(1), TERN_I64, "cpu");
            const tern_dist_options o = {.tag = 19998};
            if (p->device[s])
                status = tern_dist_recv(n, p->rank[s - 1], &o);
            else if (p->device[s - 1])
                status = tern_dist_send(n, p->rank[s], &o);
            if (n && status == TERN_OK)
                t->rows = tern_item_int(n);
        }
    return status;
}

tern_tensor *tern_dist_pipeline_step(tern_pipeline *p, tern_tensor *x, tern_tensor *y,
                                     tern_module *criterion)
{
    if (!p)
        return tern_fail_argument_null("tern_dist_pipeline_step", "pipeline"), NULL;
    step t = {.p = p, .x = x, .y = y, .criterion = criterion};
    tern_status status = begin(&t);
    if (status == TERN_OK)
        status = share_rows(&t);
    if (status == TERN_OK) {
        t.each = (t.rows + p->micro_batches - 1) / p->micro_batches;
        t.micro_batches = (int)((t.rows + t.each - 1) / t.each);
        status = run_rounds(&t);
    }
    if (status == TERN_OK)
        status = tern_stage_messages_wait(p);
    if (status == TERN_OK)
        status = share_loss(&t);
    if (status != TERN_OK)
        p->n_sent = 0;
    clear(p);
    tern_tensor *loss = status == TERN_OK && t.loss ? tern_detach(t.loss) : NULL;
    tern_release(t.loss);
    return loss;
}

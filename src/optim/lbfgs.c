/* lbfgs.c -- L-BFGS: approximates the inverse Hessian from recent steps and changes of the gradient
 * (Nocedal & Wright 2006, algorithm 7.4;
 * https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html).
 *
 * With s the last steps, y the changes of the gradient and ro = 1 / (y s), the two-loop recursion
 * computes d = -H grad without forming H. All parameters are one vector here. The host reads losses
 * and inner products to decide. */
#include "base/callback.h"
#include "optim/lbfgs.h"
#include "optim/line_search.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>

typedef tern_lbfgs_memory memory;

typedef struct problem {
    tern_optimizer *o;
    memory *m;
    tern_closure closure;
    void *user;
    tern_tensor *start; /* parameters at the start of the line search */
} problem;

/* Returns the inner product, read by the host. */
static double dot(tern_tensor *a, tern_tensor *b)
{
    double value = NAN;
    TERN_SCOPE
        value = tern_item(tern_matmul(a, b));
    return value;
}

/* Returns the largest absolute value, read by the host. */
static double largest(tern_tensor *x)
{
    double value = NAN;
    TERN_SCOPE
        value = tern_item(tern_max(tern_abs(x)));
    return value;
}

/* x += factor y. */
static tern_status add(tern_tensor *x, tern_tensor *y, double factor)
{
    bool ok = false;
    TERN_SCOPE
        ok = tern_add_(x, tern_mul_scalar(y, tern_scalar_real(factor))) != NULL;
    return ok ? TERN_OK : tern_last_status();
}

/* ---- the vector of all parameters -------------------------------------------------------- */

/* Returns the parameters, or their gradients, as one vector; zeros for a parameter without a
 * gradient. */
static tern_tensor *flat(const tern_optimizer *o, bool gradients)
{
    tern_tensor **piece = tern_alloc(sizeof *piece * (size_t)o->n), *all = NULL;
    for (int i = 0; piece && i < o->n; i++) {
        tern_tensor *x = o->slots[i].x, *grad = tern_grad(x);
        tern_tensor *from = !gradients ? tern_detach(x) : grad ? grad : tern_zeros_like(x);
        piece[i] = tern_reshape(from, TERN_SHAPE(-1));
    }
    if (piece)
        all = tern_cat(piece, o->n, 0);
    tern_free(piece);
    return all;
}

/* Adds t d to the parameters, or sets them to d if t is NULL. */
static tern_status move(const tern_optimizer *o, tern_tensor *d, const double *t)
{
    int64_t at = 0;
    tern_status status = TERN_OK;
    for (int i = 0; i < o->n && status == TERN_OK; i++) {
        tern_tensor *x = o->slots[i].x;
        int64_t n = tern_numel(x);
        TERN_SCOPE {
            tern_tensor *part = tern_reshape(tern_narrow(d, 0, at, n), tern_shape_of(x));
            if (t)
                status = add(x, part, *t);
            else
                status = tern_copy_(x, part) ? TERN_OK : tern_last_status();
        }
        at += n;
    }
    return status;
}

/* Evaluates the loss, or its negative for maximize, and the gradient at the current parameters.
 * *grad belongs to the scope. */
static tern_status evaluate(problem *p, double *loss, tern_tensor **grad)
{
    const tern_callback before = tern_callback_begin();
    const uint64_t failures = before.failures;
    tern_tensor *value = NULL;
    TERN_SCOPE {
        TERN_ENABLE_GRAD
        {
            value = p->closure(p->user);
            tern_callback_end(&before, TERN_OK);
            *loss = value ? p->m->values.sign * tern_item(value) : NAN;
        }
        tern_tensor *g = value && tern_failed_since(failures) == TERN_OK ? flat(p->o, true) : NULL;
        *grad = g ? tern_escape(p->m->values.maximize != 0 ? tern_neg(g) : g) : NULL;
    }
    return *grad ? TERN_OK
                 : tern_fail(TERN_ERR_ARGUMENT, "tern_optim_step_closure: the closure failed");
}

/* Evaluates f and its slope along d at x + t d for the line search, then restores the
 * parameters. */
static tern_status evaluate_at(void *user, tern_line_point *point)
{
    problem *p = user;
    TERN_TRY(move(p->o, p->m->d, &point->t));
    TERN_TRY(evaluate(p, &point->f, &point->g));
    point->slope = dot(point->g, p->m->d);
    return move(p->o, p->start, NULL);
}

/* ---- the direction ----------------------------------------------------------------------- */

static void replace(tern_tensor **place, tern_tensor *x)
{
    tern_keep(x);
    tern_release(*place);
    *place = x;
}

static void drop_oldest(memory *m)
{
    tern_release(m->change[0]);
    tern_release(m->step[0]);
    m->count--;
    memmove(m->change, m->change + 1, sizeof *m->change * (size_t)m->count);
    memmove(m->step, m->step + 1, sizeof *m->step * (size_t)m->count);
    memmove(m->ro, m->ro + 1, sizeof *m->ro * (size_t)m->count);
}

/* A pair (s, y) is kept only where y s > 1e-10, which keeps H positive definite. The initial
 * Hessian is y s / (y y) times the identity. */
static tern_status add_to_history(memory *m, tern_tensor *grad)
{
    tern_tensor *change = tern_sub(grad, m->grad);
    tern_tensor *step = tern_mul_scalar(m->d, tern_scalar_real(m->t));
    if (!change || !step)
        return tern_last_status();
    double product = dot(change, step);
    if (!(product > 1e-10))
        return TERN_OK;
    if (m->count == m->values.history_size)
        drop_oldest(m);
    m->change[m->count] = tern_keep(change);
    m->step[m->count] = tern_keep(step);
    m->ro[m->count++] = 1 / product;
    m->scale = product / dot(change, change);
    return TERN_OK;
}

/* The two-loop recursion: from the newest pair to the oldest alpha = ro s d, d -= alpha y; then d
 * *= scale; and from the oldest to the newest d += s (alpha - ro y d). */
static tern_status two_loop_recursion(memory *m, tern_tensor *grad)
{
    tern_tensor *d = tern_neg(grad);
    double *alpha = d ? tern_alloc(sizeof *alpha * (size_t)(m->count + 1)) : NULL;
    tern_status status = alpha ? TERN_OK : tern_last_status();
    for (int i = m->count - 1; i >= 0 && status == TERN_OK; i--) {
        alpha[i] = dot(m->step[i], d) * m->ro[i];
        status = add(d, m->change[i], -alpha[i]);
    }
    if (status == TERN_OK && !tern_mul_scalar_(d, tern_scalar_real(m->scale)))
        status = tern_last_status();
    for (int i = 0; i < m->count && status == TERN_OK; i++)
        status = add(d, m->step[i], alpha[i] - dot(m->change[i], d) * m->ro[i]);
    tern_free(alpha);
    if (status == TERN_OK)
        replace(&m->d, d);
    return status;
}

/* The first direction is steepest descent. */
static tern_status next_direction(memory *m, tern_tensor *grad)
{
    if (m->iterations++ > 0) {
        TERN_TRY(add_to_history(m, grad));
        return two_loop_recursion(m, grad);
    }
    tern_tensor *d = tern_neg(grad);
    replace(&m->d, d);
    m->scale = 1;
    return d ? TERN_OK : tern_last_status();
}

/* ---- a step ------------------------------------------------------------------------------ */

/* The state of the iteration. */
typedef struct position {
    tern_tensor *grad;
    double loss;
    int64_t evaluations;
    bool ends; /* it has converged, or can't go on */
} position;

/* Moves along d by the line search or by the learning rate. The last iteration needs no new
 * gradient. */
static tern_status take_step(problem *p, position *at, bool last)
{
    const uint64_t failures = tern_failures();
    memory *m = p->m;
    double slope = dot(at->grad, m->d);
    if (slope > -m->values.tolerance_change) {
        at->ends = true;
        return tern_failed_since(failures);
    }
    if (m->values.line_search_fn == TERN_LINE_SEARCH_STRONG_WOLFE) {
        tern_line_point start = {.f = at->loss, .slope = slope, .g = at->grad}, found;
        int64_t most = (int64_t)m->values.most_evaluations - at->evaluations;
        p->start = flat(p->o, false);
        TERN_TRY(tern_strong_wolfe(evaluate_at, p, &start, m->t, largest(m->d), 1e-9, most, &found,
                                   &at->evaluations));
        m->t = found.t;
        at->loss = found.f;
        at->grad = found.g;
        return move(p->o, m->d, &m->t);
    }
    TERN_TRY(move(p->o, m->d, &m->t));
    if (last)
        return TERN_OK;
    at->evaluations++;
    return evaluate(p, &at->loss, &at->grad);
}

/* Makes one iteration, and sets at->ends by PyTorch's tolerances. The first step's length is min(1,
 * 1 / ||grad||_1) lr, as d is not scaled yet. New tensors belong to the scope, at->grad to the
 * outer one. */
static tern_status iterate(problem *p, position *at, bool last)
{
    const uint64_t failures = tern_failures();
    memory *m = p->m;
    double before = at->loss;
    TERN_TRY(next_direction(m, at->grad));
    replace(&m->grad, at->grad);
    m->t = p->o->groups[0].lr;
    if (m->iterations == 1) {
        tern_tensor *sum = tern_sum(tern_abs(at->grad));
        m->t *= fmin(1, 1 / tern_item(sum));
    }
    TERN_TRY(take_step(p, at, last));
    if (at->ends)
        return TERN_OK;
    at->ends = last || (double)at->evaluations >= m->values.most_evaluations ||
               largest(at->grad) <= m->values.tolerance_grad ||
               fabs(m->t) * largest(m->d) <= m->values.tolerance_change ||
               fabs(at->loss - before) < m->values.tolerance_change;
    return tern_failed_since(failures);
}

/* Makes up to max_iter iterations from the current parameters. Sets *first_loss to the loss
 * there. */
static tern_status run(problem *p, double *first_loss)
{
    const tern_lbfgs_values *o = &p->m->values;
    const int64_t most = (int64_t)o->max_iter;
    position at = {.evaluations = 1};
    const uint64_t failures = tern_failures();
    TERN_TRY(evaluate(p, &at.loss, &at.grad));
    *first_loss = o->sign * at.loss;
    at.ends = largest(at.grad) <= o->tolerance_grad;
    tern_status status = tern_failed_since(failures);
    tern_tensor *grad = tern_keep(at.grad);
    for (int64_t i = 1; i <= most && !at.ends && status == TERN_OK; i++)
        TERN_SCOPE {
            status = iterate(p, &at, i == most);
            replace(&grad, at.grad);
        }
    tern_release(grad);
    return status;
}

static tern_status closure_step(tern_optimizer *o, tern_closure closure, void *user, double *loss)
{
    problem p = {.o = o, .m = o->data, .closure = closure, .user = user};
    double first = NAN;
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD
            status = run(&p, &first);
    if (loss)
        *loss = first;
    return status;
}

static void free_memory(void *data)
{
    memory *m = data;
    if (!m)
        return;
    while (m->count > 0)
        drop_oldest(m);
    tern_release(m->d);
    tern_release(m->grad);
    tern_free(m->change);
    tern_free(m->step);
    tern_free(m->ro);
    tern_free(m);
}

static tern_status make_data(tern_optimizer *o)
{
    memory *m = tern_alloc(sizeof *m);
    if (!m)
        return TERN_ERR_MEMORY;
    o->data = m;
    memcpy(&m->values, o->groups[0].values, sizeof m->values);
    o->kind->derive(&m->values);
    size_t n = (size_t)m->values.history_size;
    m->change = tern_alloc(sizeof *m->change * n);
    m->step = tern_alloc(sizeof *m->step * n);
    m->ro = tern_alloc(sizeof *m->ro * n);
    return m->change && m->step && m->ro ? TERN_OK : TERN_ERR_MEMORY;
}

const tern_optim_parts tern_lbfgs_parts = {.closure_step = closure_step,
                                           .make_data = make_data,
                                           .free_data = free_memory,
                                           .each_state = tern_lbfgs_each_state,
                                           .load_state = tern_lbfgs_load_state};

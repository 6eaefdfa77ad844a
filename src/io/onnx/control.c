/* control.c -- ONNX's If, Loop and Scan: nodes that have graphs among their attributes. */
#include "io/onnx/operations.h"
#include "base/env.h"
#include "base/memory.h"
#include "tensor/scope.h"
#include <stdlib.h>

const onnx_body *onnx_body_of(const onnx_call *c, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(c, name);
    for (int i = 0; a && a->g && i < c->node->n_bodies; i++)
        if (c->node->bodies[i].proto == a->g)
            return &c->node->bodies[i];
    onnx_fail(c, TERN_ERR_ARGUMENT, "has no graph '%s'", name);
    return NULL;
}

/* Returns input i, or an empty slot if it is omitted. */
static onnx_slot input(const onnx_call *c, int i)
{
    return i < c->n_in ? (onnx_slot){c->in[i], c->lists_in[i]} : (onnx_slot){NULL, NULL};
}

/* Sets output i to a slot and takes over its reference. */
static void give_slot(onnx_call *c, int i, onnx_slot slot)
{
    if (i >= c->n_out) {
        onnx_drop(&slot);
        return;
    }
    c->out[i] = tern_scoped(slot.x);
    c->lists_out[i] = slot.list;
}

/* Reads a condition of one element. The host waits for the device. */
static tern_status read_truth(const onnx_call *c, tern_tensor *x, bool *holds)
{
    if (!x || tern_numel(x) != 1)
        return onnx_fail(c, TERN_ERR_SHAPE, "its condition is one truth value");
    x = tern_to_dtype(tern_to(tern_detach(x), "cpu"), TERN_BOOL);
    return x ? tern_copy_to_host(x, (void *)holds, sizeof *holds) : TERN_ERR_MEMORY;
}

static void drop_all(onnx_slot *slots, int n)
{
    for (int i = 0; i < n; i++)
        onnx_drop(&slots[i]);
}

tern_status onnx_if(onnx_call *c)
{
    bool holds;
    TERN_TRY(read_truth(c, onnx_in(c, 0), &holds));
    const onnx_body *body = onnx_body_of(c, holds ? "then_branch" : "else_branch");
    if (!body)
        return TERN_ERR_ARGUMENT;
    if (body->n_inputs || body->n_outputs != c->n_out)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "a branch of %d inputs and %d results for %d",
                         body->n_inputs, body->n_outputs, c->n_out);
    onnx_slot *out = tern_alloc(sizeof *out * (size_t)c->n_out);
    if (!out)
        return TERN_ERR_MEMORY;
    tern_status status = onnx_run_body(c->running, body, NULL, 0, out, c->n_out);
    for (int i = 0; i < c->n_out; i++)
        give_slot(c, i, out[i]);
    tern_free(out);
    return status;
}

enum { MOST_TURNS = 1 << 20 }; /* limit for all loops of a call */

/* ---- iterations ------------------------------------------------------------------------------ */

/* A body that runs repeatedly, with the values that one iteration passes to the next and the
 * results of each iteration. */
typedef struct turns {
    onnx_call *call;
    const onnx_body *body;
    /* Number of the body's inputs and outputs before the carried ones: Loop has an iteration number
     * and a condition as inputs and a condition as output. */
    int n_own;
    int n_carried; /* values passed from one iteration to the next */
    int n_scanned; /* inputs of a Scan that have one slice per iteration, after the carried ones */
    int n_rows;    /* results of an iteration that are stacked, after the carried ones */
    onnx_slot *in, *out; /* inputs and outputs of the body, by references */
    tern_tensor **rows;  /* n_rows tensors for each iteration, by references */
    int64_t n, capacity; /* iterations so far, and iterations for which `rows` has memory */
} turns;

static int n_in(const turns *t)
{
    return t->n_own + t->n_carried + t->n_scanned;
}

static tern_status begin(turns *t, int n_out)
{
    t->in = tern_alloc(sizeof *t->in * (size_t)(n_in(t) + 1));
    t->out = tern_alloc(sizeof *t->out * (size_t)(n_out + 1));
    return t->in && t->out ? TERN_OK : TERN_ERR_MEMORY;
}

static void end(turns *t, int n_out)
{
    if (t->in)
        drop_all(t->in, n_in(t));
    if (t->out)
        drop_all(t->out, n_out);
    for (int64_t i = 0; i < t->n * t->n_rows; i++)
        tern_release(t->rows[i]);
    tern_free(t->in);
    tern_free(t->out);
    tern_free(t->rows);
}

tern_status onnx_count_turn(const onnx_call *c)
{
    const char *text = tern_env(TERN_ENV_ONNX_LOOP_LIMIT);
    const int64_t most = text ? strtoll(text, NULL, 10) : MOST_TURNS;
    if (c->running->turns++ < most)
        return TERN_OK;
    return onnx_fail(c, TERN_ERR_UNSUPPORTED,
                     "the loops of one call have made %lld turns, the limit (TERN_ONNX_LOOP_LIMIT "
                     "sets another)",
                     (long long)most);
}

/* Runs one iteration with the inputs in t->in. Moves the carried values back to t->in and the rows
 * to t->rows. */
static tern_status turn(turns *t, int own_out)
{
    const int n_out = own_out + t->n_carried + t->n_rows;
    TERN_TRY(onnx_count_turn(t->call));
    if (t->n == t->capacity) {
        const int64_t capacity = 2 * t->capacity + 16;
        tern_tensor **rows =
            tern_grow(t->rows, sizeof *rows * (size_t)capacity * (size_t)(t->n_rows + 1));
        if (!rows)
            return TERN_ERR_MEMORY;
        t->rows = rows;
        t->capacity = capacity;
    }
    drop_all(t->out, n_out);
    TERN_TRY(onnx_run_body(t->call->running, t->body, t->in, n_in(t), t->out, n_out));
    for (int i = 0; i < t->n_rows; i++)
        if (!t->out[own_out + t->n_carried + i].x)
            return onnx_fail(t->call, TERN_ERR_UNSUPPORTED, "gathers sequences");
    for (int i = 0; i < t->n_carried; i++) {
        onnx_drop(&t->in[t->n_own + i]);
        t->in[t->n_own + i] = t->out[own_out + i];
        t->out[own_out + i] = (onnx_slot){NULL, NULL};
    }
    for (int i = 0; i < t->n_rows; i++) {
        onnx_slot *row = &t->out[own_out + t->n_carried + i];
        t->rows[t->n * t->n_rows + i] = row->x;
        row->x = NULL;
    }
    t->n++;
    return TERN_OK;
}

/* Returns stacked result i if there were no iterations: a tensor with no rows and the shape that
 * the graph declares. */
static tern_tensor *no_rows(const turns *t, int output)
{
    const Onnx__GraphProto *proto = t->body->proto;
    const Onnx__TypeProto *type =
        (size_t)output < proto->n_output ? proto->output[output]->type : NULL;
    const Onnx__TypeProto__Tensor *tensor =
        type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
    tern_shape shape = {.ndim = 1};
    for (size_t d = 0; tensor && tensor->shape && d < tensor->shape->n_dim; d++) {
        const int64_t size = tensor->shape->dim[d]->dim_value;
        if (shape.ndim < TERN_MAX_DIMS)
            shape.dims[shape.ndim++] = size > 0 ? size : 0;
    }
    tern_dtype dtype = tensor ? onnx_dtype(tensor->elem_type, "a result of no turns") : TERN_F32;
    return dtype ? tern_zeros(shape, dtype, "cpu") : NULL;
}

/* Returns row i of all iterations, stacked along a new dim. */
static tern_tensor *stack_rows(const turns *t, int i, int axis, bool backwards)
{
    tern_tensor **list = tern_alloc(sizeof(tern_tensor *) * (size_t)(t->n + 1));
    for (int64_t k = 0; list && k < t->n; k++)
        list[k] = t->rows[(backwards ? t->n - 1 - k : k) * t->n_rows + i];
    tern_tensor *y = list && t->n <= INT32_MAX ? tern_stack(list, (int)t->n, axis) : NULL;
    tern_free(list);
    return y;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

static tern_status loop(onnx_call *c, turns *t, int64_t most, bool goes_on)
{
    for (int64_t i = 0; i < most && goes_on; i++) {
        tern_scope_block scope = tern_call_scope_enter("Loop");
        tern_status status = TERN_OK;
        onnx_drop(&t->in[0]);
        onnx_drop(&t->in[1]);
        t->in[0].x = tern_keep(tern_tensor_scalar(TERN_SCALAR(i), TERN_I64, "cpu"));
        t->in[1].x = tern_keep(tern_tensor_scalar(TERN_SCALAR((int64_t)1), TERN_BOOL, "cpu"));
        status = t->in[0].x && t->in[1].x ? turn(t, 1) : TERN_ERR_MEMORY;
        if (status == TERN_OK)
            status = read_truth(c, t->out[0].x, &goes_on);
        tern_call_scope_leave(&scope, NULL, 0);
        TERN_TRY(status);
    }
    for (int i = 0; i < t->n_carried; i++) {
        give_slot(c, i, t->in[2 + i]);
        t->in[2 + i] = (onnx_slot){NULL, NULL};
    }
    for (int i = 0; i < t->n_rows; i++)
        c->out[t->n_carried + i] =
            t->n ? stack_rows(t, i, 0, false) : no_rows(t, 1 + t->n_carried + i);
    return TERN_OK;
}

tern_status onnx_loop(onnx_call *c)
{
    int64_t most[ONNX_DIMS] = {INT64_MAX};
    bool goes_on = true;
    const int n = onnx_input_ints(c, 0, most);
    if (n == -2 || (n >= 0 && n != 1))
        return onnx_fail(c, TERN_ERR_SHAPE, "its number of turns is one number");
    if (onnx_in(c, 1))
        TERN_TRY(read_truth(c, onnx_in(c, 1), &goes_on));
    turns t = {.call = c, .body = onnx_body_of(c, "body"), .n_own = 2, .n_carried = c->n_in - 2};
    if (!t.body)
        return TERN_ERR_ARGUMENT;
    t.n_rows = c->n_out - t.n_carried;
    if (c->n_in < 2 || t.n_rows < 0 || t.body->n_inputs != c->n_in ||
        t.body->n_outputs != 1 + c->n_out)
        return onnx_fail(c, TERN_ERR_ARGUMENT,
                         "a body of %d inputs and %d results for %d inputs and %d results",
                         t.body->n_inputs, t.body->n_outputs, c->n_in, c->n_out);
    tern_status status = begin(&t, 1 + c->n_out);
    for (int i = 0; status == TERN_OK && i < t.n_carried; i++)
        t.in[2 + i] = onnx_hold(input(c, 2 + i));
    if (status == TERN_OK)
        status = loop(c, &t, most[0], goes_on);
    end(&t, 1 + c->n_out);
    return status;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

enum { MOST_SCANNED = ONNX_DIMS };

typedef struct scan {
    turns t;
    tern_tensor *x[MOST_SCANNED]; /* scanned inputs */
    int axis_in[MOST_SCANNED], axis_out[MOST_SCANNED];
    bool back_in[MOST_SCANNED], back_out[MOST_SCANNED];
    int64_t length;
} scan;

/* Reads the lists of axes and directions, which may be omitted. */
static tern_status read_sides(onnx_call *c, const char *axes, const char *directions, int n,
                              int *axis, bool *back)
{
    int64_t list[ONNX_DIMS];
    const int n_axes = onnx_ints(c, axes, list);
    for (int i = 0; i < n; i++) {
        if (i < n_axes && (list[i] < -TERN_MAX_DIMS || list[i] > TERN_MAX_DIMS))
            return onnx_fail(c, TERN_ERR_SHAPE, "%s has %lld", axes, (long long)list[i]);
        axis[i] = i < n_axes ? (int)list[i] : 0;
    }
    const int n_directions = onnx_ints(c, directions, list);
    for (int i = 0; i < n; i++)
        back[i] = i < n_directions && list[i] != 0;
    return TERN_OK;
}

static tern_status run_scan(scan *s)
{
    turns *t = &s->t;
    for (int64_t i = 0; i < s->length; i++) {
        tern_scope_block scope = tern_call_scope_enter("Scan");
        bool there = true;
        for (int k = 0; k < t->n_scanned; k++) {
            onnx_slot *slot = &t->in[t->n_carried + k];
            onnx_drop(slot);
            slot->x = tern_select(s->x[k], s->axis_in[k], s->back_in[k] ? s->length - 1 - i : i);
            there = there && slot->x;
            tern_keep(slot->x);
        }
        tern_status status = there ? turn(t, 0) : TERN_ERR_SHAPE;
        tern_call_scope_leave(&scope, NULL, 0);
        TERN_TRY(status);
    }
    return TERN_OK;
}

/* Scans s->x, starting with the states first[n_carried]. Sets out[n_carried + n_rows] to tensors of
 * the current scope. */
static tern_status scan_all(scan *s, tern_tensor *const *first, tern_tensor **out)
{
    turns *t = &s->t;
    const int n_out = t->n_carried + t->n_rows;
    s->length = tern_size(s->x[0], s->axis_in[0]);
    for (int k = 1; k < t->n_scanned; k++)
        if (tern_size(s->x[k], s->axis_in[k]) != s->length)
            return onnx_fail(t->call, TERN_ERR_SHAPE, "inputs of %lld and %lld steps",
                             (long long)s->length, (long long)tern_size(s->x[k], s->axis_in[k]));
    tern_status status = begin(t, n_out);
    for (int i = 0; status == TERN_OK && i < t->n_carried; i++)
        t->in[i].x = tern_keep(first[i]);
    if (status == TERN_OK)
        status = run_scan(s);
    for (int i = 0; status == TERN_OK && i < t->n_carried; i++) {
        out[i] = tern_scoped(t->in[i].x);
        t->in[i].x = NULL;
    }
    for (int i = 0; status == TERN_OK && i < t->n_rows; i++)
        out[t->n_carried + i] =
            t->n ? stack_rows(t, i, s->axis_out[i], s->back_out[i]) : no_rows(t, t->n_carried + i);
    end(t, n_out);
    t->in = t->out = NULL;
    t->rows = NULL;
    t->n = t->capacity = 0;
    return status;
}

/* Runs a Scan of operator set 8, whose inputs have a batch dim in front: each item is scanned by
 * itself. */
static tern_status scan_batch(scan *s, int first)
{
    onnx_call *c = s->t.call;
    const int n_all = c->n_in - first, n_out = c->n_out;
    tern_tensor *x0 = onnx_in(c, first), **parts;
    const int64_t batch = x0 && tern_dim(x0) > 0 ? tern_size(x0, 0) : 0;
    if (onnx_in(c, 0) || batch < 1 || batch > INT16_MAX)
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "sequences of different lengths, or no batch");
    const size_t capacity = (size_t)batch * (size_t)n_out + (size_t)n_all + (size_t)batch;
    if (!(parts = tern_alloc(sizeof(tern_tensor *) * capacity)))
        return TERN_ERR_MEMORY;
    tern_tensor **states = parts + batch * n_out, **column = states + n_all;
    tern_status status = TERN_OK;
    for (int64_t b = 0; b < batch && status == TERN_OK; b++) {
        for (int i = 0; i < n_all && status == TERN_OK; i++) {
            tern_tensor *item = tern_select(onnx_in(c, first + i), 0, b);
            status = item ? TERN_OK : TERN_ERR_SHAPE;
            if (i < s->t.n_carried)
                states[i] = item;
            else
                s->x[i - s->t.n_carried] = item;
        }
        if (status == TERN_OK)
            status = scan_all(s, states, parts + b * n_out);
    }
    for (int i = 0; i < n_out && status == TERN_OK; i++) {
        for (int64_t b = 0; b < batch; b++)
            column[b] = parts[b * n_out + i];
        c->out[i] = tern_stack(column, (int)batch, 0);
    }
    tern_free(parts);
    return status;
}

tern_status onnx_scan(onnx_call *c)
{
    scan s = {.t = {.call = c, .body = onnx_body_of(c, "body")}};
    const int64_t scanned = onnx_int(c, "num_scan_inputs", 0);
    const int first = c->opset < 9 ? 1 : 0, n = c->n_in - first;
    if (!s.t.body)
        return TERN_ERR_ARGUMENT;
    if (scanned < 1 || scanned > n || scanned > MOST_SCANNED || c->n_out > MOST_SCANNED)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "%lld of %d inputs are gone along",
                         (long long)scanned, n);
    s.t.n_scanned = (int)scanned;
    s.t.n_carried = n - (int)scanned;
    s.t.n_rows = c->n_out - s.t.n_carried;
    if (s.t.n_rows < 0 || s.t.body->n_inputs != n || s.t.body->n_outputs != c->n_out)
        return onnx_fail(c, TERN_ERR_ARGUMENT,
                         "a body of %d inputs and %d results for %d inputs and %d results",
                         s.t.body->n_inputs, s.t.body->n_outputs, n, c->n_out);
    const char *old = first ? "directions" : "scan_input_directions";
    TERN_TRY(read_sides(c, "scan_input_axes", old, s.t.n_scanned, s.axis_in, s.back_in));
    TERN_TRY(read_sides(c, "scan_output_axes", "scan_output_directions", s.t.n_rows, s.axis_out,
                        s.back_out));
    if (first)
        return scan_batch(&s, first);
    for (int i = 0; i < n; i++) {
        tern_tensor *x = onnx_in(c, i);
        const int k = i - s.t.n_carried;
        if (!x || (k >= 0 &&
                   (tern_dim(x) < 1 || s.axis_in[k] >= tern_dim(x) || s.axis_in[k] < -tern_dim(x))))
            return onnx_fail(c, TERN_ERR_SHAPE, "input %d has no such dim", i);
        if (k >= 0)
            s.x[k] = x;
    }
    return scan_all(&s, c->in, c->out);
}

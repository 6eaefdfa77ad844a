/* sequence.c -- ONNX's sequences of tensors, and optional values. */
#include "io/onnx/operations.h"
#include "base/memory.h"
#include "tensor/scope.h"

enum { MOST_ITEMS = 1 << 20 };

/* Returns a sequence of n NULL items, or NULL after an error. The caller sets each item to a
 * reference. */
static onnx_sequence *sequence_of(const onnx_call *c, int64_t n)
{
    if (n < 0 || n > MOST_ITEMS) {
        onnx_fail(c, TERN_ERR_UNSUPPORTED, "a sequence of %lld tensors, %d are possible",
                  (long long)n, MOST_ITEMS);
        return NULL;
    }
    onnx_sequence *s = tern_alloc(sizeof *s + sizeof(tern_tensor *) * (size_t)n);
    if (s)
        *s = (onnx_sequence){.refs = 1, .n = (int)n};
    for (int i = 0; s && i < n; i++)
        s->items[i] = NULL;
    return s;
}

/* Sets output 0 to the sequence. Fails if it or an item is NULL. */
static tern_status give_sequence(onnx_call *c, onnx_sequence *s)
{
    for (int i = 0; s && i < s->n; i++)
        if (!s->items[i]) {
            onnx_drop(&(onnx_slot){.list = s});
            return tern_last_status();
        }
    c->lists_out[0] = s;
    return s ? TERN_OK : TERN_ERR_MEMORY;
}

static const onnx_sequence *sequence_in(const onnx_call *c, int i)
{
    if (i < c->n_in && c->lists_in[i])
        return c->lists_in[i];
    onnx_fail(c, TERN_ERR_ARGUMENT, "input %d is no sequence", i);
    return NULL;
}

/* Reads the position in input i, which counts from the end if negative. The default is
 * `otherwise`. */
static tern_status place_of(const onnx_call *c, int i, int64_t n, int64_t otherwise, int64_t *place)
{
    int64_t list[ONNX_DIMS];
    const int count = onnx_input_ints(c, i, list);
    if (count == -2)
        return tern_last_status();
    *place = count < 0 ? otherwise : count == 1 ? list[0] : INT64_MIN;
    *place += *place < 0 && *place >= -n ? n : 0;
    if (*place < 0 || *place > n)
        return onnx_fail(c, TERN_ERR_SHAPE, "position %lld of a sequence of %lld tensors",
                         (long long)*place, (long long)n);
    return TERN_OK;
}

tern_status onnx_sequence_empty(onnx_call *c)
{
    return give_sequence(c, sequence_of(c, 0));
}

tern_status onnx_sequence_construct(onnx_call *c)
{
    onnx_sequence *s = sequence_of(c, c->n_in);
    for (int i = 0; s && i < c->n_in; i++) {
        s->items[i] = tern_keep(c->in[i]);
        if (!s->items[i])
            onnx_fail(c, TERN_ERR_ARGUMENT, "input %d is no tensor", i);
    }
    return give_sequence(c, s);
}

/* Sets output 0 to the items of s without item `without` (-1: none) and with x, if not NULL,
 * inserted at `at`. */
static tern_status changed(onnx_call *c, const onnx_sequence *s, int64_t without, int64_t at,
                           tern_tensor *x)
{
    onnx_sequence *y = sequence_of(c, s->n + (x != NULL) - (without >= 0));
    int to = 0;
    for (int i = 0; y && i <= s->n; i++) {
        if (x && i == at)
            y->items[to++] = tern_keep(x);
        if (i < s->n && i != without)
            y->items[to++] = tern_keep(s->items[i]);
    }
    return give_sequence(c, y);
}

tern_status onnx_sequence_insert(onnx_call *c)
{
    const onnx_sequence *s = sequence_in(c, 0);
    int64_t at;
    if (!s || !onnx_in(c, 1))
        return s ? onnx_fail(c, TERN_ERR_ARGUMENT, "input 1 is no tensor") : TERN_ERR_ARGUMENT;
    TERN_TRY(place_of(c, 2, s->n, s->n, &at));
    return changed(c, s, -1, at, onnx_in(c, 1));
}

tern_status onnx_sequence_erase(onnx_call *c)
{
    const onnx_sequence *s = sequence_in(c, 0);
    int64_t at;
    if (!s)
        return TERN_ERR_ARGUMENT;
    TERN_TRY(place_of(c, 1, s->n, s->n - 1, &at));
    if (at >= s->n)
        return onnx_fail(c, TERN_ERR_SHAPE, "position %lld of a sequence of %d tensors",
                         (long long)at, s->n);
    return changed(c, s, at, -1, NULL);
}

tern_status onnx_sequence_at(onnx_call *c)
{
    const onnx_sequence *s = sequence_in(c, 0);
    int64_t at;
    if (!s)
        return TERN_ERR_ARGUMENT;
    TERN_TRY(place_of(c, 1, s->n, INT64_MIN, &at));
    if (at >= s->n)
        return onnx_fail(c, TERN_ERR_SHAPE, "position %lld of a sequence of %d tensors",
                         (long long)at, s->n);
    return onnx_give(c, tern_scoped(tern_keep(s->items[at])));
}

tern_status onnx_sequence_length(onnx_call *c)
{
    const onnx_sequence *s = sequence_in(c, 0);
    if (!s)
        return TERN_ERR_ARGUMENT;
    return onnx_give(c, tern_tensor_scalar(TERN_SCALAR((int64_t)s->n), TERN_I64, "cpu"));
}

/* Reads the sizes of parts: a list, one size for all parts but the last, or 1 for each part. */
static tern_status sizes_of(const onnx_call *c, int64_t size, int64_t list[ONNX_DIMS], int *n,
                            int64_t *each)
{
    tern_tensor *split = onnx_in(c, 1);
    *n = onnx_input_ints(c, 1, list);
    *each = *n < 0 ? 1 : tern_dim(split) == 0 ? list[0] : 0;
    if (*n == -2)
        return tern_last_status();
    if (*n >= 0 && *each < 0)
        return onnx_fail(c, TERN_ERR_SHAPE, "parts of %lld", (long long)*each);
    int64_t all = 0;
    for (int i = 0; *each == 0 && i < *n; i++) {
        if (list[i] < 0 || list[i] > size)
            return onnx_fail(c, TERN_ERR_SHAPE, "a part of %lld of %lld", (long long)list[i],
                             (long long)size);
        all += list[i];
    }
    if (*each == 0 && (tern_dim(split) == 0 || all != size))
        return onnx_fail(c, TERN_ERR_SHAPE, "parts of %lld in all, of a dim of %lld",
                         (long long)all, (long long)size);
    return TERN_OK;
}

tern_status onnx_split_to_sequence(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t list[ONNX_DIMS], each, at = 0;
    int n;
    if (!x || tern_dim(x) < 1)
        return onnx_fail(c, TERN_ERR_SHAPE, "splits no dim");
    const int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(x));
    if (axis < 0 || axis >= tern_dim(x))
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", axis, tern_dim(x));
    const int64_t size = tern_size(x, axis);
    TERN_TRY(sizes_of(c, size, list, &n, &each));
    const bool squeezes = !onnx_in(c, 1) && !onnx_int(c, "keepdims", 1);
    onnx_sequence *s = sequence_of(c, each ? size / each + (size % each != 0) : n);
    for (int i = 0; s && i < s->n; i++) {
        const int64_t part = !each ? list[i] : size - at < each ? size - at : each;
        tern_tensor *y = tern_narrow(x, axis, at, part);
        s->items[i] = tern_keep(squeezes && y ? tern_select(y, axis, 0) : y);
        at += part;
    }
    return give_sequence(c, s);
}

tern_status onnx_concat_from_sequence(onnx_call *c)
{
    const onnx_sequence *s = sequence_in(c, 0);
    if (!s || s->n < 1)
        return s ? onnx_fail(c, TERN_ERR_SHAPE, "joins no tensors") : TERN_ERR_ARGUMENT;
    const bool stacks = onnx_int(c, "new_axis", 0) != 0;
    const int axis = onnx_axis(onnx_int(c, "axis", 0), tern_dim(s->items[0]) + stacks);
    tern_tensor *const *items = s->items;
    return onnx_give(c, stacks ? tern_stack(items, s->n, axis) : tern_cat(items, s->n, axis));
}

/* ---- values of any kind ---------------------------------------------------------------------- */

tern_status onnx_identity(onnx_call *c)
{
    if (c->n_in > 0 && c->lists_in[0]) {
        c->lists_out[0] = onnx_hold((onnx_slot){.list = c->lists_in[0]}).list;
        return TERN_OK;
    }
    return onnx_in(c, 0) ? onnx_give(c, c->in[0])
                         : onnx_fail(c, TERN_ERR_ARGUMENT, "lacks input 0");
}

/* Returns whether input 0 has a value. */
tern_status onnx_has_element(onnx_call *c)
{
    const bool there = c->n_in > 0 && (c->in[0] || c->lists_in[0]);
    return onnx_give(c, tern_tensor_scalar(TERN_SCALAR((int64_t)there), TERN_BOOL, "cpu"));
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

/* Runs the body on item i of each sequence and on the tensors as they are. Sets out[n_out] to
 * references. */
static tern_status run_item(onnx_call *c, const onnx_body *body, int i, onnx_slot *out)
{
    TERN_TRY(onnx_count_turn(c));
    onnx_slot *in = tern_alloc(sizeof *in * (size_t)(c->n_in + 1));
    if (!in)
        return TERN_ERR_MEMORY;
    for (int k = 0; k < c->n_in; k++)
        in[k].x = c->lists_in[k] ? c->lists_in[k]->items[i] : c->in[k];
    const tern_status status = onnx_run_body(c->running, body, in, c->n_in, out, c->n_out);
    tern_free(in);
    return status;
}

tern_status onnx_sequence_map(onnx_call *c)
{
    const onnx_sequence *first = sequence_in(c, 0);
    const onnx_body *body = onnx_body_of(c, "body");
    if (!first || !body)
        return TERN_ERR_ARGUMENT;
    if (body->n_inputs != c->n_in || body->n_outputs != c->n_out)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "a body of %d inputs and %d results for %d and %d",
                         body->n_inputs, body->n_outputs, c->n_in, c->n_out);
    for (int k = 1; k < c->n_in; k++)
        if (c->lists_in[k] && c->lists_in[k]->n != first->n)
            return onnx_fail(c, TERN_ERR_SHAPE, "sequences of %d and %d tensors", first->n,
                             c->lists_in[k]->n);
    onnx_slot *out = tern_alloc(sizeof *out * (size_t)(c->n_out + 1));
    tern_status status = out ? TERN_OK : TERN_ERR_MEMORY;
    for (int k = 0; status == TERN_OK && k < c->n_out; k++)
        if (!(c->lists_out[k] = sequence_of(c, first->n)))
            status = TERN_ERR_MEMORY;
    for (int i = 0; status == TERN_OK && i < first->n; i++) {
        status = run_item(c, body, i, out);
        for (int k = 0; k < c->n_out; k++) {
            if (status == TERN_OK && !out[k].x)
                status = onnx_fail(c, TERN_ERR_UNSUPPORTED, "maps to sequences");
            c->lists_out[k]->items[i] = tern_keep(out[k].x);
            onnx_drop(&out[k]);
        }
    }
    tern_free(out);
    return status;
}

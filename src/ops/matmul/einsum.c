/* einsum.c -- tern_einsum: sums of products in Einstein's notation, computed as matrix products.
 * y[out] is the product of the operands, summed over all labels that are not in `out`. Operands are
 * multiplied two at a time, from the left. Of the labels of both operands, those that are needed
 * later are batch dims of a matrix product, and the others are its summed dim. The labels of one
 * operand alone are its rows or columns. Labels are 0..51 for A-Za-z and 52.. for the dims of an
 * ellipsis. */
#include "tensor/op.h"
#include <ctype.h>
#include <string.h>
#include <tern/ops.h>

enum { LETTERS = 52, LABELS = LETTERS + TERN_MAX_DIMS, MOST_OPERANDS = 32 };

/* A tensor whose dim d has the label at[d]. */
typedef struct term {
    tern_tensor *x;
    int ndim;
    uint8_t at[TERN_MAX_DIMS];
} term;

typedef struct equation {
    term in[MOST_OPERANDS];
    int n;
    int dots; /* dims of the largest ellipsis */
    uint8_t out[TERN_MAX_DIMS];
    int out_ndim;
    int64_t size[LABELS];
    int seen[LABELS]; /* number of operands' dims with that label */
} equation;

/* Returns the label of a letter. Capitals come first, which is the order of an implicit output. */
static int label_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c - 'a' + 26;
}

static char letter_of(int label)
{
    return (char)(label >= LETTERS ? '.' : label < 26 ? 'A' + label : 'a' + label - 26);
}

/* The subscripts of one operand: the labels of its letters, and the number of letters before the
 * ellipsis (-1 if it has none). */
typedef struct subscripts {
    uint8_t at[LABELS];
    int n, dots;
} subscripts;

/* Reads text such as "ij...k" into labels and the position of the ellipsis. Blanks are skipped. */
static tern_status read_subscripts(const char *text, size_t length, const char *whole,
                                   subscripts *s)
{
    *s = (subscripts){.dots = -1};
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == ' ')
            continue;
        if (c == '.') {
            if (s->dots >= 0 || i + 2 >= length || text[i + 1] != '.' || text[i + 2] != '.')
                return tern_fail(TERN_ERR_ARGUMENT,
                                 "tern_einsum: einsum(): found '.' that is not part of any "
                                 "ellipsis, or a second ellipsis (%s)",
                                 whole);
            s->dots = s->n;
            i += 2;
            continue;
        }
        if (!isalpha((unsigned char)c))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_einsum: einsum(): invalid subscript given at index %zu in the "
                             "equation string, subscripts must be in [a-zA-Z] (%s)",
                             (size_t)(text - whole) + i, whole);
        if (s->n == LETTERS)
            return tern_fail(TERN_ERR_ARGUMENT, "tern_einsum: einsum(): too many subscripts");
        s->at[s->n++] = (uint8_t)label_of(c);
    }
    return TERN_OK;
}

/* ---- operands ---------------------------------------------------------------------------- */

/* Replaces dims with the same label ("ii") by their diagonal, a view whose new dim is the last
 * one. */
static tern_status take_diagonals(term *t, int operand)
{
    for (int i = 0; i < t->ndim; i++)
        for (int j = i + 1; j < t->ndim; j++) {
            if (t->at[i] != t->at[j])
                continue;
            if (t->x->shape[i] != t->x->shape[j])
                return tern_fail(TERN_ERR_SHAPE,
                                 "tern_einsum: einsum(): subscript %c is repeated for operand %d "
                                 "but the sizes don't match, %lld != %lld",
                                 letter_of(t->at[i]), operand, (long long)t->x->shape[j],
                                 (long long)t->x->shape[i]);
            if (!(t->x = tern_diagonal(t->x, 0, i, j)))
                return tern_last_status();
            uint8_t label = t->at[i];
            memmove(t->at + j, t->at + j + 1, (size_t)(t->ndim - j - 1));
            memmove(t->at + i, t->at + i + 1, (size_t)(t->ndim - i - 2));
            t->at[t->ndim - 2] = label;
            t->ndim--;
            return take_diagonals(t, operand);
        }
    return TERN_OK;
}

/* Gives each dim of one operand a label. Ellipses are aligned at their last dim, as in
 * broadcasting: the last dim of each ellipsis has the label LABELS - 1. A size of 1 broadcasts. */
static tern_status read_operand(equation *e, const subscripts *s, tern_tensor *x, int operand)
{
    int dots = x->ndim - s->n;
    if (dots < 0 || (dots > 0 && s->dots < 0))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_einsum: einsum(): the number of subscripts in the equation (%d) %s "
                         "for operand %d%s",
                         s->n,
                         s->dots < 0 ? "does not match the number of dimensions"
                                     : "is more than the number of dimensions",
                         operand, s->dots < 0 ? " and no ellipsis was given" : "");
    term *t = &e->in[operand];
    t->x = x;
    t->ndim = x->ndim;
    for (int d = 0, i = 0; d < x->ndim; d++) {
        bool in_dots = s->dots >= 0 && d >= s->dots && d < s->dots + dots;
        t->at[d] = in_dots ? (uint8_t)(LABELS - (dots - (d - s->dots))) : s->at[i++];
    }
    e->dots = dots > e->dots ? dots : e->dots;
    TERN_TRY(take_diagonals(t, operand));
    for (int d = 0; d < t->ndim; d++) {
        int64_t *size = &e->size[t->at[d]], n = t->x->shape[d];
        if (e->seen[t->at[d]]++ == 0 || *size == 1)
            *size = n;
        else if (n != 1 && n != *size)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_einsum: einsum(): subscript %c has size %lld for operand %d "
                             "which does not broadcast with previously seen size %lld",
                             letter_of(t->at[d]), (long long)n, operand, (long long)*size);
    }
    for (int i = 0; i < s->n; i++) /* a label of a diagonal counts twice */
        for (int j = 0; j < i; j++)
            if (s->at[i] == s->at[j])
                e->seen[s->at[i]]++;
    return TERN_OK;
}

/* ---- output ------------------------------------------------------------------------------ */

static tern_status add_out(equation *e, int label)
{
    if (e->out_ndim == TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "tern_einsum: a tensor has at most %d dims",
                         TERN_MAX_DIMS);
    e->out[e->out_ndim++] = (uint8_t)label;
    return TERN_OK;
}

/* Adds to the output the dims of the largest ellipsis, to which the other ellipses broadcast. */
static tern_status add_dots(equation *e)
{
    for (int d = 0; d < e->dots; d++)
        TERN_TRY(add_out(e, LABELS - e->dots + d));
    return TERN_OK;
}

/* Sets the output of an equation without "->": the ellipsis, then all letters that occur once, in
 * order. */
static tern_status implicit_output(equation *e)
{
    TERN_TRY(add_dots(e));
    for (int label = 0; label < LETTERS; label++)
        if (e->seen[label] == 1)
            TERN_TRY(add_out(e, label));
    return TERN_OK;
}

/* Reads the labels after "->". Each occurs once there and in at least one operand. */
static tern_status explicit_output(equation *e, const char *text, const char *whole)
{
    subscripts s;
    TERN_TRY(read_subscripts(text, strlen(text), whole, &s));
    for (int i = 0; i < s.n; i++) {
        if (s.dots == i)
            TERN_TRY(add_dots(e));
        for (int j = 0; j < i; j++)
            if (s.at[j] == s.at[i])
                return tern_fail(
                    TERN_ERR_ARGUMENT,
                    "tern_einsum: einsum(): output subscript %c appears more than once "
                    "in the output",
                    letter_of(s.at[i]));
        if (!e->seen[s.at[i]])
            return tern_fail(TERN_ERR_ARGUMENT,
                             "tern_einsum: einsum(): output subscript %c does not appear in the "
                             "equation for any input operand",
                             letter_of(s.at[i]));
        TERN_TRY(add_out(e, s.at[i]));
    }
    return s.dots == s.n ? add_dots(e) : TERN_OK;
}

/* Reads an equation: the operands' subscripts, separated by commas, then optionally "->" and the
 * output. */
static tern_status read_equation(equation *e, const char *text, tern_tensor *const *operands, int n)
{
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    const char *at = text;
    for (e->n = 0; at <= end; e->n++) {
        subscripts s;
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if (e->n == n)
            return tern_fail(
                TERN_ERR_ARGUMENT,
                "tern_einsum: einsum(): fewer operands were provided than specified in "
                "the equation (%s, %d operands)",
                text, n);
        TERN_TRY(read_subscripts(at, (size_t)(stop - at), text, &s));
        TERN_TRY(read_operand(e, &s, operands[e->n], e->n));
        at = stop + 1;
    }
    if (e->n < n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_einsum: einsum(): more operands were provided than specified in the "
                         "equation (%s, %d operands)",
                         text, n);
    return arrow ? explicit_output(e, arrow + 2, text) : implicit_output(e);
}

/* ---- products ---------------------------------------------------------------------------- */

/* Returns the dim of t that has the label, or -1 if there is none. */
static int place_of(const term *t, int label)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->at[d] == label)
            return d;
    return -1;
}

/* Returns whether the output or an operand from number `next` on has the label. */
static bool is_needed(const equation *e, int label, int next)
{
    for (int i = 0; i < e->out_ndim; i++)
        if (e->out[i] == label)
            return true;
    for (int i = next; i < e->n; i++)
        if (place_of(&e->in[i], label) >= 0)
            return true;
    return false;
}

/* Sums t over the labels that are neither in the output, nor in a later operand, nor in `other`
 * (which may be NULL). This is done before the product, to make it smaller. */
static tern_status sum_unneeded(const equation *e, term *t, const term *other, int next)
{
    tern_shape dims = {.ndim = 0};
    int kept = 0;
    for (int d = 0; d < t->ndim; d++) {
        bool stays = is_needed(e, t->at[d], next) || (other && place_of(other, t->at[d]) >= 0);
        if (stays)
            t->at[kept++] = t->at[d];
        else
            dims.dims[dims.ndim++] = d;
    }
    if (dims.ndim == 0)
        return TERN_OK;
    tern_dtype dtype = t->x->dtype;
    t->ndim = kept;
    t->x = tern_sum_dim(t->x, dims, false);
    if (other) /* sums of integers are int64, but the product has the operands' dtype */
        t->x = tern_to_dtype(t->x, dtype);
    return t->x ? TERN_OK : tern_last_status();
}

/* Returns a view of t's tensor with its dims in the order of `labels`, reshaped to a matrix or a
 * batch of matrices. */
static tern_tensor *arranged(const term *t, const uint8_t *labels, int n, tern_shape shape)
{
    tern_shape order = {.ndim = n};
    for (int i = 0; i < n; i++)
        order.dims[i] = place_of(t, labels[i]);
    return tern_reshape(tern_permute(t->x, order), shape);
}

/* Expands the dims of t of size 1 to the size that `other` has for the same label. */
static tern_status match_sizes(term *t, const term *other)
{
    tern_shape shape = tern_shape_of(t->x);
    for (int d = 0; d < t->ndim; d++) {
        int there = place_of(other, t->at[d]);
        if (there >= 0 && shape.dims[d] == 1)
            shape.dims[d] = other->x->shape[there];
    }
    t->x = tern_expand(t->x, shape);
    return t->x ? TERN_OK : tern_last_status();
}

/* Returns the product of two matrices or of two batches of matrices. gemm does not support bool:
 * the product is computed in int64, and true where it is not 0. */
static tern_tensor *product_of(tern_tensor *l, tern_tensor *r)
{
    tern_dtype dtype = l->dtype;
    if (dtype == TERN_BOOL) {
        l = tern_to_dtype(l, TERN_I64);
        r = tern_to_dtype(r, TERN_I64);
    }
    tern_tensor *y = l && l->ndim == 3 ? tern_bmm(l, r) : tern_mm(l, r);
    return tern_to_dtype(y, dtype);
}

/* Returns whether a label of both a and b that is not needed later has more than one element in
 * both. */
static bool is_summed(const equation *e, const term *a, const term *b, int next)
{
    for (int d = 0; d < a->ndim; d++) {
        int there = place_of(b, a->at[d]);
        if (there >= 0 && a->x->shape[d] != 1 && b->x->shape[there] != 1 &&
            !is_needed(e, a->at[d], next))
            return true;
    }
    return false;
}

/* Prepares a and b for their product: promotes different dtypes, which is an error if products are
 * summed (otherwise the product is elementwise), sums over labels that are not needed, and expands
 * sizes of 1. */
static tern_status prepare(const equation *e, term *a, term *b, int next)
{
    tern_dtype left = a->x->dtype, right = b->x->dtype;
    if (left != right && is_summed(e, a, b, next))
        return tern_fail(TERN_ERR_DTYPE, "tern_einsum: expected scalar type %s but found %s",
                         tern_dtype_name(left), tern_dtype_name(right));
    a->x = tern_to_dtype(a->x, tern_promote_types(left, right));
    b->x = tern_to_dtype(b->x, tern_promote_types(left, right));
    if (!a->x || !b->x)
        return tern_last_status();
    TERN_TRY(sum_unneeded(e, a, b, next));
    TERN_TRY(sum_unneeded(e, b, a, next));
    TERN_TRY(match_sizes(a, b));
    return match_sizes(b, a);
}

/* Sets a to the product of a and b, with the labels (batch, labels of a alone, labels of b alone).
 * It is a matrix product of a as (batch, rows, depth) and b as (batch, depth, columns), where depth
 * stands for the labels of both that are not needed later. */
static tern_status multiply(const equation *e, term *a, term *b, int next)
{
    uint8_t stack[LABELS], own[LABELS], others[LABELS], summed[LABELS], all[LABELS];
    int64_t batch = 1, rows = 1, columns = 1, depth = 1;
    int n_stack = 0, n_own = 0, n_others = 0, n_summed = 0, n = 0;
    TERN_TRY(prepare(e, a, b, next));
    for (int d = 0; d < a->ndim; d++) {
        int64_t size = a->x->shape[d];
        bool both = place_of(b, a->at[d]) >= 0, needed = is_needed(e, a->at[d], next);
        if (both && needed) {
            stack[n_stack++] = a->at[d];
            batch *= size;
        } else if (both) {
            summed[n_summed++] = a->at[d];
            depth *= size;
        } else {
            own[n_own++] = a->at[d];
            rows *= size;
        }
    }
    for (int d = 0; d < b->ndim; d++)
        if (place_of(a, b->at[d]) < 0) {
            others[n_others++] = b->at[d];
            columns *= b->x->shape[d];
        }
    n = n_stack + n_own + n_others;
    memcpy(all, stack, (size_t)n_stack);
    memcpy(all + n_stack, own, (size_t)n_own);
    memcpy(all + n_stack + n_own, others, (size_t)n_others);
    if (n > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "tern_einsum: a tensor has at most %d dims",
                         TERN_MAX_DIMS);
    tern_shape shape = {.ndim = n};
    for (int i = 0; i < n; i++) {
        int d = place_of(a, all[i]);
        shape.dims[i] = d >= 0 ? a->x->shape[d] : b->x->shape[place_of(b, all[i])];
    }
    uint8_t left[LABELS], right[LABELS];
    memcpy(left, all, (size_t)(n_stack + n_own));
    memcpy(left + n_stack + n_own, summed, (size_t)n_summed);
    memcpy(right, stack, (size_t)n_stack);
    memcpy(right + n_stack, summed, (size_t)n_summed);
    memcpy(right + n_stack + n_summed, others, (size_t)n_others);
    tern_tensor *l = arranged(a, left, n_stack + n_own + n_summed,
                              n_stack ? TERN_SHAPE(batch, rows, depth) : TERN_SHAPE(rows, depth));
    tern_tensor *r =
        arranged(b, right, n_stack + n_summed + n_others,
                 n_stack ? TERN_SHAPE(batch, depth, columns) : TERN_SHAPE(depth, columns));
    tern_tensor *y = l && r ? product_of(l, r) : NULL;
    a->x = y ? tern_view(y, shape) : NULL;
    memcpy(a->at, all, (size_t)n);
    a->ndim = n;
    return a->x ? TERN_OK : tern_last_status();
}

/* Multiplies all operands from the left, sums over the remaining labels, and returns a view with
 * the dims in the order of the output. */
static tern_tensor *contract(equation *e)
{
    term y = e->in[0];
    for (int i = 1; i < e->n; i++)
        if (multiply(e, &y, &e->in[i], i + 1) != TERN_OK)
            return NULL;
    if (sum_unneeded(e, &y, NULL, e->n) != TERN_OK)
        return NULL;
    tern_shape order = {.ndim = e->out_ndim};
    for (int i = 0; i < e->out_ndim; i++)
        order.dims[i] = place_of(&y, e->out[i]);
    return tern_permute(y.x, order);
}

tern_tensor *tern_einsum(const char *equation_text, tern_tensor *const *operands, int n)
{
    equation e = {.n = 0};
    if (!equation_text || (!operands && n > 0)) {
        tern_fail_argument_null("tern_einsum", equation_text ? "operands" : "equation");
        return NULL;
    }
    if (n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_einsum: einsum(): must provide at least one operand");
    if (n > MOST_OPERANDS)
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_einsum: at most %d operands, not %d",
                              MOST_OPERANDS, n);
    for (int i = 0; i < n; i++)
        if (!operands[i]) {
            tern_fail_argument_null("tern_einsum", "an operand");
            return NULL;
        }
    tern_tensor *in[MOST_OPERANDS];
    memcpy(in, operands, sizeof *in * (size_t)n);
    TERN_COMPOSED_LIST("einsum", LOWER, in, n);
    return in[0] && read_equation(&e, equation_text, in, n) == TERN_OK ? contract(&e) : NULL;
}

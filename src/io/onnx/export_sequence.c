/* export_sequence.c -- exports recurrent layers and rotary embeddings to ONNX. */
#include "io/onnx/export.h"
#include <string.h>

enum { X, W_IH, W_HH, B_IH, B_HH, H, C };

/* Returns x, of shape (gates hidden, ...), with the gates in ONNX's order: i f c o becomes i o f c,
 * r z h becomes z r h. */
static const char *ordered(onnx_export *w, const char *x, int gates, int64_t hidden)
{
    static const int order[][4] = {[1] = {0}, [3] = {1, 0, 2}, [4] = {0, 3, 1, 2}};
    int64_t sizes[4] = {hidden, hidden, hidden, hidden};
    const char *parts[4], *in_order[4];
    if (gates == 1)
        return x;
    parts[0] = ONNX_EMIT(w, "Split", x, onnx_ints_of(w, sizes, gates));
    onnx_put_int(w, "axis", 0);
    for (int g = 1; g < gates; g++)
        parts[g] = onnx_another(w);
    for (int g = 0; g < gates; g++)
        in_order[g] = parts[order[gates][g]];
    const char *y = onnx_emit(w, "Concat", in_order, gates);
    onnx_put_int(w, "axis", 0);
    return y;
}

/* Returns x with a leading dim of size 1, for the one direction. */
static const char *directed(onnx_export *w, const char *x)
{
    int64_t first = 0;
    return x ? ONNX_EMIT(w, "Unsqueeze", x, onnx_ints_of(w, &first, 1)) : NULL;
}

/* Returns the two biases concatenated, with zeros for a missing one, or NULL if both are
 * missing. */
static const char *biases(onnx_export *w, int gates, int64_t hidden)
{
    const char *both[2];
    if (!onnx_has(w, B_IH) && !onnx_has(w, B_HH))
        return NULL;
    for (int i = 0; i < 2; i++)
        both[i] = onnx_has(w, B_IH + i)
                      ? ordered(w, onnx_in_name(w, B_IH + i), gates, hidden)
                      : onnx_constant_of(
                            w, tern_zeros(TERN_SHAPE(gates * hidden), onnx_in_dtype(w, X), "cpu"));
    const char *y = onnx_emit(w, "Concat", both, 2);
    onnx_put_int(w, "axis", 0);
    return directed(w, y);
}

/* Writes a recurrent layer. x, of shape (rows of all steps, width), is reshaped to (steps, batch,
 * width) and Y back to rows. */
tern_status onnx_write_recurrent(onnx_export *w, const tern_traced_call *c)
{
    int gates = c->op[0] == 'l' ? 4 : c->op[0] == 'g' ? 3 : 1;
    int64_t hidden = onnx_in_shape(w, H).dims[1], steps = onnx_attr(w, "steps");
    tern_shape x = onnx_in_shape(w, X);
    int64_t by_step[] = {steps, -1, x.dims[1]};
    if (x.dims[0] != steps * onnx_in_shape(w, H).dims[0])
        return onnx_cannot(w, "sequences of different lengths");
    bool state = onnx_attr(w, "has_state");
    const char *in[7] = {
        [0] = ONNX_EMIT(w, "Reshape", onnx_in_name(w, X), onnx_ints_of(w, by_step, 3))};
    in[1] = directed(w, ordered(w, onnx_in_name(w, W_IH), gates, hidden));
    in[2] = directed(w, ordered(w, onnx_in_name(w, W_HH), gates, hidden));
    in[3] = biases(w, gates, hidden);
    in[5] = state ? directed(w, onnx_in_name(w, H)) : NULL;
    in[6] = state && gates == 4 ? directed(w, onnx_in_name(w, C)) : NULL;
    const char *y = onnx_emit(w, gates == 4 ? "LSTM" : gates == 3 ? "GRU" : "RNN", in, 7);
    onnx_put_int(w, "hidden_size", hidden);
    if (onnx_attr(w, "reverse"))
        onnx_put_text(w, "direction", "reverse");
    if (gates == 3)
        onnx_put_int(w, "linear_before_reset", 1);
    if (!strcmp(c->op, "rnn_relu"))
        onnx_put_texts(w, "activations", "Relu");
    int states = gates == 4 ? 2 : 1;
    const char *last[2];
    for (int i = 0; i < states; i++)
        last[i] = onnx_another(w);
    onnx_done(w, onnx_reshape_to(w, y, c->out[0]));
    for (int i = 0; i < states; i++)
        onnx_result(w, 1 + i, onnx_reshape_to(w, last[i], c->out[1 + i]));
    return w->status;
}

/* Returns every step-th element of x from start to end of a dim. */
static const char *part(onnx_export *w, const char *x, int64_t dim, int64_t start, int64_t end,
                        int64_t step)
{
    return ONNX_EMIT(w, "Slice", x, onnx_ints_of(w, &start, 1), onnx_ints_of(w, &end, 1),
                     onnx_ints_of(w, &dim, 1), onnx_ints_of(w, &step, 1));
}

/* Returns the rows of table i for the positions of x: (positions, pairs), or (N, positions, pairs)
 * with dims inserted for the other dims of x. */
static const char *turn_of(onnx_export *w, int i, int64_t offset, int64_t length, int x_ndim)
{
    int64_t dims[TERN_MAX_DIMS];
    int n = 0;
    const char *table = part(w, onnx_in_name(w, i), -2, offset, offset + length, 1);
    if (onnx_in_shape(w, i).ndim == 2)
        return table;
    for (int d = 1; d < x_ndim - 2; d++)
        dims[n++] = d;
    return n ? ONNX_EMIT(w, "Unsqueeze", table, onnx_ints_of(w, dims, n)) : table;
}

static const char *cast(onnx_export *w, const char *x, tern_dtype from, tern_dtype to)
{
    if (from == to)
        return x;
    const char *y = ONNX_EMIT(w, "Cast", x);
    onnx_put_int(w, "to", onnx_type_of(to));
    return y;
}

/* Writes a cos - b sin and a sin + b cos for the pairs (a, b) of the first elements of each row:
 * neighbours, or the first half and the second. */
tern_status onnx_write_rotary(onnx_export *w, const tern_traced_call *c)
{
    tern_shape x_shape = onnx_in_shape(w, 0), table = onnx_in_shape(w, 1);
    int64_t pairs = table.dims[table.ndim - 1], width = x_shape.dims[x_shape.ndim - 1], last = -1;
    int64_t offset = onnx_attr(w, "offset"), length = x_shape.dims[x_shape.ndim - 2];
    bool near = onnx_attr(w, "interleaved");
    const char *x = onnx_in_name(w, 0), *parts[3];
    tern_dtype dtype = onnx_in_dtype(w, 0),
               wide = onnx_in_dtype(w, 1); /* for half precision, the tables are float32 */
    if (onnx_attr(w, "back") || (near && 2 * pairs < width))
        return onnx_cannot(w, "neighbours in a part of the width");
    x = cast(w, x, dtype, wide);
    const char *cosine = turn_of(w, 1, offset, length, x_shape.ndim);
    const char *sine = turn_of(w, 2, offset, length, x_shape.ndim);
    const char *a = part(w, x, -1, 0, near ? width : pairs, near ? 2 : 1);
    const char *b = part(w, x, -1, near ? 1 : pairs, 2 * pairs, near ? 2 : 1);
    parts[0] = ONNX_EMIT(w, "Mul", a, cosine);
    parts[0] = ONNX_EMIT(w, "Sub", parts[0], ONNX_EMIT(w, "Mul", b, sine));
    parts[1] = ONNX_EMIT(w, "Mul", a, sine);
    parts[1] = ONNX_EMIT(w, "Add", parts[1], ONNX_EMIT(w, "Mul", b, cosine));
    for (int i = 0; near && i < 2; i++)
        parts[i] = ONNX_EMIT(w, "Unsqueeze", parts[i], onnx_ints_of(w, &last, 1));
    if (2 * pairs < width)
        parts[2] = part(w, x, -1, 2 * pairs, width, 1);
    const char *y = onnx_emit(w, "Concat", parts, 2 * pairs < width ? 3 : 2);
    onnx_put_int(w, "axis", -1);
    y = near ? onnx_reshape_to(w, y, c->out[0]) : y;
    return onnx_done(w, cast(w, y, wide, dtype));
}

/* print.c -- tensors as text, in PyTorch's format (torch/_tensor_str.py, default options). */
#include "base/strict.h"
#include "base/text.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tern/autograd.h>

/* A tensor of more than THRESHOLD elements is summarised: of each dim longer than 2 EDGE, the first
 * and last EDGE are printed. */
enum { PRECISION = 4, THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 80, NUMBER_BYTES = 64 };

typedef enum style { INTEGERS, WHOLE_REALS, FIXED, SCIENTIFIC } style;

typedef struct printer {
    tern_text text;
    const tern_tensor *x; /* the tensor */
    tern_shape shown;     /* the shape of the printed part ... */
    char *data;           /* ... and its elements */
    int64_t at;           /* the next element of data */
    bool summarized;
    style style;
    size_t width; /* the width of the widest number */
} printer;

/* ---- the elements to show ---------------------------------------------------------------- */

static bool is_cut(const printer *p, int d)
{
    return p->summarized && p->x->shape[d] > 2 * EDGE;
}

/* Copies the printed part of x's dims from d on to out, which has the printed shape. */
static tern_status copy_edges(const printer *p, tern_tensor *out, tern_shape part, int d,
                              int64_t out_at, int64_t x_at)
{
    const tern_tensor *x = p->x;
    if (d < x->ndim) {
        bool cut = is_cut(p, d);
        part.dims[d] = cut ? EDGE : x->shape[d];
        TERN_TRY(copy_edges(p, out, part, d + 1, out_at, x_at));
        if (!cut)
            return TERN_OK;
        return copy_edges(p, out, part, d + 1, out_at + EDGE * out->stride[d],
                          x_at + (x->shape[d] - EDGE) * x->stride[d]);
    }
    tern_tensor *to = tern_tensor_alias(out, &part, out->stride, out_at);
    tern_tensor *from = to ? tern_tensor_alias(x, &part, x->stride, x_at) : NULL;
    tern_status status = from ? tern_from_ops->copy(to, from) : tern_last_status();
    tern_release(from);
    tern_release(to);
    return status;
}

static tern_status read_shown(printer *p)
{
    const tern_tensor *x = p->x;
    TERN_TRY(tern_strict_check("tern_to_text", "waits for values of the device"));
    p->shown = tern_shape_of(x);
    p->summarized = x->numel > THRESHOLD;
    int64_t numel = 1;
    for (int d = 0; d < x->ndim; d++) {
        p->shown.dims[d] = is_cut(p, d) ? 2 * EDGE : x->shape[d];
        numel *= p->shown.dims[d];
    }
    size_t bytes = (size_t)numel * tern_dtype_size(x->dtype);
    if (!(p->data = tern_alloc(bytes)))
        return TERN_ERR_MEMORY;
    if (numel == x->numel)
        return tern_copy_to_host(x, p->data, bytes);
    tern_tensor *edges = tern_tensor_new(&p->shown, x->dtype, x->storage->place, "tern_to_text");
    if (!edges)
        return tern_last_status();
    tern_shape part = {.ndim = x->ndim};
    tern_status status = copy_edges(p, edges, part, 0, 0, x->offset);
    if (status == TERN_OK)
        status = tern_copy_to_host(edges, p->data, bytes);
    tern_release(edges);
    return status;
}

/* ---- numbers ----------------------------------------------------------------------------- */

static size_t write_number(const printer *p, tern_scalar value, char number[NUMBER_BYTES])
{
    double v = tern_scalar_to_real(value);
    int n;
    if (value.kind == TERN_SCALAR_BOOL)
        n = snprintf(number, NUMBER_BYTES, value.value.integer ? "True" : "False");
    else if (p->x->dtype == TERN_U64)
        n = snprintf(number, NUMBER_BYTES, "%llu", (unsigned long long)value.value.integer);
    else if (value.kind == TERN_SCALAR_INT)
        n = snprintf(number, NUMBER_BYTES, "%lld", (long long)value.value.integer);
    else if (isnan(v))
        n = snprintf(number, NUMBER_BYTES, "nan");
    else if (isinf(v))
        n = snprintf(number, NUMBER_BYTES, v > 0 ? "inf" : "-inf");
    else if (p->style == SCIENTIFIC)
        n = snprintf(number, NUMBER_BYTES, "%.*e", PRECISION, v);
    else if (p->style == FIXED)
        n = snprintf(number, NUMBER_BYTES, "%.*f", PRECISION, v);
    else
        n = snprintf(number, NUMBER_BYTES, "%.0f.", v);
    return (size_t)n;
}

/* Chooses one style and one width for all numbers, from the finite numbers that are not zero. */
static void choose_style(printer *p)
{
    int64_t numel = tern_shape_numel(&p->shown, "tern_to_text");
    bool real = tern_dtype_is_floating_point(p->x->dtype), whole = true;
    double least = INFINITY, most = 0;
    char number[NUMBER_BYTES];
    for (int64_t i = 0; i < numel && real; i++) {
        double v = fabs(tern_scalar_to_real(tern_element(p->data, p->x->dtype, i)));
        if (v == 0 || !isfinite(v))
            continue;
        least = v < least ? v : least;
        most = v > most ? v : most;
        whole = whole && v == ceil(v);
    }
    bool wide = most > 0 && (most / least > 1000 || most > 1e8 || (!whole && least < 1e-4));
    p->style = !real ? INTEGERS : wide ? SCIENTIFIC : whole ? WHOLE_REALS : FIXED;
    p->width = 1;
    for (int64_t i = 0; i < numel; i++) {
        tern_scalar value = tern_element(p->data, p->x->dtype, i);
        double v = tern_scalar_to_real(value);
        size_t n = real && (v == 0 || !isfinite(v)) ? 0 : write_number(p, value, number);
        p->width = n > p->width ? n : p->width;
    }
}

/* ---- brackets and lines ------------------------------------------------------------------ */

static void add_number(printer *p)
{
    char number[NUMBER_BYTES];
    size_t n = write_number(p, tern_element(p->data, p->x->dtype, p->at++), number);
    int blanks = n < p->width ? (int)(p->width - n) : 0;
    tern_text_add(&p->text, "%*s%s", blanks, "", number);
}

static void add_row(printer *p, int d, int indent)
{
    int64_t n = p->shown.dims[d], items = n + is_cut(p, d);
    int64_t each = (LINE_WIDTH - indent) / (int64_t)(p->width + 2);
    int64_t line = each > 1 ? each : 1;
    for (int64_t i = 0; i < items; i++) {
        if (i > 0 && i % line == 0)
            tern_text_add(&p->text, ",\n%*s", indent + 1, "");
        else if (i > 0)
            tern_text_add(&p->text, ", ");
        if (is_cut(p, d) && i == EDGE)
            tern_text_add(&p->text, " ...");
        else
            add_number(p);
    }
}

static void add_dim(printer *p, int d, int indent)
{
    int dims = p->shown.ndim - d;
    if (dims == 0) {
        add_number(p);
        return;
    }
    tern_text_add(&p->text, "[");
    if (dims == 1)
        add_row(p, d, indent);
    for (int64_t i = 0; i < p->shown.dims[d] && dims > 1; i++) {
        for (int more = is_cut(p, d) && i == EDGE; more >= 0; more--) {
            if (i > 0) {
                tern_text_add(&p->text, ",");
                for (int k = 1; k < dims; k++)
                    tern_text_add(&p->text, "\n");
                tern_text_add(&p->text, "%*s", indent + 1, "");
            }
            if (more)
                tern_text_add(&p->text, "...");
        }
        add_dim(p, d + 1, indent + 1);
    }
    tern_text_add(&p->text, "]");
}

/* ---- after the elements ------------------------------------------------------------------ */

enum { INDENT = 7 }; /* the width of "tensor(" */

static void add_suffix(printer *p, size_t *line, const char *suffix)
{
    size_t n = strlen(suffix);
    if (*line + n + 2 > LINE_WIDTH) {
        tern_text_add(&p->text, ",\n%*s%s", INDENT, "", suffix);
        *line = INDENT + n;
    } else {
        tern_text_add(&p->text, ", %s", suffix);
        *line += n + 2;
    }
}

/* Sets name to the node's name: SliceBackwardBackward0 for "slice_backward", or CopySlices. */
static void name_node(const char *op, char *name, size_t capacity)
{
    size_t n = 0;
    bool up = true;
    for (; *op && n + 1 < capacity; op++) {
        if (*op != '_')
            name[n++] = (char)(up ? toupper((unsigned char)*op) : *op);
        up = *op == '_';
    }
    name[n] = '\0';
    if (strcmp(name, "CopySlices") != 0)
        snprintf(name + n, capacity - n, "Backward0");
}

static void add_suffixes(printer *p)
{
    const tern_tensor *x = p->x;
    char suffix[400], name[128];
    const char *newline = strrchr(p->text.data, '\n');
    size_t line = newline ? strlen(newline) : p->text.length + 2;
    bool plain =
        x->dtype == TERN_F32 || (x->numel && (x->dtype == TERN_I64 || x->dtype == TERN_BOOL));
    if (strcmp(tern_place_kind(x->storage->place), "cpu") != 0) {
        snprintf(suffix, sizeof suffix, "device='%s'", tern_device(x));
        add_suffix(p, &line, suffix);
    }
    if (x->numel == 0 && x->ndim != 1) {
        tern_shape shape = tern_shape_of(x);
        tern_shape_text list = tern_shape_to_text(&shape); /* "[0, 3]" */
        snprintf(suffix, sizeof suffix, "size=(%.*s)", (int)strlen(list.text) - 2, list.text + 1);
        add_suffix(p, &line, suffix);
    }
    if (!plain) {
        snprintf(suffix, sizeof suffix, "dtype=torch.%s", tern_dtype_name(x->dtype));
        add_suffix(p, &line, suffix);
    }
    const char *op = tern_grad_fn(x);
    if (op) {
        name_node(op, name, sizeof name);
        snprintf(suffix, sizeof suffix, "grad_fn=<%s>", name);
        add_suffix(p, &line, suffix);
    } else if (tern_requires_grad(x)) {
        add_suffix(p, &line, "requires_grad=True");
    }
    tern_text_add(&p->text, ")");
}

/* ---- the public functions ---------------------------------------------------------------- */

char *tern_to_text(const tern_tensor *x)
{
    if (!tern_given(x, "tern_to_text", "x"))
        return NULL;
    printer p = {.x = x};
    tern_text_add(&p.text, "tensor(");
    if (x->numel == 0) {
        tern_text_add(&p.text, "[]");
    } else if (read_shown(&p) == TERN_OK) {
        choose_style(&p);
        add_dim(&p, 0, INDENT);
    } else {
        p.text.failed = true;
    }
    if (!p.text.failed)
        add_suffixes(&p);
    tern_free(p.data);
    if (!p.text.failed)
        return p.text.data;
    tern_text_free(&p.text);
    return NULL;
}

void tern_free_text(char *text)
{
    tern_free(text);
}

tern_status tern_print(const tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    char *text = tern_to_text(x);
    if (!text)
        return tern_last_status();
    bool written = fputs(text, stdout) >= 0 && fputc('\n', stdout) >= 0;
    tern_free_text(text);
    return written ? TERN_OK : tern_fail(TERN_ERR_IO, "tern_print: stdout takes no more text");
}

/* summary.c -- a table of a model's layers, output shapes and parameters. */
#include "base/memory.h"
#include "base/text.h"
#include "nn/module.h"
#include <stdio.h>
#include <string.h>

/* A line of the table: a module, its output's shape and its own parameters. */
typedef struct row {
    tern_module *m;
    char *label; /* "    (1): ReLU" */
    int depth;
    int hook;
    bool training; /* the mode before the summary */
    char shape[128];
    int64_t parameters, trained; /* without children's */
} row;

typedef struct summary {
    row *rows;
    int count, capacity;
    int64_t result_bytes; /* outputs of modules without children */
} summary;

/* A number with commas, as 1,234,567. */
typedef struct number_text {
    char text[32];
} number_text;

static number_text with_commas(int64_t value)
{
    number_text out = {""};
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)value), at = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    return out;
}

/* ---- rows -------------------------------------------------------------------------------- */

/* Counts the parameters of the module without its children. */
static tern_status count_own(const char *path, tern_tensor *x, void *user)
{
    row *r = user;
    (void)path;
    r->parameters += tern_numel(x);
    r->trained += tern_requires_grad(x) ? tern_numel(x) : 0;
    return TERN_OK;
}

static char *label_of(const char *path, const tern_module *m, int depth)
{
    const char *name = strrchr(path, '.');
    tern_text text = {0};
    if (depth == 0)
        tern_text_add(&text, "%s", m->name);
    else
        tern_text_add(&text, "%*s(%s): %s", 2 * depth, "", name ? name + 1 : path, m->name);
    return text.data;
}

static tern_status add_row(const char *path, tern_module *m, void *user)
{
    summary *s = user;
    int depth = *path != '\0';
    for (const char *c = path; *c; c++)
        depth += *c == '.';
    if (s->count == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 16;
        row *rows = tern_grow(s->rows, sizeof *rows * (size_t)capacity);
        if (!rows)
            return TERN_ERR_MEMORY;
        s->rows = rows;
        s->capacity = capacity;
    }
    row *r = &s->rows[s->count];
    *r = (row){.m = m, .label = label_of(path, m, depth), .depth = depth, .training = m->training};
    if (!r->label)
        return TERN_ERR_MEMORY;
    s->count++;
    return tern_nn_each_parameter_with(m, count_own, r, &(tern_each_options){.not_recurse = true});
}

/* ---- forward pass ---------------------------------------------------------------------------- */

/* A forward hook: records the output shape of a module's first run, and adds the bytes of outputs
 * of modules without children, so that none is counted twice. */
static tern_status note_shape(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                              int k, void *user)
{
    summary *s = user;
    (void)in;
    (void)n;
    for (int i = 0; i < s->count && k > 0; i++) {
        row *r = &s->rows[i];
        if (r->m != m || *r->shape)
            continue;
        tern_shape shape = tern_shape_of(out[0]);
        tern_format_list(r->shape, sizeof r->shape, shape.dims, shape.ndim);
    }
    for (int i = 0; i < k && tern_nn_children_count(m) == 0; i++)
        s->result_bytes += tern_numel(out[i]) * (int64_t)tern_dtype_size(tern_dtype_of(out[i]));
    return TERN_OK;
}

/* Runs one forward pass in evaluation mode, then restores modes and hooks. */
static tern_status run(summary *s, tern_module *m, tern_tensor *const *in, int n)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < s->count && status == TERN_OK; i++) {
        s->rows[i].hook = tern_nn_register_forward_hook(s->rows[i].m, note_shape, s);
        status = s->rows[i].hook ? TERN_OK : tern_last_status();
    }
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *out = NULL;
                tern_nn_eval(m);
                status = tern_nn_call(m, in, n, &out, 1);
            }
    for (int i = 0; i < s->count; i++) {
        s->rows[i].m->training = s->rows[i].training;
        if (s->rows[i].hook)
            tern_nn_remove_hook(s->rows[i].m, s->rows[i].hook);
    }
    return status;
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct totals {
    int64_t parameters, trained, bytes;
} totals;

static tern_status add_parameter(const char *path, tern_tensor *x, void *user)
{
    totals *t = user;
    (void)path;
    t->parameters += tern_numel(x);
    t->trained += tern_requires_grad(x) ? tern_numel(x) : 0;
    t->bytes += tern_numel(x) * (int64_t)tern_dtype_size(tern_dtype_of(x));
    return TERN_OK;
}

static void add_line(tern_text *text, int width)
{
    for (int i = 0; i < width; i++)
        tern_text_add(text, "=");
    tern_text_add(text, "\n");
}

/* Columns are as wide as their longest entry. */
static void add_table(tern_text *text, const summary *s, int depth)
{
    int label = 12, shape = 12;
    for (int i = 0; i < s->count; i++) {
        int a = (int)strlen(s->rows[i].label), b = (int)strlen(s->rows[i].shape);
        label = a > label ? a : label;
        shape = b > shape ? b : shape;
    }
    int width = label + shape + 31;
    tern_text_add(text, "%-*s  %-*s  %15s  %s\n", label, "Layer", shape, "Output shape",
                  "Parameters", "Trained");
    add_line(text, width);
    for (int i = 0; i < s->count; i++) {
        const row *r = &s->rows[i];
        if (depth > 0 && r->depth > depth)
            continue;
        const char *trained = r->parameters == 0            ? "--"
                              : r->trained == r->parameters ? "yes"
                              : r->trained == 0             ? "no"
                                                            : "partly";
        tern_text_add(text, "%-*s  %-*s  %15s  %s\n", label, r->label, shape,
                      *r->shape ? r->shape : "--",
                      r->parameters ? with_commas(r->parameters).text : "--", trained);
    }
    add_line(text, width);
}

static tern_status add_totals(tern_text *text, const summary *s, tern_module *m)
{
    totals parameters = {0}, buffers = {0};
    TERN_TRY(tern_nn_each_parameter(m, add_parameter, &parameters));
    TERN_TRY(tern_nn_each_buffer(m, add_parameter, &buffers));
    const struct {
        const char *what;
        int64_t value;
    } lines[] = {
        {"Parameters", parameters.parameters},
        {"  trained", parameters.trained},
        {"  not trained", parameters.parameters - parameters.trained},
        {"Bytes of parameters", parameters.bytes},
        {"Bytes of buffers", buffers.bytes},
        {"Bytes of layers' results", s->result_bytes},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        tern_text_add(text, "%-24s  %15s\n", lines[i].what, with_commas(lines[i].value).text);
    return TERN_OK;
}

char *tern_nn_summary(tern_module *m, tern_tensor *const *in, int n,
                      const tern_summary_options *options)
{
    TERN_NAMED_IN_ERRORS;
    TERN_MODULE_GIVEN(m, __func__);
    summary s = {0};
    tern_text text = {0};
    if (!m || (!in && n > 0)) {
        tern_fail_argument_null(__func__, m ? "in" : "m");
        return NULL;
    }
    tern_status status = tern_nn_each_module(m, add_row, &s);
    if (status == TERN_OK && n > 0)
        status = run(&s, m, in, n);
    if (status == TERN_OK) {
        add_table(&text, &s, options ? options->depth : 0);
        status = add_totals(&text, &s, m);
    }
    for (int i = 0; i < s.count; i++)
        tern_free(s.rows[i].label);
    tern_free(s.rows);
    if (status != TERN_OK || text.failed)
        tern_text_free(&text);
    return text.data;
}

tern_status tern_nn_print_summary(tern_module *m, tern_tensor *const *in, int n,
                                  const tern_summary_options *options)
{
    TERN_NAMED_IN_ERRORS;
    char *text = tern_nn_summary(m, in, n, options);
    if (!text)
        return tern_last_status();
    fputs(text, stdout);
    tern_free(text);
    return TERN_OK;
}

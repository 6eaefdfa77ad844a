/* table.c -- sorts rows, and formats them as a table. */
#include "profile/profile.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The fields that a table can be sorted by. */
static const struct field {
    const char *name;
    size_t at;
    bool is_real;
} fields[] = {
#define FIELD(NAME, REAL)                                                                          \
    {                                                                                              \
#NAME, offsetof(tern_profiler_row, NAME), REAL                                             \
    }
    FIELD(self_device_ns, false), FIELD(device_ns, false), FIELD(self_host_ns, false),
    FIELD(host_ns, false),        FIELD(calls, false),     FIELD(launches, false),
    FIELD(flops, true),           FIELD(copied, false),    FIELD(allocated, false),
#undef FIELD
};

static double value_of(const tern_profiler_row *row, const struct field *field)
{
    const char *at = (const char *)row + field->at;
    return field->is_real ? *(const double *)at : (double)*(const int64_t *)at;
}

/* A row and the value that it is sorted by. */
typedef struct keyed_row {
    tern_profiler_row row;
    double key;
} keyed_row;

static int compare(const void *a, const void *b)
{
    const keyed_row *x = a, *y = b;
    double d = y->key - x->key;
    if (d == 0)
        d = (double)(y->row.self_host_ns - x->row.self_host_ns);
    return d > 0 ? 1 : d < 0 ? -1 : strcmp(x->row.name, y->row.name);
}

static void sort(tern_profiler_row *rows, int64_t n, const struct field *field)
{
    keyed_row *keyed = tern_alloc(sizeof *keyed * (size_t)n);
    if (!keyed)
        return; /* the rows stay unsorted */
    for (int64_t i = 0; i < n; i++)
        keyed[i] = (keyed_row){rows[i], value_of(&rows[i], field)};
    qsort(keyed, (size_t)n, sizeof *keyed, compare);
    for (int64_t i = 0; i < n; i++)
        rows[i] = keyed[i].row;
    tern_free(keyed);
}

static int64_t sorted(tern_profiler *p, bool by_module, const struct field *field,
                      tern_profiler_row **rows)
{
    int64_t n = tern_profile_rows(p, by_module, rows);
    if (n > 0)
        sort(*rows, n, field);
    return n;
}

bool tern_profiler_row_at(tern_profiler *p, int i, tern_profiler_row *row)
{
    tern_profiler_row *rows = NULL, zero = {0};
    int64_t n = p ? sorted(p, false, &fields[0], &rows) : 0;
    bool there = i >= 0 && i < n;
    if (row)
        *row = there ? rows[i] : zero;
    tern_free(rows);
    return there;
}

/* Formats a time as in PyTorch's tables, "12.345ms". */
static void add_time(tern_text *text, double ns)
{
    if (ns >= 1e9)
        tern_text_add(text, "%11.3fs ", ns / 1e9);
    else if (ns >= 1e6)
        tern_text_add(text, "%11.3fms", ns / 1e6);
    else
        tern_text_add(text, "%11.3fus", ns / 1e3);
}

static void add_line(tern_text *text, int width, bool by_module)
{
    for (int i = 0; i < width + 103 + (by_module ? 24 : 0); i++)
        tern_text_add_bytes(text, "-", 1);
    tern_text_add_bytes(text, "\n", 1);
}

static void add_row(tern_text *text, const tern_profiler_row *row, int width, const double *whole)
{
    tern_text_add(text, "%-*.*s", width, width, row->name);
    if (row->module)
        tern_text_add(text, "  %-22.22s", row->module);
    tern_text_add(text, "%8.2f%%", whole[0] > 0 ? 100 * (double)row->self_host_ns / whole[0] : 0);
    add_time(text, (double)row->self_host_ns);
    add_time(text, (double)row->host_ns);
    tern_text_add(text, "%8.2f%%", whole[1] > 0 ? 100 * (double)row->self_device_ns / whole[1] : 0);
    add_time(text, (double)row->self_device_ns);
    add_time(text, (double)row->device_ns);
    tern_text_add(text, "%9lld%10lld%13.3f\n", (long long)row->calls, (long long)row->launches,
                  row->flops / 1e6);
}

static void write_table(tern_text *text, const tern_profiler_row *rows, int64_t n,
                        const tern_profiler_table_options *o)
{
    int width = 20;
    double whole[2] = {0, 0};
    int64_t most = o->rows > 0 ? o->rows : 100;
    for (int64_t i = 0; i < n; i++) {
        int length = (int)strlen(rows[i].name);
        width = i < most && length > width ? length : width;
        whole[0] += (double)rows[i].self_host_ns;
        whole[1] += (double)rows[i].self_device_ns;
    }
    add_line(text, width = width > 60 ? 60 : width, o->by_module);
    tern_text_add(text, "%-*s", width, "Name");
    if (o->by_module)
        tern_text_add(text, "  %-22s", "Module");
    tern_text_add(text, "%9s%13s%13s%9s%13s%13s%9s%10s%13s\n", "Self host", "Self host",
                  "Host total", "Self dev", "Self device", "Device total", "Calls", "Launches",
                  "MFLOP");
    add_line(text, width, o->by_module);
    for (int64_t i = 0; i < n && i < most; i++)
        add_row(text, &rows[i], width, whole);
    add_line(text, width, o->by_module);
    tern_text_add(text, "Self host time total:");
    add_time(text, whole[0]);
    tern_text_add(text, "\nSelf device time total:");
    add_time(text, whole[1]);
    tern_text_add(text, "\n");
}

char *tern_profiler_table(tern_profiler *p, const tern_profiler_table_options *options)
{
    tern_profiler_table_options o = options ? *options : tern_profiler_table_defaults();
    const struct field *by = o.sort_by ? NULL : &fields[0];
    for (size_t i = 0; !by && i < sizeof fields / sizeof *fields; i++)
        by = strcmp(fields[i].name, o.sort_by) == 0 ? &fields[i] : NULL;
    if (!p) {
        tern_fail_argument_null("tern_profiler_table", "profiler");
        return NULL;
    }
    if (!by)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_profiler_table: sort_by is no field of a row: %.40s",
                              o.sort_by);
    tern_profiler_row *rows = NULL;
    int64_t n = sorted(p, o.by_module, by, &rows);
    tern_text text = {.failed = n < 0};
    write_table(&text, rows, n, &o);
    tern_free(rows);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return tern_fail_null(TERN_ERR_MEMORY, "tern_profiler_table: out of memory");
}

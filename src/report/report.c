/* report.c -- reports: values, steps, the progress line, the summary. */
#include "report/report.h"
#include "base/os.h"
#include "base/columns.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

tern_report_options tern_report_defaults(void)
{
    return (tern_report_options){.reserved[0] = TERN_OPTIONS_AS_WRITTEN};
}

static double now(void)
{
    return 1e-9 * (double)tern_os_now();
}

static tern_status no_memory(const char *function)
{
    return tern_fail(TERN_ERR_MEMORY, "%s: out of memory", function);
}

static tern_status given(const void *report, const char *function)
{
    return report ? TERN_OK : tern_fail(TERN_ERR_ARGUMENT, "%s: report must not be NULL", function);
}

static char *join(const char *folder, const char *name)
{
    size_t capacity = strlen(folder) + strlen(name) + 2;
    char *path = malloc(capacity);
    if (path)
        snprintf(path, capacity, "%s/%s", folder, name);
    return path;
}

/* ---- making and freeing ------------------------------------------------------------------ */

static void release(tern_report *r)
{
    for (int i = 0; i < r->n_series; i++) {
        free(r->series[i].name);
        free(r->series[i].points);
        free(r->series[i].source);
    }
    if (r->csv)
        fclose(r->csv);
    if (r->events)
        fclose(r->events);
    free(r->series);
    free(r->folder);
    free(r->unit);
    free(r->csv_path);
    free(r->events_path);
    free(r);
}

static tern_status open_files(tern_report *r)
{
    const tern_report_options *o = &r->options;
    if (!o->csv && !o->svg && !o->tensorboard)
        return TERN_OK;
    if (!*r->folder)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_report_new: files are wanted, and no folder is given");
    if (tern_os_mkdir(r->folder, 0777) != 0 && errno != EEXIST)
        return tern_report_io("tern_report_new", r->folder);
    if (o->csv) {
        if (!(r->csv_path = join(r->folder, "metrics.csv")))
            return no_memory("tern_report_new");
        tern_status status = tern_report_read_rows(r);
        if (status != TERN_OK)
            return status;
        if (!(r->csv =
                  tern_os_fopen(r->csv_path, "ab"))) /* nothing is written before the first step
                                                        is known */
            return tern_report_io("tern_report_new", r->csv_path);
    }
    return o->tensorboard ? tern_report_open_events(r) : TERN_OK;
}

tern_report *tern_report_new(const char *folder, const tern_report_options *options)
{
    tern_report *r = calloc(1, sizeof *r);
    if (r) {
        r->options = options ? *options : tern_report_defaults();
        r->folder = strdup(folder ? folder : "");
        r->unit = strdup(r->options.unit ? r->options.unit : "items");
    }
    if (!r || !r->folder || !r->unit) {
        if (r)
            release(r);
        no_memory("tern_report_new");
        return NULL;
    }
    r->options.stream = r->options.stream ? r->options.stream : stdout;
    r->terminal = tern_os_isatty(fileno(r->options.stream));
    if (r->options.interval <= 0)
        r->options.interval = r->terminal ? 0.1 : INFINITY;
    r->begin = r->shown = now();
    if (open_files(r) == TERN_OK)
        return r;
    release(r);
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------ */

tern_status tern_report_value(tern_report *r, const char *name, int64_t step, double value)
{
    static const char *const function = "tern_report_value";
    tern_status status = given(r, function);
    if (status != TERN_OK)
        return status;
    if (!name || !*name || strpbrk(name, ",\"\n\r"))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: a name without commas, quotes and new lines is expected", function);
    tern_report_begin(r, step);
    tern_report_series *s = tern_report_series_of(r, name);
    if (s && s->n > 0 && s->points[s->n - 1].step > step)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: step %lld of %s after step %lld", function,
                         (long long)step, name, (long long)s->points[s->n - 1].step);
    const tern_report_point point = {step, r->time_before + now() - r->begin,
                                     isnan(value) ? fabs(value) : value};
    if (!s || !tern_report_add_point(s, point))
        return no_memory(function);
    return r->events ? tern_report_write_event(r, name, step, value) : TERN_OK;
}

tern_status tern_report_compare(tern_report *r, const char *name, double reference,
                                const char *source)
{
    tern_status status = given(r, "tern_report_compare");
    if (status != TERN_OK)
        return status;
    tern_report_series *s = name && *name ? tern_report_series_of(r, name) : NULL;
    char *copy = s ? strdup(source ? source : "reference") : NULL;
    if (!copy)
        return name && *name ? no_memory("tern_report_compare")
                             : tern_fail(TERN_ERR_ARGUMENT, "tern_report_compare: no name");
    free(s->source);
    s->source = copy;
    s->reference = reference;
    s->compared = true;
    return TERN_OK;
}

/* ---- progress ---------------------------------------------------------------------------- */

double tern_report_rate(const tern_report *r)
{
    double passed = r ? now() - r->begin : 0;
    return r && r->items > 0 && passed > 0 ? (double)r->items / passed : 0;
}

/* Formats seconds as "1:02:03" or "2:03". */
static const char *clock_text(double seconds, char text[32])
{
    long long s = (long long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, 32, "%lld:%02lld", s / 60, s % 60);
    return text;
}

static void put_progress(const tern_report *r, FILE *out)
{
    char left[32];
    int64_t steps = r->options.steps;
    double passed = now() - r->begin;
    fprintf(out, "step %lld", (long long)r->step);
    if (steps > 0)
        fprintf(out, "/%lld", (long long)steps);
    if (r->items > 0)
        fprintf(out, "  %.4g %s/s", tern_report_rate(r), r->unit);
    if (steps > r->step && r->step > r->before)
        fprintf(
            out, "  %s left",
            clock_text(passed * (double)(steps - r->step) / (double)(r->step - r->before), left));
    for (int i = 0; i < r->n_series; i++)
        if (r->series[i].n > 0)
            fprintf(out, "  %s %.4g", r->series[i].name,
                    r->series[i].points[r->series[i].n - 1].value);
}

/* Prints the progress line, truncated to the current width of the terminal: a line that wraps could
 * not be overwritten by the next. */
static void show(tern_report *r)
{
    tern_os_text text;
    FILE *out = r->options.stream, *memory = tern_os_text_begin(&text);
    if (memory)
        put_progress(r, memory);
    char *line = tern_os_text_end(&text);
    if (line && r->terminal)
        fprintf(out, "\r\033[K%.*s", tern_columns_cut(line, tern_os_columns(out) - 1), line);
    else if (line)
        fprintf(out, "%s\n", line);
    free(line);
    r->line_open = r->terminal;
    fflush(out);
}

tern_status tern_report_step(tern_report *r, int64_t step, int64_t items)
{
    tern_status status = given(r, "tern_report_step");
    if (status != TERN_OK)
        return status;
    tern_report_begin(r, step);
    if (r->step == 0)
        r->before = step - 1;
    r->step = step;
    r->items += items;
    double t = now();
    bool last = r->options.steps > 0 && step >= r->options.steps;
    if (!r->options.quiet && (last || t - r->shown >= r->options.interval)) {
        r->shown = t;
        show(r);
    }
    return r->csv ? tern_report_write_rows(r, step) : TERN_OK;
}

/* ---- the end ----------------------------------------------------------------------------- */

static void summarize(tern_report *r)
{
    char text[32];
    FILE *out = r->options.stream;
    if (r->line_open)
        putc('\n', out);
    fprintf(out, "%lld steps in %s", (long long)(r->step - r->before),
            clock_text(now() - r->begin, text));
    if (r->items > 0)
        fprintf(out, ", %.4g %s/s", tern_report_rate(r), r->unit);
    putc('\n', out);
    for (int i = 0; i < r->n_series; i++) {
        const tern_report_series *s = &r->series[i];
        if (s->compared && s->n > 0)
            fprintf(out, "%s %.4g; %s: %.4g\n", s->name, s->points[s->n - 1].value, s->source,
                    s->reference);
    }
    fflush(out);
}

const char *tern_report_path(const tern_report *r, const char *kind)
{
    if (!r || !kind)
        return NULL;
    return strcmp(kind, "csv") == 0                     ? r->csv_path
           : strcmp(kind, "tensorboard") == 0           ? r->events_path
           : strcmp(kind, "svg") == 0 && r->options.svg ? r->folder
                                                        : NULL;
}

/* Closes a file; a full disk may be reported only now. */
static tern_status end_file(FILE **file, const char *path)
{
    bool good = !*file || (!ferror(*file) & (fclose(*file) == 0));
    *file = NULL;
    return good ? TERN_OK : tern_report_io("tern_report_close", path);
}

tern_status tern_report_close(tern_report *r)
{
    if (!r)
        return TERN_OK;
    tern_status status = r->csv ? tern_report_write_rows(r, INT64_MAX) : TERN_OK;
    for (int i = 0; r->options.svg && status == TERN_OK && i < r->n_series; i++)
        if (r->series[i].n > 0)
            status = tern_report_write_svg(r, &r->series[i]);
    tern_status csv = end_file(&r->csv, r->csv_path), events = end_file(&r->events, r->events_path);
    status = status != TERN_OK ? status : csv != TERN_OK ? csv : events;
    if (!r->options.quiet)
        summarize(r);
    release(r);
    return status;
}

/* csv.c -- metrics.csv: a row for each step, after the rows of the run that is resumed. A new name
 * is a new column, for which the whole file is rewritten. */
#include "report/report.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

/* Finds the first step before `limit` that is not in the file yet, over all series; returns false
 * if there is none. */
static bool next_step(const tern_report *r, int64_t limit, int64_t *step, double *time)
{
    bool found = false;
    for (int i = 0; i < r->n_series; i++) {
        const tern_report_series *s = &r->series[i];
        const tern_report_point *p = s->written < s->n ? &s->points[s->written] : NULL;
        if (!p || p->step >= limit || (found && p->step >= *step))
            continue;
        found = true;
        *step = p->step;
        *time = p->time;
    }
    return found;
}

/* Writes a row; if a step has several values of a name, the last is written. */
static void put_row(tern_report *r, int64_t step, double time)
{
    const tern_os_locale before = tern_os_locale_enter();
    fprintf(r->csv, "%lld,%.3f", (long long)step, time);
    for (int i = 0; i < r->n_series; i++) {
        tern_report_series *s = &r->series[i];
        const tern_report_point *last = NULL;
        while (s->written < s->n && s->points[s->written].step <= step)
            last = &s->points[s->written++];
        putc(',', r->csv);
        if (last && last->step == step)
            fprintf(r->csv, "%.9g", last->value);
    }
    putc('\n', r->csv);
    tern_os_locale_leave(before);
}

/* Rewrites the whole file to path, a temporary file that replaces metrics.csv when it is
 * complete. */
static tern_status write_again(tern_report *r, int64_t limit, const char *path)
{
    int64_t step = 0;
    double time = 0;
    FILE *file = tern_os_fopen(path, "wb");
    if (!file)
        return tern_report_io("tern_report_step", path);
    fclose(r->csv);
    r->csv = file;
    fputs("step,time", r->csv);
    for (int i = 0; i < r->n_series; i++) {
        r->series[i].written = 0;
        fprintf(r->csv, ",%s", r->series[i].name);
    }
    putc('\n', r->csv);
    r->columns = r->n_series;
    while (next_step(r, limit, &step, &time))
        put_row(r, step, time);
    if (fflush(r->csv) != 0)
        return tern_report_io("tern_report_step", path);
    return tern_os_rename(path, r->csv_path) == 0 ? TERN_OK
                                                  : tern_report_io("tern_report_step", r->csv_path);
}

tern_status tern_report_write_rows(tern_report *r, int64_t limit)
{
    int64_t step = 0;
    double time = 0;
    if (!next_step(r, limit, &step, &time))
        return TERN_OK;
    if (r->columns != r->n_series) {
        size_t capacity = strlen(r->csv_path) + 5;
        char *path = malloc(capacity);
        if (!path)
            return tern_fail(TERN_ERR_MEMORY, "tern_report_step: out of memory");
        snprintf(path, capacity, "%s.new", r->csv_path);
        tern_status status = write_again(r, limit, path);
        free(path);
        return status;
    }
    while (next_step(r, limit, &step, &time))
        put_row(r, step, time);
    return fflush(r->csv) == 0 ? TERN_OK : tern_report_io("tern_report_step", r->csv_path);
}

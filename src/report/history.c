/* history.c -- reads the rows of metrics.csv when a run is resumed: the rows are points of the
 * report until the first step is known, and the points from that step on are then dropped. */
#include "report/report.h"
#include "base/os.h"
#include <stdlib.h>
#include <string.h>

static const char *const function = "tern_report_new";

static tern_status not_ours(const tern_report *r, int line)
{
    return tern_fail(TERN_ERR_ARGUMENT,
                     "%s: line %d of %s is none of a report's: move the file, or give another "
                     "folder",
                     function, line, r->csv_path);
}

/* Returns the next cell of a line, ending it with a zero; NULL after the last cell. */
static char *take_cell(char **line)
{
    char *cell = *line;
    if (!cell)
        return NULL;
    size_t n = strcspn(cell, ",");
    *line = cell[n] ? cell + n + 1 : NULL;
    cell[n] = '\0';
    return cell;
}

/* Reads the first line: step,time, and a name for each column. */
static tern_status read_names(tern_report *r, char *line)
{
    const char *first = take_cell(&line), *second = take_cell(&line);
    if (!second || strcmp(first, "step") != 0 || strcmp(second, "time") != 0)
        return not_ours(r, 1);
    for (const char *name; (name = take_cell(&line));)
        if (!*name)
            return not_ours(r, 1);
        else if (!tern_report_series_of(r, name))
            return tern_fail(TERN_ERR_MEMORY, "%s: out of memory", function);
    return TERN_OK;
}

static tern_status read_row(tern_report *r, char *line, int number)
{
    char *end;
    const char *cell = take_cell(&line), *time = take_cell(&line);
    tern_report_point point = {.step = strtoll(cell, &end, 10)};
    if (!time || !*cell || *end)
        return not_ours(r, number);
    point.time = tern_os_strtod(time, &end);
    if (!*time || *end)
        return not_ours(r, number);
    for (int i = 0; i < r->n_series; i++) {
        tern_report_series *s = &r->series[i];
        if (!(cell = take_cell(&line)))
            return not_ours(r, number);
        point.value = tern_os_strtod(cell, &end);
        if (*end || (*cell && s->n && s->points[s->n - 1].step > point.step))
            return not_ours(r, number);
        if (*cell && !tern_report_add_point(s, point))
            return tern_fail(TERN_ERR_MEMORY, "%s: out of memory", function);
    }
    return TERN_OK;
}

/* A last line without a newline, which a killed program left, is ignored. */
tern_status tern_report_read_rows(tern_report *r)
{
    FILE *file = tern_os_fopen(r->csv_path, "rb");
    if (!file)
        return errno == ENOENT ? TERN_OK : tern_report_io(function, r->csv_path);
    char *line = NULL;
    size_t capacity = 0;
    tern_status status = TERN_OK;
    int number = 0;
    for (ssize_t n; status == TERN_OK && (n = tern_os_getline(&line, &capacity, file)) > 0;) {
        bool whole = line[n - 1] == '\n';
        line[n - whole] = '\0';
        number++;
        if (whole)
            status = number == 1 ? read_names(r, line) : read_row(r, line, number);
        else if (number == 1 && strncmp(line, "step,time", strlen(line) < 9 ? strlen(line) : 9))
            status = not_ours(r, 1);
    }
    if (status == TERN_OK && ferror(file))
        status = tern_report_io(function, r->csv_path);
    free(line);
    fclose(file);
    return status;
}

/* Removes the series without points, so that a run that started anew keeps no old names. */
static void forget_empty(tern_report *r)
{
    int kept = 0;
    for (int i = 0; i < r->n_series; i++)
        if (r->series[i].n > 0 || r->series[i].compared) {
            r->series[kept++] = r->series[i];
        } else {
            free(r->series[i].name);
            free(r->series[i].points);
        }
    r->n_series = kept;
}

void tern_report_begin(tern_report *r, int64_t step)
{
    if (r->began)
        return;
    r->began = true;
    for (int i = 0; i < r->n_series; i++) {
        tern_report_series *s = &r->series[i];
        while (s->n > 0 && s->points[s->n - 1].step >= step)
            s->n--;
        if (s->n > 0 && s->points[s->n - 1].time > r->time_before)
            r->time_before = s->points[s->n - 1].time;
    }
    forget_empty(r);
}

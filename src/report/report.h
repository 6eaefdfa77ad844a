/* report.h -- the internals of a report. */
#ifndef TERN_REPORT_REPORT_H
#define TERN_REPORT_REPORT_H
#include "base/option.h"
#include <errno.h>
#include <string.h>
#include <tern/report.h>

typedef struct tern_report_point {
    int64_t step;
    double time, value; /* time: seconds since the report was created */
} tern_report_point;

typedef struct tern_report_series {
    char *name;
    tern_report_point *points;
    int64_t n, capacity;
    int64_t written; /* number of points that are in the rows of the file */
    bool compared;
    double reference;
    char *source;
} tern_report_series;

struct tern_report {
    tern_report_options options;
    char *folder, *unit, *csv_path, *events_path;
    tern_report_series *series;
    int n_series, columns; /* columns: in the rows of the file */
    FILE *csv, *events;
    double begin, shown;         /* times of the clock in seconds */
    int64_t step, before, items; /* before: the last step of the run that this report resumes */
    bool terminal, line_open;
    bool began;         /* the first step is known: rows of the file from that step on were
                           dropped */
    double time_before; /* training time before this run resumed */
};

/* Records an error with the text of errno for a file. */
static inline tern_status tern_report_io(const char *function, const char *path)
{
    return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, strerror(errno));
}
/* Returns the series of a name, creating it if needed; NULL if memory is exhausted. */
tern_report_series *tern_report_series_of(tern_report *report, const char *name);
/* Returns false if memory is exhausted. */
bool tern_report_add_point(tern_report_series *series, tern_report_point point);
/* history.c: tern_report_read_rows reads the rows of an existing file; tern_report_begin sets the
 * first step of this run. */
tern_status tern_report_read_rows(tern_report *report);
void tern_report_begin(tern_report *report, int64_t step);
/* Writes the rows of all steps before `step`. */
tern_status tern_report_write_rows(tern_report *report, int64_t step);
tern_status tern_report_write_svg(const tern_report *report, const tern_report_series *series);
tern_status tern_report_open_events(tern_report *report);
tern_status tern_report_write_event(tern_report *report, const char *name, int64_t step,
                                    double value);

#endif

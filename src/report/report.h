/* report.h -- the inside of a report. */
#ifndef TERN_REPORT_REPORT_H
#define TERN_REPORT_REPORT_H
#include "base/option.h"
#include <errno.h>
#include <string.h>
#include <tern/report.h>

typedef struct tern_report_point {
    int64_t step;
    double time, value; /* time: seconds since the report was made */
} tern_report_point;

typedef struct tern_report_series {
    char *name;
    tern_report_point *points;
    int64_t n, capacity;
    int64_t written; /* of its points, those in the rows of the file */
    bool compared;
    double reference;
    char *source;
} tern_report_series;

struct tern_report {
    tern_report_options options;
    char *folder, *unit, *csv_path, *events_path;
    tern_report_series *series;
    int n_series, columns; /* columns: of the rows in the file */
    FILE *csv, *events;
    double begin, shown;         /* seconds of the clock */
    int64_t step, before, items; /* before: the last step of whom this one goes on after */
    bool terminal, line_open;
    bool began;         /* a step is known: what the file had from there on is forgotten */
    double time_before; /* of the training until it went on */
};

/* Record what errno says of a file. */
static inline tern_status tern_report_io(const char *function, const char *path)
{
    return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, strerror(errno));
}
/* The series of a name, made where there is none; NULL without memory. */
tern_report_series *tern_report_series_of(tern_report *report, const char *name);
/* False without memory. */
bool tern_report_add_point(tern_report_series *series, tern_report_point point);
/* history.c: the rows of the file that is there; the first step is this one. */
tern_status tern_report_read_rows(tern_report *report);
void tern_report_begin(tern_report *report, int64_t step);
/* Rows of all steps before `step`. */
tern_status tern_report_write_rows(tern_report *report, int64_t step);
tern_status tern_report_write_svg(const tern_report *report, const tern_report_series *series);
tern_status tern_report_open_events(tern_report *report);
tern_status tern_report_write_event(tern_report *report, const char *name, int64_t step,
                                    double value);

#endif

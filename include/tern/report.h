/* report.h -- how a training goes: a progress line, CSV, curves as SVG, TensorBoard's event files.
 * A library of its own, libtern_report (pkg-config tern_report, CMake tern::report).
 *
 *   tern_report *report = tern_report_new("runs/first", &(tern_report_options){
 *       .steps = 1000, .unit = "images", .csv = true, .svg = true, .tensorboard = true});
 *   for (int step = 1; step <= 1000; step++) {
 *       ...
 *       tern_report_value(report, "train/loss", step, loss);
 *       tern_report_step(report, step, batch_size);
 *   }
 *   tern_report_close(report);
 *
 * On a terminal a line is written over and over, cut to the width of its window: step, rate, time
 * left, the last value of each name. Elsewhere a line of its own from time to time. A report
 * belongs to one thread. */
#ifndef TERN_REPORT_H
#define TERN_REPORT_H
#include <stdio.h>
#include <tern/error.h>

TERN_BEGIN_DECLS

typedef struct tern_report tern_report;

typedef struct tern_report_options {
    int64_t steps;    /* in all, for the time left; 0: not known */
    const char *unit; /* of what a step works on, "images"; NULL: "items" */
    bool csv; /* metrics.csv: a row for each step, a column for each name; see tern_report_new */
    bool svg; /* <name>.svg for each name, when the report is closed */
    bool tensorboard; /* events.out.tfevents... */
    bool quiet;       /* no lines of progress and no summary */
    double interval;  /* seconds between lines; 0: 0.1 on a terminal, elsewhere none but the last */
    FILE *stream;     /* NULL: stdout */
    uint64_t reserved[4];
} tern_report_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_report_options tern_report_defaults(void);

/* A report whose files lie in a folder, which is made where it is not there (its parent is not);
 * folder may be NULL where no file is wanted. options may be NULL. The caller closes it. NULL after
 * TERN_ERR_IO or TERN_ERR_MEMORY.
 *
 * With csv a training that was resumed goes on: the rows that the folder's metrics.csv has of steps
 * before the first one of this report stay, its own come behind them, and curves show all. A
 * training from step 1 begins the file anew. A metrics.csv that is none of a report's is
 * TERN_ERR_ARGUMENT. */
TERN_API tern_report *tern_report_new(const char *folder, const tern_report_options *options);
/* A number of a name ("train/loss") at a step. Steps of one name do not fall. Errors: TERN_ERR_IO,
 * TERN_ERR_MEMORY, TERN_ERR_ARGUMENT. */
TERN_API tern_status tern_report_value(tern_report *report, const char *name, int64_t step,
                                       double value);
/* A step that worked on so many items is done. The first is 1, or of a training that goes on the
 * one after its last. */
TERN_API tern_status tern_report_step(tern_report *report, int64_t step, int64_t items);
/* Put a number beside the last value of a name, in the summary and as a line of its curve; source
 * says where the number comes from. */
TERN_API tern_status tern_report_compare(tern_report *report, const char *name, double reference,
                                         const char *source);
/* Items in a second, since the report was made; 0 before the first step. */
TERN_API double tern_report_rate(const tern_report *report);
/* Where a file of the report is: "csv", "tensorboard", "svg" (the folder); NULL where there is
 * none. Lives until the report is closed. */
TERN_API const char *tern_report_path(const tern_report *report, const char *kind);
/* Write what is left, print the summary, free the report. TERN_ERR_IO: something could not be
 * written; it is freed nevertheless. NULL is fine. */
TERN_API tern_status tern_report_close(tern_report *report);

TERN_END_DECLS
#endif

/* report.h -- progress of a training: a progress line, CSV, curves as SVG, TensorBoard's event
 * files. The functions are in a library of their own, libtern_report (pkg-config tern_report, CMake
 * tern::report).
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
 * On a terminal one line is rewritten, cut to the width of the window: step, rate, time left, and
 * the last value of each name. Otherwise a line is written from time to time, as .interval says. A
 * report is used by one thread. */
#ifndef TERN_REPORT_H
#define TERN_REPORT_H
#include <stdio.h>
#include <tern/error.h>

TERN_BEGIN_DECLS

typedef struct tern_report tern_report;

typedef struct tern_report_options {
    int64_t steps;    /* the total number of steps, for the time left; 0: not known */
    const char *unit; /* the name of the items of a step, "images"; NULL: "items" */
    bool csv;         /* write metrics.csv: a row for each step, a column for each name; see
                       * tern_report_new */
    bool svg;         /* write <name>.svg for each name when the report is closed */
    bool tensorboard; /* write events.out.tfevents... */
    bool quiet;       /* write no lines of progress and no summary */
    double interval;  /* seconds between lines; 0: 0.1 on a terminal, otherwise only the last line
                      * is written */
    FILE *stream;     /* NULL: stdout */
    uint64_t reserved[4];
} tern_report_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_report_options tern_report_defaults(void);

/* Returns a report whose files are written to folder, which is created if it does not exist (its
 * parent is not). folder may be NULL if no file is wanted, and options may be NULL. The caller
 * closes the report with tern_report_close. NULL after TERN_ERR_IO or TERN_ERR_MEMORY.
 *
 * With csv, a training that is resumed continues its file: the rows of metrics.csv for steps before
 * the first step of this report are kept, the new rows follow, and the curves show both. A training
 * that begins at step 1 starts a new file. A metrics.csv that no report wrote is
 * TERN_ERR_ARGUMENT. */
TERN_API tern_report *tern_report_new(const char *folder, const tern_report_options *options);
/* Records a value of a name ("train/loss") at a step. The steps of a name must not decrease.
 * Errors: TERN_ERR_IO, TERN_ERR_MEMORY, TERN_ERR_ARGUMENT. */
TERN_API tern_status tern_report_value(tern_report *report, const char *name, int64_t step,
                                       double value);
/* Records that a step with that many items is complete. The first step is 1, or for a training that
 * is resumed the step after its last one. */
TERN_API tern_status tern_report_step(tern_report *report, int64_t step, int64_t items);
/* Shows a reference value beside the last value of a name, in the summary and as a line in its
 * curve; source names where the reference comes from. */
TERN_API tern_status tern_report_compare(tern_report *report, const char *name, double reference,
                                         const char *source);
/* Returns the number of items per second since the report was created; 0 before the first step. */
TERN_API double tern_report_rate(const tern_report *report);
/* Returns the path of a file of the report: "csv", "tensorboard", or "svg" (the folder); NULL if
 * there is none. The text lives until the report is closed. */
TERN_API const char *tern_report_path(const tern_report *report, const char *kind);
/* Writes what has not been written yet, prints the summary, and frees the report, which is freed
 * even after TERN_ERR_IO. NULL is fine. */
TERN_API tern_status tern_report_close(tern_report *report);

TERN_END_DECLS
#endif

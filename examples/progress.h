/* progress.h -- what the examples tell alike: their device, how far they are, how fast, and their result beside a
 * reference. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H
#include <tern/report.h>
#include <tern/tern.h>

/* Names the default device, and begins a report. Where the environment names a folder, EXAMPLES_REPORT, it gets the
 * numbers as a table, as curves, and for TensorBoard. NULL after an error. */
tern_report *progress_begin(const char *unit, int64_t steps);
/* A line of its own, in place of the one that a terminal shows. */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

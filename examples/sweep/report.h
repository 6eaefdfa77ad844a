/* report.h -- what a search found: a table, and a picture of all trials. */
#ifndef SWEEP_REPORT_H
#define SWEEP_REPORT_H
#include "store.h"
#include <stdint.h>

/* The best first, at most n lines, those that went furthest above the others. */
void report_table(const store *s, uint64_t seed, int n);
/* The loss of the first of them. */
double report_best(const store *s);
/* loss over epochs in <folder>/sweep.svg; false after a message. */
bool report_picture(const store *s);

#endif

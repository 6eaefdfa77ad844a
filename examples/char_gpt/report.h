/* report.h -- the losses of a training: told while it runs, and kept, so that a snapshot has them. */
#ifndef CHAR_GPT_REPORT_H
#define CHAR_GPT_REPORT_H
#include <stdbool.h>
#include <stdint.h>
#include <tern/report.h>

enum { REPORT_POINTS = 64 };
typedef struct report {
    tern_report *lines;
    int tokens_per_step;
    double *loss; /* of each step so far */
    int64_t n_loss;
    struct report_point {
        double step, loss;
    } validation[REPORT_POINTS];
    int64_t n_validation;
} report;

/* False after an error. bigram: the loss of a table of pairs of characters, the reference. */
bool report_begin(report *r, int steps, int tokens_per_step, double bigram);
/* What was there before came from a snapshot. */
void report_go_on(report *r);
void report_step(report *r, double loss);
/* Validation loss after the steps so far. */
void report_validation(report *r, double loss);
/* The summary. */
void report_end(report *r);

#endif

/* report.h -- progress on the terminal, loss.csv and loss.svg. */
#ifndef CHAR_GPT_REPORT_H
#define CHAR_GPT_REPORT_H
#include <stdbool.h>
#include <stdint.h>

enum { REPORT_POINTS = 64 };
typedef struct report {
    int steps, tokens_per_step;
    bool terminal;
    double start, first; /* seconds: before the first step of this process, after it */
    int64_t before;      /* steps of processes that were stopped */
    double *loss;        /* of each step so far */
    int64_t n_loss;
    struct report_point {
        double step, loss;
    } validation[REPORT_POINTS];
    int64_t n_validation;
    double bigram;
} report;

/* Seconds of a clock that only goes forward. */
double report_clock(void);
bool report_begin(report *r, int steps, int tokens_per_step, double bigram);
/* What was there before came from a snapshot. */
void report_go_on(report *r);
/* After each step: the loss of the first 20, then a bar or, away from a terminal, a line now and
 * then. */
void report_step(report *r, double loss);
/* Validation loss after the steps so far. */
void report_validation(report *r, double loss);
/* Write loss.csv and loss.svg in this folder; false after a message to stderr. */
bool report_write(const report *r);
void report_end(report *r);

#endif

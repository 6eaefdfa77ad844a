/* report.c -- losses, to a report and to memory. */
#include "report.h"
#include "../progress.h"
#include <stdlib.h>

bool report_begin(report *r, int steps, int tokens_per_step, double bigram)
{
    *r = (report){.tokens_per_step = tokens_per_step};
    r->lines = progress_begin("tokens", steps);
    r->loss = calloc((size_t)steps + 1, sizeof *r->loss);
    return r->lines && r->loss &&
           tern_report_compare(r->lines, "validation", bigram, "a table of pairs") == TERN_OK;
}

void report_go_on(report *r)
{
    progress_say("going on after %lld steps", (long long)r->n_loss);
    for (int64_t i = 0; i < r->n_validation; i++)
        tern_report_value(r->lines, "validation", (int64_t)r->validation[i].step,
                          r->validation[i].loss);
    for (int64_t i = 0; i < r->n_loss; i++)
        tern_report_value(r->lines, "loss", i + 1, r->loss[i]);
}

void report_step(report *r, double loss)
{
    r->loss[r->n_loss++] = loss;
    tern_report_value(r->lines, "loss", r->n_loss, loss);
    tern_report_step(r->lines, r->n_loss, r->tokens_per_step);
}

void report_validation(report *r, double loss)
{
    if (r->n_validation < REPORT_POINTS)
        r->validation[r->n_validation++] = (struct report_point){(double)r->n_loss, loss};
    tern_report_value(r->lines, "validation", r->n_loss, loss);
    progress_say("after %lld steps: validation loss %.4f", (long long)r->n_loss, loss);
}

void report_end(report *r)
{
    tern_report_close(r->lines);
    free(r->loss);
    *r = (report){.lines = NULL};
}

/* report.c -- the table and the picture of a search. */
#include "report.h"
#include "trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const store *sorted; /* for qsort */

/* The last rung that a trial has done; -1: none. */
static int top_of(const store *s, int trial)
{
    int top = -1;
    for (int k = 0; k < s->rungs; k++)
        if (s->results[trial][k].done)
            top = k;
    return top;
}

static int by_rank(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b, p = top_of(sorted, x),
              q = top_of(sorted, y);
    if (p != q)
        return q - p;
    if (p < 0)
        return x - y;
    const double l = sorted->results[x][p].loss, m = sorted->results[y][p].loss;
    return l < m ? -1 : l > m ? 1 : x - y;
}

static void order(const store *s, int *trials)
{
    for (int t = 0; t < s->trials; t++)
        trials[t] = t;
    sorted = s;
    qsort(trials, (size_t)s->trials, sizeof *trials, by_rank);
}

void report_table(const store *s, uint64_t seed, int n)
{
    static int trials[STORE_TRIALS];
    int jobs = 0, epochs = 0;
    double seconds = 0;
    order(s, trials);
    printf("%5s %9s %9s %6s %6s %6s %7s %9s %6s\n", "trial", "lr", "decay", "width", "layers",
           "batch", "epochs", "loss", "right");
    for (int i = 0; i < s->trials && i < n && top_of(s, trials[i]) >= 0; i++) {
        const int top = top_of(s, trials[i]);
        const trial_settings v = trial_draw(seed, trials[i]);
        const store_result *r = &s->results[trials[i]][top];
        printf("%5d %9.2g %9.2g %6d %6d %6d %7d %9.4f %5.1f%%\n", trials[i], v.lr, v.weight_decay,
               v.width, v.layers, v.batch_size, store_epochs(top), r->loss, 100 * r->accuracy);
    }
    for (int t = 0; t < s->trials; t++)
        for (int k = 0; k < s->rungs; k++)
            if (s->results[t][k].done) {
                jobs++;
                epochs += store_epochs(k) - (k ? store_epochs(k - 1) : 0);
                seconds += s->results[t][k].seconds;
            }
    printf("%d jobs, %d epochs (all trials to the end: %d), %.1f s of work\n", jobs, epochs,
           s->trials * store_epochs(s->rungs - 1), seconds);
}

double report_best(const store *s)
{
    static int trials[STORE_TRIALS];
    order(s, trials);
    const int top = top_of(s, trials[0]);
    return top < 0 ? NAN : s->results[trials[0]][top].loss;
}

static double across(const store *s, int rung)
{
    return 60 + 620.0 * rung / (s->rungs > 1 ? s->rungs - 1 : 1);
}

static double least, most; /* of all losses, not beyond 10 */

static void find_range(const store *s)
{
    least = 10;
    most = 0;
    for (int t = 0; t < s->trials; t++)
        for (int k = 0; k < s->rungs; k++) {
            const store_result *r = &s->results[t][k];
            if (!r->done)
                continue;
            least = r->loss < least ? r->loss : least;
            most = r->loss > most ? r->loss : most;
        }
    least = least < 1e-6 ? 1e-6 : least;
    most = most > 10 ? 10 : most;
    if (!(most > 1.01 * least))
        most = 1.01 * least;
}

static double down(double loss)
{
    const double y = log(loss / least) / log(most / least);
    return 360 - 320 * (y < 0 ? 0 : y > 1 ? 1 : y);
}

static void draw_trial(FILE *file, const store *s, int trial, bool best)
{
    const int top = top_of(s, trial);
    if (top < 0)
        return;
    fprintf(file, "<polyline fill='none' stroke='%s' stroke-width='%g' points='",
            best ? "#c0392b" : "#7f8c8d", best ? 2.5 : 0.8);
    for (int k = 0; k <= top; k++)
        if (s->results[trial][k].done)
            fprintf(file, "%.1f,%.1f ", across(s, k), down(s->results[trial][k].loss));
    fprintf(file,
            "'/>\n<circle cx='%.1f' cy='%.1f' r='%g' fill='%s'><title>trial %d</title></circle>\n",
            across(s, top), down(s->results[trial][top].loss), best ? 4.0 : 2.0,
            best ? "#c0392b" : "#7f8c8d", trial);
}

bool report_picture(const store *s)
{
    static int trials[STORE_TRIALS];
    char path[1024];
    snprintf(path, sizeof path, "%s/sweep.svg", s->folder);
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "sweep: %s can't be written\n", path);
        return false;
    }
    order(s, trials);
    find_range(s);
    fputs(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 420' width='720' height='420' "
        "font-family='sans-serif' font-size='12'>\n<rect width='720' height='420' fill='white'/>\n",
        file);
    for (int k = 0; k < s->rungs; k++)
        fprintf(file,
                "<line x1='%.1f' x2='%.1f' y1='40' y2='360' stroke='#ddd'/><text x='%.1f' "
                "y='378' text-anchor='middle'>%d</text>\n",
                across(s, k), across(s, k), across(s, k), store_epochs(k));
    for (int i = 0; i <= 4; i++) {
        const double loss = least * pow(most / least, i / 4.0);
        fprintf(file, "<text x='50' y='%.1f' text-anchor='end'>%.2g</text>\n", down(loss) + 4,
                loss);
    }
    fputs("<text x='370' y='402' text-anchor='middle'>epochs</text>\n"
          "<text x='60' y='24'>loss on what was held out</text>\n",
          file);
    for (int i = s->trials - 1; i >= 0; i--)
        draw_trial(file, s, trials[i], i == 0);
    fputs("</svg>\n", file);
    return fclose(file) == 0;
}

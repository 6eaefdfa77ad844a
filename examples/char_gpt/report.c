/* report.c -- a progress bar, and the losses as a table and as a picture. */
#include "report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double report_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool report_begin(report *r, int steps, int tokens_per_step, double bigram)
{
    *r = (report){.steps = steps, .tokens_per_step = tokens_per_step, .bigram = bigram};
    r->terminal = isatty(STDOUT_FILENO);
    r->loss = calloc((size_t)steps + 1, sizeof *r->loss);
    r->start = report_clock();
    return r->loss != NULL;
}

void report_go_on(report *r)
{
    r->before = r->n_loss;
    printf("going on after %lld steps\n", (long long)r->n_loss);
}

void report_end(report *r)
{
    free(r->loss);
    r->loss = NULL;
}

/* ---- progress ---------------------------------------------------------------------------- */

static void clear_line(const report *r)
{
    if (r->terminal)
        fputs("\r\033[K", stdout);
}

static void show_bar(const report *r)
{
    enum { WIDTH = 24 };
    char bar[WIDTH + 1];
    int filled = (int)(r->n_loss * WIDTH / r->steps);
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    if (r->terminal)
        printf("\r[%s] ", bar);
    /* Programs are built during the first step: it says nothing about the others. */
    double spent = report_clock() - r->first;
    double done = (double)(r->n_loss - r->before - 1);
    double rate = done > 0 && spent > 0 ? done / spent : 0;
    int left = rate > 0 ? (int)((double)(r->steps - r->n_loss) / rate + 0.5) : 0;
    printf("step %4d of %d  loss %.4f  %6.0f tokens/s  %d:%02d left", (int)r->n_loss, r->steps,
           r->loss[r->n_loss - 1], rate * r->tokens_per_step, left / 60, left % 60);
    fputs(r->terminal ? "\033[K" : "\n", stdout);
    fflush(stdout);
}

void report_step(report *r, double loss)
{
    r->loss[r->n_loss++] = loss;
    int n = (int)r->n_loss, every = r->steps / 40 > 0 ? r->steps / 40 : 1;
    if (n == r->before + 1)
        r->first = report_clock();
    if (n <= 20) {
        clear_line(r);
        printf("step %4d  loss %.4f", n, loss);
        if (n == 1)
            printf("  (first step after %.2f s)", r->first - r->start);
        putchar('\n');
        fflush(stdout);
    }
    if (r->terminal || (n > 20 && (n % every == 0 || n == r->steps)))
        show_bar(r);
    if (r->terminal && n == r->steps)
        putchar('\n');
}

void report_validation(report *r, double loss)
{
    if (r->n_validation < REPORT_POINTS)
        r->validation[r->n_validation++] = (struct report_point){(double)r->n_loss, loss};
    clear_line(r);
    printf("after %d steps: validation loss %.4f (bigram table: %.4f)\n", (int)r->n_loss, loss,
           r->bigram);
    fflush(stdout);
}

/* ---- loss.csv and loss.svg --------------------------------------------------------------- */

static void write_table(const report *r, FILE *file)
{
    fputs("step,training_loss,validation_loss,bigram_loss\n", file);
    int64_t next = 0;
    for (int step = 0; step <= r->n_loss; step++) {
        fprintf(file, "%d,", step);
        if (step > 0)
            fprintf(file, "%.6f", r->loss[step - 1]);
        if (next < r->n_validation && (int)r->validation[next].step == step)
            fprintf(file, ",%.6f,%.6f\n", r->validation[next++].loss, r->bigram);
        else
            fprintf(file, ",,%.6f\n", r->bigram);
    }
}

/* The picture: 720 x 420, axes from (LEFT, BOTTOM). */
enum { LEFT = 64, RIGHT = 696, TOP = 40, BOTTOM = 370 };
typedef struct axes {
    double x_end, y_start, y_end;
} axes;

static double px(const axes *a, double step)
{
    return LEFT + (RIGHT - LEFT) * step / a->x_end;
}

static double py(const axes *a, double loss)
{
    return BOTTOM - (BOTTOM - TOP) * (loss - a->y_start) / (a->y_end - a->y_start);
}

static axes fit_axes(const report *r)
{
    double low = r->bigram, high = r->bigram;
    for (int i = 0; i < r->n_loss; i++) {
        low = fmin(low, r->loss[i]);
        high = fmax(high, r->loss[i]);
    }
    for (int i = 0; i < r->n_validation; i++) {
        low = fmin(low, r->validation[i].loss);
        high = fmax(high, r->validation[i].loss);
    }
    axes a = {r->n_loss > 0 ? (double)r->n_loss : 1, floor(2 * low) / 2, ceil(2 * high) / 2};
    if (!(a.y_end > a.y_start))
        a.y_end = a.y_start + 1;
    return a;
}

/* 1, 2 or 5 times a power of ten, so that at most `most` ticks fit. */
static double tick_distance(double length, int most)
{
    double unit = pow(10, floor(log10(length / most)));
    for (int i = 0; i < 3; i++) {
        static const double factor[] = {1, 2, 5};
        if (length / (factor[i] * unit) <= most)
            return factor[i] * unit;
    }
    return 10 * unit;
}

static void draw_axes(const axes *a, FILE *file)
{
    fprintf(file, "<path d='M%d %dV%dH%d' fill='none' stroke='#333'/>\n", LEFT, TOP, BOTTOM, RIGHT);
    double dx = fmax(tick_distance(a->x_end, 10), 1), dy = tick_distance(a->y_end - a->y_start, 10);
    for (double x = 0; x <= a->x_end * 1.0001; x += dx) {
        fprintf(file, "<path d='M%.1f %dv5' stroke='#333'/>", px(a, x), BOTTOM);
        fprintf(file, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", px(a, x),
                BOTTOM + 20, x);
    }
    for (int i = 0; a->y_start + i * dy <= a->y_end * 1.0001; i++) {
        double y = a->y_start + i * dy;
        fprintf(file, "<path d='M%d %.1fH%d' stroke='#e4e4e4'/>", LEFT + 1, py(a, y), RIGHT);
        fprintf(file, "<text x='%d' y='%.1f' text-anchor='end'>%.1f</text>\n", LEFT - 8,
                py(a, y) + 4, y);
    }
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>step</text>\n", (LEFT + RIGHT) / 2,
            BOTTOM + 42);
    fprintf(file,
            "<text transform='translate(20 %d) rotate(-90)' text-anchor='middle'>loss (nats per "
            "character)</text>\n",
            (TOP + BOTTOM) / 2);
}

static void draw_legend(FILE *file)
{
    fprintf(file, "<path d='M%d 20h24' stroke='#1f77b4' stroke-width='1.5'/>", LEFT + 8);
    fprintf(file, "<text x='%d' y='24'>training</text>\n", LEFT + 38);
    fprintf(file, "<circle cx='%d' cy='20' r='4' fill='#d62728'/>", LEFT + 130);
    fprintf(file, "<text x='%d' y='24'>validation</text>\n", LEFT + 142);
    fprintf(file, "<path d='M%d 20h24' stroke='#2ca02c' stroke-dasharray='6 4'/>", LEFT + 236);
    fprintf(file, "<text x='%d' y='24'>bigram table, validation</text>\n", LEFT + 266);
}

static void write_picture(const report *r, FILE *file)
{
    axes a = fit_axes(r);
    fputs("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 420' width='720' "
          "height='420' font-family='sans-serif' font-size='13'>\n"
          "<rect width='720' height='420' fill='white'/>\n",
          file);
    draw_axes(&a, file);
    draw_legend(file);
    fprintf(file, "<path d='M%d %.1fH%d' stroke='#2ca02c' stroke-dasharray='6 4'/>\n", LEFT,
            py(&a, r->bigram), RIGHT);
    fputs("<polyline fill='none' stroke='#1f77b4' points='", file);
    for (int i = 0; i < r->n_loss; i++)
        fprintf(file, "%.1f,%.1f ", px(&a, i + 1), py(&a, r->loss[i]));
    fputs("'/>\n", file);
    for (int i = 0; i < r->n_validation; i++)
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='4' fill='#d62728'/>\n",
                px(&a, r->validation[i].step), py(&a, r->validation[i].loss));
    fputs("</svg>\n", file);
}

static bool write_with(const report *r, const char *path, void (*write)(const report *, FILE *))
{
    FILE *file = fopen(path, "w");
    if (file)
        write(r, file);
    if (file && fclose(file) == 0)
        return true;
    perror(path);
    return false;
}

bool report_write(const report *r)
{
    bool table = write_with(r, "loss.csv", write_table);
    return write_with(r, "loss.svg", write_picture) && table;
}

/* svg.c -- a curve of values over steps, with axes labelled by round numbers. */
#include "report/report.h"
#include "base/os.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 640,
    HEIGHT = 360,
    LEFT = 72,
    RIGHT = 16,
    TOP = 36,
    BOTTOM = 40,
    MOST_POINTS = 2000
};

typedef struct axis {
    double low, high, step; /* step: distance of the ticks */
} axis;

/* Returns an axis with about five ticks at round numbers: 1, 2 or 5 times a power of ten apart. */
static axis axis_of(double low, double high)
{
    if (!(high > low)) {
        double around = fabs(low) > 0 ? fabs(low) / 10 : 1;
        low -= around;
        high += around;
    }
    double rough = (high - low) / 5, power = pow(10, floor(log10(rough))), f = rough / power;
    double step = (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10) * power;
    return (axis){floor(low / step) * step, ceil(high / step) * step, step};
}

static double across(const axis *x, double step)
{
    return LEFT + (step - x->low) / (x->high - x->low) * (WIDTH - LEFT - RIGHT);
}

static double down(const axis *y, double value)
{
    return HEIGHT - BOTTOM - (value - y->low) / (y->high - y->low) * (HEIGHT - TOP - BOTTOM);
}

static void put_text(FILE *file, double x, double y, const char *anchor, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            putc(*text, file);
    fputs("</text>\n", file);
}

static void put_axes(FILE *file, const axis *x, const axis *y)
{
    char text[32];
    for (double v = y->low; v <= y->high + y->step / 2; v += y->step) {
        fprintf(file, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT,
                WIDTH - RIGHT, down(y, v), down(y, v));
        snprintf(text, sizeof text, "%.4g", fabs(v) < y->step / 1e6 ? 0 : v);
        put_text(file, LEFT - 6, down(y, v) + 4, "end", text);
    }
    for (double v = x->low; v <= x->high + x->step / 2; v += x->step) {
        snprintf(text, sizeof text, "%.6g", v);
        put_text(file, across(x, v), HEIGHT - BOTTOM + 18, "middle", text);
    }
    put_text(file, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6, "middle", "step");
}

/* Draws the curve; neighbouring points are averaged if there are many, and non-finite values are
 * left out. */
static void put_curve(FILE *file, const tern_report_series *s, const axis *x, const axis *y)
{
    int64_t each = (s->n + MOST_POINTS - 1) / MOST_POINTS;
    fputs("<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.5\" points=\"", file);
    for (int64_t i = 0; i < s->n; i += each) {
        double sum = 0, steps = 0;
        int64_t n = 0;
        for (int64_t k = i; k < i + each && k < s->n; k++)
            if (isfinite(s->points[k].value)) {
                sum += s->points[k].value;
                steps += (double)s->points[k].step;
                n++;
            }
        if (n > 0)
            fprintf(file, "%.1f,%.1f ", across(x, steps / (double)n), down(y, sum / (double)n));
    }
    fputs("\"/>\n", file);
}

static FILE *open_svg(const tern_report *r, const char *name, char **path)
{
    size_t capacity = strlen(r->folder) + strlen(name) + 8;
    if (!(*path = malloc(capacity)))
        return NULL;
    int at = snprintf(*path, capacity, "%s/", r->folder);
    snprintf(*path + at, capacity - (size_t)at, "%s.svg", name);
    for (char *c = *path + at; *c; c++)
        if (*c == '/' || *c == ' ' || *c == ':')
            *c = '_';
    return tern_os_fopen(*path, "wb");
}

tern_status tern_report_write_svg(const tern_report *r, const tern_report_series *s)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < s->n; i++)
        if (isfinite(s->points[i].value)) {
            low = fmin(low, s->points[i].value);
            high = fmax(high, s->points[i].value);
        }
    if (s->compared && isfinite(s->reference)) {
        low = fmin(low, s->reference);
        high = fmax(high, s->reference);
    }
    if (low > high)
        low = high = 0; /* no value is finite */
    axis x = axis_of((double)s->points[0].step, (double)s->points[s->n - 1].step);
    axis y = axis_of(low, high);
    char *path = NULL;
    FILE *file = open_svg(r, s->name, &path);
    if (!file) {
        tern_status status = tern_report_io("tern_report_close", path ? path : s->name);
        free(path);
        return status;
    }
    const tern_os_locale before = tern_os_locale_enter();
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_axes(file, &x, &y);
    put_curve(file, s, &x, &y);
    if (s->compared) {
        fprintf(file,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#d62728\" "
                "stroke-dasharray=\"6 4\"/>\n",
                LEFT, WIDTH - RIGHT, down(&y, s->reference), down(&y, s->reference));
        put_text(file, WIDTH - RIGHT - 4, down(&y, s->reference) - 5, "end", s->source);
    }
    put_text(file, LEFT, 20, "start", s->name);
    fputs("</svg>\n", file);
    tern_os_locale_leave(before);
    bool good = !ferror(file) & (fclose(file) == 0);
    tern_status status = good ? TERN_OK : tern_report_io("tern_report_close", path);
    free(path);
    return status;
}

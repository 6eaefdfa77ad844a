/* series.c -- the values of one name. */
#include "report/report.h"
#include <stdlib.h>
#include <string.h>

tern_report_series *tern_report_series_of(tern_report *r, const char *name)
{
    for (int i = 0; i < r->n_series; i++)
        if (strcmp(r->series[i].name, name) == 0)
            return &r->series[i];
    tern_report_series *grown = realloc(r->series, sizeof *grown * (size_t)(r->n_series + 1));
    if (grown)
        r->series = grown;
    char *copy = grown ? strdup(name) : NULL;
    if (!copy)
        return NULL;
    r->series[r->n_series] = (tern_report_series){.name = copy};
    return &r->series[r->n_series++];
}

bool tern_report_add_point(tern_report_series *s, tern_report_point point)
{
    if (s->n == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 64;
        tern_report_point *grown = realloc(s->points, sizeof *grown * (size_t)capacity);
        if (!grown)
            return false;
        s->points = grown;
        s->capacity = capacity;
    }
    s->points[s->n++] = point;
    return true;
}

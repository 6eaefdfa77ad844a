/* name_lists.c -- lists of names. */
#include "data/name_lists.h"
#include "base/checked.h"
#include <stdlib.h>
#include <string.h>

tern_status tern_names_add(tern_names *names, const char *name)
{
    if (names->n == names->capacity) {
        int64_t capacity = names->capacity ? 2 * names->capacity : 16;
        char **of = tern_grow(names->of, tern_size_bytes(capacity, sizeof *of));
        if (!of)
            return TERN_ERR_MEMORY;
        names->of = of;
        names->capacity = capacity;
    }
    char *copy = tern_copy_text(name);
    if (!copy)
        return TERN_ERR_MEMORY;
    names->of[names->n++] = copy;
    return TERN_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void tern_names_sort(tern_names *names)
{
    int64_t kept = 0;
    if (names->n)
        qsort(names->of, (size_t)names->n, sizeof *names->of, by_bytes);
    for (int64_t i = 0; i < names->n; i++)
        if (kept && strcmp(names->of[kept - 1], names->of[i]) == 0)
            tern_free(names->of[i]);
        else
            names->of[kept++] = names->of[i];
    names->n = kept;
}

int64_t tern_names_find(const tern_names *names, const char *name)
{
    for (int64_t i = 0; i < names->n; i++)
        if (strcmp(names->of[i], name) == 0)
            return i;
    return -1;
}

int64_t tern_names_find_sorted(const tern_names *names, const char *name)
{
    char **found =
        names->n ? bsearch(&name, names->of, (size_t)names->n, sizeof *names->of, by_bytes) : NULL;
    return found ? found - names->of : -1;
}

void tern_names_free(tern_names *names)
{
    for (int64_t i = 0; i < names->n; i++)
        tern_free(names->of[i]);
    tern_free(names->of);
    *names = (tern_names){0};
}

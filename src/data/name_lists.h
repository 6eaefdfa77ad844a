/* name_lists.h -- lists of names: classes, columns, files. */
#ifndef TERN_SRC_DATA_NAME_LISTS_H
#define TERN_SRC_DATA_NAME_LISTS_H
#include "base/memory.h"

typedef struct tern_names {
    char **of;
    int64_t n, capacity;
} tern_names;

/* Appends a copy of name. */
tern_status tern_names_add(tern_names *names, const char *name);
/* Sorts by bytes, and removes duplicates. */
void tern_names_sort(tern_names *names);
/* Both return the index of a name, or -1; the second needs a sorted list. */
int64_t tern_names_find(const tern_names *names, const char *name);
int64_t tern_names_find_sorted(const tern_names *names, const char *name);
void tern_names_free(tern_names *names);

#endif

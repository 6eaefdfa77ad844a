/* rows.c -- finding rows by name: this folder's own, then the library's. */
#include "fuzz.h"
#include <string.h>

/* ---- places by name ----------------------------------------------------------------------- */

static uint32_t hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h % FUZZ_NAMES;
}

void fuzz_index_add(fuzz_index *index, const char *name)
{
    int place = index->count++;
    if (place == FUZZ_NAMES)
        fuzz_fault("too many names", "%s", name);
    index->names[place] = name;
    int *last = &index->first[hash(name)];
    while (*last)
        last = &index->next[*last - 1];
    *last = place + 1;
}

int fuzz_index_find(const fuzz_index *index, const char *name, int after)
{
    int place = after < 0 ? index->first[hash(name)] : index->next[after];
    while (place && strcmp(index->names[place - 1], name) != 0)
        place = index->next[place - 1];
    return place - 1;
}

/* ---- rows --------------------------------------------------------------------------------- */

static fuzz_index names;
static const tern_named_op *rows[FUZZ_NAMES];
static int library_first; /* of the rows */

static void read_rows(void)
{
    const tern_named_op *op;
    for (const names_family *const *f = fuzz_families; *f; f++)
        for (int i = 0; i < (*f)->count; i++) {
            rows[names.count] = &(*f)->rows[i];
            fuzz_index_add(&names, (*f)->rows[i].name);
        }
    library_first = names.count;
    for (int i = 0; (op = tern_named_op_at(i)); i++) {
        rows[names.count] = op;
        fuzz_index_add(&names, op->name);
    }
}

const tern_named_op *fuzz_find(const char *name)
{
    if (!names.count)
        read_rows();
    int place = fuzz_index_find(&names, name, -1);
    return place < 0 ? NULL : rows[place];
}

const tern_named_op *fuzz_find_next(const tern_named_op *op)
{
    int place = fuzz_index_find(&names, op->name, -1);
    while (place >= 0 && rows[place] != op)
        place = fuzz_index_find(&names, op->name, place);
    place = place < 0 ? -1 : fuzz_index_find(&names, op->name, place);
    return place < 0 ? NULL : rows[place];
}

const tern_named_op *fuzz_any_named(fuzz_source *s)
{
    if (!names.count)
        read_rows();
    return rows[library_first + (int)fuzz_pick(s, (uint32_t)(names.count - library_first))];
}

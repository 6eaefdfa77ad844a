/* rows.c -- finding rows by name: this folder's own, then the library's. */
#include "fuzz.h"
#include <string.h>

static const tern_named_op *find_own(const char *name, const tern_named_op *after)
{
    bool passed = !after;
    for (const names_family *const *f = fuzz_families; *f; f++)
        for (int i = 0; i < (*f)->count; i++) {
            const tern_named_op *op = &(*f)->rows[i];
            if (passed && strcmp(op->name, name) == 0)
                return op;
            passed = passed || op == after;
        }
    return NULL;
}

const tern_named_op *fuzz_find(const char *name)
{
    const tern_named_op *own = find_own(name, NULL);
    return own ? own : tern_op_by_name(name);
}

const tern_named_op *fuzz_find_next(const tern_named_op *op)
{
    const tern_named_op *next = tern_named_op_next(op);
    return next ? next : find_own(op->name, op);
}

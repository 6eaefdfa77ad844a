/* call.c -- finds operations by name, and calls them. */
#include "names/rows.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define X(NAME) extern const names_family names_##NAME;
#include "names/families.def"
#undef X
#define X(NAME) &names_##NAME,
static const names_family *const families[] = {
#include "names/families.def"
};
#undef X
enum { FAMILY_COUNT = sizeof families / sizeof *families };

const tern_named_op *tern_named_op_at(int i)
{
    for (int f = 0; i >= 0 && f < FAMILY_COUNT; i -= families[f++]->count)
        if (i < families[f]->count)
            return &families[f]->rows[i];
    return NULL;
}

/* Returns the first row with that name from row i on, or NULL. */
static const tern_named_op *find(int i, const char *name)
{
    const tern_named_op *op;
    while ((op = tern_named_op_at(i)) && strcmp(op->name, name) != 0)
        i++;
    return op;
}

const tern_named_op *tern_op_by_name(const char *name)
{
    return name ? find(0, name) : NULL;
}

const tern_named_op *tern_named_op_next(const tern_named_op *op)
{
    int before = 0;
    for (int f = 0; op && f < FAMILY_COUNT; before += families[f++]->count)
        if (op >= families[f]->rows && op < families[f]->rows + families[f]->count)
            return find(before + (int)(op - families[f]->rows) + 1, op->name);
    return NULL;
}

const char *tern_named_op_name(const tern_named_op *op)
{
    return op ? op->name : NULL;
}

const char *tern_named_op_signature(const tern_named_op *op)
{
    return op ? op->signature : NULL;
}

/* ---- calls ------------------------------------------------------------------------------- */

static int check_values(const char *function, const void *what, const tern_value *values, int n,
                        tern_tensor **out, int capacity)
{
    bool missing = !what || (n > 0 && !values) || (capacity > 0 && !out);
    if (missing)
        names_null(function, !what ? "name or operation" : out ? "values" : "out");
    for (int i = 0; !missing && i < n; i++) {
        /* A tensor that is NULL because an earlier call failed is an error, not PyTorch's None. */
        if (values[i].kind == TERN_VALUE_TENSOR && !values[i].as.tensor) {
            names_null(function, values[i].name ? values[i].name : "a tensor");
            missing = true;
        }
    }
    return missing ? -1 : 0;
}

int names_int(const names_argument *a)
{
    int64_t value = names_integer(a);
    if (value >= INT_MIN && value <= INT_MAX)
        return (int)value;
    tern_fail(TERN_ERR_ARGUMENT, "tern_call_by_name: %lld is out of the range of int",
              (long long)value);
    ((names_argument *)a)->too_big = true; /* run() owns the arguments and may change them */
    return 0;
}

static int run(const tern_named_op *op, names_argument *arguments, tern_tensor **out, int capacity)
{
    for (int i = 0; i < TERN_MAX_PARAMETERS; i++)
        arguments[i].too_big = false;
    int n = op->call(arguments, out, capacity);
    for (int i = 0; i < TERN_MAX_PARAMETERS; i++)
        n = arguments[i].too_big ? -1 : n;
    return n;
}

int tern_named_op_call(const tern_named_op *op, const tern_value *values, int n, tern_tensor **out,
                       int capacity)
{
    names_argument arguments[TERN_MAX_PARAMETERS];
    char why[128];
    if (check_values("tern_named_op_call", op, values, n, out, capacity) < 0)
        return -1;
    if (names_bind(op, values, n, arguments, why, sizeof why) < 0) {
        tern_fail(TERN_ERR_ARGUMENT, "tern_named_op_call: %s(): %s, in %s", op->name, why,
                  op->signature);
        return -1;
    }
    return run(op, arguments, out, capacity);
}

int tern_call_by_name(const char *name, const tern_value *values, int n, tern_tensor **out,
                      int capacity)
{
    names_argument arguments[TERN_MAX_PARAMETERS];
    char why[128], first_why[128] = "", all[768] = "";
    if (check_values("tern_call_by_name", name, values, n, out, capacity) < 0)
        return -1;
    const tern_named_op *first = tern_op_by_name(name);
    for (const tern_named_op *op = first; op; op = tern_named_op_next(op)) {
        if (names_bind(op, values, n, arguments, why, sizeof why) >= 0)
            return run(op, arguments, out, capacity);
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used ? "; " : "", op->signature);
        if (op == first)
            snprintf(first_why, sizeof first_why, "%s", why);
    }
    if (first)
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_call_by_name: %s() received an invalid combination of arguments: %s; it "
                  "takes %s",
                  name, first_why, all);
    else
        tern_fail(TERN_ERR_ARGUMENT, "tern_call_by_name: there is no operation '%s'", name);
    return -1;
}

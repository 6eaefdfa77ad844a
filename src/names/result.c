/* result.c -- the results of the rows: one tensor, several, or an error with a message. */
#include "names/rows.h"
#include <string.h>

int names_null(const char *function, const char *argument)
{
    tern_fail(TERN_ERR_ARGUMENT, "%s: %s is NULL", function, argument);
    return -1;
}

int names_several(tern_status status, tern_tensor *const *results, int n, tern_tensor **out,
                  int capacity)
{
    if (status != TERN_OK)
        return -1;
    if (n > capacity) {
        tern_fail(TERN_ERR_ARGUMENT, "tern_call_by_name: %d results do not fit into %d", n,
                  capacity);
        return -1;
    }
    for (int i = 0; i < n; i++)
        out[i] = results[i];
    return n;
}

int names_one(tern_tensor *x, tern_tensor **out, int capacity)
{
    return names_several(x ? TERN_OK : tern_last_status(), &x, 1, out, capacity);
}

int names_pair(tern_status status, const tern_values_indices *pair, tern_tensor **out, int capacity)
{
    return names_several(status, (tern_tensor *[]){pair->values, pair->indices}, 2, out, capacity);
}

int names_choice(const names_argument *a, const char *what, const char *const *choices, int n)
{
    for (int i = 0; i < n; i++)
        if (choices[i] && strcmp(a->text, choices[i]) == 0)
            return i;
    tern_fail(TERN_ERR_ARGUMENT, "tern_call_by_name: %s is not a valid value for %s", a->text,
              what);
    return -1;
}

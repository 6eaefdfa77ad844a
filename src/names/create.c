/* create.c -- names of create.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* The dtype of argument i if given, else the dtype of the first argument. */
#define DTYPE_LIKE(i) (a[i].given ? a[i].dtype : tern_dtype_of(T(0)))

/* Reads start and end, arguments i and i + 1, where at least one is a tensor. */
static bool read_ends(const names_argument *a, int i, const char *name, double *start, double *end)
{
    int dims[2] = {T(i) ? tern_dim(T(i)) : 0, T(i + 1) ? tern_dim(T(i + 1)) : 0};
    if (dims[0] > 0 || dims[1] > 0) {
        tern_fail(TERN_ERR_SHAPE,
                  "tern_%s: %s only supports 0-dimensional start and end tensors, but got start "
                  "with %d dimension(s) and end with %d dimension(s).",
                  name, name, dims[0], dims[1]);
        return false;
    }
    if (dims[0] < 0 || dims[1] < 0)
        return false;
    *start = T(i) ? tern_item(T(i)) : R(i);
    *end = T(i + 1) ? tern_item(T(i + 1)) : R(i + 1);
    return true;
}

static tern_tensor *linspace(const names_argument *a)
{
    double start, end;
    return read_ends(a, 0, "linspace", &start, &end)
               ? tern_linspace(start, end, N(2), DTYPE(3), TEXT(4))
               : NULL;
}

static tern_tensor *logspace(const names_argument *a)
{
    double start, end;
    return read_ends(a, 0, "logspace", &start, &end)
               ? tern_logspace(start, end, N(2), R(3), DTYPE(4), TEXT(5))
               : NULL;
}

#define TABLE  names_create
#define FAMILY "names/create.def"
#include "names/expand.h"

/* pattern.h -- repeatable inputs that the scripts of golden/ make too: multiples of a quarter. */
#ifndef TERN_TESTS_PATTERN_H
#define TERN_TESTS_PATTERN_H
#include "support.h"
#include <stdlib.h>

/* Element i is (i * step % period - period / 2) / 4. */
static inline tern_tensor *pattern(const char *device, tern_dtype dtype, tern_shape shape,
                                   int64_t step, int64_t period)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dims[i];
    double *values = calloc((size_t)n + 1, sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)(i * step % period - period / 2) / 4;
    tern_tensor *x = test_tensor(device, dtype, shape, values);
    free(values);
    return x;
}

#endif

/* test_matmul.c -- matmul, mm, bmm and linear against sums in double precision, for every
 * combination of ranks, for strided inputs and all types; gradients; errors. */
#include "support.h"
#include <stdlib.h>
#include <tern/tern.h>

/* ---- a reference: torch.matmul by its definition
 * ------------------------------------------------------ */

typedef struct reference {
    tern_shape shape;
    double *values;
} reference;

/* Element (batch position, i, j) of x, whose stack broadcasts; a vector is a row or a column. */
static double element(const double *values, tern_shape s, const int64_t *at, int stack, int64_t i,
                      int64_t j, bool is_left)
{
    int own = s.ndim > 2 ? s.ndim - 2 : 0;
    int64_t index = 0;
    for (int d = 0; d < own; d++) {
        int64_t position = at[stack - own + d];
        index = index * s.dims[d] + (s.dims[d] == 1 ? 0 : position);
    }
    if (s.ndim == 1)
        return values[is_left ? j : i];
    return values[(index * s.dims[s.ndim - 2] + i) * s.dims[s.ndim - 1] + j];
}

static reference multiply(tern_tensor *a, tern_tensor *b)
{
    tern_shape sa = tern_shape_of(a), sb = tern_shape_of(b), stack = {0};
    int na = sa.ndim > 2 ? sa.ndim - 2 : 0, nb = sb.ndim > 2 ? sb.ndim - 2 : 0;
    stack.ndim = na > nb ? na : nb;
    int64_t count = 1;
    for (int d = 0; d < stack.ndim; d++) {
        int ia = d - (stack.ndim - na), ib = d - (stack.ndim - nb);
        int64_t da = ia < 0 ? 1 : sa.dims[ia], db = ib < 0 ? 1 : sb.dims[ib];
        stack.dims[d] = da == 1 ? db : da;
        count *= stack.dims[d];
    }
    int64_t m = sa.ndim > 1 ? sa.dims[sa.ndim - 2] : 1, k = sa.dims[sa.ndim - 1];
    int64_t n = sb.ndim > 1 ? sb.dims[sb.ndim - 1] : 1;
    reference r = {stack, malloc((size_t)(count * m * n + 1) * sizeof(double))};
    double *va = test_read(a), *vb = test_read(b), *out = r.values;
    for (int64_t c = 0; c < count; c++) {
        int64_t at[TERN_MAX_DIMS], rest = c;
        for (int d = stack.ndim - 1; d >= 0; d--) {
            at[d] = rest % stack.dims[d];
            rest /= stack.dims[d];
        }
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += element(va, sa, at, stack.ndim, i, p, true) *
                           element(vb, sb, at, stack.ndim, p, j, false);
                *out++ = sum;
            }
    }
    if (sa.ndim > 1)
        r.shape.dims[r.shape.ndim++] = m;
    if (sb.ndim > 1)
        r.shape.dims[r.shape.ndim++] = n;
    free(va);
    free(vb);
    return r;
}

static double tolerance_of(tern_dtype dtype)
{
    return dtype == TERN_F64 ? 1e-13 : dtype == TERN_F32 ? 2e-5 : dtype == TERN_F16 ? 4e-3 : 3e-2;
}

static void check_product(tern_tensor *a, tern_tensor *b)
{
    reference r = multiply(a, b);
    double tolerance = tolerance_of(tern_dtype_of(a));
    TERN_SCOPE {
        tern_tensor *c = tern_matmul(a, b);
        tern_tensor *expected = test_tensor(tern_device(a), tern_dtype_of(a), r.shape, r.values);
        assert_close(c, expected, .abs = tolerance, .rel = tolerance);
    }
    free(r.values);
}

static tern_tensor *uniform(const char *device, tern_dtype dtype, tern_shape shape)
{
    static uint64_t seed;
    return test_uniform(device, dtype, shape, -1, 1, ++seed);
}

/* ---- values
 * ---------------------------------------------------------------------------------------------- */

static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};

static const struct {
    tern_shape a, b;
} ranks[] = {
    {{1, {5}}, {1, {5}}},
    {{1, {1}}, {1, {1}}},
    {{2, {3, 5}}, {1, {5}}},
    {{1, {5}}, {2, {5, 4}}},
    {{2, {3, 5}}, {2, {5, 4}}},
    {{2, {1, 5}}, {2, {5, 1}}},
    {{2, {5, 1}}, {2, {1, 4}}},
    {{3, {2, 3, 5}}, {1, {5}}},
    {{1, {5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {2, {5, 4}}},
    {{2, {3, 5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {3, {2, 5, 4}}},
    {{3, {1, 3, 5}}, {3, {2, 5, 4}}},
    {{3, {2, 3, 5}}, {3, {1, 5, 4}}},
    {{4, {2, 3, 4, 5}}, {4, {2, 3, 5, 2}}},
    {{4, {2, 1, 4, 5}}, {4, {1, 3, 5, 2}}},
    {{4, {2, 3, 4, 5}}, {3, {3, 5, 2}}},
    {{4, {2, 3, 4, 5}}, {1, {5}}},
    {{1, {5}}, {4, {2, 3, 5, 2}}},
    {{5, {2, 1, 2, 3, 5}}, {5, {1, 3, 2, 5, 4}}},
    {{6, {2, 1, 2, 1, 3, 5}}, {6, {1, 3, 1, 2, 5, 4}}},
    {{2, {17, 33}}, {2, {33, 19}}},
    {{2, {9, 300}}, {2, {300, 10}}},
    {{2, {100, 10}}, {2, {10, 1}}},
    {{2, {1, 100}}, {2, {100, 10}}},
    {{2, {70, 600}}, {1, {600}}},
    {{1, {600}}, {2, {600, 70}}},
    {{2, {65, 80}}, {2, {80, 67}}},
    {{3, {7, 64, 32}}, {3, {7, 32, 64}}},
    {{2, {130, 270}}, {2, {270, 300}}},
};

static void values_agree_for_every_combination_of_ranks_and_types(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
            TERN_SCOPE {
                check_product(uniform(device, dtypes[d], ranks[i].a),
                              uniform(device, dtypes[d], ranks[i].b));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_agree_for_every_combination_of_ranks_and_types),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}

/* many.h -- twenty parameters of all lengths, none among them, and gradients for them. */
#ifndef TESTS_MANY_H
#define TESTS_MANY_H
#include "support.h"

enum { MANY = 20 };

static inline void make_many(const char *device, tern_dtype dtype, tern_tensor **x)
{
    for (int i = 0; i < MANY; i++) {
        int64_t n = i == 3 ? 0 : i == 7 ? 10001 : 1 + 37 * i;
        x[i] = test_uniform(device, dtype, TERN_SHAPE(n), -1, 1, (uint64_t)i);
        tern_requires_grad_(x[i], true);
    }
}

static inline void give_gradients(tern_tensor *const *x, uint64_t seed)
{
    for (int i = 0; i < MANY; i++)
        assert_ok(tern_set_grad(x[i], test_uniform(tern_device(x[i]), tern_dtype_of(x[i]),
                                                   tern_shape_of(x[i]), -1, 1,
                                                   seed * 100 + (uint64_t)i)));
}
#endif

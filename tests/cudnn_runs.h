/* cudnn_runs.h -- convolutions on the stand-in for cuDNN (tests/standin/cudnn.c), and which of its algorithms ran. */
#ifndef TERN_TESTS_CUDNN_RUNS_H
#define TERN_TESTS_CUDNN_RUNS_H
#include "again.h"
#include "support.h"
#include <dlfcn.h>

enum { Y, X, WEIGHT };

/* A function of the stand-in's own. */
static inline void find(const char *name, void *function, size_t bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/libcudnn.so.9", getenv("TERN_CUDA_PATH"));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, bytes);
}

/* How often the stand-in ran an algorithm of a pass. */
static inline long runs(int pass, int algorithm)
{
    static long (*count)(int, int);
    if (!count)
        find("standin_convolutions", &count, sizeof count);
    return count(pass, algorithm);
}

static inline tern_tensor *uniform(const char *device, tern_dtype dtype, tern_shape shape,
                                   uint64_t seed)
{
    tern_tensor *x = test_uniform(device, dtype, shape, -1, 1, seed);
    tern_requires_grad_(x, true);
    return x;
}

typedef struct result {
    tern_tensor *y, *dx, *dw, *db;
} result;

static inline result run(const char *device, tern_dtype dtype, tern_shape x_shape,
                         tern_shape w_shape, int64_t groups, int64_t dilation)
{
    tern_tensor *x = uniform(device, dtype, x_shape, 1), *w = uniform(device, dtype, w_shape, 2);
    tern_tensor *b = uniform(device, dtype, TERN_SHAPE(w_shape.dims[0]), 3);
    tern_conv_function_options o = {.stride = TERN_SHAPE(2),
                                    .padding = TERN_SHAPE(1),
                                    .dilation = TERN_SHAPE(dilation),
                                    .groups = groups};
    tern_tensor *y = x_shape.ndim == 3   ? tern_conv1d(x, w, b, &o)
                     : x_shape.ndim == 4 ? tern_conv2d(x, w, b, &o)
                                         : tern_conv3d(x, w, b, &o);
    assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
    return (result){y, tern_grad(x), tern_grad(w), tern_grad(b)};
}

#endif

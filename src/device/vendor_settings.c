/* vendor_settings.c -- settings of vendors' libraries, and the number of threads, for the whole
 * process. */
#include "base/parallel.h"
#include "device/device.h"
#include <stdatomic.h>
#include <tern/backends.h>

static atomic_int precision;
static atomic_bool cudnn_is_off, cudnn_is_exact, cudnn_benchmarks; /* false: PyTorch's defaults */

tern_status tern_set_float32_matmul_precision(tern_matmul_precision wanted)
{
    if ((unsigned)wanted > TERN_MATMUL_PRECISION_MEDIUM)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_set_float32_matmul_precision: %d is not one of 'highest', 'high', "
                         "or 'medium'",
                         (int)wanted);
    atomic_store_explicit(&precision, (int)wanted, memory_order_relaxed);
    return TERN_OK;
}

tern_matmul_precision tern_get_float32_matmul_precision(void)
{
    return (tern_matmul_precision)atomic_load_explicit(&precision, memory_order_relaxed);
}

bool tern_allows_tf32(void)
{
    return atomic_load_explicit(&precision, memory_order_relaxed) != TERN_MATMUL_PRECISION_HIGHEST;
}

void tern_backends_cudnn_set_enabled(bool on)
{
    atomic_store_explicit(&cudnn_is_off, !on, memory_order_relaxed);
}

bool tern_backends_cudnn_is_enabled(void)
{
    return !atomic_load_explicit(&cudnn_is_off, memory_order_relaxed);
}

void tern_backends_cudnn_set_allow_tf32(bool on)
{
    atomic_store_explicit(&cudnn_is_exact, !on, memory_order_relaxed);
}

bool tern_backends_cudnn_allows_tf32(void)
{
    return !atomic_load_explicit(&cudnn_is_exact, memory_order_relaxed);
}

void tern_backends_cudnn_set_benchmark(bool on)
{
    atomic_store_explicit(&cudnn_benchmarks, on, memory_order_relaxed);
}

bool tern_backends_cudnn_benchmarks(void)
{
    return atomic_load_explicit(&cudnn_benchmarks, memory_order_relaxed);
}

tern_status tern_set_num_threads(int n)
{
    if (n < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_set_num_threads: expects a positive integer, not %d", n);
    tern_parallel_limit(n);
    return TERN_OK;
}

int tern_get_num_threads(void)
{
    return tern_parallel_limit_get();
}

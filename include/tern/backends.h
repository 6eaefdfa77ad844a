/* backends.h -- settings of vendors' libraries: torch.set_float32_matmul_precision and the switches
 * of torch.backends. They hold for the whole process. */
#ifndef TERN_BACKENDS_H
#define TERN_BACKENDS_H
#include <tern/error.h>

TERN_BEGIN_DECLS

typedef enum tern_matmul_precision {
    TERN_MATMUL_PRECISION_HIGHEST = 0, /* float32 numbers are multiplied */
    TERN_MATMUL_PRECISION_HIGH,  /* TensorFloat-32 numbers are multiplied, on "cuda" devices */
    TERN_MATMUL_PRECISION_MEDIUM /* the same as HIGH */
} tern_matmul_precision;
/* Sets how float32 matrix products are computed. TensorFloat-32 numbers have 10 bits of mantissa,
 * and are used where the hardware is faster with them (torch.backends.cuda.matmul.allow_tf32); sums
 * are in float32 in any case. The setting does not affect other dtypes, convolutions, or "cpu" and
 * "opencl" devices. A recorded graph keeps the setting of its recording. Errors: TERN_ERR_ARGUMENT
 * for a value that is none of these. */
TERN_API tern_status tern_set_float32_matmul_precision(tern_matmul_precision precision);
/* Returns the current setting. */
TERN_API tern_matmul_precision tern_get_float32_matmul_precision(void);

/* torch.backends.cudnn: convolutions of "cuda" devices through cuDNN, where it is installed. */
/* Sets whether convolutions use cuDNN; at first they do. Without it they are computed as matrix
 * products. */
TERN_API void tern_backends_cudnn_set_enabled(bool on);
/* Returns whether convolutions use cuDNN where it is installed. */
TERN_API bool tern_backends_cudnn_is_enabled(void);
/* Sets whether cuDNN's float32 convolutions may use TensorFloat-32 numbers. At first they may,
 * unlike matrix products; the defaults are PyTorch's. */
TERN_API void tern_backends_cudnn_set_allow_tf32(bool on);
/* Returns whether cuDNN's float32 convolutions may use TensorFloat-32 numbers. */
TERN_API bool tern_backends_cudnn_allows_tf32(void);
/* Sets whether the first convolution of a new shape runs each of cuDNN's algorithms four times and
 * keeps the fastest (torch.backends.cudnn.benchmark); at first cuDNN's heuristics choose. It pays
 * if there are few shapes. Results are kept in the cache on disk, by shape, dtype, device and
 * version of cuDNN, so that the next process does not measure again. Different algorithms may round
 * differently; with tern_use_deterministic only deterministic ones are tried. */
TERN_API void tern_backends_cudnn_set_benchmark(bool on);
/* Returns whether cuDNN's algorithms are measured. */
TERN_API bool tern_backends_cudnn_benchmarks(void);

TERN_END_DECLS
#endif

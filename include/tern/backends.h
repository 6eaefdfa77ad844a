/* backends.h -- how far vendors' libraries may go: torch.set_float32_matmul_precision and what
 * torch.backends switches. All of it is for the whole process. */
#ifndef TERN_BACKENDS_H
#define TERN_BACKENDS_H
#include <tern/error.h>

TERN_BEGIN_DECLS

typedef enum tern_matmul_precision {
    TERN_MATMUL_PRECISION_HIGHEST = 0, /* in float32 */
    TERN_MATMUL_PRECISION_HIGH,        /* from TensorFloat-32 numbers, on "cuda" devices */
    TERN_MATMUL_PRECISION_MEDIUM       /* the same */
} tern_matmul_precision;
/* How float32 matrix products are computed. TensorFloat-32 numbers have 10 bits of mantissa and are
 * taken where the hardware is faster with them (torch.backends.cuda.matmul.allow_tf32). Sums are in
 * float32 either way. It changes nothing for other dtypes, for convolutions and on "cpu" and
 * "opencl" devices; a recorded graph keeps what it was recorded with. Errors: TERN_ERR_ARGUMENT for
 * a value that is none of these. */
TERN_API tern_status tern_set_float32_matmul_precision(tern_matmul_precision precision);
/* What was set last. */
TERN_API tern_matmul_precision tern_get_float32_matmul_precision(void);

/* torch.backends.cudnn: convolutions of "cuda" devices through cuDNN, where it is installed. */
/* Whether to use it (at first: yes); without it they are matrix products. */
TERN_API void tern_backends_cudnn_set_enabled(bool on);
/* Whether they may go through cuDNN. */
TERN_API bool tern_backends_cudnn_is_enabled(void);
/* Whether its float32 convolutions may read TensorFloat-32 numbers. As in PyTorch they may at
 * first, other than matrix products. */
TERN_API void tern_backends_cudnn_set_allow_tf32(bool on);
/* Whether they may. */
TERN_API bool tern_backends_cudnn_allows_tf32(void);
/* Whether, when a convolution of a new shape comes, each of cuDNN's algorithms for it is run four
 * times and the fastest one is taken from then on (torch.backends.cudnn.benchmark; at first: no,
 * cuDNN's heuristics choose). It is worth it where shapes are few. What was found is kept in the
 * cache on disk, by shape, dtype, device and version of cuDNN, so that the next process does not
 * measure again. Different algorithms may round differently; with tern_use_deterministic only
 * deterministic ones are tried. */
TERN_API void tern_backends_cudnn_set_benchmark(bool on);
/* Whether they are. */
TERN_API bool tern_backends_cudnn_benchmarks(void);

TERN_END_DECLS
#endif

/* ops/signal.h -- window functions: what frames of a signal are weighted with before a Fourier
 * transform.
 *
 * Results are (n) in dtype, a floating point one (0: the default), on device (NULL: the default
 * one), computed in double on the host, and belong to the innermost scope; NULL after an error.
 * Where a window is periodic its period is n elements, as spectra want it; symmetric ones, as
 * filters want them, have one of n - 1. */
#ifndef TERN_OPS_SIGNAL_H
#define TERN_OPS_SIGNAL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* torch.hann_window: sin^2. */
TERN_API tern_tensor *tern_hann_window(int64_t n, bool periodic, tern_dtype dtype,
                                       const char *device);
/* torch.hamming_window: alpha - beta cos; PyTorch's are 0.54 and 0.46. */
TERN_API tern_tensor *tern_hamming_window(int64_t n, bool periodic, double alpha, double beta,
                                          tern_dtype dtype, const char *device);
/* torch.blackman_window: 0.42 - 0.5 cos + 0.08 cos of twice the angle. */
TERN_API tern_tensor *tern_blackman_window(int64_t n, bool periodic, tern_dtype dtype,
                                           const char *device);
/* torch.bartlett_window: a triangle. */
TERN_API tern_tensor *tern_bartlett_window(int64_t n, bool periodic, tern_dtype dtype,
                                           const char *device);
/* torch.kaiser_window: I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1; PyTorch's beta is 12. */
TERN_API tern_tensor *tern_kaiser_window(int64_t n, bool periodic, double beta, tern_dtype dtype,
                                         const char *device);

/* ---- torch.signal.windows; sym is true where it is not given there --------------------------- */

/* tern_hann_window. */
TERN_API tern_tensor *tern_signal_windows_hann(int64_t n, bool sym, tern_dtype dtype,
                                               const char *device);
/* tern_hamming_window with 0.54 and 0.46. */
TERN_API tern_tensor *tern_signal_windows_hamming(int64_t n, bool sym, tern_dtype dtype,
                                                  const char *device);
/* tern_blackman_window. */
TERN_API tern_tensor *tern_signal_windows_blackman(int64_t n, bool sym, tern_dtype dtype,
                                                   const char *device);
/* tern_bartlett_window. */
TERN_API tern_tensor *tern_signal_windows_bartlett(int64_t n, bool sym, tern_dtype dtype,
                                                   const char *device);
/* tern_kaiser_window; beta is 12 where it is not given there. */
TERN_API tern_tensor *tern_signal_windows_kaiser(int64_t n, double beta, bool sym, tern_dtype dtype,
                                                 const char *device);
/* Half a wave of a sine. */
TERN_API tern_tensor *tern_signal_windows_cosine(int64_t n, bool sym, tern_dtype dtype,
                                                 const char *device);
/* Four cosines (Nuttall 1981). */
TERN_API tern_tensor *tern_signal_windows_nuttall(int64_t n, bool sym, tern_dtype dtype,
                                                  const char *device);
/* sum_i (-1)^i a[i] cos(2 pi i k / period), i < count. */
TERN_API tern_tensor *tern_signal_windows_general_cosine(int64_t n, const double *a, int count,
                                                         bool sym, tern_dtype dtype,
                                                         const char *device);
/* alpha - (1 - alpha) cos; alpha is 0.54 where it is not given there. */
TERN_API tern_tensor *tern_signal_windows_general_hamming(int64_t n, double alpha, bool sym,
                                                          tern_dtype dtype, const char *device);
/* e^(-|k - center| / tau), tau > 0; center NaN is the middle, which symmetric windows must have. */
TERN_API tern_tensor *tern_signal_windows_exponential(int64_t n, double center, double tau,
                                                      bool sym, tern_dtype dtype,
                                                      const char *device);
/* e^(-(x / std)^2 / 2), x from the middle in elements, std > 0. */
TERN_API tern_tensor *tern_signal_windows_gaussian(int64_t n, double std, bool sym,
                                                   tern_dtype dtype, const char *device);

TERN_END_DECLS
#endif

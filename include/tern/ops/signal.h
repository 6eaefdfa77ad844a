/* ops/signal.h -- window functions, by which a frame of a signal is multiplied before a Fourier
 * transform.
 *
 * Results are (n) in dtype, a floating point one (TERN_DTYPE_DEFAULT: tern_get_default_dtype()), on
 * device (NULL: the default one). The host computes them in double precision. They belong to the
 * innermost scope; NULL after an error. A periodic window has a period of n elements, as spectra
 * need it; a symmetric window has a period of n - 1, as filters need it. */
#ifndef TERN_OPS_SIGNAL_H
#define TERN_OPS_SIGNAL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Returns a Hann window: sin^2 (torch.hann_window). */
TERN_API tern_tensor *tern_hann_window(int64_t n, bool periodic, tern_dtype dtype,
                                       const char *device);
/* Returns a Hamming window: alpha - beta cos (torch.hamming_window); PyTorch's defaults are 0.54
 * and 0.46. */
TERN_API tern_tensor *tern_hamming_window(int64_t n, bool periodic, double alpha, double beta,
                                          tern_dtype dtype, const char *device);
/* Returns a Blackman window: 0.42 - 0.5 cos(a) + 0.08 cos(2 a) (torch.blackman_window). */
TERN_API tern_tensor *tern_blackman_window(int64_t n, bool periodic, tern_dtype dtype,
                                           const char *device);
/* Returns a Bartlett window, a triangle (torch.bartlett_window). */
TERN_API tern_tensor *tern_bartlett_window(int64_t n, bool periodic, tern_dtype dtype,
                                           const char *device);
/* Returns a Kaiser window: I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1 (torch.kaiser_window);
 * PyTorch's default of beta is 12. */
TERN_API tern_tensor *tern_kaiser_window(int64_t n, bool periodic, double beta, tern_dtype dtype,
                                         const char *device);

/* ---- torch.signal.windows; PyTorch's default of sym is true ---------------------------------- */

/* Returns tern_hann_window, symmetric if sym. */
TERN_API tern_tensor *tern_signal_windows_hann(int64_t n, bool sym, tern_dtype dtype,
                                               const char *device);
/* Returns tern_hamming_window with alpha 0.54 and beta 0.46, symmetric if sym. */
TERN_API tern_tensor *tern_signal_windows_hamming(int64_t n, bool sym, tern_dtype dtype,
                                                  const char *device);
/* Returns tern_blackman_window, symmetric if sym. */
TERN_API tern_tensor *tern_signal_windows_blackman(int64_t n, bool sym, tern_dtype dtype,
                                                   const char *device);
/* Returns tern_bartlett_window, symmetric if sym. */
TERN_API tern_tensor *tern_signal_windows_bartlett(int64_t n, bool sym, tern_dtype dtype,
                                                   const char *device);
/* Returns tern_kaiser_window, symmetric if sym; PyTorch's default of beta is 12. */
TERN_API tern_tensor *tern_signal_windows_kaiser(int64_t n, double beta, bool sym, tern_dtype dtype,
                                                 const char *device);
/* Returns a cosine window: half a period of a sine. */
TERN_API tern_tensor *tern_signal_windows_cosine(int64_t n, bool sym, tern_dtype dtype,
                                                 const char *device);
/* Returns a Nuttall window, a sum of four cosines (Nuttall 1981). */
TERN_API tern_tensor *tern_signal_windows_nuttall(int64_t n, bool sym, tern_dtype dtype,
                                                  const char *device);
/* Returns sum_i (-1)^i a[i] cos(2 pi i k / period) over i < count. */
TERN_API tern_tensor *tern_signal_windows_general_cosine(int64_t n, const double *a, int count,
                                                         bool sym, tern_dtype dtype,
                                                         const char *device);
/* Returns alpha - (1 - alpha) cos; PyTorch's default of alpha is 0.54. */
TERN_API tern_tensor *tern_signal_windows_general_hamming(int64_t n, double alpha, bool sym,
                                                          tern_dtype dtype, const char *device);
/* Returns e^(-|k - center| / tau), tau > 0. center NaN means the middle, and a symmetric window
 * must have that center. */
TERN_API tern_tensor *tern_signal_windows_exponential(int64_t n, double center, double tau,
                                                      bool sym, tern_dtype dtype,
                                                      const char *device);
/* Returns e^(-(x / std)^2 / 2), where x is the distance from the middle in elements, std > 0. */
TERN_API tern_tensor *tern_signal_windows_gaussian(int64_t n, double std, bool sym,
                                                   tern_dtype dtype, const char *device);

TERN_END_DECLS
#endif

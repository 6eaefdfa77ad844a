/* ops/fft.h -- discrete Fourier transforms, and spectra of signals.
 *
 * Complex numbers are pairs: a last dim of 2, (real, imaginary), as torch.view_as_real shows them;
 * there is no complex dtype. tern_fft_x is torch.fft.x; dims count numbers, so that dim -1 is the
 * one before the pairs. Lengths are any; those whose primes are small are fastest. float32 and
 * float64 (integers become float32); gradients of any order. Results belong to the innermost scope;
 * NULL after an error. */
#ifndef TERN_OPS_FFT_H
#define TERN_OPS_FFT_H
#include <tern/ops/pad.h>
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Where 1 / n goes. */
typedef enum tern_fft_norm {
    TERN_FFT_BACKWARD = 0, /* to the transforms back */
    TERN_FFT_ORTHO,        /* its square root to both */
    TERN_FFT_FORWARD       /* to those that are not back */
} tern_fft_norm;

/* ---- along one dim; n: the length to which the signal is cut or padded with zeros, 0: as it is */

/* Pairs (..., n, 2) -> (..., n, 2): sum_j x[j] e^(-2 pi i j k / n). */
TERN_API tern_tensor *tern_fft_fft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Its inverse. */
TERN_API tern_tensor *tern_fft_ifft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Of reals (..., n) -> pairs (..., n / 2 + 1, 2): the half that determines the other. */
TERN_API tern_tensor *tern_fft_rfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Its inverse: pairs (..., n / 2 + 1, 2) -> reals (..., n); n 0 is 2 (m - 1) of m pairs. The
 * imaginary parts of the first pair, and of the last where n is even, count as 0. */
TERN_API tern_tensor *tern_fft_irfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Half of a signal that is its own mirror image, pairs (..., n / 2 + 1, 2) -> its spectrum, reals
 * (..., n). */
TERN_API tern_tensor *tern_fft_hfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Its inverse: reals (..., n) -> pairs (..., n / 2 + 1, 2). */
TERN_API tern_tensor *tern_fft_ihfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);

/* ---- along several dims. s: lengths of the signal, -1 as it is; none (TERN_SHAPE_SCALAR): all as
 * they are. dims: none for as many of the last as s has, or all; of the forms with 2 for the last
 * two. Where reals are on one side the last of dims is the one that is halved. */

/* Pairs to pairs. */
TERN_API tern_tensor *tern_fft_fftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                    tern_fft_norm norm);
/* Pairs to pairs, back. */
TERN_API tern_tensor *tern_fft_ifftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Reals to pairs. */
TERN_API tern_tensor *tern_fft_rfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Pairs to reals, back. */
TERN_API tern_tensor *tern_fft_irfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* Pairs to reals. */
TERN_API tern_tensor *tern_fft_hfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Reals to pairs, back. */
TERN_API tern_tensor *tern_fft_ihfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* tern_fft_fftn of the last two dims. */
TERN_API tern_tensor *tern_fft_fft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                    tern_fft_norm norm);
/* tern_fft_ifftn of the last two dims. */
TERN_API tern_tensor *tern_fft_ifft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* tern_fft_rfftn of the last two dims. */
TERN_API tern_tensor *tern_fft_rfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* tern_fft_irfftn of the last two dims. */
TERN_API tern_tensor *tern_fft_irfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* tern_fft_hfftn of the last two dims. */
TERN_API tern_tensor *tern_fft_hfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* tern_fft_ihfftn of the last two dims. */
TERN_API tern_tensor *tern_fft_ihfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);

/* ---- frequencies ----------------------------------------------------------------------------- */

/* Frequency 0 goes to the middle of each of dims, which count x's dims as they are, pairs too;
 * none: all. */
TERN_API tern_tensor *tern_fft_fftshift(tern_tensor *x, tern_shape dims);
/* And back. */
TERN_API tern_tensor *tern_fft_ifftshift(tern_tensor *x, tern_shape dims);
/* (n): the frequencies of tern_fft_fft's results, in cycles per unit where samples are d units
 * apart. dtype 0 is the default one. */
TERN_API tern_tensor *tern_fft_fftfreq(int64_t n, double d, tern_dtype dtype, const char *device);
/* (n / 2 + 1): those of tern_fft_rfft's. */
TERN_API tern_tensor *tern_fft_rfftfreq(int64_t n, double d, tern_dtype dtype, const char *device);

/* ---- spectra of frames of a signal ----------------------------------------------------------- */

typedef struct tern_stft_options {
    int64_t hop_length;  /* between the beginnings of frames; default n_fft / 4 */
    int64_t win_length;  /* default n_fft, in whose middle a shorter window lies */
    tern_tensor *window; /* (win_length); NULL: ones. torch warns, tern does not */
    bool no_center; /* stretches begin at multiples of hop_length; else these are their middles */
    tern_pad_mode pad_mode; /* of the ends for that; default TERN_PAD_REFLECT */
    bool normalized;        /* by 1 / sqrt(n_fft) */
    bool two_sided;         /* all n_fft frequencies and not only n_fft / 2 + 1 */
    uint64_t reserved[4];
} tern_stft_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_stft_options tern_stft_defaults(void);
/* Signals (T) or (B, T) -> spectra (..., frequencies, frames, 2) of frames of n_fft elements
 * (torch.stft with return_complex, seen by torch.view_as_real). */
TERN_API tern_tensor *tern_stft(tern_tensor *x, int64_t n_fft, const tern_stft_options *options);

typedef struct tern_istft_options {
    int64_t hop_length, win_length; /* as of tern_stft */
    tern_tensor *window;            /* likewise */
    bool no_center;                 /* likewise */
    bool normalized, two_sided;     /* likewise */
    int64_t length;                 /* of the signal; 0: what the frames make */
    uint64_t reserved[4];
} tern_istft_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_istft_options tern_istft_defaults(void);
/* Spectra (frequencies, frames, 2) or (B, frequencies, frames, 2) -> signals (..., T), by least
 * squares (torch.istft); of two-sided spectra the first n_fft / 2 + 1 frequencies are read.
 * TERN_ERR_ARGUMENT where the windows leave an element out, which the host looks at. */
TERN_API tern_tensor *tern_istft(tern_tensor *x, int64_t n_fft, const tern_istft_options *options);

TERN_END_DECLS
#endif

/* ops/fft.h -- discrete Fourier transforms, and short-time Fourier transforms.
 *
 * There is no complex dtype: a complex number is a pair of reals, and a complex tensor has a last
 * dim of 2, (real, imaginary), as torch.view_as_real returns it. tern_fft_x is torch.fft.x, and
 * dims do not count the dim of pairs: dim -1 is the dim before it. Any length is allowed; lengths
 * with small prime factors are fastest. The dtypes are float32 and float64 (integers are converted
 * to float32); gradients of any order are supported. Results belong to the innermost scope; NULL
 * after an error. */
#ifndef TERN_OPS_FFT_H
#define TERN_OPS_FFT_H
#include <tern/ops/pad.h>
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* Which transform is scaled, where n is the length of the signal. */
typedef enum tern_fft_norm {
    TERN_FFT_BACKWARD = 0, /* the inverse transforms are divided by n */
    TERN_FFT_ORTHO,        /* both are divided by the square root of n */
    TERN_FFT_FORWARD       /* the forward transforms are divided by n */
} tern_fft_norm;

/* ---- along one dim ------------------------------------------------------------------------------
 * n is the length to which the signal is cut or padded with zeros before it is transformed; 0 keeps
 * its length. */

/* Transforms complex numbers (..., n, 2) -> (..., n, 2): y[k] = sum_j x[j] e^(-2 pi i j k / n). */
TERN_API tern_tensor *tern_fft_fft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* The inverse of tern_fft_fft. */
TERN_API tern_tensor *tern_fft_ifft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Transforms reals (..., n) to complex numbers (..., n / 2 + 1, 2): the half of the spectrum that
 * determines the other half. */
TERN_API tern_tensor *tern_fft_rfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* The inverse of tern_fft_rfft: complex numbers (..., n / 2 + 1, 2) -> reals (..., n). With n 0 a
 * spectrum of m numbers gives 2 (m - 1) reals. The imaginary part of the first number, and of the
 * last one if n is even, is ignored. */
TERN_API tern_tensor *tern_fft_irfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* Transforms a signal with Hermitian symmetry, of which x holds one half: complex numbers (..., n /
 * 2 + 1, 2) -> its spectrum, reals (..., n). */
TERN_API tern_tensor *tern_fft_hfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);
/* The inverse of tern_fft_hfft: reals (..., n) -> complex numbers (..., n / 2 + 1, 2). */
TERN_API tern_tensor *tern_fft_ihfft(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm);

/* ---- along several dims -------------------------------------------------------------------------
 * s has the length of the signal in each dim, -1 to keep it; TERN_SHAPE_SCALAR keeps all. An empty
 * list of dims means the last dims, as many as s has, or all if s is empty too; the functions whose
 * names end in 2 then take the last two. Where one side is real, the last dim of the list is the
 * one that is halved. */

/* Transforms complex numbers to complex numbers. */
TERN_API tern_tensor *tern_fft_fftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                    tern_fft_norm norm);
/* The inverse of tern_fft_fftn. */
TERN_API tern_tensor *tern_fft_ifftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Transforms reals to complex numbers. */
TERN_API tern_tensor *tern_fft_rfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* The inverse of tern_fft_rfftn: complex numbers to reals. */
TERN_API tern_tensor *tern_fft_irfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* Transforms a signal with Hermitian symmetry to reals. */
TERN_API tern_tensor *tern_fft_hfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* The inverse of tern_fft_hfftn: reals to complex numbers. */
TERN_API tern_tensor *tern_fft_ihfftn(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* Does what tern_fft_fftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_fft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                    tern_fft_norm norm);
/* Does what tern_fft_ifftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_ifft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Does what tern_fft_rfftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_rfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Does what tern_fft_irfftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_irfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);
/* Does what tern_fft_hfftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_hfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                     tern_fft_norm norm);
/* Does what tern_fft_ihfftn does, by default along the last two dims. */
TERN_API tern_tensor *tern_fft_ihfft2(tern_tensor *x, tern_shape s, tern_shape dims,
                                      tern_fft_norm norm);

/* ---- frequencies ----------------------------------------------------------------------------- */

/* Moves frequency 0 to the middle of each of the dims; an empty list means all dims. Here dims
 * count all dims of x, and so the dim of pairs too. */
TERN_API tern_tensor *tern_fft_fftshift(tern_tensor *x, tern_shape dims);
/* The inverse of tern_fft_fftshift. */
TERN_API tern_tensor *tern_fft_ifftshift(tern_tensor *x, tern_shape dims);
/* Returns the frequencies (n) that the results of tern_fft_fft belong to, in cycles per unit, for
 * samples that are d units apart. dtype TERN_DTYPE_DEFAULT is tern_get_default_dtype(). */
TERN_API tern_tensor *tern_fft_fftfreq(int64_t n, double d, tern_dtype dtype, const char *device);
/* Returns the frequencies (n / 2 + 1) that the results of tern_fft_rfft belong to. */
TERN_API tern_tensor *tern_fft_rfftfreq(int64_t n, double d, tern_dtype dtype, const char *device);

/* ---- short-time Fourier transforms ----------------------------------------------------------- */

typedef struct tern_stft_options {
    int64_t hop_length;     /* the distance from one frame to the next; default n_fft / 4 */
    int64_t win_length;     /* the length of the window; default n_fft. A shorter one is padded
                             * with zeros on both sides */
    tern_tensor *window;    /* (win_length); NULL: ones, without the warning that torch gives */
    bool no_center;         /* a multiple of hop_length is where a frame begins, not its middle */
    tern_pad_mode pad_mode; /* how the ends are padded when frames are centred; default
                             * TERN_PAD_REFLECT */
    bool normalized;        /* multiply the spectra by 1 / sqrt(n_fft) */
    bool two_sided;         /* return all n_fft frequencies, not only n_fft / 2 + 1 */
    uint64_t reserved[4];
} tern_stft_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_stft_options tern_stft_defaults(void);
/* Returns the spectra of overlapping frames of n_fft elements (torch.stft with
 * return_complex=True): signals (T) or (B, T) -> (..., frequencies, frames, 2). */
TERN_API tern_tensor *tern_stft(tern_tensor *x, int64_t n_fft, const tern_stft_options *options);

typedef struct tern_istft_options {
    int64_t hop_length, win_length; /* as in tern_stft_options */
    tern_tensor *window;            /* as in tern_stft_options */
    bool no_center;                 /* as in tern_stft_options */
    bool normalized, two_sided;     /* as in tern_stft_options */
    int64_t length; /* the length of the signal; 0: the length that the frames give */
    uint64_t reserved[4];
} tern_istft_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_istft_options tern_istft_defaults(void);
/* Returns the signal whose frames have these spectra, by least squares (torch.istft): (frequencies,
 * frames, 2) or (B, frequencies, frames, 2) -> (T) or (B, T). Of two-sided spectra only the first
 * n_fft / 2 + 1 frequencies are read. Errors: TERN_ERR_ARGUMENT where the windows leave out an
 * element; to find that, the host waits for the device. */
TERN_API tern_tensor *tern_istft(tern_tensor *x, int64_t n_fft, const tern_istft_options *options);

TERN_END_DECLS
#endif

/* fft.h -- the transform of rows, of which all functions of torch.fft are composed. */
#ifndef TERN_SRC_OPS_FFT_H
#define TERN_SRC_OPS_FFT_H
#include "tensor/op.h"

/* The elements of a row: pairs (complex numbers); reals; or pairs of a half spectrum, all of which
 * but the first and the one in the middle stand for their mirror image too. */
typedef enum tern_fft_kind { TERN_FFT_PAIRS, TERN_FFT_REALS, TERN_FFT_HALF } tern_fft_kind;

/* y[k] = scale sum_j x[j] e^(sign 2 pi i j k / n), k < want, j < have. */
typedef struct tern_fft_rule {
    tern_fft_kind in, out;
    int sign;
    int64_t n, have, want;
    double scale;
} tern_fft_rule;

/* Largest factor that is summed directly; lengths with larger factors use Bluestein's algorithm. */
enum { TERN_FFT_LARGEST = 97 };
int64_t tern_fft_largest_factor(int64_t n);
/* Returns the transform of the last dim (before the pairs) of x, for lengths of small factors. */
tern_tensor *tern_fft_by_factors(tern_tensor *x, const tern_fft_rule *rule);
/* Returns the same for any length, by convolution with a chirp. */
tern_tensor *tern_fft_by_chirp(tern_tensor *x, const tern_fft_rule *rule);
/* Returns whether x is a floating point tensor of pairs (or of reals); records an error if not. */
bool tern_fft_given(const char *function, const tern_tensor *x, bool pairs);

#endif

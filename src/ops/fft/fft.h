/* fft.h -- the transform that all of them are made of. */
#ifndef TERN_SRC_OPS_FFT_H
#define TERN_SRC_OPS_FFT_H
#include "tensor/op.h"

/* What the elements of a row are: pairs; reals; pairs of which all but the first, and the one in
 * the middle, stand for their mirror image, too. */
typedef enum tern_fft_kind { TERN_FFT_PAIRS, TERN_FFT_REALS, TERN_FFT_HALF } tern_fft_kind;

/* y[k] = scale sum_j x[j] e^(sign 2 pi i j k / n), k < want, j < have. */
typedef struct tern_fft_rule {
    tern_fft_kind in, out;
    int sign;
    int64_t n, have, want;
    double scale;
} tern_fft_rule;

/* Largest factor that is summed up as it stands; lengths with larger ones go by Bluestein. */
enum { TERN_FFT_LARGEST = 97 };
int64_t tern_fft_largest_factor(int64_t n);
/* Of the last dim (that before the pairs) of x, of lengths without large factors. */
tern_tensor *tern_fft_by_factors(tern_tensor *x, const tern_fft_rule *rule);
/* The same by a convolution with a chirp, of any length. */
tern_tensor *tern_fft_by_chirp(tern_tensor *x, const tern_fft_rule *rule);
/* Records that input of function is no floating point tensor of pairs (or of reals), and gives
 * false. */
bool tern_fft_given(const char *function, const tern_tensor *x, bool pairs);

#endif

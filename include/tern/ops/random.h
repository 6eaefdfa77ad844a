/* ops/random.h -- random tensors, random samples, and dropout.
 *
 * tern_x is torch.x. The numbers come from the device's generator, and for one seed they are the
 * same on every device; tensor.h describes the generator. Functions that create tensors take dtype
 * and device as those of ops/create.h do. A trailing _ writes into x and returns it. NULL after an
 * error. */
#ifndef TERN_OPS_RANDOM_H
#define TERN_OPS_RANDOM_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- new tensors ----------------------------------------------------------------------------- */

/* Returns numbers of the uniform distribution on [0, 1). Floating point types only. */
TERN_API tern_tensor *tern_rand(tern_shape shape, tern_dtype dtype, const char *device);
/* Returns numbers of the standard normal distribution. Floating point types only. */
TERN_API tern_tensor *tern_randn(tern_shape shape, tern_dtype dtype, const char *device);
/* Returns integers of the uniform distribution on [low, high). The default dtype is int64. */
TERN_API tern_tensor *tern_randint(int64_t low, int64_t high, tern_shape shape, tern_dtype dtype,
                                   const char *device);
/* Returns the numbers 0 to n - 1 in random order. The default dtype is int64. Waits for the
 * device. */
TERN_API tern_tensor *tern_randperm(int64_t n, tern_dtype dtype, const char *device);
/* Does what tern_rand does, with the shape, dtype and device of x. */
TERN_API tern_tensor *tern_rand_like(const tern_tensor *x);
/* Does what tern_randn does, with the shape, dtype and device of x. */
TERN_API tern_tensor *tern_randn_like(const tern_tensor *x);
/* Does what tern_randint does, with the shape, dtype and device of x. */
TERN_API tern_tensor *tern_randint_like(const tern_tensor *x, int64_t low, int64_t high);

/* ---- in place; floating point types only; what x was before gets a zero gradient ------------- */

/* Fills x with numbers of the uniform distribution on [low, high). */
TERN_API tern_tensor *tern_uniform_(tern_tensor *x, double low, double high);
/* Fills x with numbers of the normal distribution with this mean and standard deviation. */
TERN_API tern_tensor *tern_normal_(tern_tensor *x, double mean, double std);

/* ---- samples; these have no gradient --------------------------------------------------------- */

/* Returns 1 with probability x and else 0, for each element of x, in x's dtype (floating point).
 * Probabilities outside of 0..1 count as 0 or 1. */
TERN_API tern_tensor *tern_bernoulli(tern_tensor *x);
/* Fills x, of any dtype, with 1 with probability p and else 0. */
TERN_API tern_tensor *tern_bernoulli_(tern_tensor *x, double p);
/* Returns num_samples indices (int64) for each row of weights x (rows, n) or (n); an index is drawn
 * with a probability in proportion to its weight. With replacement an index may be drawn again;
 * without it a row needs at least num_samples weights above 0. Waits for the device to check the
 * weights. */
TERN_API tern_tensor *tern_multinomial(tern_tensor *x, int64_t num_samples, bool replacement);
/* Returns numbers of normal distributions, one for each element of mean and std, which are
 * broadcast. The dtype is that of mean. Waits for the device to check std (TERN_ERR_ARGUMENT if one
 * is negative). */
TERN_API tern_tensor *tern_normal(tern_tensor *mean, tern_tensor *std);

/* ---- dropout (torch.nn.functional); returns x itself if training is false or p is 0 ---------- */

/* Sets each element to zero with probability p, and multiplies the others by 1 / (1 - p). */
TERN_API tern_tensor *tern_dropout(tern_tensor *x, double p, bool training);
/* Does the same to whole channels of x (N, C, L) or (C, L) (Tompson et al. 2015). */
TERN_API tern_tensor *tern_dropout1d(tern_tensor *x, double p, bool training);
/* Does the same to whole channels of x (N, C, *). */
TERN_API tern_tensor *tern_dropout2d(tern_tensor *x, double p, bool training);
/* Does the same to whole channels of x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_dropout3d(tern_tensor *x, double p, bool training);
/* Sets each element with probability p to the value of selu at -infinity, and scales all elements
 * so that mean 0 and variance 1 are kept (Klambauer et al. 2017). */
TERN_API tern_tensor *tern_alpha_dropout(tern_tensor *x, double p, bool training);
/* Does the same to whole channels. */
TERN_API tern_tensor *tern_feature_alpha_dropout(tern_tensor *x, double p, bool training);
/* tern_dropout in place. The functions in place draw the same numbers as the others. */
TERN_API tern_tensor *tern_dropout_(tern_tensor *x, double p, bool training);
/* tern_dropout1d in place. */
TERN_API tern_tensor *tern_dropout1d_(tern_tensor *x, double p, bool training);
/* tern_dropout2d in place. */
TERN_API tern_tensor *tern_dropout2d_(tern_tensor *x, double p, bool training);
/* tern_dropout3d in place. */
TERN_API tern_tensor *tern_dropout3d_(tern_tensor *x, double p, bool training);
/* tern_alpha_dropout in place. */
TERN_API tern_tensor *tern_alpha_dropout_(tern_tensor *x, double p, bool training);
/* tern_feature_alpha_dropout in place. */
TERN_API tern_tensor *tern_feature_alpha_dropout_(tern_tensor *x, double p, bool training);

TERN_END_DECLS
#endif

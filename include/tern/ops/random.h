/* ops/random.h -- random tensors, samples, dropout.
 *
 * tern_x is torch.x. The numbers come from the device's generator, and are the same on every device
 * for one seed: tensor.h says how they are drawn. Functions that make tensors take dtype and device
 * as those of ops/create.h; a trailing _ writes into x and returns it. NULL after an error. */
#ifndef TERN_OPS_RANDOM_H
#define TERN_OPS_RANDOM_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- new tensors ----------------------------------------------------------------------------- */

/* Uniform in [0, 1). Floating point types only. */
TERN_API tern_tensor *tern_rand(tern_shape shape, tern_dtype dtype, const char *device);
/* Standard normal. Floating point types only. */
TERN_API tern_tensor *tern_randn(tern_shape shape, tern_dtype dtype, const char *device);
/* Uniform integers in [low, high); the default dtype is int64. */
TERN_API tern_tensor *tern_randint(int64_t low, int64_t high, tern_shape shape, tern_dtype dtype,
                                   const char *device);
/* A random order of 0..n-1; the default dtype is int64. Waits for the device. */
TERN_API tern_tensor *tern_randperm(int64_t n, tern_dtype dtype, const char *device);
/* tern_rand with shape, dtype and device of x. */
TERN_API tern_tensor *tern_rand_like(const tern_tensor *x);
/* tern_randn with shape, dtype and device of x. */
TERN_API tern_tensor *tern_randn_like(const tern_tensor *x);
/* tern_randint with shape, dtype and device of x. */
TERN_API tern_tensor *tern_randint_like(const tern_tensor *x, int64_t low, int64_t high);

/* ---- into x: floating point types only; the gradient of what x was is zero ------------------- */

/* Uniform numbers of [low, high). */
TERN_API tern_tensor *tern_uniform_(tern_tensor *x, double low, double high);
/* Normal numbers. */
TERN_API tern_tensor *tern_normal_(tern_tensor *x, double mean, double std);

/* ---- samples, without a gradient ------------------------------------------------------------- */

/* 1 with probability x, else 0, in x's floating type; numbers outside of 0..1 count as the nearest
 * of these. */
TERN_API tern_tensor *tern_bernoulli(tern_tensor *x);
/* Into x, of any type: 1 with probability p. */
TERN_API tern_tensor *tern_bernoulli_(tern_tensor *x, double p);
/* num_samples indices of each row of x (rows, n) or (n), which weighs them; replacement: an index
 * may come again; without it a row needs num_samples weights above 0. int64. Reads from the device
 * whether the weights are ones. */
TERN_API tern_tensor *tern_multinomial(tern_tensor *x, int64_t num_samples, bool replacement);
/* From the normal distribution of each element's mean and std, which broadcast; of mean's type.
 * Reads from the device whether a std is negative (TERN_ERR_ARGUMENT). */
TERN_API tern_tensor *tern_normal(tern_tensor *mean, tern_tensor *std);

/* ---- dropout (torch.nn.functional): x itself where training is false or p is 0 --------------- */

/* Elements are zero with probability p, and scaled by 1 / (1 - p) otherwise. */
TERN_API tern_tensor *tern_dropout(tern_tensor *x, double p, bool training);
/* The same of whole channels of x (N, C, L) or (C, L) (Tompson et al. 2015). */
TERN_API tern_tensor *tern_dropout1d(tern_tensor *x, double p, bool training);
/* Of x (N, C, *). */
TERN_API tern_tensor *tern_dropout2d(tern_tensor *x, double p, bool training);
/* Of x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_dropout3d(tern_tensor *x, double p, bool training);
/* What is dropped becomes selu's value at -infinity, and all is scaled so that mean 0 and variance
 * 1 stay (Klambauer et al. 2017). */
TERN_API tern_tensor *tern_alpha_dropout(tern_tensor *x, double p, bool training);
/* The same of whole channels. */
TERN_API tern_tensor *tern_feature_alpha_dropout(tern_tensor *x, double p, bool training);
/* Each of them into x; they draw the same numbers. */
TERN_API tern_tensor *tern_dropout_(tern_tensor *x, double p, bool training);   /* dropout */
TERN_API tern_tensor *tern_dropout1d_(tern_tensor *x, double p, bool training); /* dropout1d */
TERN_API tern_tensor *tern_dropout2d_(tern_tensor *x, double p, bool training); /* dropout2d */
TERN_API tern_tensor *tern_dropout3d_(tern_tensor *x, double p, bool training); /* dropout3d */
/* alpha_dropout */
TERN_API tern_tensor *tern_alpha_dropout_(tern_tensor *x, double p, bool training);
/* feature_alpha_dropout */
TERN_API tern_tensor *tern_feature_alpha_dropout_(tern_tensor *x, double p, bool training);

TERN_END_DECLS
#endif

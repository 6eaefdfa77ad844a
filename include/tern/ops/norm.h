/* ops/norm.h -- batch, group, instance, layer and RMS normalisation.
 *
 * tern_x is torch.nn.functional.x. Floating point types only. Weights, biases and running
 * statistics hold one number for each channel, or have the shape normalized_shape; their dtype is
 * that of x, or float32 if x is float16 or bfloat16. Each of them may be NULL. Results have x's
 * shape and belong to the innermost scope; NULL after an error: TERN_ERR_SHAPE, TERN_ERR_DTYPE.
 * nn/norm.h has the modules. */
#ifndef TERN_OPS_NORM_H
#define TERN_OPS_NORM_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- over channels: x (N, C, *) -------------------------------------------------------------- */

/* Returns (x - mean) / sqrt(var + eps) weight + bias for each of the C channels (Ioffe, Szegedy
 * 2015). When training is true, mean and var are those of x over all other dims, and the running
 * statistics, if given, are updated in place: they move by `momentum` (PyTorch's default is 0.1)
 * towards the mean and the unbiased variance. Otherwise the running statistics are used, and both
 * are required. PyTorch's default of eps is 1e-5. Errors: TERN_ERR_SHAPE if training is true and
 * there is only one value for each channel. */
TERN_API tern_tensor *tern_batch_norm(tern_tensor *x, tern_tensor *running_mean,
                                      tern_tensor *running_var, tern_tensor *weight,
                                      tern_tensor *bias, bool training, double momentum,
                                      double eps);
/* Does what tern_batch_norm does with training true, and adds 1 to num_batches_tracked (int64, one
 * element, or NULL) in the same launch; torch.nn.BatchNorm2d needs a second one. */
TERN_API tern_tensor *tern_batch_norm_counted(tern_tensor *x, tern_tensor *running_mean,
                                              tern_tensor *running_var,
                                              tern_tensor *num_batches_tracked, tern_tensor *weight,
                                              tern_tensor *bias, double momentum, double eps);
/* Normalises each item of x in num_groups groups of C / num_groups channels, by the mean and
 * variance of a group over its channels and all other dims (Wu, He 2018). weight and bias are
 * (C). */
TERN_API tern_tensor *tern_group_norm(tern_tensor *x, int64_t num_groups, tern_tensor *weight,
                                      tern_tensor *bias, double eps);
/* Normalises each channel of each item by its own mean and variance (Ulyanov et al. 2016), or by
 * the running statistics if use_input_stats is false. The running statistics are updated as in
 * tern_batch_norm. */
TERN_API tern_tensor *tern_instance_norm(tern_tensor *x, tern_tensor *running_mean,
                                         tern_tensor *running_var, tern_tensor *weight,
                                         tern_tensor *bias, bool use_input_stats, double momentum,
                                         double eps);
/* Returns x / (k + alpha m)^beta, where m is the mean of the squares of `size` neighbouring
 * channels, with zeros beyond the first and the last (Krizhevsky et al. 2012). The mean of int64 is
 * rounded down. PyTorch's defaults: alpha 1e-4, beta 0.75, k 1. */
TERN_API tern_tensor *tern_local_response_norm(tern_tensor *x, int64_t size, double alpha,
                                               double beta, double k);

/* ---- over the last dims, whose sizes are normalized_shape ------------------------------------ */

/* Returns (x - mean) / sqrt(var + eps) weight + bias (Ba, Kiros, Hinton 2016). PyTorch's default of
 * eps is 1e-5. */
TERN_API tern_tensor *tern_layer_norm(tern_tensor *x, tern_shape normalized_shape,
                                      tern_tensor *weight, tern_tensor *bias, double eps);
/* Returns x / sqrt(mean(x^2) + eps) weight (Zhang, Sennrich 2019). eps below 0 means the distance
 * from 1 to the next larger number of x's dtype, PyTorch's default. weight may have any dtype. */
TERN_API tern_tensor *tern_rms_norm(tern_tensor *x, tern_shape normalized_shape,
                                    tern_tensor *weight, double eps);

/* ---- by a norm ------------------------------------------------------------------------------- */

/* Returns x / max(||x||_p, eps), with the norm over dim. PyTorch's defaults: p 2, dim 1, eps
 * 1e-12. */
TERN_API tern_tensor *tern_normalize(tern_tensor *x, double p, int dim, double eps);
/* Returns the norm ||v||_pow over all dims except dim; those dims have size 1 in the result. With
 * dim -1 the norm is over all dims and the result is (). */
TERN_API tern_tensor *tern_norm_except_dim(tern_tensor *v, double pow, int dim);
/* Returns v (g / ||v||), where g has the shape of tern_norm_except_dim(v, 2, dim) (Salimans, Kingma
 * 2016; torch._weight_norm). */
TERN_API tern_tensor *tern_weight_norm(tern_tensor *v, tern_tensor *g, int dim);

TERN_END_DECLS
#endif

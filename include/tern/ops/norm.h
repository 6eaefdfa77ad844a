/* ops/norm.h -- normalisation of batches, groups and rows.
 *
 * tern_x is torch.nn.functional.x. Floating point types only. Weights, biases and running
 * statistics hold a number for each channel, or have normalized_shape; they are of x's type, or
 * float32 where x is f16 or bf16; any may be NULL. Results have x's shape and belong to the
 * innermost scope; NULL after an error: TERN_ERR_SHAPE, TERN_ERR_DTYPE. The modules are in
 * nn/norm.h. */
#ifndef TERN_OPS_NORM_H
#define TERN_OPS_NORM_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- channels: x (N, C, *) ------------------------------------------------------------------- */

/* (x - mean) / sqrt(var + eps) weight + bias for each of the C channels (Ioffe, Szegedy 2015).
 * Training: by the statistics of x over all other dims; the running ones, where given, move in
 * place by `momentum` (PyTorch's default is 0.1) towards the mean and the unbiased variance. Else
 * by the running ones, both of which must be there. eps: PyTorch's default is 1e-5. Errors:
 * TERN_ERR_SHAPE for one value a channel when training. */
TERN_API tern_tensor *tern_batch_norm(tern_tensor *x, tern_tensor *running_mean,
                                      tern_tensor *running_var, tern_tensor *weight,
                                      tern_tensor *bias, bool training, double momentum,
                                      double eps);
/* The same when training, which adds 1 to num_batches_tracked (int64, one element; NULL: none) in
 * the same launch, as torch.nn.BatchNorm2d does in one of its own. */
TERN_API tern_tensor *tern_batch_norm_counted(tern_tensor *x, tern_tensor *running_mean,
                                              tern_tensor *running_var,
                                              tern_tensor *num_batches_tracked, tern_tensor *weight,
                                              tern_tensor *bias, double momentum, double eps);
/* Each item by the statistics of the C / num_groups channels of a group and all other dims (Wu, He
 * 2018). weight and bias (C). */
TERN_API tern_tensor *tern_group_norm(tern_tensor *x, int64_t num_groups, tern_tensor *weight,
                                      tern_tensor *bias, double eps);
/* Each channel of each item by its own statistics, or by the running ones without use_input_stats;
 * else as tern_batch_norm (Ulyanov et al. 2016). */
TERN_API tern_tensor *tern_instance_norm(tern_tensor *x, tern_tensor *running_mean,
                                         tern_tensor *running_var, tern_tensor *weight,
                                         tern_tensor *bias, bool use_input_stats, double momentum,
                                         double eps);
/* x / (k + alpha mean(squares of `size` neighbouring channels, zeros beyond)) to the beta; the mean
 * of int64 is rounded down. PyTorch's defaults: alpha 1e-4, beta 0.75, k 1. (Krizhevsky et al.
 * 2012.) */
TERN_API tern_tensor *tern_local_response_norm(tern_tensor *x, int64_t size, double alpha,
                                               double beta, double k);

/* ---- rows: the last dims, normalized_shape --------------------------------------------------- */

/* (x - mean) / sqrt(var + eps) weight + bias, parameters of x's type, or of float32 where x is of
 * halves. eps: PyTorch's default is 1e-5. (Ba, Kiros, Hinton 2016.) */
TERN_API tern_tensor *tern_layer_norm(tern_tensor *x, tern_shape normalized_shape,
                                      tern_tensor *weight, tern_tensor *bias, double eps);
/* x / sqrt(mean(x squared) + eps) weight (Zhang, Sennrich 2019). eps below 0: the smallest step
 * from 1 in x's type, PyTorch's default. weight of any type. */
TERN_API tern_tensor *tern_rms_norm(tern_tensor *x, tern_shape normalized_shape,
                                    tern_tensor *weight, double eps);

/* ---- lengths --------------------------------------------------------------------------------- */

/* x / max(||x||_p, eps) over dim. PyTorch's defaults: p 2, dim 1, eps 1e-12. */
TERN_API tern_tensor *tern_normalize(tern_tensor *x, double p, int dim, double eps);
/* ||v||_pow over all dims but dim, which stay with size 1; dim -1: over all, without dims. */
TERN_API tern_tensor *tern_norm_except_dim(tern_tensor *v, double pow, int dim);
/* v (g / ||v||), g of norm_except_dim's shape (Salimans, Kingma 2016; torch._weight_norm). */
TERN_API tern_tensor *tern_weight_norm(tern_tensor *v, tern_tensor *g, int dim);

TERN_END_DECLS
#endif

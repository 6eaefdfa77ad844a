/* nn/init.h -- initial values, in place, without recording; return x. (torch.nn.init) */
#ifndef TERN_NN_INIT_H
#define TERN_NN_INIT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

TERN_API tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high);
TERN_API tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std);
TERN_API tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value);
TERN_API tern_tensor *tern_nn_init_zeros_(tern_tensor *x);
TERN_API tern_tensor *tern_nn_init_ones_(tern_tensor *x);
/* Normal numbers between a and b (PyTorch: mean 0, std 1, a -2, b 2), by the inverse of their
 * distribution. */
TERN_API tern_tensor *tern_nn_init_trunc_normal_(tern_tensor *x, double mean, double std, double a,
                                                 double b);

/* ---- by the number of inputs and outputs --------------------------------------------------------
 * x is (out, in, *kernel); fewer than two dims are TERN_ERR_SHAPE. */
TERN_API tern_status tern_nn_init_calculate_fan_in_and_fan_out(const tern_tensor *x, double *fan_in,
                                                               double *fan_out);
/* What keeps the spread of numbers through "linear", "conv1d" ... "conv_transpose3d", "sigmoid",
 * "tanh", "relu", "leaky_relu" (param its slope: 0 is the default 0.01, TERN_ZERO is 0) or "selu".
 * NaN and TERN_ERR_ARGUMENT for others. */
TERN_API double tern_nn_init_calculate_gain(const char *nonlinearity, double param);
/* Glorot & Bengio 2010; gain 1 is PyTorch's default. */
TERN_API tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain);
TERN_API tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain);
/* He et al. 2015, fan_in; a is the negative slope of the leaky ReLU after it. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a);
TERN_API tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a);

typedef struct tern_init_kaiming_options {
    double a;                 /* the slope of a leaky ReLU */
    bool fan_out;             /* mode='fan_out': keep the spread of gradients */
    const char *nonlinearity; /* default "leaky_relu"; a name of tern_nn_init_calculate_gain */
    uint64_t reserved[4];
} tern_init_kaiming_options;
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_with_(tern_tensor *x,
                                                         const tern_init_kaiming_options *options);
TERN_API tern_tensor *tern_nn_init_kaiming_normal_with_(tern_tensor *x,
                                                        const tern_init_kaiming_options *options);

/* ---- of a structure ---------------------------------------------------------------------- */
/* The identity, as far as (n, m) goes. */
TERN_API tern_tensor *tern_nn_init_eye_(tern_tensor *x);
/* A convolution's weight (out, in, *kernel) of one to three kernel dims that passes its input on,
 * in each of the groups (PyTorch: 1) that divide out. */
TERN_API tern_tensor *tern_nn_init_dirac_(tern_tensor *x, int64_t groups);
/* As (n, the rest): rows of length gain (PyTorch: 1) at right angles to each other, or columns
 * where there are more rows (Saxe et al. 2013). By Gram and Schmidt's method, on x's device. */
TERN_API tern_tensor *tern_nn_init_orthogonal_(tern_tensor *x, double gain);
/* (n, m): normal numbers with std (PyTorch: 0.01), but ceil(sparsity n) of each column, at random
 * places, are zero (Martens 2010). */
TERN_API tern_tensor *tern_nn_init_sparse_(tern_tensor *x, double sparsity, double std);

TERN_END_DECLS
#endif

/* nn/init.h -- initial values (torch.nn.init). The functions write into x outside of autograd, and
 * return x. */
#ifndef TERN_NN_INIT_H
#define TERN_NN_INIT_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Fills x with numbers of the uniform distribution on [low, high). */
TERN_API tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high);
/* Fills x with numbers of the normal distribution. */
TERN_API tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std);
/* Fills x with value. */
TERN_API tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value);
/* Fills x with zeros. */
TERN_API tern_tensor *tern_nn_init_zeros_(tern_tensor *x);
/* Fills x with ones. */
TERN_API tern_tensor *tern_nn_init_ones_(tern_tensor *x);
/* Fills x with numbers of the normal distribution truncated to a..b, computed with its inverse
 * distribution function. PyTorch's defaults: mean 0, std 1, a -2, b 2. */
TERN_API tern_tensor *tern_nn_init_trunc_normal_(tern_tensor *x, double mean, double std, double a,
                                                 double b);

/* ---- TERN_SKIP_INIT { ... } ---------------------------------------------------------------------
 * Modules that are created inside the block have uninitialised parameters, for values that are
 * loaded later (torch.nn.utils.skip_init): on this thread the functions of this header return x
 * unchanged. On the cpu, memory that is never written takes no physical memory. */
typedef struct tern_skip_init_block {
    int active;
    bool saved;
} tern_skip_init_block;
/* Opens the block of TERN_SKIP_INIT; bindings of other languages call it. */
TERN_API tern_skip_init_block tern_skip_init_enter(void);
/* Closes the block and restores the setting from before it. */
TERN_API void tern_skip_init_leave(tern_skip_init_block *block);
#define TERN_SKIP_INIT                                                                             \
    TERN_BLOCK_(tern_skip_init_block, tern_skip_init_enter(), tern_skip_init_leave)
#define TERN_SKIP_INIT_HERE                                                                        \
    TERN_HERE_(tern_skip_init_block, tern_skip_init_enter(), tern_skip_init_leave)

/* ---- depending on the number of inputs and outputs ----------------------------------------------
 * x is (out, in, *kernel). Errors: TERN_ERR_SHAPE if it has fewer than two dims. */
/* Writes the number of inputs (in times kernel) to *fan_in and the number of outputs (out times
 * kernel) to *fan_out. */
TERN_API tern_status tern_nn_init_calculate_fan_in_and_fan_out(const tern_tensor *x, double *fan_in,
                                                               double *fan_out);
typedef enum tern_nonlinearity {
    TERN_NONLINEARITY_LEAKY_RELU = 0,
    TERN_NONLINEARITY_LINEAR, /* also for convolutions */
    TERN_NONLINEARITY_SIGMOID,
    TERN_NONLINEARITY_TANH,
    TERN_NONLINEARITY_RELU,
    TERN_NONLINEARITY_SELU
} tern_nonlinearity;
/* Returns the factor by which a nonlinearity needs its inputs' standard deviation scaled. param is
 * the slope of a leaky ReLU, where 0 means the default 0.01 and TERN_ZERO means 0. For a value that
 * is no nonlinearity it returns NaN, with TERN_ERR_ARGUMENT. */
TERN_API double tern_nn_init_calculate_gain(tern_nonlinearity nonlinearity, double param);
/* Fills x with numbers of the uniform distribution of Glorot & Bengio 2010; PyTorch's default of
 * gain is 1. */
TERN_API tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain);
/* Fills x with numbers of the normal distribution with that standard deviation. */
TERN_API tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain);
/* Fills x with numbers of the uniform distribution of He et al. 2015, for fan_in; a is the negative
 * slope of the leaky ReLU that follows. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a);
/* Fills x with numbers of the normal distribution with that standard deviation. */
TERN_API tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a);

typedef enum tern_fan_mode {
    TERN_FAN_IN = 0, /* keep the variance of activations in the forward pass */
    TERN_FAN_OUT     /* keep the variance of gradients in the backward pass */
} tern_fan_mode;
typedef struct tern_init_kaiming_options {
    double a; /* the slope of a leaky ReLU */
    tern_fan_mode mode;
    tern_nonlinearity nonlinearity;
    uint64_t reserved[4];
} tern_init_kaiming_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_init_kaiming_options tern_init_kaiming_defaults(void);
/* Does what tern_nn_init_kaiming_uniform_ does, with all arguments of PyTorch's function; NULL
 * means the defaults. */
TERN_API tern_tensor *tern_nn_init_kaiming_uniform_with_(tern_tensor *x,
                                                         const tern_init_kaiming_options *options);
/* Does what tern_nn_init_kaiming_normal_ does, with all arguments of PyTorch's function; NULL means
 * the defaults. */
TERN_API tern_tensor *tern_nn_init_kaiming_normal_with_(tern_tensor *x,
                                                        const tern_init_kaiming_options *options);

/* ---- structured values ----------------------------------------------------------------------- */
/* Fills the matrix x (n, m) with ones on the diagonal and zeros elsewhere. */
TERN_API tern_tensor *tern_nn_init_eye_(tern_tensor *x);
/* Fills the weight (out, in, *kernel) of a convolution over one to three dims such that the
 * convolution returns its input, in each of the groups (PyTorch's default: 1); groups must divide
 * out. */
TERN_API tern_tensor *tern_nn_init_dirac_(tern_tensor *x, int64_t groups);
/* Fills x, seen as (n, product of the other dims), with orthogonal rows of length gain (PyTorch's
 * default: 1), or with orthogonal columns if there are more rows than columns (Saxe et al. 2013).
 * It is computed by the Gram-Schmidt process on x's device. */
TERN_API tern_tensor *tern_nn_init_orthogonal_(tern_tensor *x, double gain);
/* Fills the matrix x (n, m) with numbers of the normal distribution with standard deviation std
 * (PyTorch's default: 0.01), and sets ceil(sparsity n) random elements of each column to zero
 * (Martens 2010). */
TERN_API tern_tensor *tern_nn_init_sparse_(tern_tensor *x, double sparsity, double std);

TERN_END_DECLS
#endif
